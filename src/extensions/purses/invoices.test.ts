// Invoices that an account issues to its customers for what they paid into their purses: in its name, with numbers of
// its own.
import { assert, atOnce, OPERATOR_TOKEN, pluck, test, until } from '../../../test/gateway.ts'
import { ISSUER } from '../../../test/invoice-shapes.ts'
import { seller } from '../../../test/seller.ts'
import { STRIPE_KEY, STRIPE_SECRET } from '../../../test/stripe-server.ts'
import type { InvoiceView } from '../billing/invoices/views.ts'
import type { PageLinkView, TopUpView } from './views.ts'

const SOLD = { currency: 'EUR', pricePerCredit: '0.01', minimum: '1.00', maximum: '500.00' }
const { stripe, gateway: g, child } = seller({ ...SOLD, packs: [] })

type Reseller = { readonly id: string; readonly key: string }
type List = { readonly items: readonly InvoiceView[] }

async function reseller(issuer: object | null): Promise<Reseller> {
  const { id, key } = await g.account({ credits: 100_000_000n })
  const secrets = { stripe: STRIPE_KEY, 'stripe-webhook': STRIPE_SECRET }
  const given = { provider: 'stripe', ...SOLD, secrets, ...(issuer ? { issuer } : {}) }
  const set = await g.operator('PATCH', `/accounts/${id}/purse-payments`, given)
  assert.equal(set.status, 200, JSON.stringify(set.data))
  for (const purse of ['ann', 'bob'])
    assert.equal((await g.call('/v1/purses', key, { id: purse, name: `Customer ${purse}` })).status, 200)
  return { id, key }
}

async function begin({ key }: Reseller, purse = 'ann') {
  const answer = await g.call(`/v1/purses/${purse}/topups`, key, { amount: '20.00' })
  const { data } = (await answer.json()) as { data: { id: string; url: string } }
  return { id: data.id, session: data.url.split('/').at(-1) ?? '' }
}

async function send({ body, signature }: { body: string; signature: string }, account: string, url = g.url) {
  const headers = { 'content-type': 'application/json', 'stripe-signature': signature }
  const answer = await fetch(`${url}/webhooks/purses/${account}`, { method: 'POST', headers, body })
  await answer.arrayBuffer()
  return answer.status
}

async function paid(by: Reseller, purse?: string) {
  const { id, session } = await begin(by, purse)
  const intent = stripe.pay(session)
  const event = stripe.event('payment_intent.succeeded', intent)
  assert.equal(await send(event, by.id), 200)
  return { id, intent, event }
}

const issued = async ({ id }: Reseller) => (await g.operator<List>('GET', `/accounts/${id}/purse-invoices`)).data.items
const year = new Date().getUTCFullYear()
const numbered = (series: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${series}-${year}-${String(count - at).padStart(6, '0')}`)

test('nothing is invoiced before an account says who issues invoices', async () => {
  const by = await reseller(null)
  await paid(by)
  assert.deepEqual(await issued(by), [])
  const at = `/accounts/${by.id}/purse-payments`
  assert.equal((await g.operator<{ issuer: null }>('GET', at)).data.issuer, null)
  for (const [issuer, message] of [
    [{ ...ISSUER, vatId: 'DE1' }, /does not look like a VAT id of DE/],
    [{ ...ISSUER, vatId: null, registration: null }, /issuer\.vatId: must be given/],
    [{ ...ISSUER, series: 'no-hyphen' }, /letters and digits/],
    [{ ...ISSUER, series: 'test' }, /series: is that of test payments/],
  ] as const) {
    const { status, data } = await g.operator<{ message: string }>('PATCH', at, { issuer })
    assert.deepEqual([status, message.test(data.message)], [400, true], data.message)
  }
  await g.operator('PATCH', at, { issuer: { ...ISSUER, series: 'R' } })
  await paid(by)
  assert.deepEqual(pluck(await issued(by), 'number'), numbered('R', 1))
  // What brings no credits has no invoice, nor a credit note when it is refunded.
  const late = await begin(by, 'bob')
  assert.equal((await g.call('/v1/purses/bob', by.key, { status: 'closed' }, { method: 'PATCH' })).status, 200)
  assert.equal(await send(stripe.event('payment_intent.succeeded', stripe.pay(late.session)), by.id), 200)
  const refunded = await g.operator<TopUpView>('POST', `/accounts/${by.id}/purse-topups/${late.id}/refund`, {})
  assert.deepEqual([refunded.data.state, refunded.data.creditsTaken], ['refunded', '0'])
  assert.equal((await issued(by)).length, 1)
  await g.operator('PATCH', at, { issuer: null })
  await paid(by)
  assert.equal((await issued(by)).length, 1)
})

test('a paid top-up has one invoice in the name of the account, a refund a credit note, and only its customer and its account see them', async () => {
  const issuer = { ...ISSUER, name: 'Shop GmbH', series: 'R' }
  const [by, other] = [await reseller(issuer), await reseller(issuer)]
  const details = { company: 'Ann AG', street: 'Ring 5', postcode: '1010', city: 'Wien', country: 'AT' }
  const at = `/v1/purses/ann/billing-details`
  const put = (body: object) => g.call(at, by.key, body, { method: 'PUT' })
  assert.equal((await put({ ...details, vatId: 'ATU1' })).status, 400)
  assert.equal((await put(details)).status, 200)
  const { id, intent, event } = await paid(by)
  for (const _ of [1, 2]) assert.equal(await send(event, by.id), 200)
  await paid(other)
  stripe.refund(intent.id, 500)
  for (const _ of [1, 2]) assert.equal(await send(stripe.event('charge.refunded', intent.latest_charge), by.id), 200)
  const all = await issued(by)
  assert.deepEqual(
    all.map(({ number, kind, purse, customer, gross, tax, payment }) => ({
      number,
      kind,
      purse,
      customer,
      gross,
      tax,
      payment,
    })),
    [
      { number: `R-${year}-000002`, kind: 'credit_note', gross: '5.00', tax: '0.83' },
      { number: `R-${year}-000001`, kind: 'payment', gross: '20.00', tax: '3.33' },
    ].map((one) => ({ ...one, purse: 'ann', customer: 'Ann AG', payment: id })),
  )
  assert.equal(all[0]?.corrects, all[1]?.id)
  // Each account counts for itself.
  assert.deepEqual(pluck(await issued(other), 'number'), numbered('R', 1))
  const invoice = all[1]?.id ?? ''
  const pdf = async (path: string, key = by.key) => {
    const answer = await g.call(path, key, undefined, { headers: { accept: 'application/pdf' } })
    return { status: answer.status, start: (await answer.text()).slice(0, 5), type: answer.headers.get('content-type') }
  }
  const isPdf = { status: 200, start: '%PDF-', type: 'application/pdf' }
  assert.deepEqual(await pdf(`/v1/purses/ann/invoices/${invoice}`), isPdf)
  assert.equal((await pdf(`/v1/purses/bob/invoices/${invoice}`)).status, 404)
  assert.equal((await pdf(`/v1/purses/ann/invoices/${invoice}`, other.key)).status, 404)
  const [row] = await g.sql<{ document: { issuer: { name: string }; account: object } }>(
    ...(['select document from invoice where id = $1', [invoice]] as const),
  )
  assert.deepEqual(
    [row?.document.issuer.name, row?.document.account],
    ['Shop GmbH', { id: 'ann', name: 'Customer ann' }],
  )
  // The gateway's own invoices are others.
  for (const path of ['/invoices', `/accounts/${by.id}/invoices`])
    assert.deepEqual((await g.operator<List>('GET', path)).data.items, [])
  assert.equal((await g.operator('GET', `/accounts/${by.id}/invoices/${invoice}`)).status, 404)
  const link = async (purse: string) => {
    const made = await g.call(`/v1/purses/${purse}/page`, by.key, {})
    return ((await made.json()) as { data: PageLinkView }).data.url.split('#')[1] ?? ''
  }
  const [ann, bob] = [await link('ann'), await link('bob')]
  const own = async (key: string) =>
    ((await (await g.call('/v1/purse/invoices', key)).json()) as { data: readonly InvoiceView[] }).data
  assert.deepEqual(pluck(await own(ann), 'number'), pluck(all, 'number'))
  assert.doesNotMatch(JSON.stringify(await own(ann)), new RegExp(by.id))
  assert.deepEqual(await own(bob), [])
  assert.equal((await g.call('/v1/purses/nobody/invoices', by.key)).status, 404)
  assert.deepEqual(await pdf(`/v1/purse/invoices/${invoice}`, ann), isPdf)
  assert.equal((await pdf(`/v1/purse/invoices/${invoice}`, bob)).status, 404)
  const headers = { accept: 'application/zip', authorization: `Bearer ${OPERATOR_TOKEN}` }
  const zip = await fetch(`${g.url}/admin/v1/accounts/${by.id}/purse-invoices`, { headers })
  assert.match(await zip.text(), /R-\d+-000001\.pdf/)
})

test('payments at once never share a number or leave one out, and one whose process is killed before its invoice is there is paid and invoiced later', async () => {
  const by = await reseller({ ...ISSUER, series: 'SWARM' })
  await paid(by)
  const events = await atOnce(9, async (at) => {
    const { session } = await begin(by, at % 2 ? 'ann' : 'bob')
    return stripe.event('payment_intent.succeeded', stripe.pay(session))
  })
  const process = child()
  const url = await new Promise<string>((resolve) => process.once('message', (message) => resolve(String(message))))
  const [last, ...most] = events
  assert.ok(last)
  // Each comes to both processes.
  const statuses = await Promise.all(most.flatMap((event) => [send(event, by.id), send(event, by.id, url)]))
  assert.deepEqual(new Set(statuses), new Set([200]))
  // Two processes may make ids in one millisecond.
  const numbers = async () =>
    pluck(await issued(by), 'number')
      .sort()
      .reverse()
  assert.deepEqual(await numbers(), numbered('SWARM', 9))
  // While another one has the counter, the process dies between the payment and its invoice.
  await g.gateway.database.transaction(async (tx) => {
    await tx.query({ text: `select from invoice_counter where account_id = $1 for update` }, [by.id])
    const answered = send(last, by.id, url).catch(() => 'gone')
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    await until(async () => (await g.sql(waiting)).length > 0)
    process.kill('SIGKILL')
    assert.equal(await answered, 'gone')
  })
  const balances = async () =>
    (await g.sql<{ sum: bigint }>(`select sum(posted)::bigint as sum from purse where account_id = $1`, [by.id]))[0]
      ?.sum
  assert.equal(await send(last, by.id), 200)
  assert.equal(await balances(), 20_000_000_000n)
  assert.deepEqual(await numbers(), numbered('SWARM', 10))
  assert.deepEqual(await g.problems(), [])
  // One that somebody deletes is missed.
  for (const number of [...numbered('SWARM', 10).slice(0, 1), ...numbered('SWARM', 5).slice(0, 1)]) {
    const values = [by.id, number]
    const [gone] = await g.sql<{ row: object }>(
      `with gone as (delete from invoice where account_id = $1 and number = $2 returning *) select to_jsonb(gone) as row from gone`,
      values,
    )
    assert.match((await g.problems()).join('\n'), /Invoices of the series SWARM in \d+ go to 10, but there are 9/)
    await g.sql(`insert into invoice select * from jsonb_populate_record(null::invoice, $1)`, [
      JSON.stringify(gone?.row),
    ])
  }
})
