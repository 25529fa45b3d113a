// Programs of others that the tests run, kept outside of the checkout: made once, used by every run after it.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { arch, homedir, platform } from 'node:os'
import { basename, join } from 'node:path'
import type { TestContext } from 'node:test'

const INSTALL_MS_MAX = 240_000

export type Ran = { readonly code: number; readonly out: string; readonly err: string }

/** Runs a program to its end, or to the end of our patience. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; timeoutMs?: number } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      // Whoever is given nothing of this process still finds what others of this run have compiled.
      env: { ...(options.env ?? process.env), NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
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
async function cached(
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

const NPM_MS_MAX = 120_000
const NPM =
  'install --prefix . --no-save --no-package-lock --no-audit --no-fund --ignore-scripts --fetch-retries=0'.split(' ')

/** A directory whose node_modules hold these packages, each named with its version; nothing of them is run. */
export function npmPackages(packages: readonly string[]): Promise<{ directory: string } | { missing: string }> {
  return cached(`npm-${platform()}-${arch()}-${packages.join('-').replaceAll(/[^\w.-]+/g, '_')}`, (directory) =>
    runProgram('npm', [...NPM, ...packages], { cwd: directory, timeoutMs: NPM_MS_MAX }),
  )
}

// Exact versions of everything and wheels only: nothing is looked for, built or run while it is installed.
const PIP =
  '--quiet --disable-pip-version-check --no-input --no-deps --no-compile --only-binary=:all: --retries=1'.split(' ')
const PYTHON_MINOR_MIN = 11

/** The interpreter of an environment that holds the packages in a list, or why there is none. */
export async function pythonWith(
  list: string,
  minorMin = PYTHON_MINOR_MIN,
): Promise<{ python: string } | { missing: string }> {
  const found = await runProgram('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])
  if (found.code !== 0) return { missing: 'there is no python3' }
  const version = found.out.trim()
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < 3 || minor < minorMin) return { missing: `Python ${version} is too old for these packages` }
  const digest = createHash('sha256')
    .update(await readFile(list))
    .digest('hex')
    .slice(0, 12)
  const made = await cached(`python-${version}-${basename(list, '.txt')}-${digest}`, async (directory) => {
    const venv = await runProgram('python3', ['-m', 'venv', '--without-pip', directory])
    if (venv.code !== 0) return venv
    return runProgram('python3', ['-m', 'pip', '--python', directory, 'install', ...PIP, '-r', list])
  })
  return 'missing' in made ? made : { python: join(made.directory, 'bin', 'python3') }
}

const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies'

/**
 * A directory with the jars of a Java library and of what it needs. Repositories that its description names besides the
 * central one are not asked.
 */
export async function mavenJars(
  artifact: string,
  otherRepositories: readonly string[] = [],
): Promise<{ directory: string } | { missing: string }> {
  for (const program of ['java', 'mvn'])
    if ((await runProgram(program, ['-version'])).code !== 0) return { missing: `there is no ${program}` }
  const [group, name, version] = artifact.split(':')
  const off = '<enabled>false</enabled>'
  const unused = otherRepositories.map(
    (id) =>
      `<repository><id>${id}</id><url>file:///nowhere</url><releases>${off}</releases><snapshots>${off}</snapshots></repository>`,
  )
  const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
<repositories>${unused.join('')}</repositories><dependencies><dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency></dependencies></project>`
  return cached(`maven-${artifact.replaceAll(/[^\w.-]+/g, '_')}`, async (directory) => {
    await writeFile(join(directory, 'pom.xml'), pom)
    const args = ['-q', '-B', MAVEN_COPY, '-DoutputDirectory=jars', '-DincludeScope=runtime']
    return runProgram('mvn', args, { cwd: directory, timeoutMs: 2 * INSTALL_MS_MAX })
  })
}

/** Where the package is installed, without running anything of it; skips the test where it cannot be. */
export async function installed(t: TestContext, name: string, program: string): Promise<string | undefined> {
  const made = await npmPackages([name])
  const path = 'directory' in made ? join(made.directory, 'node_modules', program) : ''
  const missing =
    'missing' in made
      ? made.missing
      : await access(path).then(
          () => undefined,
          () => `${name} has no program for this machine`,
        )
  if (missing === undefined) return path
  console.log(`${name} was not tested: ${missing}`)
  t.skip(missing)
  return undefined
}

/**
 * A program for Go that uses one module, built from the sources that `place` puts into a directory; or why there is
 * none.
 */
export async function goProgram(
  module: string,
  place: (directory: string) => Promise<void>,
): Promise<{ program: string } | { missing: string }> {
  if ((await runProgram('go', ['version'])).code !== 0) return { missing: 'there is no go' }
  const made = await cached(`go-${platform()}-${arch()}-${module.replaceAll(/[^\w.-]+/g, '_')}`, async (directory) => {
    await place(directory)
    for (const args of [
      ['mod', 'init', 'program'],
      ['get', module],
      ['build', '-mod=mod', '-o', 'program', '.'],
    ]) {
      const ran = await runProgram('go', args, { cwd: directory })
      if (ran.code !== 0) return ran
    }
    return { code: 0, out: '', err: '' }
  })
  return 'missing' in made ? made : { program: join(made.directory, 'program') }
}

/** A program that is itself a Go module: `module@version`; or why there is none. */
export async function goTool(module: string): Promise<{ program: string } | { missing: string }> {
  if ((await runProgram('go', ['version'])).code !== 0) return { missing: 'there is no go' }
  const made = await cached(`go-${platform()}-${arch()}-${module.replaceAll(/[^\w.-]+/g, '_')}`, (directory) =>
    runProgram('go', ['install', module], { env: { ...process.env, GOBIN: directory } }),
  )
  const [path = ''] = module.split('@')
  return 'missing' in made ? made : { program: join(made.directory, basename(path)) }
}

const MAVEN_UNPACK = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack'

/** The unpacked archive of a Java program: `group:name:version:zip`. */
export async function mavenArchive(artifact: string): Promise<{ directory: string } | { missing: string }> {
  for (const program of ['java', 'mvn'])
    if ((await runProgram(program, ['-version'])).code !== 0) return { missing: `there is no ${program}` }
  return cached(`maven-${artifact.replaceAll(/[^\w.-]+/g, '_')}`, (directory) => {
    const args = ['-q', '-B', MAVEN_UNPACK, `-Dartifact=${artifact}`, `-DoutputDirectory=${directory}`]
    return runProgram('mvn', args, { cwd: directory, timeoutMs: 2 * INSTALL_MS_MAX })
  })
}

const DEBS = `apt-get install --print-uris -qq -y --no-install-recommends "$@" | sed "s/^'[^']*' \\([^_]*\\)_.*/\\1/" > names
  test -s names && xargs apt-get -q -o APT::Sandbox::User=root download < names && for one in *.deb; do dpkg -x "$one" . || exit 1; done`

/** Programs of Debian with what they need and this machine lacks, unpacked and not installed. */
export async function debianPackages(
  names: readonly string[],
): Promise<{ directory: string; env: NodeJS.ProcessEnv } | { missing: string }> {
  if ((await runProgram('dpkg', ['--version'])).code !== 0) return { missing: 'this is no Debian' }
  const made = await cached(`debian-${arch()}-${names.join('-')}`, (directory) =>
    runProgram('sh', ['-ec', DEBS, 'sh', ...names], { cwd: directory }),
  )
  if ('missing' in made) return made
  const { directory } = made
  const found = await runProgram('sh', ['-c', 'ls -d lib/*-linux-gnu usr/lib/*-linux-gnu'], { cwd: directory })
  const libraries = found.out.trim().split('\n')
  const LD_LIBRARY_PATH = libraries.map((path) => join(directory, path)).join(':')
  return { directory, env: { PATH: process.env.PATH, LD_LIBRARY_PATH } }
}
