// OAuth: programs connect with a person's consent, by the official client, and hostile ones do not.
import { createHash, randomBytes } from 'node:crypto'
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import { startConsole, type TestConsole, type Visitor } from '../../../test/browser/console.ts'
import { after, assert, atOnce, BY, before, OPERATOR_TOKEN, startGateway, test, textOf } from '../../../test/gateway.ts'
import { Program, serveDocument } from '../../../test/mcp/oauth-program.ts'
import { silentLog } from '../../kernel/log.ts'

let document: Awaited<ReturnType<typeof serveDocument>>
let home: TestConsole
let person: Visitor
let own = ''
/** Where the program would listen; anything that answers will do. */
let callback = ''
before(async () => {
  document = await serveDocument()
  const mayHappen = (text: string) => text.startsWith('request: ') // Programs are at other hosts.
  home = await startConsole({ env: { TOLLGATE_OUTBOUND_ALLOW: document?.host ?? '' }, mayHappen })
  callback = `${home.url}/healthz`
  own = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
  person = await home.visitor()
  await home.setUp(person, 'op@example.com')
})
after(async () => {
  document?.server.close()
  await home?.close()
})

async function connect(program: Program): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const client = new Client(
    { name: 'lighthouse', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  const transport = new StreamableHTTPClientTransport(new URL(`${home.url}/mcp`), { authProvider: program })
  return { client, transport }
}

/** Where a browser that follows a link to the callback ends. */
async function endOf({ page }: Visitor, act: () => Promise<unknown>): Promise<URL> {
  await act()
  await page.waitForURL((url) => url.href.startsWith(callback))
  return new URL(page.url())
}

async function consent(program: Program, visitor = person): Promise<URL> {
  const { page } = visitor
  await page.goto(String(program.asked))
  await page.getByRole('heading', { name: 'Connect a program' }).waitFor()
  return endOf(visitor, () => page.getByRole('button', { name: 'Allow' }).click())
}

test('the official client connects with a click of consent, calls, renews its tokens, and stops when it is revoked', async () => {
  const program = new Program(callback)
  const first = await connect(program)
  await assert.rejects(first.client.connect(first.transport), UnauthorizedError)
  assert.match(String(program.asked), new RegExp(`^${home.url}/oauth/authorize\\?`))
  assert.equal(program.asked?.searchParams.get('resource'), `${home.url}/mcp`)

  const { page } = person
  await page.goto(String(program.asked))
  await page.getByText('Lighthouse <b>agent</b>').first().waitFor()
  await page.getByText(new URL(home.url).origin).waitFor()
  await page.getByLabel('Social data').uncheck()
  await page.getByLabel('Credits per day at most').fill('2')
  const back = await endOf(person, () => page.getByRole('button', { name: 'Allow' }).click())
  assert.equal(back.searchParams.get('iss'), home.url)
  await first.transport.finishAuth(back.searchParams)

  const { client, transport } = await connect(program)
  await client.connect(transport)
  const { tools } = await client.listTools()
  assert.ok(tools.some(({ name }) => name === 'website_ranks'))
  assert.ok(!tools.some(({ name }) => name.startsWith('social_')))
  const ranks = { name: 'website_ranks', arguments: { keys: 'example.com' } }
  assert.equal((await client.callTool(ranks)).isError, undefined)

  const { items } = await home.gateway.keys.list(own, { limit: 10 })
  const [key] = items
  assert.equal(key?.client, 'Lighthouse <b>agent</b>')
  assert.deepEqual(key?.models, ['siteanalytics'])
  assert.equal(key?.limits.spendPerDay, '2')

  const before = program.kept
  assert.equal(before.expires_in, 600)
  program.kept = { ...before, access_token: randomBytes(32).toString('base64url') }
  assert.equal((await client.callTool(ranks)).isError, undefined, 'a token that is no good is renewed')
  const refreshed = program.kept.refresh_token
  assert.notEqual(refreshed, before.refresh_token)

  // Nowhere else: the token is for the tools.
  assert.equal((await home.call('/v1/account', program.kept.access_token)).status, 401)

  await person.go(`/a/${own}/keys`)
  await page.getByRole('row', { name: /Lighthouse.*connected/ }).waitFor()
  await home.gateway.keys.revoke(key!.id, BY)
  await assert.rejects(client.callTool(ranks))
  assert.equal(await isLive(program.kept?.access_token ?? 'x'), false)
  const again = await token({ grant_type: 'refresh_token', refresh_token: refreshed }, program)
  assert.deepEqual([again.status, again.body.error], [400, 'invalid_grant'])
  await client.close()
})

const clientIdOf = (program: Program) => String(program.information?.client_id)

async function token(fields: Record<string, string>, program: Program): Promise<{ status: number; body: any }> {
  const body = new URLSearchParams({ client_id: clientIdOf(program), ...fields })
  const answer = await fetch(`${home.url}/oauth/token`, { method: 'POST', body })
  return { status: answer.status, body: await answer.json() }
}

/** A program that has a code, and has not used it. */
async function withCode(): Promise<{ program: Program; code: string }> {
  const program = new Program(callback)
  const { client, transport } = await connect(program)
  await assert.rejects(client.connect(transport), UnauthorizedError)
  const back = await consent(program)
  return { program, code: back.searchParams.get('code') ?? '' }
}

const exchange = (code: string, { verifier }: Program) => ({
  grant_type: 'authorization_code',
  code,
  code_verifier: verifier,
  redirect_uri: callback,
})

const isLive = async (bearer: string) =>
  (await home.call('/mcp', bearer, { jsonrpc: '2.0', id: 1, method: 'ping' })).status !== 401

test('a code is good once, for its program and its verifier; used again, all that came of it ends', async () => {
  const { program, code } = await withCode()
  const other = new Program(callback)
  const { client, transport } = await connect(other)
  await assert.rejects(client.connect(transport), UnauthorizedError)
  assert.equal((await token(exchange(code, program), other)).status, 400, 'another program’s code')
  const wrong = await token({ ...exchange(code, program), code_verifier: randomBytes(32).toString('hex') }, program)
  assert.equal(wrong.status, 400)
  const { status, body } = await token(exchange(code, program), program)
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(await isLive(body.access_token), true)
  assert.equal((await token(exchange(code, program), program)).status, 400, 'the code again')
  assert.equal(await isLive(body.access_token), false)
  const refreshed = await token({ grant_type: 'refresh_token', refresh_token: body.refresh_token }, program)
  assert.equal(refreshed.status, 400)
})

test('a refresh token that comes a second time ends the connection: one of the two has stolen it', async () => {
  const { program, code } = await withCode()
  const { body: first } = await token(exchange(code, program), program)
  const refresh = (refresh_token: string) => token({ grant_type: 'refresh_token', refresh_token }, program)
  const second = await refresh(first.refresh_token)
  assert.equal(second.status, 200)
  assert.equal(await isLive(second.body.access_token), true)
  assert.equal((await refresh(first.refresh_token)).status, 400)
  assert.equal(await isLive(second.body.access_token), false)
  assert.equal((await refresh(second.body.refresh_token)).status, 400)
  const [key] = (await home.gateway.keys.list(own, { limit: 1 })).items
  assert.ok(key?.revokedAt, 'and is listed as revoked')
})

const FOREIGN = { resource: 'https://other.example/mcp' }

test('a refresh may name any path of the tools, and one for something else does not use the token up', async () => {
  const { program, code } = await withCode()
  let { status, body } = await token(exchange(code, program), program)
  for (const path of ['/mcp/analytics', '/mcp', '/mcp/']) {
    const refresh = { grant_type: 'refresh_token', refresh_token: body.refresh_token }
    assert.equal((await token({ ...refresh, ...FOREIGN }, program)).body.error, 'invalid_target')
    ;({ status, body } = await token({ ...refresh, resource: home.url + path }, program))
    assert.equal(status, 200, `${path} ${JSON.stringify(body)}`)
    assert.equal(await isLive(body.access_token), true)
  }
})

test('a consent and its code may name any path of the tools, and asking for openid and models too is one click', async () => {
  const program = new Program(callback)
  const { client, transport } = await connect(program)
  await assert.rejects(client.connect(transport), UnauthorizedError)
  program.asked?.searchParams.set('resource', `${home.url}/mcp/analytics/`)
  program.asked?.searchParams.set('scope', 'openid mcp api')
  program.asked?.searchParams.set('nonce', 'n-0123456789')
  const fields = exchange((await consent(program)).searchParams.get('code') ?? '', program)
  assert.equal((await token({ ...fields, ...FOREIGN }, program)).body.error, 'invalid_target')
  const { status, body } = await token({ ...fields, resource: `${home.url}/mcp/analytics` }, program)
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(await isLive(body.access_token), true)
})

test('a person who allows a program again has one key for it: the earlier one ends', async () => {
  const { program, code } = await withCode()
  const first = await token(exchange(code, program), program)
  assert.equal(await isLive(first.body.access_token), true)
  const again = await consent(program)
  const second = await token(exchange(again.searchParams.get('code') ?? '', program), program)
  assert.equal(await isLive(second.body.access_token), true)
  assert.equal(await isLive(first.body.access_token), false)
  const { refresh_token } = first.body
  assert.equal((await token({ grant_type: 'refresh_token', refresh_token }, program)).status, 400)
  const [now, before] = (await home.gateway.keys.list(own, { limit: 2 })).items
  assert.deepEqual([now?.revokedAt, before?.replacedBy], [null, now?.id])
  assert.ok(before?.revokedAt)
})

test('a code that two exchange at once is exchanged by one at most', async () => {
  const { program, code } = await withCode()
  const answers = await atOnce(5, () => token(exchange(code, program), program))
  assert.ok(answers.filter(({ status }) => status === 200).length <= 1)
})

/** What a stranger's link to the authorization endpoint does: where it sends a browser, or what it says. */
async function ask(client_id: string, changes: Record<string, string | undefined>) {
  const all = {
    client_id,
    response_type: 'code',
    redirect_uri: callback,
    scope: 'mcp',
    state: 's',
    code_challenge: createHash('sha256').update('x'.repeat(43)).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  }
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const answer = await fetch(`${home.url}/oauth/authorize?${new URLSearchParams(given)}`, { redirect: 'manual' })
  return { status: answer.status, location: answer.headers.get('location') ?? '', said: await answer.text() }
}

async function registered(metadata: object = {}): Promise<string> {
  const answer = await register({ redirect_uris: [callback], ...metadata })
  assert.equal(answer.status, 201)
  return ((await answer.json()) as { client_id: string }).client_id
}

test('what is wrong with a request is said on a page: nobody is sent to a stranger’s address by a link', async () => {
  const client = await registered({ redirect_uris: [callback, 'https://thief.example/registered'] })
  assert.match((await ask(client, {})).location, /\/console\/api\/connect\//)
  const wrong: [string, Record<string, string | undefined>][] = [
    ['invalid_redirect_uri', { redirect_uri: 'https://thief.example/callback' }],
    ['invalid_request', { code_challenge_method: 'plain' }],
    ['invalid_request', { code_challenge: undefined, code_challenge_method: undefined }],
    ['invalid_target', { resource: 'https://other.example/mcp' }],
    ['unsupported_response_type', { response_type: 'token' }],
    ['unsupported_response_mode', { response_mode: 'form_post' }],
    ['unsupported_response_mode', { response_mode: 'fragment' }],
    ['login_required', { prompt: 'none' }],
    ['invalid_request', { state: 'a\0b' }],
    ['invalid_scope', { scope: 'mcp\0' }],
    ['invalid_target', { resource: '\0' }],
    ['invalid_client', { client_id: 'a\0b' }],
    ['invalid_client', { client_id: 'https://127.0.0.1/client.json' }],
    ['invalid_client', { client_id: 'https://169.254.169.254/client.json' }],
    ['invalid_client', { client_id: 'https://[::1]/c' }],
    ['invalid_client', { client_id: 'nobody' }],
  ]
  for (const [error, changes] of wrong) {
    const { status, location, said } = await ask(client, {
      redirect_uri: 'https://thief.example/registered',
      ...changes,
    })
    assert.deepEqual([status, location], [400, ''], JSON.stringify(changes))
    assert.match(said, new RegExp(`could not be made: ${error}`), JSON.stringify(changes))
  }
})

test('NUL in a code, a token or a verifier is a refusal like any other', async () => {
  const program = Object.assign(new Program(callback), { information: { client_id: await registered() } })
  for (const fields of [
    { grant_type: 'refresh_token', refresh_token: 'a\0b' },
    { ...exchange('a\0b', program), code_verifier: 'x'.repeat(43) },
    { ...exchange('ab', program), code_verifier: 'x\0'.repeat(43) },
    { grant_type: 'refresh\0token' },
    { grant_type: 'refresh_token', refresh_token: 'ab', client_id: 'a\0b' },
  ]) {
    const { status } = await token(fields, program)
    assert.ok(status === 400 || status === 401, `${status} ${JSON.stringify(fields)}`)
  }
})

test('the consent shows the scheme to which a person is sent back, and no host that a program made up', async () => {
  const client = await registered({ redirect_uris: ['lighthouse://claude.ai/cb'] })
  const { page } = person
  const asked = new URL(`${home.url}/oauth/authorize`)
  const code_challenge = createHash('sha256').update('x'.repeat(43)).digest('base64url')
  const fields = { client_id: client, response_type: 'code', redirect_uri: 'lighthouse://claude.ai/cb', code_challenge }
  asked.search = String(new URLSearchParams({ ...fields, code_challenge_method: 'S256' }))
  await page.goto(String(asked))
  await page.getByText('lighthouse: (a program on your device)').waitFor()
  assert.equal(await page.getByText('claude.ai').count(), 0)
})

test('a consent is given only in the browser that asked for it', async () => {
  const program = new Program(callback)
  const { client, transport } = await connect(program)
  await assert.rejects(client.connect(transport), UnauthorizedError)
  // Somebody else begins, and sends the person a link to what they have begun.
  const begun = await fetch(String(program.asked), { redirect: 'manual' })
  const uid = begun.headers.get('location')?.split('/').at(-1) ?? ''
  await person.page.goto(`${home.url}/console/connect?consent=${uid}`)
  await person.page.getByText('is not known here, or has expired').waitFor()
})

test('a second person connects in the browser in which another one did', async () => {
  const shared = await home.visitor()
  for (const name of ['first', 'second']) {
    const email = `${name}@shared.example`
    const invited = await home.call(`/admin/v1/accounts/${own}/invites`, OPERATOR_TOKEN, { email, role: 'member' })
    const { data } = (await invited.json()) as { data: { link: string } }
    const [, secret] = data.link.split('#token=')
    await shared.context.clearCookies({ name: /^(__Host-)?tg_s$/ })
    const joined = await shared.context.request.post(`${home.url}/console/api/invites/${secret}`, {
      headers: { origin: home.url },
      data: { password: 'seven tired otters juggle' },
    })
    assert.equal(joined.status(), 200, await joined.text())
    const program = new Program(callback)
    const { client, transport } = await connect(program)
    await assert.rejects(client.connect(transport), UnauthorizedError)
    const back = await consent(program, shared)
    const { status } = await token(exchange(back.searchParams.get('code') ?? '', program), program)
    assert.equal(status, 200, name)
    // Budgets of members hold for what a program does in their name.
    const { items: keys } = await home.gateway.keys.list(own, { limit: 1 })
    const [who] = await home.sql<{ id: string }>('select id from person where email = $1', [email])
    assert.equal(keys[0]?.memberId, who?.id)
  }
  await shared.close()
})

test('refusing sends the program away with nothing', async () => {
  const program = new Program(callback)
  const { client, transport } = await connect(program)
  await assert.rejects(client.connect(transport), UnauthorizedError)
  await person.page.goto(String(program.asked))
  const back = await endOf(person, () => person.page.getByRole('button', { name: 'Deny' }).click())
  assert.equal(back.searchParams.get('error'), 'access_denied')
  assert.equal(back.searchParams.get('code'), null)
})

test('a program that names itself by a document is known by the host that vouches for it', async (t) => {
  if (!document) return t.skip('there is no openssl with which to make a certificate')
  const program = Object.assign(new Program(callback), { clientMetadataUrl: document.url })
  document.answer = { ...program.clientMetadata, client_id: document.url, client_name: 'Documented' }
  const { client, transport } = await connect(program)
  await assert.rejects(client.connect(transport), UnauthorizedError)
  assert.equal(program.asked?.searchParams.get('client_id'), document.url)
  const { page } = person
  await page.goto(String(program.asked))
  await page.getByText('Documented').first().waitFor()
  await page.getByText(document.host).waitFor()
  const back = await endOf(person, () => page.getByRole('button', { name: 'Allow' }).click())
  const { status, body } = await token(exchange(back.searchParams.get('code') ?? '', program), program)
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(await isLive(body.access_token), true)
  await fetch(`${home.url}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: document.url, token: body.access_token }),
  })
  assert.equal(await isLive(body.access_token), false, 'and may give its token back')

  const refused = async (about: object, id = `${document?.url}?${Math.random()}`) => {
    assert.ok(document)
    document.answer = about
    const asked = new URL(String(program.asked))
    asked.searchParams.set('client_id', id)
    const { status: answered, headers } = await fetch(asked, { redirect: 'manual' })
    assert.deepEqual([answered, headers.get('location')], [400, null])
  }
  await refused({ ...program.clientMetadata, client_id: 'https://other.example/client.json' })
  await refused({ ...program.clientMetadata, client_id: document.url, padding: 'x'.repeat(20_000) })
  // A host that sends visitors on to anywhere does not vouch for what is there.
  const sent = `https://${document.host}/go?to=${encodeURIComponent(document.url)}`
  await refused({ ...program.clientMetadata, client_id: sent }, sent)
})

function register(metadata: object, url = home.url): Promise<Response> {
  return fetch(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })
}

test('what says how to connect is where the standards look for it', async () => {
  const refused = await home.call('/mcp', undefined, {})
  assert.equal(refused.status, 401)
  const [, where] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? []
  const resource = (await (await fetch(where ?? '')).json()) as any
  assert.equal(resource.resource, `${home.url}/mcp`)
  const server = (await (
    await fetch(`${resource.authorization_servers[0]}/.well-known/oauth-authorization-server`)
  ).json()) as any
  assert.equal(server.issuer, home.url)
  assert.deepEqual(server.code_challenge_methods_supported, ['S256'])
  assert.deepEqual(server.response_types_supported, ['code'])
  assert.deepEqual(server.response_modes_supported, ['query'])
  assert.deepEqual(server.scopes_supported, ['offline_access', 'mcp'])
  assert.deepEqual(server.token_endpoint_auth_methods_supported, ['none'])
  assert.equal(server.client_id_metadata_document_supported, true)
  for (const name of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'])
    assert.ok(server[name].startsWith(`${home.url}/oauth/`), name)
})

test('addresses are the public ones behind a proxy with https, and there is nothing to connect to over plain http', async () => {
  await using secure = await startGateway({ env: { PUBLIC_URL: 'https://gate.example' } })
  await using plain = await startGateway({ env: { PUBLIC_URL: 'http://gate.example' } })
  const metadata = '/.well-known/oauth-authorization-server'
  const server = (await (await fetch(`${secure.url}${metadata}`)).json()) as any
  assert.equal(server.issuer, 'https://gate.example')
  assert.equal(server.token_endpoint, 'https://gate.example/oauth/token')
  const told = (await fetch(`${secure.url}/mcp`, { method: 'POST' })).headers.get('www-authenticate')
  assert.match(String(told), /resource_metadata="https:\/\/gate\.example\//)

  for (const path of [metadata, '/.well-known/oauth-protected-resource/mcp'])
    assert.equal((await fetch(`${plain.url}${path}`)).status, 404, path)
  assert.equal((await fetch(`${plain.url}/oauth/register`, { method: 'POST' })).status, 404)
  const untold = await fetch(`${plain.url}/mcp`, { method: 'POST' })
  assert.equal(untold.status, 401)
  assert.doesNotMatch(String(untold.headers.get('www-authenticate')), /resource_metadata/)
})

test('a fault of our own is a 500 without its reason, and in the log with it', async () => {
  const lines: Array<Record<string, unknown>> = []
  const own = await startGateway({
    log: { ...silentLog, error: (fields, message) => lines.push({ ...fields, message }) },
  })
  try {
    await own.sql('alter table oauth_object rename to oauth_object_away')
    const answer = await fetch(`${own.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ grant_type: 'authorization_code', code: 'c', client_id: 'some-program' }),
    })
    assert.equal(answer.status, 500)
    const body = await answer.text()
    assert.equal((JSON.parse(body) as { error: string }).error, 'server_error')
    assert.doesNotMatch(body, /oauth_object|relation|at /)
    const requestId = answer.headers.get('x-request-id')
    const [line] = lines
    assert.ok(line && requestId, 'it is logged')
    assert.equal(line.requestId, requestId)
    assert.match(String((line.error as Error).message), /oauth_object/)
  } finally {
    await own.sql('alter table oauth_object_away rename to oauth_object')
    await own.close()
  }
})

test('registrations are bounded, and what is registered must be sound', async (t) => {
  // Of its own: how many may register in a minute is used up here, and partly by the other tests.
  const gateway = await startGateway({ env: { PUBLIC_URL: 'https://gate.example' } })
  t.after(() => gateway.close())
  for (const wrong of [
    {},
    { redirect_uris: ['http://shop.example/callback'] },
    { redirect_uris: ['http://shop.example/callback'], application_type: 'web' },
    { redirect_uris: [callback, 'web+evil://claude.ai/cb'] },
    { redirect_uris: ['WEB+evil://claude.ai/cb'] },
    { redirect_uris: ['mailto:thief@example.com'] },
    { redirect_uris: [callback], client_name: 'a\0b' },
    { redirect_uris: [callback], client_name: 'a\ud800' },
    { redirect_uris: [callback], token_endpoint_auth_method: 'client_secret_post' },
    { redirect_uris: [callback], grant_types: ['implicit'], response_types: ['token'] },
  ])
    assert.equal((await register(wrong, gateway.url)).status, 400, JSON.stringify(wrong))
  assert.match(
    await textOf(
      fetch(`${gateway.url}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        duplex: 'half',
        body: new Blob([JSON.stringify({ redirect_uris: [callback] })]).stream(),
      }),
      400,
    ),
    /Content-Length/,
  )
  assert.equal((await register({ redirect_uris: [callback], client_name: 'x'.repeat(8_192) }, gateway.url)).status, 413)
  const many = await atOnce(40, () => register({ redirect_uris: [callback] }, gateway.url))
  const refused = many.filter(({ status }) => status === 429)
  assert.ok(refused.length >= 20, `${refused.length} were refused`)
  assert.ok(Number(refused[0]?.headers.get('retry-after')) > 0)
})
