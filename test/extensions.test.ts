// What a gateway can do without: with every extension switched off it starts, sells a call, and answers 404 where they
// were.
import type { EndpointSpec } from '../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { EXTENSIONS } from '../src/compose.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import type { LoginStep, SecurityView } from '../src/identity/views.ts'
import { freshDatabase } from './database.ts'
import { MEDIA } from './formats.ts'
import { assert, jsonOf, pluck, startGateway, type TestGateway, test, testGateway, textOf } from './gateway.ts'
import { asBrowser } from './operator-server.ts'

const g = testGateway({ isShared: true })
const routesOf = ({ gateway }: Pick<typeof g, 'gateway'>) =>
  gateway.app.router.routes.map(([method, path]) => `${method} ${path}`)

test('with all extensions off, calls are sold, and the addresses of extensions answer 404', async () => {
  await using bare = await startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: 'all' } })
  const left = new Set(routesOf(bare))
  const gone = routesOf(g).filter((route) => !left.has(route))
  for (const path of ['POST /mcp', 'POST /oauth/token', 'GET /admin/v1/exports', 'POST /webhooks/stripe'])
    assert.ok(gone.includes(path), path)
  for (const path of ['POST /scim/v2/Users', 'GET /console/api/login', 'POST /console/api/passkeys'])
    assert.ok(gone.includes(path), path)
  const { key } = await bare.account()
  for (const route of gone) {
    const [method = '', path = ''] = route.split(' ')
    // POST is left beside the handshake of WebSockets.
    const status = path.endsWith('/responses') ? 405 : 404
    await textOf(bare.call(path.replaceAll(/\{\w+\}/g, 'x'), key, undefined, { method }), status)
  }
  const { data } = (await (await bare.call('/v1/models', key)).json()) as { data: { type: string }[] }
  assert.ok(data.length > 5 && !data.some(({ type }) => type === 'realtime'), 'no model that nothing sells')
  const messages = [{ role: 'user', content: 'Say hello.' }]
  const answer = await bare.call('/v1/chat/completions', key, { model: 'alpha-5.4', messages, max_tokens: 50 })
  assert.equal(answer.status, 200, await answer.text())
  await bare.settled()
})

for (const { name } of EXTENSIONS)
  test(`a gateway with no extension but ${name} starts`, async () => {
    const others = EXTENSIONS.map((one) => one.name).filter((one) => one !== name)
    const alone = await startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: others.join(',') } })
    await alone.close()
  })

test('the endpoints of extensions are listed among those that commands and examples know', () => {
  const brought = [...ENDPOINTS, ...EXTENSIONS.flatMap(({ entries }) => [...entries])]
  // Some have further addresses for one of the core's.
  const ids = (specs: readonly EndpointSpec[]) => [...new Set(pluck(specs, 'id'))].toSorted()
  assert.deepEqual(ids(ALL_ENDPOINTS), ids(brought))
})

test('what an extension has sold stays in the books without it: its models stop no start, its addresses answer 404', async () => {
  await using database = await freshDatabase()
  const kinds = ['openai-embeddings', 'rerank', 'openai-moderations', 'mistral-ocr', 'openai-speech'] as const
  const askAll = (to: TestGateway, key: string, status: number) =>
    Promise.all(
      kinds.map((kind) => {
        const { path, model, body } = MEDIA[kind]
        return textOf(to.call(path, key, { model, ...body('Hello') }), status)
      }),
    )
  let id = ''
  {
    await using whole = await startGateway({ database })
    const { key, id: account } = await whole.account()
    id = account
    await askAll(whole, key, 200)
    assert.equal((await whole.calls(id)).length, 5)
  }
  const off = ['audio', 'completions', 'embeddings', 'ocr']
  await using bare = await startGateway({ database, env: { TOLLGATE_EXTENSIONS_OFF: off.join(',') } })
  const { key } = await bare.account()
  await askAll(bare, key, 404)
  const listed = await jsonOf<{ data: { type: string }[] }>(bare.call('/v1/models', key))
  assert.ok(!listed.data.some(({ type }) => ['rerank', 'moderation', 'ocr', 'speech', 'transcription'].includes(type)))
  const { models } = bare.gateway.catalog.current.document
  assert.deepEqual([models['alpha-speech-1']?.type, bare.gateway.catalog.current.setAside], ['speech', []])
  assert.deepEqual([(await bare.calls(id)).length, await bare.problems()], [5, []])
})

test('a gateway does not start with an extension switched off that there is not', async () => {
  await assert.rejects(startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: 'fiance' } }), /"fiance".*agents.*finance/)
})

test('without the extension of guardrails, calls for which the catalog has any are refused, not let through unchecked', async () => {
  await using bare = await startGateway({
    env: { TOLLGATE_EXTENSIONS_OFF: 'guardrails' },
    catalog: (document) => Object.assign(document, { guardrails: { all: { redact: { patterns: ['email'] } } } }),
  })
  const { key } = await bare.account()
  const messages = [{ role: 'user', content: 'Say hello.' }]
  const answer = await bare.call('/v1/chat/completions', key, { model: 'alpha-5.4', messages, max_tokens: 50 })
  assert.equal(answer.status, 503, await answer.text())
})

test('what the catalog says to an extension that is switched off stays in it through edits, and does nothing', async () => {
  const products = { maps: { title: 'Maps', operations: {} }, later: { form: 'of a later version' } }
  await using bare = await startGateway({
    env: { TOLLGATE_EXTENSIONS_OFF: 'all' },
    catalog: (document) => Object.assign(document, { products, sales: { currency: 'none' } }),
  })
  await bare.operator('PATCH', '/models/alpha-5.4', { enabled: false })
  const { current } = bare.gateway.catalog
  assert.deepEqual([current.document.products, current.document.sales], [undefined, undefined])
  assert.deepEqual([current.input.products, current.input.sales], [products, { currency: 'none' }])
  assert.equal(current.document.models['alpha-5.4']?.enabled, false)
})

test('a section of the catalog that only a later version knows stays in it through edits; a new one is refused', async () => {
  await using bare = await startGateway()
  const { database, catalog } = bare.gateway
  const text = JSON.stringify({ ...catalog.current.input, later: { a: 1 } })
  await database.query(
    { text: 'insert into catalog_version (version, document, note, actor) values (2, $1, $2, $2)' },
    [text, 'x'],
  )
  await bare.operator('PATCH', '/models/alpha-5.4', { enabled: false })
  assert.deepEqual([catalog.current.version, Object(catalog.current.input).later], [3, { a: 1 }])
  assert.ok(catalog.current.setAside.includes('later: is no section that this version knows'))
  const { problems } = catalog.check({ ...catalog.current.input, mine: 1 })
  assert.deepEqual(problems, ['document: Unrecognized key: "mine"'])
})

test('without single sign-on and passkeys, people sign in by password, and what protected them protects them still', async () => {
  await using bare = await startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: 'directory' } })
  const { database } = bare.gateway
  const op = { email: 'op@corp.example', password: 'seven tired otters juggle' }
  const console = asBrowser(bare)
  await console('POST', '/setup', { token: await bare.gateway.people.openSetup(), ...op })
  const logIn = () => asBrowser(bare)<LoginStep>('POST', '/login', op)
  assert.deepEqual((await logIn()).data, { signedIn: true, needs: [] })
  const { data: security } = await console<SecurityView>('GET', '/security')
  assert.deepEqual([security.passkeysPossible, security.identities], [false, []])
  // Nothing asks for a passkey any more, and still the password alone is not enough.
  const passkey = `insert into second_factor (id, person_id, kind, name, credential_id, confirmed)
    select 'fac_1', id, 'passkey', 'Laptop', 'credential', true from person`
  await database.query({ text: passkey })
  assert.deepEqual((await logIn()).data, { signedIn: false, needs: ['recovery'] })
  const rules = [
    "insert into login_provider (id, name, issuer, client_id, scopes, groups_claim) values ('p', 'P', 'https://p.example', 'c', '{}', 'groups')",
    "insert into login_domain (domain, provider_id, sso_only) values ('corp.example', 'p', true)",
  ]
  for (const text of rules) await database.query({ text })
  assert.equal((await logIn()).status, 403)
})
