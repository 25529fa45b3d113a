// An operator suspends, closes and reopens accounts: what their callers are told, what becomes of running calls and of
// the money, in two processes.
import OpenAI from 'openai'
import type { NewKey } from '../src/admission/views.ts'
import type { AuditView } from '../src/database/audit.ts'
import type { AccountView, LedgerView } from '../src/ledger/views.ts'
import { sendBatch } from './batches.ts'
import { freshDatabase } from './database.ts'
import { startGateway, WITH_EXTENSIONS } from './gateway.ts'
import { above, after, assert, listen, none, not, pluck, started, test, until } from './kit.ts'
import { connect } from './mcp/client.ts'

/** Calls that the vendor was sent and has not answered. */
const waiting: Array<() => void> = []

const ANSWER = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'slow',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Done' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
}

const vendor = started(() =>
  listen((request, response) => {
    request.resume()
    waiting.push(() => response.setHeader('content-type', 'application/json').end(JSON.stringify(ANSWER)))
  }),
)
const database = started(freshDatabase)
const g = started(() =>
  startGateway({
    database,
    catalog(document) {
      document.vendors.slow = { baseUrl: vendor.url }
      document.models.slow = structuredClone(document.models['alpha-5.4'])
      document.models.slow.routes = [{ ...document.models.slow.routes[0], vendor: 'slow' }]
    },
  }),
)
const other = started(() => startGateway({ database }))
after(async () => {
  for (const answer of waiting) answer()
  await g.settled()
  assert.deepEqual(await g.problems(true), [], 'the ledger adds up')
})

/** More than a batch has under way at once. */
const LINES = 30
const CHAT = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 }
const SLOW = { ...CHAT, model: 'slow' }
const status = (answer: Promise<Response>) => answer.then(({ status: code }) => code)
const change = <T = AccountView>(id: string, what: string, body?: object) =>
  g.operator<T>('POST', `/accounts/${id}/${what}`, body)
const movements = async (id: string) => (await g.ask<{ items: LedgerView[] }>('GET', `/accounts/${id}/ledger`)).items

test('calls of a suspended account get 403 with the reason in the words of each format, in every process; reopened, they are served, and no credit moved', async () => {
  await g.sql(`insert into setting (name, value) values ('billing', '{"contact":"billing@gate.example"}')`)
  const { id, key } = await g.account()
  for (const one of [g, other]) assert.equal(await status(one.call('/v1/chat/completions', key, CHAT)), 200)
  const before = await g.ask<AccountView>('GET', `/accounts/${id}`)
  assert.deepEqual([before.status, before.statusReason, before.statusAt], ['open', null, null])
  const { status: code, data } = await change(id, 'suspend', { reason: 'Invoice 17 is overdue.' })
  assert.deepEqual(
    [code, data.status, data.statusReason, data.balance],
    [200, 'suspended', 'Invoice 17 is overdue.', before.balance],
  )

  const message =
    'This account is suspended: Invoice 17 is overdue. Its calls are rejected until it is reopened. Ask billing@gate.example.'
  const answers: [path: string, body: object | undefined, errorOf: (body: any) => unknown][] = [
    ['/v1/chat/completions', CHAT, ({ code: c, message: m }) => [c, m]],
    ['/v1/responses', { model: 'alpha-5.4', input: 'Hello' }, ({ error }) => [20001, error.message]],
    ['/v1/responses', { model: 'alpha-5.4', input: 'Hello', background: true }, ({ code: c, message: m }) => [c, m]],
    [
      '/beta/v1/messages',
      { model: 'beta-sonnet-4.6', max_tokens: 20, messages: CHAT.messages },
      ({ type, error }) => [type === 'error' && error.type === 'permission_error' && 20001, error.message],
    ],
    [
      '/gemini/v1beta/models/alpha-5.4:generateContent',
      { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] },
      ({ error }) => [error.code === 403 && error.status === 'PERMISSION_DENIED' && 20001, error.message],
    ],
    ['/v1/images/generations', { model: 'alpha-image-2', prompt: 'a gate' }, ({ code: c, message: m }) => [c, m]],
    ['/v1/siteanalytics/websites/visits?domain=example.com', undefined, ({ error }) => [error.code, error.message]],
    ['/v1/video/seedance', { prompt: 'a gate' }, ({ error }) => [error.code, error.message]],
    [
      '/v1/batches',
      { input_file_id: 'file-1', endpoint: '/v1/chat/completions', completion_window: '24h' },
      ({ error }) => [20001, error.message],
    ],
    ['/v1/account', undefined, ({ error }) => [error.code, error.message]],
  ]
  // The other process hears of it within two seconds.
  await until(() => status(other.call('/v1/models', key)), 403)
  for (const one of [g, other])
    for (const [path, body, errorOf] of answers) {
      if (/^\/(?:v1\/batches|gemini)/.test(path) && WITH_EXTENSIONS.skip) continue
      const answer = await one.call(path, key, body)
      const told = (await answer.json()) as object
      assert.deepEqual([answer.status, errorOf(told)], [403, [20001, message]], `${path} ${JSON.stringify(told)}`)
    }
  const sdk = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 3 })
  await assert.rejects(sdk.models.list(), (error: any) => error.status === 403 && error.message.includes('Invoice 17'))
  if (!WITH_EXTENSIONS.skip) await assert.rejects(connect(g.url, key), /403|suspended/)
  // In the console people play without a key: the ledger itself refuses.
  const made = await g.operator<NewKey>('POST', `/accounts/${id}/keys`, { name: 'test', test: true })
  assert.equal(
    await status(g.call('/v1/chat/completions', made.data.key, CHAT)),
    403,
    'a test account that is made now',
  )
  assert.equal((await change(id, 'credits', { amount: '1', note: 'paid' })).status, 200, 'it can pay')
  const { data: reopened } = await change(id, 'reopen')
  assert.deepEqual([reopened.status, reopened.statusReason, reopened.statusAt], ['open', null, null])
  await until(() => status(other.call('/v1/models', key)), 200)
  for (const one of [g, other]) assert.equal(await status(one.call('/v1/chat/completions', key, CHAT)), 200)
  assert.equal(await status(g.call('/v1/chat/completions', made.data.key, CHAT)), 200)
  const audit = await g.operator<{ items: AuditView[] }>('GET', `/audit?object=${id}`)
  assert.deepEqual(pluck(audit.data.items, 'action'), [
    'account.reopen',
    'account.credit',
    'account.suspend',
    'account.create',
  ])
})

test('a call that runs when its account is suspended ends and is charged', async () => {
  const { id, key } = await g.account()
  const running = g.call('/v1/chat/completions', key, SLOW)
  await until(() => waiting.length, above(0))
  await change(id, 'suspend', { reason: 'abuse' })
  waiting.shift()?.()
  const answer = await running
  assert.equal(answer.status, 200)
  assert.ok(Number(answer.headers.get('x-tollgate-charge')) > 0)
  await g.settled()
  const [charge] = await movements(id)
  assert.equal(charge?.kind, 'settled')
})

test('batch lines that have not begun when their account is suspended end with 403', WITH_EXTENSIONS, async () => {
  const { id, key } = await g.account()
  const batch = await sendBatch(g, key, Array(LINES).fill(SLOW))
  await until(() => waiting.length, above(0))
  await change(id, 'suspend', { reason: 'abuse' })
  await until(async () => {
    for (const answer of waiting.splice(0)) answer()
    return (await g.ask<{ status: string }>('GET', `/accounts/${id}/batches/${batch}`)).status
  }, 'completed')
  const told = await g.operator<{ items: Array<{ status: number }> }>('GET', `/accounts/${id}/batches/${batch}/lines`)
  const failed = told.data.items.map((one) => one.status)
  assert.deepEqual(new Set(failed), new Set([403]))
  // Either process may have run a line, and each books what it settled.
  await other.gateway.ledger.posted(id)
  const [charges] = await g.sql<{ count: bigint }>(
    `select count(*) as count from transfer where account_id = $1 and kind = 'settled'`,
    [id],
  )
  // Those that ran were paid for.
  assert.equal(Number(charges?.count), LINES - failed.length)
})

test('a closed account has no balance and no keys, is called by nobody, and its statement stays; reopened it gets new keys and credits', async () => {
  const { id, key } = await g.account({ credits: 5_000_000n })
  assert.equal(await status(g.call('/v1/chat/completions', key, CHAT)), 200)
  const spare = await g.key(id)
  const wrong = await change<{ message: string }>(id, 'close', { reason: 'left' })
  assert.equal(wrong.status, 400, 'nobody’s balance goes by itself')
  await g.gateway.ledger.posted(id)
  const { balance } = await g.ask<AccountView>('GET', `/accounts/${id}`)
  const { status: code, data } = await change(id, 'close', { reason: 'Contract ended', balance: 'payout' })
  assert.deepEqual([code, data.status, data.balance, data.held], [200, 'closed', '0', '0'])
  const [last, ...rest] = await movements(id)
  assert.deepEqual(
    [last?.kind, last?.moved, last?.note, last?.balanceAfter],
    ['payout', `-${balance}`, 'Contract ended', '0'],
  )
  assert.ok(rest.some(({ kind }) => kind === 'settled') && rest.some(({ kind }) => kind === 'grant'))
  for (const one of [key, spare.key]) {
    assert.equal(await status(g.call('/v1/chat/completions', one, CHAT)), 401)
    await until(() => status(other.call('/v1/models', one)), 401)
  }
  for (const [what, body] of [
    ['credits', { amount: '5', note: 'x' }],
    ['keys', { name: 'x' }],
    ['keys', { name: 'x', test: true }],
    ['suspend', { reason: 'x' }],
    ['close', { reason: 'x', balance: 'writeoff' }],
  ] as const) {
    const refused = await change<{ message: string }>(id, what, body)
    assert.deepEqual([refused.status, refused.data.message], [409, 'This account is closed. Reopen it first.'])
  }
  assert.equal((await change(id, 'reopen')).data.status, 'open')
  assert.equal(await status(g.call('/v1/models', key)), 401, 'ended keys stay ended')
  assert.equal((await change(id, 'credits', { amount: '5', note: 'back again' })).data.balance, '5')
  const again = (await change<NewKey>(id, 'keys', { name: 'new' })).data.key
  assert.equal(await status(g.call('/v1/chat/completions', again, CHAT)), 200)
  await g.gateway.ledger.posted(id)
  assert.equal((await change(id, 'close', { reason: 'again', balance: 'writeoff' })).status, 200)
  assert.equal((await movements(id))[0]?.kind, 'writeoff')
})

test('closing waits for running calls; while one still runs nothing is moved and no new one begins, and what was held is paid before the rest goes', async () => {
  const { id, key } = await g.account({ credits: 50_000_000n })
  // In both processes, so that there are leases and holds of two.
  const running = [g, other].map((one) => one.call('/v1/chat/completions', key, SLOW))
  await until(() => waiting.length, 2)
  const early = await change<{ message: string }>(id, 'close', { reason: 'left', balance: 'payout' })
  assert.equal(early.status, 409)
  assert.match(early.data.message, /still run.* credits\. The account is suspended .* Nothing was paid out/)
  assert.equal((await g.ask<AccountView>('GET', `/accounts/${id}`)).status, 'suspended')
  assert.ok(!(await movements(id)).some(({ kind }) => kind === 'payout'))
  assert.equal(await status(g.call('/v1/chat/completions', key, CHAT)), 403)
  // They end while it is closed, by two operators at once: one of them is told.
  const closings = [1, 2].map(() => change<{ message: string }>(id, 'close', { reason: 'left', balance: 'payout' }))
  for (const answer of waiting.splice(0)) answer()
  const charges = await Promise.all(running.map(async (one) => Number((await one).headers.get('x-tollgate-charge'))))
  const done = (await Promise.all(closings)).map((one) => one.status).sort()
  assert.deepEqual(done, [200, 409])
  await g.settled()
  const rows = await movements(id)
  assert.equal(rows.filter(({ kind }) => kind === 'payout').length, 1)
  assert.equal(rows[0]?.kind, 'payout', 'after the charges')
  const sum = rows.reduce((all, { moved }) => all + Math.round(Number(moved) * 1e6), 0)
  assert.equal(sum, 0)
  assert.equal(
    Math.round(-Number(rows[0]?.moved) * 1e6),
    50_000_000 - Math.round(charges.reduce((a, b) => a + b) * 1e6),
  )
  assert.deepEqual(await g.balance(id), { posted: 0n, held: 0n })
})

test('calls that go on all the while an account is closed are either paid or refused, and nothing is lost or left held', async () => {
  const { id, key } = await g.account({ credits: 900_000_000n })
  let over = false
  const seen = new Map<number, number>()
  let charged = 0
  const calling = Array.from({ length: 6 }, async (_, at) => {
    while (!over) {
      const answer = await (at % 2 ? g : other).call('/v1/chat/completions', key, CHAT)
      await answer.arrayBuffer()
      seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1)
      charged += Math.round(Number(answer.headers.get('x-tollgate-charge') ?? 0) * 1e6)
    }
  })
  await until(() => seen.get(200) ?? 0, above(20))
  // On a busy machine a call may take longer than a closing waits.
  const close = async () => (await change(id, 'close', { reason: 'left', balance: 'writeoff' })).status
  assert.equal(await until(close, not(409)), 200)
  await until(() => seen.get(401) ?? 0, above(6))
  over = true
  await Promise.all(calling)
  await g.settled()
  none(seen.keys(), (one) => ![200, 401, 403].includes(one))
  const [last] = await movements(id)
  assert.deepEqual([last?.kind, Math.round(Number(last?.moved) * 1e6)], ['writeoff', charged - 900_000_000])
  assert.deepEqual(await g.balance(id), { posted: 0n, held: 0n })
})
