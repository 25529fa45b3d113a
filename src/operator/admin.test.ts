import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type * as z from 'zod'
import { atOnce, pluck } from '../../test/lists.ts'
import { asOperator, OPERATOR_TOKEN, startOperatorServer } from '../../test/operator-server.ts'
import { SMALL_CATALOG } from '../../test/small-catalog.ts'
import { started } from '../../test/started.ts'
import { until } from '../../test/until.ts'
import type { KeyView, NewKey } from '../admission/views.ts'
import type { Applied, CheckView, CurrentView, VersionView } from '../catalog/views.ts'
import type { AuditView, auditCheck } from '../database/audit.ts'
import { createSecrets } from '../kernel/secret.ts'
import type { Page } from '../kernel/view.ts'
import { idAtTime, newId, realWorld } from '../kernel/world.ts'
import type { Resolution } from '../ledger/operation.ts'
import type {
  AccountView,
  LedgerView,
  Overview,
  UsageDetail,
  UsageView,
  VerificationRun,
  VerificationState,
} from '../ledger/views.ts'
import { chargeOf } from '../meter/charge.ts'
import type { Usage } from '../meter/usage.ts'
import type { FillView, HomeFigures, KeyFigures, UsageLatency, UsageSums } from '../reports/views.ts'
import { openCredentials } from '../upstream/credentials/credentials.ts'
import type { LiveCallView, SystemView, VendorView } from './views.ts'

const server = started(startOperatorServer)
const ask = asOperator(server)

async function makeAccount(input: object = {}): Promise<string> {
  return (await ask<AccountView>('POST', '/accounts', { name: 'Some account', credits: '100', ...input })).data.id
}

const reserve = (account: string, want: bigint, key = 'key_x') =>
  server.ledger.reserve({
    ...{ id: newId(realWorld), account, key, want, floor: want, tokens: 5 },
    ...{ product: 'alpha-5.4', catalogVersion: server.catalog.current.version },
  })

/** A call from its hold to its settlement. */
async function call(account: string, usage: Usage, more: Partial<Resolution> = {}): Promise<string> {
  const id = newId(realWorld)
  const common = { id, account, key: 'key_x', product: 'alpha-5.4', catalogVersion: server.catalog.current.version }
  await server.ledger.reserve({ ...common, ...more, want: 1_000_000n, floor: 1n, tokens: 5 })
  const { amount, lines } = chargeOf(server.catalog.current.document.models['alpha-5.4']!.pricing, usage)
  await server.ledger.resolve({
    ...{ ...common, kind: 'settled', charge: amount, lines, endpoint: 'chat', status: 200, estimated: false },
    ...{ stream: true, route: 1, durationMs: 40, firstByteMs: 9 },
    ...{ inputTokens: usage.input ?? 0, outputTokens: usage.output ?? 0, ...more },
  })
  return `req_${id}`
}

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
      ...{ id, name: 'Ada & Söhne', balance: '12.5', held: '0', available: '12.5' },
      ...{ limits: { concurrency: 3 }, createdAt: '', status: 'open', statusReason: null, statusAt: null },
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
  const id = await makeAccount({ credits: '1' })
  const path = `/accounts/${id}/credits`
  const headers = { 'idempotency-key': 'invoice 17' }
  const give = (body: object) => ask<AccountView>('POST', path, body, headers)
  const together = await atOnce(8, () => give({ amount: '5', note: 'paid' }))
  for (const { status, data } of together) assert.deepEqual([status, data.balance], [200, '6'])
  assert.equal(together.filter((answer) => answer.headers.get('idempotent-replayed') === 'true').length, 7)
  await ask('POST', path, { amount: '2' })
  const again = await give({ amount: 5, note: 'paid' })
  assert.deepEqual(again.data, together[0]!.data)
  const other = await give({ amount: '6', note: 'paid' })
  assert.deepEqual([other.status, other.error?.code], [409, 30001])
  assert.equal((await ask<AccountView>('GET', `/accounts/${id}`)).data.balance, '8')
  // A key belongs to its account, and a refusal uses none up.
  const elsewhere = await makeAccount({ credits: '1' })
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
  for (const name of names) await makeAccount({ name })
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
  const id = await makeAccount()
  await call(id, { input: 1000, output: 1000 })
  const open = newId(realWorld)
  await server.ledger.reserve({
    ...{
      id: open,
      account: id,
      key: 'key_y', // Nothing is leased for its first call.
      want: 50_000n,
      floor: 50_000n,
      tokens: 5,
      product: 'alpha-5.4',
      catalogVersion: 1,
    },
  })
  // 0.01 is spent and 0.05 is held.
  assert.equal((await ask('PATCH', `/accounts/${id}`, { limits: { spendPerDay: '0.1' } })).status, 200)
  const rows = await server.database.query(
    { text: 'select scope, name, used, counter_held(c) as held from counter c where account_id = $1' },
    [id],
  )
  assert.deepEqual(rows, [{ scope: 'account', name: 'spendPerDay', used: 10_000n, held: 50_000n }])
  assert.equal((await reserve(id, 40_001n)).outcome, 'limited')
  assert.equal((await reserve(id, 40_000n)).outcome, 'held')
  assert.equal((await ask('PATCH', `/accounts/${id}`, { limits: { concurrency: 2 } })).status, 200)
  assert.equal((await reserve(id, 0n)).outcome, 'limited', 'two calls are open')
  const { amount, lines } = { amount: 0n, lines: [] }
  await server.ledger.resolve({
    ...{
      id: open,
      account: id,
      key: 'key_x',
      product: 'alpha-5.4',
      catalogVersion: 1,
      kind: 'released',
      charge: amount,
      lines,
    },
    ...{ endpoint: 'chat', status: 500, estimated: false, stream: false, route: 1, durationMs: 1, firstByteMs: 0 },
    ...{ inputTokens: 0, outputTokens: 0 },
  })
  assert.equal((await reserve(id, 0n)).outcome, 'held', 'one of them has ended')
  await ask('PATCH', `/accounts/${id}`, { limits: null })
  assert.equal((await reserve(id, 1_000_000n)).outcome, 'held')
  assert.equal((await verified()).ok, true)
})

/** A full run, to its end. */
async function verified(): Promise<VerificationRun> {
  const { data: begun } = await ask<VerificationRun>('POST', '/ledger/verify', { full: true })
  const look = async () => (await ask<VerificationState>('GET', '/ledger/verify')).data
  return (await until(look, ({ running }) => running?.id !== begun.id)).last ?? assert.fail('it has no result')
}

test('a limit of the system holds for everybody, and is gone when it is removed', async () => {
  const [one, two] = [await makeAccount(), await makeAccount()]
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
  const id = await makeAccount({ credits: '1000' })
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
  const [row] = await server.database.query<{ held: bigint; used: bigint; charged: bigint }>(
    {
      text: `select counter_held(c) as held, used, (select sum(amount)::bigint from transfer where account_id = $1 and kind = 'settled') as charged
        from counter c where account_id = $1 and name = 'spendTotal'`,
    },
    [id],
  )
  assert.equal(row?.held, 0n)
  assert.equal(row?.used, row?.charged)
  assert.deepEqual((await verified()).problems, [])
})

const authenticate = (key: string, ip = '127.0.0.1') =>
  Promise.resolve()
    .then(() => server.apiKeys.authenticate({ authorization: `Bearer ${key}`, xApiKey: undefined }, { ip }))
    .then(
      ({ keyId }) => keyId,
      (fault: { kind: string }) => fault.kind,
    )

test('a key is shown once, works at once, is restricted, and dies at once when it is revoked', async () => {
  const account = await makeAccount()
  const made = await ask<NewKey>('POST', `/accounts/${account}/keys`, {
    ...{ name: 'ci', models: ['alpha-5.4', 'siteanalytics'], ipRanges: ['10.0.0.0/8', '::1'] },
    ...{ expiresAt: '2099-01-01T00:00:00Z', limits: { spendTotal: 5 }, responseCache: false },
  })
  assert.equal(made.status, 200)
  assert.equal(made.data.responseCache, false)
  const { key, ...shown } = made.data
  assert.match(key, /^tg_live_[0-9A-Za-z]{38}$/)
  assert.deepEqual([shown.prefix, shown.last4], [key.slice(0, 12), key.slice(-4)])
  assert.equal(await authenticate(key, '10.1.2.3'), shown.id)
  assert.equal(await authenticate(key), 'access_denied')
  const list = await ask<Page<KeyView>>('GET', `/accounts/${account}/keys`)
  assert.deepEqual(list.data.items, [{ ...shown }])
  assert.ok(!list.text.includes(key))
  const changed = await ask<KeyView>('PATCH', `/keys/${shown.id}`, { ipRanges: null, models: null, name: 'build' })
  assert.deepEqual([changed.data.models, changed.status], [null, 200])
  assert.equal(await authenticate(key), shown.id)
  const revoked = await ask<KeyView>('DELETE', `/keys/${shown.id}`)
  assert.notEqual(revoked.data.revokedAt, null)
  assert.equal(await authenticate(key), 'key_unknown')
  assert.equal((await ask('PATCH', `/keys/${shown.id}`, { name: 'x' })).status, 409)
  assert.equal((await ask('DELETE', '/keys/key_none')).status, 404)
  assert.equal((await ask('POST', '/accounts/acc_none/keys', { name: 'x' })).status, 404)
})

test('an account that is made twice with one Idempotency-Key is made once, and not changed by another body', async () => {
  const body = { name: 'Once Ltd', credits: '12.5', note: 'brought along', limits: { spendPerDay: '3' } }
  const headers = { 'idempotency-key': 'customer 12' }
  const answers = await Promise.all([1, 2, 3, 4].map(() => ask<AccountView>('POST', '/accounts', body, headers)))
  const [first] = answers
  for (const { status, data } of answers) assert.deepEqual([status, data], [200, first?.data])
  assert.deepEqual([first?.data.balance, first?.data.limits], ['12.5', { spendPerDay: '3' }])
  const other = await ask('POST', '/accounts', { ...body, credits: '13' }, headers)
  assert.equal(other.status, 409)
  const found = await ask<Page<AccountView>>('GET', '/accounts?q=once%20ltd')
  assert.equal(found.data.items.length, 1)
  const { data } = await ask<Page<{ note: string; amount: string }>>('GET', `/accounts/${first?.data.id}/ledger`)
  assert.deepEqual(pluck(data.items, 'note', 'amount'), [['brought along', '12.5']])
})

test('a key of another gateway is known by its hash alone, to the account that it was given to', async () => {
  const { data: account } = await ask<AccountView>('POST', '/accounts', { name: 'Importer' })
  const { data: second } = await ask<AccountView>('POST', '/accounts', { name: 'Other importer' })
  const value = 'sk-of-another-gateway'
  const sha256 = createHash('sha256').update(value).digest('hex')
  const path = `/accounts/${account.id}/imported-keys`
  const body = { name: 'brought along', sha256, last4: 'eway', limits: { requestsPerMinute: 5 } }
  const who = async (key: string) => {
    const header = { authorization: undefined, xApiKey: key }
    return (await server.apiKeys.authenticate(header, { ip: '127.0.0.1' })).accountId
  }
  await assert.rejects(who(value), { kind: 'key_unknown' })
  const { status, data: key } = await ask<KeyView & { key?: string }>('POST', path, body)
  assert.deepEqual([status, key.prefix, key.last4, key.key], [200, 'sk-', 'eway', undefined])
  assert.equal(await who(value), account.id)
  await assert.rejects(who(sha256), { kind: 'key_unknown' })
  assert.deepEqual((await ask<KeyView>('POST', path, { ...body, name: 'again' })).data.id, key.id)
  assert.equal((await ask('POST', `/accounts/${second.id}/imported-keys`, body)).status, 409)
  for (const wrong of [{ sha256: 'ab' }, { sha256: sha256.toUpperCase() }, { last4: 'a b' }, { key: value }])
    assert.equal((await ask('POST', path, { ...body, ...wrong })).status, 400)
  await ask('DELETE', `/keys/${key.id}`)
  await assert.rejects(who(value), { kind: 'key_unknown' })
})

test('a rotated key works beside the new one for the overlap, and spends from the same limit', async () => {
  const account = await makeAccount()
  const { data: old } = await ask<NewKey>('POST', `/accounts/${account}/keys`, {
    name: 'app',
    limits: { spendTotal: '0.02' },
  })
  await call(account, { input: 1000, output: 1000 }, { key: old.id })
  const { data: fresh } = await ask<NewKey>('POST', `/keys/${old.id}/rotate`, { overlapSeconds: 60 })
  assert.equal(await authenticate(old.key), old.id)
  assert.equal(await authenticate(fresh.key), fresh.id)
  assert.equal(
    (await reserve(account, 10_001n, fresh.id)).outcome,
    'limited',
    'half of the limit was spent by the old key',
  )
  assert.equal((await reserve(account, 10_000n, fresh.id)).outcome, 'held')
  const { data: list } = await ask<Page<KeyView>>('GET', `/accounts/${account}/keys`)
  assert.deepEqual(pluck(list.items, 'id', 'replacedBy'), [
    [fresh.id, null],
    [old.id, fresh.id],
  ])
  assert.equal((await ask('POST', `/keys/${old.id}/rotate`, {})).status, 409)
  const { data: newest } = await ask<NewKey>('POST', `/keys/${fresh.id}/rotate`, { overlapSeconds: 0 })
  assert.equal(await authenticate(fresh.key), 'key_unknown')
  assert.equal(await authenticate(newest.key), newest.id)
})

test('a key that another process revokes is refused here within seconds', async () => {
  const account = await makeAccount()
  const { data } = await ask<NewKey>('POST', `/accounts/${account}/keys`, { name: 'x' })
  assert.equal(await authenticate(data.key), data.id)
  await server.database.transaction(async (tx) => {
    await tx.query({ text: 'update api_key set revoked_at = now() where id = $1' }, [data.id])
    await server.changes.bump(tx, 'keys')
  })
  const startedMs = performance.now()
  while ((await authenticate(data.key)) === data.id) {
    assert.ok(performance.now() - startedMs < 120_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
})

test('usage is paged, filtered, explained to the last digit, and downloaded', async () => {
  const id = await makeAccount()
  const { data: key } = await ask<NewKey>('POST', `/accounts/${id}/keys`, { name: '=cmd|calc, "x"' })
  const requests = []
  for (let i = 0; i < 5; i++)
    requests.push(await call(id, { input: 1001 + i, cachedInput: 7, output: 3 }, { key: key.id }))
  await call(id, {}, { kind: 'released', status: 502 })
  const first = await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?limit=4`)
  assert.equal(first.data.items.length, 4)
  const second = await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?limit=4&cursor=${first.data.next}`)
  assert.equal(second.data.items.length, 2)
  assert.equal(second.data.next, null)
  assert.deepEqual(first.data.items[1]?.units, { input: 1005, cachedInput: 7, output: 3 })
  const count = async (query: string) =>
    (await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?${query}`)).data.items.length
  assert.equal(await count('outcome=released'), 1)
  assert.equal(await count(`key=${key.id}`), 5)
  assert.equal(await count('product=alpha-5.4'), 6)
  assert.equal(await count('product=other'), 0)
  assert.equal(await count('to=2020-01-01'), 0)
  assert.equal(await count('from=2020-01-01'), 6)
  const detail = await ask<UsageDetail>('GET', `/usage/${requests[0]}`)
  assert.deepEqual(detail.data.lines, [
    { unit: 'input', quantity: 1001, rate: '4', per: 1_000_000, amount: '0.004004' },
    { unit: 'cachedInput', quantity: 7, rate: '1', per: 1_000_000, amount: '0.000007' },
    { unit: 'output', quantity: 3, rate: '16', per: 1_000_000, amount: '0.000048' },
  ])
  assert.equal(detail.data.charged, '0.004059')
  assert.equal((await ask('GET', '/usage/req_none')).status, 404)
  const csv = await ask('GET', `/accounts/${id}/usage`, undefined, { accept: 'text/csv' })
  assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8')
  const lines = csv.text.trimEnd().split('\r\n')
  assert.equal(lines.length, 7)
  assert.match(lines[0]!, /^id,at,product,/)
  const [row] = (await ask<Page<UsageView>>('GET', `/accounts/${id}/usage?limit=1`)).data.items
  assert.deepEqual(lines[0]!.split(',').sort(), Object.keys(row!).sort(), 'a column for every field of a row')
  assert.ok(lines[2]!.includes(`,"'=cmd|calc, ""x""",`), 'a name that a spreadsheet would run is marked as text')
  const ledger = await ask('GET', `/accounts/${id}/ledger`, undefined, { accept: 'text/csv' })
  assert.equal(ledger.text.trimEnd().split('\r\n').length, 7, 'what moved nothing is not in it')
  const zero = await ask<Page<LedgerView>>('GET', `/accounts/${id}/ledger?zero=true`)
  assert.deepEqual(pluck(zero.data.items, 'kind', 'moved', 'balanceAfter'), [['released', '0', null]])
  assert.equal((await ask<Page<LedgerView>>('GET', `/accounts/${id}/ledger?kind=settled`)).data.items.length, 5)
  const overview = await ask<Overview>('GET', `/accounts/${id}/overview?days=7`)
  assert.equal(overview.data.series.length, 7)
  assert.equal(overview.data.series.at(-1)?.requests, 6)
  assert.deepEqual(overview.data.statuses, { ok: 5, failed: 1 })
  assert.equal((await ask<Overview>('GET', `/accounts/${id}/overview?days=2`)).data.series.length, 48)
  assert.equal((await ask('GET', '/accounts/acc_none/overview')).status, 404)
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
      ...{ database, changes, audit, world: realWorld },
      ...{ secrets: createSecrets(root), environment: new Map() },
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
    ...{ name: 'TEXTWORKS_API_KEY', present: false, source: 'none', unreadable: true },
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
  const { data } = await ask<Page<AuditView>>('GET', '/audit?limit=200')
  const actions = new Set(data.items.map(({ action }) => action))
  for (const action of [
    'account.create',
    'account.change',
    'account.credit',
    'key.create',
    'key.change',
    'key.revoke',
    'key.rotate',
    'catalog.apply',
    'catalog.model',
    'catalog.rollback',
    'credential.store',
    'credential.remove',
    'system.limits',
  ].filter((name) => name !== 'catalog.apply'))
    assert.ok(actions.has(action), action)
  assert.ok(
    data.items.every(
      ({ actor, ip, requestId }) => actor === 'operator token' && ip === '127.0.0.1' && requestId?.startsWith('req_'),
    ),
  )
  const sound = await ask<z.infer<typeof auditCheck>>('GET', '/audit/verify')
  assert.equal(sound.data.ok, true)
  for (const text of ['update audit set actor = $1', 'delete from audit where actor <> $1'])
    await assert.rejects(server.database.query({ text }, ['me']), /never changed or removed/)
  await assert.rejects(server.database.query({ text: 'truncate audit' }), /never changed or removed/)
  // Somebody with more rights than the gateway.
  await server.database.transaction(async (tx) => {
    await tx.query({ text: 'alter table audit disable trigger audit_append_only' })
    await tx.query({
      text: `update audit set detail = '{"amount": "1"}' where id = (select id from audit where action = 'account.credit' limit 1)`,
    })
    await tx.query({ text: 'alter table audit enable trigger audit_append_only' })
  })
  const broken = await ask<z.infer<typeof auditCheck>>('GET', '/audit/verify')
  assert.equal(broken.data.ok, false)
})

test('a search over 100,000 accounts takes less than 50 ms, whatever is searched for', async () => {
  await server.database.query({
    text: `insert into account (id, name) select 'acc_0' || i, 'Company number ' || i || ' ' || md5(i::text) from generate_series(1, 100000) i`,
  })
  await server.database.query({ text: 'analyze account' })
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

test('usage sums up by product, key, status and endpoint, to what the calls were charged', async () => {
  const account = await makeAccount({ limits: { spendPerDay: '50', concurrency: 9 } })
  await call(account, { input: 1000, output: 10 })
  await call(account, { input: 2000, output: 10 }, { key: 'key_y', endpoint: 'responses' })
  await call(account, { input: 1, output: 1 }, { key: 'key_y', status: 502 })
  const rows = (await ask<Page<UsageView>>('GET', `/accounts/${account}/usage`)).data.items
  const charged = rows.reduce((sum, row) => sum + Math.round(Number(row.charged) * 1e6), 0)
  const micro = (credits: string) => Math.round(Number(credits) * 1e6)
  const groups = {
    product: ['alpha-5.4'],
    key: ['key_y', 'key_x'],
    status: ['200', '502'],
    endpoint: ['responses', 'chat'],
  }
  for (const [by, names] of Object.entries(groups)) {
    const { data } = await ask<UsageSums>('GET', `/accounts/${account}/usage/sums?by=${by}&per=day`)
    assert.deepEqual([data.totals.requests, data.totals.errors, micro(data.totals.charged)], [3, 1, charged], by)
    assert.deepEqual(data.groups.map(({ group }) => group).sort(), names.sort(), by)
    assert.equal(
      data.series.reduce((sum, row) => sum + micro(row.charged), 0),
      charged,
    )
  }
  const one = await ask<UsageSums>('GET', `/accounts/${account}/usage/sums?by=product&key=key_x`)
  assert.equal(one.data.totals.requests, 1)
  const csv = await ask('GET', `/accounts/${account}/usage/sums?by=key`, undefined, { accept: 'text/csv' })
  assert.match(
    csv.text,
    /^at,group,name,requests,errors,rejected,charged,latencyMsAvg,inputTokens,outputTokens\r\n.*,key_x,,1,0,0,/,
  )
  const latency = await ask<UsageLatency>('GET', `/accounts/${account}/usage/latency?by=endpoint`)
  assert.deepEqual(latency.data.groups.map(({ group }) => group).sort(), ['chat', 'responses'])
  assert.equal((await ask('GET', `/accounts/${account}/usage/sums?by=status&from=2020-01-01`)).status, 400)
  assert.equal((await ask('GET', `/accounts/${account}/usage/sums?by=colour`)).status, 400)

  const fills = (await ask<Page<FillView>>('GET', `/accounts/${account}/limits`)).data.items
  assert.deepEqual(fills.map(({ limit, max, used }) => [limit, max, micro(used)]).sort(), [
    ['concurrency', '9', 0],
    ['spendPerDay', '50', charged],
  ])
  const keys = (await ask<Page<KeyFigures>>('GET', `/accounts/${account}/keys/figures`)).data.items
  const loud = keys.find(({ keyId }) => keyId === 'key_y')
  assert.deepEqual([loud?.requests, loud?.errors, loud?.lastError?.status], [2, 1, 502])
  assert.equal(keys.find(({ keyId }) => keyId === 'key_x')?.lastError, null)

  const home = (await ask<HomeFigures>('GET', '/home?days=7')).data
  const all = (await ask<UsageSums>('GET', '/usage/sums?by=account&zone=Asia/Kathmandu&per=day')).data
  const top = all.groups.find(({ group }) => group === account)
  assert.deepEqual([top?.requests, micro(top?.charged ?? '0')], [3, charged])
  assert.equal(
    all.groups.reduce((sum, one) => sum + micro(one.charged), 0),
    micro(all.totals.charged),
  )
  assert.ok(home.lowBalances.every(({ daysLeft }, at, all) => at === 0 || daysLeft >= all[at - 1]!.daysLeft))
  assert.equal(all.steps.length, 31, 'days without calls are days too')
  const { daysLeft } = (await ask<Overview>('GET', `/accounts/${account}/overview?days=30`)).data
  const low = home.lowBalances.find(({ id }) => id === account)
  if (low) assert.equal(daysLeft, low.daysLeft, 'one figure, wherever it is shown')
  assert.ok(daysLeft !== null && daysLeft > 0)
})

test('what no index finds is looked for in 92 days, and a longer time is rejected; a request id is found in any', async () => {
  const account = await makeAccount()
  const recent = await call(account, { input: 1000, output: 10 })
  const before = `${idAtTime(realWorld.nowMs() - 100 * 86_400_000)}${'0'.repeat(16)}`
  await server.database.query(
    {
      text: `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, duration_ms)
        values ($1, $2, 'key_x', 'alpha-5.4', 'chat', 'settled', 200, 1, 1, 1, '[]', 5)`,
    },
    [account, before],
  )
  const list = async (query: string) => {
    const { data, status } = await ask<Page<UsageView>>('GET', query)
    assert.equal(status, 200, query)
    return data.items.map(({ id }) => id)
  }
  const own = `/accounts/${account}/usage`
  const old = `req_${before}`
  assert.deepEqual(await list(own), [recent, old])
  assert.deepEqual(await list(`${own}?from=2020-01-01&sort=duration`), [recent, old])
  const day = new Date(realWorld.nowMs() - 99 * 86_400_000).toISOString().slice(0, 10)
  const narrow = [
    'q=alpha',
    'status=200',
    'status=2xx',
    'endpoint=chat',
    'product=alpha-5.4',
    'key=key_x',
    'outcome=settled',
  ]
  for (const filter of [...narrow, 'minMs=1', 'minCharged=0.000001']) {
    assert.deepEqual(await list(`${own}?${filter}`), [recent], filter)
    assert.deepEqual(await list(`${own}?${filter}&to=2999-12-30`), [recent], filter)
    assert.deepEqual(await list(`${own}?${filter}&to=${day}`), [old], filter)
    for (const path of [own, '/usage'])
      for (const accept of ['application/json', 'text/csv']) {
        const { status, error } = await ask('GET', `${path}?${filter}&from=2020-01-01`, undefined, { accept })
        assert.deepEqual([status, error?.message.includes('at most 92 days')], [400, true], `${path} ${filter}`)
      }
  }
  assert.equal((await ask('GET', '/usage?sort=duration&from=2020-01-01')).status, 400)
  for (const path of [own, '/usage'])
    for (const range of ['', '&from=2020-01-01']) assert.deepEqual(await list(`${path}?q=${old}${range}`), [old])
})

test('sums say which range they are of, and tell keys of one name apart', async () => {
  const account = await makeAccount()
  const create = async (name: string) => (await ask<NewKey>('POST', `/accounts/${account}/keys`, { name })).data
  const made = [await create('till'), await create('till')]
  const alone = await create('alone')
  for (const { id: key } of [...made, alone]) await call(account, { input: 1000, output: 10 }, { key })
  const path = `/accounts/${account}/usage/sums?by=key&per=day&from=2026-01-01T05:00:00Z&to=2026-12-31T00:00:00Z`
  const { data } = await ask<UsageSums>('GET', path)
  assert.deepEqual([data.from, data.to], ['2026-01-01T05:00:00.000Z', '2026-12-31T00:00:00.000Z'])
  assert.deepEqual([data.steps[0], data.steps.at(-1)], ['2026-01-01T00:00:00.000Z', '2026-12-30T00:00:00.000Z'])
  const names = data.groups.map(({ name }) => name).sort()
  assert.deepEqual(names, ['alone', ...made.map(({ last4 }) => `till (…${last4})`)].sort())
})
