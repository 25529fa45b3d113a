// What an account's manager comes for: teams with projects and keys, a budget that holds, what is left of it, and who
// spent what.

import { assert, before, started, test, textOf } from '../gateway.ts'
import { pageOf, startConsole } from './console.ts'
import { EXACT, enter, FIRST, inDialog, pick, press, steps } from './steps.ts'

let account = ''
let key = ''

const home = started(startConsole)
const operator = started(() => home.signedIn())
const page = pageOf(operator)
before(async () => {
  ;({ id: account, key } = await home.account())
})

const ask = (user: string, headers: Record<string, string> = {}) =>
  home.call(
    '/v1/chat/completions',
    key,
    { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20, user },
    { headers },
  )
const choose = (item: string, of: string) =>
  page
    .getByRole('button', { name: `Actions for ${of}` })
    .click()
    .then(() => page.getByRole('menuitem', { name: item }).click())
const row = (table: string, name: RegExp) => page.getByRole('table', { name: table }).getByRole('row', { name })

/** Opens the form of a new budget, and fills in what is the same for all. */
async function begin(name: string, max: string): Promise<void> {
  await steps(page, press('New budget', FIRST), enter('Name', name, EXACT), enter('Limit', max))
  await page.getByRole('combobox', { name: 'Unit', exact: true }).selectOption('requests')
}

test('a default for end users that is made by form rejects the call beyond it by its name, shows what is left, and only counts when it is soft', async () => {
  await operator.go(`/a/${account}/budgets`)
  await begin('Trial users', '1')
  await page.getByRole('combobox', { name: 'Period', exact: true }).selectOption('total')
  await page.getByRole('button', { name: 'Create budget' }).click()
  await row('Budgets', /Trial users.*every end user.*1 call in total/).waitFor()
  assert.deepEqual(
    [(await ask('alice')).status, (await ask('bob')).status],
    [200, 200],
    'each new user has one of their own',
  )
  assert.match(await textOf(ask('alice'), 429), /Budget exceeded: Trial users for user \\"alice\\" allows 1 requests/)

  await choose('Top values', 'Trial users')
  await row('Values', /alice.*1 call of 1 call, 100.*%.*0 calls/).waitFor()
  assert.deepEqual(await home.violations(page), [])
  await page.keyboard.press('Escape')
  await choose('Limit for one value', 'Trial users')
  await steps(page, enter('Value', 'alice', EXACT), inDialog(enter('Limit', '2')), press('Save'))
  await page.getByText('The limit of alice was saved.').waitFor()
  assert.deepEqual([(await ask('alice')).status, (await ask('bob')).status], [200, 429])

  await choose('Change', 'Trial users')
  await page.getByRole('combobox', { name: 'When exceeded' }).selectOption('soft')
  await page.getByRole('button', { name: 'Save' }).click()
  await row('Budgets', /Trial users\s*soft/).waitFor()
  assert.equal((await ask('bob')).status, 200)
})

test('a team gets a project, a key and a budget that is chosen by its name, and its key is rejected beyond it', async () => {
  await operator.go(`/a/${account}/teams`)
  await steps(page, press('New team', FIRST), enter('Name', 'Search', EXACT), press('Create', EXACT))
  await row('Teams', /Search/).waitFor()
  await choose('New project', 'Search')
  await steps(page, enter('Name', 'Ranking', EXACT), press('Create', EXACT))
  await row('Teams', /Ranking.*project/).waitFor()

  await operator.go(`/a/${account}/keys`)
  await steps(page, press(/^Actions for/, FIRST), pick('Edit'))
  await page.getByRole('combobox', { name: 'Team or project' }).selectOption({ label: '└ Ranking' })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })

  await operator.go(`/a/${account}/budgets`)
  await begin('The search team', '1')
  await page.getByRole('combobox', { name: 'Applies to', exact: true }).selectOption('team')
  await page.getByRole('combobox', { name: 'Only for' }).selectOption({ label: 'Search' })
  await page.getByRole('button', { name: 'Create budget' }).click()
  await row('Budgets', /The search team.*team Search.*1 call a month/).waitFor()
  assert.equal((await ask('carol')).status, 200)
  assert.match(await textOf(ask('carol'), 429), /The search team/)
  await page.reload()
  await row('Budgets', /The search team.*1 call of 1 call, 100.*%/).waitFor()
  assert.deepEqual(await home.violations(page), [])
  await choose('End', 'The search team')
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
  await row('Budgets', /The search team/).waitFor({ state: 'detached' })
  assert.equal((await ask('carol')).status, 200)
})

test('who spent most is a view of usage: by end user, and by a tag that calls carried; it leads to their calls', async () => {
  assert.equal((await ask('dora', { 'x-tollgate-tags': 'feature=chat' })).status, 200)
  await home.settled()
  await operator.go(`/a/${account}/usage`)
  await page.getByRole('link', { name: 'End users and sessions' }).click()
  await row('Spent by user', /alice/).waitFor()
  await page.getByRole('combobox', { name: 'Label' }).selectOption('feature')
  await row('Spent by feature', /chat/).waitFor()
  await page.getByText('1 value, 1 call,').waitFor()
  assert.deepEqual(await home.violations(page), [])
  await page.getByRole('table', { name: 'Spent by feature' }).getByRole('link', { name: 'chat' }).click()
  await page.getByRole('table', { name: 'Calls' }).getByRole('row').nth(1).waitFor()
  assert.equal(await page.getByRole('table', { name: 'Calls' }).getByRole('row').count(), 2)
})
