// Rows that decide money and change only by audited actions. The audit row of such an action keeps the row as it was
// afterwards, so that verification finds a value that was changed in any other way.
import { type Queryable, type Statement, statement } from './database.ts'

/**
 * How a row is found, and the columns that are kept. Columns that calls change are recomputed from the ledger instead.
 */
interface AuditedTable {
  readonly key: readonly [string] | readonly [string, string]
  readonly columns: readonly string[]
  /** Of these, the moments: they are written in UTC, whatever the session's time zone is. */
  readonly times?: readonly string[]
  /** What other rows say of it. */
  readonly made?: Readonly<Record<string, string>>
}

const TABLES = {
  account: { key: ['id'], columns: [], made: { limits: `limits_of(id, 'account')` } },
  account_plan: {
    key: ['account_id'],
    columns: ['plan_id', 'next_plan', 'period', 'trial', 'trialled', 'limits'],
    times: ['anchor', 'period_end'],
  },
  api_key: { key: ['id'], columns: ['account_id'], made: { limits: 'limits_of(account_id, id)' } },
  budget: {
    key: ['account_id', 'id'],
    columns: ['scope', 'value', 'unit', 'span', 'window_seconds', 'max', 'hard', 'alert_percent'],
  },
  code_batch: {
    key: ['id'],
    columns: ['credits', 'codes', 'uses_max', 'lot_days', 'products', 'priority'],
    times: ['ends_at'],
  },
  invoice: {
    key: ['account_id', 'id'],
    columns: ['month', 'credits', 'corrects', 'currency', 'gross_minor', 'tax_minor', 'customer', 'document'],
    times: ['issued_at'],
  },
  lot: { key: ['account_id', 'id'], columns: ['source', 'amount', 'products', 'priority'], times: ['ends_at'] },
  payment: {
    key: ['id'],
    columns:
      `account_id provider provider_id kind offer_id currency price_minor amount_minor tax_minor credits catalog_version
      state refunded_minor disputed_minor dispute transfer_id taken lost`.split(/\s+/),
    times: ['paid_at'],
  },
} as const satisfies Record<string, AuditedTable>

type TableName = keyof typeof TABLES

/** A table's name, and the values of its key. */
export type AuditedRow = readonly [table: TableName, ...key: string[]]

/** Each column as text; null where the row was removed. */
type KeptRow = Readonly<Record<string, string | null>> | null

/** By the row's name: its table and its key. */
export type KeptRows = Readonly<Record<string, KeptRow>>

/** Long values are kept by their hash. */
const VALUE_CHARS_MAX = 200
const SEPARATOR = ' '

const readers = Object.fromEntries(
  Object.entries<AuditedTable>(TABLES).map(([table, { key, columns, times = [], made = {} }]) => {
    const texts = [
      ...columns.map((column) => [column, `${column}::text`]),
      ...Object.entries(made).map(([column, SOURCE]) => [column, `(${SOURCE})::text`]),
      ...times.map((column) => [column, `(${column} at time zone 'UTC')::text`]),
    ].map(([column, TEXT]) => {
      const HASHED = `'sha256 ' || encode(sha256(convert_to(${TEXT}, 'UTF8')), 'hex')`
      return `'${column}', case when length(${TEXT}) > ${VALUE_CHARS_MAX} then ${HASHED} else ${TEXT} end`
    })
    // Names in capitals are SQL text made of constants only.
    const [TABLE, COLUMNS] = [table, texts.join(', ')]
    const NAMED = [`'${table}'`, ...key].join(` || '${SEPARATOR}' || `)
    const WHERE = key.map((column, at) => `${column} = any($${at + 1}::text[])`).join(' and ')
    const text = `select ${NAMED} as name, json_build_object(${COLUMNS}) as kept from ${TABLE} where ${WHERE}`
    return [table, statement(`audited_${table}`, text)]
  }),
) as Record<TableName, Statement> // The members of TABLES.

function nameOf(row: AuditedRow): string {
  return row.join(SEPARATOR)
}

/** The rows as they are now. Names of rows that are not there are left out. */
async function readRows(on: Queryable, rows: readonly AuditedRow[]): Promise<Map<string, KeptRow>> {
  const found = new Map<string, KeptRow>()
  for (const table of new Set(rows.map(([name]) => name))) {
    const keys = rows.filter(([name]) => name === table).map(([, ...key]) => key)
    const values = TABLES[table].key.map((_, at) => keys.map((key) => key[at] ?? ''))
    for (const { name, kept } of await on.query<{ name: string; kept: KeptRow }>(readers[table], values))
      found.set(name, kept)
  }
  return found
}

/** What an audit row keeps of the rows that its action changed. */
export async function keepRows(on: Queryable, rows: readonly AuditedRow[]): Promise<KeptRows> {
  const found = await readRows(on, rows)
  return Object.fromEntries(rows.map((row) => [nameOf(row), found.get(nameOf(row)) ?? null]))
}

/** Follows the audit from its beginning and finds rows that are not what the last audit row about them says. */
export class KeptRowsCheck {
  /** Rows that differ from what an audit row says, as long as no later audit row says what they are now. */
  readonly #differing = new Map<string, string>()

  /** `elsewhere`: of accounts that were in another database, since which audit row they are here. */
  async follow(
    on: Queryable,
    audited: readonly { readonly id: string; readonly rows: KeptRows }[],
    elsewhere: ReadonlyMap<string, string>,
  ): Promise<void> {
    const isHere = (id: string, name: string, is: KeptRow) =>
      id >= (elsewhere.get(is?.account_id ?? name.split(SEPARATOR)[1] ?? '') ?? '')
    // The last one of each is what counts.
    const last = new Map(
      audited.flatMap(({ id, rows }) =>
        Object.entries(rows)
          .filter(([name, is]) => isHere(id, name, is))
          .map(([name, is]) => [name, { id, is }]),
      ),
    )
    const known = [...last.keys()].map((name) => name.split(SEPARATOR) as unknown as AuditedRow) // as nameOf wrote it
    const now = await readRows(
      on,
      known.filter(([table]) => Object.hasOwn(TABLES, table)),
    )
    for (const [name, { id, is }] of last) {
      const problem = differenceOf(is, now.get(name) ?? null)
      if (problem === undefined) this.#differing.delete(name)
      else this.#differing.set(name, `Audit row ${id} says of ${name}: ${problem}`)
    }
  }

  problems(): string[] {
    return [...this.#differing.values()]
  }
}

/** A column that came later is not in older audit rows, and one that is gone is in none of the newer. */
function differenceOf(kept: KeptRow, now: KeptRow): string | undefined {
  if (!kept) return now ? 'it was removed, but it is there.' : undefined
  if (!now) return 'it is not there any more.'
  const wrong = Object.entries(kept).find(([column, value]) => column in now && now[column] !== value)
  return wrong && `its ${wrong[0]} was ${wrong[1] ?? 'empty'}, but is ${now[wrong[0]] ?? 'empty'}.`
}
