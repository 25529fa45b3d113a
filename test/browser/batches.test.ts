// Batches from the console: a file is checked by its lines before anything is begun, worked off, looked at, cancelled and deleted.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
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

const line = (custom_id: string, { model = 'alpha-5.4', content = `Hello ${custom_id}.` } = {}) =>
  JSON.stringify({
    ...{ custom_id, method: 'POST', url: '/v1/chat/completions' },
    body: { model, max_tokens: 20, messages: [{ role: 'user', content }] },
  })

async function choose(text: string, name = 'lines.jsonl'): Promise<void> {
  const file = { name, mimeType: 'application/jsonl', buffer: Buffer.from(text) }
  await operator.page.locator('input[type=file]').setInputFiles(file)
  await operator.page.getByRole('button', { name: 'Upload and check' }).click()
}

test('a file is checked by its lines before it is begun; then its lines are worked off and lead to their calls', async () => {
  const { page } = operator
  await operator.go(`/a/${account}/batches`)
  await page.getByText('No batches yet').waitFor()
  await page.getByRole('button', { name: 'New batch' }).first().click()
  await choose(`${line('one')}\n${line('one')}\n{"custom_id":`)
  const problems = page.getByRole('table', { name: 'Problems' })
  await problems.getByRole('row', { name: /2.*same "custom_id"/ }).waitFor()
  await problems.getByRole('row', { name: /Line 3 is not a JSON object/ }).waitFor()
  assert.deepEqual(await home.violations(page), [])
  const { database } = home.gateway
  const [none] = await database.query<{ count: number }>({
    text: 'select (select count(*) from stored_file)::int + (select count(*) from batch)::int as count',
  })
  assert.equal(none?.count, 0, 'what is wrong leaves nothing behind')

  await choose(`${line('one')}\n${line('two', { model: 'alpha-5.44' })}`)
  await problems.getByRole('row', { name: /2.*"alpha-5\.44" does not exist.*Did you mean "alpha-5\.4"\?/ }).waitFor()
  assert.equal(await page.getByText('Nothing is wrong').count(), 0)

  await choose(`${line('one')}\n${line('two', { content: '[[400]]' })}`)
  await page.getByRole('button', { name: 'Start 2 requests' }).click()
  await page.getByText('Completed').waitFor()
  await page
    .getByRole('table', { name: 'Failed lines' })
    .getByRole('row', { name: /two.*400/ })
    .waitFor()
  const [row] = await database.query<{ charged: bigint }>({
    text: `select charged from usage where endpoint = 'batch:chat'`,
  })
  assert.ok(row && row.charged > 0n)
  assert.deepEqual(await home.violations(page), [])
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Answers' }).click()
  const saved = await (await downloading).path()
  assert.equal(JSON.parse(await readFile(saved, 'utf8')).custom_id, 'one')
  await page.getByRole('table', { name: 'Answered lines' }).getByRole('link').click()
  await page.getByText('How the charge was calculated').waitFor()
})

test('a batch that waits for a limit is cancelled at once, and files are deleted', async () => {
  const { page } = operator
  await home.gateway.accounts.change(account, { limits: { requestsPerMinute: 1 } }, BY)
  await operator.go(`/a/${account}/batches`)
  await page.getByRole('button', { name: 'New batch' }).first().click()
  await choose([1, 2, 3].map((at) => line(`slow ${at}`)).join('\n'), 'slow.jsonl')
  await page.getByRole('button', { name: 'Start 3 requests' }).click()
  await page.getByText('In progress').waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel the batch' }).click()
  await page.getByText('Cancelled', { exact: true }).waitFor()
  await page.getByRole('row', { name: /slow 3.*not begun.*cancelled before/ }).waitFor()
  await operator.go(`/a/${account}/batches`)
  await page
    .getByRole('table', { name: 'Files' })
    .getByRole('row', { name: /slow\.jsonl/ })
    .getByRole('button')
    .click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('link', { name: 'File deleted' }).waitFor()
  assert.deepEqual(home.mishaps, [])
})

test('an operator gives a model a price in batches, for a tier and for an extra, and its page says so', async () => {
  const { page } = operator
  await operator.go('/operator/catalogue')
  await page.getByLabel('Search models').fill('alpha-5.4')
  await page
    .getByRole('row', { name: /alpha-5\.4/ })
    .first()
    .getByRole('button', { name: 'Price' })
    .click()
  const dialog = page.getByRole('dialog')
  for (const extras of await dialog.getByText('Extras: tools').all()) await extras.click()
  for (const search of await dialog.getByLabel('Per web search').all()) await search.fill('1.5')
  await dialog.getByRole('button', { name: 'Add a multiplier' }).click()
  assert.equal(await dialog.getByRole('button', { name: 'Set the price' }).isDisabled(), true)
  await dialog.getByLabel('Times', { exact: true }).fill('2')
  await dialog.getByLabel('Batch multiplier').fill('0.5')
  assert.deepEqual(await home.violations(page), [])
  await dialog.getByRole('button', { name: 'Set the price' }).click()
  await page.getByText(/^New prices for/).waitFor()
  await operator.go(`/a/${account}/models/alpha-5.4`)
  const multipliers = page.getByRole('table', { name: 'Multipliers' })
  await multipliers.getByRole('row', { name: 'service_tier priority 2' }).waitFor()
  await multipliers.getByRole('row', { name: 'in batches 0.5' }).waitFor()
  await page.getByRole('columnheader', { name: 'Per web search' }).waitFor()
  assert.deepEqual(await home.violations(page), [])
  await page.setViewportSize({ width: 390, height: 844 })
  await operator.go(`/a/${account}/usage`)
  await page
    .getByRole('button', { name: /^Batch …/ })
    .first()
    .waitFor()
  assert.ok(((await page.evaluate('document.documentElement.scrollWidth')) as number) <= 390)
})
