// Updates of list prices: compares the catalog with the table of this release, or with the operator's own; the chosen
// rows become one catalog version.
import * as z from 'zod'
import { readPresets } from '../../catalog/preset.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { appliedView } from '../../catalog/views.ts'
import { invalid } from '../../kernel/fault.ts'
import { type Resource, requireRight, resource, text } from '../../operator/resource.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import {
  comparePrices,
  type PriceTable,
  PriceTableProblem,
  type Proof,
  readPriceTable,
  shippedTable,
  TABLE_BYTES_MAX,
  withPrices,
} from './price-table.ts'
import { type PriceComparisonView, priceComparisonView } from './views.ts'

export interface PriceDeps {
  readonly catalog: CatalogStore
  readonly guard: Pick<GuardedFetch, 'request'>
}

const NOTE = 'price table of '
const FETCH_MS = 20_000

const source = z.strictObject({
  /** The table itself. */
  table: z.string().max(TABLE_BYTES_MAX).optional(),
  /** Or a public https address of it; its signature is at the same address with `.sig` behind. */
  url: z
    .url({ protocol: /^https$/ })
    .max(2000)
    .optional(),
  /** Ed25519, in base64; with `table`. */
  signature: text(200).optional(),
  /** Of the operator's own key, as PEM or base64. Absent: the keys of releases. */
  publicKey: z.string().max(1000).optional(),
  /** Instead of a signature. */
  sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal digits')
    .optional(),
})
type Source = z.output<typeof source>

export function priceResources({ catalog, guard }: PriceDeps): Resource[] {
  async function compared(given: Source): Promise<PriceComparisonView> {
    const table = await tableOf(given, guard)
    const rows = comparePrices(catalog.current.input, table, await readPresets())
    const warnings = await warningsOf(table)
    const proof = given.sha256 !== undefined ? 'digest' : given.publicKey !== undefined ? 'key' : 'release'
    // If the table is older than another one, nothing is preselected: the operator chooses each row.
    const shown = warnings.length > 0 ? rows.map((one) => ({ ...one, preselected: false })) : rows
    return { made: table.made, proof, warnings, rows: shown }
  }

  async function warningsOf({ made }: PriceTable): Promise<string[]> {
    const applied = (await catalog.versions())
      .flatMap(({ note }) => (note.startsWith(NOTE) ? note.slice(NOTE.length, NOTE.length + 10) : []))
      .sort()
      .at(-1)
    const shipped = (await shippedTable()).made
    return [
      ...(applied !== undefined && applied > made ? [`A newer table, of ${applied}, was applied before.`] : []),
      ...(shipped > made ? [`The table of this release, of ${shipped}, is newer.`] : []),
    ]
  }

  return [
    resource('POST /prices/compare', 'catalog:read', {
      title: 'Compare costs with a table of list prices',
      body: source,
      bodyBytesMax: 2 * TABLE_BYTES_MAX,
      answer: priceComparisonView,
      run({ body, actor }) {
        // With the right to read alone, nobody can make the gateway send requests.
        if (body.url !== undefined) requireRight(actor, 'catalog:write')
        return said(() => compared(body))
      },
    }),
    resource('POST /prices', 'catalog:write', {
      title: 'Apply list prices',
      body: source.extend({ rows: z.array(text(310)).min(1).max(5_000) }),
      bodyBytesMax: 2 * TABLE_BYTES_MAX,
      answer: appliedView,
      run: ({ body: { rows: ids, ...given }, by }) =>
        said(async () => {
          const table = await tableOf(given, guard)
          const presets = await readPresets()
          return catalog.amend(
            (current) => withPrices(current, comparePrices(current, table, presets), { ids, presets }),
            by,
            `${NOTE}${table.made}`,
          )
        }),
    }),
  ]
}

async function said<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw error instanceof PriceTableProblem ? invalid(error.message) : error
  }
}

async function tableOf(given: Source, guard: PriceDeps['guard']): Promise<PriceTable> {
  const { table, url, publicKey, signature, sha256 } = given
  if (table === undefined && url === undefined) return shippedTable()
  if (table !== undefined && url !== undefined)
    throw invalid('"table" and "url" are alternatives; send only one of them.', 'url')
  const bytes = url === undefined ? Buffer.from(table ?? '') : await fetched(url, TABLE_BYTES_MAX, guard)
  if (sha256 !== undefined) return readPriceTable(bytes, { sha256 })
  const proof = signature ?? (url === undefined ? undefined : (await fetched(`${url}.sig`, 1_000, guard)).toString())
  if (proof === undefined) throw invalid('A table needs its "signature" or its "sha256".', 'signature')
  return readPriceTable(bytes, { signature: proof, publicKey } satisfies Proof)
}

async function fetched(url: string, bytesMax: number, guard: PriceDeps['guard']): Promise<Buffer> {
  const call = { method: 'GET' as const, url, headers: { accept: 'application/json' } }
  const { status, body } = await guard.request(call, { bytesMax, signal: AbortSignal.timeout(FETCH_MS) })
  if (status !== 200) throw invalid(`${new URL(url).host} answered ${status}.`, 'url')
  return body
}
