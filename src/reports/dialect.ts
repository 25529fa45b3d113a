// How a report on single calls is written for a store: each report is one text, in which these are filled in. Calls
// have the alias `u`, their tokens `t`.
import type { Database, Value } from '../database/database.ts'
import { DAY_MS } from '../kernel/calendar.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { idAtTime } from '../kernel/world.ts'
import { callsSinceMs } from '../ledger/retention.ts'
import { TOKENS } from '../ledger/usage-sums.ts'

export interface Dialect {
  /** What stands behind `from`. */
  readonly CALLS: string
  readonly CALLS_WITH_TOKENS: string
  readonly INPUT: string
  readonly OUTPUT: string
  readonly IS_TEST: string
  /** Of the message that a caller got, and the name of its fault. */
  readonly fault: string
  readonly message: string
  /** In one statement with the page: of all rows `x`. Undefined: the store needs a statement of its own for them. */
  readonly OVERALL: string | undefined
  /** Columns of single calls that only sums have. */
  readonly NO_SUMS: string
  /** Sorts a text by its bytes. */
  readonly BYTES: string
  text(value: string): string
  whole(value: number | bigint): string
  page(from: number, most: number): string
  asText(column: string): string
  sum(column: string): string
  /** At most so many different values, without empty ones. */
  some(column: string, most: number): string
  /** Of calls that started at or after a moment, or before it. */
  since(ms: number): string
  before(ms: number): string
  /** The step in which a call started, from 1. */
  step(steps: readonly Date[]): string
  /** Of a call, or empty. */
  label(name: string): string
  hasLabel(name: string): string
  hasLabels(labels: Readonly<Record<string, string>>): string
  /** Whether a text has a part, in lower case. */
  contains(column: string, part: string): string
  /** Calls and percentiles of `ms`, by step and group, by each alone, and of all rows of a statement. */
  spread(ROWS: string, MOST: number): string
}

/** Another store that has all calls, which an extension may provide. */
export interface CallStore {
  readonly dialect: Dialect
  query<R>(text: string): Promise<R[]>
  /** Whether it has all calls that started before a moment. */
  hasAll(toMs: number): Promise<boolean>
  /** Whether it has exactly what the database has of a range of ids. */
  hasRange(from: string, to: string): Promise<boolean>
}

export const USAGE_FAULT = `u.attempt_log -> 'fault' ->> 'name'`
export const USAGE_MESSAGE = `u.attempt_log -> 'fault' ->> 'message'`
const WITHIN_MS = 60_000
/** The longest range for single calls in the database. */
export const CALLS_DAYS_MAX = 92
const PERCENTILES = 'array[0.5, 0.95, 0.99]'

/** Postgres, with the parameters of a statement; `put` returns the placeholder. */
export class Values implements Dialect {
  readonly list: Value[] = []
  readonly CALLS = 'usage u'
  readonly CALLS_WITH_TOKENS = `usage u ${TOKENS}`
  readonly INPUT = 't.input'
  readonly OUTPUT = 't.output'
  readonly IS_TEST = IS_TEST('u.account_id')
  readonly fault = USAGE_FAULT
  readonly message = USAGE_MESSAGE
  readonly OVERALL =
    'count(*) over () as all_values, (sum(x.n) over ())::bigint as all_calls, (sum(x.credits) over ())::bigint as all_charged'
  readonly NO_SUMS = '0::bigint as rejected, null::bigint as input_tokens, null::bigint as output_tokens'
  readonly BYTES = 'collate "C"'

  put(value: Value): string {
    return `$${this.list.push(value)}`
  }
  text(value: string): string {
    return `${this.put(value)}::text`
  }
  whole(value: number | bigint): string {
    return `${this.put(String(value))}::bigint`
  }
  page(from: number, most: number): string {
    return `limit ${this.whole(most)} offset ${this.whole(from)}`
  }
  asText(column: string): string {
    return `${column}::text`
  }
  sum(column: string): string {
    return `sum(${column})::bigint`
  }
  some(column: string, most: number): string {
    return `(array_agg(distinct ${column} collate "C") filter (where ${column} <> ''))[1:${most}]`
  }
  // Ids contain the time, so a range of time is a range of ids.
  since(ms: number): string {
    return `u.id >= ${this.text(idAtTime(ms))}`
  }
  before(ms: number): string {
    return `u.id < ${this.text(idAtTime(ms))}`
  }
  step(steps: readonly Date[]): string {
    return `width_bucket(u.id, ${this.put(steps.map((at) => idAtTime(at.getTime())))}::text[])`
  }
  label(name: string): string {
    return `coalesce(u.labels ->> ${this.text(name)}, '')`
  }
  hasLabel(name: string): string {
    return `u.labels ? ${this.text(name)}`
  }
  hasLabels(labels: Readonly<Record<string, string>>): string {
    return `u.labels @> ${this.put(JSON.stringify(labels))}::jsonb`
  }
  // Case is ignored for ASCII only: the rules of a language take five times as long.
  contains(column: string, part: string): string {
    return `strpos(lower(${column} collate "C"), ${part}) > 0`
  }
  spread(ROWS: string, MOST: number): string {
    return `select x.step, x."group", grouping(x.step) = 0 as is_step, grouping(x."group") = 0 as is_group, count(*) as calls,
       percentile_cont(${PERCENTILES}) within group (order by x.ms) as spread
     from (${ROWS}) x group by grouping sets ((1, 2), (1), (2), ()) having count(*) > 0
     order by calls desc, x."group" collate "C", x.step limit ${MOST}`
  }
}

/** Reads the rows of a statement in the dialect of its store. */
export interface CallReader {
  readonly dialect: Dialect
  readonly query: <R>(text: string) => Promise<R[]>
  readonly isDatabase: boolean
}

interface ReadRows<T> {
  readonly found: T
  /** Where single calls were read; absent where there is no other store. */
  readonly source?: 'database' | 'analytics'
}

export interface ReportSources {
  readonly database: Database
  readonly callStore?: CallStore | undefined
}

/**
 * Reads single calls in the other store if the range is longer than a day, or older than what is here, and the store
 * has them all.
 */
export async function readCallRows<T>(
  { database, callStore }: ReportSources,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  read: (reader: CallReader, values: Values) => Promise<T>,
): Promise<ReadRows<T>> {
  const values = new Values()
  const here = () =>
    read(
      {
        dialect: values,
        isDatabase: true,
        query: (text) => database.query({ text, withinMs: WITHIN_MS }, values.list),
      },
      values,
    )
  if (!callStore) return { found: await here() }
  const isHere = fromMs >= (await callsSinceMs(database))
  if ((toMs - fromMs > DAY_MS || !isHere) && (await callStore.hasAll(toMs))) {
    const { dialect, query } = callStore
    const found = await read({ dialect, query, isDatabase: false }, values).catch((error: unknown) => {
      if (error instanceof Fault) throw error
      return undefined
    })
    if (found !== undefined) return { found, source: 'analytics' }
  }
  // A part of the calls would look like all.
  if (!isHere)
    throw new Fault('unavailable', {
      retryAfterSeconds: 60,
      internal: { why: 'these calls are in the analytics store only' },
    })
  // Asked for because the other store could have read it.
  if (toMs - fromMs > (CALLS_DAYS_MAX + 1) * DAY_MS)
    throw invalid(`from: at most ${CALLS_DAYS_MAX} days are summed up of single calls at the moment.`, 'from')
  return { found: await here(), source: 'database' }
}
