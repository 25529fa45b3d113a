// What an owner does for agents in the console: settings of a team, programs that people signed in, and what an agent
// proposed.
import type { TeamView } from '../../src/admission/views.ts'
import type { BudgetView } from '../../src/ledger/views.ts'
import { deviceProgram } from '../device-program.ts'
import { assert, before, pluck, started, test } from '../kit.ts'
import { pageOf, startConsole } from './console.ts'
import { EXACT, enter, FIRST, inDialog, pick, press, see, select, sight, steps } from './steps.ts'

let account: string
let team: string
const g = started(startConsole)
const operator = started(() => g.signedIn())
const page = pageOf(operator)
before(async () => {
  account = (await g.account()).id
  team = (await g.operator<TeamView>('POST', `/accounts/${account}/teams`, { name: 'Search' })).data.id
})

test('an owner sets what a team’s agents may use, sees a program that was signed in, and ends it', async () => {
  const program = await deviceProgram(g.url, 'Claude Code on laptop <b>1</b>')
  const code = await program.begin()
  await operator.go(`/device?user_code=${code.user_code}`)
  await steps(page, press('Continue'), select('Account', account), press('Allow'), sight('heading', 'Connected'))
  const { body } = await program.poll(code)
  const chat = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }
  const ask = async () => (await g.call('/v1/chat/completions', body.access_token, chat)).status
  assert.equal(await ask(), 200)

  await operator.go(`/a/${account}/agents`)
  await steps(page, see('Claude Code on laptop <b>1</b>'), press('Settings for a team'), select('For', 'Search', EXACT))
  await steps(page, enter('Only these models', 'alpha-5.5\nbeta-sonnet-5'), enter('Default model', 'beta-sonnet-5'))
  await steps(page, enter('Most that one call may cost', '5'), press('Save'))
  const settings = page.getByRole('table', { name: 'Settings of agents' })
  await settings.getByText('alpha-5.5, beta-sonnet-5').waitFor()
  const { data } = await g.operator<{ items: { scope: string }[] }>('GET', `/accounts/${account}/agent-settings`)
  assert.deepEqual(pluck(data.items, 'scope'), [team])
  await steps(page, press(/Actions for Claude Code/), pick('End sign-in'), press('End', EXACT))
  await page.getByText('Nobody has signed a program in').waitFor()
  assert.equal(await ask(), 401)
})

test('what an agent proposed for a budget waits on the page Budgets, and counts once it is confirmed', async () => {
  const { data: budget } = await g.operator<BudgetView>('POST', `/accounts/${account}/budgets`, {
    name: 'One task',
    scope: `session:${team}`,
    span: 'total',
    max: '2',
  })
  const given = { budgetId: budget.id, max: '9', reason: 'The <b>migration</b> needs more' }
  assert.equal((await g.operator('POST', `/accounts/${account}/budget-proposals`, given)).status, 200)
  await operator.go(`/a/${account}/budgets`)
  await steps(page, see('every session of Search'), see('The <b>migration</b> needs more', FIRST))
  await steps(page, press('Answer for One task'), pick('Confirm'), inDialog(press('Confirm')))
  await page.getByText('9 credits in total').waitFor()
  assert.equal(await page.getByText('Proposed by agents').count(), 0)
})
