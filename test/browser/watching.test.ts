// What people are told without asking, and what they watch: alerts, live calls, vendors, the operator's home.

import { text } from 'node:stream/consumers'
import { openedAlerts } from '../alerts.ts'
import { above, assert, atOnce, before, listen, started, test, until } from '../kit.ts'
import { addFilter, PASSWORD, pageOf, startConsole, type TestConsole, type Visitor } from './console.ts'
import { setTheme } from './pages.ts'
import { EXACT, enter, FIRST, goTo, hit, inDialog, press, see, seeRow, select, sight, steps, touch } from './steps.ts'

let hookUrl = ''
let account: Awaited<ReturnType<TestConsole['account']>>
const told: string[] = []
/** Whether the receiver refuses what it is told. */
let broken = false

const hooks = started(() =>
  listen(async (request, response) => {
    const body = await text(request)
    told.push(body)
    if (broken) response.writeHead(500).end('the disk is full')
    else response.end('ok')
  }),
)
const home = started(() => startConsole({ env: { TOLLGATE_OUTBOUND_ALLOW: hooks.host } }))
const operator = started(() => home.signedIn({ timezoneId: 'America/New_York', locale: 'en-GB' }))
const page = pageOf(operator)
before(async () => {
  hookUrl = `${hooks.url}/alerts`
  account = await home.account()
})

/** Signs somebody in who owns the account. */
async function owner(): Promise<Visitor> {
  const visitor = await home.visitor()
  await operator.go(`/operator/accounts/${account.id}/members`)
  await steps(page, press('Invite', EXACT), enter('Email', 'ada@example.com'), select('Role', 'owner'))
  await page.getByRole('dialog').getByRole('button', { name: 'Invite', exact: true }).click()
  const link = (await page.getByRole('dialog').locator('pre').textContent()) ?? ''
  await page.getByRole('button', { name: 'Done' }).click()
  await visitor.page.goto(link)
  await steps(visitor.page, enter('Password', PASSWORD), press('Accept and sign in'), sight('heading', 'Overview'))
  return visitor
}

test('an owner sets rules and receivers by form, tests them and sees how the delivery went', async () => {
  const ada = await owner()
  const { page } = ada
  await ada.go(`/a/${account.id}/alerts/rules`)
  const below = page.getByRole('switch', { name: 'Available credits fall below' })
  assert.equal(await below.getAttribute('aria-checked'), 'false')
  await below.click()
  await page.getByLabel('Available credits fall below, in credits').fill('lots')
  assert.equal(await page.getByRole('button', { name: 'Save' }).isDisabled(), true)
  await steps(page, enter('Available credits fall below, in credits', '5000'), hit('switch', 'A job failed'))
  await steps(page, press('Save'), see('Saved.'))
  const { rules } = await openedAlerts(home).settings(account.id)
  assert.deepEqual([rules.balanceBelow, rules.jobFailed, rules.limitShares], ['5000', false, [50, 80, 100]])

  await steps(page, enter('Address', 'http://169.254.169.254/latest'), press('Add'))
  await page.locator('.fault').waitFor()
  await steps(page, enter('Address', hookUrl), press('Add'), sight('button', `Remove ${hookUrl}`), press('Send a test'))
  await page.getByRole('row', { name: /alert\.test.*Webhook.*Delivered/ }).waitFor()
  assert.equal(JSON.parse(told[0] ?? '{}').type, 'alert.test')

  await openedAlerts(home).look()
  await page.reload()
  const bell = page.getByRole('button', { name: 'Alerts, 2 unread' }).locator('visible=true')
  await bell.click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('link', { name: 'The balance of test is low' }).waitFor()
  assert.deepEqual(await home.violations(page), [])
  await dialog.getByRole('link', { name: 'All alerts, rules and receivers' }).click()
  await page.getByRole('button', { name: 'Alerts', exact: true }).locator('visible=true').waitFor()
  const row = page.getByRole('row', { name: /The balance of test is low/ })
  await row.getByRole('button', { name: /of 1 delivered/ }).click()
  await steps(page, inDialog(see(/^Webhook to 127/)), press('Done'))

  await ada.go(`/a/${account.id}/alerts/rules`)
  await steps(page, press(`Remove ${hookUrl}`), see('No receivers'))
  assert.equal(await page.getByText('TOLLGATE_OUTBOUND_ALLOW').count(), 0, 'it is for operators')
  await ada.close()
})

test('whoever looks for a webhook finds why it was refused, and repeats it, in both themes', async () => {
  const other = await home.account()
  const { rules } = await openedAlerts(home).settings(other.id)
  await openedAlerts(home).change(other.id, { rules, receivers: [{ kind: 'webhook', to: `${hookUrl}?token=sekrit` }] })
  broken = true
  await openedAlerts(home).test(other.id)
  await operator.go('/operator/deliveries')
  await addFilter(page, 'Status')
  await steps(page, select('Status', 'delivered', EXACT), enter('Account', other.id))
  await page.getByLabel('Account').press('Enter')
  await steps(page, see('No deliveries match'), select('Status', '', EXACT), goTo('alert.test'))
  const attempts = page.getByRole('table', { name: 'Attempts' })
  await attempts.getByText('the disk is full').first().waitFor()
  await page.getByRole('button', { name: 'Send now' }).waitFor()
  assert.match((await page.locator('main').textContent()) ?? '', /The receiver answered with status 500\..*A test/s)
  assert.doesNotMatch(await page.content(), /sekrit/)
  for (const theme of ['light', 'dark'] as const) {
    await setTheme(page, theme)
    assert.deepEqual(await home.violations(page), [], theme)
  }
  broken = false
  await steps(page, press('Send now'), sight('button', 'Repeat'))
  await page.locator('main').getByText('Delivered', { exact: true }).first().waitFor()
  const before = told.length
  await steps(page, press('Repeat'), see('It is on its way, under the same id.', FIRST))
  await until(() => told.length, above(before))
  assert.equal(told.at(-1), told.at(-2), 'the same message')
  await operator.go(`/a/${other.id}/deliveries`)
  await page.getByRole('row', { name: /alert\.test.*Webhook.*Delivered/ }).waitFor()
  assert.deepEqual(await home.violations(page), [])
  await operator.go(`/a/${account.id}/deliveries?kind=email`)
  await page.getByText('No deliveries match').waitFor()
})

test('an operator’s bell tells of the gateway, and leaves an account’s alerts unread', async () => {
  for (let times = 0; times < 6; times++)
    for (const one of ['acc_1', 'acc_2', 'acc_3', 'acc_4']) home.gateway.vendors.failed('gamma', one, 'HTTP 500')
  await openedAlerts(home).look()
  await operator.go(`/a/${account.id}`)
  await page.getByRole('button', { name: 'Alerts, 1 unread' }).locator('visible=true').click()
  await page.getByRole('dialog').getByRole('link', { name: 'The circuit breaker of gamma is open' }).click()
  await page.waitForURL((url) => url.pathname.endsWith('/operator/vendors/gamma'))
  await operator.go('/operator/alerts')
  await steps(page, see('The circuit breaker of gamma is open'), touch('With accounts'))
  await page.getByText('The balance of test is low').waitFor()
  await operator.go('/operator/alerts/rules')
  await page.getByText('Private addresses must be listed in TOLLGATE_OUTBOUND_ALLOW.').waitFor()
  await steps(page, hit('switch', 'The circuit breaker of a vendor is open'), press('Save'), see('Saved.'))
  assert.equal((await openedAlerts(home).settings('')).rules.vendorOpen, false)
  assert.equal((await openedAlerts(home).settings('')).rules.verification, true)
})

test('live calls say why they failed, and are found by account, key and reason; a phone’s list is bounded', async () => {
  const poor = await home.account({ credits: 1n })
  const ask = (key: string, content: string) =>
    home.call('/v1/chat-completions', key, { model: 'beta-opus-5', messages: [{ role: 'user', content }] })
  await ask(account.key, 'Hello [[500]]')
  // On a busy machine some are told to come again; those share one row.
  for (let served = 0; served < 45; ) {
    const answers = await atOnce(15, () => ask(account.key, 'Hello!'))
    served += answers.filter(({ status }) => status === 200).length
  }
  await atOnce(45, () => ask(poor.key, 'Hello!'))
  const { key: other } = await home.key(poor.id, { models: ['alpha-5.4'] })
  assert.equal((await ask(other, 'Hello!')).status, 403)
  const phone = await home.visitor({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
  await home.logIn(phone, 'op@example.com')
  await phone.go('/operator/live')
  const { page } = phone
  await steps(page, see('The last 200 calls, newest first.'), sight('button', /^Show \d+ older call/))
  assert.equal(await page.getByRole('row').count(), 41, 'forty and the head')
  await steps(page, select('Show', 'failed'), seeRow(/beta-opus-5.*502 · failed.*Vendor/))
  assert.equal(await page.getByRole('row', { name: /rejected/ }).count(), 0)
  await page.getByLabel('Show').selectOption('')
  await page.getByRole('textbox', { name: 'Find' }).fill('upstream')
  await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' })
  assert.equal(await page.locator('tbody tr').count(), 1)
  await page.getByRole('textbox', { name: 'Find' }).fill(poor.keyId)
  await page.locator('tbody tr').nth(2).waitFor({ state: 'detached' })
  await steps(page, seeRow(/\d+ calls.*402 · rejected/, FIRST))
  await page.getByRole('textbox', { name: 'Find' }).fill('restricted')
  await page.getByRole('row', { name: /beta-opus-5.*403 · rejected/ }).waitFor()
  await phone.close()
})

test('a vendor shows its last day and which models fail; home shows the margin and the routes that lose', async () => {
  await home.settled()
  assert.equal((await lose()).rows, 1)
  for (const counted of home.gateway.hourly) await counted.flush()
  await operator.go('/operator/vendors')
  await page.getByRole('link', { name: 'beta', exact: true }).click()
  const card = page.getByRole('region', { name: 'Health over time' })
  await steps(card, see('Latency, p50'), see(/beta-opus-5: \d+ of \d+ calls? failed/))
  await operator.go('/operator/home')
  const losing = page.getByRole('region', { name: 'Losing money' })
  await losing.getByRole('row', { name: /gamma-v4-pro.*1/ }).waitFor()
  await page.locator('.stat').filter({ hasText: 'Margin' }).getByText('-', { exact: false }).first().waitFor()
  await page.getByText('Set up alert recipients').waitFor()
  assert.deepEqual(await home.violations(page), [])
})

/** As if a call had cost more than it brought. */
async function lose() {
  const rows = await home.sql(`insert into margin_hour (hour, product, route, calls, charged, costed, cost)
      values (date_trunc('hour', now(), 'UTC'), 'gamma-v4-pro', 1, 1, 1000000, 1000000, 3000000) returning 1`)
  return { rows: rows.length }
}
