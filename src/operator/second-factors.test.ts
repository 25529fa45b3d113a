// Second factors: codes of an app, recovery codes, who must have one, and what asks for it again. Passkeys are tried in
// a real browser (test/browser).
import { assert, before, beforeEach, started, test } from '../../test/kit.ts'
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
import { totpAt } from '../identity/totp.ts'
import type { LoginStep, RecoveryCodes, SecurityView, SessionView, TotpSecret } from '../identity/views.ts'

const OPERATOR = 'op@example.com'

type Browser = ReturnType<typeof asBrowser>

let account = ''
const server = started(() => startOperatorServer({ trustedProxies: ['127.0.0.1'] }))
before(async () => {
  await setUpOperator(server, OPERATOR)
  account = await makeAccount(server)
})
beforeEach(() => server.forgetTries())

const join = (email: string, role = 'member') => joined(server, `/accounts/${account}/invites`, { email, role })
const logIn = (browser: Browser, email: string, ip = '198.51.100.1') =>
  browser<LoginStep>('POST', '/login', { email, password: PASSWORD }, { 'x-forwarded-for': ip })

/** An app that has the secret. Its clock can be turned, because each code counts once. */
function appOf({ secret }: TotpSecret): (stepsLater?: number) => string {
  const bits = [...secret].map((char) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(char).toString(2).padStart(5, '0'))
  const bytes = Buffer.from(
    bits
      .join('')
      .match(/.{8}/g)!
      .map((byte) => Number.parseInt(byte, 2)),
  )
  return (stepsLater = 0) => totpAt(bytes, Math.floor(Date.now() / 30_000) + stepsLater)
}
async function enrol(browser: Browser) {
  const begun = await browser<TotpSecret>('POST', '/second-factors/totp')
  assert.equal(begun.status, 200, begun.text)
  const app = appOf(begun.data)
  const confirmed = await browser<RecoveryCodes>('PUT', '/second-factors/totp', { code: app(-1) })
  assert.equal(confirmed.status, 200, confirmed.text)
  return { app, codes: confirmed.data.codes! }
}
/** So that the next code counts, whatever was used before. */
const forgetSteps = () => server.sql(`update second_factor set counter = 0 where kind = 'totp'`)
const age = (minutes: number) => server.sql(`update session set proved_at = now() - make_interval(mins => ${minutes})`)

test('with an authenticator app the password alone opens nothing; each code and each recovery code works once', async () => {
  const email = 'tess@example.com'
  const first = await join(email)
  const elsewhere = asBrowser(server)
  assert.equal((await logIn(elsewhere, email)).data.signedIn, true)
  const begun = await first<TotpSecret>('POST', '/second-factors/totp')
  assert.match(begun.data.uri, /^otpauth:\/\/totp\/127\.0\.0\.1%3A\d+:tess%40example\.com\?secret=[A-Z2-7]{32}&issuer=/)
  assert.equal((await first('PUT', '/second-factors/totp', { code: '000000' })).status, 403)
  const app = appOf(begun.data)
  const { codes } = (await first<RecoveryCodes>('PUT', '/second-factors/totp', { code: app(-1) })).data
  assert.equal(codes?.length, 10)
  assert.equal(new Set(codes).size, 10)
  assert.equal((await elsewhere('GET', '/session')).status, 401, 'sessions from before have ended')
  assert.equal((await first('GET', '/session')).status, 200)
  const raw = await server.sql<{ sealed: Buffer }>('select sealed from second_factor')
  assert.ok(!raw.some(({ sealed }) => sealed.includes(Buffer.from(begun.data.secret))), 'the secret is sealed')

  const browser = asBrowser(server)
  const step = await logIn(browser, email)
  assert.deepEqual(step.data, { signedIn: false, needs: ['totp', 'recovery'] })
  assert.equal((await browser('GET', '/session')).status, 401)
  assert.equal((await browser('GET', '/accounts')).status, 401)
  const pending = browser.cookie
  assert.equal((await browser('POST', '/login/code', { code: app(-1) })).status, 403, 'that code confirmed the app')
  const code = app(0)
  assert.equal((await browser<LoginStep>('POST', '/login/code', { code })).data.signedIn, true)
  assert.equal((await browser('GET', '/session')).status, 200)
  assert.ok(!browser.cookie.includes(/__Host-tg_s=([^;]+)/.exec(pending)![1]!), 'the session has another name now')
  const fixed = asBrowser(server)
  fixed.cookie = pending
  assert.equal((await fixed('GET', '/session')).status, 401, 'the name from before the factor opens nothing')

  const second = asBrowser(server)
  await logIn(second, email)
  assert.equal((await second('POST', '/login/code', { code })).status, 403, 'a code that was seen is worthless')
  const [one = '', two = ''] = codes!
  assert.equal((await second<LoginStep>('POST', '/login/code', { code: one })).data.signedIn, true)
  const third = asBrowser(server)
  await logIn(third, email)
  assert.equal((await third('POST', '/login/code', { code: one })).status, 403, 'a recovery code works once')
  const typed = two.toLowerCase().replace('-', ' ')
  assert.equal((await third<LoginStep>('POST', '/login/code', { code: typed })).data.signedIn, true)
  const { data } = await third<SecurityView>('GET', '/security')
  assert.deepEqual([data.factors.map(({ kind }) => kind), data.recoveryCodes], [['totp'], 8])
  const sessions = await third<{ items: SessionView[] }>('GET', '/sessions')
  assert.ok(sessions.data.items.every(({ secondFactor }) => secondFactor))

  // Nobody else's code, and no step can be left out.
  const other = await join('toni@example.com')
  const theirs = await enrol(other)
  const fourth = asBrowser(server)
  await logIn(fourth, email)
  assert.equal((await fourth('POST', '/login/code', { code: theirs.codes[0] })).status, 403)
  assert.equal((await asBrowser(server)('POST', '/login/code', { code: app(1) })).status, 403, 'without a password')
  await server.sql(`update session set created_at = now() - interval '11 minutes' where awaits_factor`)
  assert.equal((await fourth('POST', '/login/code', { code: app(1) })).status, 403, 'too late')
})

test('a password that was reset by a link does not replace the second factor', async () => {
  const email = 'rita@example.com'
  const { app } = await enrol(await join(email))
  await forgetSteps()
  const reset = await asOperator(server)<{ link: string }>('POST', '/password-link', { email })
  const browser = asBrowser(server)
  const link = tokenOf(reset.data.link)
  const step = await browser<LoginStep>('POST', `/invites/${link}`, { password: 'nine tired otters juggle' })
  assert.deepEqual(step.data, { signedIn: false, needs: ['totp', 'recovery'] })
  assert.equal((await browser<LoginStep>('POST', '/login/code', { code: app() })).data.signedIn, true)
  // A change of the password in a session leaves it as strong as it was.
  const changed = await browser<LoginStep>('POST', '/password', { current: 'nine tired otters juggle', next: PASSWORD })
  assert.equal(changed.data.signedIn, true)
  assert.equal((await browser('GET', '/session')).status, 200)
})

test('a change of the password renews no proof by a second factor that is too old', async () => {
  const owner = await join('stale@example.com', 'owner')
  const { app } = await enrol(owner)
  await forgetSteps()
  await age(11)
  const changed = await owner<LoginStep>('POST', '/password', { current: PASSWORD, next: 'nine tired otters juggle' })
  assert.deepEqual(changed.data, { signedIn: false, needs: ['totp', 'recovery'] })
  const invite = () => owner('POST', `/accounts/${account}/invites`, { email: 'new2@example.com', role: 'member' })
  assert.equal((await invite()).status, 401, 'whoever stole the session and the password has no second factor')
  assert.equal((await owner<LoginStep>('POST', '/login/code', { code: app() })).data.signedIn, true)
  assert.equal((await invite()).status, 200)
})

test('guessing codes is slowed down, whichever browser and network guesses', async () => {
  const email = 'gina@example.com'
  const { app } = await enrol(await join(email))
  await forgetSteps()
  const tries: number[] = []
  for (let i = 0; i < 7; i++) {
    const browser = asBrowser(server)
    await logIn(browser, email, `203.0.113.${i}`)
    tries.push(
      (await browser('POST', '/login/code', { code: '000000' }, { 'x-forwarded-for': `203.0.113.${i}` })).status,
    )
    // Long enough for a slow machine to be caught waiting.
    const block = `update login_attempt set blocked_until = now() + interval '60 seconds' where subject like 'browser:code %' and tries >= 5`
    await server.sql(block)
  }
  assert.deepEqual(tries, [403, 403, 403, 403, 403, 429, 429])
  const browser = asBrowser(server)
  await logIn(browser, email, '203.0.113.99')
  assert.equal((await browser('POST', '/login/code', { code: app() })).status, 429, 'also the right one waits')
})

test('a sensitive act asks for a proof that is not older than ten minutes, by the second factor if there is one', async () => {
  const owner = await join('olga@example.com', 'owner')
  const invite = () => owner('POST', `/accounts/${account}/invites`, { email: 'new@example.com', role: 'member' })
  assert.equal((await invite()).status, 200, 'just signed in')
  await age(11)
  const asked = await invite()
  assert.equal(asked.status, 403)
  assert.equal(asked.headers.get('x-tollgate-proof'), 'password')
  assert.equal((await owner('GET', `/accounts/${account}/members`)).status, 200, 'reading goes on')
  assert.equal((await owner('POST', '/proof', { password: 'not the right one' })).status, 403)
  assert.equal((await owner('GET', '/session')).status, 200, 'a wrong proof ends nothing')
  assert.equal((await invite()).status, 403)
  assert.equal((await owner('POST', '/proof', { password: PASSWORD })).status, 200)
  assert.equal((await invite()).status, 200)
  await age(11)
  assert.equal((await owner('POST', '/second-factors/totp')).status, 403, 'nor does a stolen session add a factor')
  assert.equal((await owner('POST', '/proof', { password: PASSWORD })).status, 200)
  const { app } = await enrol(owner)
  await forgetSteps()
  await age(11)
  const again = await invite()
  assert.deepEqual([again.status, again.headers.get('x-tollgate-proof')], [403, 'totp recovery'])
  assert.equal((await owner('POST', '/proof', { password: PASSWORD })).status, 403, 'the password is not enough now')
  assert.equal((await owner('POST', '/proof', {})).status, 400)
  assert.equal((await owner('POST', '/proof', { code: app() })).status, 200)
  assert.equal((await invite()).status, 200)
  // Tokens have no session and prove themselves in each request.
  const byToken = await asOperator(server)('POST', `/accounts/${account}/invites`, {
    email: 'n@example.com',
    role: 'member',
  })
  assert.equal(byToken.status, 200)
})

test('no way to make credits goes without a proof that is not older than ten minutes', async () => {
  const operator = asBrowser(server)
  assert.equal((await logIn(operator, OPERATOR)).status, 200)
  const ways = [
    () => operator('POST', '/accounts', { name: 'B', credits: '1' }),
    () => operator('POST', `/accounts/${account}/credits`, { amount: '1', note: 'a gift' }),
  ]
  await age(11)
  for (const way of ways) assert.equal((await way()).headers.get('x-tollgate-proof'), 'password')
  assert.equal((await operator('POST', '/proof', { password: PASSWORD })).status, 200)
  for (const way of ways) assert.equal((await way()).status, 200)
})

test('where a role asks for a second factor, nothing but setting one up is possible before', async () => {
  const policy = await asOperator(server)('PUT', '/login-policy', { secondFactorRoles: ['operator', 'viewer'] })
  assert.equal(policy.status, 200, policy.text)
  assert.equal((await asOperator(server)('PUT', '/login-policy', { secondFactorRoles: ['king'] })).status, 400)
  const email = 'vera@example.com'
  const viewer = await join(email, 'viewer')
  const member = await join('mia@example.com')
  assert.equal((await member('GET', `/accounts/${account}/keys`)).status, 200, 'other roles are not asked')
  for (const path of [`/accounts/${account}`, `/accounts/${account}/play/v1/models`]) {
    const asked = await viewer('GET', path)
    assert.deepEqual([asked.status, asked.headers.get('x-tollgate-proof')], [403, 'enrol'], path)
  }
  assert.equal((await viewer<SecurityView>('GET', '/security')).data.factorRequired, true)
  const { app } = await enrol(viewer)
  assert.equal((await viewer('GET', `/accounts/${account}`)).status, 200)

  // The operator, who set the policy and lost their phone, is let in again from the machine.
  const operator = asBrowser(server)
  await logIn(operator, OPERATOR)
  assert.equal((await operator('GET', '/accounts')).headers.get('x-tollgate-proof'), 'enrol')
  await enrol(operator)
  assert.equal((await operator('GET', '/accounts')).status, 200)
  assert.equal((await asOperator(server)('POST', '/second-factor-resets', { email: OPERATOR })).status, 200)
  assert.equal((await operator('GET', '/session')).status, 401, 'all sessions have ended')
  assert.deepEqual((await logIn(operator, OPERATOR)).data, { signedIn: true, needs: [] })

  const { factors } = (await viewer<SecurityView>('GET', '/security')).data
  assert.equal((await member('DELETE', `/second-factors/${factors[0]!.id}`)).status, 404, 'of somebody else')
  assert.equal((await viewer('DELETE', `/second-factors/${factors[0]!.id}`)).status, 200)
  assert.equal((await viewer<SecurityView>('GET', '/security')).data.recoveryCodes, 0)
  await asOperator(server)('PUT', '/login-policy', { secondFactorRoles: [] })
  const left = asBrowser(server)
  assert.equal((await logIn(left, email)).data.signedIn, true)
  assert.equal((await left('POST', '/login/code', { code: app() })).status, 403)
})

test('a session that somebody planted before the login is not the one that is signed in', async () => {
  const planted = asBrowser(server)
  planted.cookie = `__Host-tg_s=${'A'.repeat(43)}`
  assert.equal((await logIn(planted, 'mia@example.com')).data.signedIn, true)
  assert.ok(!planted.cookie.includes('A'.repeat(43)))
  const thief = asBrowser(server)
  thief.cookie = `__Host-tg_s=${'A'.repeat(43)}`
  assert.equal((await thief('GET', '/session')).status, 401)
})
