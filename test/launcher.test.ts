// The first command a newcomer types. When its runtime cannot start, it says what to do.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { assert, before, temporary, test } from './kit.ts'

/** It looks twice a second whether its parent is there. */
const ENDS_WITHIN_MS = 60_000
const ROOT = resolve(import.meta.dirname, '..')
const OLD = `data:text/javascript,${encodeURIComponent(
  "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })",
)}`

let runtime: string
/** A project with a runtime of our making, in the place where the launcher looks. */
const folder = temporary('tollgate-launcher-')
before(async () => {
  const name = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node'
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const home = join(folder, 'node_modules', `${name}-${platform}-${process.arch}`)
  runtime = join(home, 'bin', 'node')
  for (const path of [join(folder, 'bin'), join(folder, 'src'), join(home, 'bin')])
    await mkdir(path, { recursive: true })
  await copyFile(join(ROOT, 'bin', 'tollgate.js'), join(folder, 'bin', 'tollgate.js'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(home, 'package.json'), '{}')
  await writeFile(join(folder, 'src', 'main.ts'), "console.log('ran with', process.argv[2] as string)")
})

async function makeRuntime(text: string, mode = 0o755): Promise<void> {
  await rm(runtime, { force: true })
  await writeFile(runtime, text)
  await chmod(runtime, mode)
}

function launch(...nodeArguments: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [...nodeArguments, join(folder, 'bin', 'tollgate.js'), 'version'])
  let out = ''
  let err = ''
  child.stdout.on('data', (piece: Buffer) => {
    out += piece
  })
  child.stderr.on('data', (piece: Buffer) => {
    err += piece
  })
  return new Promise((done) => child.once('close', (code) => done({ code, out, err })))
}

const BROKEN: ReadonlyArray<[what: string, text: string, mode: number, reason: RegExp]> = [
  ['lacks a library', '#!/bin/sh\necho "libatomic.so.1: cannot open" >&2\nexit 127\n', 0o755, /it ended with 127/],
  ['has no loader here', '#!/no/such/loader\n', 0o755, /its loader is missing/],
  ['may not be executed', '#!/bin/sh\n', 0o644, /EACCES/],
]

for (const [what, text, mode, reason] of BROKEN)
  test(`a pinned Node that ${what} is named, with what to install or to use instead`, async () => {
    await makeRuntime(text, mode)
    const { code, out, err } = await launch('--import', OLD)
    assert.deepEqual([code, out], [1, ''])
    assert.match(err, reason)
    assert.match(err, /apt-get install libatomic1/)
    assert.match(err, /node .*main\.ts version$/m)
  })

test('where the pinned Node cannot start, a new enough Node of one’s own does the work', async () => {
  await makeRuntime('#!/bin/sh\nexit 127\n')
  assert.deepEqual(await launch(), { code: 0, out: 'ran with version\n', err: '' })
})

test('the exit code and the signal of the runtime are passed on', async () => {
  await makeRuntime('#!/bin/sh\nexit 3\n')
  assert.equal((await launch()).code, 3)
  await makeRuntime('#!/bin/sh\nkill -KILL $$\n')
  assert.equal((await launch()).code, 128 + 9)
})

test('run by the pinned runtime, as npm start does it, the launcher is the program: no second process stays beside it', async () => {
  await rm(runtime, { force: true })
  await symlink(process.execPath, runtime)
  await writeFile(join(folder, 'src', 'main.ts'), 'console.log(process.pid, process.argv.length)')
  const child = spawn(runtime, [join(folder, 'bin', 'tollgate.js'), 'version'])
  let out = ''
  child.stdout.on('data', (piece: Buffer) => {
    out += piece
  })
  const code = await new Promise((done) => child.once('close', done))
  assert.deepEqual([code, out], [0, `${child.pid} 3\n`])
})

// Only Linux tells that a parent has gone.
for (const [by, event, script] of [
  ['npm start', 'start', 'exec node bin/tollgate.js serve'],
  ['npx', 'npx', "'tollgate'"],
] as const)
  test(`${by} ended by its pid alone ends the gateway`, {
    skip: process.platform !== 'linux' && 'needs /proc',
  }, async (context) => {
    await rm(runtime, { force: true })
    await symlink(process.execPath, runtime)
    await writeFile(join(folder, 'src', 'main.ts'), 'console.log(process.pid); setInterval(() => {}, 1000)')
    const program = `'${runtime}' '${join(folder, 'bin', 'tollgate.js')}' serve; true`
    // In the place of npm: it starts a shell, which starts the program and hears no signal.
    const npm = `require('node:child_process').spawn('sh', ['-c', ${JSON.stringify(program)}], { stdio: 'inherit' }); setInterval(() => {}, 1000)`
    const env = { ...process.env, npm_lifecycle_event: event, npm_lifecycle_script: script, TOLLGATE_DATA: folder }
    const child = spawn(process.execPath, ['-e', npm], { env, stdio: ['ignore', 'pipe', 'ignore'] })
    const pid = await new Promise<number>((done) => child.stdout.once('data', (line: Buffer) => done(Number(line))))
    context.after(() => {
      if (child.stdout.readableEnded) return
      process.kill(pid, 'SIGKILL')
    })
    child.kill('SIGTERM')
    // Its output is open for as long as it runs.
    await once(child.stdout, 'close', { signal: AbortSignal.timeout(ENDS_WITHIN_MS) })
    assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })
