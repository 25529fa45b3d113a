// Budgets and teams on the command line, and what somebody who is in a team sees of the account's keys.

import { commandLineOf } from '../../test/command-line.ts'
import { assert, pluck, started, test } from '../../test/kit.ts'
import { asOperator, joined, startOperatorServer } from '../../test/operator-server.ts'
import type { KeyView, NewKey, TeamView } from '../admission/views.ts'
import type { MemberView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import type { BudgetValueView, BudgetView } from '../ledger/views.ts'

const server = started(startOperatorServer)

const { run, json } = commandLineOf(() => server)

test('budgets are made, listed, changed and ended from the command line', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Budgeted'])
  const each = await json<BudgetView>(['budgets', 'create', id, 'user', '5', '--name', 'Trial users'])
  assert.deepEqual(
    [each.name, each.scope, each.value, each.unit, each.span, each.max, each.hard],
    ['Trial users', 'user', null, 'credits', 'month', '5', true],
  )
  const session = await json<BudgetView>([
    'budgets',
    'create',
    id,
    'session',
    '20',
    '--unit',
    'requests',
    '--window',
    '3600',
    '--soft',
    '--alert',
    '80',
  ])
  assert.deepEqual(
    [session.span, session.windowSeconds, session.hard, session.alertPercent, session.name],
    ['rolling', 3_600, false, 80, 'session'],
  )
  const listed = await run(['budgets', 'list', id])
  assert.match(listed.out, /Trial users\s+user\s+each\s+5 credits\s+month/)
  assert.match(listed.out, /session\s+each\s+20 requests\s+rolling\s+3600\s+0\s+0\s+no/)
  assert.equal((await json<BudgetView>(['budgets', 'change', id, each.id, '7.5'])).max, '7.5')
  const own = await json<BudgetValueView>(['budgets', 'set', id, 'trial USERS', 'alice', '50'])
  assert.deepEqual([own.value, own.max, own.overridden], ['alice', '50', true])
  assert.match((await run(['budgets', 'values', id, each.id, '--value', 'alice'])).out, /alice\s+0\s+50\s+50\s+0/)
  assert.deepEqual(await json(['budgets', 'values', id, each.id, '--value', 'bob']), [])
  const again = await json<BudgetValueView>(['budgets', 'set', id, each.id, 'alice', 'default'])
  assert.deepEqual([again.max, again.overridden], ['7.5', false])
  const softened = await json<BudgetView>([
    'budgets',
    'change',
    id,
    each.id,
    '--soft',
    '--alert',
    '90',
    '--name',
    'All',
  ])
  assert.deepEqual([softened.name, softened.hard, softened.alertPercent, softened.max], ['All', false, 90, '7.5'])
  assert.equal((await json<BudgetView>(['budgets', 'change', id, each.id, '--hard'])).hard, true)
  assert.notEqual((await run(['budgets', 'change', id, each.id, '--hard', '--soft'])).code, 0)
  const wrong = await run(['budgets', 'create', id, 'planet', '5'])
  assert.notEqual(wrong.code, 0)
  assert.match(wrong.err, /scope/)
  assert.match((await run(['budgets', 'end', id, each.id])).out, /The budget All has ended\./)
  assert.deepEqual(pluck(await json<BudgetView[]>(['budgets', 'list', id]), 'id'), [session.id])
})

test('teams are made from the command line, keys go into them, and a member of one team reaches the keys of no other', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Teams'])
  const red = await json<TeamView>(['teams', 'create', id, 'Red'])
  const search = await json<TeamView>(['teams', 'create', id, 'Search', '--parent', 'red'])
  const blue = await json<TeamView>(['teams', 'create', id, 'Blue'])
  const keyIn = (name: string, ...more: string[]) => json<NewKey>(['keys', 'create', id, name, ...more])
  const inRed = await keyIn('red', '--team', red.id)
  const inSearch = await keyIn('search', '--team', search.id)
  const inBlue = await keyIn('blue', '--team', blue.id)
  const inNone = await keyIn('none')
  assert.match((await run(['teams', 'list', id])).out, new RegExp(`${search.id}\\s+Search\\s+${red.id}\\s+1`))
  assert.equal((await json<KeyView>(['keys', 'change', inRed.id, '--team', 'none'])).teamId, null)
  assert.equal((await json<KeyView>(['keys', 'change', inRed.id, '--team', red.id])).teamId, red.id)
  assert.notEqual((await run(['teams', 'remove', id, blue.id])).code, 0, 'a key is in it')

  const operator = asOperator(server)
  const member = await joined(server, `/accounts/${id}/invites`, { email: 'ann@teams.example', role: 'member' })
  const seen = async () =>
    new Set((await member<Page<KeyView>>('GET', `/accounts/${id}/keys`)).data.items.map(({ name }) => name))
  assert.deepEqual(await seen(), new Set(['red', 'search', 'blue', 'none']), 'without a team: all')
  const { data: people } = await operator<Page<MemberView>>('GET', `/accounts/${id}/members`)
  const userIds = people.items.map(({ userId }) => userId)
  const team = await json<TeamView>(['teams', 'members', id, red.id, 'ann@teams.example'])
  assert.deepEqual(pluck(team.members, 'email'), ['ann@teams.example'])
  assert.equal((await json<TeamView>(['teams', 'change', id, 'Red', '--name', 'Crimson'])).name, 'Crimson')
  assert.deepEqual((await json<TeamView>(['teams', 'members', id, blue.id, 'none'])).members, [])
  assert.deepEqual(await seen(), new Set(['red', 'search']))
  for (const key of [inBlue, inNone])
    for (const [method, path, body] of [
      ['PATCH', `/keys/${key.id}`, { name: 'mine' }],
      ['PATCH', `/keys/${key.id}`, { teamId: red.id }],
      ['POST', `/keys/${key.id}/rotate`, {}],
      ['DELETE', `/keys/${key.id}`, undefined],
    ] as const)
      assert.equal((await member(method, path, body)).status, 403, `${method} ${key.name}`)
  // Who is support too sees all keys by that role, and changes those of their teams.
  const as = (role: string | null) =>
    server.sql(`update person set operator_role = $1 where email = 'ann@teams.example'`, [role])
  await as('support')
  assert.deepEqual(await seen(), new Set(['red', 'search', 'blue', 'none']))
  assert.equal((await member('PATCH', `/keys/${inBlue.id}`, { name: 'mine' })).status, 403)
  assert.equal((await member('DELETE', `/keys/${inNone.id}`)).status, 403)
  assert.equal((await member('POST', `/accounts/${id}/keys`, { name: 'x', teamId: blue.id })).status, 403)
  await as(null)
  for (const teamId of [blue.id, null])
    assert.equal((await member('PATCH', `/keys/${inRed.id}`, { teamId })).status, 403, 'its keys stay in it')
  assert.equal((await member('POST', `/accounts/${id}/keys`, { name: 'x', teamId: blue.id })).status, 403)
  assert.equal((await member('POST', `/accounts/${id}/keys`, { name: 'x' })).status, 400, 'two places are possible')
  assert.equal((await member('PATCH', `/keys/${inSearch.id}`, { name: 'found' })).status, 200)
  const made = await member<NewKey>('POST', `/accounts/${id}/keys`, { name: 'new', teamId: search.id })
  assert.equal(made.data.teamId, search.id)
  assert.equal((await member<NewKey>('POST', `/keys/${inRed.id}/rotate`, {})).data.teamId, red.id)
  for (const [method, path] of [
    ['POST', `/accounts/${id}/teams`],
    ['PUT', `/accounts/${id}/teams/${blue.id}/members`],
    ['POST', `/accounts/${id}/budgets`],
  ] as const)
    assert.equal((await member(method, path, { name: 'x', userIds })).status, 403, path)
})
