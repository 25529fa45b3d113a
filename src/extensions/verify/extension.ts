// Recomputes the whole ledger from its rows, every night and on demand, and compares it with what is stored.
import type { Config } from '../../config.ts'
import type { Audit } from '../../database/audit.ts'
import type { Database } from '../../database/database.ts'
import { type CallWarehouse, defineExtension } from '../../extension.ts'
import type { Log } from '../../kernel/log.ts'
import type { Secrets } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { registerVerification } from './figures.ts'
import { verificationResources } from './resources.ts'
import { createVerifier } from './runs.ts'

interface Core {
  readonly config: Config
  readonly database: Database
  readonly audit: Audit
  readonly world: World
  readonly log: Log
  readonly secrets: Secrets
  readonly metrics: Pick<Metrics, 'registry'>
  readonly elsewhere: () => CallWarehouse | undefined
}

/** How often to check whether the nightly run is due. */
const LOOK_EVERY_MS = 300_000

export const verify = defineExtension({
  name: 'verify',
  open({ config, secrets, metrics, elsewhere, ...core }: Core) {
    const verifier = createVerifier({
      ...core,
      key: secrets.key('ledger'),
      nightlyAt: config.TOLLGATE_VERIFY_AT,
      usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS,
      callDays: config.TOLLGATE_ANALYTICS_URL === undefined ? undefined : config.TOLLGATE_RETENTION_CALL_DAYS,
      compareCalls: async (of) => (await elsewhere()?.verify(of)) ?? [],
    })
    registerVerification(metrics.registry, () => verifier.state())
    return { verifier }
  },
  resources: verificationResources,
  work: ({ verifier }) => [{ everyMs: LOOK_EVERY_MS, run: () => verifier.tick() }],
  close: ({ verifier }) => verifier.stop(),
})
