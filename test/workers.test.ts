// Several processes on one port, as `TOLLGATE_WORKERS` runs them: they answer as one, a dead one is replaced, and all
// can be replaced under load.
import { existsSync, watch } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { newId, realWorld } from '../src/kernel/world.ts'
import { checkBooks, noHolds } from './chaos/books.ts'
import { type GatewayProcess, keyOf, makeDataDirectory, openStore, startProcess } from './chaos/gateway-process.ts'
import { countBy, startTraffic } from './chaos/traffic.ts'
import { freshDatabase } from './database.ts'
import { above, after, assert, atLeast, before, none, SECRET, test, until } from './gateway.ts'

const WORKERS = 2
/** Longer than a leaving process waits before it closes idle connections. */
const LONG_STREAM = 'a story [[slow=100]] [[chunks=60]]'

const LIMIT = { timeout: 300_000 }

let data: { path: string; remove(): Promise<void> }
let gateway: GatewayProcess
let key: string
/** Paid calls that were answered in full. */
let calls = 0

const env = () => ({
  TOLLGATE_DATA: data.path,
  TOLLGATE_WORKERS: String(WORKERS),
  TOLLGATE_SANDBOX_SPEED: '100',
  TOLLGATE_LOG_LEVEL: 'info',
})

before(async () => {
  data = await makeDataDirectory()
  gateway = await startProcess({ env: env() })
  key = await keyOf(gateway)
  const store = await openStore(data.path)
  await store.query({ text: `select ledger_grant($1, id, 1000000000000, 'load', 'load') from account` }, [
    newId(realWorld),
  ])
  await store.close()
})
after(async () => {
  gateway.kill('SIGTERM')
  await gateway.exited
  await data.remove()
})

type LogLine = { readonly msg: string; readonly pid: number; readonly inMs: number }

function logged(message: string): LogLine[] {
  return gateway.output
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes(message))
    .map((line) => JSON.parse(line) as LogLine)
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
const alive = () => [...new Set(logged('a worker listens').map(({ pid }) => pid))].filter(isAlive)

type Answer = { readonly status: number; readonly text: string; readonly connection: string | undefined }

/** Without an agent the connection is of this call alone, and goes to the next worker in turn. */
function call(content: string, { agent, stream = false }: { agent?: Agent; stream?: boolean } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(`${gateway.url}/v1/chat-completions`, {
      method: 'POST',
      agent: agent ?? false,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
    sent.once('error', reject)
    sent.once('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.once('error', reject)
      response.once('end', () => {
        if (response.statusCode === 200) calls++
        resolve({ status: response.statusCode!, text, connection: response.headers.connection })
      })
    })
    sent.end(JSON.stringify({ model: 'alpha-5.4', stream, messages: [{ role: 'user', content }] }))
  })
}

async function scrape(): Promise<string> {
  const answer = await fetch(`${gateway.url}/metrics`)
  assert.equal(answer.status, 200)
  return answer.text()
}

/** The sum of a metric's series. */
function figure(text: string, name: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

/** A call is counted a moment after its last byte has left. */
async function counted(expected: number): Promise<string> {
  let text = ''
  await until(async () => {
    text = await scrape()
    const found = figure(text, 'tollgate_calls_total')
    assert.ok(found <= expected, `${found} of ${expected} calls`)
    return found === expected
  })
  return text
}

test('every worker serves, and one scrape answers for all of them', LIMIT, async () => {
  const streams = Array.from({ length: 6 }, () => call(LONG_STREAM, { stream: true }))
  const store = await openStore(data.path)
  let processes = 0
  await until(async () => {
    const rows = await store.query<{ process_id: string }>({ text: 'select process_id from hold' })
    processes = new Set(rows.map((row) => row.process_id)).size
    return rows.length === streams.length
  })
  assert.equal(processes, WORKERS)
  await until(async () => figure(await scrape(), 'tollgate_streams_open'), streams.length)
  await Promise.all(streams)
  for (let i = 0; i < 10; i++) assert.equal((await call('a few words')).status, 200)
  const text = await counted(16)
  assert.equal(figure(text, 'tollgate_call_seconds_count'), 16)
  assert.match(text, /^tollgate_processes\{state="heard"\} 3$/m)
  assert.match(text, /^tollgate_processes\{state="silent"\} 0$/m)
  assert.equal(figure(text, 'tollgate_holds_pending'), 0)
  assert.ok(figure(text, 'process_resident_memory_bytes') > 150e6, 'the memory of three processes')
  await store.close()
})

test('a worker that does not answer is left out of a scrape, and its counts stay', LIMIT, async () => {
  const [pid] = alive()
  process.kill(pid!, 'SIGSTOP')
  try {
    // A connection that the stopped worker was given waits; the next one is the other's.
    const scrape = async () => {
      const leaving = new AbortController()
      const asked = Array.from({ length: WORKERS }, async () => {
        const init = { signal: leaving.signal, headers: { connection: 'close' } }
        return (await fetch(`${gateway.url}/metrics`, init)).text()
      })
      const text = await Promise.any(asked)
      leaving.abort()
      await Promise.allSettled(asked)
      return text
    }
    // Figures are up to a second old.
    const text = await until(scrape, /^tollgate_processes\{state="heard"\} 2$/m)
    assert.match(text, /^tollgate_processes\{state="silent"\} 1$/m)
    assert.equal(figure(text, 'tollgate_calls_total'), calls)
  } finally {
    process.kill(pid!, 'SIGCONT')
  }
})

test('a worker that is killed is replaced while the port goes on answering, and no count falls', LIMIT, async () => {
  const [victim] = alive()
  process.kill(victim!, 'SIGKILL')
  await until(() => isAlive(victim!), false)
  for (let i = 0; i < 20; i++) assert.equal((await call('a few words')).status, 200)
  await until(() => alive().length, WORKERS)
  assert.equal(logged('a worker died').length, 1)
  assert.match(await counted(calls), /^tollgate_processes\{state="heard"\} 3$/m)
})

test('SIGHUP replaces all workers under load without a failed request', LIMIT, async (t) => {
  const old = alive()
  const traffic = startTraffic({ urls: () => [gateway.url], key, kinds: ['chat', 'stream', 'data'], perSecond: 40 })
  // Each has one connection, which it uses again as soon as an answer has ended.
  let stopped = false
  let closes = 0
  const faithful = Array.from({ length: 6 }, async (_, index) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; !stopped; i++) {
      const stream = (i + index) % 3 === 0
      const { status, text, connection } = await call(stream ? LONG_STREAM : 'a few words', { agent, stream })
      assert.equal(status, 200, text)
      if (stream) assert.match(text, /\[DONE\]\n\n$/)
      if (connection === 'close') closes++
    }
    agent.destroy()
  })
  const failure = Promise.all(faithful).then(() => undefined)
  failure.catch(() => undefined)
  const startedMs = performance.now()
  try {
    await until(() => traffic.told.length, above(20))
    gateway.kill('SIGHUP')
    await until(() => logged('a worker listens').length, above(3))
    gateway.kill('SIGHUP')
    await Promise.race([failure, until(() => logged('all workers were replaced').length, 1)])
  } finally {
    stopped = true
    await traffic.stop()
    await failure
  }
  const tookMs = performance.now() - startedMs
  calls += traffic.told.length
  t.diagnostic(
    `replaced within ${Math.round(tookMs)} ms, ${closes} connections ended, ${JSON.stringify(countBy(traffic.told))}`,
  )
  none(traffic.told, ({ status }) => status !== 200)
  const young = alive()
  assert.equal(young.length, WORKERS)
  for (const pid of old) assert.ok(!young.includes(pid) && !isAlive(pid))
  await counted(calls)
  const store = await openStore(data.path)
  await noHolds(store, 60_000)
  assert.equal((await checkBooks(store, traffic.acknowledged())).settled, calls)
  await store.close()
})

test(
  'workers that cannot start are tried again more and more rarely, and the living are not replaced by them',
  LIMIT,
  async () => {
    const [victim, other] = alive()
    const before = logged('a worker died').length
    const deaths = () => logged('a worker died').slice(before)
    const assets = join(data.path, 'assets')
    await rename(assets, `${assets}.away`)
    // A worker makes its directory at start, and cannot where a file stands.
    await writeFile(assets, '')
    process.kill(victim!, 'SIGKILL')
    await until(() => deaths().length, atLeast(4))
    // The victim is replaced at once: it had worked. Those after it could not start.
    const waits = deaths()
      .map(({ inMs }) => inMs)
      .slice(1)
    assert.ok(waits[1]! >= waits[0]! * 2 && waits[2]! >= waits[1]! * 2, `waited for ${waits} ms`)
    gateway.kill('SIGHUP')
    await until(() => logged('replacing the workers failed').length, 1)
    assert.ok(isAlive(other!))
    assert.equal((await call('a few words')).status, 200)
    await rm(assets)
    await rename(`${assets}.away`, assets)
    await until(() => alive().length, WORKERS)
    assert.ok(alive().includes(other!))
  },
)

test('SIGTERM during a replacement ends every process, with exit code 0', LIMIT, async () => {
  const stream = call(LONG_STREAM, { stream: true })
  const before = alive()
  const listened = logged('a worker listens').length
  gateway.kill('SIGHUP')
  await until(() => logged('a worker listens').length, above(listened))
  assert.equal(await gateway.stop(), 0)
  assert.match((await stream).text, /\[DONE\]\n\n$/)
  // The last lines of the log, which wait in memory, may come after it.
  await until(() => gateway.output, /^ *Stopped\.$/m)
  for (const pid of before) assert.ok(!isAlive(pid))
  assert.deepEqual(alive(), [])
})

test(
  'a port that is taken is named before anything is made; one that is taken meanwhile ends the start, and no process is left',
  LIMIT,
  async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const made = join(env().TOLLGATE_DATA, 'taken')
    await assert.rejects(
      startProcess({ env: { ...env(), PORT: String(port), TOLLGATE_DATA: made } }),
      (error: Error) => {
        assert.match(error.message, /ended with 1:/)
        assert.match(error.message, new RegExp(`tollgate: Port ${port} of 127\\.0\\.0\\.1 is taken by another program`))
        assert.match(error.message, /Set PORT to another one, such as PORT=8081/)
        assert.doesNotMatch(error.message, /EADDRINUSE|database/i)
        return true
      },
    )
    assert.ok(!existsSync(made))
    await new Promise((resolve) => taken.close(resolve))
    const database = await freshDatabase()
    const late = createServer()
    await mkdir(made)
    const watching = watch(made, () => late.listening || late.listen(port, '127.0.0.1'))
    try {
      await assert.rejects(
        startProcess({
          env: {
            ...env(),
            PORT: String(port),
            DATABASE_URL: database.url,
            TOLLGATE_SECRET: SECRET,
            TOLLGATE_DATA: made,
          },
        }),
        (error: Error) => {
          assert.match(error.message, /EADDRINUSE|address already in use/)
          assert.match(error.message, /tollgate: A worker ended \(code 1\) before it listened/)
          return true
        },
      )
    } finally {
      watching.close()
      late.close()
      await database.drop()
    }
  },
)
