// What keeps this process from doing its work, in sentences. Readiness, the console's alerts and the log say the same.
import type { Changes } from '../database/changes.ts'
import type { StoreWatch } from '../database/health.ts'
import type { Ledger } from '../ledger/ledger.ts'

export interface Incident {
  readonly name: 'ledger' | 'changes' | 'standby' | 'export' | 'backup' | 'archive'
  /** Calls are served all the same, so the process stays ready. */
  readonly serves?: true
  readonly title: string
  readonly message: string
}

/** A failover or a restart of the database takes about as long. */
const WRITES_FAIL_MS = 5_000

interface IncidentSources {
  readonly ledger: Pick<Ledger, 'trouble' | 'waiting'>
  readonly changes: Pick<Changes, 'isStuck'>
  readonly store: Pick<StoreWatch, 'latest'>
}

const STANDBY_LAG_BYTES = 256 * 1024 * 1024
const EXPORT_SECONDS = 600
const BACKUP_SECONDS = 2 * 86_400

export function findIncidents({ ledger, changes, store }: IncidentSources): Incident[] {
  const found: Incident[] = []
  const trouble = ledger.trouble()
  if (trouble && trouble.forMs > WRITES_FAIL_MS) {
    const { settlements } = ledger.waiting
    found.push({
      name: 'ledger',
      title: 'The ledger cannot write',
      message: `For ${Math.round(trouble.forMs / 1000)} s the database has accepted no write: ${trouble.code} ${trouble.message}. New calls are rejected with 503, and ${settlements} settlements wait in memory; they are written when it works again. Do not stop the processes. See the runbook "The ledger cannot write".`,
    })
  }
  if (changes.isStuck())
    found.push({
      name: 'changes',
      title: 'A process cannot read what others have changed',
      message:
        'It serves with an older state and is not ready. The log names the topic ("a change could not be read"). See the runbook "Changes cannot be read".',
    })
  return [...found, ...storeIncidents(store)]
}

function* storeIncidents(store: IncidentSources['store']): Generator<Incident> {
  const health = store.latest()
  if (!health) return
  const {
    standbys,
    standbysMost,
    isStandbyMissing,
    standbyLagBytes,
    exportLagSeconds,
    backupAgeSeconds,
    archiveFault,
  } = health
  const serves = true
  if (isStandbyMissing || standbys < standbysMost || (standbyLagBytes ?? 0) > STANDBY_LAG_BYTES)
    yield {
      name: 'standby',
      serves,
      title: 'The database has lost a standby',
      message: `${standbys} of ${standbysMost} standbys follow the primary${isStandbyMissing ? ', and none of them is synchronous: commits wait' : ''}. A failover now would lose what they have not received. See the runbook "A standby is missing or lags".`,
    }
  if ((exportLagSeconds ?? 0) > EXPORT_SECONDS)
    yield {
      name: 'export',
      serves,
      title: 'An export is stuck',
      message: `For ${Math.round((exportLagSeconds ?? 0) / 60)} min an export has sent nothing, because its receiver does not accept it. Calls wait in the database and are sent later. See the runbook "An export is stuck".`,
    }
  if ((backupAgeSeconds ?? 0) > BACKUP_SECONDS)
    yield {
      name: 'backup',
      serves,
      title: 'The last backup is old',
      message: `The last backup was taken ${Math.round((backupAgeSeconds ?? 0) / 86_400)} days ago. See the runbook "The last backup is old".`,
    }
  if (archiveFault)
    yield {
      name: 'archive',
      serves,
      title: 'A month of the ledger is not in its archive',
      message: `${archiveFault} Months that are not archived stay in the database. See the runbook "A month cannot be archived".`,
    }
}
