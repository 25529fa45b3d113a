// The files of the data directory besides the database: the root secret, the operator's token, and the address on which
// the gateway listens.
import { chmod, link, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { World } from '../kernel/world.ts'

export interface DataDirectory {
  readonly secret: string
  readonly operatorToken: string
  /** True only on the start that created the token. */
  readonly tokenIsNew: boolean
}

export async function openDataDirectory(config: Config, world: World): Promise<DataDirectory> {
  await mkdir(config.dataDirectory, { recursive: true, mode: 0o700 })
  const make = () => world.bytes(48).toString('base64url')
  const secret = config.TOLLGATE_SECRET ?? (await readOrMake(join(config.dataDirectory, 'secret'), make)).value
  const token = config.TOLLGATE_OPERATOR_TOKEN
    ? { value: config.TOLLGATE_OPERATOR_TOKEN, made: false }
    : await readOrMake(
        join(config.dataDirectory, 'operator-token'),
        () => `tg_op_${world.bytes(32).toString('base64url')}`,
      )
  return { secret, operatorToken: token.value, tokenIsNew: token.made }
}

/**
 * Reads the file, or creates it. It gets its name when it is complete, so that nobody reads half of it; of several
 * processes the first one decides.
 */
async function readOrMake(path: string, make: () => string): Promise<{ value: string; made: boolean }> {
  const existing = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (existing !== undefined) {
    const value = existing.trim()
    if (value.length < 24)
      throw new Error(`${path} is damaged: it is too short. Restore it from a backup, or delete it to make a new one.`)
    return { value, made: false }
  }
  const value = make()
  const fresh = `${path}.${value.slice(-8)}.new`
  const file = await open(fresh, 'w', 0o600)
  await file.writeFile(`${value}\n`)
  await file.sync()
  await file.close()
  await chmod(fresh, 0o600)
  try {
    await link(fresh, path)
    return { value, made: true }
  } catch (error) {
    // Its code says what the system could not do.
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return readOrMake(path, make)
    // Some file systems have no links.
    await rename(fresh, path)
    return { value, made: true }
  } finally {
    await rm(fresh, { force: true })
  }
}

interface ServerFile {
  readonly url: string
  readonly pid: number
}

const SERVER_FILE = 'server.json'

export async function writeServerFile(dataDirectory: string, facts: ServerFile): Promise<() => Promise<void>> {
  const path = join(dataDirectory, SERVER_FILE)
  await writeFile(path, `${JSON.stringify(facts)}\n`)
  return () => rm(path, { force: true })
}

export async function readServerFile(dataDirectory: string): Promise<ServerFile | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDirectory, SERVER_FILE), 'utf8')) as ServerFile
  } catch {
    return undefined
  }
}
