// What /metrics says of verifications.
import { Gauge } from 'prom-client'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { VerificationState } from './views.ts'

/** The result of the last ledger verification, whichever process ran it. */
export function registerVerification(registry: Metrics['registry'], read: () => Promise<VerificationState>): void {
  const registers = [registry]
  const about = (name: string, help: string, of: (last: NonNullable<VerificationState['last']>) => number) =>
    new Gauge({
      name,
      help,
      registers,
      aggregator: 'first',
      async collect() {
        const last = await read().then(
          (state) => state.last,
          () => null,
        )
        this.set(last ? of(last) : Number.NaN)
      },
    })
  const secondsOf = (time: string | null) => Date.parse(time ?? '') / 1000
  about('tollgate_ledger_verified_timestamp_seconds', 'When the last verification of the ledger ended.', (last) =>
    secondsOf(last.endedAt),
  )
  about('tollgate_ledger_verified_problems', 'How many problems it found; -1 if it did not finish.', (last) =>
    last.ok === null ? -1 : last.problems.length,
  )
  about(
    'tollgate_ledger_verified_seconds',
    'How long it took.',
    (last) => secondsOf(last.endedAt) - secondsOf(last.startedAt),
  )
}
