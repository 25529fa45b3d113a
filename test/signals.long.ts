// F57: whoever starts a gateway can stop it: with each signal, to one process or to the group, once or twice, at any
// moment.
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { checkBooks, noHolds } from './chaos/books.ts'
import { makeDataDirectory, openStore, startProcess } from './chaos/gateway-process.ts'
import { after, assert, runs, test, until } from './kit.ts'

const ROOT = resolve(import.meta.dirname, '..')
const LAUNCHER = join(ROOT, 'bin', 'tollgate.js')
const NPM = ['npm', 'start']
const DIRECT = [process.execPath, LAUNCHER, 'serve']
const LINUX = { skip: existsSync('/proc/self/cwd') ? false : 'only Linux shows the processes of a directory' }

/** Who is told: what was started, and it alone or with all of its group, as a terminal does it. */
const TOLD = [
  { what: 'npm', command: NPM, sign: 1 },
  { what: 'the group of npm', command: NPM, sign: -1 },
  { what: 'the launcher', command: DIRECT, sign: 1 },
  { what: 'the group of the launcher', command: DIRECT, sign: -1 },
]

const made: Array<Awaited<ReturnType<typeof makeDataDirectory>>> = []
after(async () => {
  for (const { path, remove } of made) {
    for (const { pid } of left(path)) process.kill(pid, 'SIGKILL')
    await remove()
  }
})

async function makeData(): Promise<string> {
  const data = await makeDataDirectory()
  made.push(data)
  return data.path
}

/** Started as people do, in a group of its own, as a shell does it. */
function begin(command: readonly string[], data: string, env: Record<string, string> = {}) {
  const child = spawn(command[0]!, command.slice(1), {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', TOLLGATE_DATA: data, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => {
      output += piece
    })
  return {
    pid: child.pid!,
    output: () => output,
    isReady: () => output.includes('Tollgate is ready'),
    /** Whoever has gone meanwhile needs no second signal. */
    kill(signal: NodeJS.Signals, sign: number) {
      try {
        process.kill(sign * child.pid!, signal)
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
      }
    },
  }
}

/** The processes of a data directory: they were started with its name, or stand in it, as Postgres does. */
function left(data: string): Array<{ pid: number; command: string }> {
  const read = (look: () => string) => {
    try {
      return look()
    } catch {
      return '' // It has ended since.
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter(
      (pid) =>
        read(() => readFileSync(`/proc/${pid}/environ`, 'utf8')).includes(`TOLLGATE_DATA=${data}\0`) ||
        read(() => readlinkSync(`/proc/${pid}/cwd`)).startsWith(data),
    )
    .map((pid) => ({
      pid: Number(pid),
      command: read(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' '),
    }))
}

/** Every process of it ends by itself; a bound far above what an orderly end takes. */
async function nothingIsLeft(data: string, tried: string): Promise<void> {
  const deadlineMs = performance.now() + 45_000
  await until(() => {
    const found = left(data)
    assert.ok(found.length === 0 || performance.now() < deadlineMs, `${tried}: left over ${JSON.stringify(found)}`)
    return found.length === 0
  })
}

/** What it said last may be read after it has ended. */
const hasStopped = ({ output }: { output(): string }) => until(() => output(), /^Stopped\.$/m)

/** The next start finds all in order. */
async function isIntact(data: string): Promise<void> {
  const gateway = await startProcess({ env: { TOLLGATE_DATA: data } })
  const store = await openStore(data)
  await noHolds(store, 60_000)
  await checkBooks(store, [])
  await store.close()
  assert.equal(await gateway.stop(), 0)
}

let readyMs = 0
async function measure(): Promise<number> {
  if (readyMs > 0) return readyMs
  const data = await makeData()
  const beganMs = performance.now()
  const started = begin(NPM, data)
  await until(started.isReady)
  readyMs = performance.now() - beganMs
  started.kill('SIGTERM', -1)
  await nothingIsLeft(data, 'measured')
  return readyMs
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  test(
    `${signal} ends the gateway and its Postgres, whoever gets it, once or twice, at any moment of the start`,
    LINUX,
    async () => {
      const withinMs = Math.ceil((await measure()) * 1.2)
      let data = await makeData()
      for (let round = 0; round < runs(1, 13); round++) {
        if (round % 10 === 9) data = await makeData() // So that the making of a database is met as well.
        for (const { what, command, sign } of TOLD) {
          const afterMs = randomInt(withinMs)
          const againMs = randomInt(2) === 1 ? randomInt(300) : undefined
          const started = begin(command, data)
          await wait(afterMs) // The moment is the subject here: any of them will do.
          started.kill(signal, sign)
          if (againMs !== undefined) {
            await wait(againMs)
            started.kill(signal, sign)
          }
          const tried = `to ${what} after ${afterMs} ms, ${againMs === undefined ? 'once' : `again after ${againMs} ms`}`
          await nothingIsLeft(data, `${tried}, having said ${JSON.stringify(started.output().slice(-500))}`)
        }
      }
      await isIntact(data)
    },
  )

test('a backup that is interrupted ends its Postgres and leaves no half of a file', LINUX, async () => {
  const data = await makeData()
  await isIntact(data)
  const file = join(data, 'backup')
  for (let round = 0; round < runs(3, 20); round++) {
    const started = begin([process.execPath, LAUNCHER, 'backup', file], data)
    await wait(randomInt(Math.ceil(readyMs || 3_000)))
    started.kill('SIGINT', -1)
    await nothingIsLeft(data, `a backup, having said ${JSON.stringify(started.output())}`)
    assert.equal(existsSync(`${file}.part`), false)
  }
  await isIntact(data)
})

test('npm or a launcher that is killed outright takes the gateway and its Postgres along', LINUX, async () => {
  const data = await makeData()
  for (const command of [NPM, DIRECT]) {
    const started = begin(command, data)
    await until(started.isReady)
    started.kill('SIGKILL', 1)
    await nothingIsLeft(data, command.join(' '))
    await hasStopped(started)
  }
  await isIntact(data)
})

test('several workers end with their gateway, at Ctrl-C and when npm is killed', LINUX, async () => {
  const data = await makeData()
  for (const [signal, sign] of [
    ['SIGINT', -1],
    ['SIGTERM', 1],
    ['SIGKILL', 1],
  ] as const) {
    const started = begin(NPM, data, { TOLLGATE_WORKERS: '2' })
    await until(started.isReady)
    started.kill(signal, sign)
    await nothingIsLeft(data, signal)
    await hasStopped(started)
  }
})

test('a gateway that was started in the background by a script of npm outlives npm', LINUX, async () => {
  const data = await makeData()
  const script = `${process.execPath} ${LAUNCHER} serve & echo $!; wait`
  const started = begin(['sh', '-c', script], data, { npm_lifecycle_script: script })
  await until(started.isReady)
  started.kill('SIGKILL', 1)
  const launcher = Number.parseInt(started.output(), 10)
  const url = /API +(\S+)/.exec(started.output())![1]
  await wait(1_500) // Three times as long as the launcher takes to notice that its parent has gone.
  assert.equal((await fetch(`${url}/readyz`)).status, 200)
  process.kill(launcher, 'SIGTERM')
  await nothingIsLeft(data, 'in the background')
})
