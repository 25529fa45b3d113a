// Who leaves is gone: every way of leaving an account ends everything that let the person call, in every process.

import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { KeyView, NewKey } from '../src/admission/views.ts'
import type { EndedView, MemberView, NewToken, WhoView } from '../src/identity/views.ts'
import { sendBatch } from './batches.ts'
import { freshDatabase } from './database.ts'
import {
  AS_LEDGER,
  after,
  assert,
  before,
  started,
  startGateway,
  type TestGateway,
  test,
  until,
  WAITING_FOR_LOCKS,
} from './gateway.ts'
import { CLIENT_ID, CLIENT_SECRET, journey, startProvider } from './login-provider.ts'
import { asBrowser, joined } from './operator-server.ts'
import { openSocket, type TestSocket } from './socket-client.ts'

const PASSWORD = 'seven tired otters juggle'
const CHAT = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }
const SLOW = { model: 'alpha-5.4', input: 'A story. [[chunks=20000]] [[slow=20]]', background: true }

const database = started(freshDatabase)
const corp = started(() => startProvider())
const env = () => ({ TOLLGATE_OUTBOUND_ALLOW: corp.hostAndPort })
const g = started(() => startGateway({ database, env: env() }))
/** Another process on the same database. */
const other = started(() => startGateway({ database, env: env() }))
before(() => corp.open(g.url, 'corp'))
after(() => g.settled())

type Browser = ReturnType<typeof asBrowser>

/** An owner, with a key that must stay. */
async function account() {
  const { id, key } = await g.account()
  const owner = await join(id, `owner-${id.slice(-6)}@home.example`, 'owner')
  return { id, key, owner }
}

async function join(id: string, email: string, role: string): Promise<Browser> {
  await g.sql('delete from login_attempt')
  return joined(g, `/accounts/${id}/invites`, { email, role }, PASSWORD)
}

const idOf = async (browser: Browser) => (await browser<WhoView>('GET', '/session')).data.user.id
const status = async (at: TestGateway, key: string) => (await at.call('/v1/chat/completions', key, CHAT)).status

/** Everything that lets a person call, in use in both processes. */
async function equip(id: string, person: Browser, owner: Browser) {
  const me = await idOf(person)
  const make = async (by: Browser, body: object) => {
    const made = await by<NewKey>('POST', `/accounts/${id}/keys`, body)
    assert.equal(made.status, 200, made.text)
    return made.data
  }
  const own = await make(person, { name: 'own' })
  const given = await make(owner, { name: 'given by the owner', memberId: me })
  const restricted = await make(person, { name: 'restricted', models: ['alpha-5.4', 'alpha-realtime-1'] })
  const trial = await make(person, { name: 'test', test: true })
  const old = await make(person, { name: 'rotated' })
  const rotated = (await person<NewKey>('POST', `/keys/${old.id}/rotate`, { overlapSeconds: 3600 })).data
  const keys = [own, given, restricted, trial, old, rotated]
  for (const at of [g, other]) for (const { key } of keys) assert.equal(await status(at, key), 200)
  const secretIn = await g.call('/v1/realtime/client_secrets', own.key, {
    session: { type: 'realtime', model: 'alpha-realtime-1' },
  })
  const secret = ((await secretIn.json()) as { value: string }).value
  const bySecret = (at: TestGateway) =>
    openSocket(`${at.url}/v1/realtime`, { protocols: ['realtime', `openai-insecure-api-key.${secret}`] })
  const sockets: TestSocket[] = [
    await openSocket(`${g.url}/v1/responses`, { key: own.key }),
    await openSocket(`${other.url}/v1/responses`, { key: given.key }),
    await bySecret(other),
  ]
  const running = async (answer: Promise<Response>) => ((await (await answer).json()) as { id: string }).id
  const program = await connect(id, person)
  for (const at of [g, other]) assert.ok(await isConnected(at, program.bearer))
  const background = await running(g.call('/v1/responses', own.key, SLOW))
  const played = await running(
    fetch(`${g.url}/console/api/accounts/${id}/play/v1/responses`, {
      method: 'POST',
      headers: { cookie: person.cookie, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
      body: JSON.stringify(SLOW),
    }),
  )
  const responses = [background, played]
  await until(async () => (await statesOf(responses)).every((state) => state === 'in_progress'))
  return { me, keys, sockets, responses, bySecret, program }
}

/** A program that the person lets act for them, by OAuth, as a browser would. */
async function connect(id: string, person: Browser): Promise<{ bearer: string; refresh: () => Promise<number> }> {
  const callback = `${g.url}/healthz`
  const post = async (path: string, body: string, type: string) =>
    (await fetch(g.url + path, { method: 'POST', body, headers: { 'content-type': type } })).json() as Promise<
      Record<string, string>
    >
  const about = { client_name: 'agent', redirect_uris: [callback], token_endpoint_auth_method: 'none' }
  const { client_id = '' } = await post('/oauth/register', JSON.stringify(about), 'application/json')
  const verifier = randomBytes(32).toString('base64url')
  const asked = new URLSearchParams({
    client_id,
    response_type: 'code',
    redirect_uri: callback,
    scope: 'mcp offline_access',
    prompt: 'consent',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const begun = await fetch(`${g.url}/oauth/authorize?${asked}`, { redirect: 'manual' })
  const uid = begun.headers.get('location')?.split('/').at(-1)
  const cookie = [person.cookie, ...begun.headers.getSetCookie().map((one) => one.split(';')[0])].join('; ')
  const allowed = await person<{ redirect: string }>(
    'POST',
    `/connect/${uid}/allow`,
    { account: id, models: null },
    { cookie },
  )
  assert.equal(allowed.status, 200, allowed.text)
  const back = await fetch(allowed.data.redirect, { redirect: 'manual', headers: { cookie } })
  const code = new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? ''
  const token = (fields: Record<string, string>) =>
    post('/oauth/token', String(new URLSearchParams({ client_id, ...fields })), 'application/x-www-form-urlencoded')
  const given = await token({ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: callback })
  const { access_token: bearer = '', refresh_token = '' } = given
  return {
    bearer,
    refresh: async () => ((await token({ grant_type: 'refresh_token', refresh_token })).error ? 400 : 200),
  }
}

const isConnected = async (at: TestGateway, bearer: string) =>
  (await at.call('/mcp', bearer, { jsonrpc: '2.0', id: 1, method: 'ping' })).status !== 401

const statesOf = async (ids: string[]) => {
  const rows = await g.sql<{ status: string }>('select status from background where id = any($1)', [ids as never])
  return rows.map((row) => row.status)
}

/** What the row at control counts; in a ledger each key has a row of its own. */
async function endedKeys(account: string, action: string, person = account): Promise<unknown> {
  if (!AS_LEDGER) return (await audited(person, action)).keys
  const text = `select count(*)::int as count from audit join api_key k on k.id = object
    where action = 'key.revoke' and k.client is null and k.account_id = any($1)`
  return (await g.sql<{ count: number }>(text, [[account, `${account}_test`] as never]))[0]?.count
}

async function audited(id: string, action: string): Promise<Record<string, unknown>> {
  const [row] = await g.sql<{ detail: Record<string, unknown> }>(
    'select detail from audit where action = $1 and (object = $2 or actor = $2) order by id desc limit 1',
    [action, id],
  )
  return row?.detail ?? {}
}

async function requireGone({ keys, sockets, responses, bySecret, program }: Awaited<ReturnType<typeof equip>>) {
  for (const { key } of keys) assert.equal(await status(g, key), 401)
  for (const { key } of keys) await until(async () => (await status(other, key)) === 401)
  for (const socket of sockets) assert.equal((await socket.closed()).code, 1008)
  await assert.rejects(bySecret(g), /401/)
  assert.equal(await isConnected(g, program.bearer), false)
  await until(async () => !(await isConnected(other, program.bearer)))
  assert.equal(await program.refresh(), 400)
  await until(async () => (await statesOf(responses)).every((state) => state === 'cancelled'))
}

const scimOf = async (id: string) => {
  const { data } = await g.operator<NewToken>('POST', `/accounts/${id}/tokens`, { name: 'directory', scopes: ['scim'] })
  return (method: string, path: string, body?: object) =>
    g.call(`/scim/v2${path}`, data.token, body, { method, headers: { 'content-type': 'application/scim+json' } })
}

const inactive = { Operations: [{ op: 'replace', value: { active: false } }] }

/** By the rows of the table in the guide. */
const tried = new Set<string>()
function row(name: string, promise: string, run: () => Promise<void>): void {
  tried.add(name)
  test(`${name}: ${promise}`, run)
}

const ALL = 'the person’s keys, programs, client secrets, sockets and background work end in every process'

async function leaves(
  leave: (of: { id: string; me: string; person: Browser; owner: Browser }) => Promise<EndedView | undefined>,
  action = 'member.remove',
) {
  const { id, key, owner } = await account()
  const person = await join(id, `leaver-${id.slice(-6)}@home.example`, 'member')
  const equipped = await equip(id, person, owner)
  const ended = await leave({ id, me: equipped.me, person, owner })
  await requireGone(equipped)
  assert.equal(await status(g, key), 200)
  // A login is deleted at control, and the ledger ends what the person had there a moment later.
  if (ended && !(AS_LEDGER && action === 'person.delete'))
    assert.deepEqual(ended, { keys: 6, handedOver: 0, programs: 1, tokens: 0, links: 0 })
  assert.equal(await endedKeys(id, action, action === 'person.delete' ? equipped.me : id), 6)
}

row('a member is removed', ALL, () =>
  leaves(async ({ id, me, owner }) => {
    const left = await owner<{ ended: EndedView }>('DELETE', `/accounts/${id}/members/${me}`)
    assert.equal(left.status, 200, left.text)
    return left.data.ended
  }),
)
row('a SCIM person becomes inactive or is deleted', `${ALL} (inactive)`, () =>
  leaves(async ({ id, me }) => {
    assert.equal((await (await scimOf(id))('PATCH', `/Users/${me}`, inactive)).status, 200)
    return undefined
  }),
)
row('a SCIM person becomes inactive or is deleted', `${ALL} (deleted)`, () =>
  leaves(async ({ id, me }) => {
    assert.equal((await (await scimOf(id))('DELETE', `/Users/${me}`)).status, 204)
    return undefined
  }),
)
row('a person deletes their login', ALL, () =>
  leaves(async ({ person }) => {
    const { email } = (await person<WhoView>('GET', '/session')).data.user
    const gone = await person<{ ended: EndedView }>('POST', '/me/delete', { email })
    assert.equal(gone.status, 200, gone.text)
    return gone.data.ended
  }, 'person.delete'),
)
row('a member gets the role viewer or billing', ALL, () =>
  leaves(async ({ id, me, owner }) => {
    const lowered = await owner<{ ended: EndedView }>('PATCH', `/accounts/${id}/members/${me}`, { role: 'viewer' })
    assert.equal(lowered.status, 200, lowered.text)
    return lowered.data.ended
  }, 'member.role'),
)

const signInByCorp = async (visitor: string) => {
  const browser = asBrowser(g)
  corp.visitor = visitor
  const begun = await browser<{ redirect: string }>('POST', '/login/sso', { provider: 'corp' })
  const back = await journey(begun.data.redirect, corp.issuer)
  const parameters = String(back.searchParams)
  assert.equal((await browser('POST', '/login/sso/finish', { provider: 'corp', parameters })).status, 200)
  return browser
}
const putCorp = async (more: object) => {
  const provider = { name: 'Corp', issuer: corp.issuer, clientId: CLIENT_ID, secret: CLIENT_SECRET }
  assert.equal((await g.operator('PUT', '/login-providers/corp', { ...provider, ...more })).status, 200)
}

row('a group at the login provider is lost', ALL, async () => {
  const { id, owner } = await account()
  const group = { group: 'callers', account: id, role: 'member' }
  await putCorp({ groups: [group] })
  const mara = { email: 'mara@corp.example', email_verified: true }
  corp.people.set('mara', { ...mara, groups: ['callers'] })
  const equipped = await equip(id, await signInByCorp('mara'), owner)
  corp.people.set('mara', mara)
  await signInByCorp('mara')
  await requireGone(equipped)
  assert.equal(await endedKeys(id, 'member.remove'), 6)
})

test('a directory ends a person who signs in by their provider at the same moment', async () => {
  const { id } = await account()
  const [email, directory] = ['dora@dora.example', await scimOf(id)]
  await putCorp({ domains: [{ domain: 'dora.example', account: id, role: 'member' }] })
  corp.people.set('dora', { email, email_verified: true })
  const made = (await (await directory('POST', '/Users', { userName: email })).json()) as { id: string }
  await signInByCorp('dora')
  const { ended } = await g.gateway.database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from scim_user where person_id = $1 for update' }, [made.id])
    const ended = directory('PATCH', `/Users/${made.id}`, inactive)
    await until(async () => (await g.sql(WAITING_FOR_LOCKS)).length > 0)
    await signInByCorp('dora')
    return { ended }
  })
  assert.equal((await ended).status, 200)
  assert.deepEqual(await g.sql('select 1 from membership where person_id = $1', [made.id]), [])
})

test('keys of nobody that the person made end too, and keys that they made for others stay', async () => {
  const { id, owner } = await account()
  const admin = await join(id, 'admin-leaves@home.example', 'admin')
  const stays = await join(id, 'stays@home.example', 'member')
  const [me, theirs] = [await idOf(admin), await idOf(stays)]
  const make = async (body: object) => (await admin<NewKey>('POST', `/accounts/${id}/keys`, body)).data
  const [nobodys, made] = [await make({ name: 'service' }), await make({ name: 'for another', memberId: theirs })]
  const left = await owner<{ ended: EndedView }>('DELETE', `/accounts/${id}/members/${me}`)
  assert.equal(left.data.ended.keys, 1)
  assert.deepEqual([await status(g, nobodys.key), await status(g, made.key)], [401, 200])
})

test('keys are handed over to a named member, whose they are then, and programs and tokens still end', async () => {
  const { id, owner } = await account()
  const admin = await join(id, 'admin-hands-over@home.example', 'admin')
  const heir = await join(id, 'heir@home.example', 'member')
  const [me, keysTo] = [await idOf(admin), await idOf(heir)]
  const made = (await admin<NewKey>('POST', `/accounts/${id}/keys`, { name: 'production' })).data
  const token = (await admin<NewToken>('POST', `/accounts/${id}/tokens`, { name: 'ci', scopes: ['keys'] })).data
  for (const wrong of ['usr_nobody', me])
    assert.equal((await owner('DELETE', `/accounts/${id}/members/${me}?keysTo=${wrong}`)).status, 400)
  assert.equal(await status(g, made.key), 200)
  const left = await owner<{ ended: EndedView }>('DELETE', `/accounts/${id}/members/${me}?keysTo=${keysTo}`)
  assert.deepEqual(left.data.ended, { keys: 0, handedOver: 1, programs: 0, tokens: 1, links: 0 })
  assert.equal(await status(g, made.key), 200)
  const { data } = await owner<{ items: KeyView[] }>('GET', `/accounts/${id}/keys`)
  assert.equal(data.items.find((one) => one.id === made.id)?.memberId, keysTo)
  assert.deepEqual((await audited(id, 'member.remove')).keysTo, keysTo)
  // Somebody who comes back finds none of it alive.
  await join(id, 'admin-hands-over@home.example', 'admin').catch(() => undefined)
  assert.equal((await g.call(`/admin/v1/accounts/${id}/keys`, token.token)).status, 401)
})

test('a key that is being created while its person leaves does not survive', async () => {
  const { id, owner } = await account()
  for (let round = 0; round < 5; round++) {
    const admin = await join(id, `racer-${round}@home.example`, 'admin')
    const me = await idOf(admin)
    const making = Array.from({ length: 6 }, (_, n) =>
      admin<NewKey>('POST', `/accounts/${id}/keys`, { name: `${n}`, ...(n % 2 ? { memberId: me } : {}) }),
    )
    const left = owner('DELETE', `/accounts/${id}/members/${me}`)
    const keys = (await Promise.all(making)).flatMap((one) => (one.status === 200 ? [one.data.key] : []))
    assert.equal((await left).status, 200)
    for (const key of keys) assert.equal(await status(g, key), 401)
    const members = await owner<{ items: MemberView[] }>('GET', `/accounts/${id}/members`)
    assert.ok(!members.data.items.some(({ userId }) => userId === me))
  }
})

const makeKey = async (id: string, by: Browser, body: object = {}) =>
  (await by<NewKey>('POST', `/accounts/${id}/keys`, { name: 'k', ...body })).data

row('a member gets another lower role', 'keys stay, unused invitations end', async () => {
  const { id, owner } = await account()
  const admin = await join(id, 'admin-lowered@home.example', 'admin')
  const [me, { key }] = [await idOf(admin), await makeKey(id, admin)]
  const invited = await admin('POST', `/accounts/${id}/invites`, { email: 'later@home.example', role: 'admin' })
  assert.equal(invited.status, 200, invited.text)
  const lowered = await owner<{ ended: null }>('PATCH', `/accounts/${id}/members/${me}`, { role: 'member' })
  assert.deepEqual([lowered.data.ended, await status(g, key)], [null, 200])
  assert.deepEqual((await owner<{ items: [] }>('GET', `/accounts/${id}/invites`)).data.items, [])
})

row('an operator is removed', 'tokens, links and the session end, and keys of others’ accounts stay', async () => {
  const { id } = await account()
  const become = (email: string) => joined(g, '/operator-invites', { email }, PASSWORD)
  const [operator] = [await become('op-leaves@home.example'), await become('op-stays@home.example')]
  const { key } = await makeKey(id, operator)
  const token = (await operator<NewToken>('POST', '/tokens', { name: 'ci', scopes: ['accounts:read'] })).data.token
  await operator('POST', '/operator-invites', { email: 'friend@home.example' })
  const left = await g.operator<{ ended: EndedView }>('DELETE', `/operators/${await idOf(operator)}`)
  assert.deepEqual(left.data.ended, { keys: 0, handedOver: 0, programs: 0, tokens: 1, links: 1 })
  assert.equal((await operator('GET', '/session')).status, 401)
  assert.equal((await g.call('/admin/v1/accounts', token)).status, 401)
  assert.equal(await status(g, key), 200)
})

row('a token is revoked', 'tokens made with it end, keys that it made stay', async () => {
  const { id, owner } = await account()
  const body = { name: 'ci', scopes: ['keys', 'tokens'] }
  const made = (await owner<NewToken>('POST', `/accounts/${id}/tokens`, body)).data
  const asToken = async <T>(path: string, sent: object) =>
    ((await (await g.call(`/admin/v1/accounts/${id}${path}`, made.token, sent)).json()) as { data: T }).data
  const child = await asToken<NewToken>('/tokens', { name: 'child', scopes: ['keys'] })
  const { key } = await asToken<NewKey>('/keys', { name: 'k' })
  assert.equal((await owner('DELETE', `/accounts/${id}/tokens/${made.id}`)).status, 200)
  for (const { token } of [made, child])
    assert.equal((await g.call(`/admin/v1/accounts/${id}/keys`, token)).status, 401)
  assert.equal(await status(g, key), 200)
})

row('a key is revoked', 'its client secrets, sockets and background work end', async () => {
  const { id, owner } = await account()
  const person = await join(id, 'revoker@home.example', 'member')
  const equipped = await equip(id, person, owner)
  const batch = await startBatch(equipped.keys[0]?.key ?? '')
  const { data } = await owner<{ items: KeyView[] }>('GET', `/accounts/${id}/keys`)
  for (const one of data.items.filter(({ memberId }) => memberId === equipped.me))
    assert.equal((await owner('DELETE', `/keys/${one.id}`)).status, 200)
  const [background = '', played = ''] = equipped.responses
  await requireGone({ ...equipped, responses: [background] })
  const { completed, failed } = await until(async () => {
    const now = await batchNow(batch)
    return now.status === 'completed' && now
  })
  assert.ok(failed > 0 && completed + failed === LINES, `${completed} lines were answered, ${failed} were not`)
  assert.deepEqual(await statesOf([played]), ['in_progress'], 'what runs in the console has no key')
  assert.equal((await owner('DELETE', `/accounts/${id}/members/${await idOf(person)}`)).status, 200)
  await until(async () => (await statesOf([played]))[0] === 'cancelled')
})

const LINES = 40
/** A batch that runs, a few lines at once, each for seconds. */
async function startBatch(key: string): Promise<string> {
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'A story. [[chunks=50]] [[slow=50]]' }] }
  const id = await sendBatch(g, key, Array(LINES).fill(body))
  await until(async () => (await batchNow(id)).status === 'in_progress')
  return id
}

const batchNow = async (id: string) => {
  const text = 'select status, completed, failed from batch where id = $1'
  const [row] = await g.gateway.database.query<{ status: string; completed: number; failed: number }>({ text }, [id])
  return row!
}

/** A socket that a client secret of the key opens in the other process, before its vendor is asked for anything. */
async function openBySecret(key: string): Promise<TestSocket> {
  const session = { type: 'realtime', model: 'alpha-realtime-1' }
  const made = await g.call('/v1/realtime/client_secrets', key, { session })
  const { value } = (await made.json()) as { value: string }
  return openSocket(`${other.url}/v1/realtime`, { protocols: ['realtime', `openai-insecure-api-key.${value}`] })
}

row('a key expires', 'its sockets end, also those of its client secrets', async () => {
  const { id, owner } = await account()
  const { key, id: keyId } = await makeKey(id, owner, {})
  const sockets = [await openBySecret(key), await openSocket(`${other.url}/v1/responses`, { key })]
  // No process hears of it, as when time passes, and it is later than what they still hear of its creation.
  const later = `update api_key set expires_at = now() + interval '4 seconds' where id = $1`
  await g.sql(later, [keyId])
  for (const socket of sockets) assert.equal((await socket.closed()).code, 1008)
})

row('an account is suspended', 'the sockets of its keys and client secrets end, and none is opened', async () => {
  const { id, key } = await account()
  const sockets = [await openBySecret(key), await openSocket(`${other.url}/v1/responses`, { key })]
  assert.equal((await g.operator('POST', `/accounts/${id}/suspend`, { reason: 'unpaid' })).status, 200)
  for (const socket of sockets) assert.equal((await socket.closed()).code, 1008)
  await assert.rejects(openBySecret(key))
})

row('a team is deleted', 'it must be empty', async () => {
  const { id, owner } = await account()
  const team = (await owner<{ id: string }>('POST', `/accounts/${id}/teams`, { name: 'a' })).data.id
  const made = await makeKey(id, owner, { teamId: team })
  assert.equal((await owner('DELETE', `/accounts/${id}/teams/${team}`)).status, 409)
  assert.equal((await owner('DELETE', `/keys/${made.id}`)).status, 200)
  assert.equal((await owner('DELETE', `/accounts/${id}/teams/${team}`)).status, 200)
})

row('an account is closed', 'all its keys and their sockets end', async () => {
  const { id, key } = await account()
  const socket = await openSocket(`${other.url}/v1/responses`, { key })
  const closed = await g.operator('POST', `/accounts/${id}/close`, { reason: 'gone', balance: 'writeoff' })
  assert.equal(closed.status, 200)
  assert.ok([401, 403].includes(await status(g, key)))
  assert.equal((await socket.closed()).code, 1008)
})

test('the table in the guide has a row for each of these, and no other', async () => {
  const guide = await readFile('docs/guides/15-people.md', 'utf8')
  const [, table = ''] = guide.split('| what ends | what ends with it | what stays |')
  const [body = ''] = table.split('\n\n')
  const rows = [...body.matchAll(/^\| (an? [^|]+) \|/gm)].map(([, name]) => name)
  assert.deepEqual(rows.toSorted(), [...tried].toSorted())
})
