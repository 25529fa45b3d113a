import { fork } from 'node:child_process'
import { join } from 'node:path'
import { freshDatabase } from '../../../../test/database.ts'
import { ISSUER } from '../../../../test/invoice-shapes.ts'
import { after, assert, atOnce, before, none, pluck, runs, test } from '../../../../test/kit.ts'
import { createAudit } from '../../../database/audit.ts'
import type { Database } from '../../../database/database.ts'
import { newId, realWorld } from '../../../kernel/world.ts'
import { isVatId, rateOf, taxIn, taxOf } from '../../billing/invoices/vat.ts'
import type { BillingDetails, Issuer } from '../../billing/invoices/views.ts'
import { createInvoices, type Invoices } from './invoices.ts'

type InvoicedPayment = Parameters<Invoices['issue']>[1]['payment']

const BY = { actor: 'test', ip: null, requestId: null }
const CUSTOMER: BillingDetails = {
  company: 'Kunde AG',
  name: null,
  street: 'Ringstraße 5',
  postcode: '1010',
  city: 'Wien',
  country: 'AT',
  vatId: null,
  email: null,
}

let database: Database
let url: string
let drop: () => Promise<void>
let invoices: Invoices
/** Moves the clock forward. */
let aheadMs = 0
const world = { ...realWorld, nowMs: () => realWorld.nowMs() + aheadMs }

before(async () => {
  const fresh = await freshDatabase()
  ;({ drop, url } = fresh)
  database = fresh.open()
  invoices = createInvoices({ database, world, audit: createAudit({ database, world }) })
})
after(async () => {
  await database.close()
  await drop()
})

async function newAccount(details: Partial<BillingDetails> | null = {}): Promise<string> {
  const id = `acc_${newId(world)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $2)' }, [id, 'Zażółć Sp. z o.o.'])
  if (details) await invoices.changeDetails(id, { ...CUSTOMER, ...details }, BY)
  return id
}

const paid = (more: Partial<InvoicedPayment> = {}): InvoicedPayment => ({
  id: `pay_${newId(world)}`,
  currency: 'EUR',
  amountMinor: 2_000n,
  description: '2,200 credits',
  paidAt: new Date(world.nowMs()),
  ...more,
})
const issue = (account: string, payment: InvoicedPayment) =>
  database.transaction((tx) => invoices.issue(tx, { account, payment }))
/** After it, so much is refunded in all. */
const refund = (account: string, payment: string, refundedMinor: bigint) =>
  database.transaction((tx) => invoices.creditNote(tx, { account, payment, refundedMinor }))

test('without an issuer nothing is missing and nothing is issued; with one, a purchase is stopped by the first field that is missing', async () => {
  const account = await newAccount(null)
  assert.equal(await invoices.missing(account), null)
  assert.equal(await issue(account, paid()), null)
  await invoices.changeSettings({ issuer: ISSUER }, BY)
  const details = { ...CUSTOMER, company: null, street: null, postcode: null, city: null, country: null }
  const missing: Array<string | null> = []
  const given: Array<Partial<BillingDetails>> = [
    {},
    { name: 'Ada' },
    { street: 'Road 1' },
    { city: 'Graz' },
    { country: 'AT' },
    { postcode: '8010' },
  ]
  for (const more of given) {
    Object.assign(details, more)
    await database.query(
      {
        text: 'insert into billing_details values ($1, $2) on conflict (account_id) do update set details = excluded.details',
      },
      [account, JSON.stringify(details)],
    )
    missing.push(await invoices.missing(account))
  }
  assert.deepEqual(missing, ['name', 'street', 'city', 'country', 'postcode', null])
})

test('what is missing or malformed in billing details is refused by its name, and what is there is not taken away', async () => {
  const account = await newAccount()
  const refused: Array<[Partial<BillingDetails>, RegExp]> = [
    [{ street: null }, /^street: /],
    [{ country: 'XX' }, /^country: XX is not a country code/],
    [{ vatId: 'ATU1234567' }, /^vatId: ATU1234567 does not look like a VAT id of AT/],
    [{ country: 'DE', vatId: 'ATU12345678' }, /^vatId: /],
  ]
  for (const [details, message] of refused)
    await assert.rejects(invoices.changeDetails(account, { ...CUSTOMER, ...details }, BY), { message })
  const stored = await invoices.changeDetails(account, { ...CUSTOMER, vatId: 'at u123 456 78' }, BY)
  assert.equal(stored.vatId, 'ATU12345678')
  assert.equal((await invoices.details(account)).city, 'Wien')
  // Ireland and Hong Kong do without.
  assert.equal(
    (await invoices.changeDetails(account, { ...CUSTOMER, country: 'HK', postcode: null }, BY)).missing,
    null,
  )
})

test('a payment has one invoice with the next number, however often it is issued, and a new year begins at one', async () => {
  const account = await newAccount()
  const payment = paid()
  const first = await issue(account, payment)
  assert.deepEqual(await issue(account, payment), first)
  const second = await issue(account, paid())
  const numberOf = (one: { number: string } | null) => Number(one?.number.split('-').at(-1))
  assert.equal(numberOf(second), numberOf(first) + 1)
  aheadMs = 366 * 86_400_000
  const year = new Date(world.nowMs()).getUTCFullYear()
  assert.equal((await issue(account, paid()))?.number, `INV-${year}-000001`)
  aheadMs = 0
  const { items } = await invoices.list({ account, limit: 10 })
  assert.deepEqual(
    items.map(({ kind, customer, currency, gross, tax }) => ({ kind, customer, currency, gross, tax })),
    Array(3).fill({ kind: 'payment', customer: 'Kunde AG', currency: 'EUR', gross: '20.00', tax: '3.33' }),
  )
})

test('what an invoice says stays what was true when it was issued', async () => {
  const account = await newAccount()
  const issued = await issue(account, paid())
  await invoices.changeDetails(account, { ...CUSTOMER, company: 'Andere AG', country: 'DE' }, BY)
  const [row] = await database.query<{ document: { customer: BillingDetails } }>(
    { text: 'select document from invoice where account_id = $1 and id = $2' },
    [account, issued?.id ?? ''],
  )
  assert.deepEqual(row?.document.customer, CUSTOMER)
})

test('money that comes from an account without details is invoiced all the same, by its name', async () => {
  const account = await newAccount(null)
  await issue(account, paid())
  assert.equal((await invoices.list({ account, limit: 1 })).items[0]?.customer, 'Zażółć Sp. z o.o.')
})

test('each refund has a credit note; together they have the VAT of the invoice, and none is for more than is left', async () => {
  const account = await newAccount({ country: 'DE', postcode: '10115' })
  const payment = paid({ amountMinor: 1_001n })
  assert.equal(await refund(account, payment.id, 100n), null)
  const invoice = await issue(account, payment)
  for (const sum of [333n, 666n]) await refund(account, payment.id, sum)
  assert.equal(await refund(account, payment.id, 400n), null, 'a refund that failed before, and was made again in part')
  await refund(account, payment.id, 1_500n)
  assert.equal(await refund(account, payment.id, 1_501n), null, 'nothing is left')
  const { items } = await invoices.list({ account, limit: 10 })
  const notes = items.filter(({ kind }) => kind === 'credit_note')
  assert.deepEqual(pluck(notes, 'corrects'), Array(3).fill(invoice?.id))
  const cents = notes.reduce((sum, { tax }) => sum + Math.round(Number(tax) * 100), 0)
  assert.equal(cents, Math.round(Number(items.at(-1)?.tax) * 100))
})

test('VAT follows the countries and the VAT id', () => {
  const of = (country: string, vatId: string | null, more: Partial<Issuer> = {}) => {
    const { category, rate } = taxOf({ ...ISSUER, ...more }, { country, vatId })
    return `${category} ${rate}`
  }
  assert.equal(of('DE', 'DE987654321'), 'S 19')
  assert.equal(of('AT', null), 'S 20')
  assert.equal(of('FR', null), 'S 19')
  assert.equal(of('AT', 'ATU12345678'), 'AE 0')
  assert.equal(of('US', null), 'G 0')
  assert.equal(of('CH', 'CHE123456789', { ratesAbroad: { CH: '8.1' } }), 'S 8.1')
  assert.equal(of('DE', null, { exemption: '§ 19 UStG' }), 'E 0')
  assert.equal(of('US', null, { country: 'US', vatId: null, taxNumber: null, taxRate: '0' }), 'O 0')
})

test('VAT ids are told by their form in each country', () => {
  const good: Array<[string, string]> = [
    ...([
      ['ATU12345678', 'AT'],
      ['EL123456789', 'GR'],
      ['NL123456789B01', 'NL'],
      ['IE1234567FA', 'IE'],
    ] as const),
    ...([
      ['FRXX123456789', 'FR'],
      ['ESX1234567R', 'ES'],
      ['CHE123456789', 'CH'],
      ['SGM12345678X', 'SG'],
    ] as const),
  ].map(([id, country]) => [id, country])
  const bad: Array<[string, string]> = [
    ...([
      ['AT12345678', 'AT'],
      ['GR123456789', 'GR'],
      ['NL123456789', 'NL'],
      ['DE12345678', 'DE'],
    ] as const),
    ...([
      ['DE1234567890', 'DE'],
      ['12345678', 'SG'],
      ['', 'DE'],
    ] as const),
  ].map(([id, country]) => [id, country])
  none(good, ([id, country]) => !isVatId(id, country))
  none(bad, ([id, country]) => isVatId(id, country))
})

test('net and VAT come to what was paid, and a rate that somebody else used is found again', () => {
  for (const rate of ['0', '5.5', '7', '8.1', '19', '20', '25.5', '27'])
    for (let gross = 1n; gross < 50_000n; gross += 37n) {
      const tax = taxIn(gross, rate)
      assert.ok(tax >= 0n && tax < gross)
      // The net amount times the rate is the VAT, to less than one unit.
      const exact = Number(gross - tax) * (Number(rate) / 100)
      assert.ok(Math.abs(exact - Number(tax)) < 0.65, `${gross} at ${rate}`)
      if (gross > 2_000n) assert.equal(taxIn(gross, rateOf(gross, tax)), tax)
    }
})

/**
 * 64 payments at a time in several processes that are killed in between, with transactions that fail after they took a
 * number.
 */
test('numbers have no gap and no payment is without its invoice, whoever is killed', async () => {
  const account = await newAccount()
  await invoices.changeSettings({ issuer: { ...ISSUER, series: 'SWARM' } }, BY)
  const durable = new Set<string>()
  const processes = 4
  const each = runs(30, 600)
  const run = (isKilled: boolean) =>
    new Promise<void>((resolve, reject) => {
      const child = fork(join(import.meta.dirname, '../../../../test/invoice-process.ts'), [
        url,
        account,
        String(64 / processes),
        String(each),
      ])
      let said = 0
      child.on('message', (payment: string) => {
        durable.add(payment)
        said += 1
        if (isKilled && said === Math.floor(each / 3)) child.kill('SIGKILL')
      })
      child.on('error', reject)
      child.on('exit', (code) => (isKilled || code === 0 ? resolve() : reject(new Error(`exit ${code}`))))
    })
  for (let round = 0; round < runs(1, 5); round++) await atOnce(processes, (at) => run(at % 2 === 0))
  await invoices.changeSettings({ issuer: ISSUER }, BY)
  const rows = await database.query<{ sequence: number; payment_id: string }>({
    text: `select sequence, payment_id from invoice where series = 'SWARM' order by sequence`,
  })
  assert.deepEqual(
    pluck(rows, 'sequence'),
    rows.map((_, at) => at + 1),
  )
  const invoiced = new Set(rows.map((row) => row.payment_id))
  assert.equal(invoiced.size, rows.length)
  none(durable, (payment) => !invoiced.has(payment))
  assert.ok(durable.size >= each)
})
