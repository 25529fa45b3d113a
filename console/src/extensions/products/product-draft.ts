// A product while it is edited: each operation in the catalog's own form, and its price as text.
import { parseCredits } from '../../credits.ts'
import type { Catalog, ProductInput, ProductOperation } from '../../wire.ts'

export const RATES = ['call', 'row', 'byte', 'metered'] as const
type RateName = (typeof RATES)[number]

export interface OperationDraft {
  id: string
  entry: ProductOperation
  rates: Partial<Record<RateName, string>>
  cacheSeconds: string
}

export type Auth = NonNullable<Catalog['document']['vendors'][string]['auth']>

export interface ProductDraft {
  id: string
  title: string
  description: string
  /** In the catalog; empty: that of the product. */
  vendor: string
  baseUrl: string
  /** Absent: as a bearer token. */
  auth: Auth | undefined
  credential: string
  /** Only as long as the page is open. */
  value: string
  operations: readonly OperationDraft[]
}

export const EMPTY: ProductDraft = {
  id: '',
  title: '',
  description: '',
  vendor: '',
  baseUrl: '',
  auth: undefined,
  credential: '',
  value: '',
  operations: [],
}

export const BLANK: OperationDraft = {
  id: '',
  entry: { title: '', route: 'GET /', vendorPath: '', params: {} },
  rates: {},
  cacheSeconds: '',
}

/** Where its operations are called, so far as it is known. */
export const addressOf = (id: string, rest = '') => ['', 'v1', id.trim() || '…'].join('/') + rest

/** Of one that is sold now. */
export function draftOf(id: string, { document }: Catalog): ProductDraft | undefined {
  const product = document.products?.[id]
  if (!product) return undefined
  const operations = Object.entries(product.operations).map(([name, entry]): OperationDraft => {
    const { pricing, cache } = document.endpoints[`${id}/${name}`] ?? {}
    const [tier] = pricing?.tiers ?? []
    const rates = RATES.flatMap((unit) => (tier?.[unit] === undefined ? [] : [[unit, String(tier[unit])]]))
    return { id: name, entry, rates: Object.fromEntries(rates), cacheSeconds: String(cache?.ttlSeconds ?? '') }
  })
  const vendor = vendorOf(id, document) ?? id
  const { baseUrl = '', auth, credential = '' } = document.vendors[vendor] ?? {}
  const { title, description = '' } = product
  return { id, title, description, vendor, baseUrl, auth, credential, value: '', operations }
}

/** Where the first route of its operations leads. */
export function vendorOf(id: string, { products, endpoints }: Catalog['document']): string | undefined {
  const names = Object.keys(products?.[id]?.operations ?? {})
  return names.flatMap((name) => endpoints[`${id}/${name}`]?.routes ?? [])[0]?.vendor
}

/** As the server takes it. */
export function inputOf(draft: ProductDraft): ProductInput {
  const { id, title, description, vendor, baseUrl, auth, credential, value, operations } = draft
  const priced = operations.flatMap(({ id: name, rates, cacheSeconds }) => {
    const given = Object.entries(rates).filter(([, rate]) => rate.trim() !== '')
    if (given.length === 0) return []
    const cache = cacheSeconds.trim() === '' ? {} : { cacheSeconds: Number(cacheSeconds) }
    return [[name, { rates: Object.fromEntries(given), ...cache }] as const]
  })
  return {
    id: id.trim(),
    description,
    ...(title.trim() ? { title: title.trim() } : {}),
    entries: Object.fromEntries(operations.map(({ id: name, entry }) => [name, entry])),
    prices: Object.fromEntries(priced),
    vendor: {
      ...(vendor.trim() ? { name: vendor.trim() } : {}),
      ...(baseUrl.trim() ? { baseUrl: baseUrl.trim() } : {}),
      ...(auth ? { auth } : {}),
      credential: {
        ...(credential.trim() ? { name: credential.trim() } : {}),
        ...(value.trim() ? { value: value.trim() } : {}),
      },
    },
  }
}

/** What is wrong with an operation, by the place within it. */
export function problemsOf(problems: readonly string[], product: string, operation: string) {
  const places = [`products.${product}.operations.${operation}.`, `endpoints.${product}/${operation}.`]
  return problems.flatMap((line) => {
    const begin = places.find((one) => line.startsWith(one))
    if (begin === undefined) return []
    const rest = line.slice(begin.length)
    const at = rest.indexOf(': ')
    return [{ path: rest.slice(0, at), message: rest.slice(at + 2) }]
  })
}

const BYTES_PER_RATE = 1_000_000n

/**
 * What is held for a call at most, in millionths of a credit; undefined: a rate is no amount, or what it counts has no
 * bound.
 */
export function mostOf(
  { rates, entry }: Pick<OperationDraft, 'rates' | 'entry'>,
  bounds: Readonly<Record<string, number>>,
) {
  const counts = { call: 1n, row: bounds.row, metered: bounds.metered, byte: entry.bytesMax }
  let sum = 0n
  for (const unit of RATES) {
    const text = rates[unit]?.trim()
    if (!text) continue
    const [rate, count] = [parseCredits(text), counts[unit]]
    if (rate === undefined || count === undefined) return undefined
    const whole = rate * BigInt(count)
    sum += unit === 'byte' ? (whole + BYTES_PER_RATE - 1n) / BYTES_PER_RATE : whole
  }
  return sum
}
