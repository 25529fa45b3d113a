// The guard for addresses that callers give, as the settings have it.
import type { World } from '../kernel/world.ts'
import { createGuardedFetch, type GuardedFetch } from './guard.ts'
import { createMinuteBudget } from './minute-budget.ts'

interface OutboundSettings {
  readonly TOLLGATE_OUTBOUND_ALLOW: string
  readonly TOLLGATE_FETCHES_PER_MINUTE: number
  readonly TOLLGATE_FETCH_BYTES_PER_MINUTE: number
  readonly TOLLGATE_WEBHOOKS_PER_MINUTE: number
}

export function createOutboundGuard(world: World, settings: OutboundSettings): GuardedFetch {
  return createGuardedFetch({
    world,
    allow: settings.TOLLGATE_OUTBOUND_ALLOW.split(/[\s,]+/).filter(Boolean),
    budgets: {
      fetches: createMinuteBudget(world, settings.TOLLGATE_FETCHES_PER_MINUTE),
      fetchedBytes: createMinuteBudget(world, settings.TOLLGATE_FETCH_BYTES_PER_MINUTE),
      posts: createMinuteBudget(world, settings.TOLLGATE_WEBHOOKS_PER_MINUTE),
    },
  })
}
