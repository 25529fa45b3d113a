// F28, F29, F47, F48: a gateway and its Postgres, killed in the middle of load. Whoever was told a charge has it in the
// books, once; the ledger add up; and the next start takes seconds.

import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../src/database/database.ts'
import { checkBooks, noHolds } from './chaos/books.ts'
import {
  type GatewayProcess,
  keyOf,
  makeDataDirectory,
  openStore,
  startProcess,
  storeOf,
} from './chaos/gateway-process.ts'
import { countBy, type Kind, startTraffic, type Told } from './chaos/traffic.ts'
import { after, assert, atLeast, before, closing, FULL, runs, test, until } from './kit.ts'

/** 5 s on a machine of its own. */
const RESTART_MS_MAX = runs(180_000, 5_000)

/**
 * Of those that ask the same, one has its answer from a vendor, and others wait for it or have it from what was kept.
 */
const TEXTS: readonly Kind[] = ['chat', 'stream', 'leave', 'kept', 'kept', 'kept']

let data: { path: string; remove(): Promise<void> }
let gateway: GatewayProcess
let key: string
const acknowledged: Told[] = []

const env = () => ({ TOLLGATE_DATA: data.path, TOLLGATE_SANDBOX_SPEED: '100', TOLLGATE_DRAIN_SECONDS: '30' })

before(async () => {
  data = await makeDataDirectory()
  gateway = await startProcess({ env: env() })
  key = await keyOf(gateway)
  // The holds of killed gateways lie for a while: there must be enough for all of them.
  const { items: accounts } = await operator('GET', '/accounts')
  const account = `/accounts/${accounts[0]!.id}`
  await operator('POST', `${account}/credits`, { amount: '1000000', note: 'for the crash test' })
  const { items: keys } = await operator('GET', `${account}/keys`)
  await operator('PATCH', `/keys/${keys[0]!.id}`, { responseCache: true })
})
after(async () => {
  gateway.kill('SIGTERM')
  await gateway.exited
  await data.remove()
})

async function operator(method: string, path: string, body?: object): Promise<{ items: Array<{ id: string }> }> {
  const token = (await readFile(join(data.path, 'operator-token'), 'utf8')).trim()
  const answer = await fetch(`${gateway.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  assert.equal(answer.status, 200, await answer.clone().text())
  return ((await answer.json()) as { data: { items: Array<{ id: string }> } }).data
}

async function withStore<T>(run: (database: Database) => Promise<T>): Promise<T> {
  await using database = closing(await openStore(data.path))
  return await run(database)
}

test('a gateway that is killed in the middle of load loses nothing that it acknowledged', async (t) => {
  for (let round = 0; round < runs(2, 20); round++) {
    const traffic = startTraffic({
      urls: () => [gateway.url],
      key,
      kinds: [...TEXTS, 'data', 'audio', 'speech', 'rerank', 'moderation', 'embedding'],
      atOnce: runs(20, 100),
    })
    const enough = randomInt(40, 200)
    await until(() => traffic.acknowledged().length, atLeast(enough))
    gateway.kill('SIGKILL')
    await gateway.exited
    await traffic.stop()
    acknowledged.push(...traffic.acknowledged())
    assert.ok(traffic.acknowledged().some(({ kind }) => kind === 'kept'))
    for (const { status, text } of traffic.told) assert.ok([0, 200, 503].includes(status), `${status}: ${text}`)
    gateway = await startProcess({ env: env() })
    assert.ok(gateway.readyMs < RESTART_MS_MAX, `ready after ${gateway.readyMs} ms`)
    assert.match(gateway.output, /Took over the Postgres/)
    const books = await withStore((database) => checkBooks(database, acknowledged))
    t.diagnostic(`round ${round}: ready again after ${Math.round(gateway.readyMs)} ms, ${JSON.stringify(books)}`)
  }
})

test('a Postgres that is killed in the middle of load is started again, and nothing acknowledged is lost', async (t) => {
  for (let round = 0; round < runs(1, 10); round++) {
    const traffic = startTraffic({ urls: () => [gateway.url], key, kinds: ['chat', 'stream', 'data'], atOnce: 20 })
    await until(() => traffic.acknowledged().length, atLeast(40))
    const { pid } = await storeOf(data.path)
    const killedMs = performance.now()
    process.kill(pid, 'SIGKILL')
    await until(() => traffic.told.some(({ sentMs, status }) => sentMs > killedMs && status === 200))
    const backMs = performance.now() - killedMs
    await traffic.stop()
    assert.ok(backMs < RESTART_MS_MAX, `served again after ${backMs} ms`)
    for (const { status, text } of traffic.told) assert.ok(status === 200 || status === 503, `${status}: ${text}`)
    acknowledged.push(...traffic.acknowledged())
    const books = await withStore((database) => checkBooks(database, acknowledged))
    t.diagnostic(
      `round ${round}: served again after ${Math.round(backMs)} ms, ${JSON.stringify(countBy(traffic.told))}, ${JSON.stringify(books)}`,
    )
  }
})

test('a second gateway on the same directory is refused, naming the first one’s pid', async () => {
  const startedMs = performance.now()
  await assert.rejects(startProcess({ env: env() }), (error: Error) => {
    assert.match(error.message, new RegExp(`\\b${gateway.pid}\\b`))
    assert.match(error.message, /ended with [1-9]/)
    return true
  })
  if (FULL) assert.ok(performance.now() - startedMs < 2_000)
  assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200)
})

test('the holds of the dead are given back while others go on', async (t) => {
  const waitedMs = await withStore((database) => noHolds(database, 120_000))
  t.diagnostic(`no hold was left after another ${Math.round(waitedMs)} ms`)
})

test('a gateway that is asked to stop during 200 streams finishes them, settles all and exits with 0', async (t) => {
  const streams = Array.from({ length: 200 }, async () => {
    const answer = await fetch(`${gateway.url}/v1/chat-completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'alpha-5.4',
        max_tokens: 200,
        stream: true,
        messages: [{ role: 'user', content: 'go on [[slow=10]]' }],
      }),
    })
    assert.equal(answer.status, 200, await answer.clone().text())
    return answer
  })
  const answers = await Promise.all(streams)
  const stopping = gateway.stop()
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  for (const text of texts) assert.match(text, /\[DONE\]\n\n$/)
  assert.equal(await stopping, 0)
  gateway = await startProcess({ env: env() })
  t.diagnostic(`ready after an orderly stop in ${Math.round(gateway.readyMs)} ms`)
  assert.equal((await withStore((database) => checkBooks(database, acknowledged))).holds, 0)
})
