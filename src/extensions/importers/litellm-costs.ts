// Costs that LiteLLM knows: from the deployment, from its `model_info`, and from the price table of its package.

import { createReadStream } from 'node:fs'
import { glob } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import type { PresetModel } from '../../catalog/preset.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { isObject } from '../../kernel/json.ts'
import { type KindName, kindRow } from '../../meter/kind.ts'
import type { ChosenModel } from '../connection/connection.ts'
import { ImportProblem } from './report.ts'

type Members = Readonly<Record<string, unknown>>

/** Entries by model name, with or without the provider as a prefix. */
export type PriceTable = Readonly<Record<string, unknown>>

const TABLE = 'litellm/model_prices_and_context_window_backup.json'
const TABLE_BYTES_MAX = 32 * 1024 * 1024

/** Where Python packages are installed: in environments beside the configuration, for the user, for the machine. */
function packagesNear(file: string | undefined): string[] {
  const places = [...new Set([file === undefined ? '.' : dirname(file), '.'])]
  return [
    ...places.flatMap((place) => ['.venv', 'venv', 'env'].map((name) => join(place, name, 'lib'))),
    join(homedir(), '.local', 'lib'),
    '/usr/local/lib',
    '/usr/lib',
  ].map((lib) => `${lib}/python3*/{site,dist}-packages/${TABLE}`)
}

/** Reads the table from this file; without one, from the installed package nearest to the configuration. */
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
  throw new ImportProblem(`${file} is not a table of prices: it should contain an object.`)
}

/** The table's entry for a deployment, looked up by its base model, its full name, then its bare name. */
export function entryOf(table: PriceTable, names: readonly unknown[]): Members | undefined {
  for (const name of names) {
    const entry = typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined
    if (isObject(entry)) return entry
  }
  return undefined
}

/** LiteLLM's names for rates per token, and our units. */
const RATES = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cachedInput',
  cache_creation_input_token_cost: 'cacheWrite',
  cache_creation_input_token_cost_above_1hr: 'cacheWriteHour',
} as const
const IMAGE = 'output_cost_per_image'
/** For kinds that are priced by it. */
const SOUND = { input_cost_per_second: ['second', 1], input_cost_per_character: ['character', 1_000_000] } as const
const ABOVE = /^(\w+?)_above_(\d{1,5})k_tokens$/

/** Whether a member is a cost that is imported. */
export function isCost(name: string): boolean {
  const [, base] = ABOVE.exec(name) ?? []
  return name in RATES || name in SOUND || name === IMAGE || (base !== undefined && base in RATES)
}

/** Without trailing zeros: 10 and not 10.000000. */
const shortest = (decimal: string) => formatCredits(parseCredits(decimal) ?? 0n)

/** Converts dollars per token to credits per million, with one tier for each threshold in a member's name. */
export function costOf(members: Members, type: KindName, creditsPerDollar: string): ChosenModel['cost'] {
  const rate = (name: string, per: number) => {
    const value = members[name]
    const dollars = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '') ? Number(value) : -1
    return Number.isFinite(dollars) && dollars >= 0
      ? shortest((dollars * per * Number(creditsPerDollar)).toFixed(6))
      : undefined
  }
  const image = rate(IMAGE, 1)
  const units = kindRow(type).priced.flat()
  const sound = Object.entries(SOUND).flatMap(([name, [unit, per]]) => {
    const found = units.includes(unit) ? rate(name, per) : undefined
    return found === undefined ? [] : [[unit, found]]
  })
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
    ...Object.fromEntries(sound),
  }))
  const [first = {}] = tiers
  if (Object.keys(first).every((name) => name === 'upTo')) return undefined
  return { unit: 'credits', ...(bounds.length > 0 ? { tokenTierBasis: 'input_tokens' as const } : {}), tiers }
}

/**
 * The costs of a deployment; where it gives only one of those that every text has, the others are the known ones, as in
 * LiteLLM.
 */
export function withMissing(own: Members, known: Members): Members {
  const given = ['input_cost_per_token', 'output_cost_per_token'].filter((name) => own[name] != null)
  if (given.length !== 1) return own
  return { ...Object.fromEntries(Object.entries(known).filter(([name]) => isCost(name))), ...own }
}

/** A preset's list prices by LiteLLM's names. */
export function listedCosts(usd: PresetModel['usd'] = []): Members {
  return Object.fromEntries(
    usd.flatMap((tier, place) => {
      const above = place === 0 ? '' : `_above_${(usd[place - 1]?.upTo ?? 0) / 1_000}k_tokens`
      return Object.entries(RATES).flatMap(([name, unit]) =>
        tier[unit] === undefined ? [] : [[name + above, Number(formatCredits(tier[unit])) / 1_000_000]],
      )
    }),
  )
}

/** Whether all prices are zero, which in this table means that the price is unknown. */
export function isFree(members: Members): boolean {
  return [...Object.keys({ ...RATES, ...SOUND }), IMAGE].every((name) => !members[name])
}
