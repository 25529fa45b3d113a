// A newcomer tries selling on a fresh gateway, without a payment provider and without a script: sells a pack, is a
// customer, pays, gets the invoice.
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { assert, started, test } from '../kit.ts'
import { startMailServer } from '../mail-server.ts'
import { PASSWORD, startConsole } from './console.ts'
import { EXACT, enter, goTo, press, see, seeRow, select, sight, steps, tick } from './steps.ts'

const post = started(startMailServer)
const home = started(() =>
  startConsole({ env: { TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'hello@gateway.example' } }),
)
const operator = started(() => home.signedIn())
const customer = started(() => home.visitor({ acceptDownloads: true }))

async function fill(page: Page, texts: Readonly<Record<string, string>>): Promise<void> {
  for (const [label, text] of Object.entries(texts)) await page.getByLabel(label, { exact: true }).fill(text)
}

/** What the webhook of test payments answers to a report that nobody signed. */
async function forge(): Promise<number> {
  const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) }
  return (await fetch(`${home.url}/webhooks/test-payments`, { method: 'POST', headers, body: '{}' })).status
}

test('an operator offers a pack for test payments, which are marked as a test', async () => {
  const { page } = operator
  assert.equal(await forge(), 404)
  await operator.go('/operator/payments/settings')
  await steps(page, tick('Test payments'), see('every purchase succeeds without money'), press('Save'), see('Saved.'))
  assert.equal(await forge(), 401)
  await operator.follow('/operator/plans')
  await page.getByRole('button', { name: 'New pack' }).click()
  await fill(page, { Name: 'Starter', Price: '20.00', Credits: '2200', Currency: 'EUR' })
  await steps(page, press('Preview the change'), press('Apply'), seeRow(/Starter.*20\.00 EUR/))
  await operator.follow('/operator/finance/invoices')
  const address = { 'Street and number': 'Hafenstr. 1', Postcode: '20457', City: 'Hamburg' }
  await fill(page, { 'Name of the company': 'Acme GmbH', ...address, 'VAT id': 'DE136695976' })
  await page.getByLabel('Country').selectOption('Germany')
  // What the server says of a field stands at the field, and marks it.
  await fill(page, { 'VAT in percent': 'none' })
  await page.getByRole('region', { name: 'Issuer' }).getByRole('button', { name: 'Save' }).click()
  const rate = page.getByLabel('VAT in percent', { exact: true })
  await page.locator('.field', { has: rate }).locator('.field-fault').waitFor()
  assert.equal(await rate.getAttribute('aria-invalid'), 'true')
  await rate.fill('19')
  assert.equal(await rate.getAttribute('aria-invalid'), null)
  await page.getByRole('region', { name: 'Issuer' }).getByRole('button', { name: 'Save' }).click()
  await page.getByText('The issuer was saved.').waitFor()
  await operator.follow('/operator/sign-up')
  await page.getByRole('radio', { name: 'Open Anyone' }).check()
  await steps(page, press('Save'), see('Saved.', EXACT))
})

test('a customer signs up, buys, pays on the simulated page, and gets an invoice that says test', async () => {
  const { page } = customer
  await customer.go('/login')
  await steps(page, goTo('Sign up'), enter('Email', 'ada@example.com'), press('Send me a link'))
  const mail = await post.newest('ada@example.com')
  await page.goto(/https?:\S+#token=\S+/.exec(mail.text)![0])
  await steps(page, enter('Password', PASSWORD), press('Create the account'), sight('heading', 'Overview'))
  await page.getByRole('link', { name: 'Billing' }).first().click()
  const billing = page.getByRole('navigation', { name: 'Billing' })
  await billing.getByRole('link', { name: 'Buy credits' }).click()
  await steps(page, see('nobody pays anything here'), goTo('Fill in the billing details'))
  await fill(page, { Company: 'Ada & Co', 'Street and number': 'Weg 2', Postcode: '20457', City: 'Hamburg' })
  await steps(page, select('Country', 'Germany'), press('Save'), see('The billing details were saved.'))
  await billing.getByRole('link', { name: 'Buy credits' }).click()

  await page.getByRole('region', { name: 'Starter' }).getByText('€20.00', { exact: true }).waitFor()
  await steps(page, press('Buy Starter'), see('No money moves, and no card is asked for.'))
  assert.deepEqual(await home.violations(page), [])
  await steps(page, press('Decline the payment'), see('The test card was declined.'), press('Buy Starter'))
  await steps(page, press('Pay 20.00 EUR'), see('2,200 credits were added.'))
  const row = page.getByRole('table', { name: 'Payments' }).getByRole('row', { name: /Paid/ })
  await row.getByText('Test', { exact: true }).waitFor()
  await billing.getByRole('link', { name: 'Invoices' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page
      .getByRole('row', { name: /20\.00 EUR/ })
      .getByRole('button', { name: 'PDF' })
      .click(),
  ])
  assert.match(download.suggestedFilename(), /^TEST-\d{4}-000001\.pdf$/)
  assert.equal((await readFile(await download.path())).subarray(0, 5).toString(), '%PDF-')
})

test('with a real vendor nothing can be bought by a test payment, and it cannot be turned on', async () => {
  interface Catalog {
    version: number
    document: { vendors: Record<string, { baseUrl: string }> }
  }
  const { version, document } = (await home.operator<Catalog>('GET', '/catalog')).data
  Object.values(document.vendors)[0]!.baseUrl = 'https://api.openai.com/v1'
  const applied = await home.operator('PUT', '/catalog', { document, basedOn: version, note: 'a real vendor' })
  assert.equal(applied.status, 200, JSON.stringify(applied.data))
  const { page } = customer
  await page.getByRole('navigation', { name: 'Billing' }).getByRole('link', { name: 'Buy credits' }).click()
  await page.reload()
  await page.getByText('Credits are not sold here').waitFor()
  assert.equal(await forge(), 404)
  const again = await home.operator<{ message: string }>('PATCH', '/payment-settings', { provider: 'simulated' })
  assert.equal(again.status, 409, JSON.stringify(again.data))
  await operator.go('/operator/payments/settings')
  await operator.page.getByText('Off: a real vendor is connected').waitFor()
})
