import { inflateSync } from 'node:zlib'
import { freshDatabase } from '../../../../test/database.ts'
import { ISSUER, issueMany, logoPng } from '../../../../test/invoice-shapes.ts'
import { assert, test } from '../../../../test/kit.ts'
import { createAudit } from '../../../database/audit.ts'
import { createChanges } from '../../../database/changes.ts'
import type { openDatabase } from '../../../database/database.ts'
import { openBranding } from '../../../identity/branding/branding.ts'
import { brandingInput } from '../../../identity/branding/views.ts'
import { realWorld } from '../../../kernel/world.ts'
import { createLedger } from '../../../ledger/ledger.ts'
import { createBilling } from '../../../reports/billing.ts'
import { facturX, invoicePdf } from '../../billing/invoices/invoice-pdf.ts'
import type { InvoiceDocument } from '../../billing/invoices/views.ts'
import { createInvoices } from './invoices.ts'
import { invoiceMonths } from './monthly.ts'

const BY = { actor: 'test', ip: null, requestId: null }
let aheadMs = 0
const world = { ...realWorld, nowMs: () => realWorld.nowMs() + aheadMs }

async function withInvoices(
  run: (parts: {
    database: ReturnType<typeof openDatabase>
    invoices: ReturnType<typeof createInvoices>
    audit: ReturnType<typeof createAudit>
  }) => Promise<void>,
): Promise<void> {
  const fresh = await freshDatabase()
  const database = fresh.open()
  try {
    const audit = createAudit({ database, world })
    await run({ database, audit, invoices: createInvoices({ database, world, audit }) })
  } finally {
    aheadMs = 0
    await database.close()
    await fresh.drop()
  }
}

/** What is stored in it, uncompressed. */
function streamsOf(pdf: Buffer): string[] {
  const text = pdf.toString('latin1')
  return [...text.matchAll(/\/FlateDecode[^>]*>>\s*stream\r?\n/g)].map(({ 0: head, index }) =>
    inflateSync(pdf.subarray(index + head.length), { finishFlush: 2 }).toString('utf8'),
  )
}

const number = (xml: string, name: string) => Number(new RegExp(`<ram:${name}[^>]*>([\\d.]+)<`).exec(xml)?.[1])

test('an invoice is PDF/A-3 with embedded fonts and its EN 16931 XML inside, and the same bytes whenever it is read', async () => {
  await withInvoices(async ({ database, invoices }) => {
    const issued = await issueMany(database, invoices, 14)
    for (const { id, account } of issued) {
      const [row] = await database.query<{ document: InvoiceDocument }>(
        { text: 'select document from invoice where account_id = $1 and id = $2' },
        [account, id],
      )
      assert.ok(row)
      const xml = facturX(row.document)
      // What was refunded or paid is what it comes to; amounts have two decimals at most.
      const [net, tax, gross] = ['LineTotalAmount', 'TaxTotalAmount', 'GrandTotalAmount'].map((name) =>
        number(xml, name),
      )
      assert.ok(Math.abs((net ?? 0) + (tax ?? 0) - (gross ?? 0)) < 0.001, xml)
      assert.doesNotMatch(xml, /Amount[^>]*>\d+\.\d{3}/)
      const { kind, paidOn } = row.document
      assert.match(xml, kind === 'credit_note' ? /<ram:TypeCode>381</ : /<ram:TypeCode>380</)
      assert.equal(number(xml, 'DuePayableAmount'), paidOn === null ? gross : 0)
      assert.equal(/InvoiceReferencedDocument/.test(xml), kind === 'credit_note')
    }
    const [{ id, account } = { id: '', account: '' }] = issued
    const [once, twice] = await Promise.all([invoices.file(id, account), invoices.file(id, account)])
    assert.ok(once.body.equals(twice.body))
    assert.ok((await invoices.file(id)).body.equals(once.body))
    await assert.rejects(invoices.file(id, 'acc_other'), { message: 'There is no such invoice.' })
    const [row] = await database.query<{ document: InvoiceDocument }>(
      { text: 'select document from invoice where id = $1' },
      [id],
    )
    assert.ok(row)
    assert.ok((await invoicePdf(row.document)).equals(once.body), 'nothing of it depends on when it is made')
    const raw = once.body.toString('latin1')
    assert.ok(streamsOf(once.body).includes(facturX(row.document)))
    for (const mark of [
      '/AFRelationship /Data',
      '/UF (factur-x.xml)',
      '/OutputIntents',
      '<pdfaid:part>3<',
      '<fx:ConformanceLevel>EN 16931<',
    ])
      assert.ok(raw.includes(mark), mark)
    assert.doesNotMatch(raw, /Helvetica/)
    assert.equal(raw.match(/\/FontFile[23]? /g)?.length, 2)
    // Names do not get into the metadata, which the library writes as XML without escaping.
    const named = { ...row.document, issuer: { ...row.document.issuer, name: 'A & <B>' }, description: 'C & <D>' }
    assert.doesNotMatch((await invoicePdf(named)).toString('latin1'), /[AC] & <[BD]>/)
    // What was changed behind its back is not handed out.
    await database.query({ text: `update invoice_file set pdf = pdf || '\\x00'::bytea where invoice_id = $1` }, [id])
    await assert.rejects(invoices.file(id), /was changed/)
    // One that cannot be drawn is told, and keeps back no other.
    const spoilt = issued[1]?.id ?? ''
    await database.query({ text: `update invoice set document = '{}' where id = $1` }, [spoilt])
    await assert.rejects(invoices.makeFiles(), TypeError)
    const undrawn = await database.query<{ id: string }>({
      text: 'select id from invoice where id not in (select invoice_id from invoice_file)',
    })
    assert.deepEqual(undrawn, [{ id: spoilt }])
  })
})

test('hostile names are text: on the page, in the XML and in the metadata', async () => {
  await withInvoices(async ({ database, invoices }) => {
    await issueMany(database, invoices, 1)
    const [row] = await database.query<{ document: InvoiceDocument }>({ text: 'select document from invoice' })
    assert.ok(row)
    const { document } = row
    const names = {
      markup: ']]></ram:Name><!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]>&y;',
      controls: 'a\u0000b\u0008c\u001bd\ufffee\uffff',
      surrogates: 'a\ud800b',
      'turned around': 'a\u202egpj.exe\u2028b',
      operators: ') Tj ET endstream endobj /JS (app.alert(1)) <</S /Launch>>',
      long: 'W'.repeat(200),
      marks: `a${'\u0301'.repeat(199)}`,
    }
    for (const [what, name] of Object.entries(names)) {
      const customer = { ...document.customer, company: name, name, street: name, city: name }
      const issuer = { ...document.issuer, name, registration: name, footer: name }
      const brand = { name, color: null }
      const account = { ...document.account, name }
      const hostile = { ...document, customer, issuer, brand, account, description: name, payment: name }
      const xml = facturX(hostile)
      assert.doesNotMatch(xml, /[^\t\n\r\x20-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u, what)
      assert.doesNotMatch(xml, /<!|&(?!amp;|lt;|gt;|quot;)/, what)
      const elements = (text: string) => [...text.matchAll(/<\/?[\w:]+/g)].map(([tag]) => tag)
      const plain = { ...hostile, customer: { ...customer, company: 'a', name: 'a', street: 'a', city: 'a' } }
      assert.deepEqual(elements(xml), elements(facturX(plain)), what)
      const pdf = await invoicePdf(hostile)
      assert.ok(streamsOf(pdf).includes(xml), what)
      assert.doesNotMatch(pdf.toString('latin1'), /DOCTYPE|\/JS|\/Launch|app\.alert/, what)
    }
  })
})

/** 200, 30 and 90 of 255. */
const RED = /\b0\.784\d* 0\.117\d* 0\.352\d* scn\b/

test('an invoice has the name, colour and logo of its issuer, and those of its day stay; a picture that cannot be drawn keeps nobody from it', async () => {
  await withInvoices(async ({ database, audit }) => {
    const branding = await openBranding({ database, changes: createChanges(database, world), audit })
    const invoices = createInvoices({ database, world, audit, branding })
    const drawn = async (id: string) => {
      const { body } = await invoices.file(id)
      const raw = body.toString('latin1')
      return {
        isRed: streamsOf(body).some((one) => RED.test(one)),
        pictures: raw.match(/\/Subtype \/Image/g)?.length ?? 0,
        raw,
      }
    }
    const [plain] = await issueMany(database, invoices, 1)
    assert.equal((await drawn(plain?.id ?? '')).pictures, 0)
    const look = brandingInput.parse({ name: 'Reseller', color: '#c81e5a' })
    await branding.change(look, BY)
    const [named] = await issueMany(database, invoices, 1)
    await branding.change({ ...look, name: 'Later', color: '#0e6e74' }, BY)
    const [row] = await database.query<{ document: InvoiceDocument }>(
      { text: 'select document from invoice where id = $1' },
      [named?.id ?? ''],
    )
    assert.deepEqual(row?.document.brand, { name: 'Reseller', color: '#c81e5a' })
    assert.ok((await drawn(named?.id ?? '')).isRed)
    await branding.changeLogo(logoPng(), BY)
    const [marked] = await issueMany(database, invoices, 1)
    const { pictures, raw } = await drawn(marked?.id ?? '')
    assert.equal(pictures, 2, 'the picture and its transparency')
    assert.ok(raw.includes('<pdfaid:part>3<'))
    const broken = logoPng()
    broken.fill(7, 50, 100)
    const print = Buffer.from('ffd8ffc00014080010001004011100021100031100041100ffd9', 'hex')
    // Files that browsers show in part, and at which the library would throw where nobody could catch it.
    const [wide, half] = [logoPng(), logoPng()]
    wide.writeUInt32BE(60_000, 16)
    half.writeUInt32BE(half.readUInt32BE(33) - 50, 33)
    const pieces = (...all: readonly Buffer[]) => Buffer.concat(all)
    const twice = pieces(logoPng().subarray(0, 33), wide.subarray(8, 33), logoPng().subarray(33))
    const end = logoPng().subarray(-12)
    const ended = pieces(
      half.subarray(0, -66),
      Buffer.alloc(4),
      end,
      Buffer.from([0, 0, 0, 50]),
      Buffer.from('IDAT'),
      half.subarray(-66),
    )
    const depth = logoPng()
    depth[24] = 255
    const within = (length: number, name: string) => {
      const head = Buffer.from(`\0\0\0\0${name}`)
      head.writeInt32BE(length)
      return pieces(logoPng().subarray(0, 33), head, wide.subarray(8, 33), Buffer.alloc(4), logoPng().subarray(33))
    }
    // The library does not skip the first, and goes back for ever at the second.
    const [hidden, backward] = [within(25, 'tRNS'), within(-12, 'abcd')]
    for (const bytes of [broken, print, logoPng(9), twice, ended, depth, hidden, backward]) {
      const pdf = await invoicePdf(row?.document ?? assert.fail(), bytes)
      assert.doesNotMatch(pdf.toString('latin1'), /\/Subtype \/Image/)
    }
  })
})

test('where the operator wants it, a month is invoiced for what was used beyond payments and gifts, once', async () => {
  await withInvoices(async ({ database, invoices, audit }) => {
    const ledger = createLedger({ database, world, processId: 'p1', graceMs: 0 })
    await ledger.sweep()
    const billing = createBilling({ database, audit, world })
    const run = () => invoiceMonths({ database, world, invoices, billing, log: { warn: () => undefined } })
    const account = 'acc_month'
    await database.query(
      { text: `insert into account (id, name, created_at) values ($1, 'Month', now() - interval '90 days')` },
      [account],
    )
    const CREDIT = 1_000_000n
    const give = (amount: bigint, kind?: 'correction') =>
      ledger.grant({ account, amount: amount * CREDIT, note: 'test', actor: 'test', kind })
    await invoices.changeSettings({ issuer: ISSUER, monthly: true }, BY)
    await billing.change({ worth: { currency: 'EUR', rate: '0.01' } }, BY)
    await give(1_000n)
    await give(100n, 'correction')
    // Added, ended and not used: nobody pays for that.
    const lot = { source: 'given', endsAt: new Date(Date.now() - 1_000) } as const
    await ledger.grant({ account, amount: 250n * CREDIT, note: 'test', actor: 'test', lot })
    await ledger.sweep()
    // 400 are used: 100 were a gift, so 300 are to be paid.
    await database.query(
      {
        text: `insert into transfer (account_id, id, kind, amount, at, moved_at, balance) select $1, 't1', 'settled', $2, now(), max(moved_at) + interval '1 millisecond', $3 from transfer where account_id = $1`,
      },
      [account, 400n * CREDIT, 700n * CREDIT],
    )
    assert.equal(await run(), 0)
    const now = new Date(world.nowMs())
    aheadMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 3) - now.getTime()
    assert.equal(await run(), 0, 'nobody has said yet to whom it goes')
    await database.query({ text: `delete from setting where name = 'invoiced-month'` })
    const details = {
      company: null,
      name: 'Ada',
      street: 'Road 1',
      postcode: '1',
      city: 'Berlin',
      country: 'DE',
      vatId: null,
      email: null,
    }
    await invoices.changeDetails(account, details, BY)
    assert.equal(await run(), 1)
    await database.query({ text: `delete from setting where name = 'invoiced-month'` })
    assert.equal(await run(), 0)
    const { items } = await invoices.list({ limit: 10 })
    assert.deepEqual(
      items.map(({ kind, gross, tax, month }) => ({ kind, gross, tax, month })),
      [{ kind: 'month', gross: '3.57', tax: '0.57', month: now.toISOString().slice(0, 7) }],
    )
    aheadMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 2, 3) - now.getTime()
    assert.equal(await run(), 0, 'nothing was used in the next month')
  })
})
