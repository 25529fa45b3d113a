// What is on its way into the books: each settlement of the journal against its account, its lease and what was booked.
import { type Database, statement } from '../database/database.ts'
import type { Attributes, ChargeLine, CostBasis } from '../meter/charge.ts'
import { BATCH, type RateCheck } from './rate-check.ts'

interface JournalCheck {
  readonly database: Database
  readonly rates: RateCheck
  readonly report: (problem: string) => void
}

interface JournalRow {
  readonly id: string
  readonly account_id: string
  readonly product: string
  readonly catalog_version: number
  readonly outcome: string
  readonly charged: bigint
  readonly held: bigint
  readonly lines: ChargeLine[]
  readonly estimated: boolean
  readonly credential: string | null
  readonly endpoint: string
  readonly route: number
  readonly first_byte_ms: number
  readonly attributes: Attributes | null
  readonly cost: bigint | null
  readonly cost_basis: CostBasis | null
  readonly minutes: number
  readonly keeps: boolean
  readonly waived: boolean
  readonly leased: boolean
  readonly known: boolean
  readonly booked: boolean
}

const PAGE_ROWS = 1_000
/** A settlement is booked within a second; that of a process that died, by the next that looks. */
const LATE_MINUTES = 2
const JOURNAL = statement(
  'verify_journal',
  `select j.id, j.account_id, j.product, j.catalog_version, j.outcome, j.charged, j.held, j.lines, j.estimated, j.credential, j.endpoint, j.route, j.first_byte_ms, j.attributes, j.cost, j.cost_basis, floor(extract(epoch from now() - j.at) / 60)::int as minutes,
     j.keeps, j.waived, a.id is not null as known, exists (select 1 from lease e where e.account_id = j.account_id and e.id = j.lease_id) as leased,
     exists (select 1 from transfer t where t.account_id = j.account_id and t.id = j.id) as booked
   from journal j left join account a on a.id = j.account_id
   where (j.account_id, j.id) > ($1, $2) order by j.account_id, j.id limit ${PAGE_ROWS}`,
)

/** Where accounts lie on several servers it always is, and the other statement cannot be asked. */
const SOME = statement('verify_journal_some', 'select 1 from journal limit 1')

export async function checkJournal({ database, rates, report }: JournalCheck): Promise<void> {
  if ((await database.query(SOME)).length === 0) return
  for (let last = { account_id: '', id: '' }; ; ) {
    const rows = await database.query<JournalRow>(JOURNAL, [last.account_id, last.id])
    for (const row of rows) {
      const name = `Settlement ${row.id} of account ${row.account_id} in the journal`
      for (const problem of problemsOf(row)) report(`${name} ${problem}`)
      const wrong = await (row.outcome === 'settled'
        ? rates.check({ ...row, charge: row.charged })
        : rates.knows(row.catalog_version, row.product))
      if (wrong) report(`${name}: ${wrong}`)
    }
    const next = rows.at(-1)
    if (!next || rows.length < PAGE_ROWS) return
    last = next
  }
}

function* problemsOf({
  known,
  outcome,
  charged,
  held,
  keeps,
  waived,
  endpoint,
  minutes,
  booked,
  leased,
}: JournalRow): Generator<string> {
  if (!known) yield 'is of an account that does not exist.'
  if (outcome !== 'settled' && outcome !== 'released') yield `is "${outcome}".`
  // Seen by others only while a lease covers it, which does not end before it is booked: a call with a hold of its own is written and booked at once.
  if (!leased && !booked) yield 'is covered by no lease.'
  if (charged < 0n || charged > held) yield `charges ${charged} micro-credits of ${held} that were held for it.`
  if (!keeps || waived) yield 'is booked otherwise than one that a lease covers.'
  if (endpoint.startsWith(BATCH)) yield 'is of a batch, whose calls have holds of their own.'
  if (minutes >= LATE_MINUTES)
    yield booked ? `was booked, but still stands there after ${minutes} minutes.` : `has waited for ${minutes} minutes.`
}
