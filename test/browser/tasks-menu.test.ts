// Getting about in the console: two places, their menus, the finder, and a page that comes back by itself.
import { startProxy } from '../chaos/proxy.ts'
import { freshDatabase } from '../database.ts'
import { assert, BY, before, none, pluck, started, test } from '../gateway.ts'
import { pageOf, startConsole, type Visitor } from './console.ts'
import { enter, inDialog, press, see, steps } from './steps.ts'

let account = ''

const database = started(freshDatabase)
const proxy = started(() => startProxy({ path: `${database.connection.host}/.s.PGSQL.${database.connection.port}` }))
const home = started(() =>
  startConsole({ database, through: (connection) => ({ ...connection, host: '127.0.0.1', port: proxy.port }) }),
)
const operator = started(() => home.signedIn())
const page = pageOf(operator)
before(async () => {
  account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
})

async function menu(page: Visitor['page'], name: string): Promise<string[]> {
  const links = page.getByRole('complementary').getByRole('navigation', { name }).getByRole('link')
  await links.first().waitFor()
  return links.allInnerTexts()
}

test('account and operator are two places with a switch, at most nine entries each, no name twice', async () => {
  await operator.go(`/a/${account}`)
  const ofAccount = await menu(page, 'Harbor Books')
  await page.getByRole('navigation', { name: 'Place' }).getByRole('link', { name: 'Operator' }).click()
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
  const ofGateway = await menu(page, 'Operator')
  for (const entries of [ofAccount, ofGateway])
    assert.ok(entries.length >= 5 && entries.length <= 9, entries.join(', '))
  assert.equal(new Set([...ofAccount, ...ofGateway]).size, ofAccount.length + ofGateway.length)
  // Every entry leads to a page, whose place and entry are marked.
  for (const name of ofGateway) {
    await page.getByRole('complementary').getByRole('link', { name, exact: true }).click()
    await page.locator('.nav-link[aria-current]', { hasText: name }).waitFor()
    assert.equal(await page.getByText('There is no page at this address').count(), 0, name)
  }
  await page.getByRole('navigation', { name: 'Place' }).getByRole('link', { name: 'Account' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
})

test('pages of one section are tabs of each other', async () => {
  await operator.go(`/a/${account}/jobs`)
  await page.getByRole('navigation', { name: 'Jobs' }).getByRole('link', { name: 'Batches' }).click()
  await page.getByRole('heading', { level: 1, name: 'Batches' }).waitFor()
  await page.locator('.nav-link[aria-current]', { hasText: 'Jobs' }).waitFor()
  // Credits are not sold here, so there is nothing to buy.
  await page.getByRole('link', { name: 'Billing' }).first().click()
  await page.getByRole('heading', { level: 1, name: 'Balance & plan' }).waitFor()
  const tabs = page.getByRole('navigation', { name: 'Billing' }).getByRole('link')
  assert.deepEqual(await tabs.allInnerTexts(), ['Balance & plan', 'Invoices', 'Statement', 'All movements'])
})

test('the account that an operator opens is the one the menu shows afterwards', async () => {
  const other = await home.gateway.accounts.create({ name: 'Juniper Clinic', credits: 0n }, BY)
  await operator.go(`/operator/accounts/${other}`)
  await page.getByRole('heading', { level: 1, name: 'Juniper Clinic' }).waitFor()
  await page.getByRole('navigation', { name: 'Place' }).getByRole('link', { name: 'Account' }).click()
  await page.waitForURL(new RegExp(`/a/${other}`))
  await page.locator('.switcher-name', { hasText: 'Juniper Clinic' }).waitFor()
})

test('an action is found and run by keyboard alone', async () => {
  await operator.go(`/a/${account}`)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('new key')
  await page.getByRole('option', { selected: true }).getByText('New key').waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').getByLabel('Name').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('add credits')
  await page.getByRole('option', { selected: true }).getByText('Add credits').waitFor()
  await page.keyboard.press('Enter')
  await steps(page, inDialog(enter('Amount', '5'), enter('Note', 'by keyboard')))
  await page.keyboard.press('Enter')
  await page.getByText('The balance is now 105 credits.').waitFor()
})

test('the finder knows vendors, members, key prefixes and the documentation, and keeps a pasted key to itself', async () => {
  const { key } = await home.key(account)
  const [vendor = ''] = Object.keys(home.gateway.catalog.current.document.vendors)
  await operator.go(`/a/${account}`)
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  const find = async (text: string, option: RegExp) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill(text)
    await page.getByRole('option', { name: option }).first().waitFor()
    await page.keyboard.press('Control+k')
  }
  await find(vendor, /vendor$/)
  await find(key.slice(0, 12), /calls of this key$/)
  await find(key, /calls of this key$/)
  await find('structured', /guide$/)
  await find('rate limits', /Search the documentation/)
  none(asked, (url) => url.includes(key.slice(12, -4)))
})

test('a page says that the database is away, and comes back by itself', async () => {
  await operator.go('/operator/accounts')
  await page.getByRole('link', { name: 'Harbor Books' }).waitFor()
  proxy.refuse()
  proxy.reset()
  await operator.follow('/operator/operators')
  await page.getByText('This page tries again by itself.').first().waitFor()
  assert.equal(await page.getByText('Nothing was charged').count(), 0)
  proxy.heal()
  await page.getByText('op@example.com').nth(1).waitFor()
  await page.getByText('This page tries again by itself.').waitFor({ state: 'detached' })
  home.mishaps.splice(0, home.mishaps.length, ...home.mishaps.filter((text) => !/status of 503/.test(text)))
})

test('an action is found by its name, filled in and sent by its plain form; what is wrong stands at its field', async () => {
  await operator.go(`/a/${account}`)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('create a team')
  await page.getByRole('option', { name: /form$/ }).first().click()
  const form = page.getByRole('dialog', { name: /team/i })
  assert.equal(await form.getByLabel('Account id').inputValue(), account)
  await steps(form, enter('Name', '\u0007'), press('Send'))
  await form
    .locator('.field', { hasText: 'Name' })
    .getByText(/must not hold control characters/)
    .waitFor()
  await steps(form, enter('Name', 'Night shift'), press('Send'))
  await page.getByLabel('Answer').filter({ hasText: '"name": "Night shift"' }).waitFor()
  const made = await home.gateway.database.query<{ name: string }>({ text: 'select name from team' })
  assert.deepEqual(pluck(made, 'name'), ['Night shift'])
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('searchbox', { name: 'Search actions' }).fill('nothing of this name')
  await page.getByText('No action is called so').waitFor()
  await operator.follow('/actions?do=PUT%20%2Faudit-export')
  const whole = page.getByRole('dialog').getByLabel('What is sent')
  await whole.fill('{"kind": "webhook"')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.field-fault', { hasText: 'must be JSON' }).waitFor()
  await whole.fill('{"kind": "webhook"}')
  await steps(page, press('Send'), see('url: expected string'))
  assert.deepEqual(await home.violations(page), [])
})
