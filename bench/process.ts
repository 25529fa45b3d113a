// Processes that the bench starts, and what they use: processor time and memory, read from /proc.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

export interface Started {
  readonly pid: number
  stop(): Promise<void>
}

const READY_MS_MAX = 60_000
const STOP_MS_MAX = 40_000
/** A tick of /proc/PID/stat; Linux has had 100 a second on every platform that Node runs on. */
const TICK_MICROS = 10_000

export interface StartOptions {
  readonly cores: string
  readonly logFile: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Ready when this port accepts a connection. */
  readonly port: number
}

export async function start(command: string, args: readonly string[], options: StartOptions): Promise<Started> {
  const output = openSync(options.logFile, 'a')
  const child = spawn('taskset', ['-c', options.cores, command, ...args], {
    stdio: ['ignore', output, output],
    env: { ...process.env, ...options.env },
    ...(options.cwd ? { cwd: options.cwd } : {}),
  })
  closeSync(output)
  // Whatever ends the bench, nothing that it started stays behind.
  const onExit = () => child.kill('SIGKILL')
  process.once('exit', onExit)
  let ended = false
  const gone = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  }).then(() => {
    ended = true
    process.off('exit', onExit)
  })
  const endedAt = Date.now() + READY_MS_MAX
  while (!(await accepts(options.port))) {
    if (ended || Date.now() > endedAt) {
      child.kill('SIGKILL')
      throw new Error(`${command} did not start. Its output ends with:\n${tail(options.logFile)}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return { pid: child.pid!, stop: () => stop(child, gone) }
}

async function stop(child: ChildProcess, gone: Promise<void>): Promise<void> {
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
  await gone
  clearTimeout(timer)
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

export function tail(file: string): string {
  return readFileSync(file, 'utf8').slice(-2_000)
}

/** A process and its children. */
export function family(pid: number): number[] {
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
  return [pid, ...children.map(Number)]
}

function parentOf(pid: string): number {
  return Number(statOf(pid)?.[1] ?? -1)
}

/** The fields of /proc/PID/stat that follow the name, which may hold blanks. */
function statOf(pid: string | number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** Time on a processor so far, user and system, with that of children that have ended. */
export function cpuMicros(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    const fields = statOf(pid)
    for (const field of fields?.slice(11, 15) ?? []) ticks += Number(field)
  }
  return ticks * TICK_MICROS
}

export function rssMegabytes(pids: readonly number[]): number {
  let kilobytes = 0
  for (const pid of pids) {
    try {
      kilobytes += Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
    } catch {
      // It has just ended.
    }
  }
  return kilobytes / 1024
}
