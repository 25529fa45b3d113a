// Sends usage to finance systems, and compares vendors' reports with what was recorded.
import { defineExtension } from '../../extension.ts'
import { withCommands } from '../../operator/command.ts'
import { FINANCE_COMMANDS } from './commands.ts'
import { createExports, type ExportOptions } from './exports.ts'
import { createVendorReports, type ReportOptions } from './reconcile.ts'
import { type ExportDeps, exportResources, vendorReportResources } from './resources.ts'

type Core = ExportOptions & ReportOptions & Omit<ExportDeps, 'exports'>

export const finance = defineExtension({
  name: 'finance',
  open: (core: Core) => ({ exports: createExports(core), vendorReports: createVendorReports(core) }),
  resources: (all) => withCommands([...exportResources(all), ...vendorReportResources(all)], FINANCE_COMMANDS),
})
