// An account that moves from one database to another: two real databases, a gateway on each, and a mover that dies at
// every step.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { type FreshDatabase, freshDatabase } from '../../../test/database.ts'
import { Died, dieAt } from '../../../test/dying.ts'
import { BY, SECRET, startGateway, type TestGateway } from '../../../test/gateway.ts'
import { none, words } from '../../../test/lists.ts'
import { runs } from '../../../test/runs.ts'
import { runProgram } from '../../../test/sdk/cache.ts'
import { above, until } from '../../../test/until.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import { storedCatalogs } from '../../catalog/store.ts'
import { createAudit } from '../../database/audit.ts'
import { type Database, type Queryable, withLast } from '../../database/database.ts'
import { newId, realWorld } from '../../kernel/world.ts'
import { verifyLedger } from '../verify/verify.ts'
import { cancelMove, type MoveOptions, MoveRefused, moveAccount } from './move.ts'

const MAIN = resolve(import.meta.dirname, '../../main.ts')
const BODY = { model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] }

let stores: readonly [FreshDatabase, FreshDatabase]
let here: TestGateway
let there: TestGateway
/** As a mover connects: connections of its own. */
let source: Database
let target: Database

before(async () => {
  stores = [await freshDatabase(), await freshDatabase()]
  // Their catalogs have histories of their own: the same number is another document.
  const priced = (output: string) => (document: CatalogInput) => {
    for (const tier of document.models['alpha-5.4']!.pricing.tiers) tier.output = output
  }
  here = await startGateway({ database: stores[0], catalog: priced('77') })
  there = await startGateway({ database: stores[1], catalog: priced('99') })
  source = stores[0].open({ connectionsMax: 4 })
  target = stores[1].open({ connectionsMax: 4 })
})
after(async () => {
  await Promise.all([source.close(), target.close()])
  await Promise.all([here.close(), there.close()])
  await Promise.all(stores.map((store) => store.drop()))
})

const options = (account: string, more: Partial<MoveOptions> = {}): MoveOptions => ({
  account,
  source,
  target,
  from: 'here',
  to: 'there',
  world: realWorld,
  waitMs: 120_000,
  say: () => undefined,
  ...more,
})

async function isOpen(database: Queryable, account: string): Promise<boolean> {
  const rows = await database.query(
    { text: 'select 1 from account where id = $1 and frozen_until > now() is not true' },
    [account],
  )
  return rows.length > 0
}

async function booksAddUp(): Promise<void> {
  for (const { gateway } of [here, there]) {
    const audit = createAudit({ database: gateway.database, world: realWorld })
    const { problems } = await verifyLedger(gateway.database, storedCatalogs(gateway.database), { audit })
    none(
      // The credits with which a test's account begins are given behind the audit's back.
      problems,
      (problem) => !/a grant of 1000 to account/.test(problem),
    )
  }
}

/** An account with some of everything: calls, a limit, a member, a call with an Idempotency-Key, a grant with one. */
async function lived(): Promise<{ id: string; key: string; keyId: string }> {
  const account = await here.account()
  for (let i = 0; i < 5; i++) assert.equal((await here.call('/v1/chat-completions', account.key, BODY)).status, 200)
  const once = await here.call('/v1/chat-completions', account.key, BODY, { headers: { 'idempotency-key': 'one' } })
  assert.equal(once.status, 200)
  await here.gateway.accounts.change(account.id, { limits: { requestsPerMinute: 1_000 } }, BY)
  await here.gateway.accounts.credit(account.id, { amount: 5_000_000n, note: 'more', key: 'invoice 1' }, BY)
  const person = `per_${newId(realWorld)}`
  await source.query(
    { text: `insert into person (id, email, operator_role, password) values ($1, $2, 'operator', 'x')` },
    [person, `${person}@example.com`],
  )
  await source.query({ text: `insert into membership (account_id, person_id, role) values ($1, $2, 'owner')` }, [
    account.id,
    person,
  ])
  for (const whose of [person, null]) await source.query(SIGN_IN, [account.id, whose])
  await here.sql(
    `with fired as (insert into alert (id, scope, rule, subject, level, title, message) values ($2, $1, 'failures', 'x', 'on', 't', 'm') returning id),
        told as (insert into delivery (id, account_id, kind, event, subject, shown, step_at, open, delivered_at) select $2 || state, $1, 'slack', 'alert.failures', id, '', now() + interval '1 hour', state = 'waiting', case state when 'delivered' then now() end from fired, unnest(array['delivered', 'waiting']) state),
        rule as (insert into recording_policy values ($1, 'account', 7, 1024)), body as (insert into recording (account_id, id, key_id, sealed, expires_at) values ($1, $2, 'k', '', now() + interval '1 day'))
        , billed as (insert into billing_details values ($1, '{}')), filed as (insert into invoice_file values ($1, $2, '\\x255044', '\\x00')),
        invoiced as (insert into invoice (account_id, id, number, series, year, sequence, kind, currency, gross_minor, tax_minor, customer, issued_at, document)
          values ($1, $2, $2 || '-2026-000001', $2, 2026, 1, 'month', 'EUR', 100, 0, 'c', now(),
            jsonb_build_object('number', $2 || '-2026-000001', 'grossMinor', '100', 'taxMinor', '0', 'currency', 'EUR', 'kind', 'month')))
        insert into refusal (account_id, id, key_id, product, endpoint, status, fault, message, count) values ($1, $2, 'k', '', 'chat', 402, 'credits_short', 'm', 3)`,
    [account.id, newId(realWorld)],
  )
  await here.settled()
  return account
}

/** At a tool server: of a person, or shared. */
const SIGN_IN = {
  text: `insert into tool_connection (id, account_id, person_id, server, url, issuer, sealed) values (gen_random_uuid()::text, $1, $2, 'notes', '', '', '')`,
}

/** How many rows of what only tells of an account there are. */
async function told(end: Database, account: string): Promise<unknown> {
  const [row] = await end.query(
    {
      text: `select (select count(*)::int from refusal where account_id = $1 and fault = 'credits_short') as refusals, (select count(*)::int from alert where scope = $1) as alerts,
        (select count(*)::int from delivery where account_id = $1) as deliveries,
        (select count(*)::int from recording_policy where account_id = $1) as rules, (select count(*)::int from recording where account_id = $1) as contents,
        (select count(*)::int from tool_connection where account_id = $1) as "signIns"`,
    },
    [account],
  )
  return row
}

test('an account moves with its keys, money, limits, members and history, and only the target serves it', async (t) => {
  const account = await lived()
  const before = await here.balance(account.id)
  const said: string[] = []
  const moved = await moveAccount(options(account.id, { say: (line) => said.push(line) }))
  t.diagnostic(`${said.at(-1)} ${JSON.stringify(moved.rows)}`)
  assert.match(said.at(-1) ?? '', new RegExp(`^It was closed for ${moved.closedMs} ms: `))
  assert.deepEqual(await there.balance(account.id), before)
  assert.equal((await here.balance(account.id)).posted, 0n)
  assert.equal(moved.rows.usage, 6)
  assert.equal(moved.rows.api_key, 1)
  const { invoice, invoice_file, billing_details } = moved.rows
  assert.deepEqual([invoice, invoice_file, billing_details], [1, 1, 1])
  const [file] = await target.query<{ pdf: Buffer }>({ text: 'select pdf from invoice_file where account_id = $1' }, [
    account.id,
  ])
  assert.equal(file?.pdf.toString(), '%PD')
  const rest = { refusals: 1, alerts: 1, rules: 1, contents: 0, signIns: 0 }
  assert.deepEqual(await told(target, account.id), { ...rest, deliveries: 1 })
  assert.deepEqual(await told(source, account.id), { ...rest, deliveries: 2 })

  const refused = await here.call('/v1/chat-completions', account.key, BODY)
  assert.equal(refused.status, 503)
  assert.equal(refused.headers.get('retry-after'), '5')
  assert.match(await refused.text(), /moved to another database/)
  const served = await there.call('/v1/chat-completions', account.key, BODY)
  assert.equal(served.status, 200, await served.text())
  const again = await there.call('/v1/chat-completions', account.key, BODY, { headers: { 'idempotency-key': 'one' } })
  assert.equal(again.headers.get('idempotent-replayed'), 'true')

  const [person] = await target.query<{ role: string | null }>(
    {
      text: 'select operator_role as role from person p join membership m on m.person_id = p.id where m.account_id = $1',
    },
    [account.id],
  )
  assert.equal(person?.role, null, 'an operator of the one is none of the other')
  const [tombstone] = await source.query<{ state: string; other: string }>(
    { text: 'select state, other from account_move where account_id = $1' },
    [account.id],
  )
  assert.deepEqual(tombstone, { state: 'gone', other: 'there' })
  await there.settled()
  await booksAddUp()

  const changes = here.gateway.keys.revoke(account.keyId, BY)
  await assert.rejects(changes, /moved to another database/)
  // Again: nothing happens. Back, and there again: each time the last owner has everything.
  assert.equal((await moveAccount(options(account.id))).closedMs, 0)
  await moveAccount(options(account.id, { source: target, target: source, from: 'there', to: 'here' }))
  assert.equal((await here.call('/v1/chat-completions', account.key, BODY)).status, 200)
  await here.settled()
  await moveAccount(options(account.id))
  assert.equal((await there.call('/v1/chat-completions', account.key, BODY)).status, 200)
  await there.settled()
  await booksAddUp()
})

/** What rows of an account there are besides those that move with it, and why they do not. */
const STAYS = {
  'calls that run are waited for': ['hold', 'lease', 'journal', 'quota_slice', 'account_move'],
  'people are known by their address': ['membership', 'team_member', 'invite', 'access_token'],
  'set up at each gateway': words('account_domain login_domain login_group export export_customer audit_export'),
  'not compared, or not moved': ['refusal', 'delivery', 'recording', 'tool_connection', 'account_change'],
}

/** Moves an account and says how many rows were read while it was closed. */
async function movedClosed(account: string) {
  let read: number | undefined
  const watch = (on: Queryable): Queryable['query'] =>
    (async (statement, values) => {
      const rows = await on.query<{ rows?: string }>(statement, values)
      if (statement.name === 'move_freeze') read ??= 0
      if (read !== undefined && typeof rows[0]?.rows === 'string') {
        const found: unknown[][] = rows.map((table) => JSON.parse(table.rows ?? '[]')) // Ours: arrays of rows.
        read += found.flat().length
      }
      return rows
    }) as Queryable['query'] // The rows are of whatever type the caller says.
  const watched: Database = {
    ...source,
    query: watch(source),
    transaction: (run, patience) => source.transaction((tx) => withLast({ query: watch(tx) }, run), patience),
  }
  const moved = await moveAccount(options(account, { source: watched }))
  return { rows: moved.rows, read }
}

const SUMS = ['usage_hour', 'usage_day', 'label_day']
const HISTORY = [
  `insert into usage_hour select $1, date_trunc('hour', now()) - make_interval(hours => n + 100), 'm', 'k', 1, 0, 0, 1, 1, 1 from generate_series(1, $2::int) n`,
  `insert into usage_day select $1, current_date - n / 4 - 5, 'm', 'k' || n % 4, '', 1, 0, 0, 0, 0 from generate_series(1, $2::int) n`,
  `insert into label_day select $1, current_date - n / 4 - 5, 'user', 'u' || n % 4, 'm', '', 1, 0, 0, 0, null, 1, 1, 'a', 'b', '{c}' from generate_series(1, $2::int) n`,
]

test('how long an account is closed does not grow with its history: hours and days that are over move before', async (t) => {
  const [young, old] = [await lived(), await lived()]
  const past = 4_000
  // It is a history without calls, which the verification would find.
  t.after(async () => {
    for (const end of [source, target])
      for (const table of SUMS)
        await end.query({ text: `delete from ${table} where account_id = $1 and product = 'm'` }, [old.id])
  })
  for (const text of HISTORY) await source.query({ text }, [old.id, past])
  const short = await movedClosed(young.id)
  const long = await movedClosed(old.id)
  // A call that took long may have left a row more.
  const [readYoung = 0, readOld = 0] = [short.read, long.read]
  assert.ok(readYoung > 0 && readOld < readYoung + past / 100, `${readOld} rows, not ${readYoung}, while it was closed`)
  for (const table of SUMS) assert.equal(long.rows[table]! - short.rows[table]!, past, table) // Each is counted.
  const sums = async (account: string) => {
    const text = 'select sum(calls)::int as calls from usage_day where account_id = $1'
    return (await target.query<{ calls: number }>({ text }, [account]))[0]?.calls
  }
  assert.deepEqual([await sums(young.id), await sums(old.id)], [6, past + 6], 'every call is in one sum')
})

test('every table with rows of an account moves, or is known to stay', async () => {
  const moved = await moveAccount(options((await lived()).id))
  const tables = await source.query<{ name: string }>({
    text: `select table_name as name from information_schema.columns join pg_class c on c.oid = table_name::regclass
      where column_name = 'account_id' and table_schema = current_schema() and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  })
  const known = [...Object.keys(moved.rows), ...Object.values(STAYS).flat()]
  assert.deepEqual(
    tables.map(({ name }) => name).filter((name) => !known.includes(name)),
    [],
  )
})

test('a mover that dies at any step leaves the account open at one end at most, and the next one ends its work', async (t) => {
  const account = await lived()
  const { posted } = await here.balance(account.id)
  let steps = 0
  // Each try begins anew, and there are some two hundred steps: some of them, others in every run. TOLLGATE_TEST_FULL=1
  // takes all.
  const stride = runs(9, 1)
  for (let at = randomInt(stride) + 1, done = false; !done; at += stride) {
    const dying = dieAt(at, [source, target])
    await moveAccount(options(account.id, { source: dying[0]!, target: dying[1]! })).then(
      () => {
        done = true
        steps = at
      },
      (error) => assert.ok(error instanceof Died, String(error)),
    )
    const open = [await isOpen(source, account.id), await isOpen(target, account.id)]
    assert.ok(!(open[0] && open[1]), `open at both ends after dying at step ${at}`)
  }
  t.diagnostic(`${steps} steps`)
  assert.ok(steps > 30, 'a move has many steps, or none of them was seen')
  assert.deepEqual(await there.balance(account.id), { posted, held: 0n })
  assert.equal((await there.call('/v1/chat-completions', account.key, BODY)).status, 200)
  await there.settled()
  await booksAddUp()
})

test('a command that is killed while a call runs closes the account for a minute at most, and ends when it is repeated', async () => {
  const account = await here.account()
  const hold = {
    id: newId(realWorld),
    account: account.id,
    key: account.keyId,
    product: 'alpha-5.4',
    catalogVersion: 1,
  }
  const reserved = await here.gateway.ledger.reserve({ ...hold, want: 50n, floor: 50n, tokens: 1 })
  assert.equal(reserved.outcome, 'held')
  const command = startMove(account.id)
  await until(() => isOpen(source, account.id), false)
  command.kill('SIGKILL')
  const [row] = await source.query<{ seconds: number }>(
    { text: 'select extract(epoch from frozen_until - now())::float8 as seconds from account where id = $1' },
    [account.id],
  )
  assert.ok(row!.seconds <= 60)
  assert.equal((await here.call('/v1/chat-completions', account.key, BODY)).status, 503)
  // The call that ran is settled while the account is closed.
  const repeated = run(['accounts', 'move', account.id, '--to', stores[1].url, '--json'])
  await until(
    async () => (await source.query({ text: 'select 1 from account_move where account_id = $1' }, [account.id])).length,
    above(0),
  )
  const facts = {
    endpoint: 'chat',
    status: 200,
    estimated: false,
    stream: false,
    route: 1,
    durationMs: 1,
    firstByteMs: 1,
  }
  await here.gateway.ledger.resolve({
    ...hold,
    ...facts,
    inputTokens: 1,
    outputTokens: 1,
    kind: 'settled',
    charge: 0n,
    lines: [],
  })
  const { code, out, err } = await repeated
  assert.equal(code, 0, err)
  const answer = JSON.parse(out) as { to: string; balance: string }
  assert.equal(answer.balance, '1000')
  assert.ok(!answer.to.includes('@') || !/:[^/]*@/.test(answer.to.slice(11)), 'no password in what is kept')
  assert.equal((await there.call('/v1/chat-completions', account.key, BODY)).status, 200)
})

test('what cannot be moved is refused in a sentence, and stays open', async () => {
  const account = await here.account()
  const refusal = async (move: Promise<unknown>, words: RegExp) =>
    assert.rejects(move, (error) => error instanceof MoveRefused && words.test(error.message))
  await refusal(moveAccount(options('acc_nobody')), /There is no account acc_nobody/)
  await refusal(moveAccount(options(account.id, { target: source })), /same database/)
  await target.query({ text: 'insert into account (id, name) values ($1, $1)' }, [account.id])
  await refusal(moveAccount(options(account.id)), /already, which is open/)
  await target.query({ text: 'delete from account where id = $1' }, [account.id])

  const hold = {
    id: newId(realWorld),
    account: account.id,
    key: account.keyId,
    product: 'alpha-5.4',
    catalogVersion: 1,
  }
  const job = { id: `job_${newId(realWorld)}`, input: '{}', request: '{}', answer: '{}' }
  await source.query(
    {
      text: `insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, step_at)
        values ($1, $2, $3, $4, 'video', 1, '{}', '{}', 'infinity')`,
    },
    [job.id, account.id, account.keyId, hold.id],
  )
  await refusal(moveAccount(options(account.id)), new RegExp(`jobs under way \\(${job.id}\\)`))
  await source.query({ text: 'delete from job where id = $1' }, [job.id])

  await here.gateway.ledger.reserve({ ...hold, want: 50n, floor: 50n, tokens: 1 })
  await refusal(moveAccount(options(account.id, { waitMs: 300 })), /1 calls and 0 leases/)
  assert.ok(await isOpen(source, account.id))
  await target.query(SIGN_IN, [account.id, null])
  await cancelMove(options(account.id))
  assert.equal((await target.query({ text: 'select 1 from account where id = $1' }, [account.id])).length, 0)
  await refusal(cancelMove(options(account.id)), /is not being moved/)
  const none = { endpoint: '', status: 503, estimated: false, stream: false, route: 0, durationMs: 0, firstByteMs: 0 }
  await here.gateway.ledger.resolve({
    ...hold,
    ...none,
    inputTokens: 0,
    outputTokens: 0,
    kind: 'released',
    charge: 0n,
    lines: [],
  })
  await booksAddUp()
})

const environment = () => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TOLLGATE_|NODE_)/.test(name))),
  DATABASE_URL: stores[0].url,
  TOLLGATE_SECRET: SECRET,
})

function startMove(account: string): ChildProcess {
  return spawn(process.execPath, [MAIN, 'accounts', 'move', account, '--to', stores[1].url], {
    env: environment(),
    stdio: 'inherit',
  })
}

const run = (args: string[]) => runProgram(process.execPath, [MAIN, ...args], { env: environment() })
