// Every table, and why it does not grow for ever. A test compares the list with the schema, and looks for the statement
// that removes what is not kept.

/**
 * `kept`: its rows are removed after a while, which `bound` says. `ends`: a row goes when what it is about has ended.
 * `folded`: old rows become fewer. `owned`: a row for each thing that an account, a person or the operator has, which
 * stays with its owner; few, and none for a call. `record`: kept for ever by its purpose; none for a call.
 */
type Way = 'kept' | 'ends' | 'folded' | 'owned' | 'record'

interface Table {
  readonly way: Way
  readonly bound: string
  /** Written by calls, so that no change of the schema may rewrite it. */
  readonly hot?: true
  /** Describes this installation at this moment, or must be gone once it is deleted. */
  readonly notBackedUp?: true
}

const kept = (bound: string): Table => ({ way: 'kept', bound })
const ends = (bound: string): Table => ({ way: 'ends', bound })
const owned = (bound: string): Table => ({ way: 'owned', bound })
const record = (bound: string): Table => ({ way: 'record', bound })

const USAGE_MONTHS = 'TOLLGATE_RETENTION_USAGE_MONTHS'

export const TABLES: Readonly<Record<string, Table>> = {
  // Calls and money.
  transfer: { ...kept('TOLLGATE_RETENTION_LEDGER_MONTHS, then one checkpoint for each account and month'), hot: true },
  ledger_checkpoint: record('one for each account and month in the archive: about 400 bytes'),
  ledger_archive: record('one a month'),
  usage: { ...kept(USAGE_MONTHS), hot: true },
  usage_hour: { way: 'folded', bound: `hours for 60 days, then days; ${USAGE_MONTHS}`, hot: true },
  usage_day: {
    way: 'folded',
    bound: `days for ${USAGE_MONTHS}, then one row a month for each product, key and vendor`,
  },
  label_day: kept(USAGE_MONTHS),
  journal: { ...ends('posted within seconds'), hot: true },
  hold: ends('the call ends'),
  lease: ends('its process gives it back or dies'),
  quota_slice: ends('its process dies'),
  idempotency: kept('24 hours'),
  refusal: kept('TOLLGATE_RETENTION_REJECTED_DAYS, and a bounded number for each key'),
  recording: { ...kept('as many days as the policy says'), notBackedUp: true },
  margin_hour: kept('32 days'),
  vendor_hour: kept('days'),
  unbilled_day: record('one a day for each kind, vendor, product and credential'),
  counter: owned('one for each limit, and for each value of a budget that is used'),
  lot: record('one for each grant that ends or is for some products'),
  claim: record('one for each refund that calls kept from its credits'),
  credit_idempotency: record('one for each grant with a key: a payment must not be repeated'),
  verified: owned('one for each account'),
  verification: kept('the last 30 runs'),
  // Work.
  job: kept(USAGE_MONTHS),
  job_body: ends('the vendor has it'),
  batch: kept('30 days after its end'),
  batch_line: ends('the results are files'),
  background: kept('30 days'),
  background_event: kept('a day'),
  stored_file: kept('until it expires'),
  vendor_object: kept('30 days; conversations 365'),
  delivery: kept('30 days'),
  alert: kept('90 days'),
  alert_state: ends('the condition is no longer true'),
  alert_setting: owned('one for each account'),
  alert_mailbox: owned('one for each mailbox that receives alerts'),
  // Accounts and people.
  account: owned('itself'),
  account_domain: owned('some for each account'),
  account_move: owned('one for each account that moved'),
  account_plan: owned('one for each account'),
  api_key: owned('also revoked ones, which usage names'),
  crossing: ends('its ledger has done it'),
  ledger_spent: record('one for each ledger and hour'),
  key_home: owned('one for each key of another ledger'),
  byok_key: owned('one for each account and vendor'),
  label_name: owned('64 for each account'),
  budget: owned('some for each account'),
  budget_proposal: kept('until a person answers, or a week'),
  team: owned('some for each account'),
  agent_settings: owned('one for each account and team'),
  team_member: owned('one for each member and team'),
  membership: owned('one for each member'),
  recording_policy: owned('one for each account or key'),
  billing_details: owned('one for each account'),
  tool_connection: owned('one for each member and tool server'),
  person: owned('itself'),
  identity: owned('one for each provider'),
  second_factor: owned('some for each person'),
  recovery_code: owned('some for each person'),
  saved_view: owned('some for each person'),
  session: kept('24 hours'),
  invite: kept('until it expires'),
  login_flow: kept('until it expires'),
  login_attempt: kept('until it is no longer blocked'),
  login_token: kept('a day after it expired'),
  oauth_object: kept('until it expires'),
  access_token: owned('also revoked ones, which the audit names'),
  scim_user: owned('one for each person of a directory'),
  scim_group: owned('one for each group of a directory'),
  scim_group_member: owned('one for each member of a group'),
  // Sales.
  payment: record('one for each payment'),
  payment_event: kept('180 days'),
  payment_customer: owned('one for each account'),
  reconciliation: kept('the last runs'),
  invoice: record('tax law'),
  invoice_file: record('tax law'),
  invoice_counter: record('one for each series and year'),
  starting_credit: record('one for each mailbox'),
  code_batch: record('one for each order of codes'),
  code: record('one for each code'),
  code_use: record('one for each code that was redeemed'),
  // Purses.
  purse: owned('one for each customer of an account'),
  purse_movement: kept(`${USAGE_MONTHS}; its purse keeps what they came to`),
  purse_prices: record('one for each change of an account’s price list, which movements name'),
  purse_events: owned('one for each account'),
  purse_session: kept('three days after it has expired'),
  purse_payments: owned('one for each account'),
  purse_topup: record('one for each purchase of credits for a purse'),
  // The operator.
  audit: record('one for each change by an operator or member'),
  catalog_version: record('one for each change of the catalog, which charges name'),
  setting: owned('one for each setting'),
  credential: owned('one for each credential'),
  cache_version: owned('one for each topic'),
  account_change: owned('one for each topic and account'),
  backfill: owned('one for each backfill'),
  export: owned('one for each destination'),
  export_customer: owned('one for each destination and account'),
  audit_export: owned('one'),
  vendor_report: owned('until the operator deletes it'),
  vendor_report_line: owned('until the operator deletes the report'),
  vendor_probe: owned('one for each vendor'),
  tool_listing: owned('one for each tool server'),
  login_provider: owned('one for each provider'),
  login_domain: owned('some for each provider'),
  login_group: owned('some for each provider'),
  gateway_instance: { ...kept('a day after its last heartbeat'), notBackedUp: true },
}

/**
 * In an installation of several ledgers these have one place, the control database, and each ledger has them mounted
 * (extensions/ledgers/mount.ts). All others are each ledger's own. No function of the ledger's SQL names one of these.
 */
export const SHARED = [
  'person',
  'identity',
  'second_factor',
  'recovery_code',
  'saved_view',
  'session',
  'login_flow',
  'login_provider',
  'login_domain',
  'login_group',
  'oauth_object',
  'access_token',
  'scim_user',
  'scim_group',
  'scim_group_member',
  'membership',
  'invite',
  'account_domain',
  'team',
  'team_member',
  'catalog_version',
  'credential',
  'code_batch',
  'code',
  'starting_credit',
  'invoice_counter',
  'vendor_report',
  'vendor_report_line',
  'key_home',
  'crossing',
] as const satisfies readonly (keyof typeof TABLES)[]

/** Where a ledger's tables are looked up: its own, and then those of control. */
export const LEDGER_SCHEMAS = 'public, control'
