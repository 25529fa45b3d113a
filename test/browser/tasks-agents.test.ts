// What an owner does for agents in the console: settings of a team, programs that people signed in, and what an agent
// proposed.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { TeamView } from '../../src/admission/views.ts'
import type { BudgetView } from '../../src/ledger/views.ts'
import { deviceProgram } from '../device-program.ts'
import { pluck } from '../lists.ts'
import { startConsole, type TestConsole, type Visitor } from './console.ts'

let g: TestConsole
let operator: Visitor
let account: string
let team: string
before(async () => {
  g = await startConsole()
  operator = await g.visitor()
  await g.setUp(operator, 'op@example.com')
  account = (await g.account()).id
  team = (await g.operator<TeamView>('POST', `/accounts/${account}/teams`, { name: 'Search' })).data.id
})
after(() => g.close())

test('an owner sets what a team’s agents may use, sees a program that was signed in, and ends it', async () => {
  const { page } = operator
  const program = await deviceProgram(g.url, 'Claude Code on laptop <b>1</b>')
  const code = await program.begin()
  await operator.go(`/device?user_code=${code.user_code}`)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByLabel('Account').selectOption(account)
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.getByRole('heading', { name: 'Connected' }).waitFor()
  const { body } = await program.poll(code)
  const chat = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }
  const ask = async () => (await g.call('/v1/chat/completions', body.access_token, chat)).status
  assert.equal(await ask(), 200)

  await operator.go(`/a/${account}/agents`)
  await page.getByText('Claude Code on laptop <b>1</b>').waitFor()
  await page.getByRole('button', { name: 'Settings for a team' }).click()
  await page.getByLabel('For', { exact: true }).selectOption('Search')
  await page.getByLabel('Only these models').fill('alpha-5.5\nbeta-sonnet-5')
  await page.getByLabel('Default model').fill('beta-sonnet-5')
  await page.getByLabel('Most that one call may cost').fill('5')
  await page.getByRole('button', { name: 'Save' }).click()
  const settings = page.getByRole('table', { name: 'Settings of agents' })
  await settings.getByText('alpha-5.5, beta-sonnet-5').waitFor()
  const { data } = await g.operator<{ items: { scope: string }[] }>('GET', `/accounts/${account}/agent-settings`)
  assert.deepEqual(pluck(data.items, 'scope'), [team])
  await page.getByRole('button', { name: /Actions for Claude Code/ }).click()
  await page.getByRole('menuitem', { name: 'End sign-in' }).click()
  await page.getByRole('button', { name: 'End', exact: true }).click()
  await page.getByText('Nobody has signed a program in').waitFor()
  assert.equal(await ask(), 401)
  assert.deepEqual(g.mishaps, [])
})

test('what an agent proposed for a budget waits on the page Budgets, and counts once it is confirmed', async () => {
  const { page } = operator
  const { data: budget } = await g.operator<BudgetView>('POST', `/accounts/${account}/budgets`, {
    name: 'One task',
    scope: `session:${team}`,
    span: 'total',
    max: '2',
  })
  const given = { budgetId: budget.id, max: '9', reason: 'The <b>migration</b> needs more' }
  assert.equal((await g.operator('POST', `/accounts/${account}/budget-proposals`, given)).status, 200)
  await operator.go(`/a/${account}/budgets`)
  await page.getByText('every session of Search').waitFor()
  await page.getByText('The <b>migration</b> needs more').first().waitFor()
  await page.getByRole('button', { name: 'Answer for One task' }).click()
  await page.getByRole('menuitem', { name: 'Confirm' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click()
  await page.getByText('9 credits in total').waitFor()
  assert.equal(await page.getByText('Proposed by agents').count(), 0)
  assert.deepEqual(g.mishaps, [])
})
