// Budgets of members, teams and projects hold for people who call without a key, and nobody with the role member can
// leave them.
import type { KeyView, NewKey, TeamView } from '../src/admission/views.ts'
import type { MemberView } from '../src/identity/views.ts'
import type { Page } from '../src/kernel/view.ts'
import { budgetGateway, CALL } from './budgets.ts'
import { assert, OPERATOR_TOKEN, pluck, test, until } from './gateway.ts'
import { joined } from './operator-server.ts'

const { g, makeBudget, makeTeam, labelsOf } = budgetGateway()

async function join(account: string, name: string, role: string) {
  const email = `${name}@${account.replaceAll('_', '-')}.example`
  const ask = await joined(g, `/accounts/${account}/invites`, { email, role })
  const { data: members } = await g.operator<Page<MemberView>>('GET', `/accounts/${account}/members`)
  const { userId } = members.items.find((one) => one.email === email)!
  return {
    ask,
    userId,
    play: async () => (await ask('POST', `/accounts/${account}/play/v1/chat/completions`, CALL)).status,
  }
}

const ONE = { max: 1, span: 'total' }

test('calls of the playground count for the person, and for the only team or project that they are in', async () => {
  const { id } = await g.account()
  const owner = await join(id, 'owner', 'owner')
  const first = await join(id, 'first', 'member')
  const second = await join(id, 'second', 'member')
  const red = await makeTeam(id, { name: 'Red' })
  const blue = await makeTeam(id, { name: 'Blue' })
  const search = await makeTeam(id, { name: 'Search', parentId: red.id })
  const put = (team: TeamView, userIds: string[]) =>
    g.operator('PUT', `/accounts/${id}/teams/${team.id}/members`, { userIds })
  await put(search, [first.userId])
  await put(red, [second.userId])
  await put(blue, [second.userId])
  await makeBudget(id, { ...ONE, scope: 'project', value: search.id })
  await makeBudget(id, { ...ONE, scope: 'member', value: owner.userId })
  for (const one of [first, second, owner]) assert.equal(await one.play(), 200)
  for (const one of [first, owner]) assert.equal(await one.play(), 429)
  await put(blue, [])
  assert.equal(await second.play(), 200)
  assert.deepEqual(await labelsOf(id), [
    { ':team': red.id, ':project': search.id, ':member': first.userId },
    { ':member': second.userId },
    { ':member': owner.userId },
    { ':team': red.id, ':member': second.userId },
  ])
})

test('a batch of the playground counts for the person too', async () => {
  const { id } = await g.account()
  const { ask, userId } = await join(id, 'batcher', 'member')
  const form = new FormData()
  const line = { custom_id: 'one', method: 'POST', url: '/v1/chat/completions', body: CALL }
  form.append('purpose', 'batch')
  form.append('file', new Blob([`${JSON.stringify(line)}\n`]), 'lines.jsonl')
  const headers = { cookie: ask.cookie, 'sec-fetch-site': 'same-origin' }
  const base = `${g.url}/console/api/accounts/${id}/play/v1`
  const file = (await (await fetch(`${base}/files`, { method: 'POST', headers, body: form })).json()) as { id: string }
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  const made = await ask('POST', `/accounts/${id}/play/v1/batches`, order)
  assert.equal(made.status, 200, made.text)
  await until(() => labelsOf(id), [{ ':member': userId }])
})

for (const inTeam of [false, true])
  test(`keys that somebody with the role member ${inTeam ? 'in a team' : 'in no team'} makes or rotates are theirs`, async () => {
    const { id, keyId } = await g.account()
    const { ask, userId } = await join(id, 'member', 'member')
    const { userId: other } = await join(id, 'other', 'member')
    const team = await makeTeam(id, { name: 'Red' })
    if (inTeam) await g.operator('PUT', `/accounts/${id}/teams/${team.id}/members`, { userIds: [userId] })
    await g.operator('PATCH', `/keys/${keyId}`, { teamId: team.id, memberId: other })
    const make = (body: object) => ask<NewKey>('POST', `/accounts/${id}/keys`, { name: 'k', ...body })
    for (const body of [{}, { memberId: null }, { memberId: userId }])
      assert.equal((await make(body)).data.memberId, userId, JSON.stringify(body))
    assert.equal((await make({ memberId: other })).status, 403)
    const { data: own } = await make({})
    for (const memberId of [null, other]) {
      assert.equal((await ask('PATCH', `/keys/${own.id}`, { memberId })).status, 403)
      assert.equal((await ask('POST', `/keys/${own.id}/rotate`, { memberId })).status, 403)
    }
    assert.equal((await ask<KeyView>('PATCH', `/keys/${own.id}`, { name: 'renamed' })).data.memberId, userId)
    assert.equal((await ask('PATCH', `/keys/${keyId}`, { teamId: null })).status, 403, 'out of its team')
    const rotated = await ask<NewKey>('POST', `/keys/${keyId}/rotate`, {})
    assert.deepEqual([rotated.data.memberId, rotated.data.teamId], [userId, team.id])
    const owner = await join(id, 'owner', 'owner')
    assert.equal((await owner.ask<NewKey>('POST', `/accounts/${id}/keys`, { name: 'k' })).data.memberId, null)
    assert.equal((await owner.ask<KeyView>('PATCH', `/keys/${own.id}`, { memberId: other })).data.memberId, other)
  })

test('whom the directory takes out of the last team keeps their own keys and reaches no others', async () => {
  const { id, keyId } = await g.account()
  const { ask, userId } = await join(id, 'leaver', 'member')
  const team = await makeTeam(id, { name: 'Red' })
  await g.operator('PUT', `/accounts/${id}/teams/${team.id}/members`, { userIds: [userId] })
  const { data: own } = await ask<NewKey>('POST', `/accounts/${id}/keys`, { name: 'own' })
  const group = () => g.operator<TeamView>('PATCH', `/accounts/${id}/teams/${team.id}`, { scimGroup: 'Red' })
  assert.equal((await group()).data.members.length, 1)
  const text = `insert into scim_group (scope, id, display_name) values ($1, 'grp_red', 'Red')`
  await g.sql(text, [id])
  assert.equal((await group()).data.members.length, 0)
  const { data: seen } = await ask<Page<KeyView>>('GET', `/accounts/${id}/keys`)
  assert.deepEqual(pluck(seen.items, 'id'), [own.id])
  assert.equal((await ask('PATCH', `/keys/${keyId}`, { name: 'x' })).status, 403)
  assert.equal((await ask('POST', `/keys/${keyId}/rotate`, {})).status, 403)
  assert.equal((await ask('POST', `/accounts/${id}/keys`, { name: 'k' })).status, 403)
  assert.equal((await ask('PATCH', `/keys/${own.id}`, { teamId: null })).status, 403, "out of its team's budgets")
  assert.equal((await ask('DELETE', `/keys/${own.id}`)).status, 200)
})

test('an access token makes keys as the person who made it; one of nobody makes keys of nobody', async () => {
  const { id } = await g.account()
  await join(id, 'owner', 'owner')
  const { ask, userId } = await join(id, 'admin', 'admin')
  const { data: token } = await ask<{ token: string }>('POST', `/accounts/${id}/tokens`, {
    name: 't',
    scopes: ['keys:write'],
  })
  const make = async (bearer: string) => {
    const made = await g.call(`/admin/v1/accounts/${id}/keys`, bearer, { name: 'k' })
    return ((await made.json()) as { data: NewKey }).data.memberId
  }
  assert.equal(await make(token.token), null, 'an admin chooses')
  await g.operator('PATCH', `/accounts/${id}/members/${userId}`, { role: 'member' })
  assert.equal(await make(token.token), userId)
  assert.equal(await make(OPERATOR_TOKEN), null)
})
