// Structured lines, one object each. Only fields that are named at the call are written: never bodies, keys or queries.
import { type Level, pino } from 'pino'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export function createLog(options: { level: Level | 'silent'; stream?: NodeJS.WritableStream }): Log {
  const destination = options.stream ?? pino.destination({ fd: 2, sync: false, minLength: 4096, maxLength: 1_048_576, periodicFlush: 500 })
  return pino(
    {
      level: options.level,
      base: null,
      serializers: { error: (error: Error) => ({ name: error.name, message: error.message, stack: error.stack }) },
    },
    destination as pino.DestinationStream,
  )
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
