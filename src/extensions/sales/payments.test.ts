// Payments, from the purchase to the credits: by Stripe (a scripted server with the real shapes) and by a provider that
// only sends signed webhooks.

import { openedAlerts } from '../../../test/alerts.ts'
import { commandLineOf } from '../../../test/command-line.ts'
import { assert, isOff, OPERATOR_TOKEN, pluck, test, until } from '../../../test/gateway.ts'
import { seller, tell, WEBHOOK_SECRET } from '../../../test/seller.ts'
import { STRIPE_KEY, STRIPE_SECRET, type StripeEvent, sendStripe } from '../../../test/stripe-server.ts'
import { newId, realWorld } from '../../kernel/world.ts'
import { releaseOf } from '../../ledger/operation.ts'
import { checkStep } from '../billing/payments/amounts.ts'
import type { ReconciliationView } from '../billing/payments/views.ts'
import { sales as selling } from './extension.ts'
import type { PaymentView, SalesView } from './views.ts'

const SALES = {
  currency: 'EUR',
  pricePerCredit: '0.01',
  minimum: '5.00',
  maximum: '1000.00',
  packs: [
    { id: 'starter', name: 'Starter', price: '20.00', credits: '2200' },
    { id: 'trial', name: 'Trial', price: '1.00', credits: '50', endsAfterDays: 30 },
  ],
}
const ONE = 1_000_000n

const { stripe, gateway, start } = seller(SALES)
const balance = async (account: string) => (await gateway.balance(account)).posted
const newAccount = async () => (await gateway.account({ credits: 0n })).id

async function buy(account: string, order: object): Promise<{ payment: string; session: string }> {
  const { status, data } = await gateway.operator<{ payment: string; url: string }>(
    'POST',
    `/accounts/${account}/purchases`,
    order,
  )
  assert.equal(status, 200, JSON.stringify(data))
  return { payment: data.payment, session: data.url.split('/').at(-1) ?? '' }
}

const send = (event: StripeEvent) => sendStripe(`${gateway.url}/webhooks/stripe`, event)

async function paid(account: string, order: object = { pack: 'starter' }) {
  const { payment, session } = await buy(account, order)
  const intent = stripe.pay(session)
  assert.equal(await send(stripe.event('payment_intent.succeeded', intent)), 200)
  return { payment, intent }
}

const cardsOf = (account: string) =>
  gateway.sql<{ method_id: string }>('select method_id from payment_customer where account_id = $1', [account])
const read = (payment: string) => gateway.ask<PaymentView>('GET', `/payments/${payment}`)

test('a pack that is paid by Stripe brings its credits once, however often and by whatever event it is told', async () => {
  const account = await newAccount()
  const { payment, session } = await buy(account, { pack: 'starter' })
  assert.equal((await read(payment)).state, 'pending')
  const asked = stripe.sessions.get(session)?.asked
  assert.equal(asked.line_items[0].price_data.unit_amount, '2000')
  assert.equal(asked.payment_intent_data.metadata.tollgate_payment, payment)
  const intent = stripe.pay(session)
  const events = [
    stripe.event('checkout.session.completed', { object: 'checkout.session', id: session, payment_intent: intent.id }),
    stripe.event('payment_intent.succeeded', intent),
    stripe.event('charge.succeeded', intent.latest_charge),
  ]
  const statuses = await Promise.all([...events, ...events, ...events].map((event) => send(event)))
  assert.deepEqual(new Set(statuses), new Set([200]))
  assert.equal(await balance(account), 2_200n * ONE)
  const shown = await read(payment)
  assert.deepEqual(
    [shown.state, shown.amount, shown.credits, shown.receiptUrl],
    ['paid', '20.00', '2200', intent.latest_charge.receipt_url],
  )
  const data = await gateway.ask<{ items: { kind: string; moved: string }[] }>('GET', `/accounts/${account}/ledger`)
  assert.deepEqual(pluck(data.items, 'kind', 'moved'), [['purchase', '2200']])
})

test('a free amount buys by the price of a credit, and what is out of bounds is refused with its bounds', async () => {
  const account = await newAccount()
  await paid(account, { amount: '12.34' })
  assert.equal(await balance(account), 1_234n * ONE)
  for (const [order, message] of [
    [{ amount: '4.99' }, /between 5\.00 and 1000\.00 EUR/],
    [{ amount: '12.345' }, /between 5\.00/],
    [{ pack: 'none' }, /there is no pack/],
    [{}, /either a pack or an amount/],
    [{ pack: 'starter', amount: '5.00' }, /either a pack or an amount/],
  ] as const) {
    const { status, data } = await gateway.operator<{ message: string }>(
      'POST',
      `/accounts/${account}/purchases`,
      order,
    )
    assert.equal(status, 400)
    assert.match(data.message, message)
  }
})

test('an event that nobody signed, that was signed long ago or is too large changes nothing', async () => {
  const account = await newAccount()
  const { session } = await buy(account, { pack: 'starter' })
  const intent = stripe.pay(session)
  const { body, signature } = stripe.event('payment_intent.succeeded', intent)
  assert.equal(await send({ body: body.replace('evt_', 'evt_x'), signature }), 401)
  assert.equal(await send({ body, signature: '' }), 401)
  assert.equal(await send({ body, signature: signature.replace(/v1=\w/, 'v1=z') }), 401)
  const old = signature.replace(/t=\d+/, `t=${Math.floor(Date.now() / 1000) - 600}`)
  assert.equal(await send({ body, signature: old }), 401)
  assert.equal(await send({ body: body.padEnd(300_000), signature }), 413)
  assert.equal(await send({ body: '', signature: '' }), 401)
  assert.equal(await balance(account), 0n)
  // A genuine one of which nothing is known is received and does nothing.
  assert.equal(await send(stripe.event('payout.paid', { object: 'payout', id: 'po_1' })), 200)
  assert.equal(await send({ body, signature }), 200)
  assert.equal(await balance(account), 2_200n * ONE)
})

test('an unknown price, currency, amount or account is quarantined, never granted, alerted, and can be accepted or dismissed', async () => {
  const account = await newAccount()
  const { payment, session } = await buy(account, { pack: 'starter' })
  stripe.pay(session, { amount: 100, amount_received: 100 })
  const less = stripe.intents.get(stripe.sessions.get(session)?.payment_intent) ?? assert.fail()
  assert.equal(await send(stripe.event('payment_intent.succeeded', less)), 200)
  const other = await buy(account, { pack: 'starter' })
  const yen = stripe.pay(other.session, { currency: 'jpy' })
  await send(stripe.event('payment_intent.succeeded', yen))
  const stranger = stripe.strange({ amount: 777, amount_received: 777 })
  await send(stripe.event('payment_intent.succeeded', stranger))
  const lost = stripe.strange({ amount: 500, amount_received: 500, metadata: { tollgate_account: 'acc_nobody' } })
  await send(stripe.event('payment_intent.succeeded', lost))
  assert.equal(await balance(account), 0n)
  const data = await gateway.ask<{ items: PaymentView[] }>('GET', '/payments?state=quarantined')
  const reasons = new Map(data.items.map(({ providerId, reason }) => [providerId, reason]))
  assert.match(reasons.get(less.id) ?? '', /should be 20\.00 EUR, but is 1\.00 EUR/)
  assert.match(reasons.get(yen.id) ?? '', /should be 20\.00 EUR, but is 2000 JPY/)
  assert.match(reasons.get(stranger.id) ?? '', /names no account/)
  assert.match(reasons.get(lost.id) ?? '', /There is no account acc_nobody/)
  if (!isOff('alerts')) {
    await openedAlerts(gateway).look()
    const alerts = await gateway.ask<{ items: { rule: string; subject: string }[] }>('GET', '/alerts')
    assert.ok(alerts.items.some(({ rule, subject }) => rule === 'payment' && subject === payment))
  }
  const accepted = await gateway.operator<PaymentView>('POST', `/payments/${payment}/accept`, {
    account,
    credits: '100',
  })
  assert.deepEqual([accepted.status, accepted.data.state], [200, 'paid'])
  assert.equal(await balance(account), 100n * ONE)
  assert.equal((await gateway.operator('POST', `/payments/${payment}/accept`, { account, credits: '100' })).status, 409)
  // Nor for an account that is closed or is not there, or money that went back.
  const accept = async (to: string, id = other.payment) =>
    (await gateway.operator('POST', `/payments/${id}/accept`, { account: to, credits: '1' })).status
  const closed = await newAccount()
  await gateway.operator('POST', `/accounts/${closed}/close`, { reason: 'a test', balance: 'writeoff' })
  assert.deepEqual([await accept(closed), await accept(`${account}_test`), await accept('acc_nobody')], [409, 404, 404])
  const [{ id: refunded } = assert.fail()] = data.items.filter(({ providerId }) => providerId === stranger.id)
  stripe.refund(stranger.id, 100)
  await send(stripe.event('charge.refunded', { object: 'charge', payment_intent: stranger.id }))
  assert.equal(await accept(account, refunded), 409)
  assert.equal(await balance(account), 100n * ONE)
  const dismissed = await gateway.operator<PaymentView>('POST', `/payments/${other.payment}/dismiss`)
  assert.deepEqual([dismissed.status, dismissed.data.state], [200, 'failed'])
  await send(stripe.event('payment_intent.succeeded', yen))
  assert.equal((await read(other.payment)).state, 'failed')
})

test('refunds and disputes take back what is left and book the rest as a loss; a dispute that is won gives it back', async () => {
  const account = await newAccount()
  const { payment, intent } = await paid(account)
  const half = await gateway.operator<PaymentView>('POST', `/payments/${payment}/refund`, { amount: '10.00' })
  assert.deepEqual(
    [half.status, half.data.state, half.data.refunded, half.data.creditsReversed],
    [200, 'paid', '10.00', '1100'],
  )
  assert.equal(await balance(account), 1_100n * ONE)
  const late = stripe.event('charge.refunded', intent.latest_charge)
  await gateway.operator('POST', `/accounts/${account}/credits`, { amount: '-1000', note: 'spent' })
  assert.equal((await gateway.operator('POST', `/payments/${payment}/refund`, { amount: '10.01' })).status, 400)
  const rest = await gateway.operator<PaymentView>('POST', `/payments/${payment}/refund`, {})
  assert.deepEqual([rest.data.state, rest.data.creditsReversed, rest.data.creditsLost], ['refunded', '1200', '1000'])
  assert.equal(await send(late), 200)
  assert.equal(await balance(account), 0n)
  assert.equal((await gateway.operator('POST', `/payments/${payment}/refund`, {})).status, 409)

  const second = await paid(account)
  stripe.dispute(second.intent.id, 'needs_response')
  await send(stripe.event('charge.dispute.created', { object: 'dispute', payment_intent: second.intent.id }))
  assert.equal((await read(second.payment)).state, 'disputed')
  assert.equal(await balance(account), 0n)
  stripe.dispute(second.intent.id, 'won')
  await send(stripe.event('charge.dispute.closed', { object: 'dispute', payment_intent: second.intent.id }))
  assert.equal((await read(second.payment)).state, 'paid')
  assert.equal(await balance(account), 2_200n * ONE)
})

test('a pack with an end becomes a lot that ends, and its refund takes back that lot', async () => {
  const account = await newAccount()
  const { payment } = await paid(account, { pack: 'trial' })
  const lots = () =>
    gateway.sql<{ source: string; remaining: bigint; days: number }>(
      `select source, remaining, round(extract(epoch from ends_at - now()) / 86400)::int as days from lot where account_id = $1`,
      [account],
    )
  assert.deepEqual(await lots(), [{ source: 'bought', remaining: 50n * ONE, days: 30 }])
  await paid(account, { amount: '5.00' })
  await gateway.operator('POST', `/payments/${payment}/refund`, {})
  assert.deepEqual(await lots(), [{ source: 'bought', remaining: 0n, days: 30 }])
  assert.equal(await balance(account), 500n * ONE)
})

test('events that come in the wrong order end as those in the right one: the refund first, then the payment', async () => {
  const account = await newAccount()
  const { payment, session } = await buy(account, { pack: 'starter' })
  const intent = stripe.pay(session)
  stripe.refund(intent.id, 500)
  assert.equal(await send(stripe.event('charge.refunded', intent.latest_charge)), 200)
  assert.equal(await send(stripe.event('payment_intent.succeeded', intent)), 200)
  assert.equal(await balance(account), 1_650n * ONE)
  assert.equal((await read(payment)).refunded, '5.00')
})

test('a provider that only sends signed webhooks sells the same: credits once, in any order, and quarantine', async () => {
  const account = await newAccount()
  const settings = {
    provider: 'webhook',
    checkoutUrl: 'https://pay.example/?p={payment}&a={amount}&c={currency}&r={return}',
  }
  assert.equal((await gateway.operator('PATCH', '/payment-settings', settings)).status, 200)
  try {
    const order = await gateway.operator<{ payment: string; url: string }>('POST', `/accounts/${account}/purchases`, {
      pack: 'starter',
    })
    const { payment, url } = order.data
    const query = new URL(url).searchParams
    assert.deepEqual([query.get('p'), query.get('a'), query.get('c')], [payment, '20.00', 'EUR'])
    assert.match(query.get('r') ?? '', new RegExp(`/a/${account}/buy\\?payment=${payment}$`))
    const data = { id: 'their-1', payment, currency: 'EUR', amount: '20.00', status: 'paid' }
    const options = { id: 'evt_a', timestamp: new Date(Date.now() - 5_000).toISOString() }
    const told = await Promise.all([
      tell(gateway, data, options),
      tell(gateway, data, options),
      tell(gateway, data, { ...options, id: 'evt_b' }),
    ])
    assert.deepEqual(pluck(told, 'status'), [200, 200, 200], told[0]?.text)
    assert.equal(await balance(account), 2_200n * ONE)
    // The newer word stands, whatever comes after it.
    const timestamp = new Date().toISOString()
    await tell(gateway, { ...data, refunded: '20.00' }, { timestamp })
    assert.equal(await balance(account), 0n)
    for (const at of [timestamp, '2026-01-01T00:00:00Z'])
      await tell(gateway, { ...data, refunded: '5.00' }, { timestamp: at })
    assert.equal((await read(payment)).state, 'refunded')
    // What nobody asked for here is sold by the catalog, or quarantined.
    await tell(gateway, { id: 'their-2', account, currency: 'EUR', amount: '7.00', status: 'paid' })
    assert.equal(await balance(account), 700n * ONE)
    await tell(gateway, { id: 'their-3', account, currency: 'USD', amount: '7.00', status: 'paid' })
    await tell(gateway, { id: 'their-4', account, offer: 'starter', currency: 'EUR', amount: '2.00', status: 'paid' })
    await tell(gateway, { id: 'their-5', account, offer: 'nothing', currency: 'EUR', amount: '20.00', status: 'paid' })
    assert.equal(await balance(account), 700n * ONE)
    const refused = { ...data, id: 'their-6', account: await newAccount() }
    await tell(gateway, refused)
    assert.equal(await balance(refused.account), 0n)
    assert.equal((await tell(gateway, refused, { key: Buffer.alloc(32, 8) })).status, 401)
    assert.equal((await tell(gateway, refused, { atMs: Date.now() - 400_000 })).status, 401)
    assert.equal((await tell(gateway, { ...refused, amount: '1e9' })).status, 400)
    assert.equal((await tell(gateway, { ...refused, currency: 'euro' })).status, 400)
    assert.equal((await tell(gateway, refused, { timestamp: '2099-01-01T00:00:00Z' })).status, 400)
  } finally {
    await gateway.operator('PATCH', '/payment-settings', { provider: 'stripe' })
  }
})

test('automatic top-up charges a saved card when the balance is low, once for all processes, and stops at its ceiling', async () => {
  const account = await newAccount()
  const { intent } = await paid(account, { amount: '5.00', saveCard: true })
  assert.equal(intent.setup_future_usage, 'off_session')
  const sales = await gateway.operator<SalesView>('GET', `/accounts/${account}/sales`)
  assert.deepEqual(sales.data.card, { brand: 'visa', last4: '4242', expires: '2030-12' })
  const input = { below: '600', amount: '10.00', ceiling: '25.00' }
  const charges = () => stripe.asked.filter((one) => one === 'POST /v1/payment_intents').length
  // From here on a gateway may charge at any moment, by a look of its own.
  const before = charges()
  assert.equal((await gateway.operator('PUT', `/accounts/${account}/top-up`, input)).status, 200)
  const second = await start()
  try {
    const look = async () => {
      const both = [gateway.gateway.opened(selling).sales.topUps, second.gateway.opened(selling).sales.topUps]
      await Promise.all([...both, ...both].map((one) => one.look()))
    }
    // The gateways look by themselves too: whoever charged first may still be at it.
    const becomes = (credits: bigint) => until(() => balance(account), credits * ONE)
    await look()
    await becomes(1_500n)
    assert.equal(charges(), before + 1)
    await look()
    assert.equal(charges(), before + 1, 'a balance that is high enough is left alone')
    const running = { account, key: 'key_1', product: 'alpha-5.4', catalogVersion: 1, tokens: 0 }
    const call = { ...running, id: newId(realWorld), want: 1_400n * ONE, floor: 1_400n * ONE }
    assert.equal((await gateway.gateway.ledger.reserve(call)).outcome, 'held')
    await look()
    assert.equal(charges(), before + 1, 'what running calls hold is no reason to charge a card')
    await gateway.gateway.ledger.resolve(releaseOf(call))
    await gateway.operator('POST', `/accounts/${account}/credits`, { amount: '-1400', note: 'spent' })
    await look()
    await becomes(1_100n)
    await gateway.operator('POST', `/accounts/${account}/credits`, { amount: '-1000', note: 'spent' })
    const topUp = async () => (await gateway.ask<SalesView>('GET', `/accounts/${account}/sales`)).topUp
    // Whoever made the second charge has granted its credits a moment before it asks again.
    await until(async () => {
      await look()
      return (await topUp())?.problem === 'The ceiling of 25.00 EUR for this month is reached.'
    })
    assert.equal(await balance(account), 100n * ONE, 'a third charge would exceed the ceiling')
    assert.equal(charges(), before + 2)
    assert.equal((await topUp())?.used, '20.00')
    stripe.declines = 'Your card was declined.'
    await gateway.operator('PUT', `/accounts/${account}/top-up`, { ...input, ceiling: '100.00' })
    await look()
    await until(async () => (await topUp())?.problem, 'Your card was declined.')
    await look()
    assert.equal(charges(), before + 3, 'a declined card is not tried again at once')
    assert.equal((await gateway.operator('DELETE', `/accounts/${account}/top-up`)).status, 200)
  } finally {
    stripe.declines = undefined
    await second.close()
  }
})

test('the ceiling of automatic top-up counts the tax that Stripe adds', async () => {
  const account = await newAccount()
  await paid(account, { amount: '5.00', saveCard: true })
  await gateway.operator('PATCH', '/payment-settings', { tax: 'exclusive' })
  try {
    const before = stripe.intents.size
    const input = { below: '600', amount: '10.00', ceiling: '11.00' }
    assert.equal((await gateway.operator('PUT', `/accounts/${account}/top-up`, input)).status, 200)
    const problem = async () => (await gateway.ask<SalesView>('GET', `/accounts/${account}/sales`)).topUp?.problem
    await gateway.gateway.opened(selling).sales.topUps.look()
    await until(() => problem(), 'The ceiling of 11.00 EUR for this month is reached.')
    assert.deepEqual([stripe.intents.size, await balance(account)], [before, 500n * ONE])
    await gateway.operator('PUT', `/accounts/${account}/top-up`, { ...input, ceiling: '11.90' })
    await gateway.gateway.opened(selling).sales.topUps.look()
    await until(() => balance(account), 1_500n * ONE)
    await gateway.operator('DELETE', `/accounts/${account}/top-up`)
  } finally {
    await gateway.operator('PATCH', '/payment-settings', { tax: 'off' })
  }
})

test('a card is saved without a purchase, an old payment does not bring its card back, and the portal is the customer’s own', async () => {
  const account = await newAccount()
  const card = async () => (await gateway.ask<SalesView>('GET', `/accounts/${account}/sales`)).card?.last4
  const page = async (name: string) =>
    (await gateway.operator<{ url: string }>('POST', `/accounts/${account}/${name}`)).data.url
  const session = (await page('card')).split('/').at(-1) ?? ''
  const { mode, customer } = stripe.sessions.get(session) ?? assert.fail()
  assert.equal(mode, 'setup')
  assert.equal(await page('portal'), `${stripe.url}/portal?customer=${customer}`)
  stripe.webhook = { url: `${gateway.url}/webhooks/stripe`, secret: STRIPE_SECRET }
  try {
    // The click on "Save card", and the event that follows.
    await fetch(`${stripe.url}/pay/${session}`, { method: 'POST', redirect: 'manual' })
  } finally {
    stripe.webhook = undefined
  }
  assert.equal(await card(), '4242')
  const { intent } = await paid(account, { amount: '5.00', saveCard: true })
  const [bought] = await cardsOf(account)
  await gateway.sql(
    `update payment_customer set method_id = 'pm_newer', card = card || '{"last4": "9999"}' where account_id = $1`,
    [account],
  )
  // Looked at again by an event, a refund and the night's comparison.
  await send(stripe.event('charge.updated', intent.latest_charge))
  await gateway.operator('POST', '/reconciliations', {})
  assert.deepEqual([await card(), intent.payment_method.id], ['9999', bought?.method_id])
})

test('amounts that Stripe does not take are rejected, and those of odd currencies arrive as they were meant', async () => {
  const { createStripe } = await import('../billing/payments/stripe.ts')
  const provider = createStripe({
    world: realWorld,
    baseUrl: stripe.url,
    apiKey: () => STRIPE_KEY,
    webhookSecret: () => STRIPE_SECRET,
    tax: async () => 'off',
  })
  assert.deepEqual(
    ['EUR', 'JPY', 'KWD', 'MGA'].map((currency) => provider.step(currency)),
    [1n, 1n, 10n, 100n],
  )
  const asked = async (currency: string, priceMinor: bigint) => {
    const purchase = { payment: `pay_${currency}`, account: 'acc_1', name: 'x', currency, priceMinor }
    const options = { customer: null, email: null, saveCard: false, returnUrl: 'https://gateway.example/' }
    const { reference } = await provider.checkout(purchase, options)
    const intent = stripe.pay(reference ?? '')
    const facts = await provider.remote?.read({ providerId: intent.id, reference: null })
    stripe.intents.delete(intent.id)
    return [intent.amount, facts?.amountMinor]
  }
  assert.deepEqual(await asked('MGA', 500_000n), [5_000, 500_000n])
  assert.deepEqual(await asked('UGX', 5_000n), [500_000, 5_000n])
  assert.deepEqual(await asked('KWD', 1_250n), [1_250, 1_250n])
  assert.throws(() => checkStep(provider, 'KWD', 1_255n), /takes only multiples of 0\.010 KWD/)
})

test('a refund stops automatic top-up, and a test account has neither card nor top-up', async () => {
  const account = await newAccount()
  const { payment } = await paid(account, { amount: '5.00', saveCard: true })
  const input = { below: '100', amount: '10.00', ceiling: '100.00' }
  assert.equal((await gateway.operator('PUT', `/accounts/${account}/top-up`, input)).status, 200)
  assert.equal((await gateway.operator('POST', `/payments/${payment}/refund`, {})).status, 200)
  const before = stripe.asked.length
  await gateway.gateway.opened(selling).sales.topUps.look()
  const charged = stripe.asked.slice(before).filter((one) => one === 'POST /v1/payment_intents')
  assert.deepEqual([charged, await balance(account)], [[], 0n])
  const data = await gateway.ask<SalesView>('GET', `/accounts/${account}/sales`)
  assert.match(data.topUp?.problem ?? '', /refunded or disputed/)
  const test = `${account}_test`
  for (const [method, path, body] of [
    ['POST', 'card', {}],
    ['PUT', 'top-up', input],
  ] as const)
    assert.equal((await gateway.operator(method, `/accounts/${test}/${path}`, body)).status, 409, path)
})

test('reconciliation applies what no event told, and names every difference', async () => {
  const account = await newAccount()
  const lostEvent = await buy(account, { pack: 'starter' })
  const unheard = stripe.pay(lostEvent.session)
  const known = await paid(account, { amount: '5.00' })
  stripe.refund(known.intent.id, 500)
  const gone = await paid(account, { amount: '6.00' })
  stripe.intents.delete(gone.intent.id)
  const { data } = await gateway.operator<ReconciliationView>('POST', '/reconciliations', {})
  const found = new Map(data.differences.map((one) => [one.providerId, one]))
  assert.match(found.get(unheard.id)?.problem ?? '', /2200 credits were granted/)
  assert.match(found.get(known.intent.id)?.problem ?? '', /5\.00 EUR were refunded/)
  assert.deepEqual(
    [found.get(gone.intent.id)?.corrected, found.get(gone.intent.id)?.problem],
    [false, 'It is paid here, but Stripe does not list it.'],
  )
  assert.equal(await balance(account), 2_800n * ONE)
  // One that cannot be applied is named, and those after it are compared all the same.
  const moving = await newAccount()
  const freeze = (until: string) => gateway.sql(`update account set frozen_until = ${until} where id = $1`, [moving])
  const stuck = await buy(moving, { pack: 'starter' })
  const [first, held, last] = [
    await buy(account, { amount: '5.00' }),
    stuck,
    await buy(account, { amount: '7.00' }),
  ].map(({ session }) => stripe.pay(session).id)
  await freeze(`now() + interval '1 hour'`)
  const broken = await gateway.operator<ReconciliationView>('POST', '/reconciliations', {})
  const named = new Map(broken.data.differences.map((one) => [one.providerId, one.corrected]))
  assert.deepEqual([named.get(first ?? ''), named.get(held ?? ''), named.get(last ?? '')], [true, false, true])
  await freeze('null')
  const later = await gateway.operator<ReconciliationView>('POST', '/reconciliations', {})
  assert.equal(later.data.differences.find(({ providerId }) => providerId === held)?.corrected, true)
  const again = await gateway.operator<ReconciliationView>('POST', '/reconciliations', {})
  assert.deepEqual(pluck(again.data.differences, 'providerId'), [gone.intent.id])
})

test('payments are listed, shown, refunded, accepted, dismissed, reconciled and set up from the command line', async () => {
  const { run: command } = commandLineOf(() => gateway, { secrets: { A_KEY: STRIPE_KEY } })
  const account = await newAccount()
  const { payment } = await paid(account)
  const one = await command(['payments', 'list', '--account', account, '--state', 'paid'])
  assert.match(one.out, new RegExp(`^AT.*\n.* 20\\.00 EUR .* paid .*${payment}`))
  assert.match((await command(['payments', 'refund', payment, '--amount', '5.00'])).out, /Credits reversed +550\n/)
  assert.match((await command(['payments', 'show', payment])).out, /Refunded +5\.00\n/)
  const strange = async () => {
    const intent = stripe.strange({ amount: 333, amount_received: 333 })
    await send(stripe.event('payment_intent.succeeded', intent))
    const data = await gateway.ask<{ items: PaymentView[] }>('GET', '/payments?state=quarantined&limit=1')
    return data.items[0]?.id ?? ''
  }
  assert.match((await command(['payments', 'accept', await strange(), account, '33'])).out, /State +paid\n/)
  assert.match((await command(['payments', 'dismiss', await strange()])).out, /State +failed\n/)
  assert.equal(await balance(account), 1_683n * ONE)
  const since = new Date().toISOString()
  const run = await command(['payments', 'reconcile', '--from', since])
  assert.equal(run.code, 0, run.err)
  assert.match(run.out, /payments compared\. None differs\./)
  assert.match((await command(['payments', 'reconciliations', '--limit', '1'])).out, /^STARTED/)
  const changed = await command(['payment-settings', 'change', '--tax', 'off', '--stripe-env', 'A_KEY'])
  assert.match(changed.out, /Provider +stripe\n[\s\S]*Secrets +stripe yes, stripe-webhook yes, payment-webhook yes\n/)
  assert.ok(!changed.all.includes(STRIPE_KEY))
  assert.equal((await command(['payment-settings', 'change', '--stripe-env', 'NONE'])).code, 2)
})

test('secrets are never shown, and nothing is sold where nothing is set up', async () => {
  const settings = await gateway.call('/admin/v1/payment-settings', OPERATOR_TOKEN)
  const text = await settings.text()
  assert.ok(!text.includes(STRIPE_KEY) && !text.includes(STRIPE_SECRET) && !text.includes(WEBHOOK_SECRET), text)
  await gateway.operator('PATCH', '/payment-settings', { provider: 'off' })
  try {
    const account = await newAccount()
    assert.equal((await gateway.ask<SalesView>('GET', `/accounts/${account}/sales`)).currency, null)
    assert.equal((await gateway.operator('POST', `/accounts/${account}/purchases`, { pack: 'starter' })).status, 409)
  } finally {
    await gateway.operator('PATCH', '/payment-settings', { provider: 'stripe' })
  }
})
