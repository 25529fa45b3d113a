// A call that goes on from what a vendor keeps: only there, and only by the key that made it.
import { findObjectOwner } from '../admission/vendor-objects.ts'
import { OWN_KEY } from '../ledger/operation.ts'
import type { Arrived, PathDeps } from './call.ts'

export async function withObjectOwner(arrived: Arrived, { database }: Pick<PathDeps, 'database'>): Promise<Arrived> {
  const { ask, product, principal } = arrived
  const objectOwner = await findObjectOwner({ ...ask, principal, routes: product.routes, own: arrived.own }, database)
  // What is at no vendor, or found by the account's own key alone.
  if (!objectOwner) return arrived
  // What an own key made, that key can read; what the gateway's made, no other.
  const own = objectOwner.credential === OWN_KEY && arrived.own ? { ...arrived.own, fallback: false } : undefined
  return { ...arrived, objectOwner, own }
}
