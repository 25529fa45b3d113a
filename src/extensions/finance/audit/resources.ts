// The export of the audit log.
import { Fault } from '../../../kernel/fault.ts'
import { may, type Resource, resource } from '../../../operator/resource.ts'
import type { AuditExport } from './audit-export.ts'
import { auditExportInput, auditExportView } from './views.ts'

export function auditExportResources(auditExport: AuditExport): Resource[] {
  return [
    resource('GET /audit-export', 'audit-export:read', {
      title: 'Show the export of the audit log',
      answer: auditExportView,
      // Only people who may change the export see the webhook's secret.
      run: async ({ actor }) => ({
        ...(await auditExport.get()),
        ...(may(actor, 'audit-export:write') ? {} : { secret: null }),
      }),
    }),
    resource('PUT /audit-export', 'audit-export:write', {
      title: 'Set the export of the audit log',
      body: auditExportInput,
      answer: auditExportView,
      run: ({ body, by }) => auditExport.set(body, by),
    }),
    resource('DELETE /audit-export', 'audit-export:write', {
      title: 'End the export of the audit log',
      answer: auditExportView,
      async run({ by }) {
        if (!(await auditExport.remove(by))) throw new Fault('not_found', { message: 'The audit log is not exported.' })
        return auditExport.get()
      },
    }),
  ]
}
