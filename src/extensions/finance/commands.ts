// Commands of statements, margins, exports (also of the audit log) and vendors' reports.
import type { Commands } from '../../operator/command.ts'
import { EXPORT_KINDS } from './views.ts'

export const FINANCE_COMMANDS: Commands = {
  'GET /accounts/{id}/statements/{month}': {
    usage:
      'statements show <account> <month>: The statement of an account for a month such as 2026-10, also as PDF or CSV.',
    columns:
      'Customer=account.name, Month=month, Final=final, Opening balance=opening, Top-ups=topUps, Usage=usage, Corrections=corrections, Expired=expired, Paid out or written off=settlement, Closing balance=closing',
    tables: {
      products: 'product, KEY=keyName, calls, CREDITS=charged',
      'label.values': 'LABEL=value, calls, CREDITS=charged',
      movements: 'at, kind, note, CREDITS=moved',
    },
  },
  'GET /statements/{month}': {
    usage: 'statements all <month>: The statements of all customers for a month, in one ZIP.',
    file: 'application/zip',
  },
  'GET /margins': [
    {
      usage: 'margins show: Shows charges, costs and margins by model, customer, vendor, month or label.',
      columns:
        'group, name, calls, charged, WITH COST=chargedWithKnownCost, cost, margin, MARGIN %=marginPercent, unbilled',
      empty: 'No calls were charged in this time.',
    },
    {
      usage: 'margins totals: The sums of charges, costs and margins.',
      words:
        'Calls: {totals.calls}. Charged: {totals.charged}. Cost: {totals.cost|–}. Margin: {totals.margin|–}. Unbilled: {totals.unbilled}.',
    },
  ],
  'GET /margins/unbilled': {
    usage:
      'margins unbilled: Shows unbilled costs by day, vendor and model: what vendors billed for copies of calls, aborted calls and checks, which no caller pays.',
    columns: 'day, kind, vendor, MODEL=product, calls, inputTokens, outputTokens, cost',
    empty: 'Nothing was paid for in this time that no caller pays.',
  },
  'GET /exports': {
    usage: 'exports list',
    columns: 'EXPORT=id, name, kind, state, sent, waiting, LAST SENT=sentAt, error',
    empty: 'Usage goes nowhere yet. Add a destination with: tollgate exports create',
  },
  'GET /exports/{id}': 'exports show <export>',
  'POST /exports': {
    usage: 'exports create <name> <kind>: Sends usage to a webhook, OpenMeter, Lago, Stripe or a bucket from now on.',
    about: `Kinds: ${EXPORT_KINDS.join(', ')}. Secrets are stored with: tollgate exports credential`,
  },
  'PATCH /exports/{id}': {
    usage: 'exports change <export>: Changes the name or the settings of a destination; those that are not named stay.',
    merge: true,
  },
  'PUT /exports/{id}/credential': {
    usage:
      'exports credential <export>: Stores the credential of a destination, encrypted. Reads it from standard input.',
    words: 'Stored as {name}.',
  },
  'POST /exports/{id}/test': {
    usage: 'exports test <export>: Checks whether the receiver accepts usage, without changing its meters.',
    words: '{error|The receiver takes it.}',
  },
  'GET /exports/{id}/customers': {
    usage: 'exports customers <export>',
    columns: 'account, customer',
    empty: 'It knows accounts by their ids. Name one with: tollgate exports customer',
  },
  'PUT /exports/{id}/customers': {
    usage:
      'exports customer <export> <account> <customer>: Sets the name that a destination uses for an account; "none" removes it.',
    words: 'Stored.',
  },
  'POST /exports/{id}/pause': 'exports pause <export>: Stops sending; nothing is lost.',
  'POST /exports/{id}/resume': 'exports resume <export>: Continues where the destination stopped, and tries at once.',
  'POST /exports/{id}/backfill':
    'exports backfill <export>: Sends the calls of a range of days, again or for the first time.',
  'DELETE /exports/{id}': 'exports remove <export>: Removes a destination; its receiver keeps what it has.',
  'GET /vendor-reports': {
    usage: 'vendor-reports list: Lists vendors’ reports that were compared with recorded calls.',
    columns: 'REPORT=id, vendor, source, from, to, lines, AT=createdAt',
    empty: 'No reports yet. Fetch one with: tollgate vendor-reports fetch',
  },
  'POST /vendor-reports': {
    usage:
      'vendor-reports fetch <vendor> <source>: Fetches a vendor’s report of usage and costs, or reads it from a CSV file.',
    about: 'Sources: openai, anthropic, openrouter, csv. The vendor is named as in the catalog.',
  },
  'PUT /vendor-reports/credential': {
    usage:
      'vendor-reports credential <source>: Stores the admin credential of a vendor, encrypted. Reads it from standard input.',
    words: 'Stored as {name}.',
  },
  'GET /vendor-reports/{id}/lines': [
    {
      usage:
        'vendor-reports compare <report>: Compares a report with the recorded calls, by day, model and credential.',
      columns:
        'day, model, CREDENTIAL=credential|all, VERDICT={verdict} {differing}, THEIR TOKENS={theirs.inputTokens|–} / {theirs.outputTokens|–}, OUR TOKENS={ours.inputTokens|–} / {ours.outputTokens|–}, THEIR COST=theirs.cost, OUR COST=ours.cost, difference',
      empty: 'No lines.',
    },
    {
      usage: 'vendor-reports counts <report>: How many lines of a report match.',
      words:
        'Matched: {counts.matched}. Differs: {counts.differs}. Only theirs: {counts.only_theirs}. Only ours: {counts.only_ours}.',
    },
  ],
  'GET /vendor-reports/{id}/calls': {
    usage: 'vendor-reports calls <report> <day> <model> [credential]',
    columns: 'CALL=id, TIME=at, account, MODEL=product, credential, INPUT=inputTokens, OUTPUT=outputTokens, cost',
    empty: 'No calls were recorded.',
  },
  'GET /vendor-reports/{id}': 'vendor-reports show <report>',
  'GET /focus': {
    usage: 'focus download: Usage of a range of days in the columns of FOCUS, as CSV on standard output.',
    file: 'rows',
  },
  'DELETE /vendor-reports/{id}': { usage: 'vendor-reports remove <report>', words: 'Removed.' },
  'GET /audit-export': 'audit-export show',
  'PUT /audit-export': [
    {
      usage: 'audit-export webhook <url>: Exports the audit log as JSON lines to a webhook.',
      about: 'It replaces what was set before. The answer has the secret by which the receiver checks signatures.',
      set: { kind: 'webhook' },
    },
    {
      usage:
        'audit-export s3 <endpoint> <bucket>: Exports the audit log as JSON lines to a bucket of S3 or of an S3-compatible store.',
      set: { kind: 's3' },
    },
  ],
  'DELETE /audit-export': {
    usage: 'audit-export off: Ends the export. The log itself stays.',
    words: 'The export has ended.',
  },
}
