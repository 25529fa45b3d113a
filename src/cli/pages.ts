// Lists of any length: pages are asked for until enough rows are there.
import type { Page } from '../kernel/view.ts'
import { CliError, type Invocation, type Option, text } from './command.ts'

export const PAGE_OPTIONS: Readonly<Record<string, Option>> = {
  limit: { type: 'string', value: 'n', help: 'How many rows at most; 50 unless given.' },
}

const PAGE_ROWS_MAX = 200

export async function listPages<T>(
  call: Invocation,
  path: string,
  filter: Readonly<Record<string, string | undefined>> = {},
): Promise<T[]> {
  const most = Number(text(call, 'limit') ?? '50')
  if (!Number.isInteger(most) || most < 1) throw new CliError('--limit takes a whole number of 1 or more.', 2)
  const rows: T[] = []
  let cursor: string | undefined
  while (rows.length < most) {
    const limit = String(Math.min(PAGE_ROWS_MAX, most - rows.length))
    const page = await call.api.call<Page<T>>('GET', path + query({ ...filter, limit, cursor }))
    rows.push(...page.items)
    if (page.next === null) break
    cursor = page.next
  }
  return rows
}

export function query(values: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}
