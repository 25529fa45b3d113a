// The tasks that people come for, each done from the first page of its place, with its clicks counted: at most four,
// and one form. A form is what is filled in and pressed on one page or in one dialog, up to the button that sends it.
import type { Locator, Page } from 'playwright-core'
import { fixtureText } from '../fixture.ts'
import { assert, BY, before, started, test, until } from '../gateway.ts'
import { text as said, startForeignServer } from '../mcp/foreign-server.ts'
import { addPasskeyDevice, PASSWORD, startConsole, type Visitor } from './console.ts'

const CLICKS_MAX = 4
const FORMS_MAX = 1

const DOCUMENT = fixtureText('openapi/street-maps.yaml')

let operator: Visitor
let page: Page
let account = ''
/** Passkeys belong to a host name, which an address of digits is not. */
let base = ''

const tools = started(() => startForeignServer('modern', [{ name: 'forecast', description: 'Tells the weather.' }]))
const home = started(() =>
  startConsole({
    env: { HOST: 'localhost', TOLLGATE_OUTBOUND_ALLOW: new URL(tools.url).host },
    mayHappen: (text) => text.startsWith(`request: ${new URL(base).origin}/`),
  }),
)

const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello!' }] })

before(async () => {
  base = `${home.url.replace('127.0.0.1', 'localhost')}/console`
  const made = await home.account()
  account = made.id
  await home.gateway.accounts.change(account, { name: 'Harbor Books' }, BY)
  tools.acts.set('forecast', () => said('rain'))
  for (const model of ['alpha-5.4', 'no-such-model']) await home.call('/v1/chat/completions', made.key, chat(model))
  const address = { street: 'Weg 2', postcode: '20457', city: 'Hamburg', country: 'DE' }
  const issuer = { ...address, name: 'Gateway GmbH', vatId: 'DE136695976', taxRate: '19' }
  for (const [path, method, body] of [
    ['/invoice-settings', 'PATCH', { issuer }],
    [`/accounts/${account}/billing-details`, 'PUT', { ...address, company: 'Harbor Books' }],
  ] as const) {
    const { status, data } = await home.operator(method, path, body)
    assert.equal(status, 200, `${path}: ${JSON.stringify(data)}`)
  }
  operator = await home.visitor({ acceptDownloads: true })
  page = operator.page
  await page.goto(`${base}/setup#token=${await home.gateway.people.openSetup()}`)
  await page.getByLabel('Email').fill('op@example.com')
  await page.locator('input[name=password]').fill(PASSWORD)
  await page.getByLabel('Password again').fill(PASSWORD)
  await page.getByRole('button', { name: 'Create the operator’s login' }).click()
  await page.waitForURL((url) => !url.pathname.endsWith('/setup'))
})

/** Counts what a person presses. */
class Way {
  clicks = 0
  forms = 0

  async press(what: Locator): Promise<void> {
    this.clicks += 1
    await what.locator('visible=true').first().click()
  }
  link = (name: string | RegExp) => this.press(page.getByRole('link', { name, exact: true }))
  button = (name: string | RegExp) => this.press(page.getByRole('button', { name, exact: true }))
  /** By the menu, and by the tabs of a section. */
  async go(...names: readonly string[]): Promise<void> {
    const [section = '', tab] = names
    await this.press(page.getByRole('complementary').getByRole('link', { name: section, exact: true }))
    if (tab)
      await this.press(page.getByRole('main').getByRole('navigation').getByRole('link', { name: tab, exact: true }))
  }
  /** From the menu of a row. */
  async row(of: RegExp, item: string): Promise<void> {
    await this.press(page.getByRole('main').getByRole('button', { name: of }))
    await this.press(page.getByRole('menuitem', { name: item, exact: true }))
  }
  async form(fill: () => Promise<unknown>, send: string | RegExp): Promise<void> {
    this.forms += 1
    await fill()
    await press(send)
  }
}

const press = (name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).locator('visible=true').last().click()
const fill = async (texts: Readonly<Record<string, string>>) => {
  for (const [label, text] of Object.entries(texts)) await page.getByLabel(label, { exact: true }).last().fill(text)
}
const choose = (label: string, option: string) =>
  page.getByRole('combobox', { name: label, exact: true }).last().selectOption(option)
const see = (words: string | RegExp) => page.getByText(words).locator('visible=true').first().waitFor()
const row = (name: RegExp) => page.getByRole('row', { name }).first()
const download = async (begin: Promise<void>) => {
  const [file] = await Promise.all([page.waitForEvent('download'), begin])
  return file.suggestedFilename()
}
/** A change of the catalog is seen before it applies. */
const apply = (way: Way) => way.press(page.getByRole('dialog').getByRole('button', { name: /^Apply/ }))

const counts: string[] = []
let code = ''

function task(at: 'account' | 'operator', name: string, run: (way: Way) => Promise<unknown>): void {
  test(`${name}, in at most four clicks and one form`, async () => {
    const way = new Way()
    await page.goto(`${base}${at === 'account' ? `/a/${account}` : '/operator/home'}`)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await run(way)
    counts.push(`${name}: ${way.clicks} clicks, ${way.forms} forms`)
    assert.ok(way.clicks <= CLICKS_MAX && way.forms <= FORMS_MAX, `${way.clicks} clicks, ${way.forms} forms`)
  })
}

task('operator', '1 an account with credits', async (way) => {
  await way.go('Accounts')
  await way.button('Create account')
  await way.form(() => fill({ Name: 'Quill Works', 'Credits to start with': '50' }), 'Create account')
  await see('Quill Works')
})

task('account', '2 a key', async (way) => {
  await way.go('Keys')
  await way.button('Create key')
  await way.form(() => fill({ Name: 'website' }), 'Create key')
  await press('I have copied it')
  await row(/website/).waitFor()
})

task('account', '3 why a call failed', async (way) => {
  await way.go('Usage')
  await way.press(page.getByRole('table', { name: 'Calls' }).getByRole('link', { name: 'unknown model' }))
  await see(/Did you mean|What to do/)
})

task('account', '4 spend by model, this period against the one before', async (way) => {
  await way.go('Usage')
  await way.link('Over time')
  await page.getByRole('columnheader', { name: /Change/ }).waitFor()
  await row(/alpha-5\.4/).waitFor()
})

task('operator', '5 the slow end of a vendor’s latency', async (way) => {
  await way.go('Vendors')
  await way.link('alpha')
  await see('Latency p95')
})

task('account', '6 a key for two endpoints that spends at most 5 credits a day', async (way) => {
  await way.go('Keys')
  await way.button('Create key')
  await way.form(async () => {
    await fill({ Name: 'chat only' })
    await page.getByText('Restrictions and limits').click()
    await page.getByLabel('All endpoints').uncheck()
    for (const name of [/^chat\b/i, /^embeddings\b/i])
      await page.getByRole('group', { name: 'Endpoints' }).getByRole('checkbox', { name }).first().check()
    await fill({ 'Credits per day': '5' })
  }, 'Create key')
  await press('I have copied it')
  await row(/chat only/).waitFor()
})

task('account', '7 revoke a key', async (way) => {
  await way.go('Keys')
  await way.row(/^Actions for chat only/, 'Revoke')
  await way.press(page.getByRole('dialog').getByRole('button', { name: /^Revoke/ }))
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

task('account', '8 invite a viewer', async (way) => {
  await way.go('Members')
  await way.button('Invite someone')
  await way.form(async () => {
    await fill({ Email: 'vera@example.com' })
    await choose('Role', 'viewer')
  }, 'Invite')
  await see('The first person who opens this link joins with the role Viewer')
  await press('Done')
})

task('account', '9 a team', async (way) => {
  await way.go('Members', 'Teams')
  await way.button('New team')
  await way.form(() => fill({ Name: 'Search' }), 'Create')
  await row(/Search/).waitFor()
})

task('account', '9 its budget', async (way) => {
  await way.go('Keys', 'Budgets')
  await way.button('New budget')
  await way.form(async () => {
    await fill({ Name: 'The search team', Limit: '100' })
    await choose('Applies to', 'team')
    await choose('Only for', 'Search')
  }, 'Create budget')
  await row(/The search team.*team Search/).waitFor()
})

task('account', '10 a budget of each end user', async (way) => {
  await way.go('Keys', 'Budgets')
  await way.button('New budget')
  await way.form(() => fill({ Name: 'Trial users', Limit: '2' }), 'Create budget')
  await row(/Trial users.*every end user.*0 users so far/).waitFor()
})

task('operator', '12 change a price, seeing cost and margin first', async (way) => {
  await way.go('Catalog')
  await way.row(/^Actions for Alpha 5\.4$/, 'Price')
  await way.form(
    () =>
      page
        .getByLabel(/^Output/)
        .first()
        .fill('2000'),
    'Preview the change',
  )
  await page.getByRole('table', { name: /^Prices of alpha-5\.4/ }).waitFor()
  await apply(way)
  await see('Undo')
})

task('operator', '13 roll the catalog back', async (way) => {
  await way.go('Catalog', 'Versions')
  await way.button(/^Roll back to version \d+|^Roll back$/)
  await way.press(page.getByRole('dialog').getByRole('button', { name: /^(Roll back|Apply)/ }))
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

task('operator', '14 a fallback for a model', async (way) => {
  await way.go('Catalog')
  await way.row(/^Actions for Alpha 5\.4$/, 'Routes')
  await way.form(() => press('Add a fallback'), 'Preview the change')
  await apply(way)
  await see(/apply now/)
})

task('operator', '15 a guardrail, tried on a text', async (way) => {
  await way.go('Catalog', 'Guardrails')
  await way.link('Add a guardrail')
  await way.form(async () => {
    await fill({ Name: 'no-mails', 'Sample text': 'Ask jo@example.org.' })
    await page.getByLabel('Email addresses').check()
    await see('Found: Email addresses: 1.')
  }, 'Preview the change')
  await apply(way)
  await page.getByRole('link', { name: 'no-mails' }).waitFor()
})

task('operator', '18 sign-up: what the missing mail server forbids is said before anything is saved', async (way) => {
  await way.go('System', 'Sign-up')
  await see('TOLLGATE_SMTP_URL')
  for (const mode of [/^Open/, /^By domain/]) assert.ok(await page.getByRole('radio', { name: mode }).isDisabled())
  await way.form(() => page.getByRole('radio', { name: /^By invitation/ }).check(), 'Save')
  await see('Saved.')
})

task('operator', '19 payments, as a test', async (way) => {
  await way.go('Finance', 'Payment settings')
  await way.form(() => page.getByLabel('Test payments').check(), 'Save')
  await see('Saved.')
})

task('operator', '21 a plan', async (way) => {
  await way.go('Finance', 'Plans, packs and codes')
  await way.button('New plan')
  const plan = { Name: 'Pro', 'Price a month': '9.00', 'Credits a month': '1000', Currency: 'EUR' }
  await way.form(() => fill(plan), 'Preview the change')
  await apply(way)
  await row(/Pro.*9\.00 EUR/).waitFor()
})

task('operator', '21 a pack', async (way) => {
  await way.go('Finance', 'Plans, packs and codes')
  await way.button('New pack')
  const pack = { Name: 'Starter', Price: '20.00', Credits: '2200', 'Credits expire after (days)': '90' }
  await way.form(() => fill(pack), 'Preview the change')
  await apply(way)
  await row(/Starter.*20\.00 EUR/).waitFor()
})

task('account', '20 buy credits', async (way) => {
  await way.go('Billing', 'Buy credits')
  await way.button('Buy Starter')
  await way.button('Pay 20.00 EUR')
  await see('2,200 credits were added.')
})

task('operator', '22 make a code', async (way) => {
  await way.go('Finance', 'Plans, packs and codes')
  await way.button('New codes')
  await way.form(() => fill({ Name: 'Trade fair', 'Credits of each code': '50' }), 'Create codes')
  code = (await page.getByRole('dialog').getByRole('region', { name: 'Trade fair' }).textContent()) ?? ''
  await press('I have stored them')
})

task('account', '22 redeem it', async (way) => {
  await way.go('Billing')
  await way.button('Redeem a code')
  await way.form(() => fill({ Code: code.toLowerCase().replaceAll('-', '') }), 'Redeem')
  await see(/50 credits/)
})

task('account', '23 the PDF of an invoice', async (way) => {
  await way.go('Billing', 'Invoices')
  assert.match(await download(way.button('PDF')), /\.pdf$/)
})

// After what is sold for test payments, which a real vendor ends.
task('operator', '16 a product of an OpenAPI document, whose server is not used without a word', async (way) => {
  await way.go('Vendors', 'Products')
  await way.link('Add a product')
  await way.form(async () => {
    await page.getByLabel('OpenAPI document', { exact: true }).last().fill(DOCUMENT)
    await press('Import')
    await see('The document names http://127.0.0.1:9, which is not a public address.')
    await fill({ 'Price per call (credits)': '0.5' })
    await press('Add 1 operation')
    await until(() => page.getByLabel('Id', { exact: true }).inputValue(), 'street-maps')
    await fill({ 'Address of the API': 'https://maps.example.com' })
  }, 'Preview the change')
  await apply(way)
  await page.getByRole('heading', { name: 'Street maps' }).waitFor()
})

task('operator', '17 a tool server', async (way) => {
  await way.go('Vendors', 'Tools')
  await way.button('Register a server')
  await way.form(() => fill({ Name: 'weather', Address: tools.url }), 'Register')
  await row(/forecast/).waitFor()
})

task('operator', '17 the price of its tool', async (way) => {
  await way.go('Vendors', 'Tools')
  await way.link('weather')
  await way.press(row(/forecast/).getByRole('button', { name: 'Choose' }))
  await way.form(() => fill({ 'Credits a call': '0.5' }), 'Save')
  await row(/forecast.*Listed/).waitFor()
})

task('operator', '11 a vendor by preset', async (way) => {
  await way.go('Vendors')
  await way.link('Add vendor')
  await way.form(async () => {
    await page.getByRole('radio', { name: 'Groq', exact: true }).check()
    await fill({ 'Base address': `${home.sandbox.url}/alpha/v1`, Key: 'gsk-0123456789' })
    await press('Test the vendor')
    await page.getByRole('table', { name: 'Models to offer' }).waitFor()
    const model = page.getByRole('table', { name: 'Models to offer' }).getByRole('checkbox').first()
    await model.check()
    await fill({ Markup: '1.2' })
  }, 'Preview the change')
  await apply(way)
  await see('Groq is connected')
})

task('operator', '24 all statements of a month', async (way) => {
  await way.go('Finance', 'Statements')
  assert.match(await download(way.button('All as PDF (ZIP)')), /^statements-.*\.zip$/)
})

task('operator', '25 the margin by customer', async (way) => {
  await way.go('Finance')
  await way.press(page.getByText('Customer', { exact: true }))
  await page.getByText('Customer', { exact: true }).first().waitFor()
})

task('account', '26 usage as a file', async (way) => {
  await way.go('Usage')
  assert.match(await download(way.button('Export calls')), /^calls-Harbor-Books-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/)
})

task('operator', '27 suspend an account', async (way) => {
  await way.go('Accounts')
  await way.link('Quill Works')
  await way.button('Suspend')
  await way.form(() => fill({ Reason: 'Invoice 18 is overdue' }), 'Suspend')
  await see('“Quill Works” is suspended.')
})

task('operator', '27 close it', async (way) => {
  await way.go('Accounts')
  await way.link('Quill Works')
  await way.button('Close account')
  await way.form(async () => {
    await fill({ Reason: 'Contract ended' })
    await page.getByLabel(/^Balance of/).selectOption('payout')
  }, 'Close account')
  await see('“Quill Works” is closed.')
})

task('account', '28 an alert by webhook', async (way) => {
  await way.go('Alerts', 'Alert rules')
  await way.form(() => fill({ Address: tools.url }), 'Add')
  await page.getByRole('button', { name: `Remove ${tools.url}` }).waitFor()
})

for (const [group, tab, texts, send] of [
  ['Chat', undefined, { Message: 'Hello!' }, 'Send'],
  ['Image and video', undefined, { Prompt: 'A lighthouse' }, 'Generate image'],
  ['Image and video', 'Video', { Prompt: 'A lighthouse' }, 'Generate video'],
  ['Compare', undefined, { Question: 'What is a hold?' }, /^Ask (all|both)/],
  ['Audio', undefined, { Text: 'Good morning' }, 'Speak'],
] as const)
  task('account', `29 the playground: ${tab ?? group}`, async (way) => {
    await way.go('Playground')
    const of = page.getByRole('main')
    if (group !== 'Chat') await way.press(of.getByRole('link', { name: group, exact: true }))
    if (tab) await way.press(of.getByRole('link', { name: tab, exact: true }))
    await way.form(() => fill(texts), send)
    const done = page.getByRole('link', { name: 'Cost breakdown' })
    await done.or(page.locator('video')).first().waitFor()
  })

task('account', '30 a batch', async (way) => {
  await way.go('Jobs', 'Batches')
  await way.button('New batch')
  const line = { custom_id: 'one', method: 'POST', url: '/v1/chat/completions', body: chat('alpha-5.4') }
  const file = { name: 'lines.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(JSON.stringify(line)) }
  await way.form(async () => {
    await page.locator('input[type=file]').setInputFiles(file)
    await press('Upload and check')
    await see(/at most [\d.]+ credits/)
  }, 'Start 1 request')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

task('account', '31 a passkey', async (way) => {
  await addPasskeyDevice(operator)
  await way.link(/op@example\.com|Profile/)
  await way.button('Add a passkey')
  await way.form(() => fill({ Name: 'Laptop' }), 'Continue')
  await way.button('I have saved them')
  await see('10 recovery codes left.')
})

task('account', '32 a token with the rights of a role, by a preset', async (way) => {
  await way.go('Members', 'Tokens')
  await way.button('New token')
  await way.form(async () => {
    await fill({ Name: 'reports' })
    await press('Read only')
  }, 'Create token')
  await press(/^(Done|I have)/)
  await row(/reports/).waitFor()
})

task('account', '33 find a page by a word', async (way) => {
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /^Find/ }).fill('p95')
  await way.press(page.getByRole('option'))
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

task('account', '34 on a phone, the last call', async (way) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await way.button('Menu')
  await way.press(page.getByRole('dialog').getByRole('link', { name: 'Usage', exact: true }))
  await way.press(page.getByRole('table', { name: 'Calls' }).getByRole('link'))
  await page.waitForURL((url) => /\/usage\/req_/.test(url.pathname))
  await page.setViewportSize({ width: 1280, height: 800 })
})

test('the 34 tasks were counted', (t) => {
  assert.equal(new Set(counts.map((line) => Number.parseInt(line, 10))).size, 34)
  t.diagnostic(counts.join('\n'))
})
