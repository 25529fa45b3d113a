// Sentences of the console that somebody acts on: what they say has to be what is.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startConsole, type TestConsole, type Visitor } from './console.ts'

const BY = { actor: 'test', ip: null, requestId: null }

let home: TestConsole
let operator: Visitor

before(async () => {
  home = await startConsole()
  operator = await home.visitor()
  await home.setUp(operator, 'op@example.com')
})

after(() => home?.close())

const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 })

test('more credits than are available are not taken back: the dialog says how many there are, and asks for those', async () => {
  const { page } = operator
  const id = await home.gateway.accounts.create({ name: 'Juniper Clinic', credits: 380_000_000n }, BY)
  await operator.go(`/operator/accounts/${id}`)
  await page.getByRole('button', { name: 'Credits', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Amount').fill('-100000')
  await dialog.getByLabel('Note').fill('closing')
  await dialog.getByText('Only 380 credits are available.').waitFor()
  assert.equal(await dialog.getByText('Balance afterwards').count(), 0)
  assert.equal(await dialog.getByRole('button', { name: 'Take back', exact: true }).isDisabled(), true)
  await dialog.getByRole('button', { name: 'Take back 380, all that is available' }).click()
  await dialog.getByText('Balance afterwards: 0 credits.').waitFor()
  // Somebody else takes some of it while the dialog is open.
  await home.gateway.accounts.credit(id, { amount: -30_000_000n, note: 'meanwhile' }, BY)
  await dialog.getByRole('button', { name: 'Take back', exact: true }).click()
  await dialog.getByText('Only 350 credits are available, so 380 cannot be taken back. Nothing was taken.').waitFor()
  await dialog.getByRole('button', { name: 'Take back 350, all that is available' }).click()
  await dialog.getByRole('button', { name: 'Take back', exact: true }).click()
  await page.getByText('The balance is now 0 credits.').waitFor()
})

test('the page of a call with an unknown model says which one was asked for, and which one was probably meant', async () => {
  const { page } = operator
  const { id, key } = await home.account()
  const answer = await home.call('/v1/chat/completions', key, chat('beta-haiku-45<b>'))
  assert.equal(answer.status, 404)
  const request = answer.headers.get('x-request-id') ?? ''
  await home.gateway.refusals.flush()
  await operator.go(`/a/${id}/usage/${request}`)
  await page
    .getByText('The model "beta-haiku-45<b>" does not exist or is not enabled. Did you mean "beta-haiku-4-5"?')
    .waitFor()
})

test('the page of a call that went well names its vendor', async () => {
  const { page } = operator
  const { id, key } = await home.account()
  const answer = await home.call('/v1/chat/completions', key, chat('beta-haiku-4-5'))
  await answer.text()
  await home.settled()
  await operator.go(`/a/${id}/usage/${answer.headers.get('x-request-id')}`)
  await page.getByRole('definition').getByRole('link', { name: 'beta', exact: true }).waitFor()
  assert.equal(await page.getByText('number 1 of the model').count(), 0)
})

test('an operator’s bell shows the unread alert of the account on screen, and leaves it unread for its owner', async () => {
  const { page } = operator
  const { id } = await home.account()
  await home.gateway.alerts.test(id)
  await operator.go(`/a/${id}`)
  await page.getByRole('button', { name: 'Alerts, 1 unread' }).click()
  await page.getByRole('region', { name: 'The account on screen' }).getByText('A test').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  assert.equal((await home.gateway.alerts.list(id, { limit: 1 })).unread, 1)
})
