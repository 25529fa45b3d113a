// Lists of any length: pages are asked for until enough rows are there.
import type { Page } from '../kernel/view.ts'
import { CliError, type Invocation, type Option, type Told, text } from './command.ts'
import { type Columns, table } from './table.ts'

export const PAGE_OPTIONS: Readonly<Record<string, Option>> = {
  limit: { type: 'string', value: 'n', help: 'Maximum number of rows; 50 by default.' },
}

/** Whose rows: the account's own, or those of its test keys. */
export const TEST_OPTION: Readonly<Record<string, Option>> = {
  test: { type: 'boolean', help: 'Those of its test keys instead.' },
}

export function testOf(call: Invocation): string | undefined {
  return call.values.test === true ? 'true' : undefined
}

type Filter = Readonly<Record<string, string | undefined>>

const PAGE_ROWS_MAX = 200

export async function listPages<Row extends object>(
  call: Invocation,
  path: string,
  { filter = {}, columns }: { filter?: Filter; columns: Columns<Row> },
): Promise<Told> {
  const most = Number(text(call, 'limit') ?? '50')
  if (!Number.isInteger(most) || most < 1) throw new CliError('--limit takes a whole number of 1 or more.', 2)
  const rows: Row[] = []
  let cursor: string | undefined
  while (rows.length < most) {
    const limit = String(Math.min(PAGE_ROWS_MAX, most - rows.length))
    const page = await call.api.call<Page<Row>>('GET', path + query({ ...filter, limit, cursor }))
    rows.push(...page.items)
    if (page.next === null) break
    cursor = page.next
  }
  return { answer: rows, words: table(rows, columns) }
}

export function query(values: Filter): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}
