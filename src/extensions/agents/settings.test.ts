// What a team lets its people's agents do: models, the highest cost of a call, a budget for each run, read by programs
// at one address.
import { freshDatabase } from '../../../test/database.ts'
import { deviceProgram } from '../../../test/device-program.ts'
import { assert, pluck, started, startGateway, test, until } from '../../../test/gateway.ts'
import { asBrowser } from '../../../test/operator-server.ts'
import type { TeamView } from '../../admission/views.ts'
import type { LinkView, WhoView } from '../../identity/views.ts'
import type { BudgetView } from '../../ledger/views.ts'
import type { OwnSettings, Program } from './views.ts'

const database = started(freshDatabase)
const g = started(() => startGateway({ database }))
/** Another process on the same database. */
const other = started(() => startGateway({ database, env: { PUBLIC_URL: g.url } }))

type Browser = ReturnType<typeof asBrowser>

const chat = (model: string, more: object = {}) => ({ model, messages: [{ role: 'user', content: 'Hi' }], ...more })

async function join(account: string, role: string): Promise<{ id: string; browser: Browser }> {
  await g.sql('delete from login_attempt')
  const email = `${role}-${account.slice(-8)}@home.example`
  const { data } = await g.operator<LinkView>('POST', `/accounts/${account}/invites`, { email, role })
  const browser = asBrowser(g)
  const token = new URL(data.link).hash.slice('#token='.length)
  assert.equal((await browser('POST', `/invites/${token}`, { password: 'seven tired otters juggle' })).status, 200)
  return { id: (await browser<WhoView>('GET', '/session')).data.user.id, browser }
}

/** An account with a team of one person, who has signed a program in. */
async function teamOfOne() {
  const { id, key } = await g.account({ credits: 1_000_000_000n })
  const person = await join(id, 'member')
  const team = (await g.operator<TeamView>('POST', `/accounts/${id}/teams`, { name: 'Search' })).data.id
  const members = { userIds: [person.id] }
  assert.equal((await g.operator('PUT', `/accounts/${id}/teams/${team}/members`, members)).status, 200)
  const program = await deviceProgram(g.url, 'Agent on a laptop')
  const code = await program.begin()
  const terms = { code: code.user_code, account: id, models: null, limits: {} }
  assert.equal((await person.browser('POST', '/device/allow', terms)).status, 200)
  const { body } = await program.poll(code)
  const token: string = body.access_token
  const put = (scope: string, settings: object) =>
    g.operator('PUT', `/accounts/${id}/agent-settings/${scope}`, settings)
  return { id, key, person, team, token, put, program, refreshToken: body.refresh_token as string }
}

async function ask(token: string, body: object, headers: Record<string, string> = {}) {
  const answer = await g.call('/v1/chat/completions', token, body, { headers: { ...headers } })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}
const status = async (token: string, model: string) => (await ask(token, chat(model))).status
const own = async (token: string) =>
  ((await (await g.call('/agent-settings', token)).json()) as { data: OwnSettings }).data

test('a team’s list of models is enforced by the gateway: for programs and keys of its people, and no service', async () => {
  const { id, key, person, team, token, put } = await teamOfOne()
  const made = await person.browser<{ key: string }>('POST', `/accounts/${id}/keys`, { name: 'mine' })
  const narrow = await person.browser<{ key: string }>('POST', `/accounts/${id}/keys`, {
    name: 'narrow',
    models: ['beta-sonnet-5'],
  })
  for (const each of [token, made.data.key]) assert.equal(await status(each, 'alpha-5.5'), 200)
  assert.equal((await put(team, { models: ['alpha-5.4'] })).status, 200)
  for (const each of [token, made.data.key])
    assert.deepEqual([await status(each, 'alpha-5.5'), await status(each, 'alpha-5.4')], [403, 200])
  assert.equal(await status(narrow.data.key, 'alpha-5.4'), 403, 'a key’s own list is not widened')
  assert.equal(await status(key, 'alpha-5.5'), 200, 'a key of nobody')
  const play = (model: string) => person.browser('POST', `/accounts/${id}/play/v1/chat/completions`, chat(model))
  assert.equal((await play('alpha-5.5')).status, 403, 'the playground is no way around')
  assert.deepEqual(pluck((await own(token)).models, 'id'), ['alpha-5.4'])
  assert.equal((await g.operator('DELETE', `/accounts/${id}/agent-settings/${team}`)).status, 200)
  assert.equal(await status(token, 'alpha-5.5'), 200)
})

test('the nearest settings hold: a project’s, else its team’s, else the account’s, also for who is in several teams', async () => {
  const { id, person, team, put } = await teamOfOne()
  assert.equal((await put('account', { models: ['alpha-5.5'] })).status, 200)
  const project = (await g.operator<TeamView>('POST', `/accounts/${id}/teams`, { name: 'P', parentId: team })).data.id
  const keyIn = async (teamId: string | null) => {
    const { data } = await g.operator<{ key: string }>('POST', `/accounts/${id}/keys`, {
      name: 'k',
      teamId,
      memberId: person.id,
    })
    return data.key
  }
  const [none, inTeam, inProject] = [await keyIn(null), await keyIn(team), await keyIn(project)]
  const open = async () => Promise.all([none, inTeam, inProject].map((key) => status(key, 'alpha-5.4')))
  assert.deepEqual(await open(), [403, 403, 403])
  await put(team, { models: ['alpha-5.4'] })
  assert.deepEqual(await open(), [403, 200, 200])
  await put(project, { models: ['beta-sonnet-5'] })
  assert.deepEqual(await open(), [403, 200, 403])
})

test('a call that could cost more than the highest cost is cut to it, or rejected in words before anything is held', async () => {
  const { id, team, token, put } = await teamOfOne()
  await put(team, { callMax: '0.2' })
  const cut = await ask(token, chat('alpha-5.4'))
  assert.equal(cut.status, 200, cut.text)
  const [held] = await g.sql<{ most: bigint }>('select max(charged) as most from usage where account_id = $1', [id])
  assert.ok((held?.most ?? 0n) <= 200_000n)
  const rejected = await ask(token, chat('alpha-5.4', { max_tokens: 5_000 }))
  assert.equal(rejected.status, 403, rejected.text)
  assert.match(rejected.text, /could cost \S+ credits, and the settings of your team allow 0.2 for one call/)
  assert.equal(rejected.headers.get('x-should-retry'), 'false')
  await put(team, { callMax: '0.000001' })
  const tool = { method: 'tools/call', params: { name: 'website_ranks', arguments: { keys: 'example.com' } } }
  const called = await g.call(
    '/mcp',
    token,
    { jsonrpc: '2.0', id: 1, ...tool },
    { headers: { accept: 'application/json, text/event-stream' } },
  )
  assert.match(await called.text(), /settings of your team/)
  await g.settled()
})

test('a budget for each run of a team ends a run before the call that would exceed it, and no run of others', async () => {
  const { id, key, team, token } = await teamOfOne()
  const budget = { name: 'One task', scope: `session:${team}`, unit: 'requests', span: 'total', max: '2' }
  assert.equal((await g.operator('POST', `/accounts/${id}/budgets`, budget)).status, 200)
  const wrong = await g.operator('POST', `/accounts/${id}/budgets`, { ...budget, scope: 'session:team_nobody' })
  assert.equal(wrong.status, 400)
  const run = async (of: string, session: string) =>
    (await ask(of, chat('alpha-5.4'), { 'x-tollgate-session': session })).status
  assert.deepEqual([await run(token, 'a'), await run(token, 'a'), await run(token, 'a')], [200, 200, 429])
  const words = await ask(token, chat('alpha-5.4'), { 'x-tollgate-session': 'a' })
  assert.match(words.text, /One task for session/)
  assert.equal(words.headers.get('x-should-retry'), 'false')
  assert.equal(await run(token, 'b'), 200, 'the next run')
  assert.deepEqual([await run(key, 'a'), await run(key, 'a'), await run(key, 'a')], [200, 200, 200], 'not of the team')
  const { budgets } = await own(token)
  assert.deepEqual(pluck(budgets as BudgetView[], 'name', 'scope', 'max'), [['One task', 'session', '2']])
  const gone = await g.operator('DELETE', `/accounts/${id}/teams/${team}`)
  assert.equal(gone.status, 409, 'a team with a budget stays')
  await g.settled()
  assert.deepEqual(await g.problems(), [])
})

test('a program reads what it may do at one address, and its models follow the settings in every process within 2 s', async () => {
  const { team, token, put } = await teamOfOne()
  const given = { models: ['alpha-5.4', 'beta-sonnet-5'], defaultModel: 'beta-sonnet-5', smallModel: 'alpha-5.4' }
  assert.equal((await put(team, { ...given, callMax: '3' })).status, 200)
  const { models, defaultModel, smallModel, callMax } = await own(token)
  assert.deepEqual([defaultModel, smallModel, callMax], ['beta-sonnet-5', 'alpha-5.4', '3'])
  assert.deepEqual(models.map((one) => one.id).sort(), given.models)
  assert.equal((await g.call('/agent-settings', undefined)).status, 401)
  const there = async (model: string) => (await other.call('/v1/chat/completions', token, chat(model))).status
  assert.equal(await there('alpha-5.5'), 403)
  await put(team, { models: ['alpha-5.5'] })
  await until(() => there('alpha-5.5'), 200)
})

test('settings that name what is not there, or come from who may not set them, change nothing', async () => {
  const { id, person, team, put } = await teamOfOne()
  for (const wrong of [
    { models: ['alpha-5.44'] },
    { models: [] },
    { models: ['alpha-5.4'], defaultModel: 'alpha-5.5' },
    { defaultModel: 'nobody' },
    { callMax: '-1' },
    { callMax: 'much' },
    { smallModel: 'x'.repeat(200) },
    { all: 1 },
  ])
    assert.equal((await put(team, wrong)).status, 400, JSON.stringify(wrong))
  assert.equal((await put('team_nobody', {})).status, 404)
  const { id: foreign } = await g.account()
  assert.equal((await g.operator('PUT', `/accounts/${foreign}/agent-settings/${team}`, {})).status, 404)
  const path = `/accounts/${id}/agent-settings/${team}`
  for (const [method, body] of [['PUT', {}] as const, ['DELETE', undefined] as const])
    assert.equal((await person.browser(method, path, body)).status, 403)
  const { data } = await g.operator<{ items: unknown[] }>('GET', `/accounts/${id}/agent-settings`)
  assert.deepEqual(data.items, [])
})

test('an owner sees each person’s programs with last use and spend, and ends one: its tokens are of no use at once', async () => {
  const { id, token, person, program, refreshToken } = await teamOfOne()
  const owner = await join(id, 'owner')
  assert.equal(await status(token, 'alpha-5.4'), 200)
  await g.settled()
  const list = async () => (await owner.browser<{ items: Program[] }>('GET', `/accounts/${id}/programs`)).data.items
  const [one, ...others] = await list()
  assert.deepEqual([one?.program, one?.userId, others], ['Agent on a laptop', person.id, []])
  assert.ok(Number(one?.charged) > 0)
  assert.equal((await person.browser('GET', `/accounts/${id}/programs`)).status, 403)
  assert.equal((await owner.browser('DELETE', `/keys/${one?.keyId}`)).status, 200)
  assert.equal(await status(token, 'alpha-5.4'), 401)
  assert.equal((await program.refresh(refreshToken)).body.error, 'invalid_grant')
  assert.deepEqual(await list(), [])
})
