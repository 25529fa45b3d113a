// What is checked of the archive: the checkpoints at which the replay of an account starts, and, when somebody asks, the files of a month.
import { type Database, type Queryable, statement } from '../../database/database.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { sameBytes } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'
import {
  type ArchivedFile,
  type ArchiveStore,
  CHECKPOINTS_OF,
  createLedgerArchive,
  type LedgerArchive,
  type StoredCheckpoint,
} from '../../ledger/archive.ts'
import {
  AccountMonths,
  type Checkpoint,
  digestOfBytes,
  type FileRow,
  rowsOfParquet,
  signatureOf,
} from '../../ledger/archive-rows.ts'
import { GIVEN_KINDS, isGiven, movedBy } from '../movements.ts'

/** What the archive has of an account, and where its rows in the database begin. */
export interface Archived {
  /** The place of the last transfer, as text; null: the account is not in the archive. */
  readonly place: string | null
  readonly balance: bigint
  readonly settled: bigint
  readonly problems: readonly string[]
}

const CHECKPOINTS = statement('verify_checkpoints', `${CHECKPOINTS_OF} order by ledger_checkpoint.month`)
// What was given or taken back stays in the database, and must be what the checkpoint says.
const STAYED = statement(
  'verify_checkpoint_sums',
  `select to_char(date_trunc('month', moved_at, 'UTC') at time zone 'UTC', 'YYYY-MM-DD') as month, kind, count(*)::text as rows, sum(amount)::text as amount, sum(loss)::text as loss
   from transfer where account_id = $1 and moved_at <= $2::text::timestamptz and kind in (${GIVEN_KINDS}) group by 1, 2`,
)

export async function readArchived(on: Queryable, account: string, key: Buffer | undefined): Promise<Archived> {
  const all = await on.query<StoredCheckpoint>(CHECKPOINTS, [account])
  const last = all.at(-1)
  if (!last) return { place: null, balance: 0n, settled: 0n, problems: [] }
  const problems: string[] = []
  let before: Buffer | null = null
  for (const one of all) {
    if (key && !sameBytes(signatureOf(key, before, one), one.signature))
      problems.push(
        `Account ${account}: its checkpoint of ${nameOf(one.month)} is not what was signed, or the one before it was removed or put there.`,
      )
    before = one.signature
  }
  const stayed = await on.query<{ month: string; kind: string; rows: string; amount: string; loss: string }>(STAYED, [
    account,
    last.place,
  ])
  const said = all.flatMap(({ month, sums }) => sums.map((sum) => [month, ...sum].join(' ')))
  const is = stayed.map(({ month, kind, rows, amount, loss }) => [month, kind, rows, amount, loss].join(' '))
  const should = said.filter((sum) => isGiven(sum.split(' ')[1]))
  for (const [these, those, what] of [
    [should, is, 'are not there as its checkpoint says'],
    [is, should, 'are not in its checkpoint'],
  ] as const)
    for (const sum of these.filter((one) => !those.includes(one))) {
      const [month = '', kind = ''] = sum.split(' ')
      problems.push(`Account ${account}: its transfers of the kind ${kind} in ${nameOf(month)} ${what}.`)
    }
  const settled = all.flatMap(({ sums }) => sums.filter(([kind]) => kind === 'settled'))
  return {
    ...{ place: last.place, balance: last.balance, problems },
    settled: settled.reduce((sum, [, , amount]) => sum + BigInt(amount), 0n),
  }
}

const nameOf = (month: string) => month.slice(0, 7)

const MONTH = statement(
  'verify_archive_month',
  `select to_char(month, 'YYYY-MM-DD') as month, folder, files from ledger_archive where month = to_date($1, 'YYYY-MM') and archived_at is not null`,
)
const BEGIN = statement(
  'verify_archive_begin',
  `update ledger_archive set checked_at = null, seen_at = now() where month = $1::date`,
)
const SEEN = statement('verify_archive_seen', `update ledger_archive set seen_at = now() where month = $1::date`)
const CHECKED = statement(
  'verify_archive_checked',
  `update ledger_archive set checked_at = now(), problems = $2 where month = $1::date`,
)
const OF_FOLDER = statement(
  'verify_archive_accounts',
  'select count(distinct account_id)::int as count from ledger_checkpoint where folder = $1',
)
const PROBLEMS_MAX = 50

interface ArchivedMonth {
  readonly month: string
  readonly folder: string
  readonly files: readonly ArchivedFile[]
}

export interface ArchiveWork extends LedgerArchive {
  /** Reads the files of a month again, in the background. */
  check(month: string): Promise<void>
}

interface CheckOptions {
  readonly database: Database
  readonly store: ArchiveStore | undefined
  readonly key: Buffer
}

interface Surroundings {
  readonly config: {
    readonly TOLLGATE_RETENTION_LEDGER_MONTHS: number
    readonly TOLLGATE_RETENTION_USAGE_MONTHS: number
  }
  readonly world: World
  readonly log: Log
}

export function openLedgerArchive({ config, world, log }: Surroundings, parts: CheckOptions): ArchiveWork {
  const { database, store } = parts
  const archive = createLedgerArchive({
    ...{ ...parts, world, log, months: config.TOLLGATE_RETENTION_LEDGER_MONTHS },
    usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS,
  })
  let checking: Promise<unknown> = Promise.resolve()
  return {
    ...archive,
    async check(name) {
      const [month] = await database.query<ArchivedMonth>(MONTH, [name])
      if (!month) throw new Fault('not_found', { message: `The month ${name} is not in the archive.` })
      if (!store) throw new Fault('conflict', { message: 'No place is set for the archive: TOLLGATE_LEDGER_ARCHIVE.' })
      await database.query(BEGIN, [month.month])
      checking = checkMonth({ ...parts, store }, month)
        .catch((error: unknown) => [`It could not be read: ${error instanceof Error ? error.message : String(error)}`])
        .then(async (problems) => {
          await database.query(CHECKED, [month.month, JSON.stringify(problems.slice(0, PROBLEMS_MAX))])
          if (problems.length > 0)
            log.error({ month: name, problems, alert: true }, 'a month of the archive is not what was archived')
        })
        .catch((error: unknown) => log.warn({ error }, 'a month of the archive could not be checked'))
    },
    async stop() {
      await archive.stop()
      await checking
    },
  }
}

/** Every file has its digest, every transfer the hash that follows from the one before it, and every account comes to its checkpoint. */
async function checkMonth(
  { database, store, key }: CheckOptions & { readonly store: ArchiveStore },
  { month, folder, files }: ArchivedMonth,
): Promise<string[]> {
  const problems: string[] = []
  const reading = new MonthReading(database, key, folder)
  for (const { name, rows, sha256 } of files) {
    const bytes = await store.get(name)
    if (!bytes) {
      problems.push(`${name} is missing in ${store.place}.`)
      continue
    }
    if (digestOfBytes(bytes) !== sha256) problems.push(`${name} is not the file that was written: its digest differs.`)
    const read = await rowsOfParquet(bytes).catch(() => undefined)
    if (read?.length !== rows) problems.push(`${name} has ${read?.length ?? 'no'} transfers of ${rows}.`)
    for (const row of read ?? []) await reading.add(row)
    await database.query(SEEN, [month])
  }
  await reading.end()
  const [known] = await database.query<{ count: number }>(OF_FOLDER, [folder])
  if (known?.count !== reading.accounts)
    problems.push(`The files have ${reading.accounts} accounts, but ${known?.count ?? 0} have checkpoints.`)
  return [...problems, ...reading.problems]
}

class MonthReading {
  readonly problems: string[] = []
  accounts = 0
  private readonly database: Database
  private readonly key: Buffer
  private readonly folder: string
  private months: AccountMonths | undefined
  private checkpoints: readonly StoredCheckpoint[] = []
  private balance = 0n

  constructor(database: Database, key: Buffer, folder: string) {
    this.database = database
    this.key = key
    this.folder = folder
  }

  async add(row: FileRow): Promise<void> {
    if (this.months?.account !== row.account) await this.begin(row)
    this.compare(this.months?.add(row))
    this.balance += movedBy(row)
    if (row.balance !== this.balance) {
      this.say(
        `Account ${row.account}: the archive says ${formatCredits(row.balance)} after transfer ${row.id}, but what moved came to ${formatCredits(this.balance)}.`,
      )
      this.balance = row.balance
    }
  }

  async end(): Promise<void> {
    this.compare(this.months?.end())
    this.months = undefined
  }

  private async begin({ account }: FileRow): Promise<void> {
    await this.end()
    this.accounts += 1
    const archived = await readArchived(this.database, account, this.key)
    for (const problem of archived.problems) this.say(problem)
    this.checkpoints = await this.database.query<StoredCheckpoint>(CHECKPOINTS, [account])
    const at = this.checkpoints.findIndex(({ folder }) => folder === this.folder)
    const before = at > 0 ? this.checkpoints[at - 1] : undefined
    this.months = new AccountMonths(account, this.folder, before?.hash ?? null)
    this.balance = before?.balance ?? 0n
  }

  private compare(read: Checkpoint | undefined): void {
    if (!read) return
    const { account, month, folder } = read
    const stored = this.checkpoints.find((one) => one.month === month && one.folder === folder)
    const of = ({ hash, balance, moved_us, sums, lots }: Checkpoint) =>
      JSON.stringify([hash.toString('hex'), String(balance), String(moved_us), sums, lots])
    if (!stored || of(stored) !== of(read))
      this.say(`Account ${account}: its transfers in the archive of ${nameOf(month)} are not what its checkpoint says.`)
  }

  private say(problem: string): void {
    if (this.problems.length < PROBLEMS_MAX) this.problems.push(problem)
  }
}
