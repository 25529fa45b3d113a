// Usage in the columns of FOCUS 1.2, the FinOps Foundation's specification of cost and usage data. A row is an
// account's usage of a product in a day by one key and vendor. Rows are summed within a page of calls, so several rows
// may have the same dimensions; their sum is right.

import type { CatalogStore } from '../../catalog/store.ts'
import { type Queryable, type Statement, sql } from '../../database/database.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import { DAY_MS, dayOfMs, monthStart } from '../../kernel/calendar.ts'
import { formatCredits } from '../../kernel/credits.ts'
import type { KindName } from '../../meter/kind.ts'
import type { CreditWorth } from '../../reports/views.ts'
import { quantitiesOf, type UsageRow } from './usage-rows.ts'

type Cell = string | number | null

/** In the order of the file. Columns with `x_` are custom columns, named as the specification requires. */
export const FOCUS_COLUMNS = {
  BilledCost: 'number',
  BillingAccountId: 'text',
  BillingAccountName: 'text',
  BillingAccountType: 'text',
  BillingCurrency: 'text',
  BillingPeriodEnd: 'text',
  BillingPeriodStart: 'text',
  ChargeCategory: 'text',
  ChargeClass: 'text',
  ChargeDescription: 'text',
  ChargeFrequency: 'text',
  ChargePeriodEnd: 'text',
  ChargePeriodStart: 'text',
  ConsumedQuantity: 'number',
  ConsumedUnit: 'text',
  ContractedCost: 'number',
  ContractedUnitPrice: 'number',
  EffectiveCost: 'number',
  InvoiceIssuerName: 'text',
  ListCost: 'number',
  ListUnitPrice: 'number',
  PricingCategory: 'text',
  PricingCurrency: 'text',
  PricingCurrencyContractedUnitPrice: 'number',
  PricingCurrencyEffectiveCost: 'number',
  PricingCurrencyListUnitPrice: 'number',
  PricingQuantity: 'number',
  PricingUnit: 'text',
  ProviderName: 'text',
  PublisherName: 'text',
  RegionId: 'text',
  RegionName: 'text',
  ResourceId: 'text',
  ResourceName: 'text',
  ResourceType: 'text',
  ServiceCategory: 'text',
  ServiceName: 'text',
  ServiceSubcategory: 'text',
  SkuId: 'text',
  SkuMeter: 'text',
  SkuPriceDetails: 'text',
  SkuPriceId: 'text',
  SubAccountId: 'text',
  SubAccountName: 'text',
  Tags: 'text',
  x_Calls: 'number',
  x_Endpoint: 'text',
  x_InputTokens: 'number',
  x_OutputTokens: 'number',
  x_Vendor: 'text',
  x_VendorCost: 'number',
} as const satisfies Record<string, 'text' | 'number'>
type FocusColumn = keyof typeof FOCUS_COLUMNS
export const FOCUS_NAMES = Object.keys(FOCUS_COLUMNS) as FocusColumn[] // its own names
export type FocusRow = Readonly<Record<FocusColumn, Cell>>

/** Names of accounts, keys and products, and the issuer of invoices. */
export interface FocusNames {
  readonly provider: string
  readonly accounts: ReadonlyMap<string, string>
  readonly keys: ReadonlyMap<string, string>
  /** Names of products, by the catalog version of the call. */
  readonly kinds: ReadonlyMap<string, KindName>
}

interface Group {
  readonly row: UsageRow
  readonly day: number
  calls: number
  charged: bigint
  cost: bigint | null
  inputTokens: number
  outputTokens: number
}

const ACCOUNTS = sql('focus_accounts')`select id, name from account where id = any($1)`
const KEYS = sql('focus_keys')`select id, name from api_key where id = any($1)`

export interface FocusSources {
  readonly database: Queryable
  readonly branding: Pick<Branding, 'get'>
  readonly catalog: Pick<CatalogStore, 'at' | 'current'>
}

const skuOf = (product: string, version: number) => `${product}@${version}`

/** From the lists of the specification. */
function serviceOf(product: string, kind: KindName): { ServiceCategory: string; ServiceSubcategory: string } {
  if (kind !== 'data')
    return { ServiceCategory: 'AI and Machine Learning', ServiceSubcategory: UNDERSTANDING[kind] ?? 'Generative AI' }
  return /^(?:socialapi$|siteanalytics\/)/.test(product)
    ? { ServiceCategory: 'Analytics', ServiceSubcategory: 'Other (Analytics)' }
    : { ServiceCategory: 'Other', ServiceSubcategory: 'Other (Other)' }
}

/** Kinds that generate no content. */
const UNDERSTANDING: { readonly [K in KindName]?: string } = {
  embedding: 'Natural Language Processing',
  rerank: 'Natural Language Processing',
  moderation: 'Natural Language Processing',
  transcription: 'Natural Language Processing',
}

/** Reads the names for the rows of one file. The specification requires names where they exist. */
export async function readFocusNames(
  { database: on, branding, catalog }: FocusSources,
  rows: readonly UsageRow[],
): Promise<FocusNames> {
  const named = async (sql: Statement, ids: readonly string[]) => {
    const found = await on.query<{ id: string; name: string }>(sql, [[...new Set(ids)]])
    return new Map(found.map(({ id, name }) => [id, name]))
  }
  const kinds = new Map<string, KindName>()
  for (const { product, catalog_version: version } of rows) {
    if (kinds.has(skuOf(product, version))) continue
    // An account that was moved from another database may refer to catalog versions that are not stored here.
    const { models } = (await catalog.at(version).catch(() => catalog.current)).document
    kinds.set(skuOf(product, version), (Object.hasOwn(models, product) && models[product]?.type) || 'data')
  }
  return {
    provider: branding.get().name,
    kinds,
    accounts: await named(
      ACCOUNTS,
      rows.map(({ account_id: id }) => id),
    ),
    keys: await named(
      KEYS,
      rows.map(({ key_id: id }) => id),
    ),
  }
}

export function focusRows(rows: readonly UsageRow[], worth: CreditWorth, names: FocusNames): FocusRow[] {
  const groups = new Map<string, Group>()
  for (const row of rows) {
    const day = dayOfMs(row.at.getTime())
    const key = JSON.stringify([
      day,
      row.account_id,
      row.key_id,
      row.product,
      row.endpoint,
      row.vendor,
      row.catalog_version,
      row.labels,
    ])
    let group = groups.get(key)
    if (!group) {
      group = { row, day, calls: 0, charged: 0n, cost: null, inputTokens: 0, outputTokens: 0 }
      groups.set(key, group)
    }
    const { inputTokens, outputTokens } = quantitiesOf(row)
    group.calls += 1
    group.charged += row.charged
    if (row.cost !== null) group.cost = (group.cost ?? 0n) + row.cost
    group.inputTokens += inputTokens
    group.outputTokens += outputTokens
  }
  return [...groups.values()].map((group) => focusRow(group, worth, names))
}

function focusRow(group: Group, { currency, rate }: CreditWorth, names: FocusNames): FocusRow {
  const { row, day, calls, charged, cost, inputTokens, outputTokens } = group
  const at = (of: number) => new Date(of * DAY_MS).toISOString().replace('.000Z', 'Z')
  const tokens = inputTokens + outputTokens
  const credits = formatCredits(charged)
  const money = worthOf(charged, rate)
  return {
    BilledCost: money,
    ContractedCost: money,
    EffectiveCost: money,
    ListCost: money,
    BillingAccountId: row.account_id,
    BillingAccountType: 'Account',
    BillingAccountName: names.accounts.get(row.account_id) ?? null,
    BillingCurrency: currency,
    BillingPeriodStart: at(monthStart(day)),
    BillingPeriodEnd: at(monthStart(day, 1)),
    ChargeCategory: 'Usage',
    ChargeClass: null,
    ChargeFrequency: 'Usage-Based',
    ChargeDescription: `Calls of ${row.product}`,
    ChargePeriodStart: at(day),
    ChargePeriodEnd: at(day + 1),
    ...(tokens > 0
      ? { ConsumedQuantity: tokens, ConsumedUnit: 'Tokens' }
      : { ConsumedQuantity: calls, ConsumedUnit: 'Requests' }),
    ContractedUnitPrice: rate,
    ListUnitPrice: rate,
    PricingCategory: 'Standard',
    PricingCurrency: 'Credits',
    PricingQuantity: credits,
    PricingUnit: 'Credits',
    PricingCurrencyContractedUnitPrice: 1,
    PricingCurrencyListUnitPrice: 1,
    PricingCurrencyEffectiveCost: credits,
    InvoiceIssuerName: names.provider,
    ProviderName: names.provider,
    PublisherName: names.provider,
    RegionId: null,
    RegionName: null,
    ResourceId: row.key_id,
    ResourceName: names.keys.get(row.key_id) ?? null,
    ResourceType: 'API key',
    ...serviceOf(row.product, names.kinds.get(skuOf(row.product, row.catalog_version)) ?? 'data'),
    ServiceName: row.product,
    SkuId: row.product,
    SkuMeter: tokens > 0 ? 'Tokens' : 'Requests',
    SkuPriceDetails: JSON.stringify({ x_CatalogVersion: String(row.catalog_version) }),
    SkuPriceId: skuOf(row.product, row.catalog_version),
    SubAccountId: null,
    SubAccountName: null,
    Tags: JSON.stringify(row.labels ?? {}),
    x_Calls: calls,
    x_Endpoint: row.endpoint,
    x_InputTokens: inputTokens,
    x_OutputTokens: outputTokens,
    x_Vendor: row.vendor,
    x_VendorCost: cost === null ? null : worthOf(cost, rate),
  }
}

/** Exact, because the sums of a file must equal those of the ledger. */
function worthOf(amount: bigint, rate: string): string {
  const [whole = '', fraction = ''] = rate.split('.')
  const digits = 6 + fraction.length
  const product = amount * BigInt(whole + fraction)
  const text = (product < 0n ? -product : product).toString().padStart(digits + 1, '0')
  const decimals = text.slice(-digits).replace(/(?<!0)0+$/, '')
  return `${product < 0n ? '-' : ''}${text.slice(0, -digits)}${decimals ? `.${decimals}` : ''}`
}
