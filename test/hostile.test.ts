// Requests that mean harm: right status and code, never a 500, never a hold, and no secret in an answer, a log line or
// a row.
import fc from 'fast-check'
import { digestOf, makeKey } from '../src/admission/api-key.ts'
import type { Log } from '../src/kernel/log.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { realWorld, type World } from '../src/kernel/world.ts'
import { CHAT_PATH, chatBody, MODEL, startFaultGateway, startVendor, usage, wholeAnswer } from './faults/chat-vendor.ts'
import { count, each } from './faults/raw-client.ts'
import { afterEach, assert, before, listen, OPERATOR_TOKEN, runs, SECRET, started, test, words } from './gateway.ts'

const VENDOR_KEY = 'sk-canary-vendor-4711'
const PROMPT = 'canary-prompt-0815'

let account: { id: string; key: string; keyId: string }
const logged: string[] = []
const keys: string[] = []
const vendor = started(() =>
  startVendor(({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('fine', usage(1, 1))),
  ),
)
const write = (fields: object, message: string) =>
  void logged.push(
    message +
      JSON.stringify(fields, (_, value) =>
        value instanceof Error ? `${value.stack} ${value.cause}` : typeof value === 'bigint' ? String(value) : value,
      ),
  )
const log: Log = { debug: write, info: write, warn: write, error: write }
const g = started(() =>
  startFaultGateway({
    vendors: { mock: { baseUrl: vendor.url, credential: 'MOCK_KEY' } },
    log,
    env: { MOCK_KEY: VENDOR_KEY },
  }),
)
before(async () => {
  account = await g.account()
  keys.push(account.key)
})
afterEach(() => g.settled())

const holds = async () => (await g.sql<{ n: bigint }>('select count(*) as n from usage'))[0]!.n

async function refusal(answer: Response): Promise<{ status: number; code: number; text: string }> {
  const text = await answer.text()
  assert.ok(answer.headers.get('x-request-id')?.startsWith('req_'), 'no request id')
  assert.doesNotMatch(text, /\bat .*\.ts:|node:internal|select |insert |pg_|syntax error at/i, 'internal text')
  const body = JSON.parse(text) as { code?: number; error?: { code?: number } }
  return { status: answer.status, code: body.code ?? body.error?.code ?? 0, text }
}

test('whatever is sent as a key is a 401, or a key', async () => {
  const header = fc.oneof(
    fc.string({ maxLength: 100 }),
    fc.constantFrom(
      "' or 1=1 --",
      'tg_live_',
      `tg_live_${'A'.repeat(38)}`,
      `tg_live_${'A'.repeat(10_000)}`,
      "tg_live_'; drop table api_key; --",
      '%00',
      '../../etc/passwd',
      '#{jndi:ldap://x}',
      'null',
      'undefined',
      '__proto__',
    ),
    fc.string({ unit: fc.integer({ min: 0x80, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 60 }),
  )
  const visible = header.map((text) => text.replaceAll(/[^\x20-\x7e\x80-\xff]/g, ''))
  await fc.assert(
    fc.asyncProperty(
      visible,
      fc.constantFrom('Bearer ', 'bearer  ', 'Basic ', ''),
      fc.boolean(),
      async (text, scheme, own) => {
        const headers: Record<string, string> = own ? { 'x-api-key': text } : { authorization: scheme + text }
        const answer = await fetch(`${g.url}/v1/account`, { headers })
        const { status, code } = await refusal(answer)
        assert.deepEqual([status, code], [401, 20000])
      },
    ),
    { numRuns: 300 },
  )
})

test('keys that begin alike are told apart, however many look at once', async () => {
  const pepper = createSecrets(SECRET).key('api-key')
  // The first 48 bytes decide the first characters: 12 of them the same, the rest random.
  const world: World = {
    ...realWorld,
    bytes: (n) => (n === 48 ? Buffer.concat([Buffer.alloc(12, 7), realWorld.bytes(36)]) : realWorld.bytes(n)),
  }
  const pairs: Array<{ id: string; key: string }> = []
  for (const i of count(60)) {
    const { id } = await g.account({ credits: BigInt(i) })
    const key = makeKey(world)
    await g.sql('insert into api_key (id, account_id, name, digest, prefix, last4) values ($1, $2, $3, $4, $5, $6)', [
      `key_alike_${i}`,
      id,
      'alike',
      digestOf(pepper, key),
      key.slice(0, 12),
      key.slice(-4),
    ])
    pairs.push({ id, key })
  }
  assert.equal(new Set(pairs.map(({ key }) => key.slice(0, 20))).size, 1)
  await each([...pairs, ...pairs, ...pairs], 30, async ({ id, key }) => {
    const body = (await (await g.call('/v1/account', key)).json()) as { data: { id: string } }
    assert.equal(body.data.id, id)
  })
})

const deep = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth)
const chat = (messages: string) => `{"model":"${MODEL}","messages":${messages}}`

test('hostile JSON is refused before anything is held, and does not block', async () => {
  const message = '{"role":"user","content":"x"}'
  const bodies: Array<[name: string, body: string | Buffer]> = [
    ['arrays 20,000 deep', chat(deep('[', ']', 20_000))],
    ['objects 20,000 deep', chat(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`)],
    ['unfinished depth', '['.repeat(100_000)],
    ['__proto__', `{"__proto__":{"model":"x"},"model":"${MODEL}","messages":[${message}]}`],
    ['escaped __proto__', `{"\\u005f_proto__":1,"model":"${MODEL}","messages":[${message}]}`],
    ['nested __proto__', chat(`[{"role":"user","content":"x","__proto__":{"role":"system"}}]`)],
    ['a member twice', `{"model":"alpha-5.4","model":"${MODEL}","messages":[${message}]}`],
    ['a member twice, once escaped', `{"model":"alpha-5.4","m\\u006fdel":"${MODEL}","messages":[${message}]}`],
    ['NaN', `{"model":"${MODEL}","messages":[${message}],"n":NaN}`],
    ['2^64', `{"model":"${MODEL}","messages":[${message}],"n":18446744073709551616}`],
    ['1e309', `{"model":"${MODEL}","messages":[${message}],"max_tokens":1e309}`],
    [
      'not UTF-8',
      Buffer.concat([
        Buffer.from(`{"model":"${MODEL}","messages":[{"role":"user","content":"`),
        Buffer.from([0xff, 0xfe, 0xed, 0xa0, 0x80]),
        Buffer.from('"}]}'),
      ]),
    ],
    ['a raw NUL', `{"model":"${MODEL}","messages":[{"role":"user","content":"\u0000"}]}`],
    ['an array', '[]'],
    ['a string', '"hello"'],
    ['null', 'null'],
    ['nothing', ' '],
    ['half', '{"model":'],
    ['two', `${chat(`[${message}]`)}{}`],
    ['a million members', `{"model":"${MODEL}","x":{${Array.from({ length: 300_000 }, (_, i) => `"${i}":1`).join()}}}`],
    ['UTF-16', Buffer.from(chat(`[${message}]`), 'utf16le')],
  ]
  const before = await holds()
  const calls = vendor.calls.length
  for (const [name, body] of bodies) {
    const startedMs = performance.now()
    const answer = await fetch(g.url + CHAT_PATH, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
      body: body as string,
    })
    const { status, code, text } = await refusal(answer)
    assert.deepEqual([status, code], [400, 10000], `${name}: ${text}`)
    assert.ok(performance.now() - startedMs < runs(120_000, 5_000), name)
  }
  assert.equal(await holds(), before)
  assert.equal(vendor.calls.length, calls)
})

test('numbers that are none, or too large, are refused in every field that counts', async () => {
  const values = words('"1" 1e309 -1 0.5 9007199254740993 true [] {} 1e400 -9223372036854775808 18446744073709551616')
  const before = await holds()
  for (const field of ['n', 'max_tokens', 'max_completion_tokens', 'top_logprobs'])
    for (const value of values) {
      const body = `{"model":"${MODEL}","messages":[{"role":"user","content":"x"}],"${field}":${value}}`
      const { status, code, text } = await refusal(await g.call(CHAT_PATH, account.key, body))
      assert.deepEqual([status, code], [400, 10000], `${field}: ${value}: ${text}`)
    }
  assert.equal(await holds(), before)
})

test('U+0000, lone surrogates and database words are ordinary text', async () => {
  for (const text of [
    '\\u0000',
    '\\ud800',
    '\\udfff\\ud800',
    "'; drop table account; --",
    '$1 %s {{7*7}}',
    '\\u202e\\ufeff',
    '\u2028\u2029',
  ]) {
    const body = `{"model":"${MODEL}","messages":[{"role":"user","content":"${text}"}],"user":"${text}"}`
    const answer = await g.call(CHAT_PATH, account.key, body, {
      headers: { 'idempotency-key': `' or 1=1; --${text.length}` },
    })
    assert.ok(answer.status === 200 || answer.status === 409, `${text}: ${await answer.text()}`)
    await answer.text().catch(() => undefined)
  }
  for (const model of [
    "' or 1=1 --",
    '\\u0000',
    '__proto__',
    'constructor',
    'toString',
    '../alpha',
    '\\ud800',
    'x'.repeat(10_000),
  ]) {
    const { status } = await refusal(
      await g.call(CHAT_PATH, account.key, `{"model":"${model}","messages":[{"role":"user","content":"x"}]}`),
    )
    assert.equal(status, 404, model)
  }
  for (const id of ["'", '%00', '%27%20or%201=1', '%ed%a0%80', '__proto__', '%2e%2e%2fx', 'a'.repeat(299)])
    for (const path of ['/v1/models/', '/v1/jobs/', '/v1/social/users/']) {
      const answer = await g.call(path + id, account.key)
      assert.ok(answer.status >= 400 && answer.status < 500, `${path}${id}: ${answer.status}`)
      await refusal(answer)
    }
})

test('no field of a body makes the gateway call another address or send another key', async () => {
  let visits = 0
  const canary = await listen((_request, response) => {
    visits += 1
    response.end('{}')
  })
  const { url } = canary
  try {
    const values: Record<string, unknown> = {
      api_base: url,
      base_url: url,
      baseURL: url,
      api_key: 'stolen',
      api_version: url,
      headers: { authorization: 'Bearer stolen', host: url },
      extra_headers: { authorization: 'Bearer stolen' },
      extra_body: { api_base: url },
      proxy: url,
      timeout: 0,
      organization: 'org',
      custom_llm_provider: url,
      callback: url,
      webhook: url,
      target: url,
      endpoint: url,
    }
    for (const [name, value] of Object.entries(values)) {
      const answer = await g.call(CHAT_PATH, account.key, chatBody(PROMPT, { [name]: value }), {
        headers: { 'x-portkey-custom-host': url, 'x-api-base': url, 'x-forwarded-host': url, forwarded: `host=${url}` },
      })
      assert.ok(answer.status === 200 || answer.status === 400, `${name}: ${answer.status}`)
      await answer.text()
      const sent = vendor.calls.at(-1)!.request
      assert.equal(sent.headers.authorization, `Bearer ${VENDOR_KEY}`)
      assert.equal(sent.headers.host, new URL(vendor.url).host)
      assert.equal(sent.headers['x-api-base'], undefined)
    }
  } finally {
    await canary.close()
  }
  assert.equal(visits, 0)
})

test('unknown paths, wrong methods and wrong types have their own answers', async () => {
  assert.deepEqual(pick(await refusal(await g.call('/v1/nothing', account.key))), [404, 30000])
  assert.deepEqual(pick(await refusal(await g.call('/', undefined, '{}'))), [405, 10000])
  const wrong = await g.call(CHAT_PATH, account.key)
  assert.match(wrong.headers.get('allow') ?? '', /POST/)
  assert.deepEqual(pick(await refusal(wrong)), [405, 10000])
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json\t; a',
    'application/jsonx',
  ])
    assert.deepEqual(
      pick(await refusal(await g.call(CHAT_PATH, account.key, chatBody('x'), { headers: { 'content-type': type } }))),
      [400, 10000],
      type,
    )
})

const pick = ({ status, code }: { status: number; code: number }) => [status, code]

test('browsers may call the API from anywhere, and never with cookies', async () => {
  const origin = { origin: 'https://evil.example', cookie: '__Host-tg_s=stolen' }
  const preflight = await fetch(g.url + CHAT_PATH, {
    method: 'OPTIONS',
    headers: { ...origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
  })
  assert.equal(preflight.status, 204)
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /authorization/)
  assert.equal(preflight.headers.get('access-control-allow-credentials'), null)
  const answer = await fetch(`${g.url}/v1/account`, { headers: origin })
  assert.equal(answer.status, 401)
  assert.equal(answer.headers.get('access-control-allow-credentials'), null)
  for (const path of ['/admin/v1/accounts', '/console/api/session']) {
    const closed = await fetch(g.url + path, { headers: { ...origin, authorization: 'Bearer x' } })
    assert.equal(closed.headers.get('access-control-allow-origin'), null, path)
    await closed.text()
  }
})

test('no key, credential, token or prompt was written to the log or to the database', async () => {
  const secrets = [...keys, VENDOR_KEY, OPERATOR_TOKEN, SECRET, PROMPT]
  for (const line of logged)
    for (const secret of secrets) assert.ok(!line.includes(secret), `${secret} in ${line.slice(0, 300)}`)
  assert.ok(logged.length > 20)
  const tables = await g.sql<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  assert.ok(tables.length > 10)
  for (const { name } of tables)
    for (const { row } of await g.sql<{ row: string }>(`select t::text as row from ${name} t`))
      for (const secret of secrets) assert.ok(!row.includes(secret), `${secret} in ${name}`)
})
