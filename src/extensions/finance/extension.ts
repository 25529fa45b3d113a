// Statements of customers and margins; sends usage and the audit log to systems outside; compares vendors' reports with
// what was recorded.
import { defineExtension } from '../../extension.ts'
import { withCommands } from '../../operator/command.ts'
import { type AuditExportOptions, createAuditExport } from './audit/audit-export.ts'
import { auditExportResources } from './audit/resources.ts'
import { FINANCE_COMMANDS } from './commands.ts'
import { createExports, type ExportOptions } from './exports.ts'
import { type MarginDeps, marginResources } from './margins/resources.ts'
import { createVendorReports, type ReportOptions } from './reconcile.ts'
import { type ExportDeps, exportResources, vendorReportResources } from './resources.ts'
import { type StatementDeps, statementResources } from './statements/resources.ts'

type Core = StatementDeps &
  MarginDeps &
  AuditExportOptions &
  ExportOptions &
  ReportOptions &
  Omit<ExportDeps, 'exports'>

export const finance = defineExtension({
  name: 'finance',
  open: (core: Core) => ({
    exports: createExports(core),
    auditExport: createAuditExport(core),
    vendorReports: createVendorReports(core),
  }),
  resources: (all) =>
    withCommands(
      [
        ...statementResources(all),
        ...marginResources(all),
        ...exportResources(all),
        ...auditExportResources(all.auditExport),
        ...vendorReportResources(all),
      ],
      FINANCE_COMMANDS,
    ),
})
