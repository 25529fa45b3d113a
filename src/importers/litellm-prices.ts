// What LiteLLM knows of costs: in a deployment, in its `model_info`, and in the table of prices that its package has.
import { createReadStream } from 'node:fs'
import { glob } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import type { ChosenModel } from '../catalog/connect.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { isObject } from '../protocols/check.ts'
import { ImportProblem } from './report.ts'

type Members = Readonly<Record<string, unknown>>
/** Its entries by the names of models, with the provider before them or without. */
export type PriceTable = Readonly<Record<string, unknown>>

const TABLE = 'litellm/model_prices_and_context_window_backup.json'
const TABLE_BYTES_MAX = 32 * 1024 * 1024

/** Where Python has packages: of environments beside the configuration, of the user, of the machine. */
function packagesNear(file: string | undefined): string[] {
  const places = [...new Set([file === undefined ? '.' : dirname(file), '.'])]
  return [
    ...places.flatMap((place) => ['.venv', 'venv', 'env'].map((name) => join(place, name, 'lib'))),
    ...[join(homedir(), '.local', 'lib'), '/usr/local/lib', '/usr/lib'],
  ].map((lib) => `${lib}/python3*/{site,dist}-packages/${TABLE}`)
}

/** The table in this file; without one, of the package that is installed nearest to the configuration. */
export async function readPriceTable(
  file: string | undefined,
  config: string | undefined,
): Promise<{ readonly path: string; readonly table: PriceTable } | undefined> {
  if (file !== undefined) return { path: file, table: await readTable(file) }
  for (const pattern of packagesNear(config))
    for await (const path of glob(pattern)) return { path, table: await readTable(path) }
  return undefined
}

async function readTable(file: string): Promise<PriceTable> {
  try {
    const content = await readText(createReadStream(file, { end: TABLE_BYTES_MAX }))
    if (content.length > TABLE_BYTES_MAX) throw new ImportProblem(`${file} is too large for a table of prices.`)
    const table: unknown = JSON.parse(content)
    if (isObject(table)) return table
  } catch (error) {
    if (error instanceof ImportProblem) throw error
    throw new ImportProblem(
      `${file} cannot be read as a table of prices: ${error instanceof Error ? error.message : ''}.`,
    )
  }
  throw new ImportProblem(`${file} is no table of prices: it should hold an object.`)
}

/** What the table says of a deployment: by the model that it says it is, by its full name, by its bare one. */
export function entryOf(table: PriceTable, names: readonly unknown[]): Members | undefined {
  for (const name of names) {
    const entry = typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined
    if (isObject(entry)) return entry
  }
  return undefined
}

/** Its name of a rate a token, and the unit here. */
const RATES = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cachedInput',
  cache_creation_input_token_cost: 'cacheWrite',
  cache_creation_input_token_cost_above_1hr: 'cacheWriteHour',
} as const
const IMAGE = 'output_cost_per_image'
const ABOVE = /^(\w+?)_above_(\d{1,5})k_tokens$/

/** Members that are costs and are read here. */
export function isCost(name: string): boolean {
  const [, base] = ABOVE.exec(name) ?? []
  return name in RATES || name === IMAGE || (base !== undefined && base in RATES)
}

/** 10 and not 10.000000. */
const shortest = (decimal: string) => formatCredits(parseCredits(decimal) ?? 0n)

/** Dollars a token, as LiteLLM says it, into credits a million; one tier up to each bound that a member is named by. */
export function costOf(members: Members, creditsPerDollar: string): ChosenModel['cost'] {
  const rate = (name: string, per: number) => {
    const value = members[name]
    const dollars = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '') ? Number(value) : -1
    return Number.isFinite(dollars) && dollars >= 0
      ? shortest((dollars * per * Number(creditsPerDollar)).toFixed(6))
      : undefined
  }
  const image = rate(IMAGE, 1)
  const bounds = [
    ...new Set(Object.keys(members).flatMap((name) => (isCost(name) ? (ABOVE.exec(name)?.[2] ?? []) : []))),
  ]
    .map(Number)
    .sort((a, b) => a - b)
  const tierAbove = (above: readonly number[]) =>
    Object.fromEntries(
      Object.entries(RATES).flatMap(([name, unit]) => {
        const names = [...above.map((bound) => `${name}_above_${bound}k_tokens`).reverse(), name]
        const found = names.map((one) => rate(one, 1_000_000)).find((one) => one !== undefined)
        return found === undefined ? [] : [[unit, found]]
      }),
    )
  const tiers = [0, ...bounds].map((_, place) => ({
    ...(place < bounds.length ? { upTo: (bounds[place] ?? 0) * 1_000 } : {}),
    ...tierAbove(bounds.slice(0, place)),
    ...(image === undefined ? {} : { image }),
  }))
  const [first = {}] = tiers
  if (Object.keys(first).every((name) => name === 'upTo')) return undefined
  return { unit: 'credits', ...(bounds.length > 0 ? { tokenTierBasis: 'input_tokens' as const } : {}), tiers }
}

/** Whether the table knows a price: nothing at all stands there as zero. */
export function isFree(members: Members): boolean {
  return Object.keys(RATES).every((name) => !members[name]) && !members[IMAGE]
}
