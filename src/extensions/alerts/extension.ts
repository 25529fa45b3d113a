// Rules over accounts and the gateway, and who is told when one comes true: in the console, by webhook, Slack or mail.
import type { WebServer } from '../../api/server/server.ts'
import { defineExtension } from '../../extension.ts'
import type { JobEngine } from '../../jobs/engine.ts'
import type { Log } from '../../kernel/log.ts'
import { withCommands } from '../../operator/command.ts'
import type { Prober } from '../../routing/checks.ts'
import type { Vendors } from '../../routing/vendor.ts'
import type { Monitor } from '../../telemetry/monitor.ts'
import { type AlertsOptions, createAlerts, LOOK_EVERY_MS } from './alerts.ts'
import { ALERT_COMMANDS } from './commands.ts'
import { watchIncidents } from './incident-watch.ts'
import { mountAlertMails } from './mail-page.ts'
import { type AlertDeps, alertResources } from './resources.ts'

interface Core
  extends Omit<AlertsOptions, 'deliveries' | 'failingVendors' | 'overruns' | 'setAside'>,
    Omit<AlertDeps, 'alerts'>,
    FailingDeps {
  readonly log: Log
  readonly jobs: Pick<JobEngine, 'deliveries'>
  readonly monitor: Pick<Monitor, 'overruns'>
  readonly setAside: { readonly list: AlertsOptions['setAside'] }
  /** It is the gateway of a ledger: what all gateways of the process have in common, that of control tells. */
  readonly place?: object | undefined
}

type Common = Pick<AlertsOptions, 'failingVendors' | 'overruns' | 'setAside'>

interface FailingDeps {
  readonly vendors: Pick<Vendors, 'health'>
  readonly prober: Pick<Prober, 'view'>
}

const INCIDENTS_EVERY_MS = 5_000

export const alerts = defineExtension({
  name: 'alerts',
  open(core: Core) {
    const common: Common = {
      failingVendors: () => failingVendors(core),
      overruns: core.monitor.overruns,
      setAside: core.setAside.list,
    }
    let ledgers = (): readonly Common[] => []
    const told = core.place ? NOTHING : together(() => [common, ...ledgers()])
    return {
      alerts: createAlerts({ ...core, deliveries: core.jobs.deliveries, ...told }),
      common,
      /** Of the ledgers in this process. */
      gather: (of: typeof ledgers) => {
        ledgers = of
      },
    }
  },
  resources: (all) => withCommands(alertResources(all), ALERT_COMMANDS),
  endpoints: (all, { app }: { readonly app: WebServer }) => mountAlertMails(app, all),
  work: (all) => [
    { everyMs: LOOK_EVERY_MS, run: all.alerts.tick },
    { everyMs: INCIDENTS_EVERY_MS, run: watchIncidents(all) },
  ],
})

const NOTHING: Common = { failingVendors: () => [], overruns: () => [], setAside: () => [] }

/** Each once. */
function together(all: () => readonly Common[]): Common {
  const every = <T>(read: (one: Common) => readonly T[]) => all().flatMap((one) => read(one))
  return {
    failingVendors: () =>
      Array.from(
        Map.groupBy(
          every((one) => one.failingVendors()),
          ({ name }) => name,
        ).values(),
        ([first, ...more]) => more.find(({ isRejected }) => isRejected) ?? first!, // A group has one at least.
      ),
    overruns: () =>
      Array.from(
        Map.groupBy(
          every((one) => one.overruns()),
          ({ vendor }) => vendor,
        ),
        ([vendor, same]) => ({
          vendor,
          calls: same.reduce((sum, { calls }) => sum + calls, 0),
          loss: same.reduce((sum, { loss }) => sum + loss, 0n),
        }),
      ),
    setAside: () => [...new Set(every((one) => one.setAside()))],
  }
}

/** Those whose breaker is open in this process, and those that reject their credential. */
function failingVendors({ vendors, prober }: FailingDeps) {
  return vendors.health().flatMap(({ name, breaker, reason }) => {
    const probe = prober.view(name)
    if (probe?.state === 'rejected') return [{ name, isRejected: true, reason: probe.message }]
    return breaker === 'open' ? [{ name, isRejected: false, reason }] : []
  })
}
