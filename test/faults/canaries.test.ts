// F61: a vendor that repeats our credential, addresses of its house and the caller's prompt, in every spelling and at
// every door. Nothing of it may reach a caller, a log line, a trace, a row or a webhook.
import type { CatalogInput } from '../../src/catalog/document.ts'
import type { Log } from '../../src/kernel/log.ts'
import { above, after, assert, before, started, startGateway, type TestGateway, test, until } from '../gateway.ts'
import { startReceiver } from '../job-engine.ts'
import { HEADER, HOUSE, KEYS, PROMPT, secretIn, spellings } from './canary.ts'
import { chunk, event, STREAM_HEADERS, startVendor, type VendorCall } from './chat-vendor.ts'

const FORMS = KEYS.flatMap((key) => spellings(key).map((form) => ({ key, form })))

let key: string
const gateways: TestGateway[] = []
const logged: string[] = []

const vendor = started(startVendor)
const collector = started(() => startReceiver(() => 200))
const receiver = started(startReceiver)
before(async () => {
  const write = (fields: object, message: string) =>
    void logged.push(
      message +
        JSON.stringify(fields, (_, value) => (value instanceof Error ? { ...value, text: value.stack } : value)),
    )
  const log: Log = { debug: write, info: write, warn: write, error: write }
  for (const credential of KEYS)
    gateways.push(
      await startGateway({
        log,
        env: {
          CANARY_KEY: credential,
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.host}`,
          TOLLGATE_OUTBOUND_ALLOW: receiver.host,
        },
        catalog(document: CatalogInput) {
          for (const entry of Object.values(document.vendors))
            Object.assign(entry, { baseUrl: vendor.url, credential: 'CANARY_KEY', headers: { 'x-tenant': HEADER } })
        },
      }),
    )
})
after(async () => {
  for (const gateway of gateways) await gateway.close()
})

// ---- The ways in which a vendor can say it.

type Saying = (call: VendorCall, error: object) => unknown

const json = (call: VendorCall, status: number, body: unknown, headers: object = {}) =>
  call.response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
const named = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const stream = (call: VendorCall, text: string) => call.response.writeHead(200, STREAM_HEADERS).end(text)
const asked = { model: 'm', id: 'resp_1', object: 'response', status: 'in_progress', output: [] }
const begun = named('message_start', { message: { id: 'msg_1', model: 'm', content: [], usage: { input_tokens: 1 } } })

const refuses: Saying = (call, error) => json(call, 400, { error }, { 'x-request-id': KEYS[0], 'retry-after': '1' })
const flat: Saying = (call, error) => json(call, 422, error)
const wrapped: Saying = (call, error) => json(call, 200, { error })
const breaks: Saying = (call, error) => stream(call, chunk('one ') + event({ error }))
const complains: Saying = (call, error) => stream(call, begun + named('error', { error }))
const fails: Saying = (call, error) =>
  stream(
    call,
    named('response.created', { response: asked, sequence_number: 0 }) +
      named('response.failed', { response: { ...asked, status: 'failed', error }, sequence_number: 1 }),
  )
const errs: Saying = (call, error) => stream(call, named('error', { ...error, sequence_number: 0 }))
const completes: Saying = (call, error) =>
  stream(
    call,
    named('response.created', { response: asked, sequence_number: 0 }) +
      named('response.completed', { response: { ...asked, status: 'failed', error }, sequence_number: 1 }),
  )
const garbles: Saying = (call, error) => stream(call, `${chunk('one ')}data: {"not json ${JSON.stringify(error)}\n\n`)
const mumbles: Saying = (call, error) => call.response.writeHead(200).end(`not json ${JSON.stringify(error)}`)
const draws: Saying = (call, error) =>
  stream(call, `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`)
const problem: Saying = (call, error) =>
  json(call, 200, { errors: [{ ...error, title: (error as { message: string }).message, detail: 'x' }] })
const labels: Saying = (call, error) => {
  // Header values are one line of ASCII.
  const word = JSON.stringify((error as { message: string }).message).replaceAll(/[^\x20-\x7e]/g, '')
  call.response.writeHead(200, { 'content-type': `application/json; charset=utf-8; note=${word}`, 'x-note': word })
  call.response.end('{"Data":[]}')
}

const chat = { messages: [{ role: 'user', content: PROMPT }], max_tokens: 50 }
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]

const DOORS: Record<string, { path: string; body?: object; says: readonly Saying[]; streams?: readonly Saying[] }> = {
  chat: {
    path: '/v1/chat-completions',
    body: { model: 'alpha-5.4', ...chat },
    says: [refuses, flat, wrapped, mumbles],
    streams: [refuses, breaks, garbles],
  },
  'chat, by way of responses': {
    path: '/v1/chat-completions',
    body: { model: 'alpha-5.4', ...chat, tools },
    says: [refuses, wrapped],
    streams: [refuses, fails, errs],
  },
  'chat, by way of messages': {
    path: '/v1/chat-completions',
    body: { model: 'beta-opus-5', ...chat },
    says: [refuses, wrapped],
    streams: [refuses, complains],
  },
  responses: {
    path: '/alpha/responses',
    body: { model: 'alpha-5.4', input: PROMPT },
    says: [refuses, wrapped, mumbles],
    streams: [refuses, fails, errs, completes],
  },
  messages: {
    path: '/beta/v1/messages',
    body: { model: 'beta-opus-5', ...chat },
    says: [refuses, wrapped],
    streams: [refuses, complains],
  },
  images: {
    path: '/alpha/v1/images/generations',
    body: { model: 'alpha-image-2', prompt: PROMPT },
    says: [refuses, wrapped, mumbles],
    streams: [refuses, draws],
  },
  social: { path: '/v1/social/users?username=somebody', says: [refuses, flat, problem] },
  analytics: { path: '/v1/siteanalytics/websites/visits?keys=example.com', says: [refuses, flat, labels, mumbles] },
}

/** Everything that was said outwards, with what was asked when it was. */
function find(said: string, where: string, form: string): void {
  assert.equal(secretIn(said), undefined, `${where}, ${form}: ${said.slice(0, 600)}`)
}

function errorOf(form: string): object {
  const message = `Refused ${HEADER} at ${HOUSE.join(' and ')}: ${form} while reading "${PROMPT}".`
  return {
    type: 'invalid_request_error',
    code: form.slice(0, 200),
    param: form.slice(0, 200),
    message,
    details: { error_code: form, unsupported: [form] },
  }
}

for (const [name, door] of Object.entries(DOORS))
  test(`no credential, address or prompt gets out at the door ${name}, however a vendor spells it`, async () => {
    for (const [index, gateway] of gateways.entries()) {
      key = (await gateway.account()).key
      for (const { form } of FORMS.filter((entry) => entry.key === KEYS[index]))
        for (const streamed of [false, true])
          for (const say of (streamed ? door.streams : door.says) ?? []) {
            vendor.answer = (call) => say(call, errorOf(form))
            const body = door.body && { ...door.body, ...(streamed ? { stream: true } : {}) }
            const answer = await gateway.call(door.path, key, body, { headers: { 'x-stainless-lang': 'js' } })
            const said = `${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`
            find(said, `${name} (${say === refuses ? 'refusal' : 'answer'})`, form)
            if (say === refuses) assert.equal(answer.status, 400, said)
          }
    }
  })

test('no credential gets into a video job, its row or its webhook', async () => {
  const endings: Saying[] = [
    refuses,
    (call, error) => (call.request.method === 'POST' ? json(call, 200, { id: 'cgt-1' }) : task(call, 'failed', error)),
  ]
  for (const [index, gateway] of gateways.entries()) {
    const account = await gateway.account()
    for (const { form } of FORMS.filter((entry) => entry.key === KEYS[index]).slice(0, 10))
      for (const end of endings) {
        const before = receiver.got.length
        vendor.answer = (call) => end(call, { ...errorOf(form), code: `Invalid${form}` })
        const answer = await gateway.call('/v1/video/seedance', account.key, {
          model: 'videogen-2.0',
          prompt: PROMPT,
          callback_url: receiver.url,
        })
        const { data } = (await answer.json()) as { data: { jobId: string } }
        await until(() => receiver.got.length, above(before))
        const job = await (await gateway.call(`/v1/jobs/${data.jobId}`, account.key)).text()
        assert.match(job, /FAILED/)
        find(job, 'the job', form)
        find(receiver.got.at(-1)!.body, 'the webhook', form)
      }
    let looks = 0
    const { form } = FORMS[0]!
    vendor.answer = (call) => {
      if (call.request.method === 'POST') return json(call, 200, { id: 'cgt-2' })
      looks += 1
      return task(call, looks === 1 ? form : 'cancelled', null)
    }
    const before = receiver.got.length
    await gateway.call('/v1/video/seedance', account.key, {
      model: 'videogen-2.0',
      prompt: PROMPT,
      callback_url: receiver.url,
    })
    await until(() => receiver.got.length, above(before))
  }
})

function task(call: VendorCall, status: string, error: unknown): void {
  json(call, 200, { id: 'cgt-1', model: 'm', status, error, content: {}, items: undefined })
}

test('nothing of it was written to the log, a trace or the database', async () => {
  for (const gateway of gateways) {
    await gateway.settled()
    const tables = await gateway.sql<{
      name: string
    }>(`select format('%I.%I', schemaname, tablename) as name from pg_tables
        where schemaname not in ('pg_catalog', 'information_schema') and tablename <> 'catalog_version'`)
    // The operator's own document, of which the vendor's headers are a part.
    for (const { name } of tables)
      for (const { row } of await gateway.sql<{ row: string }>(`select t::text as row from ${name} t`))
        if (!row.includes('catalog.apply')) {
          find(row, name, 'row')
          // What is kept of a failed call tells of the failure, and not of what was asked. Calls for data had no
          // prompt.
          if (name.startsWith('public.usage') && !/siteanalytics|social/.test(row))
            assert.ok(!row.includes(PROMPT), row)
        }
  }
  assert.ok(logged.some((line) => line.startsWith('stream broke')))
  assert.ok(logged.some((line) => line.startsWith('vendor rejected a call')))
  const spans = collector.got.map(({ body }) => body)
  assert.ok(spans.length > 0)
  for (const line of [...logged, ...spans]) {
    find(line, 'the log', 'line')
    assert.ok(!line.includes(PROMPT), line.slice(0, 500))
  }
})
