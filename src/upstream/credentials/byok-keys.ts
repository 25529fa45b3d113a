// BYOK: vendor keys that accounts bring themselves. They are sealed in the database, read by account, and used for
// calls of their own account only. Such a call costs a fee from the catalog instead of the price.

import type { CatalogDocument, Route } from '../../catalog/document.ts'
import type { Catalog, Product } from '../../catalog/store.ts'
import { originsOf } from '../../catalog/vendor-edit.ts'
import type { Audit, By } from '../../database/audit.ts'
import { openByAccount } from '../../database/by-account.ts'
import type { Changes } from '../../database/changes.ts'
import { type Database, sql } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import { type Secrets, seal, unseal } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'
import { type ByokFee, feePricing, type Pricing } from '../../meter/price.ts'

/** Which BYOK keys a call of an account may use, and at which price. */
export interface OwnUse {
  /** By vendor. */
  readonly vendors: ReadonlyMap<string, { readonly secret: string; readonly pricing: Pricing }>
  /** Whether the account allows the gateway's own credentials, at the full price, if its keys fail. */
  readonly fallback: boolean
  /** Every price that the call may end up with; the hold covers each of them. */
  readonly prices: readonly Pricing[]
}

interface StoredByokKey {
  readonly vendor: string
  readonly last4: string | null
  readonly fallback: boolean
  /** The vendor's origins when the key was stored, that of a login included; the key is sent nowhere else. */
  readonly origin: string | null
  readonly updatedAt: Date
}

type Sold = Pick<Product, 'pricing' | 'byokFee'>

/** The keys of one account. */
export interface OwnKeys {
  /**
   * Undefined: the account has no key for the vendors of these routes, or the catalog allows none there. Throws
   * byok_key_rejected if a key can no longer be read and the account does not allow the fallback.
   */
  use(product: Sold, catalog: Catalog, routes: readonly Pick<Route, 'vendor'>[]): OwnUse | undefined
}

export type ByokKeys = Awaited<ReturnType<typeof openByokKeys>>

interface ByokKeyRow {
  readonly account_id: string
  readonly vendor: string
  readonly sealed: Buffer
  readonly fallback: boolean
  readonly origin: string | null
}

/** The key is decrypted at first use, because most accounts are idle most of the time. */
interface Kept extends ByokKeyRow {
  secret?: string | undefined
}

const READ = sql('byok_key_read')`
  select account_id, vendor, sealed, fallback, origin from byok_key where account_id = $1`
const LIST = sql('byok_key_list')`
  select vendor, last4, fallback, origin, updated_at from byok_key where account_id = $1 order by vendor`
const STORE = sql('byok_key_store')`
  insert into byok_key (account_id, vendor, sealed, last4, fallback, origin) values ($1, $2, $3, $4, $5, $6)
   on conflict (account_id, vendor) do update
   set sealed = excluded.sealed, last4 = excluded.last4, fallback = excluded.fallback, origin = excluded.origin, updated_at = now()`
const FALLBACK = sql('byok_key_fallback')`
  with old as (select fallback from byok_key where account_id = $1 and vendor = $2 for update)
   update byok_key set fallback = $3 where account_id = $1 and vendor = $2 returning (select fallback from old) as was`
const REMOVE = sql('byok_key_remove')`delete from byok_key where account_id = $1 and vendor = $2 returning vendor`

export async function openByokKeys(options: {
  database: Database
  changes: Changes
  world: World
  audit: Audit
  secrets: Secrets
}) {
  const { database, changes, world, audit } = options
  const key = options.secrets.key('own-key')
  const byAccount = await openByAccount<OwnKeys>(options, {
    topic: 'byok-keys',
    TABLE: 'byok_key',
    ACCOUNT: 'account_id',
    async read(account) {
      const own = new Map((await database.query<Kept>(READ, [account])).map((row) => [row.vendor, row]))
      return {
        use(product, { document, simulated }, routes) {
          if (simulated) return undefined
          const rows = [...new Set(routes.map(({ vendor }) => vendor))].flatMap((vendor) => own.get(vendor) ?? [])
          return useOf(rows, product, document, secretOf)
        },
      }
    },
  })

  function secretOf(row: Kept): string | undefined {
    row.secret ??= unseal(key, placeOf(row.account_id, row.vendor), row.sealed)
    return row.secret
  }

  return {
    ...byAccount,
    async list(account: string): Promise<StoredByokKey[]> {
      const rows = await database.query<Omit<StoredByokKey, 'updatedAt'> & { updated_at: Date }>(LIST, [account])
      return rows.map(({ updated_at: updatedAt, ...row }) => ({ ...row, updatedAt }))
    },
    async store(
      account: string,
      { vendor, value, fallback, origin }: { vendor: string; value: string; fallback: boolean; origin: string },
      by: By,
    ): Promise<void> {
      await database.transaction(async (tx) => {
        const sealed = seal(key, placeOf(account, vendor), value, world)
        await tx.query(STORE, [account, vendor, sealed, shownEnd(value), fallback, origin])
        await audit.write(tx, by, {
          action: 'byok-key.store',
          object: account,
          detail: { vendor, fallback, origin },
          before: {},
          after: { fallback, origin },
        })
      })
      await changes.notice('byok-keys')
    },
    /** Returns false if there is no such key. */
    async allowFallback(account: string, { vendor, fallback }: { vendor: string; fallback: boolean }, by: By) {
      const found = await database.transaction(async (tx) => {
        const [row] = await tx.query<{ was: boolean }>(FALLBACK, [account, vendor, fallback])
        if (!row) return false
        await audit.write(tx, by, {
          action: 'byok-key.change',
          object: account,
          detail: { vendor, fallback },
          before: { fallback: row.was },
          after: { fallback },
        })
        return true
      })
      await changes.notice('byok-keys')
      return found
    },
    async remove(account: string, vendor: string, by: By): Promise<boolean> {
      const found = await database.transaction(async (tx) => {
        const [row] = await tx.query(REMOVE, [account, vendor])
        if (!row) return false
        await audit.write(tx, by, {
          action: 'byok-key.remove',
          object: account,
          detail: { vendor },
          before: { stored: true },
          after: { stored: false },
        })
        return true
      })
      await changes.notice('byok-keys')
      return found
    },
  }
}

/** The catalog's fee for calls with a BYOK key; undefined: the catalog allows none there. */
export function byokFeeOf(
  { byokFee }: Pick<Product, 'byokFee'>,
  vendor: string,
  { vendors }: CatalogDocument,
): ByokFee | undefined {
  return byokFee ?? vendors[vendor]?.byokFee
}

/**
 * Whether the operator has changed an address of the vendor since. The account must then store its key again before it
 * is sent there.
 */
export function isForElsewhere(
  { vendor, origin }: Pick<StoredByokKey, 'vendor' | 'origin'>,
  { vendors }: CatalogDocument,
): boolean {
  const place = vendors[vendor]
  return !place || originsOf(place) !== origin
}

function useOf(
  rows: readonly Kept[],
  product: Sold,
  document: CatalogDocument,
  secretOf: (row: Kept) => string | undefined,
): OwnUse | undefined {
  const vendors = new Map<string, { secret: string; pricing: Pricing }>()
  let fallback = true
  for (const row of rows) {
    const fee = byokFeeOf(product, row.vendor, document)
    if (!fee) continue
    const isMoved = isForElsewhere(row, document)
    const secret = isMoved ? undefined : secretOf(row)
    if (secret === undefined) {
      // The gateway's secret or the vendor's address has changed since the key was stored. Without the account's
      // consent to the fallback, the call fails rather than cost the full price.
      const why = isMoved ? 'was stored for another address of it' : 'can no longer be read here'
      if (!row.fallback)
        throw new Fault('byok_key_rejected', {
          message: `The key that your account has stored for ${row.vendor} ${why}. Store it again, or remove it.`,
        })
      continue
    }
    vendors.set(row.vendor, { secret, pricing: feePricing(product.pricing, fee) })
    fallback &&= row.fallback
  }
  if (vendors.size === 0) return undefined
  const fees = [...vendors.values()].map(({ pricing }) => pricing)
  return { vendors, fallback, prices: fallback ? [...fees, product.pricing] : fees }
}

const SHOWN_CHARS = 4
/** The end of a shorter secret would reveal too much of it. */
const SHOWN_FROM_CHARS = 12

/** The last characters, by which the owner recognises a secret. */
export function shownEnd(value: string): string | null {
  return value.length >= SHOWN_FROM_CHARS ? value.slice(-SHOWN_CHARS) : null
}

/**
 * The sealing context (table, row, column and format version): a sealed value that is moved to another place cannot be
 * opened.
 */
function placeOf(account: string, vendor: string): string {
  return `own_key|${account}|${vendor}|sealed|1`
}
