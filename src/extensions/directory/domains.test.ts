// Mail domains of an account, proved by a record of a real name server; a directory creates nobody of other domains.
import { after, assert, before, started, startGateway, type TestGateway, test } from '../../../test/gateway.ts'
import { type MailServer, startMailServer } from '../../../test/mail-server.ts'
import { startNameServer } from '../../../test/name-server.ts'
import { asBrowser } from '../../../test/operator-server.ts'
import type { MemberView, NewToken, PendingInvite } from '../../identity/views.ts'
import type { DomainView } from './views.ts'

const names = started(startNameServer)
let g: TestGateway
let post: MailServer
let account = ''
let token = ''
before(async () => {
  post = await startMailServer()
  g = await startGateway({
    env: {
      TOLLGATE_DNS_SERVERS: names.address,
      TOLLGATE_SMTP_URL: post.url,
      TOLLGATE_MAIL_FROM: 'Tollgate <hello@gateway.example>',
    },
  })
  account = (await g.account()).id
  token = (await g.operator<NewToken>('POST', `/accounts/${account}/tokens`, { name: 'd', scopes: ['scim'] })).data
    .token
})
after(async () => {
  await Promise.all([g.close(), post.close()])
})

const scim = async (method: string, path: string, body: object) => {
  const answer = await g.call(`/scim/v2${path}`, token, body, { method })
  return { status: answer.status, body: (await answer.json()) as { id: string; detail?: string } }
}
const prove = async (domain: string) =>
  (await g.operator<DomainView>('POST', `/accounts/${account}/domains`, { domain })).data

test('a domain is the account’s once its record is there, and then its directory creates people of it', async () => {
  assert.equal((await scim('POST', '/Users', { userName: 'ann@corp.example' })).status, 403)
  const wanted = await prove('Corp.example')
  assert.deepEqual([wanted.domain, wanted.record, wanted.provedAt], ['corp.example', '_tollgate.corp.example', null])
  names.records.set(wanted.record, 'tollgate-domain=of-another-account')
  assert.equal((await prove('corp.example')).provedAt, null)
  names.records.set(wanted.record, wanted.value)
  assert.notEqual((await prove('corp.example')).provedAt, null)
  const made = await scim('POST', '/Users', { userName: 'bea@corp.example' })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const moved = await scim('PUT', `/Users/${made.body.id}`, { userName: 'bea@foreign.example' })
  assert.equal(moved.status, 403, 'a changed address is checked as a new one')
  for (const domain of ['gmail.com', 'nonsense', 'co.uk'])
    assert.equal((await g.operator('POST', `/accounts/${account}/domains`, { domain })).status, 400)
  assert.equal((await g.operator('DELETE', `/accounts/${account}/domains?domain=corp.example`)).status, 200)
  assert.equal((await scim('POST', '/Users', { userName: 'cy@corp.example' })).status, 403)
})

test('an account proves so many domains and no more, and proves those again', async () => {
  const { id } = await g.account()
  const add = (domain: string) => g.operator<DomainView>('POST', `/accounts/${id}/domains`, { domain })
  const records = ['first.example', 'one-more.example'].map(async (domain) => {
    const { data } = await add(domain)
    names.records.set(data.record, data.value)
  })
  await Promise.all(records)
  assert.equal((await add('first.example')).status, 200)
  const others = `insert into account_domain (account_id, domain) select $1, 'd' || n || '.example' from generate_series(1, 99) n`
  await g.sql(others, [id])
  assert.deepEqual([(await add('one-more.example')).status, (await add('first.example')).status], [409, 200])
})

test('somebody of a foreign domain is invited once, joins by their mailbox, and no answer says whether they have a login', async () => {
  const email = 'dee@foreign.example'
  const [first, again] = [
    await scim('POST', '/Users', { userName: email }),
    await scim('POST', '/Users', { userName: email }),
  ]
  assert.deepEqual([first.status, first.body], [403, again.body])
  const pending = async () =>
    (await g.operator<{ items: PendingInvite[] }>('GET', `/accounts/${account}/invites`)).data.items.filter(
      (one) => one.email === email,
    )
  assert.equal((await pending()).length, 1)
  const mail = await post.newest(email)
  assert.deepEqual(await g.sql('select 1 from person where email = $1', [email]), [])
  const done = await asBrowser(g)('POST', `/invites/${mail.token}`, { password: 'seven tired otters juggle' })
  assert.equal(done.status, 200, done.text)
  const other = (await g.account()).id
  const theirs = (await g.operator<NewToken>('POST', `/accounts/${other}/tokens`, { name: 'd', scopes: ['scim'] })).data
    .token
  const known = await (await g.call('/scim/v2/Users', theirs, { userName: email })).json()
  assert.deepEqual(known, first.body, 'the answer for an address with a login')
  assert.equal((await scim('POST', '/Users', { userName: email })).status, 201, 'they are a member now')
  const members = (await g.operator<{ items: MemberView[] }>('GET', `/accounts/${account}/members`)).data.items
  assert.deepEqual(members.map((one) => one.email).includes(email), true)
})
