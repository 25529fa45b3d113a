// Verification rules as data: which rows are read, the condition of a violation, and its message. There are two forms:
// for small tables the database finds the violations; for the millions of rows that are replayed anyway, this process
// does.
import { type Queryable, type Statement, sql } from '../../database/database.ts'
import { formatCredits } from '../../kernel/credits.ts'

/**
 * A violation's message, with the condition that must not hold. Braces name a member of the row or, after `of.`, of the
 * other value; `:credits` formats an amount.
 */
type Rules<R, Other> = Readonly<Record<string, (row: R, other: Other) => boolean>>

/**
 * Returns a function that reports each rule that a row violates. It is a plain loop, because it runs for millions of
 * rows.
 */
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

/**
 * The same for rules that the database checks: a message with columns in braces, and an SQL condition. `{it}` is the
 * row's own description.
 */
type SqlRules = Readonly<Record<string, string>>

export interface Table<Given extends string> {
  /** The description of a row, the subject of its messages. */
  readonly it: string
  /**
   * Selects the columns that the rules use, ordered by `account_id` and `id` after those in $1 and $2, in pages of
   * `PAGE_ROWS`.
   */
  readonly rows: string
  /** Which values of this run are passed as $3 and $4. */
  readonly given?: readonly Given[]
  readonly rules: SqlRules
  /** Further columns to select. */
  readonly columns?: string
  /** The table is skipped if this statement returns no row. */
  readonly unless?: Statement
}

export interface CheckedRow {
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

/** Yields every row of a table with its violations. */
export async function* readTable<R extends CheckedRow, Given extends string>(
  on: Queryable,
  [name, table]: readonly [name: string, table: Table<Given>],
  values: Readonly<Record<Given, Date | readonly string[] | null>>,
): AsyncGenerator<R> {
  // Names in capitals are SQL text made of constants only.
  const { it, rows: ROWS, rules, columns: COLUMNS = 'null as more', given = [], unless } = table
  if (unless && (await on.query(unless)).length === 0) return
  const PROBLEMS = Object.entries(rules).map(
    ([says, broken]) => `case when ${broken} then ${toSql(says.replace('{it}', it))} end`,
  )
  const IT = toSql(it)
  const page = sql(`verify_${name}`)`with r as materialized (${ROWS})
     select account_id, id, ${IT} as it, array_remove(array[${PROBLEMS.join(', ')}], null) as problems, ${COLUMNS} from r order by account_id, id`
  for (let last = { account_id: '', id: '' }; ; ) {
    const read = await on.query<R>(page, [last.account_id, last.id, ...given.map((one) => values[one])])
    yield* read
    const next = read.at(-1)
    if (!next || read.length < PAGE_ROWS) return
    last = next
  }
}

/** For each message, a FROM clause: each row that it returns is a violation. */
export async function* find(on: Queryable, findings: SqlRules): AsyncGenerator<string> {
  for (const [says, FROM] of Object.entries(findings)) {
    const PROBLEM = toSql(says)
    const text = `select ${PROBLEM} as problem from ${FROM} limit 100`
    for (const { problem } of await on.query<{ problem: string }>({ text })) yield problem
  }
}
