// Invoices: the issuer's details, whom each account's are made out to, and the issuing itself. A payment is recorded and its invoice issued in one transaction, so that the one is
// never there without the other. Numbers have no gaps for the same reason: the counter goes back with the transaction.
import { hash } from 'node:crypto'
import { accountUnknown } from '../../../admission/accounts.ts'
import type { Audit, By } from '../../../database/audit.ts'
import { type Database, type Queryable, statement } from '../../../database/database.ts'
import { defineSetting } from '../../../database/setting.ts'
import type { Branding } from '../../../identity/branding/branding.ts'
import { type BrandingView, DEFAULT_NAME } from '../../../identity/branding/views.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart } from '../../../kernel/calendar.ts'
import { formatMoney } from '../../../kernel/credits.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { asPage, asView, type Page, type Paging } from '../../../kernel/view.ts'
import { newId, type World } from '../../../kernel/world.ts'
import { isCountry, isVatId, plainVatId, rateOf, taxIn, taxOf, taxOn } from './vat.ts'
import {
  type BillingDetails,
  type BillingDetailsView,
  type InvoiceDocument,
  type InvoiceSettings,
  type InvoiceTax,
  type InvoiceView,
  type Issuer,
  invoiceSettings,
  invoiceView,
} from './views.ts'

export interface Invoices {
  settings(): Promise<InvoiceSettings>
  /** What is absent stays. Without an issuer no invoices are issued; numbers go on where they were. */
  changeSettings(patch: SettingsPatch, by: By): Promise<InvoiceSettings>
  details(account: string): Promise<BillingDetailsView>
  changeDetails(account: string, details: BillingDetails, by: By): Promise<BillingDetailsView>
  /** The first field of the account's billing details without which nothing may be sold to it; null: none, or no invoices are issued. */
  missing(account: string): Promise<keyof BillingDetails | null>
  /**
   * The invoice for a payment, in the transaction that records it, as its last statement but the audit: it waits for a lock that all issuing shares. Null where no invoices are issued.
   * With the payment of an earlier invoice: that invoice.
   */
  issue(tx: Queryable, input: { account: string; payment: InvoicedPayment }): Promise<Issued | null>
  /** For a refund, in its transaction and as late. Null where the payment has no invoice. */
  creditNote(tx: Queryable, input: { account: string; payment: string; amountMinor: bigint }): Promise<Issued | null>
  /** For credits that an account used in a month and has not paid for. */
  issueMonth(tx: Queryable, input: InvoicedMonth): Promise<Issued>
  list(filter: InvoiceFilter): Promise<Page<InvoiceView>>
  find(invoice: string, account: string): Promise<InvoiceView>
  /** Its PDF: made when it is first asked for, and the same bytes ever after. Of another account's there is none. */
  file(invoice: string, account?: string): Promise<InvoiceFile>
  /** Makes the files of invoices that nobody has read yet, so that they are as old as their invoices. */
  makeFiles(): Promise<void>
}

interface InvoicedPayment {
  readonly id: string
  readonly currency: string
  /** What was paid, with any VAT in it. */
  readonly amountMinor: bigint
  /** By the simulated provider: no money came. */
  readonly isTest?: boolean
  /** What was bought, in a few words: "2,200 credits". */
  readonly description: string
  readonly paidAt: Date
  /** Of a plan: the first day and the last of the month that was paid. Absent: the day of the payment. */
  readonly period?: { readonly fromDay: number; readonly toDay: number } | undefined
  /** Where whoever took the payment worked out the VAT in it; by the issuer's rates otherwise. */
  readonly taxMinor?: bigint | undefined
}

interface InvoicedMonth {
  readonly account: string
  /** Its first day and its last, as numbers of days. */
  readonly firstDay: number
  readonly lastDay: number
  readonly credits: bigint
  readonly currency: string
  readonly netMinor: bigint
  readonly description: string
}

interface InvoiceFile {
  readonly name: string
  readonly body: Buffer
}

interface Issued {
  readonly id: string
  readonly number: string
}

interface SettingsPatch {
  readonly issuer?: Issuer | null | undefined
  readonly monthly?: boolean | undefined
}

export interface InvoiceFilter extends Paging {
  readonly account?: string | undefined
  readonly kind?: InvoiceView['kind'] | undefined
  /** Moments of issue; `toMs` is the first moment after. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  /** The beginning of a number, or a part of the customer's name. */
  readonly q?: string | undefined
}

const DETAILS = statement('billing_details', 'select details from billing_details where account_id = $1')
const PUT_DETAILS = statement(
  'billing_details_put',
  `insert into billing_details (account_id, details) select id, $2 from account where id = $1
   on conflict (account_id) do update set details = excluded.details returning 1`,
)
const ACCOUNT = statement('invoice_account', 'select name from account where id = $1')
const NEXT = statement(
  'invoice_next',
  `insert into invoice_counter (series, year, last) values ($1, $2, 1)
   on conflict (series, year) do update set last = invoice_counter.last + 1 returning last`,
)
const INSERT = statement(
  'invoice_insert',
  `insert into invoice (account_id, id, number, series, year, sequence, kind, payment_id, month, credits, corrects, currency, gross_minor, tax_minor, customer, issued_at, document)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, to_timestamp($16::double precision / 1000), $17)`,
)
const OF_PAYMENT = statement(
  'invoice_of_payment',
  `select id, number, document, (select coalesce(sum(n.gross_minor), 0)::bigint from invoice n where n.account_id = i.account_id and n.corrects = i.id) as credited
   from invoice i where account_id = $1 and payment_id = $2 and kind = 'payment'`,
)
const COLUMNS = `account_id, id, number, kind, payment_id, to_char(month, 'YYYY-MM') as month, corrects, currency, gross_minor, tax_minor, customer, issued_at`
const ONE = statement('invoice_one', `select ${COLUMNS} from invoice where account_id = $1 and id = $2`)
const LIST = statement(
  'invoice_list',
  `select ${COLUMNS} from invoice
   where id < $1 and ($3::text is null or account_id = $3) and ($4::text is null or kind = $4)
     and ($5::double precision is null or issued_at >= to_timestamp($5 / 1000)) and ($6::double precision is null or issued_at < to_timestamp($6 / 1000))
     and ($7::text is null or starts_with(lower(number), lower($7)) or strpos(lower(customer), lower($7)) > 0)
   order by id desc limit $2`,
)

const FIND = statement(
  'invoice_find',
  'select account_id, number, document from invoice where id = $1 and ($2::text is null or account_id = $2)',
)
const FIND_FILE = statement(
  'invoice_file',
  'select pdf, sha256 from invoice_file where account_id = $1 and invoice_id = $2',
)
/** Of two processes that make it at once, the first is kept. */
const PUT_FILE = statement(
  'invoice_file_put',
  'insert into invoice_file (account_id, invoice_id, pdf, sha256) values ($1, $2, $3, $4) on conflict do nothing',
)
const WITHOUT_FILE = statement(
  'invoice_without_file',
  `select id from invoice i where not exists (select 1 from invoice_file f where f.account_id = i.account_id and f.invoice_id = i.id)
   order by id limit $1`,
)

interface ListRow {
  id: string
  account_id: string
  payment_id: string | null
  currency: string
  gross_minor: bigint
  tax_minor: bigint
}

const SETTINGS = defineSetting({
  ...{ name: 'invoices', schema: invoiceSettings, defaults: { issuer: null, monthly: false, monthlySince: null } },
  ...{ action: 'system.invoices', object: 'system' },
})
const NO_DETAILS: BillingDetails = {
  ...{ company: null, name: null, street: null, postcode: null, city: null, country: null, vatId: null, email: null },
}
/** Countries without postcodes, or where many addresses have none. */
const NO_POSTCODE = new Set(
  `AE AG AO AW BF BI BJ BO BS BW BZ CD CF CG CI CK CM DJ DM ER FJ GA GD GH GM GQ GY HK IE JM KI KM KN KP LC ML MO MR MW NR NU PA QA RW SB SC SL SR ST SY TD TF
   TG TK TL TO TT TV TZ UG VU YE ZW`.split(/\s+/),
)
/** At a time: drawing one takes some hundredths of a second of the process. */
const FILES_AT_ONCE = 50
const GATEWAY: By = { actor: 'system', ip: null, requestId: null }
const NO_VAT_CHARGED: InvoiceTax = { category: 'E', rate: '0', reason: 'No VAT was charged.' }

export function createInvoices(options: {
  database: Database
  world: World
  audit: Audit
  /** Absent: invoices have no look of their own. */
  branding?: Pick<Branding, 'get' | 'logo'>
}): Invoices {
  const { database, world, audit, branding } = options

  async function readDetails(on: Queryable, account: string): Promise<BillingDetails> {
    const [row] = await on.query<{ details: BillingDetails }>(DETAILS, [account])
    return { ...NO_DETAILS, ...row?.details }
  }

  /** Whom it is made out to. Nothing is sold where details are missing; money that comes all the same is invoiced by what is known. */
  async function customerOf(tx: Queryable, account: string, issuer: Issuer) {
    const details = await readDetails(tx, account)
    const [row] = await tx.query<{ name: string }>(ACCOUNT, [account])
    const name = row?.name ?? account
    const customer = {
      ...details,
      name: details.name ?? (details.company === null ? name : null),
      country: details.country ?? issuer.country,
    }
    return { customer, account: { id: account, name } }
  }

  /** Takes the number and writes the row: nothing may fail for its data afterwards. */
  async function write(
    tx: Queryable,
    document: Omit<InvoiceDocument, 'number' | 'issuedOn' | 'brand'>,
    row: { month?: string; credits?: bigint; corrects?: string },
  ): Promise<Issued> {
    const nowMs = world.nowMs()
    const issuedOn = formatDay(dayOfMs(nowMs))
    const year = Number(issuedOn.slice(0, 4))
    const { series } = document.issuer
    const { kind, payment, currency, grossMinor, taxMinor, customer, account } = document
    const id = newId(world)
    const [counter] = await tx.query<{ last: number }>(NEXT, [series, year])
    if (!counter) throw new Error('The counter of invoices gave no number.')
    const number = `${series}-${year}-${String(counter.last).padStart(6, '0')}`
    await tx.query(INSERT, [
      ...[account.id, id, number, series, year, counter.last, kind, payment],
      ...[row.month ?? null, row.credits ?? null, row.corrects ?? null, currency, grossMinor, taxMinor],
      ...[
        customer.company ?? customer.name ?? account.name,
        nowMs,
        JSON.stringify({ ...document, number, issuedOn, brand: brandOf(branding?.get()) }),
      ],
    ])
    await audit.write(tx, GATEWAY, {
      ...{ action: 'invoice.issue', object: account.id, detail: { number }, rows: [['invoice', account.id, id]] },
    })
    return { id, number }
  }

  async function readFile(account: string, invoice: string): Promise<Buffer | undefined> {
    const [row] = await database.query<{ pdf: Buffer; sha256: Buffer }>(FIND_FILE, [account, invoice])
    if (row && !digestOf(row.pdf).equals(row.sha256)) throw new Error(`The file of invoice ${invoice} was changed.`)
    return row?.pdf
  }

  async function file(invoice: string, account?: string): Promise<InvoiceFile> {
    const [row] = await database.query<{ account_id: string; number: string; document: InvoiceDocument }>(FIND, [
      invoice,
      account ?? null,
    ])
    if (!row) throw invoiceUnknown()
    const name = `${row.number}.pdf`
    const kept = await readFile(row.account_id, invoice)
    if (kept) return { name, body: kept }
    const { invoicePdf } = await import('./invoice-pdf.ts')
    // The logo of now: it is large, and the file is made within the hour.
    const pdf = await invoicePdf(row.document, branding?.logo()?.bytes)
    await database.query(PUT_FILE, [row.account_id, invoice, pdf, digestOf(pdf)])
    return { name, body: (await readFile(row.account_id, invoice)) ?? pdf }
  }

  return {
    file,

    async makeFiles() {
      const rows = await database.query<{ id: string }>(WITHOUT_FILE, [FILES_AT_ONCE])
      for (const { id } of rows) await file(id)
    },

    settings: () => SETTINGS.read(database),

    async changeSettings({ issuer, monthly }, by) {
      if (issuer) checkIssuer(issuer)
      return SETTINGS.change({ database, audit }, by, (before) => {
        const after = {
          issuer: issuer === undefined ? before.issuer : issuer,
          monthly: monthly ?? before.monthly,
          // Months before it are not invoiced.
          monthlySince: (monthly ?? before.monthly) ? (before.monthlySince ?? monthOf(world)) : null,
        }
        if (after.monthly && after.issuer === null)
          throw invalid('monthly: there is no issuer whose invoices these would be.', 'monthly')
        return after
      })
    },

    async details(account) {
      const { issuer } = await SETTINGS.read(database)
      const details = await readDetails(database, account)
      return { ...details, missing: issuer ? missingOf(details) : null }
    },

    async changeDetails(account, given, by) {
      const details = { ...given, vatId: given.vatId === null ? null : plainVatId(given.vatId) }
      checkDetails(details)
      return database.transaction(async (tx) => {
        const { issuer } = await SETTINGS.read(tx)
        const missing = issuer ? missingOf(details) : null
        // What is there may be replaced, and not be taken away: the next payment's invoice needs it.
        if (missing !== null) throw invalid(`${missing}: must not be empty; invoices need it.`, missing)
        const [put] = await tx.query(PUT_DETAILS, [account, JSON.stringify(details)])
        if (!put) throw accountUnknown()
        const fields = Object.entries(details).flatMap(([name, value]) => (value === null ? [] : [name]))
        await audit.write(tx, by, { action: 'account.billing_details', object: account, detail: { fields } })
        return { ...details, missing }
      })
    },

    async missing(account) {
      const { issuer } = await SETTINGS.read(database)
      return issuer ? missingOf(await readDetails(database, account)) : null
    },

    async issue(tx, { account: id, payment }) {
      const [earlier] = await tx.query<Issued>(OF_PAYMENT, [id, payment.id])
      if (earlier) return { id: earlier.id, number: earlier.number }
      const { issuer: usual } = await SETTINGS.read(tx)
      if (!usual) return null
      // The numbers of real invoices have no gap.
      const issuer = payment.isTest ? { ...usual, series: 'TEST' } : usual
      const { customer, account } = await customerOf(tx, id, issuer)
      const { amountMinor: gross } = payment
      const tax = taxOfPayment(payment, taxOf(issuer, customer))
      const taxMinor = payment.taxMinor ?? taxIn(gross, tax.rate)
      const paidOn = formatDay(dayOfMs(payment.paidAt.getTime()))
      return write(
        tx,
        {
          ...{ kind: 'payment', issuer, customer, account, tax, currency: payment.currency },
          ...amounts(gross, taxMinor),
          description: `${payment.isTest ? 'Test payment, no money was paid: ' : ''}${payment.description}`,
          ...{ payment: payment.id, corrects: null },
          ...{ paidOn, dueOn: null },
          from: payment.period ? formatDay(payment.period.fromDay) : paidOn,
          to: payment.period ? formatDay(payment.period.toDay) : paidOn,
        },
        {},
      )
    },

    async creditNote(tx, { account, payment, amountMinor: wanted }) {
      const [found] = await tx.query<Issued & { document: InvoiceDocument; credited: bigint }>(OF_PAYMENT, [
        account,
        payment,
      ])
      if (!found) return null
      const { document, credited } = found
      const gross = BigInt(document.grossMinor)
      // A refund that failed and was made again has its credit note already.
      const amountMinor = wanted < gross - credited ? wanted : gross - credited
      if (amountMinor <= 0n) return null
      // Of the whole refunded so far, so that the VAT of all credit notes comes to that of the invoice.
      const taxOfPart = (part: bigint) => (BigInt(document.taxMinor) * part * 2n + gross) / (gross * 2n)
      const taxMinor = taxOfPart(credited + amountMinor) - taxOfPart(credited)
      const today = formatDay(dayOfMs(world.nowMs()))
      return write(
        tx,
        {
          ...document,
          ...amounts(amountMinor, taxMinor),
          ...{ kind: 'credit_note', corrects: { number: document.number, issuedOn: document.issuedOn } },
          ...{ description: `Refund: ${document.description}`, paidOn: today, dueOn: null },
        },
        { corrects: found.id },
      )
    },

    async issueMonth(tx, { account: id, firstDay, lastDay, credits, currency, netMinor, description }) {
      const { issuer } = await SETTINGS.read(tx)
      if (!issuer) throw new Error('Nobody issues invoices.')
      const { customer, account } = await customerOf(tx, id, issuer)
      const tax = taxOf(issuer, customer)
      const from = formatDay(firstDay)
      const taxMinor = taxOn(netMinor, tax.rate)
      return write(
        tx,
        {
          ...{ kind: 'month', issuer, customer, account, tax, currency, description },
          ...amounts(netMinor + taxMinor, taxMinor),
          ...{ payment: null, corrects: null, paidOn: null, from, to: formatDay(lastDay) },
          dueOn: formatDay(dayOfMs(world.nowMs() + issuer.paymentDays * DAY_MS)),
        },
        { month: from, credits },
      )
    },

    async find(invoice, account) {
      const [row] = await database.query<ListRow>(ONE, [account, invoice])
      if (!row) throw invoiceUnknown()
      return viewOf(row)
    },

    async list({ cursor, limit, account, kind, fromMs, toMs, q }) {
      const filter = [account ?? null, kind ?? null, fromMs ?? null, toMs ?? null, q || null]
      const rows = await database.query<ListRow>(LIST, [cursor ?? '~', limit + 1, ...filter])
      return asPage(rows, limit, viewOf)
    },
  }
}

/** Undefined where nobody has chosen a name or colour. */
function brandOf(view: BrandingView | undefined): InvoiceDocument['brand'] | undefined {
  if (!view || (view.name === DEFAULT_NAME && view.color === null)) return undefined
  return { name: view.name, color: view.color }
}

const invoiceUnknown = () => new Fault('not_found', { message: 'There is no such invoice.' })
const monthOf = (world: World) => formatDay(monthStart(dayOfMs(world.nowMs())))
const digestOf = (bytes: Buffer) => hash('sha256', bytes, 'buffer')

function amounts(gross: bigint, tax: bigint) {
  return { grossMinor: String(gross), taxMinor: String(tax), netMinor: String(gross - tax) }
}

/** What the taker of the payment worked out is what was charged, whatever the issuer's rates say. */
function taxOfPayment({ amountMinor, taxMinor }: InvoicedPayment, tax: InvoiceTax): InvoiceTax {
  if (taxMinor === undefined || taxIn(amountMinor, tax.rate) === taxMinor) return tax
  return taxMinor === 0n ? NO_VAT_CHARGED : { category: 'S', rate: rateOf(amountMinor, taxMinor), reason: null }
}

/** The first field without which an invoice would not say to whom it is made out. */
function missingOf(details: BillingDetails): keyof BillingDetails | null {
  if (details.company === null && details.name === null) return 'name'
  for (const field of ['street', 'city', 'country'] as const) if (details[field] === null) return field
  return details.postcode === null && !NO_POSTCODE.has(details.country ?? '') ? 'postcode' : null
}

function checkDetails({ country, vatId }: BillingDetails): void {
  if (country !== null) checkCountry(country, 'country')
  if (vatId === null) return
  if (country === null) throw invalid('country: must be given with a VAT id.', 'country')
  checkVatId(vatId, country, 'vatId')
}

function checkIssuer(issuer: Issuer): void {
  checkCountry(issuer.country, 'issuer')
  if (issuer.vatId !== null) checkVatId(issuer.vatId, issuer.country, 'issuer')
  for (const country of Object.keys(issuer.ratesAbroad)) checkCountry(country, 'issuer')
  // EN 16931 wants one by which an office or a register knows the issuer.
  if (issuer.vatId === null && issuer.registration === null && issuer.taxNumber === null)
    throw invalid('issuer.vatId: must be given, or taxNumber or registration.', 'issuer')
  if (issuer.iban !== null && !isIban(issuer.iban)) throw invalid('issuer.iban: is not an IBAN.', 'issuer')
}

function checkCountry(country: string, param: string): void {
  if (!isCountry(country)) throw invalid(`${param}: ${country} is not a country code such as DE or US.`, param)
}

function checkVatId(vatId: string, country: string, param: string): void {
  if (!isVatId(vatId, country))
    throw invalid(`${param}: ${vatId} does not look like a VAT id of ${country}, with its letters in front.`, param)
}

/** By its check digits: the letters are numbers from 10 on, the first four characters go to the end, and 1 is left of a division by 97. */
function isIban(iban: string): boolean {
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(iban)) return false
  const digits = [...iban.slice(4), ...iban.slice(0, 4)].map((char) => Number.parseInt(char, 36)).join('')
  return BigInt(digits) % 97n === 1n
}

function viewOf(row: ListRow): InvoiceView {
  return {
    ...asView(invoiceView, row),
    ...{ account: row.account_id, payment: row.payment_id },
    gross: formatMoney(row.gross_minor, row.currency),
    tax: formatMoney(row.tax_minor, row.currency),
  }
}
