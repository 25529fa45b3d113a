// Top-ups of purses by the account's own Stripe (a scripted server with the real shapes) and by test payments: from the
// checkout to the credits and back.

import Stripe from 'stripe'
import { openedAlerts } from '../../../test/alerts.ts'
import { assert, atOnce, needs, pluck, test } from '../../../test/gateway.ts'
import { logoPng } from '../../../test/invoice-shapes.ts'
import { seller } from '../../../test/seller.ts'
import { STRIPE_KEY, STRIPE_SECRET, type StripeEvent, sendStripe } from '../../../test/stripe-server.ts'
import type { Queryable } from '../../database/database.ts'
import { silentLog } from '../../kernel/log.ts'
import { realWorld } from '../../kernel/world.ts'
import type { AlertView } from '../alerts/views.ts'
import { createReconciliations } from '../billing/payments/reconcile.ts'
import type { ReconciliationView } from '../billing/payments/views.ts'
import { purses } from './extension.ts'
import { verifyTopUps } from './verify-topups.ts'
import type { NewSessionView, PurseView, TopUpView } from './views.ts'

const OTHER_SECRET = 'whsec_ffffffffffffffffffffffffffffffff'
const SOLD = { currency: 'EUR', pricePerCredit: '0.01', minimum: '1.00', maximum: '500.00' }
const { stripe, gateway: g, child } = seller({ ...SOLD, packs: [] })

type Reseller = { readonly id: string; readonly key: string }

async function reseller(secret = STRIPE_SECRET): Promise<Reseller> {
  const { id, key } = await g.account({ credits: 100_000_000n })
  const secrets = { stripe: STRIPE_KEY, 'stripe-webhook': secret }
  const set = await g.operator('PATCH', `/accounts/${id}/purse-payments`, { provider: 'stripe', ...SOLD, secrets })
  assert.equal(set.status, 200, JSON.stringify(set.data))
  for (const purse of ['ann', 'bob']) assert.equal((await asked({ key }, '/v1/purses', { id: purse })).status, 200)
  return { id, key }
}

async function asked<T = { message: string }>(
  { key }: { readonly key: string },
  path: string,
  body?: unknown,
  headers = {},
) {
  const answer = await g.call(path, key, body, { headers })
  const { data, error } = (await answer.json()) as { data: T; error: T }
  return { status: answer.status, data: data ?? error }
}

async function begin(by: Reseller, amount = '20.00') {
  const { status, data } = await asked<{ id: string; url: string; credits: string }>(by, '/v1/purses/ann/topups', {
    amount,
  })
  assert.equal(status, 200, JSON.stringify(data))
  return { ...data, session: data.url.split('/').at(-1) ?? '' }
}

const send = (event: StripeEvent, account: string, url = g.url) =>
  sendStripe(`${url}/webhooks/purses/${account}`, event)

async function paid(by: Reseller, amount?: string) {
  const { id, session } = await begin(by, amount)
  const intent = stripe.pay(session)
  assert.equal(await send(stripe.event('payment_intent.succeeded', intent), by.id), 200)
  return { id, intent }
}

const balance = async (by: Reseller, purse = 'ann') => (await asked<PurseView>(by, `/v1/purses/${purse}`)).data.balance
const read = async (by: Reseller, id: string) => (await asked<TopUpView>(by, `/v1/purses/ann/topups/${id}`)).data

test('what a customer paid by the account’s own Stripe is put into the purse once, however its events come', async () => {
  const by = await reseller()
  const { id, session, credits } = await begin(by)
  assert.equal(credits, '2000')
  const { metadata } = stripe.sessions.get(session)?.asked.payment_intent_data ?? {}
  assert.deepEqual([metadata.tollgate_payment, metadata.tollgate_account], [id, by.id])
  assert.equal((await read(by, id)).state, 'pending')
  const intent = stripe.pay(session)
  const events = ['charge.succeeded', 'payment_intent.succeeded', 'charge.updated'].map((type) =>
    stripe.event(type, type.startsWith('charge') ? intent.latest_charge : intent),
  )
  const statuses = await Promise.all([...events, ...events, ...events].map((event) => send(event, by.id)))
  assert.deepEqual(new Set(statuses), new Set([200]))
  assert.equal(await balance(by), '2000')
  const shown = await read(by, id)
  assert.deepEqual([shown.state, shown.amount, shown.providerId], ['paid', '20.00', intent.id])
  assert.equal(await balance(by, 'bob'), '0')
  // The money is the account's own: its balance here stays.
  assert.equal((await g.balance(by.id)).posted, 100_000_000n)
  const [stored] = await g.sql<{ text: string }>(
    'select sealed::text || settings::text as text from purse_payments where account_id = $1',
    [by.id],
  )
  assert.ok(
    stored && !stored.text.includes(STRIPE_KEY) && !stored.text.includes(Buffer.from(STRIPE_KEY).toString('hex')),
  )
  const data = await g.ask<object>('GET', `/accounts/${by.id}/purse-payments`)
  assert.ok(!JSON.stringify(data).includes(STRIPE_KEY))
})

test('a report that another account’s secret signed changes nothing, nor does one about another account or that nobody asked for', async () => {
  const [by, other] = [await reseller(), await reseller(OTHER_SECRET)]
  const { session } = await begin(by)
  const intent = stripe.pay(session)
  const good = stripe.event('payment_intent.succeeded', intent)
  const signature = Stripe.webhooks.generateTestHeaderString({ payload: good.body, secret: OTHER_SECRET })
  assert.equal(await send({ ...good, signature }, by.id), 401)
  assert.equal(await send(good, other.id), 401)
  assert.equal(await send({ ...good, signature }, other.id), 200)
  assert.equal(await send(good, 'acc_nobody'), 404)
  assert.deepEqual([await balance(by), await balance(other)], ['0', '0'])
  // The account may sell other things by the same Stripe account.
  const stranger = stripe.strange({ amount: 777, amount_received: 777 })
  assert.equal(await send(stripe.event('payment_intent.succeeded', stranger), by.id), 200)
  assert.deepEqual((await g.ask<{ items: TopUpView[] }>('GET', `/accounts/${other.id}/purse-topups`)).items, [])
  assert.equal((await g.ask<{ items: TopUpView[] }>('GET', `/accounts/${by.id}/purse-topups`)).items.length, 1)
  assert.equal(await send(good, by.id), 200)
  assert.equal(await balance(by), '2000')
})

test('another amount or currency than was asked for is quarantined with its reason, and a second payment for the same too', async () => {
  const by = await reseller()
  for (const [change, reason] of [
    [{ amount: 100, amount_received: 100 }, /should be 20\.00 EUR, but is 1\.00 EUR/],
    [{ currency: 'usd' }, /should be 20\.00 EUR, but is 20\.00 USD/],
  ] as const) {
    const { id, session } = await begin(by)
    assert.equal(await send(stripe.event('payment_intent.succeeded', stripe.pay(session, change)), by.id), 200)
    const { state, reason: said } = await read(by, id)
    assert.equal(state, 'quarantined')
    assert.match(said ?? '', reason)
  }
  assert.equal(await balance(by), '0')
  const { id } = await paid(by)
  const metadata = { tollgate_payment: id, tollgate_account: by.id }
  const again = stripe.strange({ amount: 2000, amount_received: 2000, metadata })
  for (const _ of [1, 2]) await send(stripe.event('payment_intent.succeeded', again), by.id)
  assert.equal(await balance(by), '2000')
  const data = await g.ask<{ items: TopUpView[] }>('GET', `/accounts/${by.id}/purse-topups?state=quarantined`)
  assert.equal(data.items.length, 3)
  assert.match(data.items[0]?.reason ?? '', /paid already/)
  for (const [order, message] of [
    [{ amount: '0.50' }, /between 1\.00 and 500\.00 EUR/],
    [{ amount: '20.00', currency: 'USD' }, /must be EUR/],
    [{ amount: '20.00', returnUrl: 'javascript:alert(1)' }, /http/],
  ] as const) {
    const { status, data: fault } = await asked(by, '/v1/purses/ann/topups', order)
    assert.equal(status, 400)
    assert.match(fault.message, message)
  }
})

test('a refund takes back what no call holds and no more, and a dispute that is won returns what it took', async () => {
  const by = await reseller()
  const { id, intent } = await paid(by)
  stripe.refund(intent.id, 500)
  const refunded = stripe.event('charge.refunded', intent.latest_charge)
  for (const _ of [1, 2]) assert.equal(await send(refunded, by.id), 200)
  assert.equal(await balance(by), '1500')
  // Most of the rest is spent.
  assert.equal((await asked(by, '/v1/purses/ann/grants', { credits: '-1400' })).status, 200)
  const all = await g.operator<TopUpView>('POST', `/accounts/${by.id}/purse-topups/${id}/refund`, {})
  assert.deepEqual(
    [all.status, all.data.state, all.data.creditsTaken, all.data.creditsLost],
    [200, 'refunded', '600', '1400'],
  )
  assert.equal(await balance(by), '0')
  assert.equal((await g.operator('POST', `/accounts/${by.id}/purse-topups/${id}/refund`, {})).status, 409)
  const second = await paid(by)
  stripe.dispute(second.intent.id, 'needs_response')
  await send(stripe.event('charge.dispute.created', second.intent), by.id)
  assert.deepEqual([await balance(by), (await read(by, second.id)).state], ['0', 'disputed'])
  stripe.dispute(second.intent.id, 'won')
  await send(stripe.event('charge.dispute.closed', second.intent), by.id)
  assert.deepEqual([await balance(by), (await read(by, second.id)).state], ['2000', 'paid'])
})

test('a payment whose events were lost is found when somebody looks, and a process that is killed after the grant grants nothing twice', async () => {
  const by = await reseller()
  const lost = await begin(by)
  stripe.pay(lost.session)
  assert.equal((await read(by, lost.id)).state, 'paid')
  const { session } = await begin(by)
  const event = stripe.event('payment_intent.succeeded', stripe.pay(session))
  const process = child(1)
  const url = await new Promise<string>((resolve) => process.once('message', (message) => resolve(String(message))))
  const gone = new Promise<string | null>((resolve) => process.once('exit', (_, signal) => resolve(signal)))
  await assert.rejects(send(event, by.id, url))
  assert.equal(await gone, 'SIGKILL')
  assert.equal(await balance(by), '4000')
  assert.equal(await send(event, by.id), 200)
  assert.equal(await balance(by), '4000')
})

test('a test payment tops up, opens for nobody else, and brings nothing where it was declined', async () => {
  const by = await reseller()
  const set = await g.operator('PATCH', `/accounts/${by.id}/purse-payments`, { provider: 'simulated' })
  assert.equal(set.status, 200, JSON.stringify(set.data))
  const pay = async (outcome: string) => {
    const { id, url } = await begin(by)
    assert.match(await (await fetch(url)).text(), /2000 credits/)
    const body = new URLSearchParams({ outcome })
    const answer = await fetch(url, { method: 'POST', body, redirect: 'manual' })
    assert.equal(answer.status, 303, await answer.text())
    assert.ok(answer.headers.get('location')?.endsWith(`/purse?topup=${id}`))
    return (await read(by, id)).state
  }
  assert.equal(await pay('failed'), 'failed')
  assert.equal(await pay('paid'), 'paid')
  assert.equal(await balance(by), '2000')
  const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) }
  const forged = await fetch(`${g.url}/webhooks/purses/${by.id}`, { method: 'POST', headers, body: '{}' })
  assert.equal(forged.status, 401)
})

test('a session token tops up its own purse and sees no other, from its own sites only; a link to the page makes no calls', async () => {
  const by = await reseller()
  const site = 'https://shop.example'
  const { data } = await asked<NewSessionView>(by, '/v1/purses/ann/sessions', { origins: [site] })
  const session = { key: data.token }
  const from = { origin: site }
  const order = { amount: '5.00', returnUrl: `${site}/done` }
  const begun = await asked<{ id: string; url: string }>(session, '/v1/purse/topups', order, from)
  assert.equal(begun.status, 200, JSON.stringify(begun.data))
  assert.equal((await asked(session, '/v1/purse/topups', order, { origin: 'https://evil.example' })).status, 403)
  const away = await asked(session, '/v1/purse/topups', { ...order, returnUrl: 'https://evil.example' }, from)
  assert.equal(away.status, 400)
  const intent = stripe.pay(begun.data.url.split('/').at(-1) ?? '')
  await send(stripe.event('payment_intent.succeeded', intent), by.id)
  const seen = await asked<{ state: string }>(session, `/v1/purse/topups/${begun.data.id}`, undefined, from)
  assert.equal(seen.data.state, 'paid')
  assert.equal(await balance(by), '500')
  const link = await asked<{ url: string }>(by, '/v1/purses/bob/page', {})
  const [address = '', token = ''] = link.data.url.split('#')
  const bob = { key: token }
  assert.equal((await asked(bob, `/v1/purse/topups/${begun.data.id}`)).status, 404)
  const own = await asked<object>(session, '/v1/purse/page', undefined, from)
  assert.equal(own.status, 200)
  assert.doesNotMatch(JSON.stringify(own.data), /charged|reference|note|actor|bob/)
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }
  assert.equal((await asked(bob, '/v1/chat/completions', body)).status, 403)
  for (const path of ['/v1/purses', '/v1/purses/ann', '/v1/account', '/v1/purses/bob/topups'])
    assert.ok([401, 403].includes((await asked(bob, path)).status), path)
  const page = await fetch(address)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'; script-src 'self'/)
  assert.ok(!(await page.text()).includes(by.id))
  const widget = await fetch(`${g.url}/purse/widget.js`)
  assert.deepEqual([widget.status, widget.headers.get('access-control-allow-origin')], [200, '*'])
})

test('the settings name what is missing, and only a whole connection is stored', async () => {
  const { id, key } = await g.account()
  assert.equal((await asked({ key }, '/v1/purses', { id: 'ann' })).status, 200)
  assert.equal((await asked({ key }, '/v1/purses/ann/topups', { amount: '5.00' })).status, 409)
  const wide = logoPng()
  wide.writeUInt32BE(1_001, 16)
  for (const [input, message] of [
    [{ provider: 'stripe', ...SOLD }, /both secrets/],
    [{ provider: 'simulated', ...SOLD, pricePerCredit: '0' }, /pricePerCredit: must be an amount of money above 0/],
    [{ provider: 'simulated', currency: 'EUR', pricePerCredit: '1', maximum: '5' }, /minimum: is missing/],
    [{ provider: 'simulated' }, /say what is sold/],
    [{ color: '#ffff00' }, /cannot be read on light pages/],
    [{ logo: 'bm8gcGljdHVyZQ==' }, /PNG or JPEG/],
    [{ logo: wide.toString('base64') }, /at most 1000 pixels/],
    [{ secrets: { stripe: 'pk_live_0123456789' } }, /secret or restricted key/],
  ] as const) {
    const { status, data } = await g.operator<{ message: string }>('PATCH', `/accounts/${id}/purse-payments`, input)
    assert.deepEqual([status, message.test(data.message)], [400, true], data.message)
  }
  const reserved = await asked({ key }, '/v1/purses/ann/grants', { credits: '1', reference: 'top_01' })
  assert.equal(reserved.status, 400)
})

test(
  'every night top-ups are compared with the list of the account’s own Stripe, once, and the account is told what nobody can explain',
  needs('alerts'),
  async () => {
    const by = await reseller()
    const lost = await begin(by)
    const unheard = stripe.pay(lost.session)
    const known = await paid(by, '5.00')
    stripe.refund(known.intent.id, 200)
    const gone = await paid(by, '6.00')
    stripe.intents.delete(gone.intent.id)
    const forgotten = await begin(by, '7.00')
    const stray = stripe.pay(forgotten.session)
    await g.sql('delete from purse_topup where id = $1', [forgotten.id])
    // By the same account at Stripe, for the gateway itself and for nobody here.
    await paid(await reseller(), '8.00')
    const { database } = g.gateway
    const { topUps } = g.gateway.opened(purses)
    const tomorrow = new Date(Date.now() + 86_400_000).setUTCHours(3)
    const process = (nowMs: number) =>
      createReconciliations({
        database,
        log: silentLog,
        world: { ...realWorld, nowMs: () => nowMs },
        payments: { ...topUps.reconciled, owners: async () => [by.id] },
      })
    await process(new Date(tomorrow).setUTCHours(1)).tick()
    await atOnce(3, () => process(tomorrow).tick())
    const path = `/accounts/${by.id}/purse-reconciliations`
    const { items } = await g.ask<{ items: ReconciliationView[] }>('GET', path)
    assert.equal(items.length, 1)
    const found = new Map(items[0]?.differences.map((one) => [one.providerId, one]))
    assert.deepEqual(new Set(found.keys()), new Set([unheard.id, known.intent.id, gone.intent.id, stray.id]))
    assert.match(found.get(unheard.id)?.problem ?? '', /it is paid, and was pending/)
    assert.match(found.get(known.intent.id)?.problem ?? '', /2\.00 EUR were refunded/)
    assert.deepEqual([found.get(unheard.id)?.corrected, found.get(stray.id)?.corrected], [true, false])
    assert.equal(found.get(gone.intent.id)?.problem, 'It is paid here, but Stripe does not list it.')
    assert.equal(await balance(by), '2900')
    const odd = await begin(by, '9.00')
    const intent = stripe.pay(odd.session, { amount_received: 100, amount: 100 })
    await send(stripe.event('payment_intent.succeeded', intent), by.id)
    assert.equal((await read(by, odd.id)).state, 'quarantined')
    const alerts = async () => {
      await openedAlerts(g).look()
      const all = await g.operator<{ items: AlertView[] }>('GET', `/accounts/${by.id}/alerts`)
      return all.data.items.filter(({ rule }) => rule === 'topup').map(({ subject }) => subject)
    }
    assert.deepEqual(new Set(await alerts()), new Set([odd.id, items[0]?.id]))
    assert.equal((await alerts()).length, 2)
    const again = await g.operator<ReconciliationView>('POST', path, {})
    assert.deepEqual(new Set(pluck(again.data.differences, 'providerId')), new Set([gone.intent.id, stray.id]))
    const own = await g.operator<{ items: ReconciliationView[] }>('GET', '/reconciliations')
    assert.deepEqual(own.data.items, [])
    const { id: other } = await g.account()
    assert.equal((await g.operator('POST', `/accounts/${other}/purse-reconciliations`, {})).status, 409)
  },
)

class Undone extends Error {}

const CORRUPTIONS: ReadonlyArray<readonly [change: string, said: RegExp]> = [
  [`set id = 'top_other' where $1`, /has .* of a top-up that does not exist/],
  [`set purse_id = 'bob' where $1`, /put 0 micro-credits into bob, but stands for 2000000000/],
  [`set price_minor = price_minor - 1 where $1`, /for another amount than was asked for/],
  [`set amount_minor = amount_minor + 1 where $1`, /for another amount than was asked for/],
  [`set credits = credits + 1 where $1`, /put 2000000000 micro-credits into ann, but stands for 2000000001/],
  [`set state = 'disputed' where $1`, /is disputed, but its money says otherwise/],
  [`set granted = false where $1`, /put credits into ann, and is paid/],
  [`set refunded_minor = refunded_minor + 1 where $1`, /its money that went back says otherwise/],
  [`set disputed_minor = 100, dispute = 'open' where $1`, /is paid, but its money says otherwise/],
  [`set dispute = 'lost', disputed_minor = 100 where $1`, /is paid, but its money says otherwise/],
  [`set taken = taken - 1, lost = 1 where $1`, /took back 499999999 micro-credits, but 500000000 by its movements/],
  [`set lost = 1 where $1`, /took back 500000000 and lost 1 micro-credits/],
]
const EXCUSED = 'account_id provider provider_id currency reason reference as_of created_at paid_at'.split(' ')

test('what somebody does to a top-up by hand is found in each of its columns', async () => {
  const by = await reseller()
  const { id, intent } = await paid(by)
  stripe.refund(intent.id, 500)
  await send(stripe.event('charge.refunded', intent.latest_charge), by.id)
  const problemsAfter = async (change: string | undefined) => {
    let found: readonly string[] = []
    await g.gateway.database
      .transaction(async (tx: Queryable) => {
        if (change) await tx.query({ text: `update purse_topup ${change.replace('$1', `id = '${id}'`)}` })
        found = await verifyTopUps(tx, by.id)
        throw new Undone()
      })
      .catch((error: unknown) => {
        if (!(error instanceof Undone)) throw error
      })
    return found.join(' ')
  }
  assert.equal(await problemsAfter(undefined), '')
  for (const [change, said] of CORRUPTIONS) assert.match(await problemsAfter(change), said, change)
  const columns = await g.sql<{ name: string }>(
    `select attname::text as name from pg_attribute where attrelid = 'purse_topup'::regclass and attnum > 0 and not attisdropped`,
  )
  const changed = CORRUPTIONS.flatMap(([change]) => [...change.matchAll(/(\w+) = /g)].map(([, column]) => column))
  assert.deepEqual(
    columns.filter(({ name }) => !changed.includes(name) && !EXCUSED.includes(name)),
    [],
  )
})
