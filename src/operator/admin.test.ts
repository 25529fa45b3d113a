import type * as z from 'zod'
import { assert, atOnce, pluck, started, test, words } from '../../test/kit.ts'
import {
  asOperator,
  callsOn,
  makeAccount,
  OPERATOR_TOKEN,
  startOperatorServer,
  verified,
} from '../../test/operator-server.ts'
import { release } from '../../test/settlement.ts'
import { SMALL_CATALOG } from '../../test/small-catalog.ts'
import type { NewKey } from '../admission/views.ts'
import type { Applied, CheckView, CurrentView, VersionView } from '../catalog/views.ts'
import type { AuditView, auditCheck } from '../database/audit.ts'
import { createSecrets } from '../kernel/secret.ts'
import type { Page } from '../kernel/view.ts'
import { realWorld } from '../kernel/world.ts'
import type { AccountView, LedgerView } from '../ledger/views.ts'
import { openCredentials } from '../upstream/credentials/credentials.ts'
import type { LiveCallView, SystemView, VendorView } from './views.ts'

const server = started(startOperatorServer)
const ask = asOperator(server)
const { call, reserve } = callsOn(server)
const accountOf = (input: object = {}) => makeAccount(server, input)

test('without the operator token every resource answers 401, before its body is read', async () => {
  const hostile = [
    '',
    'Bearer',
    'Bearer x',
    'Basic abc',
    `Bearer ${OPERATOR_TOKEN}x`,
    `Bearer ${"' or 1=1 --"}`,
    'Bearer é',
  ]
  for (const path of ['/accounts', '/catalog', '/audit', '/ledger/verify', '/accounts/acc_1/keys', '/system'])
    for (const authorization of hostile) {
      const { status, error } = await ask('GET', path, undefined, { authorization })
      assert.equal(status, 401, `${path} ${authorization}`)
      assert.equal(error?.code, 20000)
    }
  const big = await ask('POST', '/accounts', 'x'.repeat(5_000_000), { authorization: 'Bearer nope' }).catch(() => ({
    status: 401,
  }))
  assert.equal(big.status, 401, 'or the connection was cut')
})

test('an unknown path is 404 and a wrong method 405 with the methods that it takes', async () => {
  assert.equal((await ask('GET', '/nothing')).status, 404)
  assert.equal((await ask('GET', '/accounts/a/b/c')).error?.code, 30000)
  const wrong = await ask('DELETE', '/accounts')
  assert.equal(wrong.status, 405)
  assert.equal(wrong.headers.get('allow'), 'GET, HEAD, POST')
  // The paths are in the OpenAPI document: nobody learns more from this than from there.
  assert.equal((await ask('PUT', '/keys/key_1', {}, { authorization: 'Bearer no' })).status, 405)
  assert.equal((await ask('PATCH', '/keys/key_1', {}, { authorization: 'Bearer no' })).status, 401)
})

test('an account is made with credits and limits, renamed, given credits and relieved of them', async () => {
  const made = await ask<AccountView>('POST', '/accounts', {
    name: '  Ada & Söhne  ',
    credits: 12.5,
    limits: { concurrency: 3 },
  })
  assert.equal(made.status, 200)
  const { id } = made.data
  assert.deepEqual(
    { ...made.data, createdAt: '' },
    {
      id,
      name: 'Ada & Söhne',
      balance: '12.5',
      held: '0',
      available: '12.5',
      limits: { concurrency: 3 },
      createdAt: '',
      status: 'open',
      statusReason: null,
      statusAt: null,
    },
  )
  const changed = await ask<AccountView>('PATCH', `/accounts/${id}`, {
    name: 'Ada',
    limits: { spendPerDay: '7.25', concurrency: null },
  })
  assert.deepEqual(changed.data.limits, { spendPerDay: '7.25' })
  assert.equal(changed.data.name, 'Ada')
  assert.equal(
    (await ask<AccountView>('POST', `/accounts/${id}/credits`, { amount: '0.000001', note: 'a drop' })).data.balance,
    '12.500001',
  )
  await reserve(id, 2_000_000n)
  const tooMuch = await ask('POST', `/accounts/${id}/credits`, { amount: -1000, note: 'back' })
  assert.equal(tooMuch.status, 409)
  assert.match(tooMuch.error?.message ?? '', /^Only 10\.500001 credits are available, so 1000 cannot be taken back\./)
  const taken = await ask<AccountView>('POST', `/accounts/${id}/credits`, { amount: '-10.500001', note: 'back' })
  assert.deepEqual([taken.data.balance, taken.data.available], ['2', '0'])
  assert.equal((await ask('POST', `/accounts/${id}/credits`, { amount: -1 })).status, 409)
  assert.equal((await ask('POST', '/accounts/acc_none/credits', { amount: 1 })).status, 404)
  assert.equal((await ask('GET', '/accounts/acc_none')).error?.code, 30000)
  const ledger = await ask<Page<LedgerView>>('GET', `/accounts/${id}/ledger`)
  assert.deepEqual(pluck(ledger.data.items, 'kind', 'moved', 'balanceAfter', 'note', 'actor'), [
    ['takeback', '-10.500001', '2', 'back', 'operator token'],
    ['grant', '0.000001', '12.500001', 'a drop', 'operator token'],
    ['grant', '12.5', '12.5', 'first credits', 'operator token'],
  ])
})

test('credits that are sent twice with one Idempotency-Key are given once, at whatever time and by how many at once', async () => {
  const id = await accountOf({ credits: '1' })
  const path = `/accounts/${id}/credits`
  const headers = { 'idempotency-key': 'invoice 17' }
  const give = (body: object) => ask<AccountView>('POST', path, body, headers)
  const together = await atOnce(8, () => give({ amount: '5', note: 'paid' }))
  for (const { status, data } of together) assert.deepEqual([status, data.balance], [200, '6'])
  assert.equal(together.filter((answer) => answer.headers.get('idempotent-replayed') === 'true').length, 7)
  await ask('POST', path, { amount: '2' })
  assert.deepEqual((await give({ amount: 5, note: 'paid' })).data, together[0]!.data)
  const other = await give({ amount: '6', note: 'paid' })
  assert.deepEqual([other.status, other.error?.code], [409, 30001])
  assert.equal((await ask<AccountView>('GET', `/accounts/${id}`)).data.balance, '8')
  // A key belongs to its account, and a refusal uses none up.
  const elsewhere = await accountOf({ credits: '1' })
  const taken = () => ask<AccountView>('POST', `/accounts/${elsewhere}/credits`, { amount: '-1' }, headers)
  assert.equal((await taken()).data.balance, '0')
  assert.equal((await taken()).data.balance, '0')
  const refused = { 'idempotency-key': 'later' }
  const back = () => ask<AccountView>('POST', `/accounts/${elsewhere}/credits`, { amount: '-1' }, refused)
  assert.equal((await back()).status, 409)
  await ask('POST', `/accounts/${elsewhere}/credits`, { amount: '1' })
  assert.equal((await back()).data.balance, '0')
  for (const key of ['', 'x'.repeat(256)])
    assert.equal((await ask('POST', path, { amount: 1 }, { 'idempotency-key': key })).status, 400)
})

test('accounts are paged, and searched for by the text itself, not by a pattern', async () => {
  const names = ['100% wool', '100 wool', 'a_b', 'aXb', String.raw`back\slash`, "quote ' or '1'='1"]
  for (const name of names) await accountOf({ name })
  const find = async (q: string) =>
    (await ask<Page<AccountView>>('GET', `/accounts?q=${encodeURIComponent(q)}`)).data.items.map(({ name }) => name)
  assert.deepEqual(await find('100%'), ['100% wool'])
  assert.deepEqual(await find('A_B'), ['a_b'])
  assert.deepEqual(await find('\\'), [String.raw`back\slash`])
  assert.deepEqual(await find("' or '1'='1"), ["quote ' or '1'='1"])
  assert.deepEqual(await find('%_%_%_%'), [])
  const seen: string[] = []
  let next: string | null = ''
  do {
    const page: Page<AccountView> = (
      await ask<Page<AccountView>>('GET', `/accounts?limit=3${next ? `&cursor=${next}` : ''}`)
    ).data
    assert.ok(page.items.length <= 3)
    seen.push(...page.items.map(({ id }) => id))
    next = page.next
  } while (next !== null)
  assert.equal(new Set(seen).size, seen.length)
  assert.ok(seen.length >= names.length)
})

test('a limit holds from the moment it is set, counting what is open and what was spent', async () => {
  const id = await accountOf()
  await call(id, { input: 1000, output: 1000 })
  const { id: open } = await reserve(id, 50_000n, 'key_y') // Nothing is leased for its first call.
  // 0.01 is spent and 0.05 is held.
  assert.equal((await ask('PATCH', `/accounts/${id}`, { limits: { spendPerDay: '0.1' } })).status, 200)
  const rows = await server.sql(
    'select scope, name, used, counter_held(c) as held from counter c where account_id = $1',
    [id],
  )
  assert.deepEqual(rows, [{ scope: 'account', name: 'spendPerDay', used: 10_000n, held: 50_000n }])
  assert.equal((await reserve(id, 40_001n)).outcome, 'limited')
  assert.equal((await reserve(id, 40_000n)).outcome, 'held')
  assert.equal((await ask('PATCH', `/accounts/${id}`, { limits: { concurrency: 2 } })).status, 200)
  assert.equal((await reserve(id, 0n)).outcome, 'limited', 'two calls are open')
  await server.ledger.resolve(release(id, open, { key: 'key_x' }))
  assert.equal((await reserve(id, 0n)).outcome, 'held', 'one of them has ended')
  await ask('PATCH', `/accounts/${id}`, { limits: null })
  assert.equal((await reserve(id, 1_000_000n)).outcome, 'held')
  assert.equal((await verified(server)).ok, true)
})

test('a limit of the system holds for everybody, and is gone when it is removed', async () => {
  const [one, two] = [await accountOf(), await accountOf()]
  assert.deepEqual((await ask('PATCH', '/limits', { requestsPerMinute: 2 })).data, { requestsPerMinute: 2 })
  assert.equal((await reserve(one, 1n)).outcome, 'held')
  assert.equal((await reserve(two, 1n)).outcome, 'held')
  const third = await reserve(one, 1n)
  assert.ok(third.outcome === 'limited' && third.limit === 'requestsPerMinute')
  assert.deepEqual((await ask('PATCH', '/limits', { requestsPerMinute: null })).data, {})
  assert.deepEqual((await ask('GET', '/limits')).data, {})
  assert.equal((await reserve(one, 1n)).outcome, 'held')
})

test('limits set under load count every call once', async () => {
  const id = await accountOf({ credits: '1000' })
  const stop = new AbortController()
  const load = Array.from({ length: 8 }, async () => {
    while (!stop.signal.aborted) await call(id, { input: 10, output: 10 })
  })
  for (let i = 0; i < 10; i++) {
    await ask('PATCH', `/accounts/${id}`, { limits: { concurrency: 1000, spendTotal: '900' } })
    await ask('PATCH', `/accounts/${id}`, { limits: null })
    await ask('PATCH', '/limits', { concurrency: 1000 })
    await ask('PATCH', '/limits', { concurrency: null })
  }
  await ask('PATCH', `/accounts/${id}`, { limits: { spendTotal: '900' } })
  stop.abort()
  await Promise.all(load)
  await server.ledger.idle()
  const [row] = await server.sql<{ held: bigint; used: bigint; charged: bigint }>(
    `select counter_held(c) as held, used, (select sum(amount)::bigint from transfer where account_id = $1 and kind = 'settled') as charged
        from counter c where account_id = $1 and name = 'spendTotal'`,
    [id],
  )
  assert.equal(row?.held, 0n)
  assert.equal(row?.used, row?.charged)
  assert.deepEqual((await verified(server)).problems, [])
})

test('an account that is made twice with one Idempotency-Key is made once, and not changed by another body', async () => {
  const body = { name: 'Once Ltd', credits: '12.5', note: 'brought along', limits: { spendPerDay: '3' } }
  const headers = { 'idempotency-key': 'customer 12' }
  const answers = await Promise.all([1, 2, 3, 4].map(() => ask<AccountView>('POST', '/accounts', body, headers)))
  const [first] = answers
  for (const { status, data } of answers) assert.deepEqual([status, data], [200, first?.data])
  assert.deepEqual([first?.data.balance, first?.data.limits], ['12.5', { spendPerDay: '3' }])
  assert.equal((await ask('POST', '/accounts', { ...body, credits: '13' }, headers)).status, 409)
  assert.equal((await ask<Page<AccountView>>('GET', '/accounts?q=once%20ltd')).data.items.length, 1)
  const { data } = await ask<Page<{ note: string; amount: string }>>('GET', `/accounts/${first?.data.id}/ledger`)
  assert.deepEqual(pluck(data.items, 'note', 'amount'), [['brought along', '12.5']])
})

test('the catalog is read, checked, applied, changed in one model and rolled back', async () => {
  const before = await ask<CurrentView>('GET', '/catalog')
  assert.deepEqual(before.data.document, SMALL_CATALOG)
  const broken = structuredClone(SMALL_CATALOG) as unknown as Record<string, Record<string, Record<string, unknown>>>
  delete broken.models!['alpha-5.4']!.pricing
  const dry = await ask<CheckView>('PUT', '/catalog?dryRun=1', { document: broken })
  assert.match(dry.data.problems[0]!, /^models\.alpha-5\.4\.pricing/)
  assert.equal((await ask('PUT', '/catalog', { document: broken })).status, 400)
  const changed = await ask<Applied>('PATCH', '/models/alpha-5.4', { enabled: false })
  assert.equal(changed.data.version, before.data.version + 1)
  assert.equal(server.catalog.current.document.models['alpha-5.4']?.enabled, false)
  assert.equal((await ask('PATCH', '/models/alpha-5.4', { pricing: { unit: 'credits', tiers: [] } })).status, 400)
  assert.equal((await ask('PATCH', '/models/alpha-9', { enabled: true })).status, 404)
  assert.equal((await ask('PATCH', '/models/__proto__', { enabled: true })).status, 404)
  assert.equal(
    (await ask('PATCH', `/models/${encodeURIComponent('siteanalytics/websites/visits')}`, { enabled: false })).status,
    200,
  )
  const at = await Promise.all(
    ['9', '10', '11', '12'].map((input) =>
      ask<Applied>('PATCH', '/models/alpha-5.4', { pricing: { unit: 'credits', tiers: [{ input, output: '1' }] } }),
    ),
  )
  assert.equal(new Set(at.map(({ data }) => data.version)).size, 4, 'changes at once come one after the other')
  const back = await ask<Applied>('POST', '/catalog/rollback', { version: before.data.version })
  assert.equal(back.data.version, before.data.version + 7)
  assert.deepEqual(server.catalog.current.input, SMALL_CATALOG)
  const versions = await ask<Page<VersionView>>('GET', '/catalog/versions')
  assert.equal(versions.data.items[0]?.note, `back to version ${before.data.version}`)
  assert.equal(versions.data.items[0]?.actor, 'operator token')
  assert.equal((await ask('POST', '/catalog/rollback', { version: 999 })).status, 404)
})

test('a vendor credential is stored sealed, the environment comes first, and removing it is seen at once', async () => {
  const of = async () => {
    const { data } = await ask<Page<VendorView>>('GET', '/vendors')
    return data.items.find(({ name }) => name === 'textworks')?.credential
  }
  assert.deepEqual(await of(), { name: 'TEXTWORKS_API_KEY', present: false, source: 'none' })
  assert.equal(
    (await ask('PUT', '/vendors/textworks/credential', { value: 'sk-canary-vendor-credential' })).status,
    200,
  )
  assert.deepEqual(await of(), { name: 'TEXTWORKS_API_KEY', present: true, source: 'stored' })
  assert.equal(server.credentials.get('TEXTWORKS_API_KEY'), 'sk-canary-vendor-credential')
  server.environment.set('TEXTWORKS_API_KEY', 'from-env')
  assert.equal(server.credentials.get('TEXTWORKS_API_KEY'), 'from-env')
  assert.deepEqual(await of(), { name: 'TEXTWORKS_API_KEY', present: true, source: 'env' })
  server.environment.clear()
  assert.equal((await ask('DELETE', '/vendors/textworks/credential')).status, 200)
  assert.equal(server.credentials.get('TEXTWORKS_API_KEY'), undefined)
  assert.equal((await ask('DELETE', '/vendors/textworks/credential')).status, 404)
  assert.equal((await ask('PUT', '/vendors/dataworks/credential', { value: 'x' })).status, 409)
  assert.equal((await ask('PUT', '/vendors/nobody/credential', { value: 'x' })).status, 404)
  assert.equal((await ask('PUT', '/vendors/textworks/credential', { value: 'a\r\nb: c' })).status, 400)
  const { data: tested } = await ask<NonNullable<VendorView['lastTest']>>('POST', '/vendors/simulated/test')
  assert.ok(tested.ok, tested.message)
  const { data } = await ask<Page<VendorView>>('GET', '/vendors')
  const lastTest = (vendor: string) => data.items.find(({ name }) => name === vendor)?.lastTest
  assert.deepEqual([lastTest('simulated')?.ok, lastTest('simulated')?.message], [true, tested.message])
  assert.equal(lastTest('textworks'), null)
})

test('a credential that was sealed under another secret, or moved from another row, does not open', async () => {
  const { database, changes, audit } = server
  const by = { actor: 'operator token', ip: '127.0.0.1', requestId: 'req_1' }
  await server.credentials.store('TEXTWORKS_API_KEY', 'sk-one', by)
  await server.credentials.store('OTHER_KEY', 'sk-two', by)
  const open = (root: string) =>
    openCredentials({
      database,
      changes,
      audit,
      world: realWorld,
      secrets: createSecrets(root),
      environment: new Map(),
    })
  const stranger = await open('another root secret of at least 32 bytes')
  assert.equal(stranger.get('TEXTWORKS_API_KEY'), undefined)
  assert.deepEqual([...stranger.unreadable].sort(), ['OTHER_KEY', 'TEXTWORKS_API_KEY'])
  await database.query({
    text: `update credential set sealed = (select sealed from credential where name = 'OTHER_KEY') where name = 'TEXTWORKS_API_KEY'`,
  })
  await changes.notice('credentials')
  assert.equal(server.credentials.get('TEXTWORKS_API_KEY'), undefined)
  assert.equal(server.credentials.get('OTHER_KEY'), 'sk-two')
  const { data } = await ask<Page<VendorView>>('GET', '/vendors')
  assert.deepEqual(data.items.find(({ name }) => name === 'textworks')?.credential, {
    name: 'TEXTWORKS_API_KEY',
    present: false,
    source: 'none',
    unreadable: true,
  })
  await ask('DELETE', '/vendors/textworks/credential')
})

test('the system page says what runs', async () => {
  const { data } = await ask<SystemView>('GET', '/system')
  assert.ok(data.store.sizeBytes > 1_000_000)
  assert.equal(data.processes.length, 1)
  assert.equal((await ask<Page<LiveCallView>>('GET', '/requests/live')).data.items.length, 0)
})

test('every change is in the audit, in a chain that shows what was changed or removed', async () => {
  const { data: key } = await ask<NewKey>('POST', `/accounts/${await accountOf()}/keys`, { name: 'ci' })
  await ask('PATCH', `/keys/${key.id}`, { name: 'build' })
  const { data: fresh } = await ask<NewKey>('POST', `/keys/${key.id}/rotate`, {})
  await ask('DELETE', `/keys/${fresh.id}`)
  const { data } = await ask<Page<AuditView>>('GET', '/audit?limit=200')
  const actions = new Set(data.items.map(({ action }) => action))
  const changes = words(`
    account.create account.change account.credit key.create key.change key.revoke key.rotate catalog.model
    catalog.rollback credential.store credential.remove system.limits
  `)
  for (const action of changes) assert.ok(actions.has(action), action)
  assert.ok(
    data.items.every(
      ({ actor, ip, requestId }) => actor === 'operator token' && ip === '127.0.0.1' && requestId?.startsWith('req_'),
    ),
  )
  assert.equal((await ask<z.infer<typeof auditCheck>>('GET', '/audit/verify')).data.ok, true)
  for (const text of ['update audit set actor = $1', 'delete from audit where actor <> $1'])
    await assert.rejects(server.database.query({ text }, ['me']), /never changed or removed/)
  await assert.rejects(server.sql('truncate audit'), /never changed or removed/)
  // Somebody with more rights than the gateway.
  await server.database.transaction(async (tx) => {
    await tx.query({ text: 'alter table audit disable trigger audit_append_only' })
    await tx.query({
      text: `update audit set detail = '{"amount": "1"}' where id = (select id from audit where action = 'account.credit' limit 1)`,
    })
    await tx.query({ text: 'alter table audit enable trigger audit_append_only' })
  })
  assert.equal((await ask<z.infer<typeof auditCheck>>('GET', '/audit/verify')).data.ok, false)
})

test('a search over 100,000 accounts takes less than 50 ms, whatever is searched for', async () => {
  await server.sql(
    `insert into account (id, name) select 'acc_0' || i, 'Company number ' || i || ' ' || md5(i::text) from generate_series(1, 100000) i`,
  )
  await server.sql('analyze account')
  const msOf = async (q: string): Promise<number> => {
    const startedMs = performance.now()
    await ask('GET', `/accounts?q=${encodeURIComponent(q)}`)
    return performance.now() - startedMs
  }
  let [hostileMs, plainMs] = [Number.POSITIVE_INFINITY, 0]
  // On a machine that is busy with something else, nothing is fast: so it is compared with a plain word, in turns.
  for (let turn = 0; turn < 30 && hostileMs >= 50 && hostileMs >= 2 * plainMs; turn++) {
    hostileMs = Math.min(hostileMs, await msOf('%_%_%_%_%_%_%'.repeat(5)))
    plainMs = Math.min(plainMs || Number.POSITIVE_INFINITY, await msOf('zebra'))
  }
  assert.ok(hostileMs < 50 || hostileMs < 2 * plainMs, `it took ${hostileMs} ms, and a plain word ${plainMs} ms`)
})
