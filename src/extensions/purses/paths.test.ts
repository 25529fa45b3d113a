// Calls of purses on every path but the usual one: jobs, batches, responses in the background and calls by a key of the
// account's own. What is killed in the middle is paid for once, by the purse and by its account, and the purse's
// statement, its movements and the ledger say the same.

import { answered, sendBatch } from '../../../test/batches.ts'
import { freshDatabase } from '../../../test/database.ts'
import { assert, BY, jsonOf, needs, startGateway, type TestGateway, test, until } from '../../../test/gateway.ts'
import { startKeyedVendor, WORKS } from '../../../test/keyed-vendor.ts'
import { killable } from '../../../test/killable.ts'
import { verifyPurses } from './verify.ts'
import type { PurseStatement, PurseView } from './views.ts'

const NEVER_MS = 3_600_000
const LINES = 24
const MARKUP = 50n
const GIVEN = 200_000_000n
const CHAT = { model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user', content: 'Hello. [[wait=60]]' }] }
const FILM = { model: 'videogen-2.0', prompt: 'a rope', duration: 4, resolution: '480p' }

const LATER = { model: 'alpha-5.4', input: 'Hello.', max_output_tokens: 20, background: true }

const start = killable()
const purse = (id: string) => ({ headers: { 'x-tollgate-purse': id } })
const inTheNameOf = (g: TestGateway, id: string): TestGateway => ({
  ...g,
  call: (path, key, body, init) => g.call(path, key, body, { ...init, ...purse(id) }),
})
const micro = (credits: string) => BigInt(Math.round(Number(credits) * 1e6))

type Sums = { readonly calls: number; readonly sold: bigint; readonly paid: bigint }

/**
 * What a purse and its account paid by the movements; that both agree with the ledger, with each other and with the
 * statement.
 */
async function sumsOf(g: TestGateway, account: string, key: string, id: string): Promise<Sums> {
  const [sums] = await g.sql<Sums & { due: bigint; used: bigint }>(
    `select count(*)::int as calls, sum(m.amount)::bigint as sold, sum(m.charged)::bigint as paid,
       sum(ceil(u.charged * (100 + ${MARKUP}) / 100.0))::bigint as due, sum(u.charged)::bigint as used
     from purse_movement m join usage u on u.account_id = m.account_id and u.id = m.id
     where m.account_id = $1 and m.purse_id = $2 and m.kind = 'settled' and u.labels ->> ':purse' = $2`,
    [account, id],
  )
  assert.ok(sums)
  assert.deepEqual([sums.sold, sums.paid], [sums.due, sums.used])
  const statement = await jsonOf<{ data: PurseStatement }>(g.call(`/v1/purses/${id}/statement`, key))
  assert.equal(micro(statement.data.spent), sums.sold)
  const { data } = await jsonOf<{ data: PurseView }>(g.call(`/v1/purses/${id}`, key))
  assert.deepEqual([micro(data.balance), data.held, data.balance], [GIVEN - sums.sold, '0', statement.data.closing])
  const [{ posted, held } = { posted: 0n, held: 0n }] = await g.sql<{ posted: bigint; held: bigint }>(
    'select posted, held from account where id = $1',
    [account],
  )
  assert.equal(held, 0n)
  const [all] = await g.sql<{ used: bigint }>('select sum(charged)::bigint as used from usage where account_id = $1', [
    account,
  ])
  assert.equal(posted, 1_000_000_000n - (all?.used ?? 0n))
  assert.deepEqual(await g.gateway.database.transaction((tx) => verifyPurses(tx, account)), [])
  assert.deepEqual(await g.problems(), [])
  return sums
}

async function reseller(g: TestGateway) {
  const { id: account, key } = await g.account()
  await g.operator('PUT', `/accounts/${account}/purse-prices`, { markupPercent: String(MARKUP) })
  for (const id of ['ann', 'bob']) await jsonOf(g.call('/v1/purses', key, { id, credits: String(GIVEN / 1_000_000n) }))
  return { account, key }
}

/** Whose process has died: twenty seconds of silence, at once. */
async function silent(g: TestGateway): Promise<void> {
  await g.sql(`update gateway_instance set heartbeat_at = now() - interval '1 hour'`)
  await g.gateway.ledger.sweep()
}

test(
  'a video, a batch and a response in the background are paid by their purse, once, also after kill -9',
  needs('background'),
  async () => {
    await using fresh = await freshDatabase()
    // Its own worker sleeps: the processes do the work.
    await using g = await startGateway({ database: fresh, jobs: { fetchEveryMs: NEVER_MS } })
    const { account, key } = await reseller(g)
    const held = async (id: string) => (await jsonOf<{ data: PurseView }>(g.call(`/v1/purses/${id}`, key))).data.held
    const made = await jsonOf<{ data: { jobId: string } }>(
      g.call('/v1/video/seedance', key, { ...FILM, prompt: 'a rope [[running-ms=2000]]' }, purse('ann')),
    )
    assert.ok(micro(await held('ann')) > 0n)
    const later = await jsonOf<{ id: string }>(
      g.call(
        '/v1/responses',
        key,
        { model: 'alpha-5.4', input: 'Later. [[wait=1500]]', background: true },
        purse('bob'),
      ),
    )
    const batch = await sendBatch(inTheNameOf(g, 'bob'), key, Array(LINES).fill(CHAT))
    const first = await start({ connection: fresh.connection, sandboxUrl: g.sandbox.url, data: g.config.dataDirectory })
    // The video and the response have been sent, and the batch is under way.
    await until(async () => {
      const { request_counts } = await jsonOf<{ request_counts: { completed: number } }>(
        g.call(`/v1/batches/${batch}`, key),
      )
      return request_counts.completed > 2 && Object.keys(g.sandbox.seen.submissions).length > 0
    })
    await first.kill()
    await silent(g)
    await start({ connection: fresh.connection, sandboxUrl: g.sandbox.url, data: g.config.dataDirectory })
    await until(async () => {
      const { data } = await jsonOf<{ data: { status: string } }>(g.call(`/v1/jobs/${made.data.jobId}`, key))
      return data.status === 'COMPLETED'
    })
    await until(
      async () => (await jsonOf<{ status: string }>(g.call(`/v1/responses/${later.id}`, key))).status === 'completed',
    )
    assert.equal((await answered(g, key, batch)).length, LINES)
    await until(async () => (await g.sql('select 1 from hold where account_id = $1', [account])).length === 0)
    await g.settled()
    assert.equal((await sumsOf(g, account, key, 'ann')).calls, 1)
    assert.equal((await sumsOf(g, account, key, 'bob')).calls, LINES + 1)
  },
)

test('a video that fails, and one that nobody can pay, cost its purse nothing', async () => {
  await using g = await startGateway()
  const { account, key } = await reseller(g)
  const made = await jsonOf<{ data: { jobId: string } }>(
    g.call('/v1/video/seedance', key, { ...FILM, prompt: '[[fail]]' }, purse('ann')),
  )
  await until(async () => {
    const { data } = await jsonOf<{ data: { status: string } }>(g.call(`/v1/jobs/${made.data.jobId}`, key))
    return data.status === 'FAILED'
  })
  await jsonOf(g.call('/v1/purses', key, { id: 'poor', credits: '1' }))
  const refused = await g.call('/v1/video/seedance', key, FILM, purse('poor'))
  assert.equal(refused.status, 402)
  assert.match(
    await refused.text(),
    /The purse \\"poor\\" has too little: this call needs [\d.]+ credits, 1 are available/,
  )
  await g.settled()
  const [moved] = await g.sql(
    `select kind, amount from purse_movement where account_id = $1 and purse_id = 'ann' and product is not null`,
    [account],
  )
  assert.deepEqual(moved, { kind: 'released', amount: 0n })
  assert.deepEqual(await g.gateway.database.transaction((tx) => verifyPurses(tx, account)), [])
  assert.deepEqual(await g.problems(), [])
})

test(
  'a session token that is bound to a highest cost is bound in jobs and batches as well',
  needs('background'),
  async () => {
    await using g = await startGateway()
    const { account, key } = await reseller(g)
    const token = async (callMax: string) =>
      (await jsonOf<{ data: { token: string } }>(g.call('/v1/purses/ann/sessions', key, { callMax }))).data.token
    const refused = await g.call('/v1/video/seedance', await token('14'), FILM)
    assert.deepEqual([refused.status, refused.headers.get('x-tollgate-limit')], [403, 'callMax'])
    assert.equal((await g.call('/v1/video/seedance', await token('21'), FILM)).status, 200)
    // A response in the background is made in the name of the token.
    const ask = async (callMax: string) => {
      const by = await token(callMax)
      const { id } = await jsonOf<{ id: string }>(g.call('/v1/responses', by, LATER))
      const text = 'select status from background where id = $1'
      const read = async () => (await g.sql<{ status: string }>(text, [id]))[0]?.status
      return until(read, (status) => status !== 'queued' && status !== 'in_progress')
    }
    // As long as it may be.
    assert.deepEqual([await ask('1'), await ask('0.01')], ['incomplete', 'failed'])
    await until(async () => (await g.sql('select 1 from hold where account_id = $1', [account])).length === 0)
    await g.settled()
    const calls = await g.sql(`select 1 from purse_movement where account_id = $1 and kind = 'settled'`, [account])
    assert.equal(calls.length, 2)
    assert.deepEqual(await g.gateway.database.transaction((tx) => verifyPurses(tx, account)), [])
  },
)

test('a call by a key of the account’s own costs its purse the markup on the fee', async () => {
  const own = 'sk-own-0000000000bbbb'
  await using g = await startGateway()
  const vendor = await startKeyedVendor(() => `${g.sandbox.url}/openai`)
  try {
    vendor.moods.set(own, WORKS)
    const document = structuredClone(g.gateway.catalog.current.input)
    document.vendors.text = { baseUrl: vendor.url, credential: 'HOUSE_KEY', byokFee: { call: '0.01' } }
    const alpha = document.models['alpha-5.4'] ?? assert.fail()
    document.models['alpha-5.4'] = { ...alpha, routes: alpha.routes.map((route) => ({ ...route, vendor: 'text' })) }
    await g.gateway.catalog.apply(document, BY, '')
    const { account, key } = await reseller(g)
    const stored = { vendor: 'text', value: own, fallback: false, origin: new URL(vendor.url).origin }
    await g.gateway.byokKeys.store(account, stored, BY)
    const answer = await g.call('/v1/chat/completions', key, CHAT, purse('ann'))
    assert.equal(answer.status, 200, await answer.text())
    await g.settled()
    assert.deepEqual(await sumsOf(g, account, key, 'ann').then(({ sold, paid }) => [sold, paid]), [15_000n, 10_000n])
  } finally {
    vendor.close()
  }
})
