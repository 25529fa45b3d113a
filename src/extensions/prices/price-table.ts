// Tables of list prices: read from signed bytes, and compared with the catalog. A cost in the catalog counts as a list
// price if it is a current or earlier list price of the table times one factor; any other cost was set manually.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import type { CatalogInput } from '../../catalog/document.ts'
import type { Preset } from '../../catalog/preset.ts'
import { isSandbox } from '../../catalog/simulated.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { jsonIn } from '../../kernel/json.ts'
import { KIND_NAMES, UNIT_NAMES } from '../../meter/kind.ts'
import { tier } from '../../meter/price.ts'
import { listPrice, type PricingInput, scaled, withConnection } from '../connection/connection.ts'
import type { PriceComparisonView } from './views.ts'

/** Of the keys with which tables of releases are signed: Ed25519, as SPKI in base64. */
const RELEASE_KEYS: readonly string[] = ['MCowBQYDK2VwAyEAJBIryYrPgM/XOH+3D/IMgg+NSpzYQIsKVUt7RgGK9jI=']

export const TABLE_BYTES_MAX = 4 * 1024 * 1024
const ROWS_MAX = 20_000
const TABLE = join(import.meta.dirname, 'price-table.json')

const usd = z.array(tier).min(1).max(50)
const row = z.object({
  type: z.enum(KIND_NAMES),
  usd,
  noted: z.iso.date(),
  from: z.string().max(500),
  /** Earlier list prices, the latest first. */
  earlier: z.array(usd).max(50).default([]),
  /** The day on which its vendor stops offering it. */
  deprecated: z.iso.date().optional(),
})
type PriceTableRow = z.output<typeof row>

const table = z.object({
  format: z.literal(1),
  made: z.iso.date(),
  /** By preset and model name. Each row is parsed separately, so that an error names its row. */
  vendors: z.record(z.string().max(100), z.record(z.string().max(200), z.unknown())),
})

export interface PriceTable {
  readonly made: string
  readonly vendors: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export class PriceTableProblem extends Error {}

/** How a table is authenticated. */
export type Proof =
  | { readonly signature: string; readonly publicKey?: string | undefined }
  | { readonly sha256: string }

/** Throws a PriceTableProblem if the signature or digest is wrong, or the bytes are not a table. */
export function readPriceTable(bytes: Buffer, proof: Proof): PriceTable {
  if (bytes.length > TABLE_BYTES_MAX) throw new PriceTableProblem('The table is larger than 4 MB.')
  if (!isProved(bytes, proof))
    throw new PriceTableProblem(
      'sha256' in proof
        ? 'The table has another digest than the one that was given.'
        : 'The signature of the table is not that of the key.',
    )
  const value = jsonIn(bytes.toString('utf8'))
  if (value === undefined) throw new PriceTableProblem('The table is not JSON.')
  const read = table.safeParse(value)
  if (!read.success) throw new PriceTableProblem('The file is not a table of list prices.')
  const rows = Object.values(read.data.vendors).reduce((sum, models) => sum + Object.keys(models).length, 0)
  if (rows > ROWS_MAX) throw new PriceTableProblem(`The table has more than ${ROWS_MAX} rows.`)
  return read.data
}

function isProved(bytes: Buffer, proof: Proof): boolean {
  if ('sha256' in proof) return createHash('sha256').update(bytes).digest('hex') === proof.sha256.toLowerCase()
  const keys = proof.publicKey === undefined ? RELEASE_KEYS : [proof.publicKey]
  const signature = Buffer.from(proof.signature.trim(), 'base64')
  return keys.some((key) => {
    try {
      const der = Buffer.from(key.replaceAll(/-----[A-Z ]{1,40}-----|\s/g, ''), 'base64')
      const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
      return publicKey.asymmetricKeyType === 'ed25519' && verify(null, bytes, publicKey, signature)
    } catch {
      return false
    }
  })
}

/** The table of this release. */
export async function shippedTable(): Promise<PriceTable> {
  const [bytes, signature] = await Promise.all([readFile(TABLE), readFile(`${TABLE}.sig`, 'utf8')])
  return readPriceTable(bytes, { signature })
}

type Compared = PriceComparisonView['rows'][number]
/** A rate that changes by more than this factor is not preselected: a person must check it. */
const TIMES_MAX = 10n

export function comparePrices(document: CatalogInput, { vendors }: PriceTable, presets: readonly Preset[]): Compared[] {
  const known = Object.entries(document.vendors).flatMap(([vendor, { baseUrl }]) => {
    const name = isSandbox(baseUrl) ? undefined : presetNameOf(vendor, baseUrl, presets)
    const listed = name === undefined || !Object.hasOwn(vendors, name) ? undefined : vendors[name]
    return listed ? [{ vendor, listed, times: timesOf(document, vendor, listed) }] : []
  })
  const all = known.flatMap(({ times }) => times)
  return known.flatMap(({ vendor, listed, times }) =>
    comparedVendor(document, vendor, listed, mostOften(times, all) ?? '100'),
  )
}

type Listed = Readonly<Record<string, unknown>>

/**
 * The factors (credits per dollar) that could explain each cost of the vendor, for each list price of the model. One
 * cost alone is ambiguous: a list price that falls by a fifth looks like 125 credits per dollar instead of 100.
 */
function timesOf(document: CatalogInput, vendor: string, listed: Listed): string[] {
  return Object.entries(document.models).flatMap(([uid, { routes }]) =>
    routes
      .filter((route) => route.vendor === vendor && route.cost)
      .flatMap((route) => {
        const found = row.safeParse(listed[route.model ?? uid])
        const lists = found.success ? [found.data.usd, ...found.data.earlier] : []
        const times = lists.flatMap((usd) => {
          const dollars = listPrice({ usd }, '1')
          return (dollars && route.cost && factorOf(dollars, route.cost)) ?? []
        })
        return [...new Set(times)]
      }),
  )
}

/** The factor that explains the most costs of the vendor, then of the catalog, then the default of 100. */
function mostOften(own: readonly string[], all: readonly string[]): string | undefined {
  const count = (list: readonly string[], times: string) => list.filter((one) => one === times).length
  const score = (times: string) => [count(own, times), count(all, times), times === '100' ? 1 : 0] as const
  return [...new Set(own)].sort((a, b) => {
    const [x, y] = [score(a), score(b)]
    return y[0] - x[0] || y[1] - x[1] || y[2] - x[2]
  })[0]
}

/** By its address, or by its name where the address has variables. */
function presetNameOf(vendor: string, baseUrl: string, presets: readonly Preset[]): string | undefined {
  const bare = baseUrl.replace(/(?<!\/)\/+$/, '')
  const found = presets.find((preset) => preset.vendor.baseUrl === bare)
  return (found ?? presets.find(({ name }) => name === vendor))?.name
}

function comparedVendor(document: CatalogInput, vendor: string, listed: Listed, times: string): Compared[] {
  const rows: Compared[] = []
  const seen = new Set<string>()
  for (const [uid, { routes, pricing }] of Object.entries(document.models))
    for (const route of routes) {
      const model = route.model ?? uid
      if (route.vendor !== vendor || seen.has(model)) continue
      seen.add(model)
      const about = { id: `${vendor}/${model}`, vendor, model, uid, before: route.cost ?? null }
      const found = Object.hasOwn(listed, model) ? row.safeParse(listed[model]) : undefined
      rows.push(...comparedRow(about, found, { pricing, times }))
    }
  const fresh = Object.entries(listed).filter(([model]) => !seen.has(model))
  return [...rows, ...fresh.map(([model, value]) => newRow({ vendor, model, times }, row.safeParse(value)))]
}

const NONE = { after: null, price: null, noted: null, from: null, byHand: false, selectable: false, preselected: false }
type About = Pick<Compared, 'id' | 'vendor' | 'model' | 'uid' | 'before'>
type ParsedPriceRow = z.ZodSafeParseResult<PriceTableRow> | undefined

/** `times`: credits a dollar. */
type Priced = { readonly pricing: PricingInput; readonly times: string }

function comparedRow(about: About, found: ParsedPriceRow, { pricing, times }: Priced): Compared[] {
  if (!found) return [{ ...about, ...NONE, kind: 'gone', notes: ['The table does not list it any more.'] }]
  if (!found.success) return [unreadable(about)]
  const { usd, earlier, noted, from, deprecated } = found.data
  const after = listPrice({ usd }, times) ?? null
  const notice = `Its vendor stops offering it on ${deprecated}.`
  const end: Compared = { ...about, ...NONE, noted, from, kind: 'deprecated', notes: [notice] }
  const ends = deprecated === undefined ? [] : [end]
  if (isSamePrice(about.before, after)) return ends

  const isOfList = earlier.some((list) => isSamePrice(about.before, listPrice({ usd: list }, times) ?? null))
  const byHand = about.before !== null && !isOfList
  const markup = about.before === null ? undefined : factorOf(about.before, pricing)
  const price = after !== null && markup !== undefined && !byHand ? scaled(after, markup) : null
  const notes = [
    ...(byHand ? ['The cost was set by hand.'] : []),
    ...(price === null && about.before !== null && !byHand ? ['The price was set by hand and stays.'] : []),
    ...jumpsOf(about.before, after),
  ]
  const preselected = !byHand && jumpsOf(about.before, after).length === 0
  return [
    ...ends,
    { ...about, after, price, noted, from, byHand, kind: 'changed', notes, selectable: true, preselected },
  ]
}

function newRow(
  { vendor, model, times }: { vendor: string; model: string; times: string },
  found: z.ZodSafeParseResult<PriceTableRow>,
): Compared {
  const about = { id: `${vendor}/${model}`, vendor, model, uid: null, before: null }
  if (!found.success) return unreadable(about)
  const { usd, noted, from, deprecated } = found.data
  const after = listPrice({ usd }, times) ?? null
  const notes = ['It is sold at cost unless you set a price.', ...(deprecated ? [`It ends on ${deprecated}.`] : [])]
  return { ...about, ...NONE, after, noted, from, kind: 'new', notes, selectable: true }
}

const unreadable = (about: About): Compared => ({
  ...about,
  ...NONE,
  kind: 'unreadable',
  notes: ['Its row in the table is not a valid price: it is negative, too large or incomplete.'],
})

const ONE = 1_000_000n

/** The factor by which all rates of `from` become those of `to`. */
function factorOf(from: PricingInput, to: PricingInput): string | undefined {
  const [a, b] = [ratesOf(from), ratesOf(to)]
  const [name, largest] = [...a].sort(([, x], [, y]) => (x < y ? 1 : -1))[0] ?? ['', 0n]
  const other = b.get(name)
  if (largest === 0n || other === undefined) return isSamePrice(from, to) ? '1' : undefined
  const near = (other * ONE) / largest
  // Rates are rounded up, so the factor may be slightly smaller than their ratio.
  return [near, near - 1n, near + 1n, ((near + 5_000n) / 10_000n) * 10_000n]
    .filter((factor) => factor > 0n)
    .map(formatCredits)
    .find((factor) => isSamePrice(scaled(from, factor), to))
}

function ratesOf({ tiers }: PricingInput): Map<string, bigint> {
  const rates = tiers.flatMap((one) =>
    UNIT_NAMES.flatMap((unit) => {
      const place = `${one.upTo ?? ''} ${JSON.stringify(one.when ?? {})} ${unit}`
      return one[unit] === undefined ? [] : [[place, parseCredits(one[unit]) ?? 0n] as const]
    }),
  )
  return new Map(rates)
}

function isSamePrice(a: PricingInput | null, b: PricingInput | null): boolean {
  if (!a || !b) return a === b
  const [x, y] = [ratesOf(a), ratesOf(b)]
  return x.size === y.size && [...x].every(([place, rate]) => y.get(place) === rate)
}

function jumpsOf(before: PricingInput | null, after: PricingInput | null): string[] {
  if (!before || !after) return []
  const now = ratesOf(after)
  const jumps = [...ratesOf(before)].filter(([place, was]) => {
    const is = now.get(place) ?? was
    return is > was * TIMES_MAX || is * TIMES_MAX < was
  })
  return jumps.length > 0 ? ['A rate changes more than tenfold: look at it first.'] : []
}

/** The catalog with the chosen rows. Unknown or outdated rows are a problem. */
export function withPrices(
  document: CatalogInput,
  rows: readonly Compared[],
  { ids, presets }: { ids: readonly string[]; presets: readonly Preset[] },
): CatalogInput {
  const chosen = ids.map((id) => {
    const found = rows.find((one) => one.id === id && one.selectable)
    if (!found) throw new PriceTableProblem(`"${id}" is nothing that the table would change.`)
    return found
  })
  return chosen.reduce((made, one) => (one.uid === null ? withNew(made, one, presets) : withCost(made, one)), document)
}

function withCost(document: CatalogInput, { uid, vendor, model, after, price }: Compared): CatalogInput {
  const product = uid === null ? undefined : document.models[uid]
  if (!product || uid === null || !after) return document
  const routes = product.routes.map((route) =>
    route.vendor === vendor && (route.model ?? uid) === model ? { ...route, cost: after } : route,
  )
  const changed = { ...product, routes, pricing: price ?? product.pricing }
  return { ...document, models: { ...document.models, [uid]: changed } }
}

function withNew(document: CatalogInput, { vendor, model, after }: Compared, presets: readonly Preset[]): CatalogInput {
  const entry = document.vendors[vendor]
  const preset = entry && presets.find(({ name }) => name === presetNameOf(vendor, entry.baseUrl, presets))
  if (!entry || !preset || !after) throw new PriceTableProblem(`"${vendor}" is not a vendor that the table knows.`)
  const made = withConnection(document, {
    vendorName: vendor,
    vendor: entry,
    preset,
    formats: preset.formats,
    creditsPerDollar: '100',
    models: [{ model, cost: after }],
  })
  const [problem] = made.problems
  if (problem !== undefined) throw new PriceTableProblem(problem)
  return made.document
}
