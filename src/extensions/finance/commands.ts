// Commands of exports and of vendors' reports.
import type { Commands } from '../../operator/command.ts'
import { EXPORT_KINDS } from './views.ts'

export const FINANCE_COMMANDS: Commands = {
  'GET /exports': {
    usage: 'exports list',
    summary: 'Lists the destinations of usage, and how much each has received.',
    columns: {
      ...{ EXPORT: 'id', NAME: 'name', KIND: 'kind', STATE: 'state', SENT: 'sent', WAITING: 'waiting' },
      ...{ 'LAST SENT': 'sentAt', ERROR: 'error' },
    },
    empty: 'Usage goes nowhere yet. Add a destination with: tollgate exports create',
  },
  'GET /exports/{id}': { usage: 'exports show <export>', summary: 'Shows one destination.' },
  'POST /exports': {
    usage: 'exports create <name> <kind>',
    summary: 'Sends usage to a webhook, OpenMeter, Lago, Stripe or a bucket from now on.',
    about: `Kinds: ${EXPORT_KINDS.join(', ')}. Secrets are stored with: tollgate exports credential`,
  },
  'PATCH /exports/{id}': {
    usage: 'exports change <export>',
    summary: 'Changes the name or the settings of a destination; those that are not named stay.',
    merge: true,
  },
  'PUT /exports/{id}/credential': {
    usage: 'exports credential <export>',
    summary: 'Stores the credential of a destination, encrypted. Reads it from standard input.',
    words: 'Stored as {name}.',
  },
  'POST /exports/{id}/test': {
    usage: 'exports test <export>',
    summary: 'Checks whether the receiver accepts usage, without changing its meters.',
    words: '{error|The receiver takes it.}',
  },
  'GET /exports/{id}/customers': {
    usage: 'exports customers <export>',
    summary: 'Lists the names that a destination uses for accounts.',
    columns: { ACCOUNT: 'account', CUSTOMER: 'customer' },
    empty: 'It knows accounts by their ids. Name one with: tollgate exports customer',
  },
  'PUT /exports/{id}/customers': {
    usage: 'exports customer <export> <account> <customer>',
    summary: 'Sets the name that a destination uses for an account; "none" removes it.',
    words: 'Stored.',
  },
  'GET /webhook-secret': {
    usage: 'exports webhook-secret',
    summary: 'Shows the secret with which receivers verify the gateway’s own webhooks.',
    words: '{secret}',
  },
  'POST /exports/{id}/pause': { usage: 'exports pause <export>', summary: 'Stops sending; nothing is lost.' },
  'POST /exports/{id}/resume': {
    usage: 'exports resume <export>',
    summary: 'Continues where the destination stopped, and tries at once.',
  },
  'POST /exports/{id}/backfill': {
    usage: 'exports backfill <export>',
    summary: 'Sends the calls of a range of days, again or for the first time.',
  },
  'DELETE /exports/{id}': {
    usage: 'exports remove <export>',
    summary: 'Removes a destination; its receiver keeps what it has.',
  },
  'GET /vendor-reports': {
    usage: 'vendor-reports list',
    summary: 'Lists vendors’ reports that were compared with recorded calls.',
    columns: {
      ...{ REPORT: 'id', VENDOR: 'vendor', SOURCE: 'source', FROM: 'from', TO: 'to', LINES: 'lines', AT: 'createdAt' },
    },
    empty: 'No reports yet. Fetch one with: tollgate vendor-reports fetch',
  },
  'POST /vendor-reports': {
    usage: 'vendor-reports fetch <vendor> <source>',
    summary: 'Fetches a vendor’s report of usage and costs, or reads it from a CSV file.',
    about: 'Sources: openai, anthropic, openrouter, csv. The vendor is named as in the catalog.',
  },
  'PUT /vendor-reports/credential': {
    usage: 'vendor-reports credential <source>',
    summary: 'Stores the admin credential of a vendor, encrypted. Reads it from standard input.',
    words: 'Stored as {name}.',
  },
  'GET /vendor-reports/{id}/lines': [
    {
      usage: 'vendor-reports compare <report>',
      summary: 'Compares a report with the recorded calls, by day, model and credential.',
      columns: {
        ...{ DAY: 'day', MODEL: 'model', CREDENTIAL: 'credential|all', VERDICT: '{verdict} {differing}' },
        'THEIR TOKENS': '{theirs.inputTokens|–} / {theirs.outputTokens|–}',
        'OUR TOKENS': '{ours.inputTokens|–} / {ours.outputTokens|–}',
        ...{ 'THEIR COST': 'theirs.cost', 'OUR COST': 'ours.cost', DIFFERENCE: 'difference' },
      },
      empty: 'No lines.',
    },
    {
      usage: 'vendor-reports counts <report>',
      summary: 'How many lines of a report match.',
      words:
        'Matched: {counts.matched}. Differs: {counts.differs}. Only theirs: {counts.only_theirs}. Only ours: {counts.only_ours}.',
    },
  ],
  'GET /vendor-reports/{id}/calls': {
    usage: 'vendor-reports calls <report> <day> <model> [credential]',
    summary: 'The recorded calls behind a line of a report.',
    columns: {
      ...{ CALL: 'id', TIME: 'at', ACCOUNT: 'account', MODEL: 'product', CREDENTIAL: 'credential' },
      ...{ INPUT: 'inputTokens', OUTPUT: 'outputTokens', COST: 'cost' },
    },
    empty: 'No calls were recorded.',
  },
  'GET /vendor-reports/{id}': { usage: 'vendor-reports show <report>', summary: 'Shows one report.' },
  'GET /focus': {
    usage: 'focus download',
    summary: 'Usage of a range of days in the columns of FOCUS, as CSV on standard output.',
    file: 'rows',
  },
  'DELETE /vendor-reports/{id}': {
    usage: 'vendor-reports remove <report>',
    summary: 'Removes a report.',
    words: 'Removed.',
  },
}
