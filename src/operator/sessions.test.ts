// Who signs in to the console, for how long, and who is kept out.
import { assert, atOnce, started, test } from '../../test/kit.ts'
import {
  asBrowser,
  asOperator,
  joined,
  makeAccount,
  OPERATOR_TOKEN,
  PASSWORD,
  startOperatorServer,
  tokenOf,
} from '../../test/operator-server.ts'
import type { LinkView, SessionView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'

const OTHER_PASSWORD = 'moss grows on quiet violins'

const server = started(() => startOperatorServer())
const operator = asBrowser(server)
const accountOf = (name: string) => makeAccount(server, { name, credits: '10' })
const join = (account: string, email: string, role: 'owner' | 'member') =>
  joined(server, `/accounts/${account}/invites`, { email, role })

test('the first operator comes in by the set-up link, once', async () => {
  const token = (await server.people.openSetup())!
  assert.equal(await server.people.openSetup(), undefined, 'it is said only when it is made')
  assert.deepEqual((await operator('GET', '/setup')).data, { open: true, passwordByMail: false })
  assert.equal((await operator('GET', '/session')).status, 401)
  const good = { token, email: 'Op@Example.com ', password: PASSWORD }
  const refused = [
    [{ ...good, token: 'x'.repeat(43) }, 403],
    [{ ...good, token: '' }, 400],
    [{ ...good, email: 'nobody' }, 400],
    [{ ...good, password: 'short' }, 400],
    [{ ...good, password: 'Password1234!' }, 400],
    [{ ...good, password: 'op@example.com1' }, 400],
    [{ ...good, password: 'a'.repeat(129) }, 400],
    [{ ...good, password: 'qwertyuiop12' }, 400],
    [{ ...good, password: 'abcabcabcabc' }, 400],
    [{ ...good, password: 'nul\u0000nul\u0000nul\u0000' }, 400],
    [{ ...good, operator: true }, 400],
  ] as const
  for (const [body, status] of refused)
    assert.equal((await operator('POST', '/setup', body)).status, status, JSON.stringify(body))
  const both = await Promise.all([
    operator('POST', '/setup', good),
    operator('POST', '/setup', { ...good, email: 'b@example.com' }),
  ])
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 403])
  await server.sql(`update person set email = 'op@example.com'`)
  assert.deepEqual((await operator('GET', '/setup')).data, { open: false, passwordByMail: false })
  const { data } = await operator<{ user: { email: string; role: string }; accounts: [] }>('GET', '/session')
  assert.deepEqual([data.user.email, data.user.role, data.accounts], ['op@example.com', 'operator', []])
  assert.equal((await operator('POST', '/setup', good)).status, 403)
  assert.equal((await asOperator(server)('POST', '/setup-link')).status, 409)
})

test('the session cookie is bound to the host, hidden from scripts, and worthless after logout', async () => {
  const browser = asBrowser(server)
  const login = await browser('POST', '/login', { email: 'OP@example.com', password: PASSWORD })
  assert.match(
    login.headers.getSetCookie()[0]!,
    /^__Host-tg_s=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=86400$/,
  )
  assert.equal(login.headers.get('cache-control'), 'no-store')
  const stolen = browser.cookie
  assert.equal((await browser('GET', '/session')).status, 200)
  const [row] = await server.sql<{ digest: Buffer }>('select digest from session order by id desc limit 1')
  assert.ok(!stolen.includes(row!.digest.toString('base64url')))
  assert.equal((await browser('POST', '/logout')).status, 200)
  assert.equal((await asBrowser(server)('GET', '/session', undefined, { cookie: stolen })).status, 401)
})

test('a session ends after an hour without use, and after a day in any case', async () => {
  for (const age of [`seen_at = now() - interval '61 minutes'`, `created_at = now() - interval '24 hours 1 minute'`]) {
    const browser = asBrowser(server)
    await browser('POST', '/login', { email: 'op@example.com', password: PASSWORD })
    const { data } = await browser<Page<SessionView>>('GET', '/sessions')
    const mine = data.items.find(({ current }) => current)!
    await server.sql(`update session set ${age} where id = $1`, [mine.id])
    assert.equal((await browser('GET', '/session')).status, 401, age)
  }
  const browser = asBrowser(server)
  await browser('POST', '/login', { email: 'op@example.com', password: PASSWORD })
  await server.sql(`update session set seen_at = now() - interval '59 minutes'`)
  assert.equal((await browser('GET', '/session')).status, 200)
  const [row] = await server.sql<{ age: number }>(
    'select extract(epoch from now() - max(seen_at))::float8 as age from session',
  )
  assert.ok(row!.age < 10, 'use keeps it alive')
})

test('a changed password ends every session but the one that changed it', async () => {
  const [one, two] = [asBrowser(server), asBrowser(server)]
  for (const browser of [one, two]) await browser('POST', '/login', { email: 'op@example.com', password: PASSWORD })
  const before = one.cookie
  assert.equal((await one('POST', '/password', { current: 'wrong wrong wrong', next: OTHER_PASSWORD })).status, 401)
  assert.equal((await one('POST', '/password', { current: PASSWORD, next: 'op@example.com!!' })).status, 400)
  assert.equal((await one('POST', '/password', { current: PASSWORD, next: OTHER_PASSWORD })).status, 200)
  assert.notEqual(one.cookie, before)
  assert.equal((await one('GET', '/session')).status, 200)
  assert.equal((await two('GET', '/session')).status, 401)
  assert.equal((await asBrowser(server)('GET', '/session', undefined, { cookie: before })).status, 401)
  assert.equal((await two('POST', '/login', { email: 'op@example.com', password: PASSWORD })).status, 401)
  await one('POST', '/password', { current: OTHER_PASSWORD, next: PASSWORD })
  operator.cookie = one.cookie
})

test('people see their own sessions and can end the others', async () => {
  const other = asBrowser(server)
  await other('POST', '/login', { email: 'op@example.com', password: PASSWORD }, { 'user-agent': 'Phone' })
  const { data } = await operator<Page<SessionView>>('GET', '/sessions')
  const phone = data.items.find(({ userAgent }) => userAgent === 'Phone')!
  assert.equal(phone.current, false)
  const account = await accountOf('Session test')
  const stranger = await join(account, 'stranger@example.com', 'member')
  assert.equal((await stranger('DELETE', `/sessions/${phone.id}`)).status, 404, 'only one’s own')
  assert.equal((await operator('DELETE', `/sessions/${phone.id}`)).status, 200)
  assert.equal((await other('GET', '/session')).status, 401)
})

test('guessing gets slower with each try, the same for people who exist and who do not', async () => {
  const waitOf = async () => {
    const [row] = await server.sql<{ wait: number }>(
      `select round(extract(epoch from blocked_until - since))::int as wait from login_attempt where subject like 'name:%'`,
    )
    return row?.wait
  }
  for (const email of ['op@example.com', 'nobody@example.com']) {
    await server.forgetTries()
    const guess = () => asBrowser(server)('POST', '/login', { email, password: 'not the right one' })
    for (const wait of [0, 0, 0, 0, 1]) {
      const answer = await guess()
      assert.equal(answer.status, 401, email)
      assert.equal(answer.error?.message, 'The email address or the password is not right.')
      assert.equal(await waitOf(), wait)
    }
    // Long enough for a slow machine to be caught waiting.
    await server.sql(
      `update login_attempt set blocked_until = now() + interval '30 seconds' where subject like 'name:%'`,
    )
    const early = await guess()
    assert.equal(early.status, 429)
    assert.match(early.headers.get('retry-after') ?? '', /^(30|2\d)$/)
    assert.equal(
      (await asBrowser(server)('POST', '/login', { email, password: PASSWORD })).status,
      429,
      'the right one too',
    )
    await server.sql(`update login_attempt set blocked_until = now() where subject like 'name:%'`)
    assert.equal((await guess()).status, 401)
    assert.equal(await waitOf(), 2, 'the wait doubles')
  }
  await server.sql(`update login_attempt set tries = 40, blocked_until = now() where subject like 'name:%'`)
  await asBrowser(server)('POST', '/login', { email: 'nobody@example.com', password: 'x' })
  assert.equal(await waitOf(), 60, 'up to a minute, and nobody is locked out')
  await server.forgetTries()
  assert.equal((await asBrowser(server)('POST', '/login', { email: 'op@example.com', password: PASSWORD })).status, 200)
  assert.deepEqual(await server.sql(`select 1 from login_attempt where subject like 'name:%'`), [])
})

test('many guesses at once are few', async () => {
  await server.forgetTries()
  const tries = await atOnce(15, () =>
    asBrowser(server)('POST', '/login', { email: 'op@example.com', password: 'guess' }),
  )
  // Five, and one more for each second that a slow machine takes.
  assert.ok(tries.filter(({ status }) => status === 401).length <= 8)
  await server.forgetTries()
})

test('one address may try 20 times a minute, whoever it tries to be', async () => {
  await server.forgetTries()
  const statuses = []
  for (let i = 0; i < 23; i++)
    statuses.push((await asBrowser(server)('POST', '/login', { email: `p${i}@example.com`, password: 'x' })).status)
  assert.deepEqual([statuses.filter((status) => status === 401).length, statuses.at(-1)], [20, 429])
  await server.forgetTries()
})

test('changes come only from our own pages', async () => {
  const body = { current: 'x', next: 'y' }
  const cases: Array<[string, Record<string, string>, boolean]> = [
    ['same origin', { 'sec-fetch-site': 'same-origin' }, true],
    ['same origin by Origin', { 'sec-fetch-site': '', origin: server.url }, true],
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, false],
    ['another site that forges our Origin', { 'sec-fetch-site': 'cross-site', origin: server.url }, false],
    ['a sibling of our domain', { 'sec-fetch-site': 'same-site' }, false],
    ['a bookmark', { 'sec-fetch-site': 'none' }, false],
    ['an old browser from elsewhere', { 'sec-fetch-site': '', origin: 'https://evil.example' }, false],
    ['a sandboxed frame', { 'sec-fetch-site': '', origin: 'null' }, false],
    ['our host on another port', { 'sec-fetch-site': '', origin: 'http://127.0.0.1:1' }, false],
    ['a look-alike', { 'sec-fetch-site': '', origin: `${server.url}.evil.example` }, false],
    ['no sign of where', { 'sec-fetch-site': '' }, false],
  ]
  for (const [name, headers, allowed] of cases) {
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''))
    const response = await fetch(`${server.url}/console/api/password`, {
      method: 'POST',
      headers: { cookie: operator.cookie, 'content-type': 'application/json', ...given },
      body: JSON.stringify(body),
    })
    assert.equal(response.status === 403, !allowed, `${name}: ${response.status}`)
  }
  const form = await operator('POST', '/password', 'current=a&next=b', {
    'content-type': 'application/x-www-form-urlencoded',
  })
  assert.equal(form.status, 400, 'a form is not JSON')
  assert.equal(
    (await operator('POST', '/password', '{"current":"a","next":"b"}', { 'content-type': 'text/plain' })).status,
    400,
  )
  await server.forgetTries()
})

test('the console reads no bearer token and the operator API no cookie', async () => {
  const bare = asBrowser(server)
  assert.equal((await bare('GET', '/accounts', undefined, { authorization: `Bearer ${OPERATOR_TOKEN}` })).status, 401)
  assert.equal(
    (await asOperator(server)('GET', '/accounts', undefined, { authorization: '', cookie: operator.cookie })).status,
    401,
  )
})

test('somebody who forgot their password chooses another by a link from the operator', async () => {
  const account = await accountOf('Forgetful')
  const person = await join(account, 'forgot@example.com', 'member')
  const link = await asOperator(server)<LinkView>('POST', '/password-link', { email: 'forgot@example.com' })
  assert.equal((await asOperator(server)('POST', '/password-link', { email: 'none@example.com' })).status, 404)
  assert.equal((await person('POST', '/password-link', { email: 'op@example.com' })).status, 403)
  const browser = asBrowser(server)
  assert.equal((await browser('POST', `/invites/${tokenOf(link.data.link)}`, { password: OTHER_PASSWORD })).status, 200)
  assert.equal((await person('GET', '/session')).status, 401, 'earlier sessions have ended')
  assert.equal((await browser('GET', '/session')).status, 200)
  assert.equal((await person('POST', '/login', { email: 'forgot@example.com', password: OTHER_PASSWORD })).status, 200)
})
