import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { CORRUPTIONS, type Corruption, journalRow } from '../../../test/corruptions.ts'
import { freshDatabase } from '../../../test/database.ts'
import { BETA } from '../../../test/every-price.ts'
import { runs } from '../../../test/runs.ts'
import { SMALL_CATALOG } from '../../../test/small-catalog.ts'
import { started } from '../../../test/started.ts'
import { type Accounts, createAccounts } from '../../admission/accounts.ts'
import { createKeys } from '../../admission/keys.ts'
import { type CatalogStore, openCatalog, storedCatalogs } from '../../catalog/store.ts'
import { type Audit, createAudit } from '../../database/audit.ts'
import { createChanges } from '../../database/changes.ts'
import { newId, realWorld, timeOfId } from '../../kernel/world.ts'
import { createLedger, type Ledger } from '../../ledger/ledger.ts'
import type { Reservation } from '../../ledger/operation.ts'
import { chargeOf, costOf, decidingOf } from '../../meter/charge.ts'
import { scaled } from '../../meter/price.ts'
import { inputTokensOf, outputTokensOf, type Usage } from '../../meter/usage.ts'
import { createCodes } from '../sales/codes.ts'
import { CALLS_HASH } from './tables.ts'
import { verifyLedger } from './verify.ts'

const BY = { actor: 'olive', ip: null, requestId: null }
const HOUR_MS = 3_600_000

let ledger: Ledger
let catalog: CatalogStore
let audit: Audit
let accounts: Accounts
/** What the corruptions name: `$call` and the like. */
const ids: Record<string, string> = {}

const fresh = started(freshDatabase)
const database = started(() => fresh.open())
before(async () => {
  ledger = createLedger({ database, world: realWorld, processId: 'p1', graceMs: 0, leases: false })
  audit = createAudit({ database, world: realWorld })
  const changes = createChanges(database, realWorld)
  catalog = await openCatalog({ database, changes, audit, initial: SMALL_CATALOG })
  await catalog.apply({ ...SMALL_CATALOG, models: { ...SMALL_CATALOG.models, beta: BETA }, endpoints: {} }, BY, 'fewer')
  accounts = createAccounts({ database, world: realWorld, ledger, audit, changes })
  await ledger.sweep()
  await sql(`update gateway_instance set started_at = now() - interval '1 day'`)
  await accounts.changeSystemLimits({ spendPerDay: '900000000000', spendPerMonth: '9000000000000' }, BY)
  const limits = { concurrency: 100, spendPerDay: '90000000', spendTotal: '90000000' }
  ids.account = await accounts.create({ name: 'A', credits: 100_000_000n, limits }, BY)
  ids.other = await accounts.create({ name: 'B', credits: 1_000_000n }, BY)
  ids.poor = await accounts.create({ name: 'C', credits: 7n }, BY)
  ids.buyer = await accounts.create({ name: 'D' }, BY)
  ids.saver = await accounts.create({ name: 'E', credits: 1_000n }, BY)
  await accounts.credit(ids.account, { amount: 7_000_000n, note: 'paid', key: 'payment-1' }, BY)
  await accounts.credit(ids.account, { amount: -5_000_000n, note: 'too much' }, BY)
  const keys = createKeys({
    database,
    changes,
    catalog,
    world: realWorld,
    audit,
    accounts,
    ledger,
    pepper: Buffer.alloc(32),
  })
  ids.key = (
    await keys.create(
      ids.account,
      { name: 'k', limits: { requestsPerMinute: 1000, tokensPerMinute: 10 ** 6, spendPerMonth: '80000000' } },
      BY,
    )
  ).id
  await useEverything()
})
after(() => ledger.idle())

const sql = (text: string) => database.query({ text })

interface Calling extends Partial<Reservation> {
  readonly usage?: Usage | undefined
  readonly estimated?: boolean
  readonly keep?: { status: number; contentType: string; sealed: Buffer }
  readonly attributes?: Readonly<Record<string, string>>
  readonly batch?: string
  /** From a cached response. */
  readonly kept?: boolean
}

function common(options: Partial<Reservation> = {}) {
  const { id = newId(realWorld), account = ids.account!, key = ids.key!, product = 'alpha-5.4' } = options
  return { id, account, key, product, catalogVersion: catalog.current.version }
}

/** As the path prices it. */
function pricedAs({ product = 'alpha-5.4', usage, attributes, batch, kept = false }: Calling) {
  if (!usage) return { charge: { amount: 0n, lines: [] } }
  const model = catalog.current.document.models[product]!
  const base =
    batch && 'batchFactor' in model && model.batchFactor ? scaled(model.pricing, model.batchFactor) : model.pricing
  const pricing = kept ? (model.cache?.pricing ?? base) : base
  const charge = chargeOf(pricing, usage, attributes)
  const deciding = decidingOf(pricing, attributes)
  const cost = kept
    ? { amount: 0n, basis: undefined }
    : costOf(model.routes[0]?.cost, usage, attributes, { lines: charge.lines, attributes: deciding })
  return { charge, attributes: deciding, cost: cost?.amount, costBasis: cost?.basis }
}

async function reserve(options: Partial<Reservation> = {}, by = ledger): Promise<string> {
  const { want = 1_000_000n, idempotency, job } = options
  const given = { ...(idempotency ? { idempotency } : {}), ...(job ? { job } : {}) }
  const facts = common(options)
  const { outcome } = await by.reserve({ ...facts, want, floor: want, tokens: 1, ...given })
  assert.equal(outcome, 'held')
  return facts.id
}

async function resolve(options: Calling, by = ledger) {
  const { usage, estimated = false, want = 1_000_000n, keep, batch, kept = false } = options
  const { charge, ...priced } = pricedAs(options)
  return by.resolve({
    ...common(options),
    ...priced,
    kind: usage ? 'settled' : 'released',
    lines: charge.lines,
    status: usage ? 200 : 502,
    endpoint: batch ? 'batch:chat' : 'chat',
    client: batch,
    charge: estimated && charge.amount > want ? want : charge.amount,
    estimated,
    stream: false,
    route: kept ? 0 : 1,
    durationMs: 12,
    firstByteMs: kept ? 0 : 3,
    inputTokens: inputTokensOf(usage ?? {}),
    outputTokens: outputTokensOf(usage ?? {}),
    ...(keep ? { idempotent: true, replay: keep } : {}),
  })
}

async function call(options: Calling = {}): Promise<string> {
  const id = await reserve(options)
  await resolve({ ...options, id })
  return id
}

async function job(name: string, verdict: 'COMPLETED' | 'FAILED' | undefined): Promise<string> {
  const id = await reserve({ job: { id: name, input: '{}', request: '{}', answer: '{}' } })
  if (!verdict) return id
  await sql(`update job set verdict = '${verdict}', route = 1 where id = '${name}'`)
  await resolve({ id, usage: verdict === 'COMPLETED' ? { output: 70 } : undefined })
  await sql(`update job set status = verdict, completed_at = now(), open = false where id = '${name}'`)
  return id
}

/** Every kind of row that there is. */
async function useEverything(): Promise<void> {
  await sql(`insert into budget (account_id, id, name, scope, unit, span, max, hard, created_at)
    select '${ids.account}', x.id, '', 'key', x.unit, x.span, 1000000000, true, now() - interval '2 minutes'
    from (values ('bgt_1', 'credits', 'month'), ('bgt_2', 'requests', 'total')) as x(id, unit, span)`)
  await sql(`update account set budgets = 1 where id = '${ids.account}'`)
  await database.transaction((tx) =>
    audit.write(tx, BY, {
      action: 'budget.create',
      object: 'bgt_1',
      before: {},
      after: {},
      rows: ['bgt_1', 'bgt_2'].map((id) => ['budget', ids.account!, id] as const),
    }),
  )
  await redeem()
  ids.call = await call({ usage: { input: 100, output: 50 } })
  await call({ usage: { input: 1200, cachedInput: 400, output: 70 } })
  ids.estimated = await call({ usage: { input: 900_000, output: 70_000 }, estimated: true })
  ids.free = await call({ usage: {} })
  ids.released = await call()
  ids.strange = await call({ account: ids.other!, key: 'key_2', want: 1_000n, usage: { input: 1 } })
  ids.open = await reserve()
  ids.running = await reserve({ idempotency: { key: 'running', requestHash: 'h' } })
  const keep = { status: 200, contentType: 'text/plain', sealed: Buffer.from('ok') }
  ids.answered = await reserve({ idempotency: { key: 'answered', requestHash: 'h' } })
  await resolve({ id: ids.answered, usage: { input: 5 }, keep })
  ids.filming = await job('job_open', undefined)
  ids.filmed = await job('job_done', 'COMPLETED')
  ids.unfilmed = await job('job_failed', 'FAILED')
  await useBeta()
  await buy()
  await useLots()
  const dead = createLedger({ database, world: realWorld, processId: 'dead', leases: false })
  ids.expired = await reserve({ want: 7n }, dead)
  const forgotten = await reserve({ want: 7n }, dead)
  ids.forgotten = forgotten
  // What nobody has is the platform's loss.
  const poor = { account: ids.poor!, key: 'key_3', want: 7n }
  const lost = await reserve(poor, dead)
  ids.lost = `${lost}+late`
  const estimate = await reserve({ want: 7n }, dead)
  await ledger.sweep()
  await accounts.credit(ids.poor!, { amount: -7n, note: 'all of it' }, BY)
  assert.equal((await resolve({ ...poor, id: lost, usage: { input: 3 } }, dead)).loss, 6n)
  assert.equal((await resolve({ id: ids.expired, usage: { input: 10, output: 1 } }, dead)).outcome, 'late')
  // An estimate is cut to what was held, also when that hold has expired in the meantime.
  const late = await resolve({ id: estimate, usage: { input: 1_000, output: 100 }, want: 7n, estimated: true }, dead)
  assert.equal(late.outcome, 'late')
  await dead.idle()
  await sql(
    `insert into lease (account_id, id, key_id, process_id, amount) values ('${ids.other}', 'lease_1', 'key_2', 'p1', 500)`,
  )
  // It has some of a budget.
  await sql(
    `insert into lease (account_id, id, key_id, process_id, amount, scopes, slices) values ('${ids.account}', 'lease_2', '${ids.key}', 'p1', 0, '["bgt_2=${ids.key}"]', '{"1": [5, 0]}')`,
  )
  await sql(`update counter set used = used + 5 where scope = 'bgt_2=${ids.key}'`)
  await sql(`insert into margin_hour select date_trunc('hour', now(), 'UTC') - interval '4 hours', product, route, count(*), sum(charged),
    coalesce(sum(charged) filter (where cost is not null), 0), coalesce(sum(cost), 0) from usage where outcome = 'settled' group by product, route`)
  await sql(`insert into batch (account_id, id, key_id, endpoint, input_file_id, completion_window, output_seconds, status, total, completed, failed, expires_at, ended_at, open, calls_hash)
    values ('${ids.account}', 'batch_1', '${ids.key}', '/v1/chat/completions', 'file_1', '24h', 60, 'completed', 3, 2, 1, now(), now(), false,
      (select ${CALLS_HASH('id')} from unnest(array['${ids.batched}', '${ids.batchedToo}']) id))`)
  await sql(`insert into background (account_id, id, key_id, product, request, status, answer, call_id, ended_at, open)
    values ('${ids.account}', 'resp_1', '${ids.key}', 'beta', '{}', 'completed', '{}', '${ids.background}', now(), false)`)
  // As if they had counted since they were made.
  await sql(`update counter set since = since - interval '2 minutes' where name = 'budget'`)
  ids.waiting = newId(realWorld)
  await sql(journalRow(ids.waiting, ids.strange))
  await sql(`update account set held = held + 500 where id = '${ids.other}'`)
}

/** A code that two accounts may use, of which one has, and a plan that its month's credits came with. */
async function redeem(): Promise<void> {
  const attempts = { brake: async () => {} }
  const codes = createCodes({ database, world: realWorld, ledger, audit, attempts })
  const { id, list } = await codes.create({ name: 'fair', credits: 900n, codes: 2, usesMax: 2, creditDays: 9 }, BY)
  ids.codes = id
  ids.redeemer = await accounts.create({ name: 'F' }, BY)
  await codes.redeem(ids.redeemer, list[0]!, BY)
  await sql(
    `insert into account_plan (account_id, plan_id, anchor, period, period_end) values ('${ids.other}', 'pro', now(), 1, now() + interval '1 month')`,
  )
  const rows = [['account_plan', ids.other!] as const, ['account', ids.other!] as const]
  await database.transaction((tx) =>
    audit.write(tx, BY, { action: 'plan.start', object: ids.other!, before: {}, after: {}, rows }),
  )
}

/**
 * A payment of which a quarter went back, when half of that had been spent and calls held the half of the rest, of
 * which one was released.
 */
async function buy(): Promise<void> {
  const stripe = { ...BY, actor: 'stripe' }
  await sql(`insert into invoice_counter (series, year, last) values ('INV', 2026, 2)`)
  await sql(`insert into invoice (account_id, id, number, series, year, sequence, kind, payment_id, corrects, currency, gross_minor, tax_minor, customer, issued_at, document)
    select '${ids.buyer}', 'inv_' || n, 'INV-2026-00000' || n, 'INV', 2026, n, kind, 'pay_1', corrects, 'EUR', gross, tax, 'x', now(),
      jsonb_build_object('number', 'INV-2026-00000' || n, 'grossMinor', gross::text, 'taxMinor', tax::text, 'currency', 'EUR', 'kind', kind)
    from (values (1, 'payment', null, 400, 64), (2, 'credit_note', 'inv_1', 100, 16)) x (n, kind, corrects, gross, tax)`)
  const bought = { account: ids.buyer!, note: 'pay_1', actor: 'stripe' }
  await database.transaction(async (tx) => {
    const made = await ledger.grant({ ...bought, amount: 8_000n, kind: 'purchase' }, tx)
    ids.bought = made!.id
    await tx.query(
      {
        text: `insert into payment (account_id, id, provider, provider_id, kind, currency, price_minor, amount_minor, credits, state, transfer_id, refunded_minor, taken, lost)
      values ($1, 'pay_1', 'stripe', 'pi_1', 'amount', 'EUR', 400, 400, 8000, 'paid', $2, 100, 500, 1500)`,
      },
      [ids.buyer!, ids.bought],
    )
    const paid = { payment: 'pay_1', providerId: 'pi_1', currency: 'EUR', paid: '400', invoice: 'INV-2026-000001' }
    const detail = { ...paid, amount: '0.008', transfer: ids.bought }
    await audit.write(tx, stripe, { action: 'payment.paid', object: ids.buyer!, detail })
  })
  await accounts.credit(ids.buyer!, { amount: -7_000n, note: 'spent' }, BY)
  const buyer = { account: ids.buyer!, key: 'key_5' }
  ids.claimed = await reserve({ ...buyer, want: 400n })
  const released = await reserve({ ...buyer, want: 100n })
  await database.transaction(async (tx) => {
    const from = { from: ids.bought, payment: 'pay_1' }
    const back = await ledger.grant({ ...bought, ...from, amount: -2_000n, kind: 'refund' }, tx)
    const detail = { payment: 'pay_1', amount: '-0.0005', transfer: back!.id }
    await audit.write(tx, stripe, {
      action: 'payment.back',
      object: ids.buyer!,
      detail,
      rows: [
        ['payment', 'pay_1'],
        ['invoice', ids.buyer!, 'inv_1'],
        ['invoice', ids.buyer!, 'inv_2'],
      ],
    })
  })
  await resolve({ ...buyer, id: released })
}

/** Credits that end, and credits for some products. */
async function useLots(): Promise<void> {
  const give = (amount: bigint, lot: Parameters<Accounts['credit']>[1]['lot']) =>
    accounts.credit(ids.saver!, { amount, note: 'welcome', lot }, BY)
  const endsAt = new Date(Date.now() + HOUR_MS)
  await give(500n, { endsAt })
  await give(300n, { products: ['alpha*'], endsAt: new Date(Date.now() + 2 * HOUR_MS) })
  await give(200n, { products: ['beta'] })
  const saver = { account: ids.saver!, key: 'key_4' }
  ids.spent = await call({ ...saver, want: 700n, usage: { input: 100 } })
  await sql(`update lot set ends_at = now() - interval '1 minute' where account_id = '${ids.saver}' and amount = 500`)
  const [ended] = await database.query<{ id: string }>({ text: 'select id from lot where amount = 500' })
  await database.transaction((tx) =>
    audit.write(tx, BY, { action: 'code.redeem', object: ids.saver!, rows: [['lot', ids.saver!, ended!.id]] }),
  )
  ids.saved = await reserve({ ...saver, want: 100n })
}

/** Calls whose price or cost is not only that of their tokens. */
async function useBeta(): Promise<void> {
  const usage = { input: 200, output: 100 }
  ids.beta = await call({ product: 'beta', usage })
  const extras = { usage: { ...usage, codeRun: 2 }, attributes: { effort: 'high', service_tier: 'priority' } }
  ids.dear = await call({ product: 'beta', ...extras })
  ids.kept = await call({ product: 'beta', usage, kept: true })
  ids.batched = await call({ product: 'beta', usage, batch: 'batch_1' })
  ids.batchedToo = await call({ product: 'beta', usage, batch: 'batch_1' })
  await call({ product: 'beta', batch: 'batch_1' })
  ids.background = await call({ product: 'beta', usage })
}

const verify = (options: Parameters<typeof verifyLedger>[2] = {}) =>
  verifyLedger(database, storedCatalogs(database), { audit, ...options })

async function problems(options: Parameters<typeof verifyLedger>[2] = {}): Promise<string[]> {
  const result = await verify(options)
  assert.equal(result.ok, result.problems.length === 0)
  return result.problems
}

test('a ledger in use verifies: grants, settlements of every tier, estimates, releases, expiries, jobs, keys, what is open', async () => {
  const { ok, checked, problems: found } = await verify()
  assert.deepEqual(found, [])
  assert.deepEqual(
    { ok, checked },
    { ok: true, checked: { accounts: 6, transfers: 41, holds: 7, usage: 25, charges: 17, jobs: 3 } },
  )
})

const TABLES =
  `account hold lease lot journal transfer usage usage_hour counter quota_slice setting idempotency job api_key batch background margin_hour
  catalog_version audit credit_idempotency gateway_instance payment claim invoice invoice_counter budget code_batch code code_use account_plan`.split(
    /\s+/,
  )

/** Copies what is there; the answer puts back those tables that a statement names. */
async function keepTables(): Promise<(what: string) => Promise<void>> {
  const columns = new Map<string, string>()
  for (const table of TABLES) {
    const rows = await database.query<{ names: string }>(
      {
        text: `select string_agg(attname, ', ' order by attnum) as names from pg_attribute
        where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = ''`,
      },
      [table],
    )
    columns.set(table, rows[0]!.names)
    await sql(`drop table if exists kept_${table}`)
    await sql(`create table kept_${table} as select * from ${table}`)
  }
  return async (what) => {
    const back = TABLES.filter((table) => new RegExp(`\\b${table}\\b`).test(what)).map((table) => {
      const names = columns.get(table)!
      return `delete from ${table}; insert into ${table} (${names}) select ${names} from kept_${table}`
    })
    await untouched(back.join('; '))
  }
}

/** Without the triggers that keep the program from it. */
const untouched = (text: string) =>
  database.transaction((tx) => tx.query({ text: `set local session_replication_role = replica; ${text}` }))

const named = (text: string) => text.replaceAll(/\$(\w+)/g, (_, name: string) => ids[name] ?? assert.fail(name))
const tableOf = (what: string) => /^(?:update|delete from|insert into) (\w+)/.exec(what)?.[1]

/**
 * So many are planted at once, of tables far from each other; what is not said of them then, alone. The long tests
 * plant each alone.
 */
const TOGETHER = runs(5, 1)

function groupsOf(all: readonly Corruption[], size: number): Corruption[][] {
  const length = Math.ceil(all.length / size)
  return Array.from({ length }, (_, at) => all.filter((_, index) => index % length === at))
}

const expectedOf = (said: RegExp) =>
  new RegExp(said.source.replaceAll(/\\\$(\w+)/g, (_, name: string) => ids[name]!.replace('+', '\\+')))

test(`each of ${CORRUPTIONS.length} corruptions is named, and when it is undone the verification is content`, async () => {
  const undo = await keepTables()
  const [first] = await database.query<{ now: Date }>({ text: 'select now() as now' })
  const { ok, auditId } = await verify()
  assert.ok(ok)
  const nightly = { whole: false, earlier: { startedAt: first!.now, auditId } }
  /** Those of which nothing is said, with what is said instead. */
  const plant = async (some: readonly Corruption[]): Promise<Array<[Corruption, found: string]>> => {
    const isFull = some.some(([, , run]) => run === 'full')
    try {
      await untouched(some.map(([what]) => named(what)).join('; '))
    } catch (error) {
      // One of them may be in another's way.
      if (some.length === 1) throw error
      return some.map((one) => [one, ''])
    }
    const found = (await problems(isFull ? {} : nightly)).join('\n')
    await undo(some.map(([what]) => what).join('; '))
    return some.filter(([, said]) => !expectedOf(said).test(found)).map((one) => [one, found])
  }
  const [full, young] = [true, false].map((isFull) => CORRUPTIONS.filter(([, , run]) => (run === 'full') === isFull))
  const groups = [...groupsOf(young!, TOGETHER), ...groupsOf(full!, TOGETHER)] // As many as there were kinds.
  const missed: string[] = []
  const checked = new Set<string | undefined>()
  for (const group of groups) {
    const unsaid = await plant(group)
    for (const [one, seen] of unsaid) {
      const [again] = group.length === 1 ? [[one, seen] as const] : await plant([one])
      if (again) missed.push(`${one[0]}\n  expected ${expectedOf(one[1])}\n  found ${again[1] || 'nothing'}`)
    }
    // What is put back is the same each time: once a table will do.
    const tables = group.map(([what]) => tableOf(what))
    if (tables.every((table) => checked.has(table))) continue
    for (const table of tables) checked.add(table)
    assert.deepEqual(await problems(nightly), [], `after ${group.map(([what]) => what)}`)
  }
  assert.deepEqual(await problems(nightly), [])
  assert.deepEqual(missed, [])
  await sql('delete from journal') // The next sweep would post it.
})

/** An account of its own, with calls of some hours ago. */
async function oldAccount(): Promise<string> {
  const account = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [account])
  await database.query({ text: `select ledger_grant($1, $2, 50000000, '', 'test')` }, [idOf(12), account])
  await age(account, 12)
  return account
}

const idOf = (hoursAgo: number) => newId({ ...realWorld, nowMs: () => realWorld.nowMs() - hoursAgo * HOUR_MS })

/** What was written of an account by now was written so much earlier. */
async function age(account: string, hours: number): Promise<void> {
  const back = `interval '${hours} hours'`
  const young = `account_id = '${account}' and at > now() - interval '30 minutes'`
  await sql(`update transfer set at = at - ${back} where ${young}; update usage set at = at - ${back} where ${young};
    update usage_hour set hour = hour - ${back} where account_id = '${account}' and hour > now() - interval '90 minutes';
    update counter set used = 0, since = '-infinity' where account_id = ''`)
}

const markOf = async (account: string) =>
  (
    await database.query<{ until: Date; oldest: string; posted: bigint; settled: bigint }>(
      { text: 'select until, oldest, posted, settled from verified where account_id = $1' },
      [account],
    )
  )[0]

/** Without the audit: these grants are not in it. */
const nightly = async () => {
  const { problems: found, checked } = await verifyLedger(database, storedCatalogs(database), { whole: false })
  return { found, transfers: checked.transfers }
}

test('what was checked is not read again, but by a full run, and an account with a problem is read until it has none', async () => {
  const account = await oldAccount()
  const id = idOf(5)
  await call({ id, account, key: 'key_old', usage: { input: 100, output: 50 } })
  await age(account, 5)
  assert.deepEqual((await nightly()).found, [])
  const mark = await markOf(account)
  assert.deepEqual([mark?.posted, mark?.settled], [49_999_400n, 600n])
  assert.ok(mark!.until.getTime() > timeOfId(id) + HOUR_MS && mark!.oldest > id)
  const before = (await nightly()).transfers
  await call({ account, key: 'key_old', usage: { input: 1 } })
  assert.equal((await nightly()).transfers, before + 1, 'only the new one')

  const change = (by: string) =>
    sql(`update usage set lines = '[["input", ${by}, "2000000"], ["output", 50, "8000000"]]' where id = '${id}'`)
  await change('99')
  assert.deepEqual((await nightly()).found, [], 'it was checked before')
  const full = await verifyLedger(database, storedCatalogs(database))
  assert.match(full.problems.join(), /its arithmetic gives/)
  assert.match((await nightly()).found.join(), /its arithmetic gives/, 'as long as it is wrong')
  await change('100')
  assert.deepEqual((await nightly()).found, [])
  assert.deepEqual((await nightly()).transfers, before + 1)
})

test('a row that is older than what was checked, and written later, is checked all the same', async () => {
  const account = await oldAccount()
  const dead = createLedger({ database, world: realWorld, processId: 'dead', leases: false })
  const facts = { account, key: 'key_old' }
  const expired = idOf(5)
  const long = idOf(6)
  await reserve({ ...facts, id: expired }, dead)
  await ledger.sweep()
  await reserve({ ...facts, id: long })
  await age(account, 5)
  assert.deepEqual((await nightly()).found, [])
  const mark = await markOf(account)
  assert.equal(mark!.oldest, long, 'what is held may come at any time')
  // A call that took long, a settlement after the hold had expired, and a release of what never was held.
  await resolve({ ...facts, id: long, usage: { input: 10 } })
  assert.equal((await resolve({ ...facts, id: expired, usage: { input: 20 } }, dead)).outcome, 'late')
  await dead.idle()
  const ghost = idOf(100)
  await resolve({ ...facts, id: ghost })
  assert.deepEqual((await nightly()).found, [])
  for (const id of [long, `${expired}+late`, ghost]) {
    const undo = await keepTables()
    const what = `update usage set catalog_version = 77 where id = '${id}'`
    await sql(what)
    assert.match((await nightly()).found.join(), new RegExp(`${id.replace('+', '.')}: there is no catalog version 77`))
    await undo(what)
    assert.deepEqual((await nightly()).found, [])
  }
})

test('a large account is read in pieces, and a run that was cut off goes on from the last', async () => {
  const account = await oldAccount()
  for (let hours = 10; hours > 2; hours--) {
    await call({ id: idOf(hours), account, key: 'key_old', usage: { input: hours } })
    await call({ id: idOf(hours), account, key: 'key_old' })
    await age(account, hours)
  }
  const catalogs = storedCatalogs(database)
  const options = { whole: false, pieceRows: 3 }
  await nightly()
  await sql(`delete from verified where account_id = '${account}'`)
  const rest = (await nightly()).transfers - 17
  await sql(`delete from verified where account_id = '${account}'`)
  const cut = new Error('cut off')
  const onProgress = async () => {
    const mark = await markOf(account)
    if (mark && mark.settled > 0n) throw cut
  }
  await assert.rejects(verifyLedger(database, catalogs, { ...options, onProgress }), cut)
  const mark = await markOf(account)
  assert.ok(mark!.posted < 50_000_000n && mark!.until.getTime() < realWorld.nowMs() - 3 * HOUR_MS, 'a part of it')
  const { ok, checked } = await verifyLedger(database, catalogs, options)
  assert.ok(ok && checked.transfers - rest < 17, `${checked.transfers - rest} of 17 were read again`)
  const whole = await verifyLedger(database, catalogs, { pieceRows: 2 })
  assert.deepEqual(whole.problems, [])
})

test('usage that was trimmed by age is not missed', async () => {
  const account = await oldAccount()
  const id = idOf(5)
  await call({ id, account, key: 'key_old', usage: { input: 100 } })
  await age(account, 5)
  await sql(`delete from usage where id = '${id}'`)
  await sql(
    `delete from usage_hour where account_id = '${account}'; update counter set used = 0, since = '-infinity' where account_id = ''`,
  )
  const nextHourMs = Math.ceil((timeOfId(id) + 1) / HOUR_MS) * HOUR_MS
  const catalogs = storedCatalogs(database)
  assert.deepEqual((await verifyLedger(database, catalogs, { usageSinceMs: nextHourMs })).problems, [])
  assert.match((await verifyLedger(database, catalogs)).problems.join(), /has no usage row/)
})

test('margins may be short by what a killed process loses, and not by half of many calls', async () => {
  const account = await oldAccount()
  for (let i = 0; i < 4; i++)
    await call({ id: idOf(5), account, key: 'key_old', product: 'beta', usage: { input: 100, output: 10 } })
  await age(account, 5)
  const undo = await keepTables()
  const said = async (marginCallsMin: number) =>
    (await problems({ marginCallsMin })).filter((problem) => problem.startsWith('The margins of beta'))
  await sql(`delete from margin_hour; insert into margin_hour select date_trunc('hour', at, 'UTC'), product, route, count(*), sum(charged), sum(charged), sum(cost)
    from usage where account_id = '${account}' group by 1, 2, 3`)
  assert.deepEqual(await said(4), [])
  const lost = 'set calls = calls / 2, charged = charged / 2, costed = costed / 2, cost = cost / 2'
  await sql(`update margin_hour ${lost}`)
  assert.deepEqual(await said(4), [])
  await sql(`update margin_hour set cost = cost - 1`)
  assert.match(
    (await said(4)).join(),
    /^The margins of beta by route 1 sum to \d+ \(cost\), but its usage rows give \d+, of which/,
  )
  await sql(`delete from margin_hour`)
  assert.equal((await said(4)).length, 4)
  assert.deepEqual(await said(5), [])
  await undo('margin_hour')
})
