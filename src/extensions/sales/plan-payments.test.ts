// Plans with a price: paid on the provider's page or by the saved card, renewed by any of several processes, declined,
// changed, refunded; and a process that is killed while it renews.
import { once } from 'node:events'
import { assert, before, pluck, runs, started, test, until } from '../../../test/kit.ts'
import { startMailServer } from '../../../test/mail-server.ts'
import { seller, tell } from '../../../test/seller.ts'
import type { Page } from '../../kernel/view.ts'
import { realWorld, type World } from '../../kernel/world.ts'
import type { BalanceView } from '../../ledger/views.ts'
import { dateName } from '../../reports/balance-sentence.ts'
import type { InvoiceView } from '../billing/invoices/views.ts'
import { sales } from './extension.ts'
import type { ChosenPlanView, PaymentView } from './views.ts'

const SALES = {
  currency: 'EUR',
  packs: [{ id: 'starter', name: 'Starter', price: '20.00', credits: '2200' }],
  plans: [
    { id: 'free', name: 'Free', price: '0', credits: '100' },
    { id: 'basic', name: 'Basic', price: '4.00', credits: '400', limits: { requestsPerMinute: 60 } },
    { id: 'pro', name: 'Pro', price: '9.00', credits: '1000', limits: { requestsPerMinute: 90 } },
    { id: 'trying', name: 'Trying', price: '2.00', credits: '50', trialDays: 14 },
  ],
}
const ISSUER = {
  name: 'Gateway GmbH',
  street: 'Hauptstraße 1',
  postcode: '10115',
  city: 'Berlin',
  country: 'DE',
  vatId: 'DE123456789',
  series: 'PLAN',
  taxRate: '19',
}
const CUSTOMER = {
  company: 'Acme',
  name: null,
  street: 'Weg 2',
  postcode: '20095',
  city: 'Hamburg',
  country: 'DE',
  vatId: null,
  email: null,
}
const CHARGE = 'POST /v1/payment_intents'
/** Renews when a test says so, and not also each minute, which a slow machine reaches in the middle of a test. */
const withoutMinute = (ms: number, run: () => void) => (ms === 60_000 ? () => undefined : realWorld.after(ms, run))
const world: World = { ...realWorld, after: withoutMinute }

const post = started(startMailServer)
const {
  stripe,
  gateway,
  start,
  child: startChild,
} = seller(SALES, {
  world,
  env: () => ({ TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'Gateway <hello@gateway.example>' }),
  // Months pass here by moving the times of rows by hand, which is what it then finds.
  expected: /: its (ends_at|anchor|period_end) was /,
})
before(async () => {
  const issued = await gateway.operator('PATCH', '/invoice-settings', { issuer: ISSUER })
  assert.equal(issued.status, 200, JSON.stringify(issued.data))
})

const rows = <R>(text: string, values: string[] = []) => gateway.sql<R>(text, values)
const charges = () => stripe.asked.filter((one) => one === CHARGE).length
const planOf = async (account: string) => (await gateway.ask<ChosenPlanView>('GET', `/accounts/${account}/plan`)).plan
const balanceOf = (account: string) => gateway.ask<BalanceView>('GET', `/accounts/${account}/balance`)
const paymentsOf = async (account: string) =>
  (await gateway.ask<Page<PaymentView>>('GET', `/accounts/${account}/payments`)).items
const renew = () => gateway.gateway.opened(sales).sales.plans.renew()

async function newAccount(): Promise<string> {
  const { id } = await gateway.account({ credits: 0n })
  assert.equal((await gateway.operator('PUT', `/accounts/${id}/billing-details`, CUSTOMER)).status, 200)
  return id
}

/** The plan's view, or the message of the refusal. */
async function choose(account: string, plan: string | null, options: { checkout?: boolean } = {}) {
  const { status, data } = await gateway.operator<ChosenPlanView & { message: string }>(
    'PUT',
    `/accounts/${account}/plan`,
    { plan, ...options },
  )
  return { status, ...data }
}

/** Pays on Stripe's page, which also saves the card. */
async function paidAt(page: ChosenPlanView['checkout'], account: string): Promise<PaymentView> {
  stripe.pay(page?.url.split('/').at(-1) ?? '')
  const { data } = await gateway.operator<PaymentView>('POST', `/accounts/${account}/payments/${page?.payment}/check`)
  return data
}

async function withPlan(plan = 'pro'): Promise<string> {
  const account = await newAccount()
  const { checkout } = await choose(account, plan)
  assert.equal((await paidAt(checkout, account)).state, 'paid')
  return account
}

/** Time goes on for this account. */
async function pass(account: string, days: number): Promise<void> {
  const back = `interval '${days} days'`
  await rows(
    `update account_plan set anchor = anchor - ${back}, period_end = period_end - ${back}, retry_at = retry_at - ${back} where account_id = $1`,
    [account],
  )
  await rows(`update lot set ends_at = ends_at - ${back} where account_id = $1`, [account])
  await gateway.gateway.ledger.sweep()
}

test('a plan with a price begins when it is paid on the provider’s page, which saves the card; its invoice names the plan and the month', async () => {
  const { id: bare } = await gateway.account({ credits: 0n })
  const stopped = await choose(bare, 'pro')
  assert.equal(stopped.status, 400)
  assert.match(stopped.message, /name is missing/)
  const account = await newAccount()
  const chosen = await choose(account, 'pro')
  assert.deepEqual([chosen.status, chosen.plan], [200, null])
  const paid = await paidAt(chosen.checkout, account)
  assert.deepEqual([paid.state, paid.kind, paid.offer, paid.credits], ['paid', 'plan', 'pro', '1000'])
  const plan = await planOf(account)
  assert.deepEqual([plan?.id, plan?.price, plan?.due, plan?.problem], ['pro', '9.00', false, null])
  const balance = await balanceOf(account)
  assert.deepEqual(pluck(balance.lots, 'source', 'remaining', 'endsAt'), [['plan', '1000', plan?.endsAt]])
  const data = await gateway.ask<Page<InvoiceView>>('GET', `/accounts/${account}/invoices`)
  assert.deepEqual(pluck(data.items, 'gross', 'payment'), [['9.00', paid.id]])
  const [invoice] = await rows<{ document: { description: string; from: string; to: string } }>(
    'select document from invoice where account_id = $1',
    [account],
  )
  const { description, from, to } = invoice?.document ?? assert.fail()
  assert.equal(description, `Pro: 1,000 credits, ${dateName(from)} to ${dateName(to)}`)
  const days = (Date.parse(plan?.endsAt ?? '') - Date.parse(from)) / 86_400_000
  assert.ok(days > 27 && days < 32 && to < (plan?.endsAt ?? ''), `${from} ${to} ${plan?.endsAt}`)
  const limits = await rows<{ limits: object }>(`select limits_of($1, 'account') as limits`, [account])
  assert.deepEqual(limits[0]?.limits, { requestsPerMinute: 90 })
})

test('each month is charged to the saved card once, by however many processes renew it', async () => {
  const account = await withPlan()
  await using second = await start()
  const was = await planOf(account)
  const before = charges()
  await pass(account, 32)
  const both = [gateway.gateway.opened(sales).sales.plans, second.gateway.opened(sales).sales.plans]
  await Promise.all([...both, ...both].map((one) => one.renew()))
  await until(async () => (await planOf(account))?.due, false)
  assert.equal(charges(), before + 1)
  assert.ok((await planOf(account))!.endsAt < new Date(Date.parse(was!.endsAt) + 32 * 86_400_000).toISOString())
  assert.deepEqual(pluck(await paymentsOf(account), 'state'), ['paid', 'paid'])
  assert.equal((await balanceOf(account)).balance, '1000', 'the month before has ended')
})

test('a dearer plan begins now, a cheaper one and the end come with the period', async () => {
  const account = await withPlan('basic')
  const up = await choose(account, 'pro')
  assert.deepEqual([up.status, up.plan?.id, up.checkout], [200, 'pro', null])
  assert.equal((await balanceOf(account)).balance, '1400', 'what was paid for stays until its own end')
  const down = await choose(account, 'basic')
  assert.deepEqual([down.plan?.id, down.plan?.next], ['pro', 'basic'])
  assert.equal((await choose(account, 'pro')).plan?.next, 'pro', 'taken back')
  await choose(account, 'basic')
  await pass(account, 32)
  await renew()
  assert.deepEqual([(await planOf(account))?.id, (await balanceOf(account)).balance], ['basic', '400'])
  const before = charges()
  assert.equal((await choose(account, null)).plan?.next, null)
  await pass(account, 32)
  await renew()
  assert.deepEqual([await planOf(account), charges()], [null, before])
})

test('a declined card is tried for three more days, with a mail to the owners; then the plan ends; who pays before goes on', async () => {
  const account = await withPlan()
  const email = `owner-${account}@example.com`.toLowerCase()
  await rows(`insert into person (id, email) values ($1, $2)`, [`per_${account}`, email])
  await rows(`insert into membership (account_id, person_id, role) values ($1, $2, 'owner')`, [
    account,
    `per_${account}`,
  ])
  await pass(account, 32)
  stripe.declines = 'Your card was declined.'
  try {
    const before = charges()
    await renew()
    await renew()
    const due = await planOf(account)
    assert.deepEqual([due?.due, due?.problem, charges()], [true, 'Your card was declined.', before + 1])
    const mail = await post.newest(email)
    assert.match(mail.headers.get('subject') ?? '', /^Pro at .* could not be renewed$/)
    assert.match(mail.text, /Your card was declined\..*\/console\/a\/.*\/billing/s)
    const refused = await choose(account, 'pro')
    assert.deepEqual([refused.status, refused.message], [409, 'The card was declined: Your card was declined.'])
    // Another card on the provider's page pays the month.
    stripe.declines = undefined
    const other = await choose(account, 'pro', { checkout: true })
    assert.equal((await paidAt(other.checkout, account)).state, 'paid')
    const now = await planOf(account)
    assert.deepEqual([now?.due, now?.problem, now?.retryAt], [false, null, null])
    stripe.declines = 'Your card was declined.'
    await pass(account, 32)
    for (let day = 0; day < 5; day++) {
      await renew()
      await pass(account, 1)
    }
    assert.equal(await planOf(account), null)
    assert.match((await post.newest(email, 3)).headers.get('subject') ?? '', /^Pro at .* has ended$/)
    assert.deepEqual((await rows<{ limits: object }>(`select limits_of($1, 'account') as limits`, [account]))[0], {
      limits: {},
    })
    assert.equal(post.to(email).length, 3, 'one mail for each month that failed, and one for the end')
  } finally {
    stripe.declines = undefined
  }
})

test('after a trial the card is charged; without a card the owner pays on the page; cancelled while due, it ends at once', async () => {
  const account = await newAccount()
  const tried = await choose(account, 'trying')
  assert.deepEqual([tried.plan?.trial, tried.checkout, (await paymentsOf(account)).length], [true, null, 0])
  await pass(account, 15)
  await renew()
  const due = await planOf(account)
  assert.deepEqual([due?.due, due?.problem, (await paymentsOf(account)).length], [true, 'There is no saved card.', 0])
  const { checkout } = await choose(account, 'trying')
  assert.equal((await paidAt(checkout, account)).state, 'paid')
  assert.deepEqual([(await planOf(account))?.trial, (await balanceOf(account)).balance], [false, '50'])
  await pass(account, 32)
  stripe.declines = 'No.'
  try {
    await renew()
    assert.equal((await choose(account, null)).plan, null)
  } finally {
    stripe.declines = undefined
  }
  // A card that Stripe does not know any more is not asked for again and again.
  const other = await withPlan()
  await rows(`update payment_customer set method_id = 'pm_gone' where account_id = $1`, [other])
  await pass(other, 32)
  await renew()
  const [gone] = await paymentsOf(other)
  assert.deepEqual([gone?.state, (await planOf(other))?.problem], ['failed', gone?.reason])
  assert.match(gone?.reason ?? '', /cannot charge the saved card/)
  const again = await choose(account, 'trying')
  assert.deepEqual([again.plan?.trial, again.plan?.id], [false, 'trying'], 'no second trial: the card was charged')
})

test('a month that was paid twice is quarantined the second time; its refund takes back what is left of that month, and nothing else', async () => {
  const account = await newAccount()
  const [one, two] = [await choose(account, 'pro'), await choose(account, 'pro')]
  const first = await paidAt(one.checkout, account)
  const twice = await paidAt(two.checkout, account)
  assert.deepEqual([first.state, twice.state], ['paid', 'quarantined'])
  assert.match(twice.reason ?? '', /^This month of the plan is paid already, until /)
  assert.equal((await gateway.operator('POST', `/payments/${twice.id}/refund`, {})).status, 200)
  await gateway.operator('POST', `/accounts/${account}/credits`, { amount: '300', note: 'a gift' })
  await rows(`update lot set ends_at = now() - interval '1 second' where account_id = $1`, [account])
  await gateway.gateway.ledger.sweep()
  const { data } = await gateway.operator<PaymentView>('POST', `/payments/${first.id}/refund`, {})
  assert.deepEqual([data.state, data.creditsReversed, data.creditsLost], ['refunded', '0', '1000'])
  assert.equal((await balanceOf(account)).balance, '300')
  // A dispute takes the month's rest; when it is won, it comes back with the same end.
  const other = await withPlan()
  const [{ providerId, id } = assert.fail()] = await paymentsOf(other)
  const told = async (status: string) => {
    stripe.dispute(providerId ?? '', status)
    await gateway.operator('POST', '/reconciliations', {})
    return (await balanceOf(other)).lots.map(({ source, remaining }) => [source, remaining])
  }
  const ends = (await planOf(other))?.endsAt
  assert.deepEqual(await told('needs_response'), [])
  assert.deepEqual(await told('won'), [['plan', '1000']])
  assert.equal((await balanceOf(other)).lots[0]?.endsAt, ends)
  const back = await gateway.operator<PaymentView>('POST', `/payments/${id}/refund`, { amount: '4.50' })
  assert.deepEqual([back.data.creditsReversed, (await balanceOf(other)).balance], ['500', '500'])
})

test('a month that is refunded wholly, or disputed, ends its plan, which is not charged again and can be bought again', async () => {
  const account = await withPlan()
  const [first = assert.fail()] = await paymentsOf(account)
  await gateway.operator('POST', `/payments/${first.id}/refund`, { amount: '4.50' })
  assert.equal((await planOf(account))?.next, 'pro', 'a part does not end it')
  await gateway.operator('POST', `/payments/${first.id}/refund`, {})
  assert.equal(await planOf(account), null)
  const limits = await rows<{ limits: object }>(`select limits_of($1, 'account') as limits`, [account])
  assert.deepEqual(limits[0]?.limits, {})
  const again = await choose(account, 'pro')
  assert.deepEqual([again.status, again.plan?.next], [200, 'pro'])
  // A month that is over: the one that runs is paid for, and is the last.
  const [second = assert.fail()] = await paymentsOf(account)
  await pass(account, 32)
  await renew()
  assert.equal((await paymentsOf(account))[0]?.state, 'paid')
  stripe.dispute(second.providerId ?? '', 'needs_response')
  await gateway.operator('POST', '/reconciliations', {})
  const last = await planOf(account)
  assert.deepEqual([last?.id, last?.next], ['pro', null])
  await choose(account, 'pro')
  stripe.dispute(second.providerId ?? '', 'lost')
  await gateway.operator('POST', '/reconciliations', {})
  assert.equal((await planOf(account))?.next, 'pro', 'what was chosen after that stands')
  await choose(account, null)
  const before = charges()
  await pass(account, 32)
  await renew()
  assert.deepEqual([await planOf(account), charges()], [null, before])
  const kind = await withPlan()
  const [older = assert.fail()] = await paymentsOf(kind)
  await pass(kind, 32)
  await renew()
  const { balance: paidFor } = await balanceOf(kind)
  assert.equal((await gateway.operator('POST', `/payments/${older.id}/refund`, {})).status, 200)
  const goesOn = await planOf(kind)
  assert.deepEqual([goesOn?.id, goesOn?.next], ['pro', 'pro'], 'the refund of an older month leaves the plan alone')
  assert.equal((await balanceOf(kind)).balance, paidFor)
  const other = await withPlan()
  stripe.dispute((await paymentsOf(other))[0]?.providerId ?? '', 'needs_response')
  await gateway.operator('POST', '/reconciliations', {})
  assert.equal(await planOf(other), null)
})

test('a quarantined payment of a plan begins its month when it is accepted; where there is no month for it, it is refused', async () => {
  const account = await newAccount()
  const accept = (payment: PaymentView) =>
    gateway.operator<PaymentView & { message: string }>('POST', `/payments/${payment.id}/accept`, {
      account,
      credits: '700',
    })
  const [pro, basic, same] = [
    await choose(account, 'pro'),
    await choose(account, 'basic'),
    await choose(account, 'pro'),
  ]
  stripe.pay(pro.checkout?.url.split('/').at(-1) ?? '', { amount: 700, amount_received: 700 })
  const strange = await paidAt(pro.checkout, account)
  assert.deepEqual([strange.state, strange.reason], ['quarantined', 'It should be 9.00 EUR, but is 7.00 EUR.'])
  assert.equal((await accept(strange)).data.state, 'paid')
  const plan = await planOf(account)
  assert.equal(plan?.id, 'pro')
  const lots = async () => (await balanceOf(account)).lots.map((lot) => [lot.source, lot.remaining, lot.endsAt])
  assert.deepEqual(await lots(), [['plan', '700', plan?.endsAt]])
  // Pages that were left open: of the same plan, and of a cheaper one.
  for (const [{ checkout }, reason] of [
    [same, /^This month of the plan is paid already, until /],
    [basic, /^A plan that costs as much or more is paid already, until /],
  ] as const) {
    const late = await paidAt(checkout, account)
    assert.equal(late.state, 'quarantined')
    assert.match(late.reason ?? '', reason)
    const refused = await accept(late)
    assert.equal(refused.status, 409)
    assert.match(refused.data.message, reason)
  }
  assert.deepEqual([await planOf(account), await lots()], [plan, [['plan', '700', plan?.endsAt]]])
})

test('a charge without an answer stops cancelling, and is looked up before it is given up: no month is charged twice', async () => {
  const account = await withPlan('basic')
  const ago = (time: string) =>
    rows(`update payment set created_at = created_at - interval '${time}' where account_id = $1`, [account])
  const newest = async () => (await paymentsOf(account))[0]?.state
  const lose = (...names: string[]) => {
    stripe.before = (name) => {
      if (names.includes(name)) throw new Error('lost')
    }
  }
  const intents = stripe.intents.size
  try {
    lose(CHARGE)
    assert.equal((await choose(account, 'pro')).status, 503)
    const cancelled = await choose(account, null)
    assert.deepEqual([cancelled.status, await newest()], [409, 'pending'])
    assert.match(cancelled.message, /is pending/)
    stripe.before = undefined
    await ago('1 minute')
    await renew()
    assert.deepEqual([(await planOf(account))?.id, await newest()], ['pro', 'paid'])
    // Stripe cannot be asked while the charge is given up.
    lose(CHARGE, 'GET /v1/payment_intents')
    await pass(account, 32)
    await renew()
    await ago('21 hours')
    for (let day = 0; day < 2; day++) {
      await renew()
      await pass(account, 1)
    }
    assert.deepEqual([await newest(), stripe.intents.size], ['pending', intents + 2])
    stripe.before = undefined
    await renew()
    assert.deepEqual([await newest(), (await planOf(account))?.due, stripe.intents.size], ['paid', false, intents + 2])
    // Still on its way there.
    lose(CHARGE)
    await pass(account, 32)
    await renew()
    await ago('21 hours')
    stripe.before = undefined
    const [id, intent] = [...stripe.intents].at(-1) ?? assert.fail()
    intent.status = 'processing'
    const asked = charges()
    await renew()
    assert.deepEqual([await newest(), charges()], ['pending', asked])
    // One that Stripe knows nothing of was not charged: the next day asks again.
    stripe.intents.delete(id)
    await rows(`update payment set provider_id = null where account_id = $1 and state = 'pending'`, [account])
    await renew()
    assert.equal(await newest(), 'failed')
    await pass(account, 1)
    await renew()
    assert.deepEqual([await newest(), (await planOf(account))?.due], ['paid', false])
  } finally {
    stripe.before = undefined
  }
})

test('the tax that Stripe works out is on the invoice, be it 0; a charge whose answer was lost is asked for again with the same tax', async () => {
  const invoiced = async (account: string) =>
    (await gateway.ask<Page<InvoiceView>>('GET', `/accounts/${account}/invoices`)).items.map(
      ({ gross, tax }) => `${gross} ${tax}`,
    )
  await gateway.operator('PATCH', '/payment-settings', { tax: 'exclusive' })
  try {
    const account = await newAccount()
    const { checkout } = await choose(account, 'pro')
    const session = stripe.sessions.get(checkout?.url.split('/').at(-1) ?? '')
    assert.equal(session?.asked.automatic_tax.enabled, 'true')
    const paid = await paidAt(checkout, account)
    assert.deepEqual([paid.state, paid.amount, paid.tax], ['paid', '10.71', '1.71'])
    stripe.taxPercent = 0
    await pass(account, 32)
    await renew()
    assert.deepEqual(await invoiced(account), ['9.00 0.00', '10.71 1.71'])
    const page = await choose(await newAccount(), 'basic')
    assert.ok(page.checkout?.payment)
    const [untaxed] = await rows<{ account_id: string }>('select account_id from payment where id = $1', [
      page.checkout.payment,
    ])
    await paidAt(page.checkout, untaxed?.account_id ?? '')
    assert.deepEqual(await invoiced(untaxed?.account_id ?? ''), ['4.00 0.00'])
    // Charged, and the answer is lost.
    stripe.taxPercent = 19
    await pass(account, 32)
    const before = stripe.intents.size
    stripe.before = (name) => {
      if (name === CHARGE) throw new Error('lost')
    }
    await renew()
    stripe.before = undefined
    assert.equal((await paymentsOf(account))[0]?.state, 'pending')
    stripe.taxPercent = 7
    await gateway.operator('PATCH', '/payment-settings', { tax: 'inclusive' })
    await rows(`update payment set created_at = created_at - interval '1 minute' where account_id = $1`, [account])
    await renew()
    assert.deepEqual([stripe.intents.size, (await invoiced(account))[0]], [before + 1, '10.71 1.71'])
    // In the price.
    await pass(account, 32)
    await renew()
    assert.equal((await invoiced(account))[0], '9.00 0.59')
  } finally {
    Object.assign(stripe, { before: undefined, taxPercent: 19 })
    await gateway.operator('PATCH', '/payment-settings', { tax: 'off' })
  }
})

test('a provider that only sends signed webhooks sells plans: by its page, and by its own charges of each month', async () => {
  await gateway.operator('PATCH', '/payment-settings', {
    provider: 'webhook',
    checkoutUrl: 'https://pay.example/?p={payment}&o={offer}&a={amount}',
  })
  const hear = async (data: object) => assert.equal((await tell(gateway, data)).status, 200)
  try {
    const account = await newAccount()
    const { checkout } = await choose(account, 'basic')
    const query = new URL(checkout?.url ?? '').searchParams
    assert.deepEqual([query.get('o'), query.get('a')], ['basic', '4.00'])
    const paid = { currency: 'EUR', amount: '4.00', status: 'paid' }
    await hear({ ...paid, id: `a-${account}`, payment: checkout?.payment })
    assert.equal((await planOf(account))?.id, 'basic')
    await pass(account, 32)
    await renew()
    assert.equal((await planOf(account))?.due, true)
    await hear({ ...paid, id: `b-${account}`, account, offer: 'basic' })
    assert.equal((await planOf(account))?.due, false)
    await hear({ ...paid, id: `c-${account}`, account, offer: 'basic' })
    assert.deepEqual(pluck(await paymentsOf(account), 'state', 'kind'), [
      ['quarantined', 'plan'],
      ['paid', 'plan'],
      ['paid', 'plan'],
    ])
    assert.equal((await balanceOf(account)).balance, '400')
  } finally {
    await gateway.operator('PATCH', '/payment-settings', { provider: 'stripe' })
  }
})

const POINTS = [
  ['after the charge and before its credits are granted', 'GET /v1/payment_intents/:id'],
  ['after Stripe has charged the card and before it has answered', CHARGE],
] as const
for (const [point, asked] of POINTS.slice(0, runs(1, 2)))
  test(`a process killed while it renews, ${point}, leaves one charge and one month`, async () => {
    const account = await withPlan()
    await pass(account, 32)
    const before = stripe.intents.size
    const child = startChild()
    const died = once(child, 'exit')
    const toldBeforeDeath = () => Promise.race([once(child, 'message'), died.then(() => [undefined])])
    try {
      assert.notDeepEqual(await toldBeforeDeath(), [undefined], 'it died before it was ready')
      stripe.before = async (name) => {
        if (name !== asked) return
        stripe.before = undefined
        child.kill('SIGKILL')
        await died
      }
      child.send('renew')
      assert.deepEqual(await toldBeforeDeath(), [undefined], 'it renewed without asking for the charge')
      assert.equal(stripe.before, undefined, 'it died by itself')
      assert.equal((await planOf(account))?.due, true)
      assert.equal((await paymentsOf(account))[0]?.state, 'pending')
      await renew()
      assert.equal(stripe.intents.size, before + 1, 'a charge under way is left alone')
      await rows(`update payment set created_at = created_at - interval '1 minute' where account_id = $1`, [account])
      await Promise.all([renew(), renew()])
      await until(async () => (await planOf(account))?.due, false)
      assert.equal(stripe.intents.size, before + 1)
      assert.deepEqual(pluck(await paymentsOf(account), 'state'), ['paid', 'paid'])
      assert.equal((await balanceOf(account)).balance, '1000')
    } finally {
      stripe.before = undefined
      child.kill('SIGKILL')
    }
  })
