// What is read across accounts, and how the ledgers' answers are put together. Everything else that names no account is
// control's own. A test compares this list with the resources.
import type { ResourceCall } from '../../operator/resource.ts'

type Merge = (
  answers: readonly PromiseSettledResult<unknown>[],
  call: ResourceCall,
  names: readonly string[],
) => unknown

/** `one`: about one thing, which one of them knows. `new`: for the ledger with most room. */
export const ACROSS: Readonly<Record<string, Merge | 'one' | 'new'>> = {
  'POST /accounts': 'new',
  'GET /payments/{payment}': 'one',
  'POST /payments/{payment}/accept': 'one',
  'POST /payments/{payment}/dismiss': 'one',
  'POST /payments/{payment}/refund': 'one',
  'GET /deliveries/{delivery}': 'one',
  'POST /deliveries/{delivery}/repeat': 'one',
}
