// What is checked of the files of a month, when somebody asks.
import { type Database, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { movedBy } from '../../reports/movements.ts'
import type { Checkpoint, StoredCheckpoint } from '../verify/checkpoint.ts'
import { CHECKPOINTS, nameOf, readArchived } from '../verify/checkpoints.ts'
import { type ArchivedFile, type ArchiveStore, createLedgerArchive } from './archive.ts'
import { AccountMonths, digestOfBytes, type FileRow, rowsOfParquet } from './rows.ts'

const MONTH = sql('verify_archive_month')`
  select to_char(month, 'YYYY-MM-DD') as month, folder, files from ledger_archive where month = to_date($1, 'YYYY-MM') and archived_at is not null`
const BEGIN = sql('verify_archive_begin')`
  update ledger_archive set checked_at = null, seen_at = now() where month = $1::date`
const SEEN = sql('verify_archive_seen')`update ledger_archive set seen_at = now() where month = $1::date`
const CHECKED = sql('verify_archive_checked')`
  update ledger_archive set checked_at = now(), problems = $2 where month = $1::date`
const OF_FOLDER = sql('verify_archive_accounts')`
  select count(distinct account_id)::int as count from ledger_checkpoint where folder = $1`
const PROBLEMS_MAX = 50

interface ArchivedMonth {
  readonly month: string
  readonly folder: string
  readonly files: readonly ArchivedFile[]
}

interface CheckOptions {
  readonly database: Database
  readonly store: ArchiveStore | undefined
  readonly key: Buffer
}

interface Surroundings extends Pick<CoreParts, 'world' | 'log'> {
  readonly config: {
    readonly TOLLGATE_RETENTION_LEDGER_MONTHS: number
    readonly TOLLGATE_RETENTION_USAGE_MONTHS: number
  }
}

export type ArchiveWork = ReturnType<typeof openLedgerArchive>

export function openLedgerArchive({ config, world, log }: Surroundings, parts: CheckOptions) {
  const { database, store } = parts
  const archive = createLedgerArchive({
    ...parts,
    world,
    log,
    months: config.TOLLGATE_RETENTION_LEDGER_MONTHS,
    usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS,
  })
  let checking: Promise<unknown> = Promise.resolve()
  return {
    ...archive,
    /** Reads the files of a month again, in the background. */
    async check(name: string): Promise<void> {
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

/**
 * Every file has its digest, every transfer the hash that follows from the one before it, and every account comes to
 * its checkpoint.
 */
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
