// What a reseller does in the console: a purse for a customer, credits, prices, what the customer's call cost, and a
// token for an app.
import { readFile } from 'node:fs/promises'
import type { NewKey } from '../../src/admission/views.ts'
import { assert, before, listen, started, test } from '../kit.ts'
import { pageOf, startConsole } from './console.ts'
import { EXACT, enter, FIRST, inDialog, pick, press, see, select, sight, steps, tick } from './steps.ts'

let account: string
const g = started(startConsole)
const operator = started(() => g.signedIn())
const page = pageOf(operator)
before(async () => {
  account = (await g.account()).id
})

test('a reseller makes a purse, sets a markup, sees what a call cost both, and freezes the purse', async () => {
  const button = (name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true })
  await operator.go(`/a/${account}/purse-prices`)
  await steps(page, see('No price list yet'), press('Change'), enter('Markup on what you pay, in percent', '50'))
  await button('Save').click()
  await page.getByText('50 % on what you pay').waitFor()

  await operator.go(`/a/${account}/purses`)
  await steps(page, see('No purses yet'), press('New purse'), enter('Your name of the customer', 'ann_1'))
  await steps(page, enter('For people', 'Ann <b>Smith</b>'), enter('Credits to start with', '20'))
  await button('Create purse').click()
  await page.getByRole('heading', { name: 'Ann <b>Smith</b>' }).waitFor()

  const { data: made } = await g.operator<NewKey>('POST', `/accounts/${account}/keys`, { name: 'app' })
  const chat = { model: 'alpha-5.4', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }
  const ask = () => g.call('/v1/chat/completions', made.key, chat, { headers: { 'x-tollgate-purse': 'ann_1' } })
  const answer = await ask()
  assert.equal(answer.status, 200, await answer.text())
  await operator.go(`/a/${account}/purses/ann_1`)
  const moves = page.getByRole('table', { name: 'Calls and top-ups' })
  await moves.getByText('Call · alpha-5.4').waitFor()

  await steps(page, press('Put credits in'), enter('Credits', '5', EXACT), enter('Reference', 'INV-1'))
  await button('Put in').click()
  await moves.getByText('Top-up · INV-1').waitFor()
  await steps(page, press('Actions for ann_1'), pick('Session token'))
  await button('Create').click()
  const token = await page.getByText(/^tgs_/).first().textContent()
  await page.getByRole('dialog').getByRole('button').first().click()
  assert.equal((await g.call('/v1/purse', token?.trim() ?? '')).status, 200)
  const tokens = page.getByRole('table', { name: 'Session tokens' })
  await steps(tokens, see(`${token?.trim().slice(0, 12)}…`), press('Revoke'))
  await button('Revoke').click()
  await tokens.getByText('revoked', { exact: true }).waitFor()
  assert.equal((await g.call('/v1/purse', token?.trim() ?? '')).status, 401)

  await steps(page, press('Actions for ann_1'), pick('Freeze'))
  await button('Freeze').click()
  await page.getByText('frozen', { exact: true }).first().waitFor()
  assert.equal((await ask()).status, 403)

  await operator.go(`/a/${account}/purse-prices`)
  await page.getByRole('table', { name: 'Margin by customer' }).getByText('Ann <b>Smith</b>').waitFor()
  await operator.go(`/a/${account}/purses`)
  await page.getByRole('table', { name: 'Purses' }).getByText('ann_1').waitFor()
})

test('a reseller connects Stripe, whose secrets no page shows again, and then test payments, which say so', async () => {
  const save = async () => {
    await steps(page, press('Save'), see('Saved.', EXACT))
  }
  await operator.go(`/a/${account}/purse-payments`)
  await steps(page, see('No top-ups yet'), tick('Stripe'), see(`${g.url}/webhooks/purses/${account}`))
  const [key, secret] = [`sk_test_${'a1'.repeat(12)}`, `whsec_${'b2'.repeat(12)}`]
  await steps(page, enter('Secret key', key), enter('Signing secret of the webhook', secret), enter('Currency', 'EUR'))
  await steps(page, enter('Price of a credit', '0.01'), enter('Least at once', '5.00'), enter('Most at once', '500.00'))
  await steps(page, enter('Name', 'Acme AI', EXACT), enter('Color', '#7a1fa2', EXACT))
  await save()
  await steps(page, see('The stored key is a test key of Stripe'), sight('button', 'Remove the secret key'))
  await operator.go(`/a/${account}/purse-payments`)
  assert.equal(await page.getByLabel('Least at once').inputValue(), '5.00')
  for (const hidden of [key, secret]) assert.ok(!(await page.content()).includes(hidden))
  // Without its secrets Stripe sells nothing, so they stay.
  await steps(page, press('Remove the secret key'), see('Stripe needs both secrets'))

  await steps(page, tick('Test payments'), see('every purchase succeeds without money'))
  await save()
  assert.deepEqual(await g.violations(page), [])
})

test('a customer opens the page of a purse, tops it up with a test payment, and sees the balance grow', async () => {
  await g.operator('POST', `/accounts/${account}/purses`, { id: 'bea', name: 'Bea', credits: '3.25' })
  await operator.go(`/a/${account}/purses/bea`)
  await steps(operator.page, press('Actions for bea'), pick('Link for the customer'), inDialog(press('Create link')))
  const link = await operator.page
    .getByText(/\/purse#tgs_/)
    .first()
    .textContent()
  const customer = await g.visitor({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' })
  const { page } = customer
  await page.goto(link?.trim() ?? '')
  await page.getByRole('heading', { name: 'Bea' }).waitFor()
  // Nobody reads it over the customer's shoulder, or finds it in the history.
  assert.equal(new URL(page.url()).hash, '')
  await page.getByText('Acme AI').waitFor()
  await page.locator('#balance', { hasText: '3.25' }).waitFor()
  await page.getByText('Test payments: no money moves.').waitFor()
  assert.deepEqual(await g.violations(page), [])
  await steps(page, enter('Amount in EUR', '1.00'), press('Top up'))
  await page.getByRole('status').getByText('between 5.00 and 500.00 EUR').waitFor()
  await steps(page, press('10 EUR', EXACT), press('Pay 10.00 EUR'), see('Thank you: 1,000 credits were added.'))
  await page.locator('#balance', { hasText: '1,003.25' }).waitFor()
  await page.getByRole('cell', { name: 'Top-up' }).waitFor()
  await page.emulateMedia({ colorScheme: 'light' })
  assert.deepEqual(await g.violations(page), [])
  // Another tab without the link sees nothing.
  const stranger = await g.visitor()
  await stranger.page.goto(`${g.url}/purse`)
  await stranger.page.getByText('Open this page by the link that you were given.').waitFor()
  assert.equal(await stranger.page.getByText('Bea').count(), 0)
})

test('a reseller sees what a customer paid, on the page of the purse, and refunds a part of it', async () => {
  await operator.go(`/a/${account}/purses/bea`)
  const topUps = page.getByRole('table', { name: 'Top-ups', exact: true })
  await topUps.getByText('10.00 EUR').waitFor()
  for (const state of ['Paid', 'Test']) await topUps.getByText(state, { exact: true }).waitFor()
  await topUps.getByRole('button', { name: 'Refund' }).click()
  await steps(page, enter('Amount in EUR', '4.00'), inDialog(press('Refund')))
  await topUps.getByText('4.00 refunded').waitFor()
  const moves = page.getByRole('table', { name: 'Calls and top-ups' })
  await moves.getByText('Refund of 10.00 EUR').waitFor()
  await operator.go(`/a/${account}/purse-payments`)
  await page.getByRole('table', { name: 'Top-ups', exact: true }).getByRole('link', { name: 'bea' }).waitFor()
  await g.operator('POST', `/accounts/${account}/purses/bea/grants`, { credits: '400' })
})

test('a page of another site shows the balance and a button by the widget, with a token for that site only', async () => {
  const shop = await listen((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(
      `<!doctype html><title>Shop</title>${divs}<script type="module" src="${g.url}/purse/widget.js"></script>`,
    )
  })
  let divs = ''
  const context = await g.browser.newContext()
  try {
    const tokens = await Promise.all(
      [[shop.url], ['https://other.example']].map((origins) =>
        g.operator<{ token: string }>('POST', `/accounts/${account}/purses/bea/sessions`, { origins }),
      ),
    )
    divs = tokens.map(({ data }) => `<div data-purse="${data.token}" data-amount="20.00"></div>`).join('')
    const page = await context.newPage()
    await page.goto(shop.url)
    await steps(page, see('1003.25 credits'), see('may not be used here'), press('Top up', FIRST))
    await steps(page, press('Pay 20.00 EUR'), see('3003.25 credits'))
    assert.equal(new URL(page.url()).origin, shop.url)
  } finally {
    await context.close()
    await shop.close()
  }
})

test('a reseller says who issues invoices, and the customer and the reseller have the one of a top-up', async () => {
  await operator.go(`/a/${account}/purse-payments`)
  const fields = {
    'Name of the company': 'Acme GmbH',
    'Street and number': 'Ring 1',
    City: 'Berlin',
    'Tax number': '12/345',
    'VAT in percent': '19',
  }
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(value)
  await steps(page, select('Country', 'DE', EXACT), press('Issue invoices'), see('The issuer was saved.'))
  await page.getByRole('button', { name: 'Issue no more invoices' }).waitFor()
  await operator.go(`/a/${account}/purses/bea`)
  await steps(page, enter('Company', 'Bea AG'), press('Save'), see('The billing details were saved.'))
  const top = `/accounts/${account}/purses/bea`
  const { data: begun } = await g.operator<{ url: string }>('POST', `${top}/topups`, { amount: '10.00' })
  const body = new URLSearchParams({ outcome: 'paid' })
  assert.equal((await fetch(begun.url, { method: 'POST', body, redirect: 'manual' })).status, 303)
  const { data: link } = await g.operator<{ url: string }>('POST', `${top}/page`, {})
  const customer = await g.visitor()
  await customer.page.goto(link.url)
  const own = customer.page.getByRole('button', { name: /^Invoice TEST-\d{4}-000001 · .* · 10\.00 EUR$/ })
  const [download] = await Promise.all([customer.page.waitForEvent('download'), own.click()])
  assert.match(download.suggestedFilename(), /^TEST-\d{4}-000001\.pdf$/)
  assert.equal((await readFile(await download.path())).subarray(0, 5).toString(), '%PDF-')
  assert.deepEqual(await g.violations(customer.page), [])
  await operator.go(`/a/${account}/purses/bea`)
  const row = page.getByRole('table', { name: 'Invoices' }).getByRole('row', { name: /TEST-\d{4}-000001/ })
  const [again] = await Promise.all([page.waitForEvent('download'), row.getByRole('button', { name: 'PDF' }).click()])
  assert.equal(again.suggestedFilename(), download.suggestedFilename())
  assert.deepEqual(await g.violations(page), [])
})
