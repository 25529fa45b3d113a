// A vendor that the gateway has never seen, connected and used by somebody with a mouse: few clicks, one paste, no
// JSON.
import type { Page } from 'playwright-core'
import { startSandbox } from '../../sandbox/server.ts'
import type { CatalogInput } from '../../src/catalog/document.ts'
import { realWorld } from '../../src/kernel/world.ts'
import { assert, BY, before, pluck, started, test, until } from '../gateway.ts'
import { applyChange, pageOf, rowAction, startConsole } from './console.ts'
import { EXACT, enter, FIRST, goTo, hit, inDialog, pick, press, see, sight, steps, tick } from './steps.ts'

const CLICKS_MAX = 12

let account = ''

const stranger = started(() => startSandbox({ world: realWorld, speed: 1000 }))
const home = started(startConsole)
const operator = started(() => home.signedIn())
const page = pageOf(operator)
before(async () => {
  account = (await home.account()).id
  await operator.go(`/a/${account}`)
})

test('without the extension that adds vendors, no page leads there', async (t) => {
  const bare = await startConsole({ env: { TOLLGATE_EXTENSIONS_OFF: 'connect' } })
  t.after(() => bare.close())
  const { page, go } = await bare.signedIn()
  await go('/operator/vendors')
  await page.getByRole('table', { name: 'Vendors' }).waitFor()
  assert.equal(await page.getByText('Add vendor').count(), 0)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('vendor')
  await page.getByRole('option', { name: 'Vendors' }).first().waitFor()
  assert.equal(await page.getByRole('option', { name: 'Add vendor' }).count(), 0)
  await go('/operator/home')
  await page.getByRole('link', { name: 'Connect a real vendor' }).waitFor()
  assert.equal(await page.locator('[href$="/vendors/new"]').count(), 0)
})

test('a vendor never seen is tested, offered and chatted with, in at most 12 clicks and one paste', async () => {
  let clicks = 0
  const click = async (role: 'link' | 'button' | 'checkbox', name: string | RegExp) => {
    clicks += 1
    await page.getByRole(role, { name }).locator('visible=true').first().click()
  }
  await click('link', 'Operator')
  await click('link', 'Vendors')
  await click('link', 'Add vendor')
  await steps(page, enter('Name in the catalog', 'newcomer'), enter('Base address', `${stranger.url}/nothing-here`))
  await page.getByLabel('Key', { exact: true }).fill('sk-pasted-0123456789abcdef') // the one paste
  await click('button', 'Test the vendor')
  // The address was wrong, the right one is suggested, and is a click away.
  await page.getByText('There is nothing at this address (404)').first().waitFor()
  await click('button', /^Use http/)
  await click('button', 'Test the vendor')
  await page.getByText(/It works\. plain-1 answers/).waitFor()
  await click('checkbox', 'plain-1')
  await steps(page, enter('Cost of input, plain-1', '100', EXACT), enter('Cost of output, plain-1', '400', EXACT))
  await page.getByLabel('Markup').fill('1.5')
  assert.deepEqual(await home.violations(page), [])
  await click('button', 'Preview the change')
  await page.getByRole('dialog').getByRole('row', { name: 'Input, per million tokens – 150 100 33.3 %' }).waitFor()
  await page.getByRole('dialog').getByText('NEWCOMER_API_KEY is stored encrypted.').waitFor()
  await click('button', 'Apply')
  await page.getByText(/models and data endpoints are still simulated, such as alpha-5\.4/).waitFor()
  await steps(page, press('No longer offer them'), inDialog(see('alpha-5.4 is switched off.')))
  await page.getByRole('button', { name: 'Back to editing' }).click()
  await click('link', 'Try plain-1')
  await page.getByLabel('Message', { exact: true }).fill('Hello')
  await click('button', 'Send')
  await page.getByText(/simulates plain-1/).waitFor()
  assert.ok(clicks <= CLICKS_MAX, `${clicks} clicks`)

  const { models, vendors } = home.gateway.catalog.current.input
  assert.equal(vendors.newcomer?.baseUrl.startsWith(stranger.url), true)
  assert.deepEqual(models['plain-1']?.pricing.tiers, [{ input: '150', output: '600' }])
  assert.ok(stranger.seen.requests >= 3, 'the stranger was asked')
  assert.ok(!(await page.content()).includes('sk-pasted'), 'the key is gone from the page')
})

test('whoever would sell below cost is told so before it is applied, and the button says it', async () => {
  await operator.go('/operator/vendors/new')
  await page.getByRole('radio', { name: 'Anthropic', exact: true }).check()
  await page.getByLabel('Base address').fill(`${stranger.url}/anthropic`)
  await steps(page, enter('Key', 'sk-pasted-0123456789abcdef', EXACT), press('Test the vendor'))
  // The vendor does not list it, so that it is not ticked by itself.
  const row = page.getByRole('row', { name: /claude-fable-5/ }).first()
  const fable = row.getByRole('checkbox', { name: 'claude-fable-5', exact: true })
  await fable.waitFor()
  assert.equal(await fable.isChecked(), false)
  await fable.check()
  await row.getByRole('checkbox', { name: 'Also as beta-fable-5' }).check()
  await page.getByRole('button', { name: 'Preview the change' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/beta-fable-5, route 1 .* costs more than it is sold for/).waitFor()
  assert.equal(await dialog.getByRole('button', { name: 'Apply', exact: true }).count(), 0)
  await steps(dialog, sight('button', 'Apply, and sell below cost'), press('Back to editing'))
  await steps(page, enter('Markup', '1.2'), press('Preview the change'))
  await steps(dialog, sight('button', 'Apply', EXACT), press('Back to editing'))
})

test('one switch opens every client format for every text model', async () => {
  await operator.go('/operator/catalog')
  const everyFormat = page.getByRole('switch', { name: 'Offer all API formats for all text models' })
  assert.equal(await everyFormat.getAttribute('aria-checked'), 'false')
  await everyFormat.click()
  await page.getByText('Every text model is offered in every client format.').waitFor()
  await applyChange(page)
  await page.getByText('Every SDK works with every text model now.').waitFor()
  await page.locator('[role=switch][aria-checked=true][aria-label^="Offer all API formats"]').waitFor()
  const { key } = await home.account()
  const body = { model: 'gamma-v4-pro', max_tokens: 500, messages: [{ role: 'user', content: 'Hello' }] }
  assert.equal((await home.call('/beta/v1/messages', key, body)).status, 200)
  assert.deepEqual(await home.violations(page), [])
  await everyFormat.click()
  await applyChange(page)
  await page.getByText('Each text model has the formats of its entry again.').waitFor()
  assert.equal((await home.call('/beta/v1/messages', key, body)).status, 400)
})

test('what is simulated is marked, goes off by one switch, and comes back', async () => {
  const isOffered = () => home.gateway.catalog.current.document.models['alpha-5.4']?.enabled
  await operator.go(`/a/${account}/models`)
  const rowOf = (name: string) => page.getByRole('row', { name: new RegExp(`\\b${name}\\b`) }).first()
  await rowOf('alpha-5.4').getByText('Simulated').waitFor()
  assert.equal(await rowOf('plain-1').getByText('Simulated').count(), 0)
  await operator.go('/operator/catalog')
  const switchOf = page.getByRole('switch', { name: 'Offer what is simulated' })
  for (const on of [false, true]) {
    await switchOf.click()
    await applyChange(page)
    await page.getByText(`What is simulated is ${on ? 'offered' : 'no longer offered'}.`).waitFor()
    await page.locator(`[role=switch][aria-checked=${on}][aria-label="Offer what is simulated"]`).waitFor()
    assert.deepEqual([isOffered(), home.gateway.catalog.current.document.models['plain-1']?.enabled], [on, true])
  }
  assert.deepEqual(await home.violations(page), [])
})

test('a model is no longer offered once that was seen, and is offered again by Undo', async () => {
  await operator.go('/operator/catalog')
  await page.getByLabel('Search models').fill('gamma-v4-flash')
  const found = page.getByRole('switch', { name: /^Enable / })
  await until(() => found.count(), 1)
  await found.click()
  const isOffered = () => home.gateway.catalog.current.document.models['gamma-v4-flash']?.enabled
  await page.getByRole('dialog').getByText('gamma-v4-flash is switched off.').waitFor()
  assert.equal(isOffered(), true, 'nothing applies before it has been seen')
  await applyChange(page)
  await page.getByText(/ is no longer offered\./).waitFor()
  assert.equal(isOffered(), false)
  await steps(page, press('Undo'), see(/^Version \d+ is undone/))
  assert.equal(isOffered(), true)
})

async function saveRoutes(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Preview the change' }).click()
  await applyChange(page)
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

test('routes are put in another order by keyboard and by drag, one is switched off, and the margin is said', async () => {
  await operator.go('/operator/catalog')
  await page.getByLabel('Search models').fill('alpha-5.4')
  await rowAction(page, 'Routes')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Route 1: its cost is not known.').waitFor()
  assert.deepEqual(await home.violations(page), [])
  await dialog.getByRole('button', { name: 'Move route 2 up' }).press('Enter')
  await steps(dialog, enter('Model name at the vendor', 'gpt-5.4-mini', FIRST), hit('switch', 'Use route 2'))
  await saveRoutes(page)
  const saved = () => home.gateway.catalog.current.input.models['alpha-5.4']?.routes ?? []
  assert.deepEqual(
    saved().map(({ protocol, order, model, enabled }) => [protocol, order, model, enabled ?? true]),
    [
      ['openai-responses', 0, 'gpt-5.4-mini', true],
      ['openai-chat', 1, undefined, false],
    ],
  )
  await rowAction(page, 'Routes')
  const rows = dialog.locator('.route-row')
  await rows.nth(1).dragTo(rows.nth(0), { sourcePosition: { x: 4, y: 4 }, targetPosition: { x: 4, y: 4 } })
  await saveRoutes(page)
  assert.deepEqual(pluck(saved(), 'protocol'), ['openai-chat', 'openai-responses'])
  await page.getByLabel('Search models').fill('plain-1')
  await rowAction(page, 'Routes')
  await dialog.getByText('A typical call costs 0.22 and is charged 0.33: margin 33 %.').waitFor()
})

test('one call of a hundred is sent to a route, and policy and stickiness are chosen by the form', async () => {
  await operator.go('/operator/catalog')
  await page.getByLabel('Search models').fill('alpha-5.4')
  const dialog = page.getByRole('dialog')
  const saved = () => home.gateway.catalog.current.input.models['alpha-5.4']
  const save = async () => {
    await saveRoutes(page)
  }
  for (const policy of ['least-latency', 'cheapest-first'] as const) {
    await rowAction(page, 'Routes')
    await dialog.getByLabel('Balance equal routes by').selectOption(policy)
    await dialog.getByLabel('Sticky conversations').setChecked(policy === 'least-latency')
    await save()
    assert.deepEqual(saved()?.routing, { policy, sticky: policy === 'least-latency' })
  }
  await rowAction(page, 'Routes')
  await dialog.locator('.route-row').nth(1).getByRole('button', { name: 'Send 1 % here' }).click()
  await save()
  assert.deepEqual(
    saved()?.routes.map(({ order, weight, enabled }) => [order, weight, enabled ?? true]),
    [
      [saved()?.routes[0]?.order, 990, saved()?.routes[0]?.enabled ?? true],
      [saved()?.routes[0]?.order, 10, true],
    ],
  )
  // It is there when the form is opened again.
  await rowAction(page, 'Routes')
  assert.equal(await dialog.getByLabel('Weight').nth(1).inputValue(), '10')
  assert.equal(await dialog.getByLabel('Balance equal routes by').inputValue(), 'cheapest-first')
  await page.keyboard.press('Escape')
})

test('a vendor gets a second credential, which is shown with its weight and state, and is taken away again', async () => {
  await operator.go('/operator/vendors')
  await steps(page, goTo('newcomer'), press('Add another credential'))
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Name', 'NEWCOMER_SECOND'), enter('Value', 'sk-second-0123456789wxyz'))
  await dialog.getByLabel('Weight').fill('4')
  assert.deepEqual(await home.violations(page), [])
  await dialog.getByRole('button', { name: 'Add' }).click()
  const table = page.getByRole('table', { name: 'Credentials of newcomer' })
  await table.getByText('…wxyz').waitFor()
  await page.getByText('2 of 2 credentials in use').waitFor()
  assert.deepEqual(await home.violations(page), [])
  assert.deepEqual(home.gateway.catalog.current.input.vendors.newcomer?.credentials, [
    { name: 'NEWCOMER_API_KEY', weight: 1 },
    { name: 'NEWCOMER_SECOND', weight: 4 },
  ])
  assert.ok(!(await page.content()).includes('sk-second'))
  await steps(page, press('Actions for NEWCOMER_SECOND'), pick('Remove'))
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await table.getByText('…wxyz').waitFor({ state: 'detached' })
  assert.equal(home.gateway.catalog.current.input.vendors.newcomer?.credential, 'NEWCOMER_API_KEY')
})

test('an account stores its own key at a vendor that takes them, sees its fee, and removes it', async () => {
  const document = structuredClone(home.gateway.catalog.current.input)
  const vendor = document.vendors.newcomer
  assert.ok(vendor)
  document.vendors.newcomer = { ...vendor, byokFee: { call: '0.01', share: '0.05' } }
  await home.gateway.catalog.apply(document, BY, '')
  await operator.go(`/a/${account}/keys`)
  await steps(page, see('0.01 credits a call + 5 % of the price'), press('Actions for newcomer'), pick('Store a key'))
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Key', 'sk-mine-0123456789mine', EXACT), tick('Use the gateway’s credential if it fails'))
  assert.deepEqual(await home.violations(page), [])
  await dialog.getByRole('button', { name: 'Test and store' }).click()
  await steps(page, see('newcomer accepts the key.'), see('…mine'), see('The gateway’s credential, at the price'))
  assert.deepEqual(await home.violations(page), [])
  assert.ok(!(await page.content()).includes('sk-mine'))
  // When the vendor moves, the key is not sent to its new address.
  const row = page.getByRole('table', { name: 'BYOK keys' }).getByRole('row', { name: 'newcomer' })
  const movedTo = async (baseUrl: string) => {
    document.vendors.newcomer = { ...vendor, byokFee: { call: '0.01', share: '0.05' }, baseUrl }
    await home.gateway.catalog.apply(document, BY, '')
    await operator.go('/')
    await operator.go(`/a/${account}/keys`)
  }
  await row.getByText('In use').waitFor()
  await movedTo('https://elsewhere.example/v1')
  await row.getByText('The vendor’s address has changed: enter it again').waitFor()
  assert.equal(await row.getByText('In use').count(), 0)
  assert.deepEqual(await home.violations(page), [])
  await movedTo(vendor.baseUrl)
  await row.getByText('In use').waitFor()
  await steps(page, press('Actions for newcomer'), pick('Remove'))
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('…mine').waitFor({ state: 'detached' })
})

test('list prices are compared, chosen and applied as one version', async () => {
  const document = structuredClone(home.gateway.catalog.current.input) as CatalogInput
  document.vendors.mistral = { baseUrl: 'https://api.mistral.ai/v1', credential: 'MISTRAL_API_KEY' }
  document.models['mistral-large-latest'] = {
    name: 'Large',
    type: 'text',
    family: 'mistral',
    clientFormats: ['openai-chat'],
    routes: [{ vendor: 'mistral', protocol: 'openai-chat' }],
    pricing: { unit: 'credits', tiers: [{ input: '99', output: '199' }] },
  }
  await home.gateway.catalog.apply(document, BY, '')
  const { version } = home.gateway.catalog.current
  await operator.go('/operator/catalog/list-prices')
  const large = page.getByRole('checkbox', { name: 'mistral-large-latest' })
  await large.waitFor()
  assert.equal(await large.isChecked(), true)
  assert.equal(await page.getByRole('checkbox', { name: 'mistral-small-latest' }).isChecked(), false)
  assert.deepEqual(await home.violations(page), [])
  await steps(page, press('Apply 1 row'), see(`Saved as version ${version + 1}.`))
  await large.waitFor({ state: 'detached' })
  const { routes, pricing } = home.gateway.catalog.current.input.models['mistral-large-latest']!
  assert.deepEqual(routes[0]?.cost?.tiers, [{ input: '50', cachedInput: '5', output: '150' }])
  assert.deepEqual(pricing.tiers, [{ input: '99', output: '199' }])
})
