// Sign-in of a program on a machine without a browser: it shows a code, a person types it into the console. Hostile
// programs and people do not get in.

import { startConsole } from '../../../test/browser/console.ts'
import { EXACT, enter, FIRST, goTo, press, see, select, sight, steps } from '../../../test/browser/steps.ts'
import { freshDatabase } from '../../../test/database.ts'
import { type DeviceCode, deviceProgram } from '../../../test/device-program.ts'
import { assert, atOnce, started, startGateway, type TestGateway, test, until } from '../../../test/gateway.ts'
import { asBrowser, joined } from '../../../test/operator-server.ts'
import type { KeyView } from '../../admission/views.ts'
import type { WhoView } from '../../identity/views.ts'

const PASSWORD = 'seven tired otters juggle'
const CHAT = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }

const database = started(freshDatabase)
const g = started(() => startConsole({ database }))
/** Another process on the same database. */
const other = started(() => startGateway({ database, env: { PUBLIC_URL: g.url } }))

type Browser = ReturnType<typeof asBrowser>

async function join(id: string, email: string, role: string): Promise<Browser> {
  await forgetTries()
  return joined(g, `/accounts/${id}/invites`, { email, role }, PASSWORD)
}

const forgetTries = () => g.sql('delete from login_attempt')

async function account() {
  const { id } = await g.account()
  return { id, owner: await join(id, `owner-${id.slice(-6)}@home.example`, 'owner') }
}

const allow = (browser: Browser, { user_code: code }: DeviceCode, id: string, terms: object = {}) =>
  browser('POST', '/device/allow', { code, account: id, models: null, limits: {}, ...terms })
const chat = async (token: string, at: TestGateway = g) => (await at.call('/v1/chat/completions', token, CHAT)).status

const ping = async (token: string) => (await g.call('/mcp', token, { jsonrpc: '2.0', id: 1, method: 'ping' })).status
const programs = async (owner: Browser, id: string) =>
  (await owner<{ items: KeyView[] }>('GET', `/accounts/${id}/keys`)).data.items.filter(({ client }) => client !== null)

/** A program that a person has allowed. */
async function connected(role = 'member') {
  const { id, owner } = await account()
  const person = await join(id, `${role}-${id.slice(-6)}@home.example`, role)
  const program = await deviceProgram(g.url, 'Tollgate on a laptop')
  const code = await program.begin()
  assert.equal((await allow(person, code, id)).status, 200)
  const { status, body } = await program.poll(code)
  assert.equal(status, 200, JSON.stringify(body))
  return { id, owner, person, program, code, body }
}

test('a program shows a code, a person allows it in the console, and it calls models and tools for the person’s team', async () => {
  const { id, owner } = await account()
  const person = await join(id, 'device@home.example', 'member')
  const me = (await person<WhoView>('GET', '/session')).data.user.id
  const team = (await owner<{ id: string }>('POST', `/accounts/${id}/teams`, { name: 'Search' })).data.id
  await owner('PUT', `/accounts/${id}/teams/${team}/members`, { userIds: [me] })
  const program = await deviceProgram(g.url, 'Tollgate on a laptop')
  const code = await program.begin()
  assert.match(code.user_code, /^[B-Z]{4}-[B-Z]{4}$/)
  assert.equal(code.verification_uri, `${g.url}/console/device`)
  assert.deepEqual((await program.poll(code)).body.error, 'authorization_pending')

  const typed = code.user_code.toLowerCase().replace('-', ' ')
  const { data } = await person<{ client: string; askedFrom: string; scopes: string[] }>('POST', '/device', {
    code: typed,
  })
  assert.deepEqual([data.client, data.scopes], ['Tollgate on a laptop', ['api', 'mcp']])
  assert.ok(data.askedFrom)
  assert.equal((await allow(person, code, id, { limits: { spendPerDay: '5' } })).status, 200)
  const { status, body } = await program.poll(code)
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual([body.expires_in, body.scope], [3600, 'api mcp'])

  assert.deepEqual([await chat(body.access_token), await chat(body.access_token, other)], [200, 200])
  assert.notEqual(await ping(body.access_token), 401)
  assert.deepEqual(
    (await programs(owner, id)).map(({ client, memberId, teamId, limits }) => [
      client,
      memberId,
      teamId,
      limits.spendPerDay,
    ]),
    [['Tollgate on a laptop', me, team, '5']],
    'a connection in the person’s name, with their team',
  )
  const renewed = await program.refresh(body.refresh_token)
  assert.equal(renewed.status, 200)
  assert.equal(await chat(renewed.body.access_token), 200)
})

test('a budget of the person’s rejects their program’s calls like those of their keys', async () => {
  const { id, owner, person, body } = await connected()
  const me = (await person<WhoView>('GET', '/session')).data.user.id
  const budget = { name: 'one', scope: 'member', value: me, unit: 'requests', span: 'day', max: '1', hard: true }
  assert.equal((await owner('POST', `/accounts/${id}/budgets`, budget)).status, 200)
  assert.deepEqual([await chat(body.access_token), await chat(body.access_token)], [200, 429])
})

test('a person who leaves takes their programs along: their calls, in all processes, their refreshes, and codes not yet used', async () => {
  const { id, owner, person, program, body } = await connected('admin')
  const second = await deviceProgram(g.url, 'Another')
  const unused = await second.begin()
  assert.equal((await allow(person, unused, id)).status, 200)
  assert.equal(await chat(body.access_token, other), 200)
  const me = (await person<WhoView>('GET', '/session')).data.user.id
  assert.equal((await owner('DELETE', `/accounts/${id}/members/${me}`)).status, 200)
  assert.equal(await chat(body.access_token), 401)
  // Within 2 s, and what a busy machine takes for itself.
  await until(() => chat(body.access_token, other), 401)
  assert.equal((await program.refresh(body.refresh_token)).body.error, 'invalid_grant')
  assert.equal((await second.poll(unused)).body.error, 'invalid_grant')
})

test('a device code that comes a second time ends the connection: one of the two has stolen it', async () => {
  const { program, code, body } = await connected()
  assert.equal(await chat(body.access_token), 200)
  assert.equal((await program.poll(code)).body.error, 'invalid_grant')
  assert.equal(await chat(body.access_token), 401)
  assert.equal((await program.refresh(body.refresh_token)).body.error, 'invalid_grant')
})

test('a device code is of no use to another program', async () => {
  const { id, owner } = await account()
  const [program, thief] = [await deviceProgram(g.url, 'Mine'), await deviceProgram(g.url, 'Thief')]
  const code = await program.begin()
  assert.equal((await allow(owner, code, id)).status, 200)
  assert.equal((await thief.poll(code)).body.error, 'invalid_grant')
  assert.equal((await program.poll(code)).status, 200, 'and the program still gets its tokens')
})

test('denied, answered, expired, unknown and malformed codes are all the same to who types them', async () => {
  const { id, owner } = await account()
  const program = await deviceProgram(g.url, 'Mine')
  const [denied, expired, answered] = [await program.begin(), await program.begin(), await program.begin()]
  assert.equal((await owner('POST', '/device/refuse', { code: denied.user_code })).status, 200)
  assert.equal((await program.poll(denied)).body.error, 'access_denied')
  assert.equal((await program.poll(denied)).body.error, 'invalid_grant', 'said once')
  await expire(expired)
  assert.match((await program.poll(expired)).body.error, /expired_token|invalid_grant/)
  assert.equal((await allow(owner, answered, id)).status, 200)
  const said = new Set<string>()
  for (const code of [denied.user_code, expired.user_code, answered.user_code, 'BBBB-BBBB', 'ü', 'x'.repeat(40)])
    for (const path of ['/device', '/device/refuse', '/device/allow']) {
      await forgetTries()
      const rest = path === '/device/allow' ? { account: id, models: null } : {}
      const { status, text } = await owner('POST', path, { code, ...rest })
      assert.equal(status, 404, `${path} ${code} ${text}`)
      said.add(JSON.parse(text).error.message)
    }
  assert.equal(said.size, 1)
  for (const code of ['x'.repeat(41), '\0', '', 7, null])
    assert.equal((await owner('POST', '/device', { code })).status, 400, String(code))
})

const expire = (code: DeviceCode) =>
  g.sql(
    `update oauth_object set expires_at = now() - interval '1 s' where model = 'DeviceCode' and digest = sha256(convert_to($1, 'UTF8'))`,
    [code.device_code],
  )

test('of two consents at once one counts, and a consent that is rejected may be given anew', async () => {
  const { id, owner } = await account()
  const second = await join(id, `second-${id.slice(-6)}@home.example`, 'admin')
  const program = await deviceProgram(g.url, 'Mine')
  const code = await program.begin()
  const wrong = await allow(owner, code, id, { models: ['no-such-model'] })
  assert.equal(wrong.status, 400, wrong.text)
  const answers = await Promise.all([owner, second, owner, second].map((browser) => allow(browser, code, id)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404])
  assert.equal((await programs(owner, id)).length, 1)
  const polls = await atOnce(4, () => program.poll(code))
  assert.ok(polls.filter(({ status }) => status === 200).length <= 1)
})

test('guesses are bounded for a person and for a network address, and a program that asks too often is slowed down', async () => {
  const { owner } = await account()
  await forgetTries()
  const statuses = []
  for (let n = 0; n < 25; n++) statuses.push((await owner('POST', '/device', { code: 'BBBB-BBBB' })).status)
  assert.deepEqual([statuses.filter((one) => one === 404).length, statuses.at(-1)], [20, 429])
  await forgetTries()
  const program = await deviceProgram(g.url, 'Hasty')
  const code = await program.begin()
  const errors = []
  for (let n = 0; n < 25; n++) errors.push((await program.poll(code)).body.error)
  assert.deepEqual([errors[0], errors.at(-1)], ['authorization_pending', 'slow_down'])
})

test('a viewer and a stranger to the account cannot let a program in', async () => {
  const { id } = await account()
  const viewer = await join(id, `viewer-${id.slice(-6)}@home.example`, 'viewer')
  const { owner: stranger } = await account()
  const program = await deviceProgram(g.url, 'Mine')
  const code = await program.begin()
  for (const browser of [viewer, stranger]) assert.ok([403, 404].includes((await allow(browser, code, id)).status))
  assert.equal((await asBrowser(g)('POST', '/device', { code: code.user_code })).status, 401)
  assert.equal((await program.poll(code)).body.error, 'authorization_pending')
})

test('a process whose clock was wrong when it wrote a code or token ends none before its time', async () => {
  const { id, owner } = await account()
  const program = await deviceProgram(g.url, 'Mine')
  const code = await program.begin()
  const shift = () =>
    g.sql(
      `update oauth_object set payload = payload || jsonb_build_object('exp', (payload ->> 'exp')::bigint - 86400 * 400, 'iat', (payload ->> 'iat')::bigint - 86400 * 400) where payload ? 'exp'`,
    )
  await shift()
  assert.equal((await allow(owner, code, id)).status, 200)
  const { status, body } = await program.poll(code)
  assert.equal(status, 200, JSON.stringify(body))
  await shift()
  assert.equal(await chat(body.access_token), 200)
  assert.equal((await program.refresh(body.refresh_token)).status, 200)
})

test('a program that asked for tools only cannot call models, and no program gets more than it may ask for', async () => {
  const { id, owner } = await account()
  const program = await deviceProgram(g.url, 'Tools')
  const code = await program.begin({ scope: 'mcp' })
  assert.equal((await allow(owner, code, id)).status, 200)
  const { body } = await program.poll(code)
  assert.equal(body.scope, 'mcp')
  assert.equal(await chat(body.access_token), 401)
  assert.notEqual(await ping(body.access_token), 401)
  for (const wrong of [
    { scope: 'a\0' },
    { resource: 'https://other.example' },
    { resource: '\0' },
    { client_id: 'nobody' },
  ])
    assert.ok(
      [400, 401].includes((await program.ask('/oauth/device', { scope: 'api', ...wrong })).status),
      JSON.stringify(wrong),
    )
})

test('the page: a person types the code, sees which program waits, and allows it', async () => {
  const visitor = await g.visitor()
  await g.setUp(visitor, 'op@example.com')
  const { id } = await g.account()
  const program = await deviceProgram(g.url, 'Lighthouse <b>agent</b>')
  const code = await program.begin()
  const { page } = visitor
  await visitor.go('/device')
  await steps(page, enter('The code that the program shows', 'BBBB-BBBB'), press('Continue'))
  await page.getByText('No program waits with this code').waitFor()
  await page.goto(code.verification_uri_complete)
  await steps(page, press('Continue'), see('Lighthouse <b>agent</b>', FIRST), see('call models, and use tools'))
  await steps(page, select('Account', id), press('Allow'), sight('heading', 'Connected'))
  const { status, body } = await program.poll(code)
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(await chat(body.access_token), 200)
  await visitor.close()
})

test('the page of a run: an owner goes from the sessions to one run, and sees which sub-agent spent what', async () => {
  const visitor = await g.visitor()
  const { id, key } = await g.account()
  for (const agent of [undefined, 'explorer'])
    await fetch(`${g.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-tollgate-session': 'task <b>7</b>',
        ...(agent === undefined ? {} : { 'x-tollgate-agent': agent }),
      },
      body: JSON.stringify(CHAT),
    })
  await g.logIn(visitor, 'op@example.com')
  const { page } = visitor
  await visitor.go(`/a/${id}/usage?view=labels&label=session`)
  await steps(page, goTo('Run', EXACT), sight('heading', 'Run'), see('task <b>7</b>', FIRST))
  await page.getByRole('table', { name: 'Agents of the run' }).getByText('– explorer').waitFor()
  assert.equal(await page.getByRole('table', { name: 'Calls and tools of the run' }).getByRole('link').count(), 2)
  await visitor.close()
})
