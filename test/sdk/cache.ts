// Programs of others that the tests run, kept outside of the checkout: made once, used by every run after it.
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { homedir, platform } from 'node:os'
import { join } from 'node:path'

const INSTALL_MS_MAX = 240_000

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs a program to its end, or to the end of our patience. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; timeoutMs?: number } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      env: options.env ?? process.env,
      cwd: options.cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? INSTALL_MS_MAX,
      killSignal: 'SIGKILL',
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (piece) => {
      out += piece
    })
    child.stderr.on('data', (piece) => {
      err += piece
    })
    child.once('error', (error) => resolve({ code: 127, out, err: error.message }))
    child.once('close', (code) =>
      resolve({ code: code ?? 1, out, err: code === null ? `${err}\nit took too long` : err }),
    )
  })
}

function cacheDirectory(): string {
  const base =
    platform() === 'win32'
      ? (process.env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local'))
      : platform() === 'darwin'
        ? join(homedir(), 'Library', 'Caches')
        : (process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'))
  return join(base, 'tollgate-tests')
}

/** The directory of that name, or why there is none. What is there is whole: it gets its name when it is. */
export async function cached(
  name: string,
  make: (directory: string) => Promise<Ran>,
): Promise<{ directory: string } | { missing: string }> {
  const directory = join(cacheDirectory(), name)
  if (await stat(directory).catch(() => undefined)) return { directory }
  await mkdir(cacheDirectory(), { recursive: true })
  const making = await mkdtemp(join(cacheDirectory(), 'making-'))
  const made = await make(making)
  if (made.code !== 0) {
    await rm(making, { recursive: true, force: true })
    const lines = (made.err || made.out).trim().split('\n')
    const why = lines.find((line) => /\berror\b/i.test(line)) ?? lines.at(-1) ?? ''
    return { missing: `${name} cannot be installed: ${why.slice(0, 300)}` }
  }
  // Another run may have been quicker.
  await rename(making, directory).catch(() => rm(making, { recursive: true, force: true }))
  return { directory }
}
