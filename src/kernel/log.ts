// Structured lines, one object each. Only fields that are named at the call are written: never bodies, keys or queries.
import { type Level, pino } from 'pino'
import { openBufferedOutput } from './buffered-output.ts'

const STDERR = 2

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

interface LogOptions {
  readonly level: Level | 'silent'
  readonly format?: 'json' | 'text' | undefined
  readonly stream?: NodeJS.WritableStream
}

export function createLog({ level, format = 'json', stream }: LogOptions): Log {
  const destination = (stream ?? openBufferedOutput(STDERR)) as pino.DestinationStream
  return pino(
    {
      level,
      base: null,
      serializers: { error: (error: Error) => ({ name: error.name, message: error.message, stack: error.stack }) },
    },
    format === 'text' ? { write: (line: string) => destination.write(readable(line)) } : destination,
  )
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
