// Whatever speaks for an account, or tells of it, reaches the ledger in which the account lies: programs, directories,
// payment providers, client secrets and session tokens.

import { deviceProgram } from '../../../test/device-program.ts'
import { type Customer, type Installation, startInstallation } from '../../../test/installation.ts'
import { after, assert, before, started, test, until } from '../../../test/kit.ts'
import { joined, PASSWORD } from '../../../test/operator-server.ts'
import { PAYMENT_SECRETS, tell } from '../../../test/seller.ts'
import { openSocket } from '../../../test/socket-client.ts'
import { type StripeEvent, sendStripe, startStripe } from '../../../test/stripe-server.ts'
import type { NewToken } from '../../identity/views.ts'
import type { AccountView } from '../../ledger/views.ts'

const stripe = started(startStripe)
let all: Installation
let customer: Customer

before(async () => {
  all = await startInstallation(['east'], { TOLLGATE_STRIPE_URL: stripe.url })
  customer = await all.customer()
  assert.equal(customer.home, 'east')
})
after(() => all.close())

const calls = async () => {
  const text = 'select count(*)::int as count from public.usage where account_id = $1'
  const [row] = await all.databaseOf('east').query<{ count: number }>({ text }, [customer.id])
  return row?.count ?? 0
}
const isGone = (key: string) => until(async () => ((await all.chat(key)).status === 401 ? true : undefined))
const jsonOf = async <T>(answering: Promise<Response>): Promise<T> => {
  const answer = await answering
  const text = await answer.text()
  assert.equal(answer.ok, true, text)
  return JSON.parse(text)
}

test('a program that a person has allowed calls for the account, renews its token, and ends with its connection', async () => {
  const person = await joined(
    all,
    `/accounts/${customer.id}/invites`,
    { email: 'p@reach.example', role: 'admin' },
    PASSWORD,
  )
  const program = await deviceProgram(all.url, 'Agent')
  const code = await program.begin()
  const terms = { code: code.user_code, account: customer.id, models: null, limits: {} }
  const allowed = await person('POST', '/device/allow', terms)
  assert.equal(allowed.status, 200, allowed.text)
  const { body } = await program.poll(code)
  const before = await calls()
  assert.equal((await all.chat(body.access_token)).status, 200)
  await until(calls, before + 1)
  const renewed = await program.refresh(body.refresh_token)
  assert.equal((await all.chat(renewed.body.access_token)).status, 200)
  const { data } = await person<{ items: Array<{ id: string; client: string | null }> }>(
    'GET',
    `/accounts/${customer.id}/keys`,
  )
  const key = data.items.find(({ client }) => client !== null)
  assert.ok(key, 'the program is among the keys of the account')
  assert.equal((await person('DELETE', `/keys/${key.id}`)).status, 200)
  await isGone(renewed.body.access_token)
})

test('a person whom a directory deactivates is gone in the ledger, and let in again', async () => {
  await all
    .databaseOf('control')
    .query({ text: 'insert into account_domain (account_id, domain) values ($1, $2)' }, [customer.id, 'scim.example'])
  const path = `/accounts/${customer.id}/tokens`
  const { token } = await all.ask<NewToken>(path, { name: 'directory', scopes: ['scim'] })
  const scim = (method: string, path: string, body: unknown) =>
    jsonOf<{ id: string; active: boolean }>(all.call(`/scim/v2${path}`, token, body, method))
  const { id } = await scim('POST', '/Users', { userName: 'q@scim.example' })
  const { key } = await all.ask<{ key: string }>(`/accounts/${customer.id}/keys`, { name: 'theirs', memberId: id })
  assert.equal((await all.chat(key)).status, 200)
  const active = (value: boolean) => ({ Operations: [{ op: 'replace', path: 'active', value }] })
  assert.equal((await scim('PATCH', `/Users/${id}`, active(false))).active, false)
  await isGone(key)
  assert.equal((await scim('PATCH', `/Users/${id}`, active(true))).active, true)
  const { items } = await all.ask<{ items: Array<{ userId: string }> }>(`/accounts/${customer.id}/members`)
  assert.ok(items.some(({ userId }) => userId === id))
})

test('what payment providers report of an account is booked in its ledger, once', async () => {
  const document = await all.ask<{ document: object }>('/catalog')
  const sales = {
    currency: 'EUR',
    pricePerCredit: '0.01',
    minimum: '5.00',
    maximum: '1000.00',
    packs: [{ id: 'starter', name: 'Starter', price: '20.00', credits: '2200' }],
  }
  await all.ask('/catalog', { document: { ...document.document, sales } }, 'PUT')
  await all.ask('/payment-settings', { provider: 'stripe', secrets: PAYMENT_SECRETS }, 'PATCH')
  const balance = async () => Number((await all.ask<AccountView>(`/accounts/${customer.id}`)).balance)
  const before = await balance()
  const buy = () => until(() => bought().catch(() => undefined))
  const bought = () =>
    all.ask<{ payment: string; url: string }>(`/accounts/${customer.id}/purchases`, { pack: 'starter' })
  const { url } = await buy()
  const intent = stripe.pay(url.split('/').at(-1) ?? '')
  const send = (event: StripeEvent) => sendStripe(`${all.url}/webhooks/stripe`, event)
  for (let times = 0; times < 3; times++)
    assert.equal(await send(stripe.event('payment_intent.succeeded', intent)), 200)
  await until(balance, before + 2_200)
  await all.ask(
    '/payment-settings',
    { provider: 'webhook', checkoutUrl: 'https://pay.example/?p={payment}&a={amount}&c={currency}&r={return}' },
    'PATCH',
  )
  const { payment } = await until(async () => {
    const order = await buy()
    return order.url.startsWith('https://pay.example/') ? order : undefined
  })
  const data = { id: 'prov_1', payment, status: 'paid', amount: '20.00', currency: 'EUR' }
  for (let times = 0; times < 2; times++) {
    const told = await tell(all, data)
    assert.equal(told.status, 200, told.text)
  }
  await until(balance, before + 4_400)
})

test('a client secret of a key opens a conversation of the account', async () => {
  const session = { type: 'realtime', model: 'alpha-realtime-1' }
  const { value } = await jsonOf<{ value: string }>(all.call('/v1/realtime/client_secrets', customer.key, { session }))
  const socket = await openSocket(`${all.url}/v1/realtime`, {
    protocols: ['realtime', `openai-insecure-api-key.${value}`],
  })
  await socket.next('session.created')
  await all.ask(`/accounts/${customer.id}/suspend`, { reason: 'unpaid' })
  assert.equal((await socket.closed()).code, 1008)
  await all.ask(`/accounts/${customer.id}/reopen`, undefined, 'POST')
})

test('a session token of a purse pays from the purse in the ledger, and ends with it', async () => {
  await until(async () => ((await all.chat(customer.key)).status === 200 ? true : undefined))
  await jsonOf(all.call('/v1/purses', customer.key, { id: 'ann', credits: '2' }))
  const { data } = await jsonOf<{ data: { token: string } }>(all.call('/v1/purses/ann/sessions', customer.key, {}))
  const response = await all.chat(data.token)
  assert.equal(response.status, 200, await response.text())
  const left = async () =>
    Number((await jsonOf<{ data: { balance: string } }>(all.call('/v1/purses/ann', customer.key))).data.balance)
  await until(async () => ((await left()) < 2 ? true : undefined))
  await jsonOf(all.call('/v1/purses/ann', customer.key, { status: 'frozen' }, 'PATCH'))
  assert.equal((await all.chat(data.token)).status, 403)
})

test('nothing of it lies in the control database', async () => {
  const found = await all.databaseOf('control').query({
    text: `select 'usage' as what from public.usage union all select 'key' from public.api_key
      union all select 'payment' from public.payment union all select 'purse' from public.purse`,
  })
  assert.deepEqual(found, [])
})
