// Structured lines, one object each. Only fields that are named at the call are written: never bodies, keys or queries.
import { write, writeSync } from 'node:fs'
import { realWorld as world } from './world.ts'

const STDERR = 2

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** As the usual readers of such lines number them. */
const LEVELS = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, silent: Number.POSITIVE_INFINITY } as const
type Level = keyof Log

interface LogOptions {
  readonly level: keyof typeof LEVELS
  readonly format?: 'json' | 'text' | undefined
  readonly stream?: { write(line: string): unknown }
}

export function createLog({ level, format = 'json', stream = openBufferedOutput(STDERR) }: LogOptions): Log {
  const written = format === 'text' ? readable : asJson
  const at = (own: Level) =>
    LEVELS[own] < LEVELS[level]
      ? () => {}
      : (fields: object, message: string) => void stream.write(written(own, fields, message))
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function asJson(level: Level, fields: object, message: string): string {
  const members = textOf(fields).slice(1, -1)
  const comma = members === '' ? '' : ','
  return `{"level":${LEVELS[level]},"time":${world.nowMs()}${comma}${members},"msg":${JSON.stringify(message)}}\n`
}

function textOf(fields: object): string {
  try {
    return JSON.stringify('error' in fields ? { ...fields, error: shownError(fields.error) } : fields)
  } catch {
    // Whatever it is, a line of the log must not become a fault of the call that it is about.
    return JSON.stringify(Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)])))
  }
}

function shownError(error: unknown): unknown {
  return error instanceof Error ? { name: error.name, message: error.message, stack: error.stack } : error
}

/** `03:10:28 warn  vendor failed  vendor=alpha status=500`: for reading along. */
function readable(level: Level, fields: object, message: string): string {
  const shown = Object.entries(JSON.parse(textOf(fields)) as object).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${new Date(world.nowMs()).toISOString().slice(11, 19)} ${level.padEnd(5)} ${message}  ${shown.join(' ')}\n`
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

// Lines wait in memory for at most half a second: a write to the file for every few lines was a tenth of the cost of a
// call. When whoever reads them stops, more than a megabyte is dropped; when nobody is left to read, all of it. The log
// library's own buffer is not used, because at exit it goes on for ever trying to write where nobody reads.

const FLUSH_EVERY_MS = 500
const FLUSH_CHARS = 65_536
const WAITING_CHARS_MAX = 1_048_576
/** At exit a reader that is behind gets this long, in all. */
const LAST_TRIES_MAX = 50
const LAST_PAUSE_MS = 20

function openBufferedOutput(fd: number): { write(line: string): void } {
  let waiting = ''
  let leaving: Buffer = Buffer.alloc(0)
  let writing = false
  let gone = false
  let timed = false

  function flush(): void {
    if (writing || gone || (leaving.length === 0 && waiting === '')) return
    if (leaving.length === 0) {
      leaving = Buffer.from(waiting)
      waiting = ''
    }
    writing = true
    write(fd, leaving, (error, bytes) => {
      writing = false
      // A reader that is only behind is tried again with the next flush.
      if (error) gone = error.code !== 'EAGAIN'
      else leaving = leaving.subarray(bytes)
      if (!error && (leaving.length > 0 || waiting.length >= FLUSH_CHARS)) flush()
    })
  }

  /** A process that logs nothing is not woken for it. */
  function flushLater(): void {
    timed = true
    setTimeout(() => {
      timed = false
      flush()
      // A reader that is behind is tried again.
      if (!gone && (leaving.length > 0 || waiting !== '')) flushLater()
    }, FLUSH_EVERY_MS).unref()
  }

  function flushAtExit(): void {
    // A thread is writing the last piece; wait until it has finished.
    let rest = writing ? Buffer.from(waiting) : Buffer.concat([leaving, Buffer.from(waiting)])
    const pause = new Int32Array(new SharedArrayBuffer(4))
    for (let tries = 0; rest.length > 0 && !gone && tries < LAST_TRIES_MAX; ) {
      try {
        rest = rest.subarray(writeSync(fd, rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
        tries++
        Atomics.wait(pause, 0, 0, LAST_PAUSE_MS)
      }
    }
  }

  process.once('exit', flushAtExit)
  return {
    write(line) {
      if (gone || waiting.length > WAITING_CHARS_MAX) return
      waiting += line
      if (!timed) flushLater()
      if (waiting.length >= FLUSH_CHARS) flush()
    },
  }
}
