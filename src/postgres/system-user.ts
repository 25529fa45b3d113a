// Postgres refuses to run as root, rightly. When we are root, it runs as an ordinary user of the machine.
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface SystemUser {
  readonly uid: number
  readonly gid: number
}

// The first of these that the machine knows. initdb looks its own user up, so a made-up number would not do.
const NAMES = ['tollgate', 'nobody', 'daemon']

/** Who runs Postgres for this data directory; undefined means that we do. */
export async function chooseUser(dataDirectory: string): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined

  // Files that already belong to somebody stay theirs.
  const cluster = await stat(join(dataDirectory, 'postgres')).catch(() => undefined)
  if (cluster && cluster.uid !== 0) return { uid: cluster.uid, gid: cluster.gid }

  const users = new Map<string, SystemUser>()
  for (const line of (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n')) {
    const [name, , uid, gid] = line.split(':')
    // Some systems write the ids of nobody as -2; the file system knows them as unsigned.
    if (name && uid && gid && Number(uid) !== 0) users.set(name, { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 })
  }
  const { uid } = await stat(dataDirectory)
  const owner = users.values().find((user) => user.uid === uid)
  if (owner) return owner
  const known = NAMES.find((name) => users.has(name))
  const user = known === undefined ? users.values().next().value : users.get(known)
  if (user) return user
  throw new Error(
    'Postgres does not run as root, and /etc/passwd names no other user. Start Tollgate as an ordinary user, or set DATABASE_URL to a Postgres server.',
  )
}

/** What a child process is given: the user, and of our environment nothing, since it holds secrets and PG* surprises. */
export function asUser(user: SystemUser | undefined): {
  uid?: number
  gid?: number
  env?: Record<string, string>
} {
  if (process.platform === 'win32') return {} // Programs there fail without SystemRoot and its like.
  const env = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/local/bin:/usr/bin:/bin' }
  return user ? { uid: user.uid | 0, gid: user.gid | 0, env } : { env }
}
