// Usage out of the gateway: every call reaches every receiver with the same content, whatever fails on the way.
import { createHmac, hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import pg from 'pg'
import { openedAlerts } from '../../../test/alerts.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/database.ts'
import { needs, OPERATOR_TOKEN, startGateway, type TestGateway } from '../../../test/gateway.ts'
import { above, after, assert, atOnce, before, type Listening, listen, runs, test, until } from '../../../test/kit.ts'
import type { Page } from '../../kernel/view.ts'
import { idAtTime } from '../../kernel/world.ts'
import type { AlertView } from '../alerts/views.ts'
import type { ExportView } from './views.ts'

interface Got {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}
type Answer = (got: Got, response: ServerResponse) => void

/** A receiver whose answers a test scripts. */
interface Scripted extends Listening {
  answer: Answer
  readonly got: Got[]
}

const servers: Listening[] = []
/** Made before the gateway, which is told their ports: they are not public. */
const waiting: Scripted[] = []
async function scripted(answer: Answer, port = 0): Promise<Scripted> {
  const ready = port === 0 ? waiting.shift() : undefined
  if (ready) return Object.assign(ready, { answer })
  const made: { answer: Answer; got: Got[] } = { answer, got: [] }
  const server = await listen(async (request, response) => {
    const { method = '', url = '', headers } = request
    const got = { method, url, headers, body: await buffer(request) }
    made.got.push(got)
    made.answer(got, response)
  }, port)
  servers.push(server)
  return Object.assign(made, server)
}
const accept: Answer = (_, response) => void response.writeHead(200).end('{}')

/** The writer's own package for reading, which it brings. */
async function readParquet(of: { file: ArrayBuffer }): Promise<Record<string, unknown>[]> {
  const reader: string = 'hyparquet'
  return (await import(reader)).parquetReadObjects(of)
}

let fresh: FreshDatabase
const env: Record<string, string> = {}
let g: TestGateway
before(async () => {
  fresh = await freshDatabase()
  const made: Scripted[] = []
  for (let count = 0; count < 14; count++) made.push(await scripted(accept))
  waiting.push(...made)
  env.TOLLGATE_OUTBOUND_ALLOW = made.map(({ host }) => host).join()
  g = await startGateway({ database: fresh, env })
})
after(async () => {
  await g.close()
  for (const { close } of servers) await close()
})

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const { status, data } = await g.operator<T>(method, path, body)
  assert.equal(status, 200, JSON.stringify(data))
  return data
}
const create = (name: string, kind: string, settings: object) =>
  ask<ExportView>('POST', '/exports', { name, kind, settings })
const seen = (id: string) => ask<ExportView>('GET', `/exports/${id}`)
const sql = (text: string, values: unknown[] = []) => g.sql(text, values as never)

const ROW = `account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, vendor, cost, credential`
/** Rows of one account, as ledger_use writes them; `first` makes their ids. */
const rowsOf = (account: string, first: number, count: number) =>
  `insert into usage (${ROW}) select '${account}', '${idAtTime(Date.now())}' || lpad((${first} + n)::text, 16, '0'), 'key_1', 'alpha-5.4', 'chat',
     'settled', 200, 1000 + n, 2000, 1, '[["input", 10, "75000000"], ["output", 5, "300000000"]]', 'openai', 400 + n, 'OPENAI_API_KEY'
   from generate_series(1, ${count}) n`

test('every call arrives with the same content, whatever fails, repeats or dies', async (t) => {
  const { id: account } = await g.account()
  const COUNT = runs(3_000, 1_000_000)
  const contents = new Map<string, string>()
  let differing = 0
  let repeated = 0
  let requests = 0
  /** Of this process: the gateway, the receiver and what the receiver remembers. */
  let mostBytes = 0
  const begun = performance.now()
  const take = ({ body }: Got) => {
    const events = JSON.parse(body.toString()) as { id: string; time: string; data: object }[]
    for (const event of events) {
      const content = hash('sha256', JSON.stringify(event), 'base64').slice(0, 16)
      const known = contents.get(event.id)
      if (known === undefined) contents.set(event.id, content)
      else {
        repeated += 1
        if (known !== content) differing += 1
      }
    }
  }
  /** It fails before it takes something, takes it and hangs up, takes it and says 503, and is slow in turns. */
  const hostile: Answer = (got, response) => {
    requests += 1
    receiver.got.length = 0
    mostBytes = Math.max(mostBytes, process.memoryUsage.rss())
    const turn = requests % 7
    if (turn === 1) return void response.writeHead(500).end('no')
    if (turn === 3) return void response.socket?.destroy()
    take(got)
    if (turn === 4) return void response.socket?.destroy()
    if (turn === 5) return void response.writeHead(503).end()
    response.writeHead(202).end()
  }
  let receiver = await scripted(hostile)
  const { port } = receiver
  const batch = runs(100, 1_000)
  const { id } = await create('hostile', 'webhook', { url: `${receiver.url}/usage`, batch })

  const writers = await atOnce(4, async () => {
    const client = new pg.Client({ ...fresh.connection })
    await client.connect()
    return client
  })
  // This one wrote first and is committed last: its rows have the smallest numbers, and others have been sent long
  // before.
  const late = writers[0]!
  await late.query('begin')
  await late.query(rowsOf(account, 0, 50))
  const each = Math.ceil((COUNT - 50) / 3 / 200)
  let made = 50
  await Promise.all(
    writers.slice(1).map(async (client, place) => {
      for (let at = 0; at < each; at++) {
        await client.query(rowsOf(account, 1_000 + (place * each + at) * 200, 200))
        made += 200
      }
    }),
  )
  // Nothing overtakes the transaction that is still open, however often the export looks.
  const looks = async () => Number((await sql('select version from export where id = $1', [id]))[0]?.version)
  const before = await looks()
  await until(() => looks(), above(before + 2))
  assert.equal(contents.size, 0, 'a row was sent before all those before it were known')
  await late.query('commit')
  for (const client of writers) await client.end()

  await until(() => contents.size, above(made / 4), 900_000)
  // The receiver dies, and comes back at the same place.
  await receiver.close()
  await until(async () => (await seen(id)).state, 'retrying', 60_000)
  receiver = await scripted(hostile, port)
  await until(() => contents.size, above(made / 2), 900_000)
  // So does the gateway; another goes on.
  await g.close()
  g = await startGateway({ database: fresh, env })
  await until(async () => contents.size === made && (await seen(id)).waiting === 0, undefined, 900_000)

  assert.equal(contents.size, made)
  assert.equal(differing, 0)
  assert.ok(repeated > 0, 'the receiver took nothing twice, so nothing was shown')
  assert.equal((await seen(id)).state, 'running')
  const seconds = Math.round((performance.now() - begun) / 1000)
  const megabytes = Math.round(mostBytes / 1_048_576)
  t.diagnostic(`${made} events, ${repeated} of them again, ${requests} requests, ${seconds} s, at most ${megabytes} MB`)
  await ask('DELETE', `/exports/${id}`)
})

test('a paid call is an event of CloudEvents 1.0, signed as our webhooks are', async () => {
  const receiver = await scripted(accept)
  await create('signed', 'webhook', { url: receiver.url, batch: 1 })
  const { id: account, key } = await g.account()
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'hello' }], user: 'ada' }
  const answer = await g.call('/v1/chat/completions', key, body, { headers: { 'x-tollgate-tags': 'team=a' } })
  assert.equal(answer.status, 200)
  const requestId = answer.headers.get('x-request-id')
  await answer.text()
  const got = await until(() => receiver.got[0])
  assert.equal(got.headers['content-type'], 'application/cloudevents+json')
  const event = JSON.parse(got.body.toString())
  assert.equal(event.specversion, '1.0')
  assert.equal(event.type, 'tollgate.usage')
  assert.equal(event.id, requestId)
  assert.equal(event.subject, account)
  assert.equal(event.data.vendor, 'alpha')
  assert.deepEqual(event.data.labels, { team: 'a', user: 'ada' })
  assert.ok(event.data.inputTokens > 0 && event.data.outputTokens > 0)
  const { secret } = await ask<{ secret: string }>('GET', '/webhook-secret')
  const signed = `${got.headers['webhook-id']}.${got.headers['webhook-timestamp']}.${got.body}`
  const expected = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(signed)
    .digest('base64')
  assert.equal(got.headers['webhook-signature'], `v1,${expected}`)
})

test(
  'a receiver that rejects pauses its export with an alert, and goes on where it was when resumed',
  needs('alerts'),
  async () => {
    const { id: account } = await g.account()
    const receiver = await scripted((_, response) => void response.writeHead(422).end('{"why":"unknown subject"}'))
    const { id } = await create('rejecting', 'openmeter', { url: receiver.url })
    await sql(rowsOf(account, 1, 150))
    const paused = await until(async () => {
      const view = await seen(id)
      return view.state === 'paused' && view
    })
    assert.equal(paused.status, 422)
    assert.match(paused.error ?? '', /unknown subject/)
    assert.equal(receiver.got.length, 1)
    await openedAlerts(g).look()
    const { items } = await ask<Page<AlertView>>('GET', '/alerts')
    assert.equal(items.find(({ rule }) => rule === 'export')?.subject, id)

    receiver.answer = (_, response) => void response.writeHead(204).end()
    await ask('POST', `/exports/${id}/resume`)
    const sent = await until(async () => {
      const view = await seen(id)
      return view.waiting === 0 && view.sent >= 150 && view
    })
    assert.equal(sent.sent, 150)
    assert.equal(receiver.got[1]?.url, '/api/v1/events')
    assert.equal(receiver.got[1]?.headers['content-type'], 'application/cloudevents-batch+json')
    await openedAlerts(g).look()
    await ask('DELETE', `/exports/${id}`)
  },
)

test('a receiver that redirects is not followed: nothing leaves for elsewhere, and its export is paused with the reason', async () => {
  const { id: account } = await g.account()
  const elsewhere = await scripted(accept)
  const receiver = await scripted(accept)
  const places = [
    elsewhere.url,
    'http://169.254.169.254/latest/meta-data',
    receiver.url,
    '//[::1]/',
    'file:///etc/passwd',
    '\t',
  ]
  const kinds = {
    webhook: {},
    lago: { credential: 'REDIRECTED_KEY', code: 'calls' },
    s3: { credential: 'REDIRECTED_KEY', bucket: 'books' },
  }
  const { url } = receiver
  for (const [at, location] of places.entries())
    for (const [kind, settings] of Object.entries(kinds)) {
      receiver.answer = (_, response) =>
        void response.writeHead([301, 302, 303, 307, 308][at] ?? 307, { location }).end()
      const { id } = await create(`redirected-${kind}-${at}`, kind, { url, ...settings })
      if (kind !== 'webhook') await ask('PUT', `/exports/${id}/credential`, { value: 'AKIA:redirected-secret' })
      const before = receiver.got.length
      const told = await ask<{ ok: boolean; error: string | null }>('POST', `/exports/${id}/test`)
      assert.match(told.error ?? '', /status 30\d/, `${kind} ${location}`)
      assert.equal(receiver.got.length, before + 1, 'a loop ends where it began')
      await ask('DELETE', `/exports/${id}`)
    }
  const { id } = await create('redirected', 'webhook', { url })
  const tested = receiver.got.length
  await sql(rowsOf(account, 1, 3))
  const paused = await until(async () => {
    const view = await seen(id)
    return view.state === 'paused' && view
  })
  assert.deepEqual([paused.status, paused.sent, receiver.got.length], [307, 0, tested + 1])
  assert.equal(elsewhere.got.length, 0)
  receiver.answer = accept
  await ask('POST', `/exports/${id}/resume`)
  await until(async () => (await seen(id)).sent, 3)
  await ask('DELETE', `/exports/${id}`)
})

test('Lago gets batches of a hundred, and what it has already is taken for accepted', async () => {
  const { id: account } = await g.account()
  const known = new Set<string>()
  const receiver = await scripted((got, response) => {
    const { events } = JSON.parse(got.body.toString()) as { events: { transaction_id: string }[] }
    const twice = events.flatMap(({ transaction_id: one }, at) => (known.has(one) ? [at] : []))
    if (twice.length > 0) {
      const details = Object.fromEntries(twice.map((at) => [at, { transaction_id: ['value_already_exist'] }]))
      return void response
        .writeHead(422)
        .end(
          JSON.stringify({
            status: 422,
            error: 'Unprocessable Entity',
            code: 'validation_errors',
            error_details: details,
          }),
        )
    }
    for (const { transaction_id: one } of events) known.add(one)
    // The first batch is taken, and its answer is lost.
    if (known.size === events.length) return void response.socket?.destroy()
    response.writeHead(200).end(JSON.stringify({ events }))
  })
  const { id } = await create('lago', 'lago', { url: receiver.url, credential: 'LAGO_KEY', code: 'calls' })
  await until(async () => (await seen(id)).state, 'paused')
  await ask('PUT', `/exports/${id}/credential`, { value: 'lago-secret' })
  await ask('PUT', `/exports/${id}/customers`, { account, customer: 'sub_1' })
  await sql(rowsOf(account, 1, 230))
  await sql(`update usage set labels = '{"team": "a", "target_wallet_code": "theirs"}' where account_id = $1`, [
    account,
  ])
  await ask('POST', `/exports/${id}/resume`)
  await until(async () => (await seen(id)).sent, 230)
  assert.equal(known.size, 230)
  const [first] = receiver.got
  assert.equal(first?.headers.authorization, 'Bearer lago-secret')
  const [event] = JSON.parse(first?.body.toString() ?? '').events
  assert.equal(event.external_subscription_id, 'sub_1')
  assert.equal(event.code, 'calls')
  assert.equal(event.properties.charged, '0.001001')
  // A caller's label does not choose whose wallet pays.
  assert.deepEqual([event.properties.team, 'target_wallet_code' in event.properties], ['a', false])
  await ask('DELETE', `/exports/${id}`)
})

test('Stripe gets meter events by request id, for the accounts whose customer it knows', async () => {
  const [{ id: account }, { id: other }] = [await g.account(), await g.account()]
  const events = new Map<string, URLSearchParams>()
  let lost = false
  const receiver = await scripted((got, response) => {
    const form = new URLSearchParams(got.body.toString())
    const identifier = form.get('identifier') ?? ''
    const said = { 'content-type': 'application/json' }
    if (events.has(identifier)) {
      const error = { type: 'invalid_request_error', message: `An event already exists with identifier ${identifier}.` }
      return void response.writeHead(400, said).end(JSON.stringify({ error }))
    }
    events.set(identifier, form)
    if (!lost) {
      lost = true
      return void response.socket?.destroy()
    }
    response.writeHead(200, said).end(JSON.stringify({ object: 'billing.meter_event', identifier }))
  })
  const settings = { url: receiver.url, credential: 'STRIPE_METER_KEY', event: 'tokens', value: 'tokens' }
  const { id } = await create('stripe', 'stripe', settings)
  await until(async () => (await seen(id)).state, 'paused')
  await ask('PUT', `/exports/${id}/credential`, { value: 'sk_test_1' })
  await ask('PUT', `/exports/${id}/customers`, { account, customer: 'cus_1' })
  await sql(rowsOf(account, 1, 25))
  await sql(rowsOf(other, 1, 5))
  await ask('POST', `/exports/${id}/resume`)
  const view = await until(async () => {
    const one = await seen(id)
    return one.sent === 25 && one.waiting === 0 && one
  })
  assert.equal(view.skipped, 5)
  assert.equal(events.size, 25)
  const [[identifier, form]] = [...events] as [[string, URLSearchParams]]
  assert.match(identifier, /^req_/)
  assert.equal(form.get('event_name'), 'tokens')
  assert.equal(form.get('payload[stripe_customer_id]'), 'cus_1')
  assert.equal(form.get('payload[value]'), '15')
  assert.equal(receiver.got[0]?.url, '/v1/billing/meter_events')
  assert.equal(receiver.got[0]?.headers.authorization, 'Bearer sk_test_1')
  await ask('DELETE', `/exports/${id}`)
})

test('a test asks the receiver whether it would take usage, and leaves nothing in its meters', async () => {
  const asked: string[] = []
  const receiver = await scripted(({ method, url, body }, response) => {
    const type = { 'content-type': 'application/json' }
    asked.push(`${method} ${url.split('?')[0]} ${/"type":"([^"]*)"/.exec(body.toString())?.[1] ?? ''}`.trim())
    if (url.startsWith('/v1/billing/meters'))
      return void response
        .writeHead(200, type)
        .end(JSON.stringify({ object: 'list', has_more: false, data: [{ id: 'mtr_1', event_name: 'tokens' }] }))
    if (url.includes('billable_metrics/gone')) return void response.writeHead(404, type).end('{"code":"not_found"}')
    response.writeHead(200, type).end('{}')
  })
  const gone = await scripted(accept)
  await gone.close()
  const { url } = receiver
  const stripe = { url, credential: 'STRIPE_KEY', value: 'calls' }
  const tried: [kind: string, settings: object, says: RegExp | null][] = [
    ['webhook', { url }, null],
    ['openmeter', { url }, null],
    ['lago', { url, credential: 'LAGO_KEY', code: 'calls' }, null],
    ['lago', { url, credential: 'LAGO_KEY', code: 'gone' }, /status 404/],
    ['stripe', { ...stripe, event: 'tokens' }, null],
    ['stripe', { ...stripe, event: 'other' }, /no active meter with the event "other"/],
    ['s3', { url, credential: 'BUCKET', bucket: 'books' }, null],
    ['webhook', { url: gone.url }, /connection/],
    ['lago', { url, credential: 'NOT_STORED', code: 'calls' }, /NOT_STORED is not stored/],
  ]
  for (const [at, [kind, settings, says]] of tried.entries()) {
    const { id } = await create(`tested-${at}`, kind, settings)
    if (says?.source.includes('NOT_STORED') !== true && 'credential' in settings)
      await ask('PUT', `/exports/${id}/credential`, { value: 'AKIA:secret' })
    const told = await ask<{ ok: boolean; error: string | null }>('POST', `/exports/${id}/test`)
    assert.equal(told.ok, says === null, told.error ?? kind)
    if (says) assert.match(told.error ?? '', says)
    await ask('DELETE', `/exports/${id}`)
  }
  assert.deepEqual(asked, [
    'POST / tollgate.test',
    'GET /api/v1/meters',
    'GET /api/v1/billable_metrics/calls',
    'GET /api/v1/billable_metrics/gone',
    'GET /v1/billing/meters',
    'GET /v1/billing/meters',
    'PUT /books/usage/tollgate-test.txt',
  ])
})

test('a backfill by date sends calls of the past, also those from before exports existed', async () => {
  const { id: account } = await g.account()
  const receiver = await scripted(accept)
  const day = Date.UTC(2026, 0, 5)
  await sql(
    `insert into usage (${ROW}, posting, at) select $1, $2 || lpad(n::text, 16, '0'), 'key_1', 'alpha-5.4', 'chat', 'settled', 200, n, 0, 1, '[]', 'openai', null, null,
       null, '2026-01-05T10:00:00Z' from generate_series(1, 250) n`,
    [account, idAtTime(day + 36_000_000)],
  )
  const { id } = await create('backfilled', 'webhook', { url: receiver.url })
  const begun = await ask<ExportView>('POST', `/exports/${id}/backfill`, { from: '2026-01-05', to: '2026-01-05' })
  assert.equal(begun.backfill?.from ?? '2026-01-05T00:00:00.000Z', '2026-01-05T00:00:00.000Z')
  const view = await until(async () => {
    const one = await seen(id)
    return one.backfill === null && one.sent >= 250 && one
  })
  assert.equal(view.sent, 250)
  const ids = receiver.got.flatMap(({ body }) => (JSON.parse(body.toString()) as { id: string }[]).map((one) => one.id))
  assert.equal(new Set(ids).size, 250)
  const refused = await g.operator('POST', `/exports/${id}/backfill`, { from: '2026-01-05', to: '2026-01-01' })
  assert.equal(refused.status, 400)
  await ask('DELETE', `/exports/${id}`)
})

test('files: Parquet by the hour and FOCUS by the day in a bucket, and FOCUS as a download', async () => {
  const { id: account } = await g.account()
  const files = new Map<string, Buffer>()
  let refusals = 2
  const bucket = await scripted((got, response) => {
    if (refusals-- > 0) return void response.writeHead(503).end('<Error>slow down</Error>')
    files.set(got.url, got.body)
    response.writeHead(200).end()
  })
  await ask('PATCH', '/billing', { worth: { currency: 'EUR', rate: '0.01' } })
  const place = { url: bucket.url, bucket: 'books', credential: 'BUCKET_KEY' }
  const parquet = await create('parquet', 's3', place)
  const focus = await create('focus', 's3', { ...place, format: 'focus-csv', prefix: 'focus' })
  await until(async () => (await seen(parquet.id)).state === 'paused' && (await seen(focus.id)).state === 'paused')
  await ask('PUT', `/exports/${parquet.id}/credential`, { value: 'AKIA:secret' })
  const rows = rowsOf(account, 1, 40)
    .replace('insert into usage (', 'insert into usage (at, ')
    .replace("select '", "select $1, '")
  await sql(rows, [new Date('2026-03-04T05:30:00Z')])
  await sql(rowsOf(account, 500, 3))
  // Not all that is sold is artificial intelligence.
  for (const [at, product] of ['siteanalytics/websites/visits', 'mine/look', 'socialapi'].entries())
    await sql(rowsOf(account, 600 + at, 1).replace('alpha-5.4', product))
  // What is sold by the call has its tokens beside the price.
  await sql(
    `update usage set lines = '[["call", 1, "75000000"]]', cost_basis = '{"units": {"input": 10, "output": 5}}' where account_id = $1 and charged = 1001`,
    [account],
  )
  // A transaction elsewhere in the same server may hide the rows from the first look, and the next one is an hour
  // later.
  await until(async () => {
    for (const { id } of [parquet, focus]) await ask('POST', `/exports/${id}/resume`)
    return files.size >= 2
  })
  const [path, bytes] = [...files].find(([name]) => name.startsWith('/books/usage/'))!
  assert.match(path, /^\/books\/usage\/date=2026-03-04\/hour=05\/usage-\w+\.parquet$/)
  const read = await readParquet({
    file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
  })
  assert.equal(read.length, 40)
  const row = read.find(({ account: of }) => of === account)!
  assert.equal(row.charged_microcredits, 1_001n)
  assert.equal(row.input_tokens, 10n)
  assert.deepEqual(row.units, { input: 10, output: 5, call: 1 })
  assert.equal((await seen(parquet.id)).waiting >= 3, true, 'the hour that is not over waits')

  const [name, csv] = [...files].find(([one]) => one.startsWith('/books/focus/'))!
  assert.match(name, /^\/books\/focus\/date=2026-03-04\/focus-\w+\.csv$/)
  const [header = '', line = '', ...rest] = csv.toString().trim().split('\r\n')
  assert.deepEqual(rest, [])
  const cells = Object.fromEntries(header.split(',').map((column, at) => [column, line.split(',')[at]]))
  assert.equal(cells.BilledCost, '0.0004082', 'forty calls of 1,001 to 1,040 millionths of a credit')
  assert.equal(cells.BillingCurrency, 'EUR')
  assert.equal(cells.ChargePeriodStart, '2026-03-04T00:00:00Z')
  assert.equal(cells.BillingPeriodEnd, '2026-04-01T00:00:00Z')
  assert.equal(cells.ConsumedQuantity, '600')
  assert.equal(cells.x_VendorCost, '0.0001682')
  // The mandatory columns of FOCUS 1.2; an account has a name, so it must be there.
  const MANDATORY = `BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart ChargeCategory ChargeClass
    ChargeDescription ChargePeriodEnd ChargePeriodStart ContractedCost EffectiveCost InvoiceIssuerName ListCost PricingQuantity PricingUnit ProviderName
    PublisherName ServiceCategory ServiceName`
  for (const column of MANDATORY.split(/\s+/)) assert.ok(column in cells, column)
  assert.deepEqual([cells.BillingAccountName, cells.ProviderName], ['test', 'Tollgate'])

  const today = new Date().toISOString().slice(0, 10)
  const download = await fetch(`${g.url}/admin/v1/focus?from=${today}&to=${today}`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, accept: 'text/csv' },
  })
  assert.equal(download.status, 200)
  const sum = (await download.text()).split('\r\n').filter((one) => one.includes(account))
  assert.equal(sum.length, 4, 'by product')
  for (const said of ['Analytics,siteanalytics/websites/visits,Other (Analytics)', 'Other,mine/look,Other (Other)'])
    assert.ok(
      sum.some((line) => line.includes(`,${said},`)),
      said,
    )
  assert.equal(sum.filter((line) => line.includes(',AI and Machine Learning,alpha-5.4,Generative AI,')).length, 1)
  for (const { id } of [parquet, focus]) await ask('DELETE', `/exports/${id}`)
})

test('settings that are not valid, and destinations that are not there, are refused by their field', async () => {
  const bad = async (kind: string, settings: object) =>
    JSON.stringify((await g.operator('POST', '/exports', { name: 'bad', kind, settings })).data)
  assert.match(await bad('webhook', { url: 'ftp://x' }), /settings\.url: must be an http or https address/)
  assert.match(await bad('lago', { url: 'https://x.example', credential: 'lower', code: 'c' }), /settings\.credential/)
  assert.match(await bad('s3', { url: 'https://x.example', bucket: 'UP', credential: 'C' }), /settings\.bucket/)
  assert.match(await bad('webhook', { url: 'https://x.example', secret: 'plain' }), /settings/)
  const inside = ['http://127.0.0.1:1/', 'http://10.0.0.5/', 'http://169.254.169.254/latest', 'http://db.internal/']
  for (const url of inside) assert.match(await bad('webhook', { url }), /This address cannot be used/)
  assert.match(
    await bad('s3', { url: 'http://[fd00::1]', bucket: 'books', credential: 'C' }),
    /This address cannot be used/,
  )
  assert.equal((await g.operator('GET', '/exports/exp_none')).status, 404)
  assert.equal((await g.operator('POST', '/exports/exp_none/resume')).status, 404)
})
