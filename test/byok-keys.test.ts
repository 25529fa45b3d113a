// Keys at vendors that accounts bring themselves: used for their own calls only, at a fee in place of the price, and
// what goes wrong with them is theirs.
import { parseCredits } from '../src/kernel/credits.ts'
import type { Page } from '../src/kernel/view.ts'
import type { Overview, UsageDetail } from '../src/ledger/views.ts'
import type { ByokKeyStored, ByokKeyView, VendorView } from '../src/operator/views.ts'
import { BY, OPERATOR_TOKEN, startGateway, testGateway, textOf } from './gateway.ts'
import { type KeyedVendor, startKeyedVendor, WORKS } from './keyed-vendor.ts'
import { above, after, assert, atOnce, beforeEach, pluck, test, until } from './kit.ts'
import { verified } from './operator-server.ts'

const HOUSE = 'sk-house-00000000aaaa'
const OWN = 'sk-own-0000000000bbbb'
let text: KeyedVendor
let films: KeyedVendor
let owner: { id: string; key: string }
let other: { id: string; key: string }

const g = testGateway({ env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN, HOUSE_KEY: HOUSE } }, async () => {
  text = await startKeyedVendor(() => `${g.sandbox.url}/openai`)
  films = await startKeyedVendor(() => `${g.sandbox.url}/ark`)
  const document = structuredClone(g.gateway.catalog.current.input)
  const cost = { unit: 'credits' as const, tiers: [{ input: '100', output: '400' }] }
  const house = { credential: 'HOUSE_KEY', headers: { 'x-house': 'ours' } }
  document.vendors.text = { baseUrl: text.url, ...house, byokFee: { call: '0.01', share: '0.05' } }
  document.vendors.films = { baseUrl: films.url, ...house, byokFee: { share: '0.1' } }
  document.vendors.closed = { baseUrl: text.url, ...house }
  const alpha = document.models['alpha-5.4']
  assert.ok(alpha)
  const pricing = { unit: 'credits' as const, tiers: [{ input: '200', output: '800' }] }
  const routes = alpha.routes.map((route) => ({ ...route, vendor: 'text', cost }))
  document.models['alpha-5.4'] = { ...alpha, routes, pricing, cache: { ttlSeconds: 600 } }
  document.models.flat = { ...alpha, routes, pricing, byokFee: { call: '5' } }
  document.models.house = { ...alpha, routes: routes.map((route) => ({ ...route, vendor: 'closed' })), pricing }
  document.models['videogen-2.0']?.routes.splice(0, 1, { vendor: 'films', protocol: 'video-task' })
  await g.gateway.catalog.apply(document, BY, '')
  owner = await g.account()
  other = await g.account()
})
after(() => {
  text.close()
  films.close()
})

beforeEach(async () => {
  for (const vendor of [text, films]) {
    vendor.moods.clear()
    vendor.moods.set(HOUSE, WORKS).set(OWN, WORKS)
    vendor.asked.length = 0
  }
  const { items } = (await g.operator<Page<ByokKeyView>>('GET', `/accounts/${owner.id}/byok-keys`)).data
  for (const { vendor, stored } of items)
    if (stored) await g.operator('DELETE', `/accounts/${owner.id}/byok-keys/${vendor}`)
})

const originAt = (vendor: string) => new URL((vendor === 'films' ? films : text).url).origin

/** Without the test, of which there are so many a minute. */
const bring = (vendor: string, fallback = false) =>
  g.gateway.byokKeys.store(owner.id, { vendor, value: OWN, fallback, origin: originAt(vendor) }, BY)

const chat = (by: { key: string }, extra: object = {}) =>
  g.call('/v1/chat/completions', by.key, {
    model: 'alpha-5.4',
    messages: [{ role: 'user', content: 'Hi' }],
    max_tokens: 50,
    ...extra,
  })

async function usageOf(response: Response): Promise<UsageDetail> {
  await response.text()
  const { data } = await g.operator<UsageDetail>('GET', `/usage/${response.headers.get('x-request-id')}`)
  return data
}

const micro = (amount: string) => parseCredits(amount) ?? assert.fail(amount)

/** The price of what was used, without the call. */
function priceOf({ units: { input = 0, output = 0 } }: UsageDetail): bigint {
  return BigInt(Math.ceil(input * 200 + output * 800))
}

const problems = async () => (await verified(g)).problems

test('a key is tested when it is stored: at the address of the catalog, with nothing of the house, and a wrong one is refused', async () => {
  const path = `/accounts/${owner.id}/byok-keys/text`
  const wrong = await g.operator<{ message: string }>('PUT', path, { value: 'sk-wrong-00000000cccc' })
  assert.equal(wrong.status, 400)
  assert.match(wrong.data.message, /text does not accept the key. It was not stored/)
  assert.doesNotMatch(wrong.data.message, /127\.0\.0\.1|sk-wrong/)
  const right = await g.operator<ByokKeyStored>('PUT', path, { value: OWN })
  assert.deepEqual(right.data.test, { ok: true, message: 'text accepts the key.' })
  const shown = right.data.items.find(({ vendor }) => vendor === 'text')
  assert.deepEqual([shown?.stored, shown?.last4, shown?.fallback], [true, 'bbbb', false])
  assert.deepEqual(shown?.fee, { call: '0.01', share: '0.05' })
  assert.doesNotMatch(JSON.stringify(right.data), /sk-own/)
  assert.ok(text.asked.every(({ key }) => key !== HOUSE))
  const closed = await g.operator<{ message: string }>('PUT', `/accounts/${owner.id}/byok-keys/closed`, { value: OWN })
  assert.equal(closed.status, 409)
  assert.equal((await g.operator('PUT', `/accounts/${owner.id}/byok-keys/nowhere`, { value: OWN })).status, 409)
  assert.equal((await g.operator('PUT', `/accounts/${other.id}/byok-keys/text`, { fallback: true })).status, 400)
  const tries = await atOnce(6, () => g.operator('PUT', path, { value: OWN }))
  assert.ok(
    tries.some(({ status }) => status === 429),
    'so many tests a minute',
  )
  const [row] = await g.sql<{ sealed: string }>('select sealed::text from byok_key')
  assert.ok(!Buffer.from(row?.sealed.slice(2) ?? '', 'hex').includes(OWN), 'it lies there sealed')
})

test('where vendors are not tested a key is stored unchecked, which the answer says, and a test names what is switched off', async () => {
  await using plain = await startGateway({
    env: { TOLLGATE_EXTENSIONS_OFF: 'probes', HOUSE_KEY: HOUSE },
    catalog(document) {
      document.vendors.alpha.byokFee = { call: '0.01' }
    },
  })
  const { id } = await plain.account()
  const path = `/accounts/${id}/byok-keys`
  const { test: told, items } = await plain.ask<ByokKeyStored>('PUT', `${path}/alpha`, { value: OWN })
  assert.deepEqual(told, { ok: false, message: 'The key is stored, and was not checked: vendors are not tested here.' })
  assert.deepEqual(
    pluck(
      items.filter(({ stored }) => stored),
      'vendor',
    ),
    ['alpha'],
  )
  assert.equal((await plain.operator('PUT', `${path}/nobody`, { value: OWN })).status, 409)
  const refused = await plain.operator('POST', '/vendors/alpha/test')
  assert.equal(refused.status, 404)
  assert.match(JSON.stringify(refused.data), /extension \\"probes\\" is switched off/)
})

test('its calls cost the fee, which hold, quote, usage and headers show; the vendor costs nothing, and another account pays the price', async () => {
  await bring('text')
  const quoted = await g.call('/v1/quote', owner.key, {
    model: 'alpha-5.4',
    messages: [{ role: 'user', content: 'Hi' }],
    max_tokens: 50,
  })
  const quote = (
    (await quoted.json()) as { data: { byok: boolean; hold: string; lines: { unit: string; rate: string }[] } }
  ).data
  assert.equal(quote.byok, true)
  assert.deepEqual(pluck(quote.lines, 'unit', 'rate'), [
    ['input', '10'],
    ['output', '40'],
    ['call', '10000'],
  ])
  const answered = await chat(owner)
  assert.equal(answered.status, 200)
  assert.deepEqual(new Set(text.keysAsked()), new Set([OWN]))
  const usage = await usageOf(answered)
  assert.deepEqual([usage.credential, usage.byok, usage.cost], ['own', true, '0'])
  const fee = 10_000n + (priceOf(usage) * 5n + 99n) / 100n
  assert.equal(micro(usage.charged), fee)
  assert.equal(micro(answered.headers.get('x-tollgate-charge') ?? ''), fee)
  assert.equal(micro(usage.held), micro(quote.hold))
  assert.ok(micro(usage.held) >= fee)
  const paid = await usageOf(await chat(other))
  assert.deepEqual([paid.credential, paid.byok], [null, false])
  assert.equal(micro(paid.charged), priceOf(paid))
  assert.equal(text.keysAsked().at(-1), HOUSE)
  const { data } = await g.operator<Overview>('GET', `/accounts/${owner.id}/overview`)
  assert.equal(data.margin?.cost, '0', 'nothing of it was ours to pay')
  assert.equal(data.margin?.charged, usage.charged)
  assert.deepEqual(await problems(), [])
})

test('a product may have a fee of its own, a stream costs it too, and nobody else gets an answer that an own key brought', async () => {
  await bring('text')
  const flat = await usageOf(await chat(owner, { model: 'flat' }))
  assert.equal(flat.charged, '5')
  const streamed = await chat(owner, { model: 'flat', stream: true })
  assert.match(await streamed.clone().text(), /: tollgate charge=5\n/)
  assert.equal((await usageOf(streamed)).charged, '5')
  const kept = { temperature: 0, messages: [{ role: 'user', content: 'The same question' }] }
  const first = await chat(owner, kept)
  assert.equal(first.headers.get('x-cache'), null)
  assert.equal((await usageOf(first)).byok, true)
  assert.equal((await chat(owner, kept)).headers.get('x-cache'), null)
  const house = await usageOf(await chat(owner, { model: 'house' }))
  assert.equal(house.byok, false, 'a vendor without a fee takes no own keys')
  assert.deepEqual(await problems(), [])
})

test('what the vendor has against the key is the account’s to mend, in words, free of charge, and no breaker hears of it', async () => {
  await bring('text')
  const before = await stateOf('text')
  for (const [status, retryAfter, expected, says] of [
    [401, undefined, 403, /does not accept this account.s BYOK key for/],
    [402, undefined, 403, /has no money left/],
    [429, 7, 429, /BYOK key for .{1,10} is at its rate limit/],
  ] as const) {
    text.moods.set(OWN, { status, ...(retryAfter === undefined ? {} : { retryAfter }) })
    for (let turn = 0; turn < 6; turn++) {
      const refused = await chat(owner)
      assert.equal(refused.status, expected)
      assert.match(await refused.clone().text(), says)
      if (retryAfter !== undefined) assert.equal(refused.headers.get('retry-after'), String(retryAfter))
      const usage = await usageOf(refused)
      assert.deepEqual([usage.charged, usage.outcome], ['0', 'released'])
    }
  }
  for (const status of [500, 0]) {
    text.moods.set(OWN, { status })
    for (let turn = 0; turn < 6; turn++) assert.ok((await chat(owner)).status >= 502)
  }
  assert.ok(
    text.keysAsked().every((key) => key === OWN),
    'the house’s credential is not used',
  )
  const afterwards = await stateOf('text')
  assert.deepEqual(
    [afterwards.breaker, afterwards.errors, afterwards.requests],
    ['closed', before.errors, before.requests],
  )
  assert.equal((await chat(other)).status, 200)
})

test('a key that can no longer be read sends no call by the house’s credential at the full price, unless the account allows it', async () => {
  await bring('text')
  await g.sql(`update byok_key set sealed = sealed || '\\x00'::bytea where account_id = $1`, [owner.id])
  await g.gateway.byokKeys.allowFallback(owner.id, { vendor: 'text', fallback: false }, BY)
  assert.match(await textOf(chat(owner), 403), /can no longer be read here. Store it again/)
  assert.deepEqual(text.keysAsked(), [])
  await g.gateway.byokKeys.allowFallback(owner.id, { vendor: 'text', fallback: true }, BY)
  assert.equal((await chat(owner)).status, 200)
  assert.deepEqual(text.keysAsked(), [HOUSE])
})

test('where the account allows it the house’s credential is taken when the key fails, at the price, which was held', async () => {
  await bring('text', true)
  const own = await usageOf(await chat(owner))
  assert.equal(own.byok, true)
  assert.ok(micro(own.held) > micro(own.charged) * 3n, 'the price was held')
  text.moods.set(OWN, { status: 401 })
  const answered = await chat(owner)
  assert.equal(answered.status, 200)
  const usage = await usageOf(answered)
  assert.deepEqual([usage.credential, usage.byok], [null, false])
  assert.equal(micro(usage.charged), priceOf(usage))
  assert.ok(micro(usage.held) >= micro(usage.charged))
  assert.notEqual(usage.cost, '0')
  const flat = await usageOf(await chat(owner, { model: 'flat' }))
  assert.ok(micro(flat.held) >= micro('5'), 'the greater of the two was held')
  assert.deepEqual(await problems(), [])
})

test('a caller who has less than the worst case is capped so that the fee is covered, and one who has less than the fee is told', async () => {
  const poor = await g.account({ credits: micro('5.2') })
  await g.gateway.byokKeys.store(poor.id, { vendor: 'text', value: OWN, fallback: false, origin: originAt('text') }, BY)
  assert.equal((await usageOf(await chat(poor, { model: 'flat', max_tokens: undefined }))).charged, '5')
  const short = await chat(poor, { model: 'flat' })
  assert.equal(short.status, 402)
  assert.equal(short.headers.get('x-tollgate-required'), '5')
})

test('a video goes by the own key from order to end and costs its fee; without fallback a refused key fails it, free of charge', async () => {
  await bring('films')
  const order = { model: 'videogen-2.0', prompt: 'A sea.', duration: 5, resolution: '720p' }
  const ended = async (by = owner) => {
    const made = await g.call('/v1/video/seedance', by.key, order)
    const { data } = (await made.json()) as { data: { jobId: string } }
    const job = await until(
      async () => {
        const answer = await g.call(`/v1/jobs/${data.jobId}`, by.key)
        return ((await answer.json()) as { data: { status: string; error?: { message: string } } }).data
      },
      ({ status }) => /COMPLETED|FAILED/.test(status),
    )
    const text =
      'select u.charged, u.held, u.credential, u.cost, u.status as code from usage u join job j on j.hold_id = u.id where j.id = $1'
    const [row] = await g.sql<{
      charged: bigint
      held: bigint
      credential: string | null
      cost: bigint | null
      code: number
    }>(text, [data.jobId])
    return { ...job, ...row }
  }
  const { status, charged, held, credential, cost } = await ended()
  assert.equal(status, 'COMPLETED')
  assert.deepEqual([charged, held, credential, cost], [micro('3.5'), micro('3.5'), 'own', 0n])
  assert.deepEqual(new Set(films.keysAsked()), new Set([OWN]))
  films.moods.set(OWN, { status: 401 })
  const refused = await ended()
  assert.equal(refused.status, 'FAILED')
  assert.match(refused.error?.message ?? '', /does not accept this account's BYOK key for "films"/)
  assert.equal(refused.charged, 0n)
  // Longer than a job waits to be taken: it ends as any call does that meets a limit.
  const LIMITED = { status: 429, retryAfter: 600 }
  films.moods.set(OWN, LIMITED).set(HOUSE, LIMITED)
  const limits = [/BYOK key for "films" is at its rate limit/, /^The vendor is at its rate limit/]
  for (const [turn, by] of [owner, other].entries()) {
    const limited = await ended(by)
    assert.deepEqual([limited.status, limited.charged, limited.code], ['FAILED', 0n, 429])
    assert.match(limited.error?.message ?? '', limits[turn]!)
  }
  films.moods.set(HOUSE, WORKS)
  await bring('films', true)
  const fallen = await ended()
  assert.deepEqual([fallen.status, fallen.charged, fallen.credential], ['COMPLETED', micro('35'), null])
  assert.deepEqual(await problems(), [])
})

test('a video that waits for the own key never goes by the house’s credential, for which only the fee is held, when the key is taken away', async () => {
  await bring('films')
  films.moods.set(OWN, { status: 429, retryAfter: 1 })
  const order = { model: 'videogen-2.0', prompt: 'A sea.', duration: 5, resolution: '720p' }
  const made = await g.call('/v1/video/seedance', owner.key, order)
  const { data } = (await made.json()) as { data: { jobId: string } }
  const submissions = async () => {
    const [row] = await g.sql<{ submissions: number; waits: boolean }>(
      'select submissions, submit_started_at is null as waits from job where id = $1',
      [data.jobId],
    )
    return row?.waits ? row.submissions : 0
  }
  await until(() => submissions(), above(0))
  await g.operator('DELETE', `/accounts/${owner.id}/byok-keys/films`)
  // It is looked at again after the second that the vendor asked for.
  const looks = async () =>
    (await g.sql<{ version: number }>('select version from job where id = $1', [data.jobId]))[0]?.version ?? 0
  const before = await looks()
  await until(looks, above(before + 2))
  assert.deepEqual(new Set(films.keysAsked()), new Set([OWN]))
  const cancelled = await g.call(`/v1/jobs/${data.jobId}`, owner.key, undefined, { method: 'DELETE' })
  assert.equal(cancelled.status, 200)
})

test('a charge by a BYOK key that does not fit its fee is found by the verification', async () => {
  await bring('text')
  const { id } = await usageOf(await chat(owner))
  const { database } = g.gateway
  const row = [owner.id, id.slice('req_'.length)]
  await database.query({ text: 'update usage set credential = null where account_id = $1 and id = $2' }, row)
  assert.match(String(await problems()), /for such a call has the rates/)
  await database.query({ text: `update usage set credential = 'own' where account_id = $1 and id = $2` }, row)
  assert.deepEqual(await problems(), [])
})

async function stateOf(vendor: string): Promise<VendorView> {
  const { data } = await g.operator<Page<VendorView>>('GET', '/vendors')
  return data.items.find(({ name }) => name === vendor) ?? assert.fail(vendor)
}
