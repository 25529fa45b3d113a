// What an operator does with vendors, and an owner with keys: each task by its clicks.

import { text } from 'node:stream/consumers'
import type { CatalogInput } from '../../src/catalog/document.ts'
import { openedAlerts } from '../alerts.ts'
import { assert, BY, before, listen, started, test, until } from '../gateway.ts'
import { applyChange, pageOf, startConsole } from './console.ts'
import { EXACT, enter, FIRST, goTo, hit, press, see, select, sight, steps, tick, touch } from './steps.ts'

let account = ''

/** A receiver of webhooks. */
const told: string[] = []
let hookUrl = ''
const hooks = started(() =>
  listen(async (request, response) => {
    const body = await text(request)
    told.push(body)
    response.end('ok')
  }),
)

const home = started(() => startConsole({ env: { TOLLGATE_OUTBOUND_ALLOW: hooks.host } }))
const operator = started(() => home.signedIn())
const page = pageOf(operator)
before(async () => {
  hookUrl = `${hooks.url}/alerts`
  account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
})

const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 })

test('a key for two models and one endpoint is made in one form, and rotated with another expiry in the same form', async () => {
  await operator.go(`/a/${account}/keys`)
  await page.getByRole('button', { name: 'Create key' }).click()
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Name', 'shop'), select('Expires', '30'), touch('Restrictions and limits'))
  await dialog.getByLabel('All models and data endpoints').uncheck()
  assert.equal(await dialog.getByRole('button', { name: 'Create key' }).isDisabled(), true, 'of no model it has no use')
  await dialog.getByLabel('Search models').fill('alpha-5')
  await dialog.getByRole('checkbox', { name: 'alpha-5.4' }).check()
  await dialog.getByRole('checkbox', { name: 'alpha-5.5' }).check()
  await dialog.getByLabel('All endpoints').uncheck()
  // Found by its address too.
  await dialog.getByLabel('Search endpoints').fill('/v1/chat/completions')
  await dialog.getByRole('checkbox', { name: /^chat/ }).check()
  await steps(dialog, enter('Credits per day', '5'), press('Create key'))
  const key = (await page.getByTestId('key-value').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied it' }).click()
  const row = page.getByRole('row', { name: /shop/ })
  await steps(row, see('2 models'), see('chat endpoint'))
  assert.equal((await home.call('/v1/chat/completions', key, chat('alpha-5.4'))).status, 200)
  assert.equal((await home.call('/v1/chat/completions', key, chat('beta-haiku-4-5'))).status, 403)
  assert.equal((await home.call('/v1/responses', key, { model: 'alpha-5.4', input: 'Hello' })).status, 403)

  await row.getByRole('button', { name: 'Actions for shop' }).click()
  await page.getByRole('menuitem', { name: 'Rotate' }).click()
  await steps(dialog, select('Expires', '90'), select('The old key', 'Stops at once'), enter('Credits per day', '7'))
  await dialog.getByRole('button', { name: 'Rotate' }).click()
  const next = (await page.getByTestId('key-value').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied it' }).click()
  assert.equal((await home.call('/v1/models', key)).status, 401)
  const { items } = await home.gateway.keys.list(account, { cursor: undefined, limit: 1 })
  assert.partialDeepStrictEqual(items[0], {
    last4: next.slice(-4),
    models: ['alpha-5.4', 'alpha-5.5'],
    endpoints: ['chat'],
    limits: { spendPerDay: '7' },
  })
  assert.ok(Date.parse(items[0]?.expiresAt ?? '') > Date.now() + 80 * 86_400_000)
})

// A vendor of our own, which says by which key it was asked.
const heard: string[] = []
const stranger = started(() =>
  listen((request, response) => {
    heard.push(String(request.headers.authorization))
    const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }]
    const answer = {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      data: [{ id: 'acme-large' }],
      choices,
      usage,
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }),
)

test('a vendor is added with the price that a markup makes, edited, given a second credential, and removed with what only it serves', async () => {
  const base = `${stranger.url}/v1`
  await operator.go('/operator/vendors')
  await steps(page, goTo('Add vendor'), enter('Name in the catalog', 'acme'), enter('Base address', base))
  await steps(page, enter('Key', 'sk-first-0123456789', EXACT), press('Test the vendor'))
  await page.getByRole('checkbox', { name: 'acme-large' }).check()
  await steps(page, enter('Cost of input, acme-large', '60', EXACT), enter('Cost of output, acme-large', '240', EXACT))
  await page.getByLabel('Markup').fill('1.25')
  // While it is typed, and before anything is previewed.
  const price = page.getByTestId('price-acme-large')
  await steps(price, see('75 in · 300 out'), see('margin 20 %'))
  await page.getByRole('button', { name: 'Preview the change' }).click()
  const dialog = page.getByRole('dialog')
  const rates = dialog.getByRole('table', { name: 'Prices of acme-large' })
  await rates.getByRole('row', { name: 'Input, per million tokens – 75 60 20.0 %' }).waitFor()
  await dialog.getByText('acme-large: It is new, served by acme.').waitFor()
  assert.equal(await dialog.getByRole('region', { name: 'Changed lines' }).count(), 0, 'JSON is one click further')
  await steps(dialog, touch('Show the JSON'), sight('region', 'Changed lines'), press('Apply'))
  await page.getByText(/ is connected$/).waitFor()

  // Edited: one form, sentences, applied.
  await operator.go('/operator/vendors')
  await steps(page, goTo('acme', EXACT), touch('Timeouts, limits and headers'), enter('Connect timeout (ms)', '1500'))
  await page.getByRole('button', { name: 'Preview the change' }).click()
  await steps(dialog, see('Vendor acme: connect timeout (ms) becomes 1500.'), press('Apply'))
  await steps(page, see(/Saved as version \d+/, FIRST))
  assert.equal(home.gateway.catalog.current.document.vendors.acme?.timeouts.connectMs, 1500)

  // A second credential, and which one a call used.
  await page.getByRole('button', { name: 'Add another credential' }).click()
  await steps(dialog, enter('Name', 'ACME_SECOND'), enter('Value', 'sk-second-0123456789'), enter('Weight', '1000'))
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.getByText('2 of 2 credentials in use').waitFor()
  const { id, key } = await home.account()
  const answer = await home.call('/v1/chat/completions', key, chat('acme-large'))
  assert.equal(answer.status, 200)
  const used = heard.at(-1) === 'Bearer sk-second-0123456789' ? 'ACME_SECOND' : 'ACME_API_KEY'
  await home.settled()
  await operator.go(`/a/${id}/usage/${answer.headers.get('x-request-id')}`)
  await page.getByRole('definition').getByText(used, { exact: true }).waitFor()

  // More models later, by the component that adds a vendor: nothing has to be typed again.
  await operator.go('/operator/vendors/acme')
  await steps(page, goTo('Add models'), press('Test the vendor'), see(/It works\./), sight('checkbox', 'acme-large'))

  // Removed: what only it serves is named first.
  await operator.go('/operator/vendors/acme')
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await dialog.getByText('No other vendor serves these.').waitFor()
  await dialog.locator('.note').getByText('acme-large').waitFor()
  assert.ok(home.gateway.catalog.current.document.vendors.acme, 'nothing goes before it is agreed to')
  await dialog.getByRole('button', { name: 'Remove it and 1 model' }).click()
  await page.waitForURL((url) => url.pathname.endsWith('/operator/vendors'))
  assert.equal(home.gateway.catalog.current.document.models['acme-large'], undefined)

  // Rolled back: the same table before, and sentences in the audit.
  await operator.go('/operator/catalog/versions')
  await page.getByRole('button', { name: 'Roll back' }).first().click()
  await rates.getByRole('row', { name: 'Input, per million tokens – 75 60 20.0 %' }).waitFor()
  assert.deepEqual(await home.violations(page), [])
  await dialog.getByRole('button', { name: 'Roll back' }).click()
  await steps(page, see(/Saved as version \d+, with the content of version/, FIRST))
  assert.ok(home.gateway.catalog.current.document.models['acme-large'])
  await operator.go('/operator/audit?action=catalog.rollback')
  await page.getByRole('button', { name: /rolled the catalog back/ }).click()
  await dialog
    .getByRole('listitem')
    .filter({ hasText: 'acme-large: 75 credits per million input tokens, cost 60, margin 20 %' })
    .waitFor()
  assert.deepEqual(await home.violations(page), [])
})

test('a vendor whose models others served when it was asked about is not removed with those that only it serves since', async () => {
  const current = async () => (await home.operator<{ document: CatalogInput }>('GET', '/catalog')).data.document
  const document = await current()
  const route = { vendor: 'spare', protocol: 'openai-chat' as const, order: 1 }
  const served = document.models['alpha-5.4']
  assert.ok(served)
  const withRoutes = (routes: typeof served.routes) => ({
    ...document,
    vendors: { ...document.vendors, spare: { baseUrl: 'sandbox' } },
    models: { ...document.models, 'alpha-5.4': { ...served, routes } },
  })
  const put = (next: CatalogInput) => home.operator('PUT', '/catalog', { document: next })
  assert.equal((await put(withRoutes([...served.routes, route]))).status, 200)
  await operator.go('/operator/vendors/spare')
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Other vendors serve all of its models.').waitFor()
  assert.equal((await put(withRoutes([route]))).status, 200)
  await steps(dialog, press('Remove', EXACT), see('No other vendor serves alpha-5.4.'))
  assert.ok(home.gateway.catalog.current.document.models['alpha-5.4'])
  assert.equal((await put(document)).status, 200)
})

test('failures of a vendor are told in words, each leading to a call', async () => {
  const { key } = await home.account()
  const body = { model: 'gamma-v4-pro', messages: [{ role: 'user', content: 'Hello [[503]]' }] }
  await (await home.call('/v1/chat/completions', key, body)).text()
  await home.settled()
  await operator.go('/operator/vendors')
  await page.getByRole('link', { name: 'gamma', exact: true }).click()
  const failures = page.getByRole('table', { name: 'Failures of gamma' })
  await steps(failures, see('Vendor unavailable: it answered HTTP 503'), goTo(/gamma-v4-pro/, FIRST))
  await page.getByRole('region', { name: 'What went wrong' }).waitFor()
})

test('an owner is told at 80 % of a spending limit, in the bell and by webhook', async () => {
  const { id, key } = await home.account()
  await home.operator('PATCH', `/accounts/${id}`, { limits: { spendPerDay: '0.01' } })
  const { rules } = await openedAlerts(home).settings(id)
  await openedAlerts(home).change(id, { rules, receivers: [{ kind: 'webhook', to: hookUrl }] })
  const spend = () => home.call('/v1/moderations', key, { model: 'alpha-moderation-1', input: Array(82).fill('Hi.') })
  assert.equal((await spend()).status, 200)
  await home.settled()
  await openedAlerts(home).look()
  await operator.go(`/a/${id}`)
  await page
    .getByRole('button', { name: /^Alerts, 1 unread/ })
    .locator('visible=true')
    .click()
  await page.getByRole('dialog').getByText('A spending limit has reached 80 %').waitFor()
  const hook = await until(() => told.find((one) => one.includes('A spending limit has reached 80 %')))
  assert.equal(JSON.parse(hook).type, 'alert.limit')
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
})

test('a guardrail is made by clicks: tried on a text, previewed, applied, and named by the call that it blocks', async () => {
  const dialog = page.getByRole('dialog')
  await operator.go('/operator/guardrails')
  await steps(page, see('No guardrails yet'), goTo('Add a guardrail'), enter('Name', 'No Mails', EXACT))
  await steps(page, tick('Email addresses'), enter('Sample text', 'Ask jo@example.org about TCK-123456.'))
  await steps(page, see('Found: Email addresses: 1.'), see(/Ask \[EMAIL_0{11}1\] about TCK-123456\./))
  await steps(page, press('Add a pattern'), enter('Word 1', 'ticket'))
  const pattern = page.getByLabel('Pattern 1', { exact: true })
  await pattern.fill('TCK-(')
  await page.getByText(/“ticket” is no pattern/).waitFor()
  await pattern.fill('TCK-[0-9]{6}')
  await steps(page, see('Found: Email addresses: 1, ticket: 1.'), press('Preview the change'))
  await steps(page, see(/must be lower-case letters/), enter('Name', 'no-mails', EXACT), press('Preview the change'))
  await dialog.getByText('Guardrail no-mails is added: it redacts what its patterns find.').waitFor()
  const rulesNow = () => home.gateway.catalog.current.document.guardrails ?? {}
  assert.deepEqual(rulesNow(), {}, 'nothing has changed yet')
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await page.getByRole('link', { name: 'no-mails' }).waitFor()
  assert.deepEqual(rulesNow()['no-mails']?.redact, {
    patterns: ['email'],
    own: { ticket: 'TCK-[0-9]{6}' },
    on: ['request'],
  })

  const { id, key } = await home.account()
  await steps(page, goTo('Add a guardrail'), enter('Name', 'be-kind', EXACT))
  await page.getByRole('radio', { name: /^Moderation model/ }).check()
  await steps(page, select('Model', 'alpha-moderation-1', EXACT), enter('Deadline', '30000'))
  // By its name: nobody has its id at hand.
  await steps(page, enter('Accounts', ''), hit('option', new RegExp(id)))
  await page.getByLabel('Keys').click()
  await page.getByRole('listbox').getByRole('option').first().click()
  assert.deepEqual(await home.violations(page), [])
  await page.getByRole('button', { name: 'Preview the change' }).click()
  await dialog.getByRole('button', { name: 'Apply' }).click()
  const row = page.getByRole('row', { name: /be-kind/ })
  await row.getByText('1 key').waitFor()
  const say = (content: string) =>
    home.call('/v1/chat/completions', key, { ...chat('alpha-5.4'), messages: [{ role: 'user', content }] })
  assert.equal((await say('A kind word')).status, 200)
  const blocked = await say('An example of hate')
  assert.deepEqual([blocked.status, blocked.headers.get('x-tollgate-guardrail')], [400, 'be-kind'])
  await home.settled()
  await operator.go(`/a/${id}/usage/${blocked.headers.get('x-request-id')}`)
  await page.getByText('Guardrails: “be-kind” blocked the request.').waitFor()

  await operator.go('/operator/guardrails')
  await row.getByRole('switch').click()
  await applyChange(page)
  await page.getByText('The guardrail be-kind is off now.').waitFor()
  assert.equal((await say('An example of hate')).status, 200)
  await page.getByRole('link', { name: 'no-mails' }).click()
  assert.equal(await page.getByLabel('Pattern 1', { exact: true }).inputValue(), 'TCK-[0-9]{6}')
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('link', { name: 'be-kind' }).waitFor()
  assert.deepEqual(Object.keys(rulesNow()), ['be-kind'])
})
