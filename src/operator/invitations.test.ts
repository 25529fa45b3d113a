// How people come into an account and among the operators, and how they leave.

import { assert, BY, before, pluck, started, test } from '../../test/gateway.ts'
import {
  type Ask,
  asBrowser,
  asOperator,
  joined,
  makeAccount,
  PASSWORD,
  setUpOperator,
  startOperatorServer,
  tokenOf,
} from '../../test/operator-server.ts'
import type { LinkView, MemberView, OperatorView, PendingInvite } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'

const server = started(() => startOperatorServer())
let operator: Ask
before(async () => {
  operator = await setUpOperator(server)
})
const accountOf = (name: string) => makeAccount(server, { name, credits: '10' })
const join = (account: string, email: string, role: 'owner' | 'member') =>
  joined(server, `/accounts/${account}/invites`, { email, role })

test('an invitation is a link that works once; whoever has a login proves it', async () => {
  const account = await accountOf('Guild')
  const owner = await join(account, 'owner@guild.example', 'owner')
  const session = await owner<{ accounts: object[] }>('GET', '/session')
  assert.deepEqual(session.data.accounts, [{ id: account, name: 'Guild', role: 'owner' }])
  const invited = await owner<LinkView>('POST', `/accounts/${account}/invites`, {
    email: 'New@Guild.example',
    role: 'member',
  })
  assert.ok(invited.data.link.startsWith(`${server.url}/console/invite#token=`))
  const token = tokenOf(invited.data.link)
  const visitor = asBrowser(server)
  assert.deepEqual((await visitor('GET', `/invites/${token}`)).data, {
    kind: 'member',
    account: 'Guild',
    email: 'new@guild.example',
    role: 'member',
    others: [],
  })
  assert.equal((await visitor('GET', `/invites/${'x'.repeat(43)}`)).status, 404)
  assert.equal((await visitor('POST', `/invites/${token}`, { password: 'password1234' })).status, 400)
  assert.equal((await visitor('POST', `/invites/${token}`, { password: PASSWORD, role: 'owner' })).status, 400)
  const accepted = await Promise.all([
    visitor('POST', `/invites/${token}`, { password: PASSWORD }),
    asBrowser(server)('POST', `/invites/${token}`, { password: PASSWORD }),
  ])
  assert.equal(accepted.filter(({ status }) => status === 200).length, 1)
  assert.equal((await visitor('GET', `/invites/${token}`)).status, 404)
  const second = await accountOf('Second guild')
  await server.sql('update person set email_verified_at = now()')
  const again = await asOperator(server)<LinkView>('POST', `/accounts/${second}/invites`, {
    email: 'new@guild.example',
    role: 'owner',
  })
  const thief = asBrowser(server)
  assert.equal(
    (await thief('POST', `/invites/${tokenOf(again.data.link)}`, { password: 'not their password' })).status,
    401,
  )
  assert.equal((await thief('POST', `/invites/${tokenOf(again.data.link)}`, { password: PASSWORD })).status, 200)
  const expired = await owner<LinkView>('POST', `/accounts/${account}/invites`, {
    email: 'late@guild.example',
    role: 'member',
  })
  await server.sql(`update invite set expires_at = now() - interval '1 second'`)
  assert.equal(
    (await asBrowser(server)('POST', `/invites/${tokenOf(expired.data.link)}`, { password: PASSWORD })).status,
    404,
  )
  const list = await owner<Page<MemberView>>('GET', `/accounts/${account}/members`)
  assert.deepEqual(pluck(list.data.items, 'email', 'role'), [
    ['new@guild.example', 'member'],
    ['owner@guild.example', 'owner'],
  ])
  const [member, self] = list.data.items
  assert.equal(
    (await owner('DELETE', `/accounts/${account}/members/${self!.userId}`)).status,
    409,
    'the last owner stays',
  )
  assert.equal((await owner('DELETE', `/accounts/${account}/members/${member!.userId}`)).status, 200)
  assert.equal((await thief('GET', `/accounts/${account}`)).status, 403, 'at once')
  assert.equal((await thief('GET', `/accounts/${second}`)).status, 200)
})

test('invitations are listed and withdrawn, roles change, and a second operator is made', async () => {
  const account = await accountOf('Roles')
  const owner = await join(account, 'owner@roles.example', 'owner')
  const link = await owner<LinkView>('POST', `/accounts/${account}/invites`, {
    email: 'w@roles.example',
    role: 'member',
  })
  const pending = async () => (await owner<Page<PendingInvite>>('GET', `/accounts/${account}/invites`)).data.items
  const [waiting] = await pending()
  assert.deepEqual([waiting?.email, waiting?.role], ['w@roles.example', 'member'])
  assert.equal((await owner('DELETE', `/accounts/${account}/invites/${waiting?.id}`)).status, 200)
  assert.deepEqual(await pending(), [])
  assert.equal((await asBrowser(server)('GET', `/invites/${tokenOf(link.data.link)}`)).status, 404)

  await join(account, 'member@roles.example', 'member')
  const members = async () => (await owner<Page<MemberView>>('GET', `/accounts/${account}/members`)).data.items
  const idOf = async (email: string) => (await members()).find((one) => one.email === email)?.userId
  const path = async (email: string) => `/accounts/${account}/members/${await idOf(email)}`
  assert.equal(
    (await owner('PATCH', await path('owner@roles.example'), { role: 'member' })).status,
    409,
    'the last owner',
  )
  assert.equal((await owner('PATCH', await path('member@roles.example'), { role: 'owner' })).status, 200)
  assert.deepEqual(pluck(await members(), 'role'), ['owner', 'owner'])

  const invited = await operator<LinkView>('POST', '/operator-invites', { email: 'second@op.example' })
  const second = asBrowser(server)
  assert.equal((await second('POST', `/invites/${tokenOf(invited.data.link)}`, { password: PASSWORD })).status, 200)
  assert.equal((await second('GET', '/home')).status, 200)
  const operators = (await second<Page<OperatorView>>('GET', '/operators')).data.items
  assert.equal(operators.length, 2)
  const mine = operators.find(({ email }) => email === 'second@op.example')?.userId
  assert.equal((await operator('DELETE', `/operators/${mine}`)).status, 200)
  assert.equal((await second('GET', '/home')).status, 401, 'at once, and signed out')
  const [last] = (await operator<Page<OperatorView>>('GET', '/operators')).data.items
  assert.equal((await operator('DELETE', `/operators/${last?.userId}`)).status, 409)
})

test('whoever is removed or made less does not come back by a link, nor by a program that they let in', async () => {
  const account = await accountOf('Leaving')
  const owner = await join(account, 'owner@leaving.example', 'owner')
  const leaver = await join(account, 'leaver@leaving.example', 'owner')
  const members = (await owner<Page<MemberView>>('GET', `/accounts/${account}/members`)).data.items
  const person = members.find(({ email }) => email === 'leaver@leaving.example')?.userId ?? ''
  const linkFor = async (by: Ask, path: string, body: object) =>
    `/invites/${tokenOf((await by<LinkView>('POST', path, body)).data.link)}`
  const isGood = async (link: string) => (await asBrowser(server)('GET', link)).status === 200
  const toJoin = (by: Ask, name: string) =>
    linkFor(by, `/accounts/${account}/invites`, { email: `${name}@leaving.example`, role: 'owner' })
  const theirs = await Promise.all([toJoin(owner, 'leaver'), toJoin(leaver, 'leaver'), toJoin(leaver, 'alias')])
  const other = await toJoin(owner, 'newcomer')
  assert.equal((await owner('PATCH', `/accounts/${account}/members/${person}`, { role: 'member' })).status, 200)
  for (const link of theirs) assert.equal(await isGood(link), false)
  const again = await toJoin(owner, 'leaver')

  await server.sql(
    `insert into oauth_object (model, digest, payload) select 'Grant', sha256(convert_to(id, 'UTF8')), jsonb_build_object('accountId', whose)
     from (values ('grant-theirs', $1), ('grant-other', 'usr_other')) g (id, whose)`,
    [person],
  )
  const connect = (id: string, isTest: boolean) =>
    server.keys.create(account, { name: id, test: isTest, limits: {}, grant: { id, client: id } }, BY)
  const [mine, kept] = [await connect('grant-theirs', true), await connect('grant-other', false)]
  assert.equal((await owner('DELETE', `/accounts/${account}/members/${person}`)).status, 200)
  assert.deepEqual([await isGood(again), await isGood(other)], [false, true])
  assert.ok((await server.keys.get(mine.id))?.key.revokedAt)
  assert.equal((await server.keys.get(kept.id))?.key.revokedAt, null)

  await server.forgetTries()
  const second = asBrowser(server)
  const invited = await linkFor(operator, '/operator-invites', { email: 'leaver@op.example' })
  assert.equal((await second('POST', invited, { password: PASSWORD })).status, 200)
  const links = [
    await linkFor(operator, '/operator-invites', { email: 'leaver@op.example' }),
    await linkFor(second, '/operator-invites', { email: 'alias@op.example' }),
    await linkFor(second, '/password-link', { email: 'op@example.com' }),
    await linkFor(operator, '/password-link', { email: 'leaver@op.example' }),
    await toJoin(second, 'alias'),
  ]
  const operators = (await operator<Page<OperatorView>>('GET', '/operators')).data.items
  const id = operators.find(({ email }) => email === 'leaver@op.example')?.userId
  assert.equal((await operator('DELETE', `/operators/${id}`)).status, 200)
  for (const link of links) assert.equal(await isGood(link), false)
  assert.equal(await isGood(other), true)
})
