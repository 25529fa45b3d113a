// From nothing to paid in one sitting: sign up, confirm by the mail that arrived, pay, see the credits, make a call, read the statement, get the
// invoice; by Stripe, and by a provider that only sends signed webhooks.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { InvoiceView } from '../../src/invoices/views.ts'
import type { Page as Rows } from '../../src/kernel/view.ts'
import type { SalesView } from '../../src/sales/views.ts'
import { type MailServer, startMailServer } from '../mail-server.ts'
import { STRIPE_KEY, STRIPE_SECRET, type StripeServer, startStripe } from '../stripe-server.ts'
import { until } from '../until.ts'
import { PASSWORD, startConsole, type TestConsole, type Visitor } from './console.ts'

const WEBHOOK_KEY = Buffer.alloc(32, 7)
const SECRETS = {
  stripe: STRIPE_KEY,
  'stripe-webhook': STRIPE_SECRET,
  'payment-webhook': `whsec_${WEBHOOK_KEY.toString('base64')}`,
}
const ADDRESS = { street: 'Hafenstr. 1', postcode: '20457', city: 'Hamburg', country: 'DE' }

let home: TestConsole
let post: MailServer
let stripe: StripeServer

before(async () => {
  post = await startMailServer()
  stripe = await startStripe()
  home = await startConsole({
    env: {
      TOLLGATE_SMTP_URL: post.url,
      TOLLGATE_MAIL_FROM: 'hello@gateway.example',
      TOLLGATE_STRIPE_URL: stripe.url,
    },
    catalog(document) {
      const packs = [{ id: 'starter', name: 'Starter', price: '20.00', credits: '2200' }]
      document.sales = { currency: 'EUR', pricePerCredit: '0.01', minimum: '5.00', maximum: '1000.00', packs }
    },
  })
  stripe.webhook = { url: `${home.url}/webhooks/stripe`, secret: STRIPE_SECRET }
  await set('PUT', '/sign-up', { mode: 'open' })
  const issuer = { name: 'Acme GmbH', ...ADDRESS, vatId: 'DE136695976', taxRate: '19' }
  await set('PATCH', '/invoice-settings', { issuer })
})
after(async () => {
  await home?.close()
  await stripe?.close()
  await post?.close()
})

async function set(method: string, path: string, body: object) {
  const { status, data } = await home.operator(method, path, body)
  assert.equal(status, 200, `${path}: ${JSON.stringify(data)}`)
}

/** A request that the person's own page makes, with its cookie. */
async function ask<T>({ page }: Visitor, method: string, path: string, body?: object): Promise<T> {
  const answer = await page.evaluate(
    async (asked) => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`/console/api${asked.path}`, { method: asked.method, headers, body: asked.body })
      return { status: response.status, text: await response.text() }
    },
    { method, path, body: body ? JSON.stringify(body) : null },
  )
  assert.equal(answer.status, 200, `${path}: ${answer.text}`)
  return JSON.parse(answer.text).data
}

/** From the login page to an account of one's own; answers its id. */
async function signUp(visitor: Visitor, email: string): Promise<string> {
  const { page } = visitor
  await visitor.go('/login')
  await page.getByRole('link', { name: 'Sign up' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByRole('button', { name: 'Send me a link' }).click()
  const mail = await post.newest(email)
  await page.goto(/https?:\S+#token=\S+/.exec(mail.text)![0])
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Create the account' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const [, account = ''] = /\/a\/([^/]+)/.exec(new URL(page.url()).pathname)!
  const details = { name: 'Ada Lovelace', company: 'Ada & Co', email, ...ADDRESS }
  await ask(visitor, 'PUT', `/accounts/${account}/billing-details`, details)
  return account
}

/** Sees the credits, makes a call, reads the statement, gets the invoice. */
async function spend(visitor: Visitor, account: string): Promise<void> {
  const { page } = visitor
  await visitor.go(`/a/${account}`)
  await page.getByText('2,200').first().waitFor()
  await visitor.go(`/a/${account}/playground/chat`)
  await page.getByLabel('Message', { exact: true }).fill('Hello!')
  await page.getByRole('button', { name: 'Send' }).first().click()
  await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
  await visitor.go(`/a/${account}/statement/movements`)
  await page
    .getByRole('cell', { name: /purchase/i })
    .first()
    .waitFor()
  const invoices = await ask<Rows<InvoiceView>>(visitor, 'GET', `/accounts/${account}/invoices`)
  assert.equal(invoices.items.length, 1)
  assert.deepEqual([invoices.items[0]?.gross, invoices.items[0]?.currency], ['20.00', 'EUR'])
}

test('by Stripe: sign up, confirm, pay, see the credits, call, read the statement, get the invoice', async (t) => {
  await set('PATCH', '/payment-settings', { provider: 'stripe', secrets: SECRETS })
  const visitor = await home.visitor()
  t.after(() => visitor.close())
  const account = await signUp(visitor, 'ada@example.com')
  const { url } = await ask<{ url: string }>(visitor, 'POST', `/accounts/${account}/purchases`, { pack: 'starter' })
  await visitor.page.goto(url)
  await visitor.page.getByRole('button', { name: 'Pay 2000 eur' }).click()
  await visitor.page.waitForURL((url) => url.pathname === `/console/a/${account}/buy`)
  await spend(visitor, account)
  // Nobody else sees any of it.
  const other = await home.visitor()
  t.after(() => other.close())
  const second = await signUp(other, 'eve@example.com')
  const list = await ask<Rows<unknown>>(other, 'GET', `/accounts/${second}/invoices`)
  assert.deepEqual(list.items, [])
})

test('by a provider with signed webhooks: the same', async (t) => {
  const checkoutUrl = 'https://pay.example/?p={payment}&a={amount}&c={currency}&r={return}'
  await set('PATCH', '/payment-settings', { provider: 'webhook', secrets: SECRETS, checkoutUrl })
  const visitor = await home.visitor()
  t.after(() => visitor.close())
  const account = await signUp(visitor, 'bob@example.com')
  const bought = await ask<{ payment: string }>(visitor, 'POST', `/accounts/${account}/purchases`, { pack: 'starter' })
  const data = { id: 'pay_1', payment: bought.payment, status: 'paid', amount: '20.00', currency: 'EUR' }
  const body = JSON.stringify({ type: 'payment.updated', timestamp: new Date().toISOString(), data })
  const seconds = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', WEBHOOK_KEY).update(`evt_1.${seconds}.${body}`).digest('base64')
  const headers = {
    ...{ 'webhook-id': 'evt_1', 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` },
  }
  const told = await fetch(`${home.url}/webhooks/payments`, { method: 'POST', headers, body })
  assert.equal(told.status, 200, await told.text())
  await spend(visitor, account)
})

test('automatic top-up charges the saved card and stops at its ceiling', async (t) => {
  await set('PATCH', '/payment-settings', { provider: 'stripe', secrets: SECRETS })
  const visitor = await home.visitor()
  t.after(() => visitor.close())
  const account = await signUp(visitor, 'top@example.com')
  const { url } = await ask<{ url: string }>(visitor, 'POST', `/accounts/${account}/card`)
  await visitor.page.goto(url)
  await visitor.page.getByRole('button', { name: 'Save card' }).click()
  await visitor.go(`/a/${account}`)
  const input = { below: '1000000', amount: '10.00', ceiling: '20.00' }
  await ask(visitor, 'PUT', `/accounts/${account}/top-up`, input)
  await until(async () => {
    await home.gateway.sales.topUps.look()
    const sales = await ask<SalesView>(visitor, 'GET', `/accounts/${account}/sales`)
    return sales.topUp?.used === '20.00'
  })
  // What is charged counts as used before it is granted.
  await until(async () => (await home.balance(account)).posted >= 2_000_000_000n)
  await home.gateway.sales.topUps.look()
  assert.equal((await home.balance(account)).posted, 2_000_000_000n)
  await visitor.go(`/a/${account}`)
  await visitor.page.getByText('2,000').first().waitFor()
})

test('nothing broke the content policy or raised an error', () => {
  const others = home.mishaps.filter((text) => !text.startsWith(`request: ${stripe.url}`))
  assert.deepEqual(others, [])
})
