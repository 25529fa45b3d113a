// Vendor objects: stored responses, threads and conversations at a vendor. Only the account that created one may
// continue it, and only at the vendor that stores it.
import { isId } from '../catalog/field.ts'
import type { Product } from '../catalog/store.ts'
import { type Database, sql } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import type { Fault } from '../kernel/fault.ts'
import { BYOK } from '../ledger/operation.ts'
import type { ProtocolName } from '../meter/kind.ts'
import type { PaidRequestFacts } from '../protocols/protocol.ts'
import { isRestricted, maySee, mayUse, type Principal, type Viewer } from './api-key.ts'

/** The vendor that stores it and, if that has several credentials, the credential that created it. */
export interface ObjectOwner {
  readonly vendor: string
  readonly credential?: string | null | undefined
}

interface VendorObject extends ObjectOwner {
  readonly product: string
}

interface FoundRow extends VendorObject {
  readonly key_id: string
}

/**
 * Who asks: objects of another account, of a model that the key may not use, and for a restricted key those of other
 * keys, do not exist.
 */
type Asking = Viewer & Pick<Principal, 'accountId'>

/**
 * Vendors store responses for at least thirty days, and conversations until they are deleted. Whether one still exists,
 * only the vendor knows.
 */
const PRUNE = sql('vendor_object_forget')`with gone as (
     delete from vendor_object where ctid = any(array(
       (select ctid from vendor_object where id not like 'conv%' and created_at < now() - interval '30 days' limit 5000)
       union all (select ctid from vendor_object where id like 'conv%' and created_at < now() - interval '365 days' limit 5000)))
     returning 1
   ) select count(*)::int as count from gone`
const KEEP = sql('vendor_object_keep')`
  insert into vendor_object (account_id, id, vendor, product, credential, key_id) select $1, unnest($2::text[]), $3, $4, $5, $6
   on conflict (account_id, id) do update set vendor = excluded.vendor, product = excluded.product, credential = excluded.credential,
     created_at = now()
   where vendor_object.created_at < now() - interval '1 day'
     or (vendor_object.vendor, vendor_object.product, vendor_object.credential) is distinct from (excluded.vendor, excluded.product, excluded.credential)`
const FIND = sql('vendor_object_find')`
  select vendor, product, credential, key_id from vendor_object where account_id = $1 and id = $2`
const FIND_ALL = sql('vendor_object_find_all')`
  select id, vendor, product, credential, key_id from vendor_object where account_id = $1 and id = any($2::text[])`
const DROP = sql('vendor_object_drop')`delete from vendor_object where account_id = $1 and id = $2`

export async function recordVendorObjects(
  database: Database,
  { accountId, keyId }: Pick<Principal, 'accountId' | 'keyId'>,
  ids: readonly string[],
  kept: VendorObject,
): Promise<void> {
  const right = [...new Set(ids)].filter((id) => isId(id))
  if (right.length === 0) return
  await database.query(KEEP, [accountId, right, kept.vendor, kept.product, kept.credential ?? null, keyId])
}

export async function findVendorObject(
  database: Database,
  principal: Asking,
  id: string,
): Promise<VendorObject | undefined> {
  if (!isId(id)) return undefined
  const [row] = await database.query<FoundRow>(FIND, [principal.accountId, id])
  return row && isFor(principal, row) ? row : undefined
}

const isFor = (principal: Asking, row: FoundRow) => mayUse(principal, row.product) && maySee(principal, row)

interface Referring extends Pick<PaidRequestFacts, 'continues' | 'clientFormat'> {
  readonly principal: Asking
  readonly routes: Product['routes']
  /** The BYOK keys of the account that it may use. */
  readonly own: { readonly fallback: boolean } | undefined
}

/**
 * The owner of the objects that a request refers to; undefined if it refers to none. All must be at one vendor, under
 * one credential.
 */
export async function findObjectOwner(
  { continues = [], clientFormat, principal, routes, own }: Referring,
  database: Database,
): Promise<ObjectOwner | undefined> {
  const isSpoken = routes.some(({ protocol }) => protocol === clientFormat)
  const wanted = continues.filter(({ native }) => !native || isSpoken)
  if (wanted.length === 0) return undefined
  const ids = [...new Set(wanted.map(({ id }) => id))].filter((id) => isId(id))
  const rows = await database.query<FoundRow & { id: string }>(FIND_ALL, [principal.accountId, ids])
  const byId = new Map(rows.filter((row) => isFor(principal, row)).map((row) => [row.id, row]))
  let objectOwner: ObjectOwner | undefined
  let elsewhere: Fault | undefined
  for (const { id, unknown } of wanted) {
    const kept = byId.get(id)
    if (!kept && own?.fallback === false && !isRestricted(principal)) {
      // Looked up with the account's BYOK key, if the call uses one. It finds what any key has made, so a restricted
      // key may not.
      elsewhere ??= unknown
      continue
    }
    if (!kept || !hasRoute(routes, kept, clientFormat) || (kept.credential === BYOK && !own)) throw unknown
    objectOwner ??= kept
    if (objectOwner.vendor !== kept.vendor || objectOwner.credential !== kept.credential) throw unknown
  }
  if (elsewhere && objectOwner && objectOwner.credential !== BYOK) throw elsewhere
  return objectOwner
}

/** The catalog may have changed since it was kept. */
export function hasRoute(
  routes: Product['routes'],
  { vendor }: ObjectOwner,
  protocol: ProtocolName | undefined,
): boolean {
  return routes.some((route) => route.vendor === vendor && route.protocol === protocol)
}

export async function removeVendorObject(database: Database, account: string, id: string): Promise<void> {
  await database.query(DROP, [account, id])
}

export async function pruneVendorObjects(database: Database): Promise<void> {
  await pruneAll(database, PRUNE)
}
