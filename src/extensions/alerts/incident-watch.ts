// Tells of what keeps this process from its work, within seconds. It is often the database, so it is told without it if
// it must be.
import type { Log } from '../../kernel/log.ts'
import type { Incident } from '../../telemetry/incidents.ts'
import type { Alerts } from './alerts.ts'
import { incidentCondition } from './rules.ts'

/** Returns how to look again. */
export function watchIncidents({
  incidents,
  alerts,
  log,
}: {
  readonly incidents: () => readonly Incident[]
  readonly alerts: Pick<Alerts, 'look' | 'tellUnstored'>
  readonly log: Log
}): () => Promise<void> {
  const told = new Set<string>()
  return async () => {
    const now = incidents()
    for (const name of told) if (!now.some((one) => one.name === name)) told.delete(name)
    for (const incident of now) {
      if (told.has(incident.name)) continue
      told.add(incident.name)
      log.error({ incident: incident.name }, incident.message)
      await alerts.look().catch(() => alerts.tellUnstored({ ...incidentCondition(incident), rule: 'gateway' }))
    }
  }
}
