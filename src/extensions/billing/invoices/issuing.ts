// Issuing invoices and credit notes, for the gateway's own sales and for accounts that sell to customers of theirs. A
// payment is recorded and its invoice issued in one transaction, so that the one is never there without the other.
// Numbers have no gaps for the same reason: the counter goes back with the transaction. With several ledgers a number
// that was taken and not used is given to the next invoice.
import { hash } from 'node:crypto'
import type { By } from '../../../database/audit.ts'
import { type Queryable, type Statement, sql } from '../../../database/database.ts'
import type { CoreParts } from '../../../extension.ts'
import { DAY_MS, dayOfMs, formatDay } from '../../../kernel/calendar.ts'
import { Fault } from '../../../kernel/fault.ts'
import { asPage, asView, type Paging } from '../../../kernel/view.ts'
import { newId } from '../../../kernel/world.ts'
import { formatMoney } from '../money.ts'
import { NO_DETAILS, TEST_SERIES } from './details.ts'
import { rateOf, taxIn, taxOf, taxOn } from './vat.ts'
import {
  type BillingDetails,
  type InvoiceDocument,
  type InvoiceTax,
  type InvoiceView,
  type Issuer,
  invoiceView,
} from './views.ts'

/** A customer of the gateway, or of an account: then the purse is named. */
interface Customer {
  readonly account: string
  readonly purse?: string | undefined
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

export interface InvoiceFilter extends Paging {
  readonly account?: string | undefined
  /** Only of accounts that sell to customers of theirs. */
  readonly purse?: string | undefined
  readonly kind?: InvoiceView['kind'] | undefined
  /** Moments of issue; `toMs` is the first moment after. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  /** The beginning of a number, or a part of the customer's name. */
  readonly q?: string | undefined
}

/** Who issues invoices, and how those look. */
export interface Seller {
  /** Null: no invoices are issued. */
  readonly issuer: Issuer | null
  /** Absent: it has none. */
  readonly brand?: InvoiceDocument['brand'] | undefined
  readonly logo?: Buffer | undefined
}

interface IssuingOptions extends Pick<CoreParts, 'database' | 'world' | 'audit'> {
  /** Whether accounts sell to customers of theirs, each with numbers of its own. */
  readonly isOfPurses: boolean
  /** By the account of the customer. */
  readonly seller: (on: Queryable, account: string) => Promise<Seller>
  /**
   * Whom it is made out to. Nothing is sold where details are missing; money that comes all the same is invoiced by
   * what is known.
   */
  readonly customer: (
    on: Queryable,
    customer: Customer,
  ) => Promise<{ readonly name: string; readonly details: Partial<BillingDetails> }>
}

const NEXT = sql('invoice_next')`with next as (
     update invoice_counter set last = last + 1 where account_id = $1 and series = $2 and year = $3 returning last
   ), first as (
     insert into invoice_counter (account_id, series, year, last) select $1, $2, $3, 1 where not exists (select 1 from next)
     on conflict do nothing returning last
   ) select last from next union all select last from first`
/** Of a ledger whose transaction ended between the commit of the control database and its own. */
const FREED = sql('invoice_freed')`
  delete from crossing where id = (
     select id from crossing where ledger = '' and kind = 'number'
       and (detail ->> 'seller', detail ->> 'series', detail ->> 'year') = ($1, $2, $3::int::text)
     order by (detail ->> 'sequence')::int limit 1) returning (detail ->> 'sequence')::int as last`
const INSERT = sql('invoice_insert')`
  insert into invoice (account_id, id, number, series, year, sequence, kind, payment_id, month, credits, corrects, currency, gross_minor, tax_minor, customer, issued_at, document, purse_id)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, to_timestamp($16::double precision / 1000), $17, $18)`
const OF_PAYMENT = sql('invoice_of_payment')`
  select id, number, document, purse_id, (select coalesce(sum(n.gross_minor), 0)::bigint from invoice n where n.account_id = i.account_id and n.corrects = i.id) as credited
   from invoice i where account_id = $1 and payment_id = $2 and kind = 'payment'`
const COLUMNS = `account_id, purse_id, id, number, kind, payment_id, to_char(month, 'YYYY-MM') as month, corrects, currency, gross_minor, tax_minor, customer, issued_at`
const ONE = sql('invoice_one')`
  select ${COLUMNS} from invoice where account_id = $1 and id = $2 and purse_id is not distinct from $3`
const LIST = sql('invoice_list')`select ${COLUMNS} from invoice
   where id < $1 and (purse_id is not null) = $8 and ($9::text is null or purse_id = $9) and ($3::text is null or account_id = $3) and ($4::text is null or kind = $4)
     and ($5::double precision is null or issued_at >= to_timestamp($5 / 1000)) and ($6::double precision is null or issued_at < to_timestamp($6 / 1000))
     and ($7::text is null or starts_with(lower(number), lower($7)) or strpos(lower(customer), lower($7)) > 0)
   order by id desc limit $2`

const FIND = sql('invoice_find')`select account_id, number, document from invoice
   where id = $1 and (purse_id is not null) = $2 and ($3::text is null or account_id = $3) and ($4::text is null or purse_id = $4)`
const FIND_FILE = sql('invoice_file')`select pdf, sha256 from invoice_file where account_id = $1 and invoice_id = $2`
/** Of two processes that make it at once, the first is kept. */
const PUT_FILE = sql('invoice_file_put')`
  insert into invoice_file (account_id, invoice_id, pdf, sha256) values ($1, $2, $3, $4) on conflict do nothing`
/** In any order: those of one account that cannot be drawn keep back no others, and processes draw different ones. */
const WITHOUT_FILE = sql('invoice_without_file')`
  select id from invoice i where (purse_id is not null) = $2 and not exists (select 1 from invoice_file f where f.account_id = i.account_id and f.invoice_id = i.id)
   order by random() limit $1`

interface ListRow {
  id: string
  account_id: string
  purse_id: string | null
  payment_id: string | null
  currency: string
  gross_minor: bigint
  tax_minor: bigint
}

/** At a time: drawing one takes some hundredths of a second of the process. */
const FILES_AT_ONCE = 50
/** Of a list that is read as a whole. */
const LISTED_AT_ONCE = 100
/** In place of an account. */
const OPERATOR = ''
const GATEWAY: By = { actor: 'system', ip: null, requestId: null }
const NO_VAT_CHARGED: InvoiceTax = { category: 'E', rate: '0', reason: 'No VAT was charged.' }

export type Issuing = ReturnType<typeof createIssuing>

export function createIssuing({ database, world, audit, isOfPurses, ...of }: IssuingOptions) {
  async function customerOf(tx: Queryable, to: Customer, issuer: Issuer) {
    const { name, details } = await of.customer(tx, to)
    const known = { ...NO_DETAILS, ...details }
    const customer = {
      ...known,
      name: known.name ?? (known.company === null ? name : null),
      country: known.country ?? issuer.country,
    }
    return { customer, account: { id: to.purse ?? to.account, name } }
  }

  /** Takes the number and writes the row: nothing may fail for its data afterwards. */
  async function write(
    tx: Queryable,
    document: Omit<InvoiceDocument, 'number' | 'issuedOn' | 'brand'>,
    row: Customer & { brand: Seller['brand']; month?: string; credits?: bigint; corrects?: string },
  ): Promise<Issued> {
    const nowMs = world.nowMs()
    const issuedOn = formatDay(dayOfMs(nowMs))
    const year = Number(issuedOn.slice(0, 4))
    const { series } = document.issuer
    const { kind, payment, currency, grossMinor, taxMinor, customer } = document
    const { account, purse, brand } = row
    const next = async (from: Statement) =>
      (await tx.query<{ last: number }>(from, [isOfPurses ? account : OPERATOR, series, year]))[0]
    // None: another one was the first of the year just then.
    const counter = (await next(FREED)) ?? (await next(NEXT)) ?? (await next(NEXT))
    if (!counter) throw new Error('The counter of invoices gave no number.')
    // Made after the wait for the number: lists are in the order of ids.
    const id = newId(world)
    const number = `${series}-${year}-${String(counter.last).padStart(6, '0')}`
    await tx.query(INSERT, [
      account,
      id,
      number,
      series,
      year,
      counter.last,
      kind,
      payment,
      row.month ?? null,
      row.credits ?? null,
      row.corrects ?? null,
      currency,
      grossMinor,
      taxMinor,
      customer.company ?? customer.name ?? document.account.name,
      nowMs,
      JSON.stringify({ ...document, number, issuedOn, brand }),
      purse ?? null,
    ])
    await audit.write(tx, GATEWAY, {
      action: 'invoice.issue',
      object: account,
      detail: { number },
      rows: [['invoice', account, id]],
    })
    return { id, number }
  }

  async function readFile(account: string, invoice: string): Promise<Buffer | undefined> {
    const [row] = await database.query<{ pdf: Buffer; sha256: Buffer }>(FIND_FILE, [account, invoice])
    if (row && !digestOf(row.pdf).equals(row.sha256)) throw new Error(`The file of invoice ${invoice} was changed.`)
    return row?.pdf
  }

  /** Its PDF: made when it is first asked for, and the same bytes ever after. Of another customer's there is none. */
  async function file(invoice: string, account?: string, purse?: string): Promise<InvoiceFile> {
    const [row] = await database.query<{ account_id: string; number: string; document: InvoiceDocument }>(FIND, [
      invoice,
      isOfPurses,
      account ?? null,
      purse ?? null,
    ])
    if (!row) throw invoiceUnknown()
    const name = `${row.number}.pdf`
    const kept = await readFile(row.account_id, invoice)
    if (kept) return { name, body: kept }
    const { invoicePdf } = await import('./invoice-pdf.ts')
    // The logo of now: it is large, and the file is made within the hour.
    const { logo } = await of.seller(database, row.account_id)
    const pdf = await invoicePdf(row.document, logo)
    await database.query(PUT_FILE, [row.account_id, invoice, pdf, digestOf(pdf)])
    return { name, body: (await readFile(row.account_id, invoice)) ?? pdf }
  }

  async function list({ cursor, limit, account, purse, kind, fromMs, toMs, q }: InvoiceFilter) {
    const filter = [account ?? null, kind ?? null, fromMs ?? null, toMs ?? null, q || null]
    const values = [cursor ?? '~', limit + 1, ...filter, isOfPurses, purse ?? null]
    return asPage(await database.query<ListRow>(LIST, values), limit, viewOf)
  }

  return {
    file,
    list,

    /** Those of a list, in its order. */
    async *files(filter: InvoiceFilter): AsyncGenerator<InvoiceFile> {
      for (let cursor: string | undefined; ; ) {
        const { items, next } = await list({ ...filter, cursor, limit: LISTED_AT_ONCE })
        for (const { id, account } of items) yield await file(id, account)
        if (next === null) return
        cursor = next
      }
    },

    /** Makes the files of invoices that nobody has read yet, so that they are as old as their invoices. */
    async makeFiles(): Promise<void> {
      const rows = await database.query<{ id: string }>(WITHOUT_FILE, [FILES_AT_ONCE, isOfPurses])
      const problems: unknown[] = []
      for (const { id } of rows) await file(id).catch((problem: unknown) => problems.push(problem))
      if (problems.length > 0) throw problems[0]
    },

    /**
     * The invoice for a payment, in the transaction that records it, as its last statement but the audit: it waits for
     * a lock that all issuing by one seller shares. Null where no invoices are issued. With the payment of an earlier
     * invoice: that invoice.
     */
    async issue(tx: Queryable, { payment, ...to }: Customer & { payment: InvoicedPayment }): Promise<Issued | null> {
      const [earlier] = await tx.query<Issued>(OF_PAYMENT, [to.account, payment.id])
      if (earlier) return { id: earlier.id, number: earlier.number }
      const { issuer: usual, brand } = await of.seller(tx, to.account)
      if (!usual) return null
      const issuer = payment.isTest ? { ...usual, series: TEST_SERIES } : usual
      const { customer, account } = await customerOf(tx, to, issuer)
      const { amountMinor: gross } = payment
      const tax = taxOfPayment(payment, taxOf(issuer, customer))
      const taxMinor = payment.taxMinor ?? taxIn(gross, tax.rate)
      const paidOn = formatDay(dayOfMs(payment.paidAt.getTime()))
      return write(
        tx,
        {
          kind: 'payment',
          issuer,
          customer,
          account,
          tax,
          currency: payment.currency,
          ...amounts(gross, taxMinor),
          description: `${payment.isTest ? 'Test payment, no money was paid: ' : ''}${payment.description}`,
          payment: payment.id,
          corrects: null,
          paidOn,
          dueOn: null,
          from: payment.period ? formatDay(payment.period.fromDay) : paidOn,
          to: payment.period ? formatDay(payment.period.toDay) : paidOn,
        },
        { ...to, brand },
      )
    },

    /**
     * For a refund, in its transaction and as late: over what was refunded so far and has no credit note. Null where
     * the payment has no invoice.
     */
    async creditNote(
      tx: Queryable,
      { account, payment, refundedMinor: refunded }: { account: string; payment: string; refundedMinor: bigint },
    ): Promise<Issued | null> {
      const [found] = await tx.query<Issued & { document: InvoiceDocument; credited: bigint; purse_id: string | null }>(
        ...([OF_PAYMENT, [account, payment]] as const),
      )
      if (!found) return null
      const { document, credited } = found
      const gross = BigInt(document.grossMinor)
      // A refund that failed and was made again has its credit note already.
      const amountMinor = (refunded < gross ? refunded : gross) - credited
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
          kind: 'credit_note',
          corrects: { number: document.number, issuedOn: document.issuedOn },
          description: `Refund: ${document.description}`,
          paidOn: today,
          dueOn: null,
        },
        {
          account,
          purse: found.purse_id ?? undefined,
          corrects: found.id,
          brand: (await of.seller(tx, account)).brand,
        },
      )
    },

    /** For credits that an account used in a month and has not paid for. */
    async issueMonth(
      tx: Queryable,
      { account: id, firstDay, lastDay, credits, currency, netMinor, description }: InvoicedMonth,
    ): Promise<Issued> {
      const { issuer, brand } = await of.seller(tx, id)
      if (!issuer) throw new Error('Nobody issues invoices.')
      const { customer, account } = await customerOf(tx, { account: id }, issuer)
      const tax = taxOf(issuer, customer)
      const from = formatDay(firstDay)
      const taxMinor = taxOn(netMinor, tax.rate)
      return write(
        tx,
        {
          kind: 'month',
          issuer,
          customer,
          account,
          tax,
          currency,
          description,
          ...amounts(netMinor + taxMinor, taxMinor),
          payment: null,
          corrects: null,
          paidOn: null,
          from,
          to: formatDay(lastDay),
          dueOn: formatDay(dayOfMs(world.nowMs() + issuer.paymentDays * DAY_MS)),
        },
        { account: id, brand, month: from, credits },
      )
    },

    async find(invoice: string, account: string, purse?: string): Promise<InvoiceView> {
      const [row] = await database.query<ListRow>(ONE, [account, invoice, purse ?? null])
      if (!row) throw invoiceUnknown()
      return viewOf(row)
    },
  }
}

const invoiceUnknown = () => new Fault('not_found', { message: 'There is no such invoice.' })
const digestOf = (bytes: Buffer) => hash('sha256', bytes, 'buffer')

function amounts(gross: bigint, tax: bigint) {
  return { grossMinor: String(gross), taxMinor: String(tax), netMinor: String(gross - tax) }
}

/** What the taker of the payment worked out is what was charged, whatever the issuer's rates say. */
function taxOfPayment({ amountMinor, taxMinor }: InvoicedPayment, tax: InvoiceTax): InvoiceTax {
  if (taxMinor === undefined || taxIn(amountMinor, tax.rate) === taxMinor) return tax
  return taxMinor === 0n ? NO_VAT_CHARGED : { category: 'S', rate: rateOf(amountMinor, taxMinor), reason: null }
}

function viewOf(row: ListRow): InvoiceView {
  return {
    ...asView(invoiceView, row),
    account: row.account_id,
    purse: row.purse_id,
    payment: row.payment_id,
    gross: formatMoney(row.gross_minor, row.currency),
    tax: formatMoney(row.tax_minor, row.currency),
  }
}
