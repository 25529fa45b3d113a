// Single sign-on against real providers: who comes in, who does not, and what somebody tries who would like to be
// another person.
import { WAITING_FOR_LOCKS } from '../../../test/gateway.ts'
import { after, assert, before, beforeEach, pluck, test, until, words } from '../../../test/kit.ts'
import {
  CLIENT_ID,
  CLIENT_SECRET,
  journey,
  type ScriptedProvider,
  startProvider,
  startScriptedProvider,
  type TestProvider,
} from '../../../test/login-provider.ts'
import {
  type Answer,
  asBrowser,
  asOperator,
  type OperatorServer,
  startOperatorServer,
  tokenOf,
} from '../../../test/operator-server.ts'
import type { LoginStep, SecurityView, SessionView, WhoView } from '../../identity/views.ts'
import type { LoginProvider, SsoStep } from './views.ts'

const PASSWORD = 'seven tired otters juggle'
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

type Browser = ReturnType<typeof asBrowser>

let server: OperatorServer
let corp: TestProvider
let bad: ScriptedProvider
let account = ''
let other = ''

before(async () => {
  ;[corp, bad] = await Promise.all([startProvider(), startScriptedProvider()])
  server = await startOperatorServer({
    outboundAllow: [corp.hostAndPort, bad.hostAndPort],
    trustedProxies: ['127.0.0.1'],
  })
  corp.open(server.url, 'corp')
  const make = async (name: string) =>
    (await asOperator(server)<{ id: string }>('POST', '/accounts', { name, credits: '1' })).data.id
  account = await make('Corp')
  other = await make('Other')
  await putCorp()
  await put('bad', { name: 'Bad', issuer: bad.issuer })
})
after(async () => {
  await server.close()
  await Promise.all([corp.close(), bad.close()])
})
beforeEach(async () => {
  bad.claims = {}
  bad.forged = false
  for (const name of Object.keys(bad.metadata)) delete bad.metadata[name]
  await server.sql('delete from login_attempt')
})

async function put(id: string, input: object): Promise<LoginProvider> {
  const body = { clientId: CLIENT_ID, secret: CLIENT_SECRET, ...input }
  const answer = await asOperator(server)<LoginProvider>('PUT', `/login-providers/${id}`, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.data
}
const putCorp = (more: object = {}) =>
  put('corp', {
    name: 'Corp',
    issuer: corp.issuer,
    domains: [{ domain: 'corp.example', account, role: 'member' }],
    groups: [
      { group: 'admins', account: other, role: 'admin' },
      { group: 'support', account: null, role: 'support' },
    ],
    ...more,
  })

const begin = async (browser: Browser, provider: string) => {
  const answer = await browser<{ redirect: string }>('POST', '/login/sso', { provider })
  assert.equal(answer.status, 200, answer.text)
  return new URL(answer.data.redirect)
}
const finish = (browser: Browser, provider: string, parameters: URLSearchParams | string) =>
  browser<SsoStep>('POST', '/login/sso/finish', { provider, parameters: String(parameters) })

/** Through the real provider, as this subject. */
async function comeBy(subject: string, browser: Browser = asBrowser(server)): Promise<Answer<SsoStep>> {
  corp.visitor = subject
  const back = await journey((await begin(browser, 'corp')).href, corp.issuer)
  return finish(browser, 'corp', back.searchParams)
}
/** Through the provider that follows a script. */
async function comeBadly(claims: Record<string, unknown>, more: Record<string, string> = {}) {
  const browser = asBrowser(server)
  const asked = (await begin(browser, 'bad')).searchParams
  bad.claims = { nonce: asked.get('nonce'), email: 'x@bad.example', email_verified: true, ...claims }
  const answer = await finish(browser, 'bad', new URLSearchParams({ code: 'c', state: asked.get('state')!, ...more }))
  return { answer, browser }
}
const who = async (browser: Browser) => (await browser<WhoView>('GET', '/session')).data

test('somebody who did not exist joins the account of their verified domain, and has no password', async () => {
  corp.people.set('mara', { email: 'Mara@Corp.example', email_verified: true })
  const browser = asBrowser(server)
  const answer = await comeBy('mara', browser)
  assert.deepEqual([answer.status, answer.data], [200, { signedIn: true, needs: [], result: 'signed-in' }], answer.text)
  const me = await who(browser)
  assert.equal(me.user.email, 'mara@corp.example')
  assert.deepEqual(me.accounts, [{ id: account, name: 'Corp', role: 'member' }])
  const { data } = await browser<SecurityView>('GET', '/security')
  assert.equal(data.hasPassword, false)
  assert.deepEqual(pluck(data.identities, 'provider', 'email'), [['corp', 'mara@corp.example']])
  const sessions = await browser<{ items: SessionView[] }>('GET', '/sessions')
  assert.deepEqual(pluck(sessions.data.items, 'method', 'ip', 'current'), [['sso', '127.0.0.1', true]])
  // The same person again, not a second one.
  const again = asBrowser(server)
  assert.equal((await comeBy('mara', again)).status, 200)
  assert.equal((await who(again)).user.id, me.user.id)
})

test('an unverified email address joins nothing and makes nobody', async () => {
  for (const [subject, claims] of Object.entries({
    u1: { email: 'u1@corp.example', email_verified: false },
    u2: { email: 'u2@corp.example' },
    u3: { email: 'u3@corp.example', email_verified: false, groups: ['admins'] },
    u4: {},
  })) {
    corp.people.set(subject, claims)
    const answer = await comeBy(subject)
    assert.equal(answer.status, 403, subject)
    assert.match(answer.error!.message, /not confirm that your email address is verified/)
  }
  // A text is not the truth, and what only Entra ID may say does not help others.
  for (const claims of [{ email_verified: 'true' }, { email_verified: 1 }, { email_verified: false, xms_edov: true }])
    assert.equal((await comeBadly({ ...claims, email: 'u5@corp.example' })).answer.status, 403)
  assert.equal((await server.sql(`select 1 from person where email like 'u_@corp.example'`)).length, 0)
})

test('somebody whom a directory made comes by the provider of their domain, and not once the directory has ended them', async () => {
  const sql = (text: string, values: string[] = []) => server.database.query({ text }, values)
  await sql(`insert into person (id, email) values ('usr_dir', 'dir@corp.example')`)
  corp.people.set('dir', { email: 'dir@corp.example', email_verified: true })
  const browser = asBrowser(server)
  assert.equal((await comeBy('dir', browser)).status, 200)
  const { user, accounts } = await who(browser)
  assert.deepEqual([user.id, accounts.map(({ id }) => id)], ['usr_dir', [account]])
  await sql(`delete from membership where person_id = 'usr_dir'`)
  await sql(
    `insert into scim_user (scope, person_id, user_name, active) values ($1, 'usr_dir', 'dir@corp.example', false)`,
    [account],
  )
  await comeBy('dir', browser)
  assert.deepEqual((await who(browser)).accounts, [])
})

test('a domain that takes single sign-on only takes that of its own provider', async () => {
  const browser = asBrowser(server)
  corp.people.set('olga', { email: 'olga@corp.example', email_verified: true })
  assert.equal((await comeBy('olga', browser)).status, 200)
  const { user } = await who(browser)
  // She has connected a login elsewhere, by which she could come before.
  const text = `insert into identity (id, issuer, subject, person_id, provider_id) values ('idn_olga', $1, 'olga-elsewhere', $2, 'bad')`
  await server.database.query({ text }, [bad.issuer, user.id])
  assert.equal((await comeBadly({ sub: 'olga-elsewhere' })).answer.status, 200)
  await putCorp({ domains: [{ domain: 'corp.example', account, role: 'member', ssoOnly: true }] })
  try {
    assert.equal((await comeBadly({ sub: 'olga-elsewhere' })).answer.status, 403)
    assert.equal((await comeBy('olga')).status, 200)
  } finally {
    await putCorp()
  }
})

test('groups decide memberships and roles at each login; what was given by hand stays', async () => {
  const browser = asBrowser(server)
  const accounts = async () => {
    assert.equal((await comeBy('gus', browser)).status, 200)
    const { user, accounts: held } = await who(browser)
    return [user.role, ...held.map(({ name, role }) => `${name} ${role}`)]
  }
  const gus = { email: 'gus@elsewhere.example', email_verified: true }
  corp.people.set('gus', gus)
  assert.equal((await comeBy('gus')).status, 403, 'no domain and no group lets this person in')
  corp.people.set('gus', { ...gus, groups: ['admins', 'support'] })
  assert.deepEqual(await accounts(), ['support', 'Other admin'])
  corp.people.set('gus', { ...gus, groups: ['admins'] })
  assert.deepEqual(await accounts(), ['user', 'Other admin'])
  corp.people.set('gus', { ...gus, groups: ['nobodies'] })
  assert.deepEqual(await accounts(), ['user'])

  const { user } = await who(browser)
  await server.sql(`insert into membership (account_id, person_id, role) values ($1, $2, 'viewer')`, [other, user.id])
  corp.people.set('gus', { ...gus, groups: ['admins'] })
  assert.deepEqual(await accounts(), ['user', 'Other viewer'])
  corp.people.set('gus', gus)
  assert.deepEqual(await accounts(), ['user', 'Other viewer'])
})

test('the last owner and the last operator stay so when their groups are gone', async () => {
  const made = await asOperator(server)<{ id: string }>('POST', '/accounts', { name: 'Ownerless', credits: '1' })
  await putCorp({
    groups: [
      { group: 'owners', account: made.data.id, role: 'owner' },
      { group: 'operators', account: null, role: 'operator' },
    ],
  })
  try {
    const otto = { email: 'otto@elsewhere.example', email_verified: true }
    const come = async (groups: string[]) => {
      corp.people.set('otto', { ...otto, groups })
      const browser = asBrowser(server)
      assert.equal((await comeBy('otto', browser)).status, 200)
      const { user, accounts } = await who(browser)
      return [user.role, ...accounts.map(({ name, role }) => `${name} ${role}`)]
    }
    const [before] = await server.sql<{ count: number }>(
      `select count(*)::int as count from person where operator_role = 'operator'`,
    )
    assert.equal(before?.count, 0, 'nobody else is an operator here')
    assert.deepEqual(await come(['owners', 'operators']), ['operator', 'Ownerless owner'])
    assert.deepEqual(await come([]), ['operator', 'Ownerless owner'])
    await server.sql(
      `insert into person (id, email, operator_role) values ('usr_next', 'next@elsewhere.example', 'operator')`,
    )
    await server.sql(`insert into membership (account_id, person_id, role) values ($1, 'usr_next', 'owner')`, [
      made.data.id,
    ])
    assert.deepEqual(await come([]), ['user'], 'now there are others')
    await server.sql(`delete from person where id = 'usr_next'`)
  } finally {
    await putCorp()
  }
})

test('neither a second provider nor another email address at the provider makes anybody somebody else', async () => {
  corp.people.set('victor', { email: 'victor@corp.example', email_verified: true })
  const victor = asBrowser(server)
  assert.equal((await comeBy('victor', victor)).status, 200)
  const { user } = await who(victor)

  // Another provider vouches for the same address, even as verified.
  const second = await comeBadly({ sub: 'attacker', email: 'victor@corp.example' })
  assert.equal(second.answer.status, 403)
  assert.match(second.answer.error!.message, /Another login provider is responsible/)
  assert.equal((await second.browser('GET', '/session')).status, 401)

  // The attacker is known here, and takes the victim's address at their provider.
  corp.people.set('mallory', { email: 'mallory@corp.example', email_verified: true })
  const mallory = asBrowser(server)
  assert.equal((await comeBy('mallory', mallory)).status, 200)
  corp.people.set('mallory', { email: 'victor@corp.example', email_verified: true })
  assert.equal((await comeBy('mallory', mallory)).status, 200)
  assert.equal((await who(mallory)).user.email, 'mallory@corp.example')
  assert.notEqual((await who(mallory)).user.id, user.id)

  // The domain of one provider does not let in whoever another one vouches for.
  const stranger = await comeBadly({ sub: 'stranger', email: 'stranger@corp.example' })
  assert.equal(stranger.answer.status, 403)

  // Nobody connects a login that belongs to somebody else.
  const begun = await mallory<{ redirect: string }>('POST', '/identities', { provider: 'corp' })
  corp.visitor = 'victor'
  const back = await journey(begun.data.redirect, corp.issuer)
  assert.equal((await finish(mallory, 'corp', back.searchParams)).status, 409)
})

test('a person with a password connects the provider’s login by proving who they are', async () => {
  const invited = await asOperator(server)<{ link: string }>('POST', `/accounts/${other}/invites`, {
    email: 'paula@corp.example',
    role: 'member',
  })
  const first = asBrowser(server)
  const link = tokenOf(invited.data.link)
  assert.equal((await first('POST', `/invites/${link}`, { password: PASSWORD })).status, 200)
  const { user } = await who(first)

  corp.people.set('paula', { email: 'paula@corp.example', email_verified: true })
  const browser = asBrowser(server)
  const asked = await comeBy('paula', browser)
  assert.deepEqual(asked.data, { signedIn: false, needs: ['password'], result: 'password' }, asked.text)
  assert.equal((await browser('GET', '/session')).status, 401, 'the address alone opens nothing')
  assert.equal((await browser('POST', '/login/connect', { password: 'not the right one' })).status, 401)
  assert.equal(
    (await asBrowser(server)('POST', '/login/connect', { password: PASSWORD })).status,
    403,
    'another browser',
  )
  assert.equal((await browser<LoginStep>('POST', '/login/connect', { password: PASSWORD })).data.signedIn, true)
  assert.equal((await who(browser)).user.id, user.id)
  assert.equal((await browser('POST', '/login/connect', { password: PASSWORD })).status, 403, 'once')
  const again = asBrowser(server)
  assert.deepEqual((await comeBy('paula', again)).data.signedIn, true)
  assert.equal((await who(again)).user.id, user.id)

  // From the profile, somebody who is signed in connects a second one, and takes it away again.
  const begun = await again<{ redirect: string }>('POST', '/identities', { provider: 'bad' })
  const parameters = new URL(begun.data.redirect).searchParams
  bad.claims = { nonce: parameters.get('nonce'), sub: 'paula-too' }
  const query = new URLSearchParams({ code: 'c', state: parameters.get('state')! })
  assert.equal((await finish(asBrowser(server), 'bad', query)).status, 403, 'not without the session that asked')
  assert.equal((await finish(again, 'bad', query)).data.result, 'connected')
  const { identities } = (await again<SecurityView>('GET', '/security')).data
  assert.equal(identities.length, 2)
  assert.equal((await again('DELETE', `/identities/${identities[1]!.id}`)).status, 200)
})

test('whose session ends while they connect a login, as when their mailbox is proved, connects nothing', async () => {
  const sql = (text: string, values: string[] = []) => server.database.query({ text }, values)
  const email = 'racer@free.example'
  const invited = await asOperator(server)<{ link: string }>('POST', `/accounts/${other}/invites`, {
    email,
    role: 'member',
  })
  const browser = asBrowser(server)
  await browser('POST', `/invites/${tokenOf(invited.data.link)}`, { password: PASSWORD })
  const { user } = await who(browser)
  const begun = await browser<{ redirect: string }>('POST', '/identities', { provider: 'bad' })
  const asked = new URL(begun.data.redirect).searchParams
  bad.claims = { nonce: asked.get('nonce'), sub: 'racer' }
  const { connecting } = await server.database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from person where id = $1 for update' }, [user.id])
    const connecting = finish(browser, 'bad', new URLSearchParams({ code: 'c', state: asked.get('state')! }))
    await until(async () => (await sql(WAITING_FOR_LOCKS)).length > 0)
    await tx.query({ text: 'delete from session where person_id = $1' }, [user.id])
    return { connecting }
  })
  assert.equal((await connecting).status, 401)
  assert.deepEqual(await sql('select 1 from identity where person_id = $1', [user.id]), [])
})

test('an answer counts once, in the browser that asked, for the provider and the journey that it is of', async () => {
  const fresh = async () => {
    const browser = asBrowser(server)
    corp.visitor = 'mara'
    const back = await journey((await begin(browser, 'corp')).href, corp.issuer)
    return { browser, parameters: back.searchParams }
  }
  // Replay.
  const once = await fresh()
  const { cookie } = once.browser
  assert.equal((await finish(once.browser, 'corp', once.parameters)).status, 200)
  once.browser.cookie = cookie
  const replayed = await finish(once.browser, 'corp', once.parameters)
  assert.equal(replayed.status, 403)
  assert.match(replayed.error!.message, /finished already/)
  // CSRF: the attacker's answer in the victim's browser, which asked for nothing, or for something else.
  const theirs = await fresh()
  assert.equal((await finish(asBrowser(server), 'corp', theirs.parameters)).status, 403)
  const victim = await fresh()
  assert.equal((await finish(victim.browser, 'corp', theirs.parameters)).status, 403)
  // Code injection (RFC 9700, 4.5): a stolen code with the state of one's own journey. PKCE binds it to the other one.
  const stolen = await fresh()
  const own = await fresh()
  const mixed = new URLSearchParams(own.parameters)
  mixed.set('code', stolen.parameters.get('code')!)
  assert.equal((await finish(own.browser, 'corp', mixed)).status, 403)
  // Mix-up (RFC 9207): an answer of one provider given for another's, by its address or by its `iss`.
  const mixup = await fresh()
  assert.equal(mixup.parameters.get('iss'), corp.issuer)
  assert.equal((await finish(mixup.browser, 'bad', mixup.parameters)).status, 403)
  for (const iss of [bad.issuer, null]) {
    const { browser, parameters } = await fresh()
    if (iss === null) parameters.delete('iss')
    else parameters.set('iss', iss)
    assert.equal((await finish(browser, 'corp', parameters)).status, 403, `iss ${iss}`)
  }
  // Another page cannot begin or finish it.
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  assert.equal((await asBrowser(server)('POST', '/login/sso', { provider: 'corp' }, foreign)).status, 403)
  const last = await fresh()
  const body = { provider: 'corp', parameters: String(last.parameters) }
  assert.equal((await last.browser('POST', '/login/sso/finish', body, foreign)).status, 403)
  // Too late.
  const late = await fresh()
  await server.sql(`update login_flow set expires_at = now() - interval '1 second'`)
  assert.equal((await finish(late.browser, 'corp', late.parameters)).status, 403)
})

test('a token of another audience, nonce, issuer, time or signature is refused', async () => {
  await put('bad', { name: 'Bad', issuer: bad.issuer, groups: [{ group: 'in', account: other, role: 'viewer' }] })
  const now = Math.floor(Date.now() / 1000)
  const good = { groups: ['in'], sub: 'right', email: 'right@bad.example' }
  const wrong: ReadonlyArray<[name: string, claims: Record<string, unknown>]> = [
    ['audience', { aud: 'another-client' }],
    ['audience of several without being the authorized party', { aud: [CLIENT_ID, 'x'], azp: 'x' }],
    ['nonce', { nonce: 'of another journey' }],
    ['no nonce', { nonce: undefined }],
    ['issuer', { iss: corp.issuer }],
    ['expired, beyond the tolerance for clocks', { iat: now - 400, exp: now - 45 }],
    ['not valid yet, beyond the tolerance', { nbf: now + 90 }],
    ['no subject', { sub: undefined }],
  ]
  for (const [name, claims] of wrong) {
    const { answer, browser } = await comeBadly({ ...good, ...claims })
    assert.equal(answer.status, 403, `${name}: ${answer.text}`)
    assert.ok(!browser.cookie.includes('tg_s='), name)
  }
  bad.forged = true
  assert.equal((await comeBadly(good)).answer.status, 403, 'signature')
  bad.forged = false
  assert.equal((await comeBadly(good, { error: 'access_denied' })).answer.status, 403)
  // The clocks may differ a little.
  assert.equal((await comeBadly({ ...good, iat: now + 10, exp: now - 10 })).answer.status, 200)
  const sent = bad.exchanged.at(-1)!
  assert.match(sent.get('code_verifier') ?? '', /^[\w-]{43}$/)
  // With the `iss` parameter announced, an answer without it is refused.
  bad.metadata.authorization_response_iss_parameter_supported = true
  await put('bad', { name: 'Bad again', issuer: bad.issuer, groups: [{ group: 'in', account: other, role: 'viewer' }] })
  assert.equal((await comeBadly(good)).answer.status, 403)
  assert.equal((await comeBadly(good, { iss: bad.issuer })).answer.status, 200)
})

test('of a domain that takes single sign-on only, nobody comes in any other way but by the operator’s link', async () => {
  const invite = async (email: string) =>
    tokenOf(
      (await asOperator(server)<{ link: string }>('POST', `/accounts/${other}/invites`, { email, role: 'member' })).data
        .link,
    )
  const only = { domain: 'only.example', account: null, role: null, ssoOnly: true }
  const before = await invite('ida@only.example')
  const ida = asBrowser(server)
  assert.equal((await ida('POST', `/invites/${before}`, { password: PASSWORD })).status, 200)
  await putCorp({ domains: [only, { domain: 'corp.example', account, role: 'member' }] })

  const login = await asBrowser(server)('POST', '/login', { email: 'ida@only.example', password: PASSWORD })
  assert.equal(login.status, 403)
  assert.match(login.error!.message, /single sign-on only/)
  const late = await invite('late@only.example')
  assert.equal((await asBrowser(server)('POST', `/invites/${late}`, { password: PASSWORD })).status, 403)
  const reset = await asOperator(server)<{ link: string }>('POST', '/password-link', { email: 'ida@only.example' })
  const token = tokenOf(reset.data.link)
  assert.equal((await asBrowser(server)('POST', `/invites/${token}`, { password: PASSWORD })).status, 403)

  // By the provider, once the login is connected.
  corp.people.set('ida', { email: 'ida@only.example', email_verified: true })
  const browser = asBrowser(server)
  assert.deepEqual((await comeBy('ida', browser)).data.needs, ['password'])
  assert.equal((await browser('POST', '/login/connect', { password: PASSWORD })).status, 200)
  assert.equal((await who(browser)).user.email, 'ida@only.example')

  // The provider is down: the operator of the machine makes a link that works once.
  const back = await asOperator(server)<{ link: string }>('POST', '/login-links', { email: 'ida@only.example' })
  const [place, code] = back.data.link.split('#token=')
  assert.equal(place, `${server.url}/console/login`)
  const inside = asBrowser(server)
  assert.equal((await inside<LoginStep>('POST', '/login/link', { token: code })).data.signedIn, true)
  assert.equal((await who(inside)).user.email, 'ida@only.example')
  assert.equal((await asBrowser(server)('POST', '/login/link', { token: code })).status, 403)
  assert.equal((await asOperator(server)('POST', '/login-links', { email: 'nobody@only.example' })).status, 404)
  await putCorp()
})

test('a provider ends its sessions by a signed token, once; nobody else does', async () => {
  const browser = asBrowser(server)
  const bystander = asBrowser(server)
  corp.people.set('lena', { email: 'lena@corp.example', email_verified: true })
  assert.equal((await comeBy('lena', browser)).status, 200)
  assert.equal((await comeBy('lena', bystander)).status, 200)
  const { user } = await who(browser)
  const rows = await server.sql<{ sid: string }>('select sid from session where person_id = $1 order by created_at', [
    user.id,
  ])
  assert.equal(rows.filter(({ sid }) => sid).length, 2, 'the provider’s own ids of its sessions are known')
  await corp.signOut('lena', rows[0]!.sid)
  assert.equal((await browser('GET', '/session')).status, 401)
  assert.equal((await bystander('GET', '/session')).status, 200)

  const logged = { groups: ['in'], sub: 'logged', email: 'logged@bad.example' }
  const { browser: victim, answer } = await comeBadly(logged, { iss: bad.issuer })
  assert.equal(answer.status, 200, answer.text)
  const now = Math.floor(Date.now() / 1000)
  const right = { iss: bad.issuer, aud: CLIENT_ID, iat: now, jti: 'one', events: { [EVENT]: {} }, sub: 'logged' }
  const post = (token: string) =>
    fetch(`${server.url}/sso/bad/logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) })
  const refused: ReadonlyArray<[name: string, token: () => string]> = [
    ['an ID token', () => bad.sign({ ...right, events: undefined, nonce: 'n' })],
    ['a nonce', () => bad.sign({ ...right, nonce: 'n' })],
    ['another audience', () => bad.sign({ ...right, aud: 'x' })],
    ['another issuer', () => bad.sign({ ...right, iss: corp.issuer })],
    ['an old token', () => bad.sign({ ...right, iat: now - 3600 })],
    ['nobody', () => bad.sign({ ...right, sub: undefined })],
    ['no signature', () => bad.sign(right, { alg: 'none' }).replace(/[^.]+$/, '')],
    ['a shared secret', () => bad.sign(right, { alg: 'HS256' })],
    ['no token', () => 'x'],
    ['a huge one', () => 'x.'.repeat(20_000)],
  ]
  for (const [name, token] of refused) assert.ok([400, 413].includes((await post(token())).status), name)
  bad.forged = true
  assert.equal((await post(bad.sign(right))).status, 400, 'forged')
  bad.forged = false
  assert.equal((await victim('GET', '/session')).status, 200)
  const kept = bad.sign(right)
  assert.equal((await post(kept)).status, 200)
  assert.equal((await victim('GET', '/session')).status, 401)
  const next = await comeBadly(logged, { iss: bad.issuer })
  assert.equal((await post(kept)).status, 400, 'a token that somebody kept')
  assert.equal((await next.browser('GET', '/session')).status, 200)
})

test('a provider’s addresses are checked like every address that is fetched', async () => {
  const ask = asOperator(server)
  const body = (issuer: string) => ({ name: 'X', issuer, clientId: 'x' })
  for (const issuer of words(`
    http://169.254.169.254/latest https://169.254.169.254/latest https://10.0.0.1/ https://localhost:1/
    http://login.example.com/ https://metadata.google.internal/ ftp://login.example.com/
    https://login.example.com/?x=1
  `))
    assert.equal((await ask('PUT', '/login-providers/x', body(issuer))).status, 400, issuer)
  // What its description names is checked too.
  bad.metadata.token_endpoint = 'http://127.0.0.1:1/token'
  await put('bad', {
    name: 'Bad inside',
    issuer: bad.issuer,
    groups: [{ group: 'in', account: other, role: 'viewer' }],
  })
  const { answer } = await comeBadly({ groups: ['in'], sub: 'right', email: 'right@bad.example' })
  assert.equal(answer.status, 403)
  const [audited] = (await ask<{ items: Array<{ detail: { why: string } }> }>('GET', '/audit?action=session.refuse'))
    .data.items
  assert.match(audited!.detail.why, /port 1|address/)
  assert.equal((await ask('PUT', '/login-providers/UP', body('https://login.example.com'))).status, 400)
  for (const address of ['javascript:alert(1)', 'http://login.example.com/', 'ftp://127.0.0.1/', 'none']) {
    bad.metadata.authorization_endpoint = address
    await put('bad', { name: `By ${address}`, issuer: bad.issuer })
    assert.equal((await asBrowser(server)('POST', '/login/sso', { provider: 'bad' })).status, 502, address)
  }
})

test('a provider that does not answer is said to be away, and the secret is never shown', async () => {
  const gone = await startScriptedProvider()
  await gone.close()
  await put('bad', { name: 'Bad', issuer: bad.issuer })
  const listed = await asOperator(server)<{ items: LoginProvider[] }>('GET', '/login-providers')
  assert.ok(!listed.text.includes(CLIENT_SECRET))
  assert.deepEqual(pluck(listed.data.items, 'id', 'hasSecret', 'redirectUri'), [
    ['bad', true, `${server.url}/console/sso/bad`],
    ['corp', true, `${server.url}/console/sso/corp`],
  ])
  const stored = await server.sql<{ sealed: Buffer }>(`select sealed from credential where name = 'login-corp'`)
  assert.ok(stored[0] && !stored[0].sealed.toString('latin1').includes(CLIENT_SECRET))
  const tested = await asOperator(server)<{ ok: boolean; message: string }>('POST', '/login-providers/corp/test')
  assert.deepEqual(tested.data, { ok: true, message: 'It answers, and its metadata has everything that is needed.' })
  bad.metadata.issuer = 'https://somebody.else.example'
  await put('bad', { name: 'Bad', issuer: bad.issuer })
  assert.equal((await asOperator(server)<{ ok: boolean }>('POST', '/login-providers/bad/test')).data.ok, false)
  assert.equal((await asBrowser(server)('POST', '/login/sso', { provider: 'bad' })).status, 502)
  assert.equal((await asOperator(server)('DELETE', '/login-providers/bad')).status, 200)
  assert.equal((await asBrowser(server)('POST', '/login/sso', { provider: 'bad' })).status, 404)
})
