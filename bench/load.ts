// The two tools in C, compiled when they are needed, and one run of the load generator.
import { execFile, execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface LoadTools {
  readonly mock: string
  readonly load: string
  /** A file with this content, for the load generator to read. */
  file(name: string, content: string): string
}

/** Undefined when there is no compiler. */
export function compileTools(directory: string): LoadTools | undefined {
  const compiler = ['cc', 'gcc', 'clang'].find((name) => runs(name, ['--version']))
  if (!compiler) return undefined
  const compiled = (name: string) => {
    const program = join(directory, name)
    execFileSync(compiler, ['-O2', '-w', '-o', program, join(import.meta.dirname, `${name}.c`)])
    return program
  }
  return {
    mock: compiled('mock'),
    load: compiled('load'),
    file(name, content) {
      const path = join(directory, name)
      writeFileSync(path, content)
      return path
    },
  }
}

export function runs(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export interface Shape {
  readonly connections: number
  readonly seconds: number
  readonly warmSeconds?: number
  /** Calls a second in all, latency from the scheduled moment; absent: as many as go. */
  readonly rate?: number
  /** This many calls in all, each connection's first one spread over `rampSeconds`. */
  readonly total?: number
  readonly rampSeconds?: number
  /** Reads the time stamps in the chunks of a stream, from when all have begun until the first ends. */
  readonly chunkDelays?: boolean
}

export interface Aim {
  readonly port: number
  readonly path: string
  readonly method?: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Bearer keys that take turns. */
  readonly keys?: readonly string[]
}

export interface LoadResult {
  readonly rps: number
  readonly n: number
  readonly started: number
  readonly err: number
  readonly non200: number
  readonly p50: number
  readonly p99: number
  readonly ttfb50: number
  readonly ttfb99: number
  readonly cd50: number
  readonly cd99: number
  /** p99 of each quarter of the time. */
  readonly cdq: readonly number[]
}

export async function runLoad(tools: LoadTools, aim: Aim, shape: Shape): Promise<LoadResult> {
  const headers = Object.entries(aim.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const args = [
    String(aim.port),
    tools.file(`body-${aim.port}`, aim.body),
    '-h',
    tools.file(`headers-${aim.port}`, headers.join('')),
    '-p',
    aim.path,
    '-m',
    aim.method ?? 'POST',
    '-c',
    String(shape.connections),
    '-d',
    String(shape.seconds),
    '-w',
    String(shape.warmSeconds ?? 0.5),
    ...(aim.keys ? ['-k', tools.file('keys', aim.keys.join('\n'))] : []),
    ...(shape.rate === undefined ? [] : ['-r', String(shape.rate)]),
    ...(shape.total === undefined ? [] : ['-n', String(shape.total)]),
    ...(shape.rampSeconds === undefined ? [] : ['-R', String(shape.rampSeconds)]),
    ...(shape.chunkDelays ? ['-T'] : []),
  ]
  const { stdout } = await promisify(execFile)(tools.load, args)
  return JSON.parse(stdout) as LoadResult
}
