// What finance and account managers come for: statements of a month, margins, what a credit is worth; and to suspend
// and close an account.

import { readFile } from 'node:fs/promises'
import { json } from 'node:stream/consumers'
import { monthName } from '../../src/reports/balance-sentence.ts'
import { assert, BY, before, listen, started, test, textOf, until } from '../gateway.ts'
import { past } from '../past.ts'
import { PASSWORD, pageOf, startConsole } from './console.ts'
import { EXACT, enter, FIRST, goTo, inDialog, press, see, seeRow, select, sight, steps, touch } from './steps.ts'

const ONE = 1_000_000n

let acme = ''
const now = new Date()
/** The month before this one, wherever in it the test runs. */
const LAST = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)).toISOString().slice(0, 7)
const day = (number: number) => `${LAST}-${String(number).padStart(2, '0')}T10:00:00Z`

/** A receiver of usage, which the gateway is told of: it is not public. */
const books = { status: 422, got: [] as { id: string; type: string }[] }
const receiver = started(() =>
  listen(async (request, response) => {
    if (books.status === 200) books.got.push(...((await json(request)) as typeof books.got))
    response.writeHead(books.status).end('the books are closed')
  }),
)
const host = () => receiver.host

const home = started(() => startConsole({ env: { TOLLGATE_OUTBOUND_ALLOW: host() } }))
const operator = started(() => home.signedIn({ timezoneId: 'America/New_York', acceptDownloads: true }))
const page = pageOf(operator)
before(async () => {
  const { accounts, keys, database, ledger } = home.gateway
  acme = await accounts.create({ name: 'Acme GmbH' }, BY)
  const key = await keys.create(acme, { name: 'website' }, BY)
  const then = past(database, ledger, acme)
  await then.give(500n * ONE, day(1), { note: 'Invoice 17' })
  await then.call(12_345_678n, day(2), { key: key.id, cost: 10_000_000n, vendor: 'alpha' })
  await then.call(30_000_000n, day(3), { key: key.id, product: 'beta-opus-5', cost: 24_000_000n, vendor: 'beta' })
  await then.give(-5n * ONE, day(20), { note: 'Invoice 17 was too high' })
  await then.done()
  const other = await accounts.create({ name: 'Harbor Books' }, BY)
  const others = past(database, ledger, other)
  await others.give(20n * ONE, day(5))
  await others.call(1_000_000n, day(6), { cost: 1_500_000n, vendor: 'alpha' })
  await others.done()
})

async function downloaded(button: string): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button, exact: true }).click(),
  ])
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) }
}

async function cells(table: string, row: RegExp): Promise<string[]> {
  const found = page.getByRole('table', { name: table }).getByRole('row', { name: row })
  await found.waitFor()
  return found.getByRole('cell').allTextContents()
}

async function summaryRows(): Promise<string[]> {
  const table = page.getByRole('table', { name: 'Summary' })
  await table.waitFor()
  return table.getByRole('row').allTextContents()
}

test('last month’s margin by model is two clicks from anywhere; by customer, vendor and month one more; and it is a CSV file', async () => {
  await operator.go('/operator/home')
  await page.getByRole('link', { name: 'Finance' }).first().click()
  assert.deepEqual(await cells('Margin by model', /beta-opus-5/), [
    'beta-opus-5',
    '1',
    '30.0000',
    '24.0000',
    '6.0000',
    '20.0 %',
  ])
  assert.deepEqual(await cells('Margin by model', /alpha-5\.4/), [
    'alpha-5.4',
    '2',
    '13.3457',
    '11.5000',
    '1.8457',
    '13.8 %',
  ])
  await page.getByText('18.1 % of what was charged').waitFor()
  for (const [by, row, charged] of [
    ['Customer', /Acme GmbH/, '42.3457'],
    ['Vendor', /alpha/, '13.3457'],
    ['Month', new RegExp(monthName(LAST)), '43.3457'],
  ] as const) {
    await steps(page, touch(by, EXACT), sight('table', `Margin by ${by.toLowerCase()}`))
    assert.equal((await cells(`Margin by ${by.toLowerCase()}`, row))[2], charged)
  }
  const { name, bytes } = await downloaded('CSV')
  assert.equal(name, `margin-by-month-${LAST}-${LAST}.csv`)
  assert.match(bytes.toString(), new RegExp(`\\r\\n${LAST},,3,43\\.345678,43\\.345678,35\\.5,7\\.845678,18`))
})

test('packs, plans and the price of a credit are made by forms, reviewed, listed, and undone', async () => {
  const dialog = page.getByRole('dialog')
  const fill = async (texts: Readonly<Record<string, string>>) => {
    for (const [label, text] of Object.entries(texts)) await dialog.getByLabel(label, { exact: true }).fill(text)
    await dialog.getByRole('button', { name: 'Preview the change' }).click()
  }
  const apply = () =>
    page.getByRole('dialog', { name: 'What will change' }).getByRole('button', { name: 'Apply' }).click()
  await operator.go('/operator/plans')
  await page.getByRole('button', { name: 'New pack' }).click()
  // What is wrong is said at its field.
  await fill({ Name: 'Starter 2026', Price: '20.001', Credits: '2200', Currency: 'eur' })
  await dialog.getByText('must be an amount of EUR with at most 2 decimals').waitFor()
  assert.equal(await dialog.getByLabel('Price').getAttribute('aria-invalid'), 'true')
  assert.deepEqual(await home.violations(page), [])
  await fill({ Price: '20.00' })
  await dialog.getByText('Pack starter-2026 is sold: 2200 credits for 20.00 EUR.').waitFor()
  assert.deepEqual(await home.violations(page), [])
  await apply()
  await page.getByRole('row', { name: 'Starter 2026 starter-2026 20.00 EUR 2,200 never' }).waitFor()

  await page.getByRole('button', { name: 'New plan' }).click()
  await fill({ Name: 'Pro', 'Price a month': '9.00', 'Credits a month': '1000' })
  await apply()
  await steps(page, seeRow(/^Pro pro 9.00 EUR a month 1,000/), press('Edit Pro'))
  await fill({ 'Price a month': '12.00' })
  await dialog.getByText('Plan pro: price changes from "9.00" to "12.00".').waitFor()
  await apply()
  await page.getByRole('row', { name: /^Pro pro 12.00 EUR/ }).waitFor()
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await page.getByRole('row', { name: /^Pro pro 9.00 EUR/ }).waitFor()
  assert.deepEqual(await home.violations(page), [])
})

test('what a credit is worth is set in System, and from then on stands beside credits', async () => {
  await operator.go('/operator/system')
  await steps(page, enter('Currency', 'eur'), enter('One credit is worth', '0.01'))
  await page.getByLabel('Contact for customers').fill('billing@gate.example')
  const card = page.getByRole('region', { name: 'Credit value' })
  await card.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.').waitFor()
  await operator.go('/operator/accounts')
  await page
    .getByRole('row', { name: /Acme GmbH/ })
    .getByText('€4.53')
    .waitFor()
  // Or instead of them, on every page.
  await steps(page, press('Show EUR'), see('Amounts are in EUR.'))
  await operator.go(`/a/${acme}?period=90d`)
  await page.locator('.stat', { hasText: 'Available' }).getByText('€4.53', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Show credits' }).click()
  await page.locator('.stat', { hasText: 'Available' }).getByText('452.65').waitFor()
})

test('last month’s statement of one customer is a page that adds up, a PDF and a CSV file; those of all are one download', async () => {
  await operator.go('/operator/home')
  await steps(page, goTo('Finance', FIRST), goTo('Statements', { ...EXACT, ...FIRST }))
  const all = await downloaded('All as PDF (ZIP)')
  await operator.go('/operator/finance/statements?month=2020-01')
  await steps(page, press('Show this month'), sight('link', 'Acme GmbH'))
  await operator.go('/operator/finance/statements')
  assert.equal(all.name, `statements-${LAST}.zip`)
  const listed = all.bytes.toString('latin1')
  for (const customer of ['Acme-GmbH', 'Harbor-Books']) assert.ok(listed.includes(`statement-${customer}-${LAST}.pdf`))
  await page.getByRole('link', { name: 'Acme GmbH' }).click()
  await page.getByRole('heading', { name: monthName(LAST) }).waitFor()
  assert.deepEqual((await summaryRows()).slice(1), [
    'Opening balance0.000000€0.00',
    'Top-ups500.000000€5.00',
    'Usage−42.345678−€0.42',
    'Corrections−5.000000−€0.05',
    'Closing balance452.654322€4.53',
  ])
  assert.deepEqual(await cells('Usage by model and key', /beta-opus-5/), [
    'beta-opus-5',
    'website',
    '1',
    '30.000000€0.30',
  ])
  const pdf = await downloaded('PDF')
  assert.equal(pdf.name, `statement-Acme-GmbH-${LAST}.pdf`)
  assert.match(pdf.bytes.toString('latin1'), /^%PDF-1\.\d.*%%EOF\s*$/s)
  const csv = await downloaded('CSV')
  assert.equal(csv.name, `statement-Acme-GmbH-${LAST}.csv`)
  assert.match(csv.bytes.toString(), /Closing balance,,,,,452\.654322,4\.53,EUR/)
  await page.getByRole('link', { name: 'All movements' }).last().click()
  await page.getByText('Invoice 17 was too high').waitFor()
})

test('an account is suspended with a reason that its callers read, reopened, and closed with its balance paid out; the menu shows the account that is open', async () => {
  const { id, key } = await home.account({ credits: 7n * ONE })
  await home.gateway.accounts.change(id, { name: 'Juniper Clinic' }, BY)
  const chat = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 }
  await operator.go('/operator/accounts')
  await steps(page, goTo('Juniper Clinic'), press('Suspend', EXACT))
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Reason', 'Invoice 18 is overdue'), press('Suspend', EXACT))
  await page.getByText('“Juniper Clinic” is suspended.').waitFor()
  await page.locator('.page-lead, header').getByText('Suspended', { exact: true }).first().waitFor()
  assert.match(
    await textOf(home.call('/v1/chat/completions', key, chat), 403),
    /suspended: Invoice 18 is overdue\. .* Ask billing@gate\.example\./,
  )
  // Every page of the account says it.
  await operator.go(`/a/${id}`)
  await page.getByText('This account is suspended: Invoice 18 is overdue').waitFor()
  await operator.go(`/operator/accounts/${acme}`)
  await page.getByRole('link', { name: 'Account', exact: true }).first().click()
  await page.waitForURL((url) => url.pathname.includes(acme))
  await operator.go(`/operator/accounts/${id}`)
  await page.getByRole('button', { name: 'Resume', exact: true }).click()
  await dialog.getByRole('button', { name: 'Resume', exact: true }).click()
  await page.getByText('Calls are served.').waitFor()
  assert.equal((await home.call('/v1/chat/completions', key, chat)).status, 200)
  await home.settled()
  await page.getByRole('button', { name: 'Close account' }).click()
  await steps(dialog, enter('Reason', 'Contract ended'), select(/^Balance of/, 'payout'), press('Close account'))
  await page.getByText('“Juniper Clinic” is closed.').waitFor()
  assert.equal((await home.call('/v1/chat/completions', key, chat)).status, 401)
  await operator.go(`/operator/accounts/${id}/statement`)
  const rows = await summaryRows()
  assert.ok(
    rows.some((row) => /^Paid out or written off−[67]\./.test(row)),
    rows.join('\n'),
  )
  assert.match(rows.at(-1) ?? '', /^Closing balance0\.000000/)
})

test('a member reads the statement of their own account in two clicks', async () => {
  const { data } = await home.operator<{ link: string }>('POST', `/accounts/${acme}/invites`, {
    email: 'cfo@acme.example',
    role: 'member',
  })
  const member = await home.visitor()
  await member.page.goto(data.link)
  await steps(member.page, enter('Password', PASSWORD), press('Accept and sign in'), sight('heading', 'Overview'))
  await steps(member.page, goTo('Billing', { ...EXACT, ...FIRST }), goTo('Statement', EXACT), select('Month', LAST))
  await member.page.getByRole('table', { name: 'Summary' }).getByText('452.654322').waitFor()
  assert.equal(await member.page.getByRole('link', { name: 'Finance' }).count(), 0)
  await member.close()
})

test('usage is sent to a destination that is added by form: its rejection is read there, and it goes on when resumed', async () => {
  const url = `http://${host()}/usage`
  await operator.go('/operator/finance')
  await steps(page, goTo('Exports', EXACT), press('Add a destination'))
  await page.getByLabel('Name', { exact: false }).fill('books')
  await steps(page, enter('Address', url), press('Add', EXACT), sight('heading', 'books'), press('Test'))
  await steps(page, see('status 422', FIRST), press('Backfill'), enter('From (UTC)', `${LAST}-01`))
  await steps(page, enter('To (UTC)', `${LAST}-28`), press('Send', EXACT), see('Paused by its receiver'))
  await page.getByText('the books are closed').first().waitFor()
  books.status = 200
  await steps(page, press('Resume'), see('Running'))
  // What was rejected may come again: each at least once.
  await until(() => books.got.filter(({ type }) => type === 'tollgate.usage').length >= 3)
  assert.deepEqual(await home.violations(page), [])
  await steps(page, press('Remove'), inDialog(press('Remove')), see('Usage is not exported yet'))
})

test('a vendor’s report that is uploaded shows what differs, and leads to the calls behind it', async () => {
  await operator.go('/operator/finance/vendor-reports?open=new')
  const csv = `day,model,requests,cost\n${LAST}-02,alpha-5.4,1,11\n${LAST}-03,never-called,1,1\n`
  await page.getByRole('combobox', { name: 'Vendor' }).selectOption('alpha')
  await page.getByRole('combobox', { name: 'Report' }).selectOption('csv')
  await steps(page, enter('First day', `${LAST}-01`), enter('Last day', `${LAST}-28`), enter('Credits per unit', '1'))
  await page.getByLabel('CSV file').setInputFiles({ name: 'bill.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) })
  await page.getByRole('button', { name: 'Upload and compare' }).click()
  assert.match((await cells('Compared', /alpha-5\.4.*-02/)).join(' '), /Differs.*11.*10/)
  assert.match((await cells('Compared', /never-called/)).join(' '), /Only theirs/)
  await page.getByRole('table', { name: 'Compared' }).getByRole('link', { name: 'alpha-5.4' }).first().click()
  await page.getByRole('table', { name: 'Recorded calls' }).getByRole('link').first().click()
  await page.getByText('How the charge was calculated').waitFor()
})
