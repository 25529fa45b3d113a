// SCIM 2.0: a directory makes, changes and ends logins of an account and of the gateway, and gets hold of nobody
// else's.
import { assert, atOnce, test, testGateway } from '../../../test/gateway.ts'
import type { TeamView } from '../../admission/views.ts'
import type { MemberView, NewToken, OperatorView } from '../../identity/views.ts'
import type { Json } from '../../kernel/json.ts'

const g = testGateway({}, async () => {
  account = (await g.account()).id
  await own(account, 'example.com')
  token = await newToken(`/accounts/${account}/tokens`)
  operatorToken = await newToken('/tokens')
})
let account: string
let token: string
let operatorToken: string

const newToken = async (path: string, scopes = ['scim']) =>
  (await g.operator<NewToken>('POST', path, { name: 'directory', scopes })).data.token

async function scim(method: string, path: string, body?: unknown, by = token): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${g.url}/scim/v2${path}`, {
    method,
    headers: { authorization: `Bearer ${by}`, 'content-type': 'application/scim+json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text ? (JSON.parse(text) as Json) : {} }
}

let number = 0
const person = () => `person${++number}@example.com`
const create = async (email = person(), more: object = {}, by = token) => {
  const made = await scim('POST', '/Users', { userName: email, ...more }, by)
  assert.equal(made.status, 201, JSON.stringify(made.body))
  return String(made.body.id)
}
const members = async () =>
  (await g.operator<{ items: MemberView[] }>('GET', `/accounts/${account}/members`)).data.items
const roleOf = async (id: string) => (await members()).find(({ userId }) => userId === id)?.role
const filtered = async (filter: string) => {
  const { status, body } = await scim('GET', `/Users?filter=${encodeURIComponent(filter)}`)
  return status === 200 ? (body.Resources as Json[]).map(({ userName }) => userName) : status
}
const own = (id: string, domain: string) =>
  rows('insert into account_domain (account_id, domain) values ($1, $2)', [id, domain])
const rows = (text: string, values: unknown[] = []) => g.sql(text, values as never[])

test('a person is made, found, changed, deactivated, let in again and deleted', async () => {
  const email = person()
  const name = { givenName: 'Ada', familyName: 'L' }
  const made = await scim('POST', '/Users', { userName: email, externalId: 'ext-1', name })
  assert.equal(made.status, 201)
  const id = String(made.body.id)
  assert.deepEqual([made.body.active, made.body.name, await roleOf(id)], [true, name, 'member'])
  assert.deepEqual(await filtered(`userName eq "${email.toUpperCase()}"`), [email])
  assert.deepEqual(await filtered('externalId eq "ext-1" and (active eq true or name.givenName sw "x")'), [email])
  assert.deepEqual(await filtered(`emails[value co "${email}"] and not (active eq false)`), [email])
  assert.equal((await scim('POST', '/Users', { userName: email })).status, 409)
  const off = await scim('PATCH', `/Users/${id}`, { Operations: [{ op: 'Replace', path: 'active', value: 'False' }] })
  assert.deepEqual([off.status, off.body.active, await roleOf(id)], [200, false, undefined])
  const on = await scim('PATCH', `/Users/${id}`, {
    Operations: [{ op: 'replace', value: { active: true, displayName: 'Ada' } }],
  })
  assert.deepEqual([on.body.active, on.body.displayName, await roleOf(id)], [true, 'Ada', 'member'])
  const moved = person()
  const mail = { op: 'replace', path: 'emails[type eq "work"].value', value: moved }
  assert.equal((await scim('PATCH', `/Users/${id}`, { Operations: [mail] })).status, 200)
  assert.equal((await members()).find(({ userId }) => userId === id)?.email, moved)
  assert.equal((await scim('DELETE', `/Users/${id}`)).status, 204)
  assert.equal((await scim('GET', `/Users/${id}`)).status, 404)
  assert.deepEqual(await rows('select id from person where id = $1', [id]), [])
})

test('groups that are called like roles give them, and the last owner stays', async () => {
  const [a, b] = [await create(), await create()]
  const group = await scim('POST', '/Groups', { displayName: 'Tollgate Owner', members: [{ value: a }] })
  assert.equal(group.status, 201, JSON.stringify(group.body))
  assert.deepEqual([await roleOf(a), await roleOf(b)], ['owner', 'member'])
  const path = `/Groups/${String(group.body.id)}`
  // Nobody else is an owner: neither by the group, nor by the person, nor by the group's end.
  const empty = { Operations: [{ op: 'remove', path: `members[value eq "${a}"]` }] }
  for (const refused of [
    await scim('PATCH', path, empty),
    await scim('PATCH', `/Users/${a}`, { Operations: [{ op: 'replace', path: 'active', value: false }] }),
    await scim('DELETE', `/Users/${a}`),
    await scim('DELETE', path),
  ])
    assert.equal(refused.status, 409, JSON.stringify(refused.body))
  assert.equal(await roleOf(a), 'owner')
  const added = await scim('PATCH', path, { Operations: [{ op: 'add', path: 'members', value: [{ value: b }] }] })
  assert.deepEqual([added.status, await roleOf(b)], [200, 'owner'])
  assert.equal((await scim('PATCH', path, empty)).status, 200)
  assert.deepEqual([await roleOf(a), await roleOf(b)], ['member', 'owner'])
})

test('roles that a broken-off change left behind follow with the next one of a group', async () => {
  const [came, left] = [await create(), await create()]
  const members = [{ value: left }]
  const path = `/Groups/${String((await scim('POST', '/Groups', { displayName: 'admin', members })).body.id)}`
  assert.equal(await roleOf(left), 'admin')
  // The group is stored, and nobody has followed it yet.
  await rows('update scim_group_member set person_id = $2 where scope = $1 and person_id = $3', [account, came, left])
  const again = { displayName: 'admin', members: [{ value: came }] }
  assert.equal((await scim('PUT', path, again)).status, 200)
  assert.deepEqual([await roleOf(came), await roleOf(left)], ['admin', 'member'])
})

const teamsPath = () => `/accounts/${account}/teams`
const newTeam = async (name: string) => (await g.operator<TeamView>('POST', teamsPath(), { name })).data
const change = (team: TeamView, body: object) => g.operator<TeamView>('PATCH', `${teamsPath()}/${team.id}`, body)
const setMembers = (team: TeamView, userIds: readonly string[]) =>
  g.operator<TeamView>('PUT', `${teamsPath()}/${team.id}/members`, { userIds })
const teamNow = async ({ id }: TeamView) =>
  (await g.operator<{ items: TeamView[] }>('GET', teamsPath())).data.items.find((one) => one.id === id)!
const inTeam = async (team: TeamView) => (await teamNow(team)).members.map(({ userId }) => userId).sort()
const patchGroup = async (id: unknown, ...Operations: readonly object[]) => {
  const { status, body } = await scim('PATCH', `/Groups/${String(id)}`, { Operations })
  assert.equal(status, 200, JSON.stringify(body))
}
const newGroup = async (displayName: string, people: readonly string[]) => {
  const { status, body } = await scim('POST', '/Groups', { displayName, members: people.map((value) => ({ value })) })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

test('the group that a team names says who is in it, in the shapes of Entra and of Okta, until the team gives it up', async () => {
  const [a, b, c, d] = [await create(), await create(), await create(), await create()]
  const team = await newTeam('Platform')
  await setMembers(team, [d])
  // Named before the directory has sent it: whoever is in the team stays.
  assert.equal((await change(team, { scimGroup: 'Platform Engineers' })).data.scimGroupKnown, false)
  assert.deepEqual(await inTeam(team), [d])
  const group = await newGroup('platform engineers', [a, b])
  assert.deepEqual([await inTeam(team), (await teamNow(team)).scimGroupKnown], [[a, b].sort(), true])
  assert.equal((await setMembers(team, [d])).status, 409)

  // Entra: capital letters, whom to remove in the value. Okta: a path with a filter, and a new name without a path.
  await patchGroup(group, { op: 'Add', path: 'members', value: [{ value: c }] })
  await patchGroup(group, { op: 'Remove', path: 'members', value: [{ value: a }] })
  assert.deepEqual(await inTeam(team), [b, c].sort())
  const okta = [
    { op: 'remove', path: `members[value eq "${b}"]` },
    { op: 'add', path: 'members', value: [{ value: a, display: 'A' }] },
  ]
  await patchGroup(group, ...okta)
  assert.deepEqual(await inTeam(team), [a, c].sort())
  await patchGroup(group, { op: 'replace', value: { id: group, displayName: 'Engineers' } })
  assert.deepEqual([(await teamNow(team)).scimGroup, await inTeam(team)], ['Engineers', [a, c].sort()])
  await patchGroup(group, { op: 'Replace', path: 'displayName', value: 'Engineering' })
  await patchGroup(group, { op: 'replace', path: 'members', value: [{ value: a }, { value: b }] })
  assert.deepEqual([(await teamNow(team)).scimGroup, await inTeam(team)], ['Engineering', [a, b].sort()])

  // Whoever is not active is in no team, and comes back as they left.
  const active = (value: boolean) =>
    scim('PATCH', `/Users/${a}`, { Operations: [{ op: 'replace', path: 'active', value }] })
  await active(false)
  assert.deepEqual(await inTeam(team), [b])
  await active(true)
  assert.deepEqual(await inTeam(team), [a, b].sort())
  // Without the group nobody is in it; the next one of that name is meant again.
  assert.equal((await scim('DELETE', `/Groups/${String(group)}`)).status, 204)
  assert.deepEqual([await inTeam(team), (await teamNow(team)).scimGroupKnown], [[], false])
  await newGroup('Engineering', [c])
  assert.deepEqual(await inTeam(team), [c])
  assert.equal((await change(team, { scimGroup: null })).data.scimGroup, null)
  assert.deepEqual(await inTeam(team), [c])
  assert.deepEqual((await setMembers(team, [c, d])).data.members.length, 2)
  // A team that is given a group whose members are known has these alone.
  await change(team, { scimGroup: 'ENGINEERING' })
  assert.deepEqual(await inTeam(team), [c])
  const told = await rows(`select detail from audit where action = 'scim.group.put' order by id desc limit 1`)
  assert.match(JSON.stringify(told), /Engineering.*person\d+@example.com/)
})

test('of patches of a group that come at once each counts, and a name is given once', async () => {
  const people = await atOnce(8, () => create())
  const team = await newTeam('Crowd')
  await change(team, { scimGroup: 'Crowd' })
  const group = await newGroup('Crowd', [])
  await Promise.all(people.map((value) => patchGroup(group, { op: 'add', path: 'members', value: [{ value }] })))
  assert.deepEqual(await inTeam(team), [...people].sort())
  await Promise.all(
    people.slice(1).map((one) => patchGroup(group, { op: 'remove', path: `members[value eq "${one}"]` })),
  )
  assert.deepEqual(await inTeam(team), people.slice(0, 1))
  const made = await atOnce(4, () => scim('POST', '/Groups', { displayName: 'Once' }))
  assert.deepEqual(made.map(({ status }) => status).sort(), [201, 409, 409, 409])
})

test('a new name and a member that come at once both count, and the team follows', async () => {
  const people = await atOnce(4, () => create())
  const team = await newTeam('Moving')
  await change(team, { scimGroup: 'Name 0' })
  const group = await newGroup('Name 0', [])
  for (const [n, value] of people.entries()) {
    const renamed = { op: 'replace', path: 'displayName', value: `Name ${n + 1}` }
    await Promise.all([
      patchGroup(group, renamed),
      patchGroup(group, { op: 'add', path: 'members', value: [{ value }] }),
      patchGroup(group, { op: 'replace', path: 'displayName', value: `Other ${n + 1}` }),
    ])
    assert.deepEqual(await inTeam(team), people.slice(0, n + 1).sort())
  }
})

test('where no more groups or members have room, members still leave', async () => {
  const [a, b] = [await create(), await create()]
  const group = await newGroup('Full', [a])
  const full = `insert into scim_group (scope, id, display_name) select $1, 'full_' || n, 'full ' || n from generate_series(1, 5000) n`
  await rows(full, [account])
  assert.equal((await scim('POST', '/Groups', { displayName: 'One more' })).status, 413)
  await patchGroup(group, { op: 'add', path: 'members', value: [{ value: b }] })
  await patchGroup(group, { op: 'remove', path: `members[value eq "${a}"]` })
  await rows(`delete from scim_group where scope = $1 and id like 'full%'`, [account])
})

test('teams are of the account: another’s group of that name, and one of the gateway, reach nobody in them', async () => {
  const { id } = await g.account()
  await own(id, 'example.com')
  const other = await newToken(`/accounts/${id}/tokens`)
  const team = await newTeam('Own')
  await change(team, { scimGroup: 'Own' })
  for (const by of [other, operatorToken]) {
    const value = await create(person(), {}, by)
    const made = await scim('POST', '/Groups', { displayName: 'Own', members: [{ value }] }, by)
    assert.equal(made.status, 201)
  }
  assert.deepEqual([await inTeam(team), (await teamNow(team)).scimGroupKnown], [[], false])
})

test('a directory signs out whom it ends, and ends the programs that acted for them', async () => {
  const id = await create()
  await rows(
    `insert into session (id, digest, person_id, ip, user_agent) values ('ses_scim', '\\x01', $1, '127.0.0.1', 'test')`,
    [id],
  )
  const off = await scim('PATCH', `/Users/${id}`, { Operations: [{ op: 'replace', path: 'active', value: false }] })
  assert.equal(off.status, 200)
  assert.deepEqual(await rows('select id from session where person_id = $1', [id]), [])
})

test('somebody who belongs to others is not taken over', async () => {
  const other = (await g.account()).id
  const theirs = await newToken(`/accounts/${other}/tokens`)
  const email = person()
  const id = await create(email)
  // Joining needs their consent; their email address is theirs; what another directory does not know is not there.
  const taken = await scim('POST', '/Users', { userName: email }, theirs)
  const unknown = await scim('POST', '/Users', { userName: person() }, theirs)
  assert.deepEqual([taken.status, taken.body], [403, unknown.body], 'the same answer as for an address without a login')
  assert.equal((await scim('GET', `/Users/${id}`, undefined, theirs)).status, 404)
  await rows('insert into membership (account_id, person_id, role) values ($1, $2, $3)', [other, id, 'member'])
  for (const by of [token, theirs]) {
    const changed = await scim('PUT', `/Users/${id}`, { userName: person() }, by)
    assert.deepEqual([changed.status, changed.body.scimType], [403, 'mutability'])
  }
  assert.equal((await scim('DELETE', `/Users/${id}`, undefined, theirs)).status, 204)
  assert.equal(await roleOf(id), 'member')
  const [kept] = await rows('select email from person where id = $1', [id])
  assert.deepEqual(kept, { email })
})

test('a new email address takes the old ways in with it, and a domain of others is theirs', async () => {
  const id = await create()
  await rows(`update person set password = 'old' where id = $1`, [id])
  const identity = `insert into identity (id, issuer, subject, person_id) values ('idn_scim', 'https://issuer.example', 's', $1)`
  await rows(identity, [id])
  assert.equal((await scim('PUT', `/Users/${id}`, { userName: person() })).status, 200)
  assert.deepEqual(await rows('select password from person where id = $1', [id]), [{ password: null }])
  assert.deepEqual(await rows('select id from identity where person_id = $1', [id]), [])
  const provider = `insert into login_provider (id, name, issuer, client_id, scopes, groups_claim) values ('corp', 'Corp', 'https://corp.example', 'c', '{}', 'groups')`
  await rows(provider)
  await rows(`insert into login_domain (domain, provider_id) values ('corp.example', 'corp')`)
  assert.equal((await scim('POST', '/Users', { userName: 'ceo@corp.example' })).status, 403)
  assert.equal((await scim('PUT', `/Users/${id}`, { userName: 'ceo@corp.example' })).status, 403)
})

test('those who run the gateway come from the gateway’s own directory', async () => {
  const email = person()
  const id = await create(email, {}, operatorToken)
  const operators = async () => (await g.operator<{ items: OperatorView[] }>('GET', '/operators')).data.items
  const role = async () => (await operators()).find(({ userId }) => userId === id)?.role
  assert.equal(await role(), 'support')
  const group = await scim('POST', '/Groups', { displayName: 'finance', members: [{ value: id }] }, operatorToken)
  assert.deepEqual([group.status, await role()], [201, 'finance'])
  // The last operator stays: neither by the group, nor by the person, nor by the group's end.
  const top = await scim('POST', '/Groups', { displayName: 'operator', members: [{ value: id }] }, operatorToken)
  assert.deepEqual([top.status, await role()], [201, 'operator'])
  const path = `/Groups/${String(top.body.id)}`
  const off = { Operations: [{ op: 'replace', path: 'active', value: false }] }
  for (const refused of [
    await scim('PUT', path, { displayName: 'operator', members: [] }, operatorToken),
    await scim('PATCH', `/Users/${id}`, off, operatorToken),
    await scim('DELETE', `/Users/${id}`, undefined, operatorToken),
    await scim('DELETE', path, undefined, operatorToken),
  ])
    assert.equal(refused.status, 409, JSON.stringify(refused.body))
  assert.equal(await role(), 'operator')
  const second = await create(person(), {}, operatorToken)
  // Another one in the same request takes the place.
  const next = { displayName: 'operator', members: [{ value: second }] }
  assert.equal((await scim('PUT', path, next, operatorToken)).status, 200)
  assert.equal(await role(), 'finance')
  assert.equal((await scim('DELETE', `/Users/${id}`, undefined, operatorToken)).status, 204)
  assert.equal(await role(), undefined)
})

test('what a directory sends has bounds, and more than them is refused without effort', async () => {
  const values = (count: number) => Array.from({ length: count }, (_, n) => ({ value: `usr_${n}` }))
  const group = (members: unknown) => scim('POST', '/Groups', { displayName: 'big', members })
  assert.deepEqual([(await group(values(5_001))).status, (await group('all')).status], [400, 400])
  const emails = Array.from({ length: 21 }, () => ({ value: person() }))
  assert.equal((await scim('POST', '/Users', { userName: person(), emails })).status, 400)
  const large = await scim('POST', '/Users', { userName: person(), displayName: 'x'.repeat(1_100_000) })
  assert.equal(large.status, 413)
  const nested = await fetch(`${g.url}/scim/v2/Users`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: `{"userName":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
  })
  assert.equal(nested.status, 400)
  assert.equal(await filtered(Array(40).fill('active eq true').join(' or ')), 400, 'too many parts')
  for (const query of ['count=x', 'startIndex=1e9', 'count=99999999999'])
    assert.equal((await scim('GET', `/Users?${query}`)).status, 400, query)
  const { body: none } = await scim('GET', '/Users?count=-5&startIndex=-3')
  assert.deepEqual([none.itemsPerPage, none.startIndex], [0, 1])
  // A patch that compares every entry with every operation.
  const id = await create()
  const work = { op: 'remove', path: 'emails[value eq "nobody@example.com"]' }
  const added = { op: 'add', path: 'emails', value: Array.from({ length: 10_000 }, () => ({ value: 'x' })) }
  const heavy = await scim('PATCH', `/Users/${id}`, { Operations: [added, ...Array(90).fill(work)] })
  assert.equal(heavy.status, 413)
  assert.equal((await scim('GET', `/Users/${id}`)).status, 200)
})

test('only a token with the scope gets in, and reading needs no more than reading', async () => {
  const reader = await newToken(`/accounts/${account}/tokens`, ['scim:read'])
  const keys = await newToken(`/accounts/${account}/tokens`, ['keys:read'])
  assert.equal((await scim('GET', '/Users', undefined, reader)).status, 200)
  assert.equal((await scim('POST', '/Users', { userName: person() }, reader)).status, 403)
  assert.equal((await scim('GET', '/Users', undefined, keys)).status, 403)
  assert.equal((await scim('GET', '/Users', undefined, 'tg_acc_nobody')).status, 401)
  for (const path of ['/ServiceProviderConfig', '/Schemas', '/ResourceTypes', '/ResourceTypes/User'])
    assert.equal((await scim('GET', path)).status, 200, path)
})

test('what cannot be meant is refused by its kind, and nothing is stored', async () => {
  const deep = `${'('.repeat(40)}active eq true${')'.repeat(40)}`
  for (const filter of [
    'active',
    'active is true',
    'userName eq',
    'userName eq x',
    '(active eq true',
    deep,
    `userName eq "${'x'.repeat(2000)}"`,
  ])
    assert.equal(await filtered(filter), 400, filter.slice(0, 40))
  const before = await rows('select count(*)::int as count from person')
  for (const body of [
    {},
    { userName: 'no address' },
    { userName: person(), active: 5 },
    { userName: 'x'.repeat(300) },
    { userName: person(), emails: 'a' },
  ]) {
    const { status, body: told } = await scim('POST', '/Users', body)
    assert.deepEqual([status, told.scimType], [400, 'invalidValue'], JSON.stringify(body).slice(0, 60))
  }
  const id = await create()
  for (const Operations of [
    [],
    [{ op: 'move' }],
    [{ op: 'remove' }],
    [{ op: 'replace', path: 'active[', value: true }],
    new Array(200).fill({ op: 'add', path: 'active', value: true }),
  ])
    assert.equal((await scim('PATCH', `/Users/${id}`, { Operations })).status, 400)
  await scim('DELETE', `/Users/${id}`)
  assert.deepEqual(await rows('select count(*)::int as count from person'), before)
  const broken = await fetch(`${g.url}/scim/v2/Users`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: '{',
  })
  assert.equal(broken.status, 400)
})

test('lists come in pages, and with the attributes that were asked for', async () => {
  for (let n = 0; n < 3; n++) await create()
  const { body } = await scim('GET', '/Users?startIndex=2&count=2&attributes=userName')
  assert.deepEqual([body.startIndex, body.itemsPerPage], [2, 2])
  assert.ok(Number(body.totalResults) >= 3)
  for (const one of body.Resources as Json[]) assert.deepEqual(Object.keys(one).sort(), ['id', 'schemas', 'userName'])
})
