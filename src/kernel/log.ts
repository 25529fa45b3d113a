// Structured lines, one object each. Only fields that are named at the call are written: never bodies, keys or queries.
import { writeSync } from 'node:fs'
import { type Level, pino } from 'pino'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface LogOptions {
  readonly level: Level | 'silent'
  readonly format?: 'json' | 'text' | undefined
  readonly stream?: NodeJS.WritableStream
}

/**
 * Lines wait in memory for at most half a second: a write to the file for every few lines was a tenth of the cost of a call.
 * When whoever reads them stops, more than a megabyte is dropped.
 */
const BUFFERED = {
  fd: 2,
  sync: false,
  minLength: 65_536,
  maxWrite: 131_072,
  maxLength: 1_048_576,
  periodicFlush: 500,
} as const

export function createLog({ level, format = 'json', stream }: LogOptions): Log {
  const destination = (stream ?? openBuffered()) as pino.DestinationStream
  return pino(
    {
      level,
      base: null,
      serializers: { error: (error: Error) => ({ name: error.name, message: error.message, stack: error.stack }) },
    },
    format === 'text' ? { write: (line: string) => destination.write(readable(line)) } : destination,
  )
}

/** The library's last write at exit repeats for ever when nobody reads any more, so that is found out first. */
function openBuffered(): ReturnType<typeof pino.destination> {
  const destination = pino.destination(BUFFERED)
  const flushSync = destination.flushSync.bind(destination)
  destination.flushSync = () => {
    try {
      // Readers of JSON pass over a space.
      writeSync(BUFFERED.fd, ' ')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
    }
    flushSync()
  }
  return destination
}

/** `03:10:28 warn  vendor failed  vendor=alpha status=500`: for reading along. */
function readable(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as { level: number; time: number; msg: string }
  const shown = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${new Date(time).toISOString().slice(11, 19)} ${(pino.levels.labels[level] ?? '').padEnd(5)} ${msg}  ${shown.join(' ')}\n`
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
