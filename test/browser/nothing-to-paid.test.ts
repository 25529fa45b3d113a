// From nothing to paid in one sitting, on the pages that people use: sign up, confirm by the mail that arrived, pay,
// see the credits, make a call, read the statement, get the invoice; by Stripe, and by a payment provider that only
// sends signed webhooks.
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { sales } from '../../src/extensions/sales/extension.ts'
import { assert, before, FULL, started, test, until } from '../kit.ts'
import { startMailServer } from '../mail-server.ts'
import { STRIPE_KEY, STRIPE_SECRET, startStripe } from '../stripe-server.ts'
import { PASSWORD, startConsole, type Visitor } from './console.ts'
import { EXACT, enter, FIRST, goTo, inDialog, press, see, seeRow, select, sight, steps, tick } from './steps.ts'

const WEBHOOK_KEY = Buffer.alloc(32, 7)
/** Where the other provider's customers pay: answered in the browser. */
const PAY = 'https://pay.example'
const ADDRESS = { street: 'Hafenstr. 1', postcode: '20457', city: 'Hamburg', country: 'DE' }

let operator: Visitor
let ada: { visitor: Visitor; account: string }
/** What the operator made, to be redeemed. */
let code = ''

const post = started(startMailServer)
const stripe = started(startStripe)
const home = started(() =>
  startConsole({
    env: { TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'hello@gateway.example', TOLLGATE_STRIPE_URL: stripe.url },
    catalog(document) {
      const packs = [{ id: 'starter', name: 'Starter', price: '20.00', credits: '2200' }]
      const plans = [
        { id: 'free', name: 'Free', price: '0', credits: '100' },
        { id: 'pro', name: 'Pro', price: '9.00', credits: '1000' },
      ]
      document.sales = { currency: 'EUR', pricePerCredit: '0.01', minimum: '5.00', maximum: '1000.00', packs, plans }
    },
    mayHappen: (text) => text.startsWith(`request: ${stripe.url}`) || text.startsWith(`request: ${PAY}`),
  }),
)
before(async () => {
  stripe.webhook = { url: `${home.url}/webhooks/stripe`, secret: STRIPE_SECRET }
  await set('PUT', '/sign-up', { mode: 'open' })
  const issuer = { name: 'Acme GmbH', ...ADDRESS, vatId: 'DE136695976', taxRate: '19' }
  await set('PATCH', '/invoice-settings', { issuer })
})

async function set(method: string, path: string, body: object) {
  const { status, data } = await home.operator(method, path, body)
  assert.equal(status, 200, `${path}: ${JSON.stringify(data)}`)
}

/** From the login page to an account of one's own, with an address for invoices. */
async function signUp(email: string): Promise<{ visitor: Visitor; account: string }> {
  const visitor = await home.visitor({ acceptDownloads: true })
  const { page } = visitor
  await visitor.go('/login')
  await steps(page, goTo('Sign up'), enter('Email', email), press('Send me a link'))
  const mail = await post.newest(email)
  await page.goto(/https?:\S+#token=\S+/.exec(mail.text)![0])
  await steps(page, enter('Password', PASSWORD), press('Create the account'), sight('heading', 'Overview'))
  const [, account = ''] = /\/a\/([^/]+)/.exec(new URL(page.url()).pathname)!
  // Without an address nothing can be bought, and the page says what is missing.
  await page.getByRole('link', { name: 'Billing' }).first().click()
  await page.getByRole('navigation', { name: 'Billing' }).getByRole('link', { name: 'Buy credits' }).click()
  const buy = page.getByRole('button', { name: 'Buy Starter' })
  await buy.waitFor()
  assert.equal(await buy.isDisabled(), true)
  await page.getByRole('link', { name: 'Fill in the billing details' }).click()
  for (const [label, text] of [
    ['Company', 'Ada & Co'],
    ['Street and number', ADDRESS.street],
    ['Postcode', ADDRESS.postcode],
    ['City', ADDRESS.city],
  ] as const)
    await page.getByLabel(label).fill(text)
  await steps(page, select('Country', ADDRESS.country), press('Save'), see('The billing details were saved.'))
  await page.getByRole('navigation', { name: 'Billing' }).getByRole('link', { name: 'Buy credits' }).click()
  return { visitor, account }
}

/** Sees the credits, makes a call, reads the statement, gets the invoice. */
async function spend({ visitor, account }: { visitor: Visitor; account: string }): Promise<void> {
  const { page } = visitor
  await page.getByText('2,200 credits were added.').waitFor()
  const payment = page.getByRole('row', { name: /20\.00 EUR/ })
  await steps(payment, see('Paid'), sight('link', 'Invoices'))
  await steps(page, goTo('Show the balance'), see('2,200 credits.'))
  await visitor.follow(`/a/${account}/playground/chat`)
  await steps(page, enter('Message', 'Hello!', EXACT), press('Send', FIRST), sight('link', 'Cost breakdown'))
  await visitor.follow(`/a/${account}/statement`)
  await page
    .getByRole('table', { name: 'Top-ups and corrections' })
    .getByRole('row', { name: /Purchase.*2,200\.000000/ })
    .waitFor()
  await page.getByRole('table', { name: 'Usage by model and key' }).getByRole('row').nth(1).waitFor()
  await page.getByRole('navigation', { name: 'Billing' }).getByRole('link', { name: 'Invoices' }).click()
  const invoice = page.getByRole('row', { name: /20\.00 EUR/ })
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    invoice.getByRole('button', { name: 'PDF' }).click(),
  ])
  assert.match(download.suggestedFilename(), /^INV-\d{4}-\d{6}\.pdf$/)
  assert.equal((await readFile(await download.path())).subarray(0, 5).toString(), '%PDF-')
  // Each account sees its own invoice, and nobody else's.
  assert.equal(await page.getByRole('table', { name: 'Invoices' }).getByRole('row').count(), 2)
}

test('an operator sees what is missing, sets up payments and makes codes', async () => {
  operator = await home.visitor()
  const { page } = operator
  await home.setUp(operator, 'op@example.com')
  await operator.go('/operator/payments/settings')
  await steps(page, see('Before something can be bought'), tick('Stripe'), see(`${home.url}/webhooks/stripe`))
  await steps(page, enter('Secret key', STRIPE_KEY), enter('Signing secret of the webhook', STRIPE_SECRET))
  await page.getByRole('button', { name: 'Save' }).click()
  // It is known, and never shown again.
  await page.getByText('A secret key of Stripe test').waitFor()
  assert.equal(await page.locator('input[name=stripe]').inputValue(), '')
  await operator.follow('/operator/plans')
  await steps(page, seeRow(/Free.*100/), press('New codes'))
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Name', 'Trade fair'), enter('Credits of each code', '50'))
  await steps(dialog, enter('Days the credits last', '30'), press('Create codes'))
  code = (await dialog.getByRole('region', { name: 'Trade fair' }).textContent()) ?? ''
  assert.match(code, /^(?:[A-Z0-9]{4}-){3}[A-Z0-9]{4}$/)
  await dialog.getByRole('button', { name: 'I have stored them' }).click()
  await page.getByRole('row', { name: /Trade fair.*0 of 1/ }).waitFor()
})

test('by Stripe: sign up, confirm, pay, see the credits, call, read the statement, get the invoice', async () => {
  ada = await signUp('ada@example.com')
  const { page } = ada.visitor
  await steps(page, press('Buy Starter'), press('Pay 2000 eur'))
  await spend(ada)
})

// A quarter of the file's time: `npm run test:long` runs it.
if (FULL)
  test('by a payment provider with signed webhooks: the same', async (t) => {
    const { page: settings } = operator
    await operator.follow('/operator/payments/settings')
    await settings.getByLabel('Another payment provider').check()
    await settings.getByLabel('Secret of its webhooks').fill(`whsec_${WEBHOOK_KEY.toString('base64')}`)
    const url = `${PAY}/?p={payment}&a={amount}&c={currency}&r={return}`
    await steps(settings, enter('Payment page', url), press('Save'), see('The address of the payment provider’s page'))

    const bob = await signUp('bob@example.com')
    t.after(() => bob.visitor.close())
    const { page } = bob.visitor
    await page.route(`${PAY}/**`, (route) => route.fulfill({ contentType: 'text/html', body: '<h1>Pay here</h1>' }))
    await page.getByRole('button', { name: 'Buy Starter' }).click()
    await payElsewhere(page, '20.00')
    await spend(bob)
    // A month of a plan is paid in the same way where no card can be saved.
    await page.getByRole('navigation', { name: 'Billing' }).getByRole('link', { name: 'Balance & plan' }).click()
    await steps(page, press('Choose Pro'), inDialog(press('Go to payment')))
    await payElsewhere(page, '9.00')
    await steps(page, see('1,000 credits were added.'), see('Renews'))
  })

/** On the other provider's page, until one is back. */
async function payElsewhere(page: Visitor['page'], price: string): Promise<void> {
  await page.waitForURL(`${PAY}/**`)
  const asked = new URL(page.url()).searchParams
  assert.deepEqual([asked.get('a'), asked.get('c')], [price, 'EUR'])
  await tellPaid(asked.get('p') ?? '', price)
  await page.goto(asked.get('r') ?? '')
}

/** What the provider sends when the money is there. */
async function tellPaid(payment: string, amount: string): Promise<void> {
  const data = { id: `their-${payment}`, payment, status: 'paid', amount, currency: 'EUR' }
  const event = `evt_${payment}`
  const body = JSON.stringify({ type: 'payment.updated', timestamp: new Date().toISOString(), data })
  const seconds = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', WEBHOOK_KEY).update(`${event}.${seconds}.${body}`).digest('base64')
  const headers = { 'webhook-id': event, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` }
  const told = await fetch(`${home.url}/webhooks/payments`, { method: 'POST', headers, body })
  assert.equal(told.status, 200, await told.text())
}

test('a customer redeems a code, chooses a plan and cancels it', async () => {
  const { visitor, account } = ada
  const { page } = visitor
  await visitor.go(`/a/${account}/billing`)
  await page.getByRole('button', { name: 'Redeem a code' }).click()
  await page.getByRole('textbox', { name: 'Code' }).fill('AAAA-BBBB-CCCC-DDDD')
  await steps(page, press('Redeem', EXACT), see('this code is not valid'))
  await page.getByRole('textbox', { name: 'Code' }).fill(code.toLowerCase())
  await steps(page, press('Redeem', EXACT), see(/credits, of which 50 end on /), press('Choose Free'))
  await page.getByRole('dialog').getByRole('button', { name: 'Choose' }).click()
  const lots = page.getByRole('table', { name: 'Lots' })
  await lots.getByRole('row', { name: /^Plan 100\.00/ }).waitFor()
  await steps(page, see('Renews'), press('Cancel the plan'), inDialog(press('Cancel the plan')))
  await page.getByRole('button', { name: 'Keep Free' }).waitFor()
})

test('a saved card pays for a dearer plan at once, and tops up until the ceiling', async () => {
  await set('PATCH', '/payment-settings', { provider: 'stripe' })
  const { visitor, account } = ada
  const { page } = visitor
  await visitor.go(`/a/${account}/billing`)
  await steps(page, press('Save a card'), press('Save card'), press('Change to Pro'), inDialog(press('Pay 9.00 EUR')))
  await page
    .getByRole('table', { name: 'Lots' })
    .getByRole('row', { name: /^Plan 1,000\.00/ })
    .waitFor()
  const { posted } = await home.balance(account)
  await steps(page, enter('When fewer credits are left than', '1000000'), enter('Charge (EUR)', '10.00'))
  await steps(page, enter('At most in a month (EUR)', '20.00'), press('Turn on automatic top-up'))
  await page.getByRole('button', { name: 'Turn off' }).waitFor()
  // What is charged counts as used before it is granted.
  await until(async () => {
    await home.gateway.opened(sales).sales.topUps.look()
    return (await home.balance(account)).posted >= posted + 2_000_000_000n
  })
  await home.gateway.opened(sales).sales.topUps.look()
  assert.equal((await home.balance(account)).posted, posted + 2_000_000_000n)
  await visitor.go(`/a/${account}/billing`)
  await page.getByText('20.00 of at most 20.00 EUR this month').waitFor()
})

/** What writes; what only reads, such as a PDF or the calendar of a filter, may stay. */
const WRITES =
  /^(?:Save|Buy|Pay|Choose(?! a day$)|Change|Keep|Cancel|Redeem|Replace|Receipts|Turn|New|End|Reconcile|Upload|Remove|Invite|Withdraw|Actions)/

test('whoever may only read is shown what is set, and no button that would be refused', async (t) => {
  const { data } = await home.operator<{ link: string }>('POST', '/operator-invites', {
    email: 'auditor@example.com',
    role: 'auditor',
  })
  const auditor = await home.visitor()
  t.after(() => auditor.close())
  const { page } = auditor
  await page.goto(data.link)
  await steps(page, enter('Password', PASSWORD), press('Accept and sign in'))
  await page.locator('.nav-link').first().waitFor()
  for (const [path, text] of [
    ['/operator/payments/settings', 'How customers pay'],
    ['/operator/plans', 'Trade fair'],
    ['/operator/payments', 'Pack starter'],
    ['/operator/finance/invoices', 'Issuer'],
    ['/operator/sign-up', 'Sign-up rate limits'],
    ['/operator/branding', 'Name and colors'],
    [`/a/${ada.account}/billing`, 'Saved card and automatic top-up'],
    [`/a/${ada.account}/buy`, 'Owners of the account'],
    [`/a/${ada.account}/invoices`, 'Billing details'],
  ] as const) {
    await auditor.follow(path)
    await page.getByText(text).first().waitFor()
    const main = page.getByRole('main')
    const buttons = main.getByRole('button', { name: WRITES }).or(main.locator('a.button', { hasText: WRITES }))
    assert.deepEqual(await buttons.allTextContents(), [], path)
    assert.equal(await main.locator('form input:enabled, form textarea:enabled').count(), 0, path)
  }
})
