// What must hold, as rows of data: which rows are read, what is a breach, and how it reads. Two forms of one idea. Of tables that are small the database
// finds the breaches; of the millions of rows that are replayed anyway, this process does.
import { type Queryable, type Statement, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'

/**
 * By how a breach reads: what must not be true of a row that was read here. What stands in braces is a member of the row or, behind `of.`, of what it is
 * compared with; amounts are credits where that is said.
 */
type Rules<R, Other> = Readonly<Record<string, (row: R, other: Other) => boolean>>

/** Judges a row, and says what is wrong with it. A loop, because it is done for millions of rows. */
export function judge<R, Other>(rules: Rules<R, Other>) {
  const all = Object.entries(rules)
  return (row: R, other: Other, say: (problem: string) => unknown): void => {
    for (const [says, broken] of all) if (broken(row, other)) say(fill(says, { ...row, of: other }))
  }
}

function fill(says: string, row: object): string {
  return says.replaceAll(/\{([\w.]+)(:credits)?\}/g, (_, path: string, credits?: string) => {
    const value = path.split('.').reduce<unknown>((holder, name) => Object(holder)[name], row)
    return credits && typeof value === 'bigint' ? formatCredits(value) : String(value)
  })
}

/** The same where the database judges: by how a breach reads, with columns in braces, a condition. `{it}` is the row's own name. */
type SqlRules = Readonly<Record<string, string>>

export interface Table<Given extends string> {
  /** Who a sentence is about. */
  readonly it: string
  /** What the rules name, by `account_id` and `id` after those in $1 and $2, in pages of `PAGE_ROWS`. */
  readonly rows: string
  /** What of this run is given as $3 and $4. */
  readonly given?: readonly Given[]
  readonly rules: SqlRules
  /** Other columns to read. */
  readonly columns?: string
  /** Nothing is read where this finds nothing. */
  readonly unless?: Statement
}

export interface Row {
  readonly account_id: string
  readonly id: string
  readonly it: string
  readonly problems: readonly string[]
}

export const PAGE_ROWS = 1_000

function toSql(says: string): string {
  const columns: string[] = []
  const text = says.replaceAll("'", "''").replaceAll(/\{(\w+)\}/g, (_, column: string) => {
    columns.push(`, coalesce(${column}::text, 'none')`)
    return '%s'
  })
  return `format('${text}'${columns.join('')})`
}

/** Every row of a table, with what is wrong with it. */
export async function* readTable<R extends Row, Given extends string>(
  on: Queryable,
  [name, table]: readonly [name: string, table: Table<Given>],
  values: Readonly<Record<Given, Date | readonly string[] | null>>,
): AsyncGenerator<R> {
  // In capitals what is made of constants alone.
  const { it, rows: ROWS, rules, columns: COLUMNS = 'null as more', given = [], unless } = table
  if (unless && (await on.query(unless)).length === 0) return
  const PROBLEMS = Object.entries(rules).map(
    ([says, broken]) => `case when ${broken} then ${toSql(says.replace('{it}', it))} end`,
  )
  const IT = toSql(it)
  const page = statement(
    `verify_${name}`,
    `with r as materialized (${ROWS})
     select account_id, id, ${IT} as it, array_remove(array[${PROBLEMS.join(', ')}], null) as problems, ${COLUMNS} from r order by account_id, id`,
  )
  for (let last = { account_id: '', id: '' }; ; ) {
    const read = await on.query<R>(page, [last.account_id, last.id, ...given.map((one) => values[one])])
    yield* read
    const next = read.at(-1)
    if (!next || read.length < PAGE_ROWS) return
    last = next
  }
}

/** By how it reads, from where: each row there is a breach. */
export async function* find(on: Queryable, findings: SqlRules): AsyncGenerator<string> {
  for (const [says, FROM] of Object.entries(findings)) {
    const PROBLEM = toSql(says)
    const text = `select ${PROBLEM} as problem from ${FROM} limit 100`
    for (const { problem } of await on.query<{ problem: string }>({ text })) yield problem
  }
}
