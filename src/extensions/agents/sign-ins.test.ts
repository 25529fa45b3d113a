// Tool servers at which each person signs in: by clicks in the console, with a certified authorization server, and with
// hostile ones.
import { hash } from 'node:crypto'
import { startConsole, type TestConsole, type Visitor } from '../../../test/browser/console.ts'
import { after, assert, BY, before, listen, started, test, until } from '../../../test/gateway.ts'
import { connect } from '../../../test/mcp/client.ts'
import { type ForeignServer, startForeignServer, text } from '../../../test/mcp/foreign-server.ts'
import { startToolAuthority, type ToolAuthority } from '../../../test/mcp/tool-authority.ts'

let authority: ToolAuthority
let server: ForeignServer
let protection: NonNullable<ForeignServer['protects']>
let home: TestConsole
let operator: Visitor
let account = ''
let person = ''
/** Who the server took the caller of each call for. */
const callers: (string | undefined)[] = []

/** Describes itself as a test tells it. */
let description: (path: string) => unknown = () => ({})
const hostile = started(() =>
  listen((request, response) => {
    const said = description(request.url ?? '')
    if (request.method === 'POST' || said === undefined)
      return void response.writeHead(said === undefined ? 404 : 401).end()
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(typeof said === 'string' ? said : JSON.stringify(said))
  }),
)

before(async () => {
  authority = await startToolAuthority()
  server = await startForeignServer('modern', [{ name: 'my_notes', description: 'Notes of a person.' }])
  server.acts.set('my_notes', async ({ headers }) => {
    const subject = await authority.subjectOf((headers.authorization ?? '').replace('Bearer ', ''))
    callers.push(subject)
    return text(`notes of ${subject}`)
  })
  protection = {
    isGood: async (token) => (await authority.subjectOf(token)) !== undefined,
    description: { resource: server.url, authorization_servers: [authority.issuer], scopes_supported: ['notes'] },
  }
  server.protects = protection
  const hosts = [authority.hostAndPort, new URL(server.url).host, hostile.host]
  // People sign in at other hosts, of which some are hostile.
  const mayHappen = (text: string) => text.startsWith('request: ') || text.includes('status of 502')
  home = await startConsole({ env: { TOLLGATE_OUTBOUND_ALLOW: hosts.join(',') }, mayHappen })
  account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
  operator = await home.visitor()
  await home.setUp(operator, 'op@example.com')
  const [row] = await home.sql<{ id: string }>('select id from person')
  person = row?.id ?? ''
  const member = { text: `insert into membership (account_id, person_id, role) values ($1, $2, 'owner')` }
  await home.gateway.database.query(member, [account, person])
  await home.sql(`insert into person (id, email) values ('usr_other', 'other@sign-ins.example')`)
  await home.gateway.database.query(member, [account, 'usr_other'])
})

after(async () => {
  await home?.close()
  authority.close()
  await server.close()
})

const ask = (method: string, path: string, body?: object) =>
  operator.page.evaluate(
    async ([how, where, sent]) => {
      const init = { method: how, headers: { 'content-type': 'application/json' }, ...(sent ? { body: sent } : {}) }
      const answer = await fetch(`/console/api${where}`, init)
      const { data, error, message } = (await answer.json()) as any
      return { status: answer.status, data, message: String(error?.message ?? message ?? '') }
    },
    [method, path, body ? JSON.stringify(body) : ''] as const,
  )

async function call(key: string): Promise<string> {
  const client = await connect(home.url, key)
  const result: any = await client.callTool({ name: 'my_notes', arguments: {} })
  await client.close()
  return result.content[0].text
}

/** Made by the person themselves, unless somebody else is named. */
const keyOf = (memberId: string | null, maker: string | null = memberId) =>
  home.gateway.keys.create(account, { name: 'k', memberId }, { ...BY, ...(maker ? { person: maker } : {}) })

/** For oneself. */
async function signIn(): Promise<void> {
  const { page } = operator
  await page.goto(`${home.url}/console/a/${account}/sign-ins`)
  await page.getByRole('row', { name: /notes/ }).getByRole('button', { name: 'Sign in' }).first().click()
  await page.getByText('Signed in.').waitFor()
}

/** Whoever may make keys for others, or give them theirs, does not get at what is theirs at a server. */
async function onlyOwnKeys(mine: string): Promise<void> {
  const { keys } = home.gateway
  const other = { ...BY, person: 'usr_other' }
  const [forged, unsaid, given, shared] = [
    await keyOf(person, 'usr_other'),
    await keyOf(person, null),
    await keyOf(null, 'usr_other'),
    await keyOf(null, person),
  ]
  await keys.change(given.id, { memberId: person }, other)
  await keys.change(shared.id, { memberId: person }, other)
  const rotated = await keys.rotate(mine, { overlapSeconds: 600 }, other)
  const digest = { sha256: hash('sha256', 'sk-somebodys'), last4: 'odys' }
  await keys.import(account, { name: 'k', memberId: person, ...digest }, { ...BY, person })
  for (const key of [forged.key, unsaid.key, given.key, shared.key, rotated.key, 'sk-somebodys'])
    assert.match(await call(key), /first: open .*, and use a key that you made yourself/)
  await keys.change(given.id, { memberId: null }, other)
  await keys.change(given.id, { memberId: person }, { ...BY, person })
  assert.match(await call(given.key), /a key that you made yourself/, 'its value is known to whoever made it')
}

test('each person signs in at a server, and calls of their keys alone use that sign-in, renewed ahead, until they sign out', async () => {
  const { page } = operator
  const made = await home.operator<any>('PUT', '/tool-servers/notes', { url: server.url, auth: 'person' })
  assert.match(made.data.error, /HTTP 401/)
  authority.visitor = 'the operator'
  await operator.go('/operator/tools/notes')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Signed in.').waitFor()
  await page.getByRole('button', { name: 'Refresh', exact: true }).click()
  await page.getByRole('row', { name: /my_notes/ }).waitFor()
  const { data } = await home.operator<any>('GET', '/tool-servers/notes')
  const choice = {
    tool: 'my_notes',
    digest: data.tools[0].digest,
    pricing: { unit: 'credits', tiers: [{ call: '1' }] },
  }
  assert.equal((await home.operator('PUT', '/tool-servers/notes/tools', choice)).status, 200)

  const { data: own } = await ask('POST', `/accounts/${account}/keys`, { name: 'k', memberId: person })
  const [mine, { key: nobodys }] = [own.key as string, await keyOf(null)]
  const { key: strangers } = await home.account()
  const place = `${home.url}/console/a/${account}/sign-ins`
  assert.match(await call(mine), new RegExp(`Sign in to the tool server "notes" first: open ${place}`))
  assert.equal(callers.length, 0)

  authority.visitor = 'ann'
  await signIn()
  assert.equal(await call(mine), 'notes of ann')
  await onlyOwnKeys(own.id)
  const told = server.acts.get('my_notes')
  for (const isResult of [true, false]) {
    server.acts.set('my_notes', ({ headers, id, res }) => {
      const said = `You sent ${headers.authorization?.replace('Bearer ', '')}.`
      if (isResult) return { ...text(said), isError: true }
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: said } }))
    })
    assert.match(await call(mine), /says: You sent \[key\]\./, 'a server cannot show the token to whoever calls')
  }
  server.acts.set('my_notes', told!)
  for (const key of [nobodys, strangers]) assert.match(await call(key), /Sign in to the tool server "notes" first/)
  authority.visitor = 'the team'
  await page.getByRole('row', { name: /notes/ }).getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Signed in.').first().waitFor()
  await until(() => call(nobodys), 'notes of the team')
  assert.equal(await call(mine), 'notes of ann')
  assert.match(await call(strangers), /first/)

  const spent = callers.length
  server.protects = { ...protection, isGood: async () => false }
  for (let tries = 0; tries < 8; tries++) assert.match(await call(mine), /"notes" no longer takes your sign-in/)
  server.protects = protection
  assert.equal(await call(nobodys), 'notes of the team', 'one person’s trouble is nobody else’s')
  assert.equal(callers.length, spent + 1)

  // A token lives for four seconds: it is renewed, by a refresh token that is good for one use.
  const tokens = () => new Set(server.seen.filter(({ method }) => method === 'tools/call').map(({ key }) => key))
  const before = tokens().size
  await until(async () => (await call(mine)) === 'notes of ann' && tokens().size > before + 1)
  const last = (server.seen.at(-1)?.key ?? '').replace('Bearer ', '')
  assert.equal(await authority.subjectOf(last), 'ann')
  const rows = await home.sql<{ sealed: Buffer }>('select sealed from tool_connection')
  assert.equal(rows.length, 3)
  assert.ok(rows.every(({ sealed }) => !sealed.includes(last)))

  await page.getByRole('row', { name: /notes/ }).getByRole('button', { name: 'Sign out' }).first().click()
  await page.getByText('Signed out.').waitFor()
  assert.match(await call(mine), /first/)
  assert.equal(await authority.subjectOf(last), undefined, 'revoked there too')
  await home.settled()
  const paid = 100_000_000n - (await home.balance(account)).posted
  assert.equal(paid, BigInt(callers.length) * 1_000_000n)
})

test('a sign-in is finished once, by the session that began it; whoever leaves the account loses theirs', async () => {
  authority.visitor = 'eve'
  const begun = await ask('POST', `/accounts/${account}/tool-connections/notes`, { shared: false })
  const { searchParams } = new URL(begun.data.redirect)
  assert.equal(searchParams.get('code_challenge_method'), 'S256')
  const state = searchParams.get('state') ?? ''
  for (const parameters of ['code=x', `code=x&state=${'a'.repeat(43)}`])
    assert.equal((await ask('PUT', `/accounts/${account}/tool-connections`, { parameters })).status, 404)
  const other = await ask('PUT', '/tool-connections', { parameters: `code=x&state=${state}` })
  assert.equal(other.status, 404, 'of another account, or of none')
  const again = await ask('PUT', `/accounts/${account}/tool-connections`, { parameters: `code=x&state=${state}` })
  assert.equal(again.status, 404, 'once')
  const fresh = await ask('POST', `/accounts/${account}/tool-connections/notes`, { shared: false })
  const made = new URL(fresh.data.redirect).searchParams.get('state')
  const wrong = await ask('PUT', `/accounts/${account}/tool-connections`, { parameters: `code=forged&state=${made}` })
  assert.equal(wrong.status, 502)
  assert.match(wrong.message, /cannot be used/)
  const { database } = home.gateway
  const { length } = await database.query({ text: 'select 1 from tool_connection where person_id is null' })
  assert.equal(length, 2)
  await signIn()
  const { key } = await keyOf(person)
  assert.equal(await call(key), 'notes of eve')
  const token = (server.seen.at(-1)?.key ?? '').replace('Bearer ', '')
  assert.equal((await home.operator('DELETE', `/accounts/${account}/members/${person}`)).status, 200)
  await assert.rejects(call(key), /401/, 'at once')
  assert.equal(await authority.subjectOf(token), undefined, 'revoked there too')
  const left = await database.query({ text: 'select 1 from tool_connection where person_id is not null' })
  assert.equal(left.length, 0)
})

test('a hostile server cannot lead the sign-in to another issuer, an address within, a script or an endless document', async () => {
  const base = hostile.url
  await home.operator('PUT', '/tool-servers/trap', { url: `${base}/mcp`, auth: 'person' })
  const good = {
    issuer: base,
    authorization_endpoint: `${base}/authorize`,
    token_endpoint: `${base}/token`,
    registration_endpoint: `${base}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  }
  const resource = (more: object) => ({ resource: `${base}/mcp`, authorization_servers: [base], ...more })
  const tried = async (ofResource: unknown, ofServer: unknown) => {
    description = (path) =>
      path.includes('protected-resource') ? ofResource : path.includes('.well-known') ? ofServer : {}
    const { status, message } = await ask('POST', '/tool-connections/trap', { shared: true })
    assert.equal(status, 502, message)
    assert.ok(message.length < 400)
    return message
  }
  assert.match(await tried(resource({}), { ...good, issuer: 'https://elsewhere.example' }), /cannot be used: .*issuer/i)
  assert.match(await tried(resource({ authorization_servers: ['http://10.0.0.1'] }), good), /not public/)
  assert.match(await tried(resource({ resource: 'https://elsewhere.example/mcp' }), good), /cannot be used/)
  assert.match(await tried(resource({}), JSON.stringify({ ...good, x: 'y'.repeat(200_000) })), /cannot be used/)
  assert.match(await tried(resource({}), { ...good, authorization_endpoint: 'javascript:alert(1)' }), /cannot be used/)
  assert.match(
    await tried(resource({}), {
      ...good,
      token_endpoint: 'http://169.254.169.254/token',
      registration_endpoint: 'http://169.254.169.254/r',
    }),
    /cannot be used/,
  )
  assert.match(await tried(undefined, undefined), /cannot be used/)
  assert.equal((await home.sql(`select 1 from tool_connection where server = 'trap'`)).length, 0)
})
