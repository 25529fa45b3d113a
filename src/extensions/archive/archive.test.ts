import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { SECRET } from '../../../test/gateway.ts'
import { atOnce } from '../../../test/lists.ts'
import { callOnce, setBack } from '../../../test/past-calls.ts'
import { SMALL_CATALOG } from '../../../test/small-catalog.ts'
import { started } from '../../../test/started.ts'
import { type CatalogStore, openCatalog, storedCatalogs } from '../../catalog/store.ts'
import { readConfig } from '../../config.ts'
import { createAudit } from '../../database/audit.ts'
import { createChanges } from '../../database/changes.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart } from '../../kernel/calendar.ts'
import { silentLog } from '../../kernel/log.ts'
import { realWorld, type World } from '../../kernel/world.ts'
import { createLedger, type Ledger } from '../../ledger/ledger.ts'
import { maintainUsage } from '../../ledger/retention.ts'
import { sumUsage } from '../../ledger/usage-sums.ts'
import { createBilling } from '../../reports/billing.ts'
import { readBackup, writeBackup } from '../backup/backup.ts'
import { backup, restore } from '../backup/commands.ts'
import { createMonthlyStatements } from '../finance/statements/monthly.ts'
import { verifyLedger } from '../verify/verify.ts'
import type { ArchiveStore } from './archive.ts'
import { openLedgerArchive } from './check.ts'
import { createDiskArchive } from './store.ts'

// A year in which three customers call every month, on a clock that only looks forward: what was written is set back to
// the month that is simulated.

const MONTHS = 12
const CALLS = 40
const STAY = 2
const HOUR_MS = 3_600_000
const KEY = Buffer.alloc(32, 7)
const ACCOUNTS = ['acc_plain', 'acc_lots', 'acc_idle'] as const

const fresh = started(freshDatabase)
const database = started(() => fresh.open({ connectionsMax: 3 }))
const sql = <T extends object>(text: string) => database.query<T>({ text })

let directory: string
let catalog: CatalogStore
let ledger: Ledger
let nowMs = 0
/** How many processes stopped in the middle of a month. */
let fallen = 0
const world: World = { ...realWorld, nowMs: () => nowMs }
/** The rows and bytes of transfers at the end of each month. */
const sizes: Array<{ rows: number; bytes: number }> = []
const statements: string[] = []

/**
 * A process that stops in the middle of its files, the one or the other, and wakes much later as if nothing had
 * happened.
 */
function asleep(where: string, file: number) {
  const store = createDiskArchive({ world, directory: where })
  const [fell, wake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let files = 0
  const archive = archiveIn(where, {
    ...store,
    async put(name, bytes) {
      files += 1
      if (files === file) {
        fell.resolve()
        fallen += 1
        await wake.promise
      }
      await store.put(name, bytes)
    },
  })
  return { archive, fell: fell.promise, wake: wake.resolve }
}

const archiveIn = (
  where: string,
  store: ArchiveStore = createDiskArchive({ world, directory: where }),
  months = STAY,
) =>
  openLedgerArchive(
    {
      world,
      log: silentLog,
      config: { TOLLGATE_RETENTION_LEDGER_MONTHS: months, TOLLGATE_RETENTION_USAGE_MONTHS: months },
    },
    { database, store, key: KEY },
  )
const usageSinceMs = () => monthStart(dayOfMs(nowMs), 1 - STAY) * DAY_MS
const verify = async (options: Parameters<typeof verifyLedger>[2] = {}) => {
  const since = { key: KEY, usageSinceMs: usageSinceMs() }
  return (await verifyLedger(database, storedCatalogs(database), { ...since, ...options })).problems
}
const monthDay = (ago: number) => monthStart(dayOfMs(realWorld.nowMs()), -ago)

async function statementOf(account: string, month: number): Promise<string> {
  const audit = createAudit({ database, world })
  const monthly = createMonthlyStatements({ database, world, billing: createBilling({ database, audit, world }) })
  const { final, worth, contact, ...read } = (await monthly.read(account, month)) ?? assert.fail()
  return JSON.stringify(read)
}

async function simulate(ago: number): Promise<void> {
  const first = monthDay(ago)
  nowMs = first * DAY_MS + 9 * DAY_MS
  await maintainUsage(database, world, { usageMonths: STAY, tries: 5 })
  const given = { amount: 5_000_000n, note: 'for the month', actor: 'olive' }
  await ledger.grant({ ...given, account: 'acc_plain' })
  const lot = { source: 'plan', products: ['alpha-5.4'] } as const
  await ledger.grant({ ...given, account: 'acc_lots', kind: 'plan', lot })
  if (ago === MONTHS) await ledger.grant({ ...given, account: 'acc_idle' })
  for (const account of ago === MONTHS ? ACCOUNTS : ACCOUNTS.slice(0, 2))
    await atOnce(CALLS, () => callOnce({ ledger, catalog, world }, account))
  await ledger.idle()
  await setBack(database, Math.floor((realWorld.nowMs() - nowMs) / HOUR_MS))
  await sumUsage(database)
  statements.push(await statementOf('acc_lots', first))
  nowMs = monthStart(first, 1) * DAY_MS + 4 * DAY_MS
  await maintainUsage(database, world, { usageMonths: STAY, tries: 5 })
  await sql('vacuum transfer')
  const sleeper = asleep(directory, 1 + (ago % 2))
  const slept = sleeper.archive.run()
  await Promise.race([sleeper.fell, slept])
  await sql(`update ledger_archive set seen_at = seen_at - interval '2 minutes' where archived_at is null`)
  const archive = archiveIn(directory)
  await archive.run()
  await archive.stop()
  sleeper.wake()
  await slept
  const [size] = await sql<{ rows: bigint; bytes: bigint }>(
    `select (select count(*) from transfer) as rows, sum(pg_total_relation_size(relid))::bigint as bytes from pg_partition_tree('transfer')`,
  )
  sizes.push({ rows: Number(size!.rows), bytes: Number(size!.bytes) })
  assert.deepEqual(await verify(), [], formatDay(first))
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-archive-'))
  nowMs = monthDay(MONTHS) * DAY_MS
  const changes = createChanges(database, world)
  const audit = createAudit({ database, world: realWorld })
  catalog = await openCatalog({ database, changes, audit, initial: SMALL_CATALOG })
  ledger = createLedger({ database, world, processId: 'p1', graceMs: 0, leases: false })
  await ledger.sweep()
  for (const id of ACCOUNTS) await sql(`insert into account (id, name) values ('${id}', '${id}')`)
})
after(async () => {
  await ledger.idle()
  await rm(directory, { recursive: true, force: true })
})

test('no month is archived that was not verified after its end', async () => {
  await simulate(MONTHS)
  await simulate(MONTHS - 1)
  await simulate(MONTHS - 2)
  const archive = archiveIn(directory)
  const { waitsFor, due, months } = await archive.state()
  assert.deepEqual([due, months], [[formatDay(monthDay(MONTHS)).slice(0, 7)], []])
  assert.match(waitsFor ?? '', /not been verified/)
  await sql(`insert into verification (id, whole, ended_at, problems) values ('1', true, now(), '["One."]')`)
  assert.match((await archive.state()).waitsFor ?? '', /found problems/)
  await archive.run()
  assert.deepEqual((await archive.state()).months, [])
})

test('a year of months closes, each after a process that stopped in the middle, and the ledger stops growing and still adds up', async (t) => {
  await sql(`insert into verification (id, whole, ended_at) values ('2', true, now())`)
  for (let ago = MONTHS - 3; ago > 0; ago--) await simulate(ago)
  t.diagnostic(sizes.map(({ rows, bytes }) => `${rows} rows, ${bytes} bytes`).join('; '))
  const [third, last] = [sizes[3]!, sizes.at(-1)!]
  // Two grants a month stay.
  assert.equal(last.rows - third.rows, 2 * (sizes.length - 4))
  assert.ok(last.bytes < third.bytes * 1.1, `${third.bytes} to ${last.bytes} bytes`)
  const { months } = await archiveIn(directory).state()
  assert.deepEqual(
    [months.length, months.filter(({ archivedAt }) => archivedAt).length],
    [MONTHS - STAY, MONTHS - STAY],
  )
  assert.equal(months.at(-1)?.transfers, 3 * CALLS + 3)
  // Two months were due for the first one.
  assert.equal(fallen, MONTHS - STAY - 1)
})

test('statements of archived months say what they said before', async () => {
  for (const [at, said] of statements.entries())
    assert.equal(await statementOf('acc_lots', monthDay(MONTHS - at)), said)
})

test('a backup of a ledger with an archive is restored with its checkpoints, and adds up', async () => {
  const other = await freshDatabase()
  const restored = other.open({ connectionsMax: 2 })
  const bytes = new PassThrough()
  const [written] = await Promise.all([
    writeBackup([{ name: 'control', database: database }], bytes),
    readBackup([{ name: 'control', database: restored }], bytes),
  ])
  assert.ok((written.rows.ledger_checkpoint ?? 0) > 0)
  const { problems } = await verifyLedger(restored, storedCatalogs(restored), {
    key: KEY,
    usageSinceMs: usageSinceMs(),
  })
  assert.deepEqual(problems, [])
  await restored.close()
  await other.drop()
})

test('an archived month is proved from its files, and a planted change in one is found', async () => {
  const archive = archiveIn(directory)
  const month = formatDay(monthDay(MONTHS)).slice(0, 7)
  const problems = async () => {
    await archive.check(month)
    await archive.stop()
    return (await archive.state()).months.find((one) => one.month === month)?.problems.join(' ') ?? ''
  }
  assert.equal(await problems(), '')
  const { months } = await archive.state()
  // What a process left that did not end its month is beside it.
  const folder = join(directory, months.find((one) => one.month === month)?.folder ?? '')
  const file = join(folder, '00001.parquet')
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
  assert.deepEqual([manifest.transfers, manifest.accounts], [3 * CALLS + 3, 3])
  const bytes = await readFile(file)
  const { parquetOf, rowsOfParquet, digestOfBytes } = await import('./rows.ts')
  const rows = await rowsOfParquet(bytes)
  const planted = await parquetOf(rows.map((row, at) => (at === 7 ? { ...row, amount: row.amount - 1n } : row)))
  await writeFile(file, planted)
  assert.match(await problems(), /digest differs/)
  // Also by one who can change the digest in the database.
  await sql(
    `update ledger_archive set files = jsonb_set(files, '{0,sha256}', '"${digestOfBytes(planted)}"') where month = '${month}-01'`,
  )
  assert.match(await problems(), /but what moved came to .* are not what its checkpoint says/)
  await rm(file)
  assert.match(await problems(), /is missing/)
})

const PLANTED: ReadonlyArray<readonly [string, string, RegExp]> = [
  ['a checkpoint', `update ledger_checkpoint set balance = balance + 1`, /is not what was signed/],
  [
    'a checkpoint that is gone',
    `delete from ledger_checkpoint where account_id = 'acc_plain' and month = (select min(month) from ledger_checkpoint)`,
    /one before it was removed/,
  ],
  ['all checkpoints of an account', `delete from ledger_checkpoint where account_id = 'acc_plain'`, /acc_plain/],
  [
    'a grant of an archived month',
    `update transfer set amount = amount + 1 where id = (select min(id) from transfer where account_id = 'acc_plain')`,
    /of the kind grant .* are not there as its checkpoint says/,
  ],
  [
    'a call after the archive',
    `update transfer set amount = amount + 1 where id = (select max(id) from transfer)`,
    /./,
  ],
  ['a lot', `update ledger_checkpoint set lots = '[]' where account_id = 'acc_lots'`, /its transfers sum to/],
]
for (const [what, change, found] of PLANTED)
  test(`verification finds a planted change of ${what}`, async () => {
    for (const table of ['transfer', 'ledger_checkpoint']) await sql(`create table copy_${table} as table ${table}`)
    await sql(change)
    assert.match((await verify()).join(' '), found)
    for (const table of ['transfer', 'ledger_checkpoint']) {
      await sql(`delete from ${table}`)
      await sql(`insert into ${table} select * from copy_${table}`)
      await sql(`drop table copy_${table}`)
    }
    assert.deepEqual(await verify(), [])
  })

test('a month goes to the archive after its calls, and a backup without them is restored by the command and adds up', async () => {
  // Its calls are still there.
  const due = async () => (await archiveIn(directory, undefined, STAY - 1).state()).due
  assert.deepEqual(await due(), [])
  await maintainUsage(database, world, { usageMonths: STAY - 1, tries: 5 })
  assert.deepEqual(await due(), [formatDay(monthDay(STAY)).slice(0, 7)])
  const [pruned] = await sql<{ transfers: bigint }>(
    `select count(*) as transfers from transfer t where kind = 'settled' and not exists (select 1 from usage u where u.account_id = t.account_id and u.id = t.id)`,
  )
  assert.ok((pruned?.transfers ?? 0n) > 0n)
  const other = await freshDatabase()
  const said: string[] = []
  const configOf = (url: string) => readConfig({ DATABASE_URL: url, TOLLGATE_DATA: directory, TOLLGATE_SECRET: SECRET })
  const file = join(directory, 'backup')
  const { signal } = new AbortController()
  await backup(configOf(fresh.url), file, () => {}, signal)
  await restore(configOf(other.url), file, (line) => void said.push(line), signal)
  assert.equal(said.at(-1), 'The ledger adds up.')
  await other.drop()
})
