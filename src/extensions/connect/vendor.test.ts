// A vendor is changed, renamed and taken out of the catalog while calls go on, and says why calls failed there.

import { assert, listen, needs, pluck, started, test, testGateway } from '../../../test/gateway.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import type { Applied, VendorCheckView } from '../../catalog/views.ts'
import { idAtTime } from '../../kernel/world.ts'
import type { VendorError } from '../../reports/views.ts'
import type { VendorHistory } from '../../routing/views.ts'
import type { UnbilledRow } from '../finance/margins/views.ts'

const heard: string[] = []
const server = started(() =>
  listen((req, res) => {
    heard.push(String(req.headers.authorization))
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }]
    const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }),
)
const place = (host: string) => `http://${host}:${server.port}/v1`

const g = testGateway({
  catalog(document) {
    document.vendors.acme = { baseUrl: place('127.0.0.1'), credential: 'ACME_KEY' }
    const route = { vendor: 'acme', protocol: 'openai-chat' }
    const alpha = document.models['alpha-5.4']
    document.models['acme-one'] = { ...alpha, name: 'One', clientFormats: ['openai-chat'], routes: [route] }
    document.models['alpha-5.5'].routes.push({ ...route, order: 1 })
  },
})
const chat = (model: string, content = 'Hello') => ({ model, messages: [{ role: 'user', content }] })

test('a vendor is previewed in sentences and changed, and its key goes to no other host unless it is said again', async () => {
  const stored = await g.operator('PUT', '/vendors/acme/credentials/ACME_KEY', { value: 'sk-of-acme' })
  assert.equal(stored.status, 200)
  const entry = { timeouts: { connectMs: 1500 } }
  const { data: check } = await g.operator<VendorCheckView>('PATCH', '/vendors/acme?dryRun=1', { entry })
  assert.deepEqual([check.changes, check.unservedProducts], [['Vendor acme: connect timeout (ms) becomes 1500.'], []])
  assert.equal(g.gateway.catalog.current.document.vendors.acme?.timeouts.connectMs, 5000, 'nothing was applied')
  assert.equal((await g.operator('PATCH', '/vendors/acme', { entry })).status, 200)
  assert.equal(g.gateway.catalog.current.document.vendors.acme?.timeouts.connectMs, 1500)

  const moved = { entry: { baseUrl: place('localhost') } }
  const refused = await g.operator<{ message: string }>('PATCH', '/vendors/acme', moved)
  assert.equal(refused.status, 400)
  assert.match(refused.data.message, /give its value again/)
  const done = await g.operator('PATCH', '/vendors/acme', { ...moved, credential: { value: 'sk-moved' } })
  assert.equal(done.status, 200)
  const { key } = await g.account()
  assert.equal((await g.call('/v1/chat/completions', key, chat('acme-one'))).status, 200)
  assert.equal(heard.at(-1), 'Bearer sk-moved')
})

type Refusal = { message: string }

test('a value that would not be stored is refused, with what does store it, in the dry run as well', async () => {
  const { version } = g.gateway.catalog.current
  for (const dry of ['', '?dryRun=1']) {
    for (const more of [{}, { entry: { timeouts: { idleMs: 9000 } } }]) {
      const body = { ...more, credential: { value: 'sk-new' } }
      const { status, data } = await g.operator<Refusal>('PATCH', `/vendors/acme${dry}`, body)
      assert.equal(status, 400)
      assert.match(
        data.message,
        /PUT \/vendors\/acme\/credentials\/ACME_KEY.*tollgate vendors credentials acme --set ACME_KEY/,
      )
    }
    const moved = { entry: { baseUrl: place('127.0.0.1') } }
    const refused = await g.operator<Refusal>('PATCH', `/vendors/acme${dry}`, moved)
    assert.equal(refused.status, 400)
    assert.match(refused.data.message, /give its value again/)
    const metadata = { entry: { baseUrl: 'http://169.254.169.254/' }, credential: { value: 'x' } }
    assert.equal((await g.operator('PATCH', `/vendors/acme${dry}`, metadata)).status, 400)
  }
  await g.sql(`insert into byok_key (account_id, vendor, sealed) values ('a', 'acme', '')`)
  assert.equal((await g.operator('PATCH', '/vendors/acme?dryRun=1', { name: 'apex' })).status, 409)
  await g.sql('delete from byok_key')
  assert.equal(g.gateway.catalog.current.version, version)
})

test('a vendor with several credentials moves to another host by the steps that the refusal names', async () => {
  const second = await g.operator('PUT', '/vendors/acme/credentials/ACME_SECOND', { value: 'sk-second' })
  assert.equal(second.status, 200)
  const moved = { entry: { baseUrl: place('127.0.0.1') }, credential: { value: 'sk-moved' } }
  for (const body of [moved, { entry: moved.entry }])
    for (const dry of ['', '?dryRun=1']) {
      const { status, data } = await g.operator<Refusal>('PATCH', `/vendors/acme${dry}`, body)
      assert.equal(status, 400)
      assert.match(data.message, /ACME_KEY and ACME_SECOND.*Remove all but one.*DELETE \/vendors\/acme\/credentials/)
    }
  assert.equal((await g.operator('DELETE', '/vendors/acme/credentials/ACME_SECOND')).status, 200)
  assert.equal((await g.operator('PATCH', '/vendors/acme', moved)).status, 200)
  assert.equal((await g.operator('PUT', '/vendors/acme/credentials/ACME_SECOND', { value: 'sk-second' })).status, 200)
  assert.equal((await g.operator('DELETE', '/vendors/acme/credentials/ACME_SECOND')).status, 200)
})

test('a vendor that moves does not replace the value of a credential that another vendor uses', async () => {
  const { document } = await g.ask<{ document: CatalogInput }>('GET', '/catalog')
  const shared = { baseUrl: place('127.0.0.1'), credential: 'ACME_KEY' }
  const vendors = { ...document.vendors, sister: shared }
  assert.equal((await g.operator('PUT', '/catalog', { document: { ...document, vendors } })).status, 200)
  const moved = { entry: { baseUrl: place('localhost') }, credential: { value: 'sk-other' } }
  for (const dry of ['', '?dryRun=1']) {
    const { status, data } = await g.operator<Refusal>('PATCH', `/vendors/acme${dry}`, moved)
    assert.equal(status, 409)
    assert.match(data.message, /"sister"/)
  }
  const { key } = await g.account()
  assert.equal((await g.call('/v1/chat/completions', key, chat('acme-one'))).status, 200)
  assert.equal(heard.at(-1), 'Bearer sk-moved')
  // One without a credential has no place for a value.
  const open = { ...document.vendors, sister: { baseUrl: shared.baseUrl } }
  assert.equal((await g.operator('PUT', '/catalog', { document: { ...document, vendors: open } })).status, 200)
  const none = await g.operator<Refusal>('PATCH', '/vendors/sister', moved)
  assert.equal(none.status, 400)
  assert.match(none.data.message, /PUT \/vendors\/sister\/credentials\//)
  assert.equal((await g.operator('DELETE', '/vendors/sister')).status, 200)
})

test('what no catalog can hold is refused, and nothing changes', async () => {
  const { version } = g.gateway.catalog.current
  for (const [body, status] of [
    [{ entry: { timeouts: { connectMs: -1 } } }, 400],
    [{ entry: { nothing: 1 } }, 400],
    [{ entry: { baseUrl: 'http://169.254.169.254/' }, credential: { value: 'x' } }, 400],
    [{ entry: { credential: 'OTHER_KEY' } }, 400],
    [{ entry: { baseUrl: null } }, 400],
    [{ name: 'alpha' }, 409],
    [{ format: 'gopher' }, 400],
  ] as const)
    assert.equal((await g.operator('PATCH', '/vendors/acme', body)).status, status, JSON.stringify(body))
  assert.equal((await g.operator('PATCH', '/vendors/nobody', { name: 'x' })).status, 404)
  assert.equal((await g.operator('DELETE', '/vendors/nobody')).status, 404)
  assert.equal(g.gateway.catalog.current.version, version)
})

test('a vendor is renamed with its routes, figures and stored responses', needs('background', 'finance'), async () => {
  const { database } = g.gateway
  await database.query({
    text: `insert into vendor_object (account_id, id, vendor, product, key_id) values ('a', 'resp_1', 'acme', 'acme-one', 'k')`,
  })
  // In an hour of which the gateway writes no more.
  await database.query({
    text: `insert into vendor_hour (hour, vendor, product, requests, errors, latencies) values (date_trunc('hour', now()) - interval '2 hours', 'acme', 'acme-one', 7, 1, '{}')`,
  })
  // One that was called so had calls in the same hour.
  await database.query({
    text: `insert into vendor_hour (hour, vendor, product, requests, errors, latencies) values
      (date_trunc('hour', now()) - interval '2 hours', 'apex', 'acme-one', 5, 2, '{1,2}'), (date_trunc('hour', now()) - interval '2 hours', 'acme', 'apex-two', 3, 0, '{4}'),
      (date_trunc('hour', now()) - interval '2 hours', 'apex', 'apex-two', 1, 1, '{0,0,6}')`,
  })
  await database.query({
    text: `insert into unbilled_day (day, kind, vendor, product, model, credential, calls, input_tokens, output_tokens, cost) values
      ('2026-01-02', 'shadow', 'acme', 'm', 'm', '', 1, 10, 5, 7), ('2026-01-02', 'shadow', 'apex', 'm', 'm', '', 2, 20, 10, null)`,
  })
  const { data } = await g.operator<Applied>('PATCH', '/vendors/acme', { name: 'apex', format: 'openai-responses' })
  assert.deepEqual(
    data.changes.filter((line) => line.startsWith('Vendor')),
    ['Vendor acme is renamed apex.'],
  )
  const { models, vendors } = g.gateway.catalog.current.document
  assert.deepEqual(pluck(models['acme-one']?.routes, 'vendor', 'protocol'), [['apex', 'openai-responses']])
  assert.equal(models['alpha-5.5']?.routes.at(-1)?.vendor, 'apex')
  assert.ok(vendors.apex && !vendors.acme)
  const [kept] = await database.query<{ vendor: string }>({
    text: `select vendor from vendor_object where id = 'resp_1'`,
  })
  assert.equal(kept?.vendor, 'apex')
  const history = await g.ask<{ items: VendorHistory[] }>('GET', '/vendors/history')
  assert.ok(
    history.items.some(({ vendor, hours }) => vendor === 'apex' && hours.some(({ requests }) => requests >= 12)),
  )
  const hours = await database.query<{ latencies: number[] }>({
    text: `select vendor, requests::int, errors::int, latencies from vendor_hour where product = 'apex-two'`,
  })
  assert.deepEqual(hours, [{ vendor: 'apex', requests: 4, errors: 1, latencies: [4, 0, 6] }])
  const paid = await g.operator<{ items: UnbilledRow[] }>('GET', '/margins/unbilled?from=2026-01-02&to=2026-01-02')
  assert.deepEqual(pluck(paid.data.items, 'vendor', 'calls', 'inputTokens', 'cost'), [['apex', 3, 30, '0.000007']])
  // One at which accounts have keys of their own keeps its name.
  await database.query({ text: `insert into byok_key (account_id, vendor, sealed) values ('a', 'apex', '')` })
  assert.equal((await g.operator('PATCH', '/vendors/apex', { name: 'acme' })).status, 409)
  await database.query({ text: 'delete from byok_key' })
  const back = await g.operator('PATCH', '/vendors/apex', { name: 'acme', format: 'openai-chat' })
  assert.equal(back.status, 200)
})

test('what would lose its last route is named before a vendor goes, and goes only if that is agreed to', async () => {
  const { data: check } = await g.operator<VendorCheckView>('DELETE', '/vendors/acme?dryRun=1')
  assert.deepEqual(check.unservedProducts, ['acme-one'])
  assert.ok(check.changes.includes('acme-one is no longer offered.'))
  const refused = await g.operator<{ message: string }>('DELETE', '/vendors/acme')
  assert.equal(refused.status, 409)
  assert.match(refused.data.message, /No other vendor serves acme-one\./)
  assert.ok(g.gateway.catalog.current.document.vendors.acme)
  assert.equal((await g.operator('DELETE', '/vendors/acme?force=true')).status, 200)
  const { vendors, models } = g.gateway.catalog.current.document
  assert.deepEqual([vendors.acme, models['acme-one']], [undefined, undefined])
  assert.ok(models['alpha-5.5'], 'another vendor serves it')
  const stored = await g.sql(`select 1 from credential where name = 'ACME_KEY'`)
  assert.equal(stored.length, 0, 'nobody needs its key any more')
  // Rolling back says what comes again, in the same sentences, and the audit keeps them.
  const { version } = g.gateway.catalog.current
  const { data: back } = await g.operator<VendorCheckView>('POST', '/catalog/rollback?dryRun=1', {
    version: version - 1,
  })
  assert.ok(back.changes.some((line) => line.startsWith('acme-one: ') && line.endsWith('It is new, served by acme.')))
  assert.equal(g.gateway.catalog.current.version, version)
  const applied = await g.operator<Applied>('POST', '/catalog/rollback', { version: version - 1 })
  assert.deepEqual(applied.data.changes, back.changes)
  const audit = await g.ask<{ items: { detail: { changes: string[] } }[] }>('GET', '/audit?action=catalog&limit=1')
  assert.deepEqual(audit.items[0]?.detail.changes, back.changes)
})

test('failures of a vendor are grouped by their cause, with the newest calls, and found by an index', async () => {
  const { id, key } = await g.account()
  for (const mark of ['[[503]]', '[[503]]', '[[400]]'])
    await (await g.call('/v1/chat/completions', key, chat('gamma-v4-pro', mark))).text()
  await g.settled()
  const data = await g.ask<{ items: VendorError[] }>('GET', '/vendors/gamma/errors')
  const [most, second] = data.items
  assert.partialDeepStrictEqual(most, {
    fault: 'upstream_unavailable',
    status: 503,
    calls: 2,
    products: ['gamma-v4-pro'],
  })
  assert.deepEqual(pluck(most?.newest, 'account', 'accountName'), [
    [id, 'test'],
    [id, 'test'],
  ])
  assert.equal(second?.status, 400)
  const { database } = g.gateway
  await database.query(
    {
      text: `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines)
       select $1, $2 || lpad(n::text, 16, '0'), 'k', 'alpha-5.4', 'chat', 'settled', 200, 0, 0, 1, '[]' from generate_series(1, 12000) n`,
    },
    [id, idAtTime(Date.now())],
  )
  await database.query({ text: 'analyze usage' })
  const plan = await database.query<{ 'QUERY PLAN': string }>(
    { text: `explain select id from usage where id >= $1 and attempt_log is not null order by id desc limit 2000` },
    [idAtTime(Date.now() - 3_600_000)],
  )
  // Partitions without rows need no index.
  const lines = plan
    .map((row) => row['QUERY PLAN'])
    .filter((line) => / on usage_/.test(line) && !line.includes('0.00..0.00'))
  assert.ok(lines.length > 0 && lines.every((line) => line.includes('Index')), lines.join())
  await database.query({ text: `delete from usage where key_id = 'k'` })
})
