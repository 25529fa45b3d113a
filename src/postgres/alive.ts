// Which processes of this machine run.
import { readFileSync } from 'node:fs'

/** Whether a process with this id runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // It runs, as somebody else.
  }
  // In a container whose first process does not collect the dead, they stay as zombies, and can still be signalled.
  return !/\) [ZX] /.test(readText(`/proc/${pid}/stat`))
}

/** Empty when the file is not there. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // Not there, or not there yet.
  }
}
