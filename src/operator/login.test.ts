// Whoever tries to keep people out of the console: with guesses, with closed client formats, with many at once.
import { assert, atOnce, before, beforeEach, started, test } from '../../test/kit.ts'
import {
  asBrowser,
  asOperator,
  joined,
  makeAccount,
  PASSWORD,
  setUpOperator,
  startOperatorServer,
  tokenOf,
} from '../../test/operator-server.ts'
import { COST } from '../identity/password.ts'

const EMAIL = 'op@example.com'
const OTHER = 'other@example.com'

// A password takes long enough for a queue, and callers come from wherever they say.
const server = started(() => startOperatorServer({ cost: { ...COST, passes: 1 }, trustedProxies: ['127.0.0.1'] }))
before(async () => {
  await setUpOperator(server, EMAIL)
  await joined(server, `/accounts/${await makeAccount(server)}/invites`, { email: OTHER, role: 'member' })
})
beforeEach(() => server.forgetTries())

const from = (ip: string) => ({ 'x-forwarded-for': ip })
const logIn = (browser: ReturnType<typeof asBrowser>, email: string, password: string, ip: string) =>
  browser('POST', '/login', { email, password }, from(ip))
const guess = (email: string, ip: string) => logIn(asBrowser(server), email, 'not the right one', ip)
const count = <T>(answers: ReadonlyArray<{ status: T }>, status: T) =>
  answers.filter((answer) => answer.status === status).length

test('a set-up that is closed keeps nobody from logging in, however many try it', async () => {
  const body = { token: 'x'.repeat(43), email: EMAIL, password: PASSWORD }
  const tries = Array.from({ length: 80 }, (_, i) => asBrowser(server)('POST', '/setup', body, from(`203.0.113.${i}`)))
  const login = logIn(asBrowser(server), EMAIL, PASSWORD, '198.51.100.7')
  assert.equal(count(await Promise.all(tries), 403), 80)
  assert.equal((await login).status, 200)
})

test('one link opened many times at once from one address hashes few passwords', async () => {
  const reset = await asOperator(server)<{ link: string }>('POST', '/password-link', { email: OTHER })
  assert.equal(reset.status, 200, reset.text)
  const link = tokenOf(reset.data.link)
  const tries = await atOnce(40, () =>
    asBrowser(server)('POST', `/invites/${link}`, { password: PASSWORD }, from('198.51.100.8')),
  )
  // At most twenty at a time; on a slow machine some come when others have ended.
  const rejected = count(tries, 429)
  assert.ok(count(tries, 200) === 1 && rejected > 0 && rejected <= 20, tries.map(({ status }) => status).join())
})

test('a login that was refused because too many came at once is no try', async () => {
  const tries = await atOnce(75, (i) => guess(`p${i}@example.com`, `203.0.113.${i}`))
  assert.ok(count(tries, 503) > 0)
  assert.equal(count(tries, 503) + count(tries, 401), 75)
  for (const kind of ['name', 'address']) {
    const [row] = await server.sql<{ tries: number }>(
      `select coalesce(sum(tries), 0)::int as tries from login_attempt where subject like '${kind}:%'`,
    )
    assert.equal(row!.tries, count(tries, 401), kind)
  }
})

test('a browser in which somebody logged in before is not kept out by guesses made elsewhere', async () => {
  const known = asBrowser(server)
  assert.equal((await logIn(known, EMAIL, PASSWORD, '198.51.100.1')).status, 200)
  const strange = asBrowser(server)
  assert.equal((await logIn(strange, OTHER, PASSWORD, '198.51.100.2')).status, 200)
  await known('POST', '/logout')

  for (let i = 0; i < 5; i++) assert.equal((await guess(EMAIL, `203.0.113.${i}`)).status, 401)
  // Long enough for a slow machine to be caught waiting.
  const block = `update login_attempt set blocked_until = now() + interval '60 seconds' where subject like 'name:%'`
  await server.sql(block)
  assert.equal((await guess(EMAIL, '203.0.113.9')).status, 429)
  assert.equal((await logIn(asBrowser(server), EMAIL, PASSWORD, '198.51.100.3')).status, 429, 'a new browser waits')
  assert.equal((await logIn(strange, EMAIL, PASSWORD, '198.51.100.2')).status, 429, 'a mark is of one person')
  const forged = asBrowser(server)
  forged.cookie = known.cookie.replace(/\../, (start) => (start === '.A' ? '.B' : '.A'))
  assert.notEqual(forged.cookie, known.cookie)
  assert.equal((await logIn(forged, EMAIL, PASSWORD, '198.51.100.4')).status, 429, 'a mark cannot be made')
  assert.equal((await logIn(known, EMAIL, PASSWORD, '198.51.100.1')).status, 200)
  assert.equal((await guess(EMAIL, '203.0.113.9')).status, 429, 'and whoever guesses goes on waiting')

  for (let i = 0; i < 5; i++) assert.equal((await logIn(known, EMAIL, 'mistyped', `192.0.2.${i}`)).status, 401)
  await server.database.query({ text: block.replace('name', 'browser') })
  assert.equal((await logIn(known, EMAIL, PASSWORD, '198.51.100.1')).status, 429, 'it waits for its own wrong tries')
})

test('the mark of a browser is hidden from scripts, bound to the host, and outlives the session', async () => {
  const browser = asBrowser(server)
  const [session, mark] = (await logIn(browser, EMAIL, PASSWORD, '198.51.100.1')).headers.getSetCookie()
  assert.match(session!, /^__Host-tg_s=/)
  assert.match(mark!, /^__Host-tg_b=[\w-]{22}\.[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=31536000$/)
  await browser('POST', '/logout')
  assert.match(browser.cookie, /^__Host-tg_b=[^;]+$/)
})

test('whoever came in by an invitation, a reset link or a change of password is not kept out by guesses made elsewhere', async () => {
  const { id } = (await asOperator(server)<{ id: string }>('POST', '/accounts', { name: 'B', credits: '1' })).data
  const linkOf = (answer: { data: { link: string } }) => tokenOf(answer.data.link)
  const email = 'guest@example.com'
  const invited = await asOperator(server)<{ link: string }>('POST', `/accounts/${id}/invites`, {
    email,
    role: 'member',
  })
  const next = 'nine tired otters juggle'
  const ways: Array<[string, string, (browser: ReturnType<typeof asBrowser>) => Promise<{ status: number }>]> = [
    ['invitation', PASSWORD, (browser) => browser('POST', `/invites/${linkOf(invited)}`, { password: PASSWORD })],
    [
      'reset link',
      PASSWORD,
      async (browser) => {
        const reset = await asOperator(server)<{ link: string }>('POST', '/password-link', { email })
        return browser('POST', `/invites/${linkOf(reset)}`, { password: PASSWORD })
      },
    ],
    [
      'change of password',
      next,
      async (browser) => {
        assert.equal((await logIn(browser, email, PASSWORD, '198.51.100.5')).status, 200)
        // A session from before browsers were marked.
        browser.cookie = browser.cookie.replace(/(?:; )?__Host-tg_b=[^;]+/, '')
        await blockAll(email)
        return browser('POST', '/password', { current: PASSWORD, next }, from('198.51.100.6'))
      },
    ],
  ]
  for (const [name, password, comeIn] of ways) {
    await server.forgetTries()
    const browser = asBrowser(server)
    assert.equal((await comeIn(browser)).status, 200, name)
    await browser('POST', '/logout')
    await blockAll(email)
    assert.equal((await logIn(asBrowser(server), email, password, '198.51.100.3')).status, 429, name)
    assert.equal((await logIn(browser, email, password, '198.51.100.1')).status, 200, name)
  }
})

/** Guesses from elsewhere; long enough for a slow machine to be caught waiting. */
async function blockAll(email: string): Promise<void> {
  await guess(email, '203.0.113.1')
  const block = `update login_attempt set blocked_until = now() + interval '60 seconds' where subject like 'name:%'`
  await server.sql(block)
}
