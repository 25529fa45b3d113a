// Calls that are in the ledger and happened in an earlier month.

import type { CatalogStore } from '../src/catalog/store.ts'
import type { Database } from '../src/database/database.ts'
import { newId, type World } from '../src/kernel/world.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { chargeOf } from '../src/meter/charge.ts'
import { settlement } from './settlement.ts'

export async function callOnce(
  { ledger, catalog, world }: { ledger: Ledger; catalog: CatalogStore; world: World },
  account: string,
): Promise<void> {
  const id = newId(world)
  const common = { id, account, key: 'key_1', product: 'alpha-5.4', catalogVersion: catalog.current.version }
  await ledger.reserve({ ...common, want: 10_000n, floor: 10_000n, tokens: 1 })
  const charge = chargeOf(catalog.current.document.models['alpha-5.4']!.pricing, { input: 100, output: 50 })
  const facts = { lines: charge.lines, inputTokens: 100, outputTokens: 50 }
  await ledger.resolve(settlement(account, id, charge.amount, { ...common, ...facts }))
}

/** What was written since the last time happened so many hours before. */
export async function setBack(database: Database, hours: number): Promise<void> {
  const by = `interval '${hours} hours'`
  const young = `now() - interval '1 hour'`
  for (const text of [
    `update transfer set at = at - ${by}, moved_at = moved_at - ${by} where moved_at > ${young}`,
    `update account set moved_at = moved_at - ${by}, created_at = least(created_at, moved_at - ${by}) where moved_at > ${young}`,
    `update usage set at = at - ${by} where at > ${young}`,
    `update usage_hour set hour = hour - ${by} where hour > now() - interval '2 hours'`,
  ])
    await database.query({ text })
}
