// What an operator does with vendors, and an owner with keys: each task by its clicks.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startConsole, type TestConsole, type Visitor } from './console.ts'

const BY = { actor: 'test', ip: null, requestId: null }

let home: TestConsole
let operator: Visitor
let account = ''

before(async () => {
  home = await startConsole()
  account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
  operator = await home.visitor()
  await home.setUp(operator, 'op@example.com')
})

after(() => home?.close())

const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 })

test('a key for two models and one endpoint is made in one form, and rotated with another expiry in the same form', async () => {
  const { page } = operator
  await operator.go(`/a/${account}/keys`)
  await page.getByRole('button', { name: 'Create key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('shop')
  await dialog.getByLabel('Expires').selectOption('30')
  await dialog.getByText('Restrictions and limits').click()
  await dialog.getByLabel('All models and data endpoints').uncheck()
  assert.equal(await dialog.getByRole('button', { name: 'Create key' }).isDisabled(), true, 'of no model it has no use')
  await dialog.getByLabel('Search models').fill('alpha-5')
  await dialog.getByRole('checkbox', { name: 'alpha-5.4' }).check()
  await dialog.getByRole('checkbox', { name: 'alpha-5.5' }).check()
  await dialog.getByLabel('All endpoints').uncheck()
  // Found by its address too.
  await dialog.getByLabel('Search endpoints').fill('/v1/chat/completions')
  await dialog.getByRole('checkbox', { name: /^chat/ }).check()
  await dialog.getByLabel('Credits per day').fill('5')
  await dialog.getByRole('button', { name: 'Create key' }).click()
  const key = (await page.getByTestId('key-value').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied it' }).click()
  const row = page.getByRole('row', { name: /shop/ })
  await row.getByText('2 models').waitFor()
  await row.getByText('chat endpoint').waitFor()
  assert.equal((await home.call('/v1/chat/completions', key, chat('alpha-5.4'))).status, 200)
  assert.equal((await home.call('/v1/chat/completions', key, chat('beta-haiku-4-5'))).status, 403)
  assert.equal((await home.call('/v1/responses', key, { model: 'alpha-5.4', input: 'Hello' })).status, 403)

  await row.getByRole('button', { name: 'Actions for shop' }).click()
  await page.getByRole('menuitem', { name: 'Rotate' }).click()
  await dialog.getByLabel('Expires').selectOption('90')
  await dialog.getByLabel('The old key').selectOption('Stops at once')
  await dialog.getByLabel('Credits per day').fill('7')
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
