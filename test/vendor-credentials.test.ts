// Several credentials of one vendor: calls are shared by weight, what befalls one is nothing to the others, and what
// one made is read by that one.

import type { Page } from '../src/kernel/view.ts'
import { realWorld } from '../src/kernel/world.ts'
import type { UsageDetail } from '../src/ledger/views.ts'
import type { VendorCredentialView, VendorView } from '../src/operator/views.ts'
import { commandLineOf } from './command-line.ts'
import { BY, jsonOf, OPERATOR_TOKEN, testGateway } from './gateway.ts'
import { type KeyedVendor, startKeyedVendor, WORKS } from './keyed-vendor.ts'
import { above, after, assert, beforeEach, pluck, test, until } from './kit.ts'

const [A, B, C] = ['sk-first-000000001111', 'sk-second-00000002222', 'sk-third-000000003333'] as const
let text: KeyedVendor
let films: KeyedVendor
let caller: { id: string; key: string }
let skippedMs = 0

const g = testGateway(
  {
    env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN, KEYED_KEY_A: A, FILM_KEY_A: A, FILM_KEY_B: B },
    world: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skippedMs },
  },
  async () => {
    text = await startKeyedVendor(() => `${g.sandbox.url}/openai`)
    films = await startKeyedVendor(() => `${g.sandbox.url}/ark`)
    const document = structuredClone(g.gateway.catalog.current.input)
    document.vendors.keyed = {
      baseUrl: text.url,
      credentials: [{ name: 'KEYED_KEY_A' }, { name: 'KEYED_B', weight: 3 }],
    }
    document.vendors.spare = { baseUrl: 'sandbox/openai' }
    document.vendors.films = { baseUrl: films.url, credentials: [{ name: 'FILM_KEY_A' }, { name: 'FILM_KEY_B' }] }
    const alpha = document.models['alpha-5.4']
    assert.ok(alpha)
    const routes = alpha.routes.map((route) => ({ ...route, vendor: 'keyed', order: 0 }))
    document.models['alpha-5.4'] = {
      ...alpha,
      routes: [...routes, ...alpha.routes.map((route) => ({ ...route, vendor: 'spare', order: 1 }))],
    }
    document.models.alone = { ...alpha, routes }
    document.models['videogen-2.0']?.routes.splice(0, 1, { vendor: 'films', protocol: 'video-task' })
    await g.gateway.catalog.apply(document, BY, '')
    caller = await g.account()
    await put('keyed', 'KEYED_B', { value: B })
  },
)
after(() => {
  text.close()
  films.close()
})

/** Every disabled credential is in use again. */
beforeEach(() => {
  skippedMs += 4_000_000
  text.moods.clear()
  for (const key of [A, B, C]) text.moods.set(key, WORKS)
  text.asked.length = 0
})

const put = (vendor: string, name: string, body: object) =>
  g.operator<Page<VendorCredentialView>>('PUT', `/vendors/${vendor}/credentials/${name}`, body)

const stateOf = async (vendor: string) => {
  const { data } = await g.operator<Page<VendorView>>('GET', '/vendors')
  const found = data.items.find(({ name }) => name === vendor)
  assert.ok(found)
  return found
}

const chat = (model = 'alpha-5.4', extra: object = {}) =>
  g.call('/v1/chat/completions', caller.key, { model, messages: [{ role: 'user', content: 'Hi' }], ...extra })

async function usageOf(response: Response): Promise<UsageDetail> {
  const { data } = await g.operator<UsageDetail>('GET', `/usage/${response.headers.get('x-request-id')}`)
  return data
}

test('calls are shared by weight, and the usage row names the credential by its name, for operators only', async () => {
  for (let turn = 0; turn < 40; turn++) assert.equal((await chat()).status, 200)
  const second = text.keysAsked().filter((key) => key === B).length
  assert.ok(second > 20 && second < 40, `three of four calls go to the heavier one: ${second} of 40`)
  const answered = await chat()
  await answered.text()
  const usage = await usageOf(answered)
  assert.match(usage.credential ?? '', /^KEYED_(KEY_A|B)$/)
  assert.equal(usage.byok, false)
  const row = await g.sql<{ found: boolean }>(
    `select exists (select 1 from usage u where u::text like '%sk-%') as found`,
  )
  assert.deepEqual(row, [{ found: false }])
})

test('a rate-limited credential is disabled for as long as the vendor asks, the same call uses another, and the breaker does not count it', async () => {
  text.moods.set(B, { status: 429, retryAfter: 30 })
  const fromMs = Date.now()
  for (let turn = 0; turn < 12; turn++) assert.equal((await chat('alone')).status, 200)
  assert.equal(text.keysAsked().filter((key) => key === B).length, 1)
  const { credentials, breaker, errors } = await stateOf('keyed')
  const [first, second] = credentials
  assert.equal(first?.disabledUntil, null)
  assert.ok(first?.lastSuccessAt)
  assert.deepEqual([second?.disabledReason, second?.status, second?.last4], ['rate_limited', 429, '2222'])
  const limitedMs = Date.parse(second?.disabledUntil ?? '') - 30_000
  // It is told by another clock than that of the calls.
  assert.ok(limitedMs > fromMs - 1_000 && limitedMs < Date.now() + 1_000, `${limitedMs - fromMs}`)
  assert.deepEqual([breaker, errors], ['closed', 0])
  skippedMs += 31_000
  text.moods.set(B, WORKS)
  for (let turn = 0; turn < 20; turn++) await chat('alone')
  assert.ok(text.keysAsked().filter((key) => key === B).length > 1, 'it is used again afterwards')
})

test('a rejected credential is disabled, and the attempt log says so to operators; with all disabled the call takes the next route', async () => {
  text.moods.set(A, { status: 401 })
  text.moods.set(B, { status: 403 })
  const { errors } = await stateOf('keyed')
  const answered = await chat()
  assert.equal(answered.status, 200)
  await answered.text()
  const { attemptLog, route } = await usageOf(answered)
  assert.ok((route ?? 0) > 1, 'another vendor answered')
  const told = attemptLog?.attempts.map(({ vendor, credential, status }) => [vendor, credential, status])
  assert.deepEqual(
    new Set(told?.filter(([vendor]) => vendor === 'keyed').map(([, , status]) => status)),
    new Set([401, 403, null]),
  )
  assert.deepEqual(new Set(told?.flatMap(([, name]) => name ?? [])), new Set(['KEYED_KEY_A', 'KEYED_B']))
  text.asked.length = 0
  assert.equal((await chat()).status, 200)
  assert.deepEqual(text.asked, [], 'neither is asked again for a while')
  const after = await stateOf('keyed')
  assert.deepEqual([after.breaker, after.errors], ['closed', errors], 'nothing of it is the vendor’s')
  const alone = await chat('alone')
  assert.equal(alone.status, 503)
  assert.ok(Number(alone.headers.get('retry-after')) >= 1)
})

test('nobody closes a vendor to others with calls that it refuses whatever the credential', async () => {
  const [last, ...others] = [await g.account(), await g.account(), await g.account(), await g.account()] as const
  const say = (by: { key: string }, content: string) =>
    g.call('/v1/chat/completions', by.key, { model: 'alone', messages: [{ role: 'user', content }] })
  for (const status of [403, 429]) {
    text.words.set('forbidden-word', { status })
    for (let turn = 0; turn < 3; turn++) assert.notEqual((await say(caller, 'A forbidden-word.')).status, 200)
    text.asked.length = 0
    assert.notEqual((await say(caller, 'Hi')).status, 200, 'whoever sent it waits')
    assert.deepEqual(text.asked, [])
    assert.equal((await say(others[0], 'Hi')).status, 200)
    // When several have met it, it is the credential.
    text.words.set('Hi', { status })
    for (const other of others) await say(other, 'Hi')
    text.words.clear()
    assert.notEqual((await say(last, 'Hello')).status, 200)
    skippedMs += 4_000_000
  }
})

test('they are added, replaced and removed while calls run; a new value is tried at once', async () => {
  text.moods.set(A, { status: 401 })
  text.moods.set(B, { status: 401 })
  assert.equal((await chat('alone')).status, 502)
  assert.equal((await put('keyed', 'KEYED_B', { value: C })).status, 200)
  assert.equal((await chat('alone')).status, 200, 'only the old value was disabled')
  assert.deepEqual(text.keysAsked().slice(-1), [C])
  const added = await put('keyed', 'KEYED_D', { value: 'sk-fourth-00000004444', weight: 7 })
  assert.deepEqual(pluck(added.data.items, 'name', 'weight', 'source', 'last4'), [
    ['KEYED_KEY_A', 1, 'env', '1111'],
    ['KEYED_B', 3, 'stored', '3333'],
    ['KEYED_D', 7, 'stored', '4444'],
  ])
  assert.equal((await g.operator('DELETE', '/vendors/keyed/credentials/KEYED_D')).status, 200)
  assert.equal((await g.operator('DELETE', '/vendors/keyed/credentials/KEYED_D')).status, 404)
  assert.equal((await put('keyed', 'lower', { value: C })).status, 400)
  assert.equal((await put('keyed', 'KEYED_NONE', {})).status, 400)
  assert.equal((await put('keyed', 'KEYED_B', { value: B })).status, 200)
  const audited = await g.operator<Page<{ action: string; object: string }>>('GET', '/audit?action=credential.store')
  assert.ok(audited.data.items.some(({ object }) => object === 'KEYED_D'))
})

test('the command line lists, adds and removes them; the last one stays', async () => {
  const { run } = commandLineOf(() => g)
  const add = ['vendors', 'credentials', 'spare', '--set', 'SPARE_A', '--key-stdin']
  assert.equal((await run(add, { input: `${A}\n` })).code, 0)
  assert.equal(g.gateway.catalog.current.input.vendors.spare?.credential, 'SPARE_A', 'one is named by itself')
  const more = ['vendors', 'credentials', 'spare', '--set', 'SPARE_B', '--weight', '2', '--key-stdin']
  const second = await run(more, { input: B })
  assert.match(second.out, /SPARE_B +…2222 +stored +2/)
  assert.doesNotMatch(second.all, /sk-second/)
  assert.equal((await run(['vendors', 'credentials', 'spare', '--remove', 'SPARE_A'])).code, 0)
  const last = await run(['vendors', 'credentials', 'spare', '--remove', 'SPARE_B'])
  assert.equal(last.code, 1)
  assert.match(last.err, /only one/)
})

test('a stored response is read with the credential that made it', async () => {
  text.moods.set(B, { status: 429, retryAfter: 30 })
  const { id } = await jsonOf<{ id: string }>(
    g.call('/v1/responses', caller.key, { model: 'alone', input: 'Hello', store: true }),
  )
  text.moods.set(B, WORKS)
  skippedMs += 31_000
  text.asked.length = 0
  // Three of four would go to the other one.
  for (let turn = 0; turn < 8; turn++) {
    const read = await g.call(`/v1/responses/${id}`, caller.key)
    assert.equal(read.status, 200, await read.text())
  }
  assert.deepEqual(new Set(text.keysAsked()), new Set([A]))
})

test('a video job is looked at with the credential that made its task, and that one cannot be taken away meanwhile', async () => {
  const create = async (maker: string, limited: string) => {
    skippedMs += 31_000
    films.moods.set(maker, WORKS).set(limited, { status: 429, retryAfter: 30 })
    const order = { model: 'videogen-2.0', prompt: 'A sea.', duration: 5 }
    const made = await g.call('/v1/video/seedance', caller.key, order)
    const { data } = (await made.json()) as { data: { jobId: string } }
    const taken = { text: 'select 1 from job where id = $1 and task_id is not null' }
    await until(async () => (await g.gateway.database.query(taken, [data.jobId])).length, above(0))
    return data.jobId
  }
  const first = await create(A, B)
  films.moods.set(A, { status: 429, retryAfter: 1 })
  const refused = await g.operator<{ message: string }>('DELETE', '/vendors/films/credentials/FILM_KEY_A')
  assert.equal(refused.status, 409)
  assert.match(refused.data.message, /^1 running jobs were made by FILM_KEY_A/)
  films.moods.set(A, WORKS)
  const second = await create(B, A)
  films.moods.set(A, WORKS)
  for (const id of [first, second])
    await until(async () => {
      const answer = await g.call(`/v1/jobs/${id}`, caller.key)
      return ((await answer.json()) as { data: { status: string } }).data.status === 'COMPLETED'
    })
  const rows = await g.sql<{ credential: string }>(
    'select u.credential from usage u join job j on j.hold_id = u.id order by u.id',
  )
  assert.deepEqual(pluck(rows, 'credential'), ['FILM_KEY_A', 'FILM_KEY_B'])
})
