// A gateway as users run it, in a process of its own: started, killed, started again.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { until } from '../until.ts'

const MAIN = resolve(import.meta.dirname, '..', '..', 'src', 'main.ts')

export interface GatewayProcess {
  readonly url: string
  readonly pid: number
  /** From the start of the process to its readiness. */
  readonly readyMs: number
  /** All that it printed so far. */
  readonly output: string
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  kill(signal: NodeJS.Signals): void
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | null>
}

export interface ProcessOptions {
  readonly env: Record<string, string>
  readonly nodeArguments?: readonly string[]
  /** Of another version. */
  readonly main?: string
}

/** One that is not ready by then never will be. */
const READY_MS_MAX = 180_000

/** Resolves when it is ready; rejects with what it printed when it ends before. */
export function startProcess({ env, nodeArguments = [], main = MAIN }: ProcessOptions): Promise<GatewayProcess> {
  const startedMs = performance.now()
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(TOLLGATE_|DATABASE_URL|PORT|HOST|NODE_TEST|NODE_OPTIONS)/.test(name),
    ),
  )
  const child: ChildProcess = spawn(process.execPath, [...nodeArguments, main, 'serve'], {
    env: { ...inherited, PORT: '0', TOLLGATE_LOG_LEVEL: 'warn', TOLLGATE_OVERLOAD_LAG_MS: '60000', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((done) => {
    child.once('exit', (code, signal) => {
      // Its own children may hold its output open; whoever waits for the end of this process does not wait for theirs.
      for (const stream of [child.stdout, child.stderr]) (stream as Socket).unref()
      done({ code, signal })
    })
  })
  return new Promise((done, fail) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      fail(new Error(`the gateway is not ready after ${READY_MS_MAX / 1000} s:\n${output.slice(-3_000)}`))
    }, READY_MS_MAX)
    const hear = (piece: Buffer) => {
      output += piece
      const url = /^ {2}API +(http\S+)/m.exec(output)?.[1]
      if (url === undefined) return
      clearTimeout(timer)
      done({
        url,
        pid: child.pid!,
        readyMs: performance.now() - startedMs,
        get output() {
          return output
        },
        exited,
        kill: (signal) => void child.kill(signal),
        async stop() {
          child.kill('SIGTERM')
          return (await exited).code
        },
      })
    }
    child.stdout!.on('data', hear)
    child.stderr!.on('data', (piece: Buffer) => {
      output += piece
    })
    child.once('error', fail)
    void exited.then(() => clearTimeout(timer))
    void exited.then(({ code }) => fail(new Error(`the gateway ended with ${code}:\n${output.slice(-3_000)}`)))
  })
}

const KEY = /tg_live_\w{38}/
/** The key that a first start prints. */
export async function keyOf(first: Pick<GatewayProcess, 'output'>): Promise<string> {
  return KEY.exec(await until(() => first.output, KEY))![0]
}

/** A data directory of its own, removed at the end. */
export async function makeDataDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'tollgate-chaos-'))
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) }
}

export type StoreFacts = { readonly pid: number; readonly host: string; readonly port: number }

/** The built-in Postgres of a data directory, as its own file describes it. */
export async function storeOf(dataDirectory: string): Promise<StoreFacts> {
  const directory = join(dataDirectory, 'postgres')
  const lines = (await readFile(join(directory, 'postmaster.pid'), 'utf8')).split('\n')
  const socket = lines[4]?.trim() ?? ''
  const host = socket.startsWith('/') && !socket.startsWith('/proc/') ? socket : directory
  return { pid: Number(lines[0]), host, port: Number(lines[3]) }
}

export async function openStore(dataDirectory: string): Promise<Database> {
  const { host, port } = await storeOf(dataDirectory)
  return openDatabase({
    connection: { host, port, user: 'tollgate', database: 'tollgate', ssl: false },
    connectionsMax: 2,
  })
}
