// An address is a fact only after its mailbox proved it: somebody prepares a login for a foreign address, and keeps
// nothing of it.
import type { NewKey } from '../src/admission/views.ts'
import { RIGHTS } from '../src/identity/roles.ts'
import type { InviteView, LinkView, NewToken, WhoView } from '../src/identity/views.ts'
import { type FreshDatabase, freshDatabase } from './database.ts'
import { startGateway, type TestGateway, WITH_EXTENSIONS } from './gateway.ts'
import { after, assert, before, beforeEach, none, pluck, test } from './kit.ts'
import { CLIENT_ID, CLIENT_SECRET, journey, startProvider, type TestProvider } from './login-provider.ts'
import { type MailServer, startMailServer } from './mail-server.ts'
import { asBrowser } from './operator-server.ts'

const PASSWORD = 'seven tired otters juggle'
const OWN = 'nine brisk herons whistle'
type Browser = ReturnType<typeof asBrowser>

/** With a mail server. */
let g: TestGateway
/** Without one, on the same database: links are returned, so that a login can be prepared. */
let silent: TestGateway
let post: MailServer
let corp: TestProvider
let database: FreshDatabase
let attacker: Browser
let account = ''
before(async () => {
  ;[database, post, corp] = await Promise.all([freshDatabase(), startMailServer(), startProvider()])
  const env = { TOLLGATE_OUTBOUND_ALLOW: corp.hostAndPort }
  const mailed = { TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'Tollgate <hello@gateway.example>' }
  g = await startGateway({ database, env: { ...env, ...mailed } })
  silent = await startGateway({ database, env })
  corp.open(g.url, 'corp')
  account = (await g.account()).id
  attacker = await join(silent, account, 'attacker@evil.example', 'owner')
})
after(async () => {
  await Promise.all([g.close(), silent.close(), corp.close(), post.close()])
  await database.drop()
})
beforeEach(() => sql('delete from login_attempt'))

const sql = <T extends object>(text: string, values: unknown[] = []) => g.sql<T>(text, values as never[])
const tokenOf = (link: string) => new URL(link).hash.slice('#token='.length)

async function open(link: string, password: string, at = g): Promise<Browser> {
  const browser = asBrowser(at)
  const { status, text } = await browser('POST', `/invites/${tokenOf(link)}`, { password })
  assert.equal(status, 200, text)
  return browser
}
async function join(at: TestGateway, id: string, email: string, role: string, by?: Browser): Promise<Browser> {
  const path = `/accounts/${id}/invites`
  const { data } = by
    ? await by<LinkView>('POST', path, { email, role })
    : await at.operator<LinkView>('POST', path, { email, role })
  return open(data.link, PASSWORD, at)
}

/** The attacker's login for somebody else's address, with everything that could lead back in. */
async function prepare(email: string) {
  const browser = await join(silent, account, email, 'admin', attacker)
  const me = (await browser<WhoView>('GET', '/session')).data.user.id
  const key = (await browser<NewKey>('POST', `/accounts/${account}/keys`, { name: 'k' })).data.key
  const token = (await browser<NewToken>('POST', `/accounts/${account}/tokens`, { name: 't', scopes: ['keys'] })).data
    .token
  const invite = await browser('POST', `/accounts/${account}/invites`, { email: `friend-${email}`, role: 'admin' })
  assert.equal(invite.status, 200, invite.text)
  await sql(`insert into identity (id, issuer, subject, person_id) values ($1, 'https://accounts.example', $1, $2)`, [
    `idn_${me}`,
    me,
  ])
  await sql(`insert into second_factor (id, person_id, kind, name, confirmed) values ($1, $2, 'totp', 'phone', true)`, [
    `fac_${me}`,
    me,
  ])
  await sql(`insert into recovery_code (person_id, digest) values ($1, 'x')`, [me])
  await sql(
    `insert into login_flow (digest, kind, person_id, data, expires_at) values ($2::bytea, 'login-link', $1, '{}', now() + interval '1 hour')`,
    [me, Buffer.from(me)],
  )
  return { browser, me, key, token, email }
}

/** Nothing of it opens anything, and the owner of the mailbox is the person now. */
async function requireNothingLeft({ browser, me, key, token, email }: Awaited<ReturnType<typeof prepare>>) {
  const left = await sql<Record<string, boolean>>(
    `select exists (select 1 from identity where person_id = $1 and issuer = 'https://accounts.example') as identity,
       exists (select 1 from second_factor where person_id = $1) as factor, exists (select 1 from recovery_code where person_id = $1) as code,
       exists (select 1 from login_flow where person_id = $1) as flow, exists (select 1 from invite where made_by = $2) as link,
       exists (select 1 from membership where person_id = $1 and account_id = $3) as membership,
       exists (select 1 from person where id = $1 and email_verified_at is null) as unproved`,
    [me, email, account],
  )
  none(Object.entries(left[0] ?? {}), ([, is]) => is)
  assert.equal((await browser('GET', '/session')).status, 401)
  assert.equal((await asBrowser(g)('POST', '/login', { email, password: PASSWORD })).status, 401)
  assert.equal((await g.call('/v1/models', key)).status, 401)
  assert.equal((await g.call(`/admin/v1/accounts/${account}/keys`, token)).status, 401)
}

async function comeBy(subject: string): Promise<Browser> {
  corp.visitor = subject
  const browser = asBrowser(g)
  const { data } = await browser<{ redirect: string }>('POST', '/login/sso', { provider: 'corp' })
  const back = await journey(data.redirect, corp.issuer)
  const done = await browser('POST', '/login/sso/finish', { provider: 'corp', parameters: String(back.searchParams) })
  assert.equal(done.status, 200, done.text)
  return browser
}
async function mapDomain(id: string, domain: string, groups: object[] = []) {
  const provider = { name: 'Corp', issuer: corp.issuer, clientId: CLIENT_ID, secret: CLIENT_SECRET, groups }
  const domains = [{ domain, account: id, role: 'member' }]
  const put = await g.operator('PUT', '/login-providers/corp', { ...provider, domains })
  assert.equal(put.status, 200, JSON.stringify(put.data))
}

const PROOFS: Record<string, (email: string) => Promise<unknown>> = {
  'a reset by mail': async (email) => {
    assert.equal((await asBrowser(g)('POST', '/public/password', { email })).status, 200)
    return open(`${g.url}/x#token=${(await post.newest(email)).token}`, OWN)
  },
  'a sign-up mail to a known address': async (email) => {
    assert.equal((await g.operator('PUT', '/sign-up', { mode: 'open' })).status, 200)
    assert.equal((await asBrowser(g)('POST', '/public/sign-up', { email })).status, 200)
    return open(`${g.url}/x#token=${(await post.newest(email)).token}`, OWN)
  },
  'a mailed invitation to another account': async (email) => {
    const { id } = await g.account()
    const owner = await join(silent, id, `owner-of-${email}`, 'owner')
    const there = Object.assign(asBrowser(g), { cookie: owner.cookie })
    const invited = await there<{ link: null }>('POST', `/accounts/${id}/invites`, { email, role: 'member' })
    assert.deepEqual([invited.status, invited.data], [200, { link: null }], invited.text)
    return open(`${g.url}/x#token=${(await post.newest(email)).token}`, OWN)
  },
  'an operator’s password link': async (email) =>
    open((await g.operator<LinkView>('POST', '/password-link', { email })).data.link, OWN),
  'an operator’s invitation to run the gateway': async (email) =>
    open((await g.operator<LinkView>('POST', '/operator-invites', { email })).data.link, OWN),
  'the login provider of the domain': async (email) => {
    const { id } = await g.account()
    await mapDomain(id, email.split('@')[1] ?? '')
    corp.people.set(email, { email, email_verified: true })
    const { data } = await (await comeBy(email))<WhoView>('GET', '/session')
    assert.deepEqual(pluck(data.accounts, 'id'), [id])
  },
  'the directory of the domain': async (email) => {
    const { id } = await g.account()
    await mapDomain(id, email.split('@')[1] ?? '')
    const { data } = await g.operator<NewToken>('POST', `/accounts/${id}/tokens`, { name: 'd', scopes: ['scim'] })
    const made = await g.call('/scim/v2/Users', data.token, { userName: email })
    assert.equal(made.status, 201, await made.text())
  },
}

for (const [proof, prove] of Object.entries(PROOFS))
  test(
    `${proof} removes everything that was made before the mailbox was proved`,
    /domain|sign-up/.test(proof) ? WITH_EXTENSIONS : {},
    async () => {
      const prepared = await prepare(`victim@proof-${Object.keys(PROOFS).indexOf(proof)}.example`)
      await prove(prepared.email)
      await requireNothingLeft(prepared)
    },
  )

/**
 * Somebody whose mailbox is proved and who has no role, and a token that may make links for them: one was opened, by
 * which a second factor was added, and one is kept.
 */
async function lent(way: 'login-links' | 'password-links', email: string, more: readonly string[] = []) {
  const { data: small } = await g.operator<NewToken>('POST', '/tokens', { name: way, scopes: [way, ...more] })
  const follow = async (link: string) => {
    const browser = asBrowser(g)
    const token = tokenOf(link)
    const { status } =
      way === 'login-links'
        ? await browser('POST', '/login/link', { token })
        : await browser('POST', `/invites/${token}`, { password: PASSWORD })
    return { browser, status }
  }
  const linkOf = async () => {
    const path = way === 'login-links' ? '/login-links' : '/password-link'
    const answer = await g.call(`/admin/v1${path}`, small.token, { email })
    return ((await answer.json()) as { data: LinkView }).data.link
  }
  const [{ id: me } = { id: '' }] = await sql<{ id: string }>('select id from person where email = $1', [email])
  const { browser, status } = await follow(await linkOf())
  assert.equal(status, 200)
  await sql(
    `insert into second_factor (id, person_id, kind, name, confirmed) values ($1, $2, 'totp', 'theirs', true)`,
    [`fac_${me}`, me],
  )
  const kept = await linkOf()
  const opensKept = async () => (await follow(kept)).status === 200
  return { browser, me, opensKept }
}

async function provedPerson(email: string): Promise<void> {
  await open((await g.operator<LinkView>('POST', '/operator-invites', { email })).data.link, OWN)
  await sql('update person set operator_role = null where email = $1', [email])
}
const factorsOf = (person: string) => sql('select 1 from second_factor where person_id = $1', [person])

for (const way of ['login-links', 'password-links'] as const) {
  test(`a token with only ${way} makes no member of an account: a mailed invitation ends what it had, and a kept link opens nothing`, async () => {
    const email = `member@${way}.example`
    await provedPerson(email)
    const { id } = await g.account()
    const { browser, me, opensKept } = await lent(way, email)
    const invited = await g.operator<LinkView>('POST', `/accounts/${id}/invites`, { email, role: 'owner' })
    assert.equal((await browser('POST', `/invites/${tokenOf(invited.data.link)}/join`)).status, 403)
    const person = await open(invited.data.link, 'eleven calm badgers hum')
    assert.deepEqual(pluck((await person<WhoView>('GET', '/session')).data.accounts, 'id'), [id])
    assert.deepEqual(await factorsOf(me), [])
    assert.equal((await browser('GET', '/session')).status, 401)
    assert.equal(await opensKept(), false)
    assert.equal((await asBrowser(g)('POST', '/login', { email, password: PASSWORD })).status, 401)
  })

  test(`a token with ${way} and the rights of a member gets no more by whom it had a link for`, async () => {
    const email = `raised@${way}.example`
    const { id } = await g.account()
    await join(g, id, email, 'member')
    const { browser, me, opensKept } = await lent(
      way,
      email,
      RIGHTS.filter(({ roles }) => roles.has('member')).map(({ permission }) => permission),
    )
    const raise = () => g.operator('PATCH', `/accounts/${id}/members/${me}`, { role: 'admin' })
    assert.equal((await raise()).status, 409)
    await open((await g.operator<LinkView>('POST', '/password-link', { email })).data.link, OWN)
    assert.equal((await browser('GET', '/session')).status, 401)
    assert.deepEqual([(await raise()).status, await opensKept()], [200, false])
  })

  test(`a directory that takes somebody back ends what a token with only ${way} had`, WITH_EXTENSIONS, async () => {
    const { id } = await g.account()
    await mapDomain(id, `directory-${way}.example`)
    const { data } = await g.operator<NewToken>('POST', `/accounts/${id}/tokens`, { name: 'd', scopes: ['scim'] })
    const email = `worker@directory-${way}.example`
    const made = await g.call('/scim/v2/Users', data.token, { userName: email })
    const { id: worker } = (await made.json()) as { id: string }
    const setActive = async (active: boolean) => {
      const body = { userName: email, active }
      const put = await g.call(`/scim/v2/Users/${worker}`, data.token, body, { method: 'PUT' })
      assert.equal(put.status, 200, await put.text())
    }
    await setActive(false)
    const { browser, me, opensKept } = await lent(way, email)
    await setActive(true)
    assert.equal((await browser('GET', '/session')).status, 401)
    assert.deepEqual([await factorsOf(me), await opensKept()], [[], false])
    const [member] = await sql<{ role: string }>('select role from membership where person_id = $1', [worker])
    assert.deepEqual(member, { role: 'member' })
  })

  test(`a token with only ${way} makes no operator: whom it had a link for proves the mailbox again first`, async () => {
    const email = `later@${way}.example`
    await provedPerson(email)
    const { browser, me, opensKept } = await lent(way, email)
    const { data } = await g.operator<LinkView>('POST', '/operator-invites', { email })
    assert.equal((await browser('POST', `/invites/${tokenOf(data.link)}/join`)).status, 403)
    const reset = await g.operator<LinkView>('POST', '/password-link', { email })
    const person = await open(reset.data.link, 'eleven calm badgers hum')
    assert.deepEqual(await factorsOf(me), [])
    assert.equal((await browser('GET', '/session')).status, 401)
    const again = await g.operator<LinkView>('POST', '/operator-invites', { email })
    const joined = await person('POST', `/invites/${tokenOf(again.data.link)}/join`)
    assert.equal(joined.status, 200, joined.text)
    assert.equal(await opensKept(), false)
  })
}

test('where mail is set up, an account role does not see the link that it sends', async () => {
  const there = Object.assign(asBrowser(g), { cookie: attacker.cookie })
  const email = 'stranger@unseen.example'
  const invited = await there<{ link: string | null }>('POST', `/accounts/${account}/invites`, {
    email,
    role: 'member',
  })
  assert.deepEqual(invited.data, { link: null })
  const mail = await post.newest(email)
  assert.doesNotMatch(JSON.stringify(invited), new RegExp(mail.token ?? 'no token'))
  await open(`${g.url}/x#token=${mail.token}`, OWN)
  const [row] = await sql<{ proved: boolean }>(
    'select email_verified_at is not null as proved from person where email = $1',
    [email],
  )
  assert.deepEqual(row, { proved: true })
})

test(
  'an unproved person becomes no operator, by a link or a group, and joins nothing by domain',
  WITH_EXTENSIONS,
  async () => {
    const { browser, me, email } = await prepare('victim@unproved.example')
    await sql('delete from second_factor where person_id = $1', [me])
    const { data } = await g.operator<LinkView>('POST', '/operator-invites', { email })
    assert.equal((await browser('POST', `/invites/${tokenOf(data.link)}/join`)).status, 403)
    const { id } = await g.account()
    await mapDomain(id, 'corp-groups.example', [{ group: 'staff', account: null, role: 'support' }])
    corp.people.set('mallory', { email: 'mallory@corp-groups.example', email_verified: true, groups: ['staff'] })
    await sql(`update identity set issuer = $2, subject = 'mallory' where person_id = $1`, [me, corp.issuer])
    const session = (await (await comeBy('mallory'))<WhoView>('GET', '/session')).data
    assert.deepEqual([session.user.email, session.user.role], [email, 'user'])
    assert.ok(!session.accounts.some((one) => one.id === id))
  },
)

test('a reset by mail lists the other ways in and ends them by choice, but no second factor', async () => {
  const person = await join(silent, account, 'proved@reset.example', 'member')
  const me = (await person<WhoView>('GET', '/session')).data.user.id
  await sql(
    `insert into identity (id, issuer, subject, person_id, email) values ('idn_r', 'https://accounts.example', 'r', $1, 'r@mail.example')`,
    [me],
  )
  await sql(
    `insert into second_factor (id, person_id, kind, name, confirmed) values ('fac_r', $1, 'totp', 'phone', true)`,
    [me],
  )
  assert.equal((await asBrowser(g)('POST', '/public/password', { email: 'proved@reset.example' })).status, 200)
  const { token } = await post.newest('proved@reset.example')
  const { data } = await asBrowser(g)<InviteView>('GET', `/invites/${token}`)
  assert.deepEqual(data.others, ['https://accounts.example (r@mail.example)', 'Authenticator app (phone)'])
  const done = await asBrowser(g)('POST', `/invites/${token}`, { password: OWN, endOthers: true })
  assert.deepEqual([done.status, done.data], [200, { signedIn: false, needs: ['totp', 'recovery'] }])
  assert.deepEqual(await sql('select 1 from identity where person_id = $1', [me]), [])
  assert.equal((await sql('select 1 from second_factor where person_id = $1', [me])).length, 1)
})

test('an invitation accepted with a bad password answers alike, whether the address has a login or not', async () => {
  await join(g, account, 'has-a-login@same.example', 'member')
  const answers = []
  for (const email of ['has-a-login@same.example', 'has-none@same.example']) {
    const { id } = await g.account()
    const { data } = await silent.operator<LinkView>('POST', `/accounts/${id}/invites`, { email, role: 'member' })
    const { status, text } = await asBrowser(silent)('POST', `/invites/${tokenOf(data.link)}`, {
      password: 'password1234',
    })
    answers.push([status, (JSON.parse(text) as { error: unknown }).error])
  }
  assert.deepEqual(answers[0], answers[1])
})
