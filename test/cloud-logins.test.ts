// The clouds' own logins: every way to log in, against token endpoints that check it; tokens shared by processes, renewed ahead of their end.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import type { Login } from '../src/catalog/document.ts'
import { openDatabase } from '../src/database/database.ts'
import { Fault } from '../src/kernel/fault.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { realWorld } from '../src/kernel/world.ts'
import type { VendorTest } from '../src/routing/views.ts'
import { createUpstream } from '../src/upstream/exchange.ts'
import { createLogins, loginProblem } from '../src/upstream/login.ts'
import { createTokenCache, createTokenStore } from '../src/upstream/token-cache.ts'
import { AWS, CLIENT, type Cloud, ROLE, startCloud } from './cloud.ts'
import { freshDatabase } from './database.ts'
import { OPERATOR_TOKEN, SECRET, testGateway } from './gateway.ts'
import { until } from './until.ts'

let cloud: Cloud
let folder: string
const fileOf = (name: string) => join(folder, name)
const SCOPE = 'https://cognitiveservices.azure.com/.default'

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-cloud-'))
})
after(() => rm(folder, { recursive: true, force: true }))

async function openCloud(): Promise<void> {
  cloud = await startCloud()
  await writeFile(fileOf('web-identity'), 'web-identity\n')
  await writeFile(fileOf('federated'), 'federated-token\n')
}
beforeEach(() => {
  cloud.down = false
  cloud.given.clear()
  cloud.calls.length = 0
})

/** As one process opens them; `nowMs` moves the clock. */
function openProcess(
  store: ReturnType<typeof createTokenStore> | undefined,
  more: { skippedMs?: () => number; environment?: Record<string, string>; allows?: string[] } = {},
) {
  const world = { ...realWorld, nowMs: () => realWorld.nowMs() + (more.skippedMs?.() ?? 0) }
  const upstream = createUpstream({ world })
  const metadata = createUpstream({ world, metadata: true })
  const environment: Record<string, string> = {
    ...{ AWS_ENDPOINT_URL_STS: `${cloud.url}/sts`, AWS_ROLE_ARN: ROLE, AZURE_TENANT_ID: 'tenant-1' },
    ...{ AWS_WEB_IDENTITY_TOKEN_FILE: fileOf('web-identity'), AZURE_AUTHORITY_HOST: `${cloud.url}/entra/` },
    ...{ AZURE_CLIENT_ID: CLIENT.id, AZURE_FEDERATED_TOKEN_FILE: fileOf('federated'), GCE_METADATA_HOST: cloud.host },
    ...more.environment,
  }
  const workload = {
    allows: new Set(more.allows ?? ['aws', 'azure', 'google', 'google-metadata']),
    hosts: new Set([cloud.host]),
    ...{ environment: (name: string) => environment[name], metadata },
  }
  const logins = createLogins({ world, upstream, tokens: createTokenCache({ world, store }), workload })
  return {
    open: async (login: Login, secret?: string) => logins.open(login, { secret, baseUrl: cloud.url }),
    close: () => Promise.all([upstream.close(), metadata.close()]),
  }
}

const OAUTH = () => ({ oauth: { tokenUrl: `${cloud.url}/entra/tenant-1/oauth2/v2.0/token`, scope: SCOPE } })
const ENTRA = `${CLIENT.id}:${CLIENT.secret}`
const SIGV4 = { region: 'us-east-1', service: 'bedrock' }

const g = testGateway({ env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN } }, async () => {
  await openCloud()
  const document = structuredClone(g.gateway.catalog.current.input)
  const alpha = document.models['alpha-5.4']
  assert.ok(alpha)
  const vendors: Record<string, object> = {
    entra: { auth: OAUTH(), credential: 'ENTRA' },
    signed: { auth: { sigv4: SIGV4 }, credential: 'AWS_KEYS' },
    google: { auth: { google: {} }, credential: 'GOOGLE' },
    pod: { auth: { google: { workload: 'metadata' } } },
  }
  for (const [name, vendor] of Object.entries(vendors)) {
    document.vendors[name] = { baseUrl: cloud.url, ...vendor }
    document.models[`by-${name}`] = { ...alpha, routes: [{ vendor: name, protocol: 'openai-chat', model: 'm' }] }
  }
  const by = { actor: 'test', ip: null, requestId: null }
  await g.gateway.catalog.apply(document, by, '')
  const account = JSON.stringify(JSON.parse(cloud.serviceAccount), null, 2)
  const values = { entra: ENTRA, signed: `${AWS.id}:${AWS.secret}`, google: account }
  for (const [vendor, value] of Object.entries(values))
    assert.equal((await g.operator('PUT', `/vendors/${vendor}/credential`, { value })).status, 200, vendor)
  cloud.answer = () => [200, CHAT]
})
after(() => cloud.close())

const CHAT = {
  ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
}

test('each way to log in gives what its cloud accepts', async () => {
  const source = { audience: '//iam.googleapis.com/pool', subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' }
  const external = { type: 'external_account', ...source, token_url: `${cloud.url}/exchange` }
  await writeFile(fileOf('subject'), 'subject-token')
  await writeFile(fileOf('by-file'), JSON.stringify({ ...external, credential_source: { file: fileOf('subject') } }))
  const format = { type: 'json', subject_token_field_name: 'value' }
  const byUrl = { ...external, credential_source: { url: `${cloud.url}/subject`, headers: {}, format } }
  const impersonated = { ...byUrl, service_account_impersonation_url: `${cloud.url}/impersonate` }
  await writeFile(fileOf('by-url'), JSON.stringify(impersonated))
  await writeFile(fileOf('account'), cloud.serviceAccount)
  const inFile = (name: string) => ({ environment: { GOOGLE_APPLICATION_CREDENTIALS: fileOf(name) } })
  const cases: [login: Login, secret: string | undefined, found: RegExp, more?: Parameters<typeof openProcess>[1]][] = [
    [{ google: {} }, cloud.serviceAccount, /token-of-google/],
    [{ google: { workload: 'file' } }, undefined, /token-of-exchange/, inFile('by-file')],
    [{ google: { workload: 'file' } }, undefined, /token-of-impersonated/, inFile('by-url')],
    [{ google: { workload: 'file' } }, undefined, /token-of-google/, inFile('account')],
    [{ google: { workload: 'metadata' } }, undefined, /token-of-metadata/],
    [OAUTH(), `${CLIENT.id}:${CLIENT.secret}`, /token-of-entra/],
    [{ azure: { scope: SCOPE, workload: true } }, undefined, /token-of-entra/],
    [{ sigv4: SIGV4 }, `${AWS.id}:${AWS.secret}`, /"accessKeyId":"AKIDEXAMPLE00000001"/],
    [{ sigv4: { ...SIGV4, role: ROLE } }, `${AWS.id}:${AWS.secret}`, /"sessionToken":"session-token-\d+=="/],
    [{ sigv4: { ...SIGV4, workload: true } }, undefined, /"sessionToken":"session-token-\d+=="/],
  ]
  for (const [login, secret, found, more] of cases) {
    const one = openProcess(undefined, more)
    assert.match(JSON.stringify(await one.open(login, secret)), found, JSON.stringify(login))
    await one.close()
  }
})

test('a login that is refused says what to do, and nothing of the secret', async () => {
  const one = openProcess(undefined, { allows: [] })
  const foreign = openProcess(undefined, { environment: {} })
  const cases: [login: Login, secret: string | undefined, said: RegExp][] = [
    [OAUTH(), `${CLIENT.id}:wrong-secret-value`, /gave no token \(401\): invalid_client AADSTS7000215: .*: \[key\]\./],
    [OAUTH(), 'no-pair', /must be client_id:client_secret/],
    [{ sigv4: SIGV4 }, 'no-pair', /must be access_key_id:secret_access_key/],
    [{ sigv4: { ...SIGV4, role: ROLE } }, `${AWS.id}:wrong`, /gave no token \(403\): AccessDenied/],
    [{ google: {} }, '{"type":"service_account"}', /JSON of a service account/],
    [{ google: {} }, '{"client_email":"a@b","private_key":"x"}', /private key of the service account cannot be read/],
    [{ google: { workload: 'metadata' } }, undefined, /adds "google-metadata" to TOLLGATE_WORKLOAD_IDENTITY/],
    [{ sigv4: { ...SIGV4, workload: true } }, undefined, /adds "aws" to TOLLGATE_WORKLOAD_IDENTITY/],
  ]
  const failure = async (run: Promise<unknown>) => {
    const error = await run.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof Fault)
    return loginProblem(error) ?? ''
  }
  for (const [login, secret, said] of cases) {
    const words = await failure(one.open(login, secret))
    assert.match(words, said)
    assert.doesNotMatch(words, /wrong-secret-value/)
  }
  const nameless = await failure(foreign.open({ google: { workload: 'file' } }))
  assert.match(nameless, /GOOGLE_APPLICATION_CREDENTIALS is not set/)
  assert.equal(cloud.given.size, 0)
  await Promise.all([one.close(), foreign.close()])
})

test('processes share one token: one renewal ahead of its end serves all, and while renewals fail the old one is used until it ends', async () => {
  const fresh = await freshDatabase()
  const database = openDatabase({ connection: fresh.connection, connectionsMax: 4 })
  const store = createTokenStore({ database, world: realWorld, secrets: createSecrets(SECRET) })
  let skippedMs = 0
  const processes = [1, 2, 3].map(() => openProcess(store, { skippedMs: () => skippedMs }))
  const secret = `${CLIENT.id}:${CLIENT.secret}`
  const all = async () =>
    new Set((await Promise.all(processes.map((one) => one.open(OAUTH(), secret)))).map((one) => JSON.stringify(one)))
  try {
    const first = await all()
    assert.equal(first.size, 1)
    assert.equal(cloud.given.get('entra'), 1)
    const [row] = await database.query<{ sealed: Buffer }>({ text: 'select sealed from login_token' })
    assert.ok(row && !row.sealed.includes('token-of-entra'))

    // Four minutes before the end: a failing renewal is nobody's trouble.
    skippedMs = 3_360_000
    cloud.down = true
    assert.deepEqual(await all(), first)
    assert.deepEqual(await all(), first)
    assert.equal(cloud.given.get('entra'), 1)

    // The cloud is back: all have the next one, which was fetched once.
    cloud.down = false
    skippedMs += 30_000
    await until(async () => {
      const now = await all()
      // Whoever looked while another renewed it looks again after a while.
      skippedMs += 6_000
      return now.size === 1 && [...now][0] !== [...first][0]
    })
    assert.equal(cloud.given.get('entra'), 2)

    // After the end there is nothing to use.
    skippedMs += 7_200_000
    cloud.down = true
    await assert.rejects(all(), (error: Fault) => /gave no token \(503\)/.test(loginProblem(error) ?? ''))
  } finally {
    await Promise.all(processes.map((one) => one.close()))
    await database.close()
    await fresh.drop()
  }
})

test('calls are sent with the token or the signature, charged, and no answer or log shows either', async () => {
  const { key } = await g.account()
  const chat = (model: string) =>
    g.call('/v1/chat/completions', key, { model, messages: [{ role: 'user', content: 'Hi' }] })
  for (const [model, sent] of [
    ['by-entra', /^Bearer token-of-entra-1/],
    ['by-signed', /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE00000001\/\d{8}\/us-east-1\/bedrock\/aws4_request/],
    ['by-google', /^Bearer token-of-google-1/],
    ['by-entra', /^Bearer token-of-entra-1/],
  ] as const) {
    const response = await chat(model)
    assert.equal(response.status, 200, await response.clone().text())
    assert.match(String(cloud.calls.at(-1)?.headers.authorization), sent)
  }
  assert.deepEqual([...cloud.given.values()], [1, 1])

  // A vendor that repeats the token in its error.
  cloud.answer = ({ headers }) => [400, { error: { message: `bad: ${headers.authorization}`, type: 'invalid' } }]
  const told = await (await chat('by-entra')).text()
  assert.doesNotMatch(told, /token-of-entra/)
  cloud.answer = () => [200, CHAT]

  const forbidden = await chat('by-pod')
  assert.equal(forbidden.status, 503)
  assert.doesNotMatch(await forbidden.text(), /metadata|WORKLOAD/)
  assert.equal(cloud.given.get('metadata'), undefined)
})

test('the test of a vendor says why its login fails', async () => {
  const { data } = await g.operator<VendorTest>('POST', '/vendors/pod/test', {})
  assert.equal(data.ok, false)
  assert.match(data.message, /^The login failed\. .*"google-metadata" to TOLLGATE_WORKLOAD_IDENTITY/)
  const works = await g.operator<VendorTest>('POST', '/vendors/entra/test', {})
  assert.equal(works.data.steps.at(-1)?.ok, true, JSON.stringify(works.data))
})
