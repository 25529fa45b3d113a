// One gateway per data directory. Node offers no file locks of its own, but the SQLite inside it takes the kernel's, and
// those are what is wanted here: taking one is atomic, it vanishes with its process however that died, a reused pid
// cannot be mistaken for it, and it holds between containers that share a volume, where pids mean nothing.
import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { isAlive, readText } from './alive.ts'

const SQLITE_BUSY = 5
// A gateway writes its pid right after it took the lock; whoever is refused in between waits this long to learn it.
const PID_WAIT_MS = 1_000

interface DirectoryLock {
  release(): void
}

/** Takes the directory for this process, or throws an error that names the process that has it. */
export async function lockDirectory(directory: string, world: World): Promise<DirectoryLock> {
  // The pid is kept beside the lock, not in it: closing any handle on a locked file drops the lock (POSIX says so).
  const pidFile = join(directory, 'gateway.pid')
  const lockFile = join(directory, 'gateway.lock')
  makePrivate(lockFile)
  const database = tryLock(lockFile)
  if (!database) throw new Error(await refusal(directory, pidFile, world))

  const draft = `${pidFile}.${process.pid}`
  writeFileSync(draft, `${process.pid}\n`, { mode: 0o600 })
  renameSync(draft, pidFile)
  return {
    release() {
      rmSync(pidFile, { force: true })
      database.close()
    },
  }
}

/** Only when it is new: opening and closing it while this very process holds the lock would drop the lock. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function tryLock(file: string): DatabaseSync | undefined {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(file, { timeout: 0 })
    database.exec('begin exclusive')
    return database
  } catch (error) {
    database?.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined
    throw new Error(`Cannot lock ${file}. The data directory must be writable and on a file system with locks.`, {
      cause: error,
    })
  }
}

async function refusal(directory: string, pidFile: string, world: World): Promise<string> {
  const deadlineMs = world.elapsedMs() + PID_WAIT_MS
  let pid = readPid(pidFile)
  while (!(pid && isAlive(pid)) && world.elapsedMs() < deadlineMs) {
    await sleep(world, 20)
    pid = readPid(pidFile)
  }
  const holder = pid ? `Another Tollgate (pid ${pid})` : 'Another Tollgate'
  return `${holder} is using the data directory ${directory}. Stop it first, or set TOLLGATE_DATA to another directory.`
}

function readPid(file: string): number | undefined {
  return Number.parseInt(readText(file), 10) || undefined
}
