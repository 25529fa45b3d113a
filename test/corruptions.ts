// What somebody, or a fault, might do to the tables that money is in, and which of them decide none. `$call` and the
// like are ids of the test that plants the corruptions, src/reports/verify/verify.test.ts.
import { readFileSync } from 'node:fs'

/** What is done by hand, what is said of it, and whether only a full run says it. */
export type Corruption = readonly [what: string, said: RegExp, run?: 'full']

const FILE = new URL('fixtures/corruptions.sql', import.meta.url)
/** A line with the statements, and one with what is said of them. */
const ONE = /^(?!--)(.+)\n--> (full )?\/(.+)\/$/gm
export const CORRUPTIONS = [...readFileSync(FILE, 'utf8').matchAll(ONE)].map(
  ([, what = '', isFull, said = '']): Corruption =>
    isFull ? [what, new RegExp(said), 'full'] : [what, new RegExp(said)],
)

/** A settlement that is not in the ledger yet, of a call like another. */
export function journalRow(id: string, like: string): string {
  return `insert into journal (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, route, first_byte_ms, cost, lease_id, tokens, second, input_tokens, output_tokens, estimated, stream, duration_ms, at)
    select account_id, '${id}', key_id, product, endpoint, outcome, status, charged, 100, catalog_version, lines, route, first_byte_ms, cost, 'lease_1', 0, 0, 1, 1, estimated, stream, duration_ms, now() + interval '1 hour' from usage where id = '${like}'`
}

const PEOPLE = 'people and programs: who may do something, not what it costs'
const CONTENT = 'what was asked and answered, and where it lies'
const OWN_WORK = 'how far a process has come with its own work'
const INVOICES = 'whom invoices are made out to from now on, and their files, which have a hash of their own'
const SENT = 'what goes to other systems or comes from them: calls are read for it, and not written'
const PURSES = 'src/extensions/purses/verify.test.ts plants changes in each column'
/**
 * Tables without money or anything that decides it, and why. A table that is neither here nor corrupted is one that
 * nobody thought of.
 */
export const NO_MONEY: Readonly<Record<string, string>> = {
  crossing: 'says what a ledger has to do',
  key_home: 'says where calls of a key go',
  ledger_archive: 'src/extensions/archive/archive.test.ts plants changes in both',
  ledger_checkpoint: 'signed: the same test',
  person: PEOPLE,
  session: PEOPLE,
  saved_view: PEOPLE,
  membership: PEOPLE,
  team: PEOPLE,
  team_member: PEOPLE,
  invite: PEOPLE,
  login_attempt: PEOPLE,
  oauth_object: PEOPLE,
  access_token: PEOPLE,
  identity: PEOPLE,
  second_factor: PEOPLE,
  recovery_code: PEOPLE,
  login_provider: PEOPLE,
  login_domain: PEOPLE,
  account_domain: PEOPLE,
  login_group: PEOPLE,
  login_flow: PEOPLE,
  scim_user: PEOPLE,
  scim_group: PEOPLE,
  scim_group_member: PEOPLE,
  starting_credit: PEOPLE,
  agent_settings: 'what people chose for their agents: it rejects calls, and charges nothing',
  budget_proposal: 'asked for and not confirmed: the budget itself is corrupted',
  recording: CONTENT,
  recording_policy: CONTENT,
  stored_file: CONTENT,
  vendor_object: CONTENT,
  background_event: CONTENT,
  job_body: CONTENT,
  cache_version: OWN_WORK,
  account_change: OWN_WORK,
  migration: OWN_WORK,
  backfill: OWN_WORK,
  account_move: OWN_WORK,
  ledger_spent: 'a copy of the sums of a ledger, where they are checked',
  audit_export: OWN_WORK,
  purse: PURSES,
  purse_movement: PURSES,
  purse_prices: PURSES,
  purse_events: PURSES,
  purse_session: 'what opens calls, and moves nothing',
  purse_payments: 'what a credit of a purse costs from now on, and sealed secrets',
  purse_topup: 'src/extensions/purses/topups.test.ts plants changes in each column',
  delivery: 'what is sent to receivers outside',
  batch_line: 'gone when its batch has ended, whose counts and hash of calls are checked',
  refusal: 'calls that were refused before anything was held',
  tool_listing: 'what foreign servers list: what is sold, and its price, stands in the catalog',
  vendor_hour: 'requests to vendors and how long they took',
  vendor_probe: 'what the last free probe of a vendor found',
  unbilled_day: 'estimates of what vendors took for what no account pays: no call stands behind them',
  usage_day: 'how a total is made up that statements take from transfers',
  label_day: 'the same, by end user or tag',
  credential: 'sealed secrets of vendors',
  byok_key: 'sealed secrets of vendors',
  login_token: 'sealed tokens of vendors',
  tool_connection: 'sealed sign-ins of people at tool servers',
  alert: 'what was told',
  alert_delivery: 'what was told',
  alert_state: 'what was told',
  alert_setting: 'what was told',
  alert_mailbox: 'who wants to be told',
  invoice_file: INVOICES,
  billing_details: INVOICES,
  export: SENT,
  export_customer: SENT,
  vendor_report: SENT,
  vendor_report_line: SENT,
  label_name: 'names by which calls are grouped',
  payment_event: 'which events were applied: what they did is in the payments',
  payment_customer: 'cards, and when they are charged: what was charged is a payment',
  reconciliation: 'what was compared with a provider',
  verification: 'runs of the verification itself',
  verified: 'what an earlier run saw: a full run does not read it, and one that finds a difference reads everything',
}

/** Columns of the other tables that decide no money. */
export const NO_REASON: Readonly<Record<string, string>> = {
  account: 'name created_at ledger is_moving region frozen_until search status_reason status_at',
  api_key:
    'name digest prefix last4 models endpoints required_labels ip_ranges response_cache routing expires_at revoked_at replaced_by first_id team_id member_id maker_id grant_id client last_used_at created_at',
  // When steps are due, by whom they are done, and contents.
  background:
    'id request sealed_request sealed_answer streams labels vendor_id tries created_at expires_at version lease_until step_at open',
  batch: `endpoint input_file_id completion_window metadata labels output_seconds errors output_file_id error_file_id created_at expires_at in_progress_at
    finalizing_at cancelling_at version lease_until step_at open`,
  job: `id input request callback_url created_at started_at completed_at version lease_until step_at open attempts misses submit_started_at submissions vendor
    task_id delivered error files called_back_at watch_until anomaly`,
  lot: 'created_at',
  // When the next try is due, and why the last one failed.
  account_plan: 'due tries retry_at problem',
  code_batch: 'name created_at created_by',
  // Its id says when, and is part of the chain.
  audit: 'at',
  // Its digest is in the audit.
  catalog_version: 'note actor at',
  credit_idempotency: 'request_hash answer at',
  // The minute's tokens, which come and go.
  // src/extensions/purses/verify.test.ts plants changes in what a hold says of a purse.
  hold: 'id tokens scopes purse',
  idempotency: 'key request_hash content_type body sealed created_at',
  // Facts that are copied to the usage row and decide no price there either, and counts of tokens.
  journal:
    'key_id status estimated stream duration_ms attempt_log client labels tokens second input_tokens output_tokens vendor scopes',
  // By whom it was spent, and in which order it is exported.
  usage: 'stream attempt_log vendor labels posting',
  lease: 'id recalled_at retired in_use',
  // What began before is not taken off: of limits on tokens alone.
  counter: 'since own_max',
  budget: 'name created_at',
  // Whose it is, what its process last said of itself, and when another lacked it: a dead one's goes back when somebody
  // asks.
  quota_slice: 'process_id recalled_at turn',
  // Settings of the gateway, none of which is an amount that was charged; whether limits are in force is one.
  setting: 'name value',
  margin_hour: 'hour',
  // Words, who bought it, when it was last asked for, and the provider's own facts.
  payment: 'reason person_id as_of created_at detail',
  gateway_instance: 'id started_at report reported_at',
}
