import * as z from 'zod'
import type { CatalogStore } from '../../catalog/store.ts'
import { type Audit, auditCheck, auditView } from '../../database/audit.ts'
import { type Database, statement } from '../../database/database.ts'
import type { Migrations } from '../../database/migrate.ts'
import type { AuditExport } from '../../jobs/audit-export.ts'
import { auditExportInput, auditExportView, type JobFacts } from '../../jobs/views.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import { verificationRun, verificationState } from '../../ledger/views.ts'
import type { Reports } from '../../telemetry/reports.ts'
import type { Verifier } from '../../verify/runs.ts'
import { may, paging, type Resource, range, resource, text } from '../resource.ts'
import { livePage, systemView } from '../views.ts'

export interface OperationsDeps {
  readonly database: Database
  readonly catalog: CatalogStore
  readonly audit: Audit
  readonly auditExport: AuditExport
  readonly world: World
  readonly verifier: Pick<Verifier, 'state' | 'start'>
  /** Of all processes. */
  readonly reports: Reports
  readonly system: {
    readonly version: string
    readonly storeKind: string
    readonly storeVersion: string
    readonly migrations: Migrations
    readonly queue: () => Promise<JobFacts>
  }
}

const SIZE = statement('system_size', 'select pg_database_size(current_database()) as bytes')
// A process that has been silent for a minute is gone.
const PROCESSES = statement(
  'system_processes',
  `select id, started_at, heartbeat_at from gateway_instance where heartbeat_at > now() - interval '1 minute' order by id limit 500`,
)

export function operationsResources(deps: OperationsDeps): Resource[] {
  const { database, catalog, audit, world, system } = deps
  const startedMs = world.elapsedMs()
  return [
    resource('GET /ledger/verify', 'ledger:read', {
      answer: verificationState,
      run: () => deps.verifier.state(),
    }),
    resource('POST /ledger/verify', 'ledger:write', {
      body: z.strictObject({ full: z.boolean().optional() }),
      answer: verificationRun,
      run: ({ body }) => deps.verifier.start({ whole: body.full ?? false }),
    }),
    resource('GET /audit', 'audit:read', {
      query: z.strictObject({
        ...paging,
        actor: text(200).optional(),
        action: text(100).optional(),
        object: text(200).optional(),
        token: text(100).optional(),
        ...range,
      }),
      answer: page(auditView),
      run: ({ query }) => audit.list(query),
    }),
    resource('GET /audit/verify', 'audit:read', {
      answer: auditCheck,
      run: () => audit.verify(),
    }),
    resource('GET /audit-export', 'audit-export:read', {
      answer: auditExportView,
      // Only people who may change the export see the webhook's secret.
      run: async ({ actor }) => ({
        ...(await deps.auditExport.get()),
        ...(may(actor, 'audit-export:write') ? {} : { secret: null }),
      }),
    }),
    resource('PUT /audit-export', 'audit-export:write', {
      body: auditExportInput,
      answer: auditExportView,
      run: ({ body, by }) => deps.auditExport.set(body, by),
    }),
    resource('DELETE /audit-export', 'audit-export:write', {
      answer: auditExportView,
      async run({ by }) {
        if (!(await deps.auditExport.remove(by)))
          throw new Fault('not_found', { message: 'The audit log is not exported.' })
        return deps.auditExport.get()
      },
    }),
    resource('GET /requests/live', 'live-calls:read', {
      answer: livePage,
      async run() {
        const { calls: items, running, processes } = await deps.reports.read()
        return { items, next: null, running, processes }
      },
    }),
    resource('GET /system', 'system:read', {
      answer: systemView,
      async run() {
        const [size, processes, queue] = await Promise.all([
          database.query<{ bytes: bigint }>(SIZE),
          database.query<{ id: string; started_at: Date; heartbeat_at: Date }>(PROCESSES),
          system.queue(),
        ])
        return {
          version: system.version,
          runtime: `Node ${process.versions.node}`,
          store: {
            kind: system.storeKind,
            version: system.storeVersion,
            sizeBytes: Number(size[0]?.bytes ?? 0n),
          },
          migrations: system.migrations,
          processes: processes.map((row) => ({
            id: row.id,
            startedAt: row.started_at.toISOString(),
            heartbeatAt: row.heartbeat_at.toISOString(),
          })),
          queue,
          catalogVersion: catalog.current.version,
          uptimeSeconds: Math.round((world.elapsedMs() - startedMs) / 1000),
        }
      },
    }),
  ]
}
