// Structured lines, one object each. Only fields that are named at the call are written: never bodies, keys or queries.
import { openBufferedOutput } from './buffered-output.ts'
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
