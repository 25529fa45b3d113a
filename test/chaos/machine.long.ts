// F40, F41, F44: a disk that is full, a memory that is small, a log that nobody reads.
import { execFileSync, spawn } from 'node:child_process'
import { mkdir, rm, statfs, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { newId, realWorld } from '../../src/kernel/world.ts'
import { count, each } from '../faults/raw-client.ts'
import { above, assert, runs, test, until } from '../kit.ts'
import { checkBooks, noHolds } from './books.ts'
import { keyOf, makeDataDirectory, openStore, startProcess } from './gateway-process.ts'
import { countBy, startTraffic } from './traffic.ts'

const KEY = /tg_live_\w{38}/

/** A file system of its own with this much room; undefined where that may not be made. */
async function smallDisk(path: string, megabytes: number): Promise<(() => void) | undefined> {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0755`, 'tmpfs', path], { stdio: 'pipe' })
  } catch {
    return undefined
  }
  return () => void execFileSync('umount', ['-l', path])
}

test('a full disk refuses paid work and loses nothing; with room again, work goes on', async (t) => {
  const data = await makeDataDirectory()
  const disk = join(data.path, 'disk')
  await mkdir(disk)
  const unmount = await smallDisk(disk, 256)
  if (!unmount) {
    await data.remove()
    t.diagnostic('not done: this user may not mount a file system')
    return
  }
  const store = join(disk, 'data')
  const gateway = await startProcess({ env: { TOLLGATE_DATA: store, TOLLGATE_SANDBOX_SPEED: '100' } })
  try {
    const key = await keyOf(gateway)
    // Calls whose settlement finds no room wait for it for minutes; these callers do not.
    const traffic = startTraffic({
      urls: () => [gateway.url],
      key,
      kinds: ['chat', 'stream', 'data'],
      atOnce: 10,
      patienceMs: 10_000,
    })
    await until(() => traffic.acknowledged().length, above(20))
    const { bavail, bsize } = await statfs(disk)
    await writeFile(join(disk, 'filler'), Buffer.alloc(bavail * bsize - 8_192)).catch(() => undefined)
    // Postgres has room in its present log segment and needs more after a while.
    await until(() => traffic.told.some(({ status }) => status === 503))
    await until(() => traffic.told.filter(({ status }) => status === 503).length, above(20))
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200)
    await rm(join(disk, 'filler'))
    const freedMs = performance.now()
    await until(() => traffic.told.some(({ status, sentMs }) => status === 200 && sentMs > freedMs))
    const backMs = performance.now() - freedMs
    await traffic.stop()
    for (const { status, text } of traffic.told) assert.ok([0, 200, 503].includes(status), `${status}: ${text}`)
    const database = await openStore(store)
    try {
      await noHolds(database, 90_000)
      const books = await checkBooks(database, traffic.acknowledged())
      t.diagnostic(
        `${JSON.stringify(countBy(traffic.told))}; served again ${Math.round(backMs)} ms after there was room; ${JSON.stringify(books)}`,
      )
    } finally {
      await database.close()
    }
    assert.equal(await gateway.stop(), 0)
  } finally {
    gateway.kill('SIGKILL')
    await gateway.exited
    unmount()
    await data.remove()
  }
})

test('a log that nobody reads holds no call up', async (t) => {
  const data = await makeDataDirectory()
  const main = resolve(import.meta.dirname, '..', '..', 'src', 'main.ts')
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(TOLLGATE_|NODE_TEST|NODE_OPTIONS)/.test(name)),
  )
  // Its log goes into a pipe that is never read.
  const child = spawn(process.execPath, [main, 'serve'], {
    env: {
      ...env,
      PORT: '0',
      TOLLGATE_DATA: data.path,
      TOLLGATE_LOG_LEVEL: 'debug',
      TOLLGATE_OVERLOAD_LAG_MS: '60000',
      TOLLGATE_SANDBOX_SPEED: '100',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<number | null>((done) => child.once('exit', done))
  let output = ''
  child.stdout!.on('data', (piece) => {
    output += piece
  })
  child.stderr!.pause()
  try {
    await until(() => output, KEY)
    const key = KEY.exec(output)![0]
    const url = /^ {2}API +(http\S+)/m.exec(output)![1]!
    const calls = runs(1_500, 10_000)
    await each(count(calls), 20, async () => {
      const answer = await fetch(`${url}/v1/siteanalytics/websites/visits?keys=example.com`, {
        headers: { authorization: `Bearer ${key}`, 'x-forged': 'a' },
      })
      assert.ok(answer.status === 200 || answer.status === 402, `${answer.status}`)
      await answer.text()
    })
    t.diagnostic(`${calls} calls with a log line each and nobody to read them`)
  } finally {
    child.kill('SIGTERM')
    child.stderr!.resume()
    assert.equal(await exited, 0)
    await data.remove()
  }
})

test('a gateway with little memory refuses before it runs out', async (t) => {
  const data = await makeDataDirectory()
  const gateway = await startProcess({
    env: { TOLLGATE_DATA: data.path, TOLLGATE_SANDBOX_SPEED: '100', TOLLGATE_OVERLOAD_LAG_MS: '250' },
    nodeArguments: ['--max-old-space-size=192'],
  })
  try {
    const key = await keyOf(gateway)
    // Enough for all: calls without credit would be no load.
    const store = await openStore(data.path)
    await store.query({ text: `select ledger_grant($1, id, 1000000000000000, 'load', 'load') from account` }, [
      newId(realWorld),
    ])
    await store.close()
    const traffic = startTraffic({
      urls: () => [gateway.url],
      key,
      kinds: ['data', 'chat', 'stream', 'leave'],
      atOnce: runs(150, 400),
    })
    const startedMs = performance.now()
    await until(() => performance.now() - startedMs, above(runs(6_000, 60_000)))
    await traffic.stop()
    for (const { status, text } of traffic.told) assert.ok([0, 200, 503].includes(status), `${status}: ${text}`)
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200)
    t.diagnostic(`${runs(150, 400)} at once for ${runs(6, 60)} s: ${JSON.stringify(countBy(traffic.told))}`)
    assert.equal(await gateway.stop(), 0)
  } finally {
    gateway.kill('SIGKILL')
    await gateway.exited
    await data.remove()
  }
})
