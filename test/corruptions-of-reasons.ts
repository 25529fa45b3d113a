// More of test/corruptions.ts: what was done to the reasons of money. Vendors' costs, transfers that moved nothing, batches and responses in the background.
import type { Corruption } from './corruptions.ts'

const CHANGED = /was changed, or the one before it was changed, removed or put there/
const OF_ROUTE = (cost: string) =>
  new RegExp(`Call \\$dear: its cost is ${cost}, but that of route 1 of "beta" .* is 0\\.0212`)

/** What a vendor took for a call. */
export const COSTS: readonly Corruption[] = [
  [`update usage set cost = cost + 1 where id = '$dear'`, OF_ROUTE('0\\.021201')],
  [`update usage set cost = null where id = '$dear'`, OF_ROUTE('not known')],
  [`update usage set cost = 0 where id = '$dear'`, OF_ROUTE('0')],
  // Without what only the cost counts, or with less of it.
  [`update usage set cost_basis = null where id = '$dear'`, /Call \$dear: its cost is/],
  [`update usage set cost_basis = cost_basis - 'attributes' where id = '$dear'`, /Call \$dear: its cost is/],
  [
    `update usage set cost_basis = jsonb_set(cost_basis, '{units,codeRun}', '1') where id = '$dear'`,
    /Call \$dear: its cost is/,
  ],
  [
    `update usage set cost_basis = '{"units": {"codeRun": "x"}}' where id = '$dear'`,
    /Call \$dear: what decided its cost/,
  ],
  [`update usage set cost_basis = '{"units": {"input": 1}}' where id = '$beta'`, /Call \$beta: its cost is/],
  // By another route, which costs more, or none at all.
  [`update usage set route = 2 where id = '$beta'`, /Call \$beta: its cost is .* that of route 2/],
  [`update usage set route = 9 where id = '$beta'`, /Call \$beta: it was served by route 9/],
  [`update usage set cost = 5 where id = '$call'`, /Call \$call: its cost is 0\.000005, but .* is not known/],
  [`update usage set cost = 5 where id = '$kept'`, /Call \$kept: its cost is 0\.000005, but .* is 0\./],
  [`update usage set cost = 5 where id = '$released'`, /Call \$released was released, but has a cost/],
  [`update usage set cost = 5 where id = '$forgotten'`, /Call \$forgotten was expired, but has a cost/],
  [`update journal set cost = 5`, /\$waiting .*: its cost is 0\.000005/],
  // What decided the price.
  [`update usage set attributes = null where id = '$dear'`, /Call \$dear: the price .* has the rates input 4000000/],
  [`update usage set attributes = '{"service_tier": "priority"}' where id = '$beta'`, /Call \$beta: the price/],
  [
    `update usage set route = 0 where id = '$beta'`,
    /Call \$beta: it was charged as a cached response, but its vendor was heard/,
  ],
  [
    `update usage set route = 0, cost = 0, first_byte_ms = 0 where id = '$beta'`,
    /Call \$beta: the price .* has the rates input 1000000, output 2000000/,
  ],
  // The price of a cached response without a hit, with all amounts made to fit.
  [
    `update usage set route = 0, cost = 0, charged = 400, lines = '[["input", 200, "1000000"], ["output", 100, "2000000"]]' where id = '$beta'; update transfer set amount = 400 where id = '$beta'`,
    /Call \$beta: it was charged as a cached response, but its vendor was heard after 3 ms/,
  ],
  [
    `update usage set route = 0, first_byte_ms = 0, cost = 5 where id = '$call'`,
    /Call \$call: its cost is 0\.000005, but .* is 0\./,
  ],
  [`update usage set route = 1 where id = '$kept'`, /Call \$kept: the price .* has the rates input 4000000/],
  [`update usage set endpoint = 'batch:chat' where id = '$kept'`, /Call \$kept: .* none in batches/],
]

/** What was erased with the sums that counted it. */
const ERASED = (id: string, errors: number, ms: number, product = 'alpha-5.4') => `
  delete from transfer where id = '${id}'; delete from usage where id = '${id}';
  update usage_hour set requests = requests - 1, errors = errors - ${errors}, duration_ms = duration_ms - ${ms}
    where account_id = '$account' and key_id = '$key' and product = '${product}'`

/** What moved nothing, and what was lost. */
export const UNMOVED: readonly Corruption[] = [
  [ERASED('$released', 1, 12), CHANGED],
  [ERASED('$forgotten', 1, 0), CHANGED],
  [ERASED('$free', 0, 12), CHANGED],
  [
    `update transfer set held = 5 where id = '$released'; update usage set held = 5 where id = '$released'`,
    /transfer \$released was changed/,
  ],
  [
    `update transfer set held = 5 where id = '$forgotten'; update usage set held = 5 where id = '$forgotten'`,
    /transfer \$forgotten was changed/,
  ],
  [
    `update transfer set kind = 'expired' where id = '$released'; update usage set outcome = 'expired' where id = '$released'`,
    /transfer \$released was changed/,
  ],
  [
    `update transfer set kind = 'settled' where id = '$released'; update usage set outcome = 'settled' where id = '$released'`,
    /transfer \$released was changed/,
  ],
  [
    `update transfer set kind = 'released' where id = '$free'; update usage set outcome = 'released' where id = '$free'`,
    /transfer \$free was changed/,
  ],
  [`update transfer set moved_at = null, balance = null where id = '$free'`, /\$free has no place in the statement/],
  [`update transfer set moved_at = null, balance = null where id = '$forgotten'`, /\$forgotten has no place/],
  [`update transfer set hash = null where id = '$released'`, /transfer \$released was changed/],
  [
    `update transfer t set moved_at = o.moved_at from transfer o where (t.id, o.id) in (('$released', '$free'), ('$free', '$released'))`,
    CHANGED,
  ],
  // A planted one, of a call that never was, at the end and in between.
  [
    `insert into transfer select account_id, '$call+1', 'released', 0, 0, held, note, actor, at, now() + interval '1 second', (select posted from account where id = '$account'), hash from transfer where id = '$released';
     insert into usage select (jsonb_populate_record(null::usage, to_jsonb(u) || '{"id": "$call+1"}')).* from usage u where id = '$released';
     update usage_hour set requests = requests + 1, errors = errors + 1, duration_ms = duration_ms + 12 where account_id = '$account' and key_id = '$key' and product = 'alpha-5.4'`,
    /transfer \$call\+1 was changed/,
  ],
  [
    `insert into transfer select account_id, '$call+1', 'released', 0, 0, held, note, actor, at, moved_at + interval '1 microsecond', balance, hash from transfer where id = '$released';
     insert into usage select (jsonb_populate_record(null::usage, to_jsonb(u) || '{"id": "$call+1"}')).* from usage u where id = '$released';
     update usage_hour set requests = requests + 1, errors = errors + 1, duration_ms = duration_ms + 12 where account_id = '$account' and key_id = '$key' and product = 'alpha-5.4'`,
    CHANGED,
  ],
  // A loss: forgotten, made smaller, erased, and taken for a charge.
  [
    `update transfer set loss = 0 where id = '$lost'; update usage set loss = 0, lines = '[]' where id = '$lost'`,
    /\$poor: transfer \$lost was changed/,
  ],
  [
    `update transfer set loss = 2 where id = '$lost'; update usage set loss = 2, lines = '[["input", 1, "2000000"]]' where id = '$lost'`,
    /\$poor: transfer \$lost was changed/,
  ],
  [
    `delete from transfer where id = '$lost'; delete from usage where id = '$lost'; update usage_hour set requests = 1, duration_ms = 0 where account_id = '$poor'`,
    /\$poor: its last transfer is not the one/,
  ],
  [
    `update transfer set amount = 6, loss = 0 where id = '$lost'; update usage set charged = 6, loss = 0 where id = '$lost'; update usage_hour set charged = 6 where account_id = '$poor'`,
    /\$lost/,
  ],
  [
    `update transfer set amount = 6, loss = 0 where id = '$lost'; update usage set charged = 6, loss = 0 where id = '$lost'; update usage_hour set charged = 6 where account_id = '$poor';
     update transfer set amount = amount + 6, balance = balance + 6 where account_id = '$poor' and kind = 'grant'; update transfer set balance = balance + 6 where account_id = '$poor' and kind in ('takeback', 'expired')`,
    /\$poor: transfer .* was changed/,
  ],
  // From when on there is a chain.
  [
    `update account set chained_at = now() + interval '1 day' where id = '$account'`,
    /\$account: its chain is said to begin after/,
  ],
  [
    `update account set chained_at = now() + interval '1 day' where id = '$poor'`,
    /\$poor: its chain is said to begin after/,
  ],
]

const OTHER_ID = (table: string, id: string) =>
  `update ${table} set id = left(id, 25) || case right(id, 1) when '0' then '1' else '0' end where id = '${id}'`

/** Batches and responses in the background, against the calls that they are made of. */
export const DEFERRED: readonly Corruption[] = [
  [
    `update usage set endpoint = 'batch:chat', charged = 1200, lines = '[["input", 200, "3000000"], ["output", 100, "6000000"]]' where id = '$beta'; update transfer set amount = 1200 where id = '$beta'`,
    /Call \$beta has the price of batches, but account \$account has no batch ""/,
  ],
  [
    `update usage set endpoint = 'batch:chat' where id = '$beta'`,
    /Call \$beta: the price .* input 3000000, output 6000000/,
  ],
  [
    `update usage set client = 'batch_9' where id = '$batched'`,
    /Call \$batched has the price of batches, .* "batch_9"/,
  ],
  [
    `update usage set client = '' where id = '$batched'`,
    /Batch batch_1 .* has 2 completed .* 1 of its calls were charged/,
  ],
  [
    `update usage set endpoint = 'chat' where id = '$batched'`,
    /Call \$batched: the price .* has the rates input 4000000/,
  ],
  [`delete from batch`, /Call \$?\S+ has the price of batches, but account \$account has no batch "batch_1"/],
  // Its call is erased, or another account's.
  [ERASED('$batched', 0, 12, 'beta'), /Batch batch_1 .* has 2 completed and 1 failed requests, but 1 of its calls/],
  [
    `update usage set account_id = '$other' where id = '$batched'; update transfer set account_id = '$other' where id = '$batched'`,
    /Call \$batched has the price of batches, but account \$other has no batch "batch_1"/,
  ],
  [
    `update usage set outcome = 'released', charged = 0 where id = '$batched'; update transfer set kind = 'released', amount = 0 where id = '$batched'`,
    /Batch batch_1 .* 1 of its calls were charged/,
  ],
  // A request that nobody has charged, and a charge for which there is no request.
  [`update batch set total = 4, completed = 3`, /Batch batch_1 .* has 3 completed .* 2 of its calls were charged/],
  [`update batch set total = 1, completed = 1, failed = 0`, /Batch batch_1 .* has 1 completed .* 2 of its calls/],
  // As many calls as before, but others.
  [
    `${OTHER_ID('usage', '$batched')}; ${OTHER_ID('transfer', '$batched')}`,
    /Batch batch_1 .* was completed by other calls than those that were charged for it/,
  ],
  [`update batch set calls_hash = sha256('')`, /Batch batch_1 .* was completed by other calls than those/],
  [`update batch set calls_hash = null`, /Batch batch_1 .* does not say which calls completed it/],
  [`update usage set charged = charged - 1 where id = '$batched'`, /Call \$batched: its arithmetic gives/],
  [
    `update background set call_id = 'gone'`,
    /Background response resp_1 .* answered by call gone, of which there is no usage/,
  ],
  [`update background set call_id = '$released'`, /resp_1 .* answered by call \$released, which was not settled/],
  [`update background set call_id = '$call'`, /resp_1 .* is one of beta, but call \$call is not/],
  [`update background set product = 'alpha-5.4'`, /resp_1 .* is one of alpha-5\.4, but call \$background is not/],
  [ERASED('$background', 0, 12, 'beta'), /resp_1 .* answered by call \$background, of which there is no usage row/],
  [
    `update usage set account_id = '$other' where id = '$background'; update transfer set account_id = '$other' where id = '$background'`,
    /resp_1 .* answered by call \$background, of which there is no usage row/,
  ],
  [
    `update usage set outcome = 'released', charged = 0, cost = null where id = '$background'; update transfer set kind = 'released', amount = 0 where id = '$background'`,
    /resp_1 .* answered by call \$background, which was not settled/,
  ],
  [`update background set answer = null, status = 'incomplete'`, /Background response resp_1 .* is incomplete, but/],
  [`update usage set charged = charged - 1 where id = '$background'`, /Call \$background: its arithmetic gives/],
]

/** What is summed up for operators. */
export const OTHERS: readonly Corruption[] = [
  [
    `update margin_hour set cost = cost + 1 where product = 'beta'`,
    /margins of beta by route \d sum to \d+ \(cost\)/,
    'full',
  ],
  [
    `update margin_hour set charged = charged + 1 where product = 'beta'`,
    /beta by route \d sum to \d+ \(charged\)/,
    'full',
  ],
  [`update margin_hour set costed = costed + 1 where product = 'beta' and route = 1`, /cannot be|\(costed\)/],
  [`update margin_hour set calls = calls + 1 where product = 'beta'`, /beta by route \d sum to \d+ \(calls\)/, 'full'],
  [
    `update margin_hour set route = 7 where product = 'beta' and route = 1`,
    /margins of beta by route 7 sum to/,
    'full',
  ],
  [
    `update margin_hour set product = 'omega' where product = 'beta' and route = 1`,
    /margins of omega by route 1 sum/,
    'full',
  ],
  [`update margin_hour set cost = -1`, /margin of \S+ by route \d .* cannot be/],
  // account, keys, limits, grants
  [`update account set id = 'acc_x' where id = '$other'`, /account \$other, which does not exist/],
  [
    `update account set moved_at = moved_at - interval '1 day' where id = '$account'`,
    /\$account: its last transfer is not/,
  ],
  [`update api_key set limits = '{}' where id = '$key'`, /limits of key:\$key that are counted are not those/],
  [
    `update api_key set id = 'key_x' where id = '$key'`,
    /limits of key:\$key are those of a key that the account does not/,
  ],
  [
    `update counter set seconds = '{7}' where name = 'requestsPerMinute'`,
    /key:\$key count .* requests in a minute whose seconds have 7/,
  ],
  [
    `update counter set seconds = '{7}' where name = 'tokensPerMinute'`,
    /key:\$key count .* tokens in a minute whose seconds have 7/,
  ],
  [
    `update counter set second = second - 86400 where scope = 'account' and name = 'spendPerDay'`,
    /account:\$account count .* as spent of the day/,
  ],
  [
    `update counter set second = second - 40 * 86400 where scope = '$key' and name = 'spendPerMonth'`,
    /key:\$key count .* as spent of the month/,
  ],
  [`update credit_idempotency set key = 'payment-9'`, /idempotency key that is gone/],
  [`update credit_idempotency set account_id = '$other'`, /idempotency key that is gone/],
  ...[`action = 'key.create'`, `object = 'acc_x'`, `ip = '::1'`, `request_id = 'x'`].map(
    (set): Corruption => [`update audit set ${set} where action = 'account.credit'`, /Audit row .* was changed/],
  ),
  [`update audit set detail = '{}' where action = 'account.credit'`, /Audit row .* was changed/],
  [`update audit set hash = sha256('x') where action = 'account.credit'`, /Audit row .* was changed/],
  [`update audit set id = id || 'x' where id = (select max(id) from audit)`, /Audit row .* was (changed|removed)/],
  // What a call was, and what a job was.
  [`update usage set estimated = false where id = '$estimated'`, /Call \$estimated: its arithmetic gives/],
  [`update usage set id = '$call+1' where id = '$call'`, /Usage row \$call\+1 .* has no transfer/],
  [`update transfer set id = '$call+1' where id = '$call'`, /Transfer \$call\+1 \(settled\) has no usage row/],
  [`update job set route = 2 where id = 'job_done'`, /Job job_done .* was done by route 2, but its charge says 1/],
  [`update job set credential = 'own' where id = 'job_done'`, /Job job_done .* credential/],
  // What is on its way.
  [`update journal set product = 'omega'`, /\$waiting .* no product "omega"/],
  [`update journal set route = 9`, /\$waiting .* served by route 9/],
  [`update journal set route = 0`, /\$waiting .* cached response/],
  [`update journal set route = 0, first_byte_ms = 0`, /\$waiting .*: its cost is not known, but .* is 0\./],
  [`update journal set credential = 'own'`, /\$waiting .* by a BYOK key/],
  [`update journal set stays_leased = false`, /\$waiting .* is posted otherwise/],
  [`update journal set waived = true`, /\$waiting .* is posted otherwise/],
  [`update journal set held = 1`, /\$waiting .* charges 2 micro-credits of 1/],
  [`update journal set at = now() - interval '7 minutes'`, /\$waiting .* has waited for \d+ minutes/],
  [`update journal set endpoint = 'batch:chat'`, /\$waiting .* is of a batch/],
  [
    `update journal set product = 'beta', charged = 4, lines = '[["input", 1, "4000000"]]', cost = 1, attributes = '{"service_tier": "priority"}'`,
    /\$waiting .* has the rates input 8000000/,
  ],
  [
    `update journal set product = 'beta', charged = 4, lines = '[["input", 1, "4000000"]]', cost = 1, cost_basis = '{"units": {"codeRun": 5}}'`,
    /\$waiting .*: its cost is 0\.000001, but .* is 0\.050001/,
  ],
  // What was paid, and what it bought.
  [
    `update payment set credits = credits + 1`,
    /Payment pay_1 .* is for 8001 micro-credits, but transfer \$bought granted 8000/,
  ],
  [`update payment set state = 'failed'`, /Payment pay_1 .* is failed, but credits were granted/],
  [`update payment set transfer_id = null`, /Payment pay_1 .* is paid, but nothing was granted/],
  [`update payment set transfer_id = '$call'`, /Payment pay_1 .* but transfer \$call granted none/],
  [`update payment set refunded_minor = 0`, /took back 1000 and lost 1000 micro-credits, but .* stands for 0/],
  [`update payment set refunded_minor = 401`, /paid back by more than was paid/],
  [`update payment set disputed_minor = 100, dispute = 'lost'`, /took back 1000 and lost 1000 .* stands for 4000/],
  [
    `update payment set taken = 999, lost = 1001`,
    /\$buyer bought 7001 micro-credits and lost 1001 by its payments, but 7000 and 1000/,
  ],
  [`update payment set account_id = '$other'`, /Payment pay_1 is not what audit row .* says/],
  [`update payment set amount_minor = 401, refunded_minor = 100`, /Payment pay_1 is not what audit row .* says/],
  [`update payment set currency = 'JPY'`, /Payment pay_1 is not what audit row .* says/],
  [`update payment set provider_id = 'pi_2'`, /Payment pay_1 is not what audit row .* says/],
  [`update payment set id = 'pay_2'`, /is of payment pay_1, but there is no such payment/],
  // Invoices: no gap, one for the payment, and its sums.
  [
    `delete from invoice where kind = 'payment'`,
    /Payment pay_1 has the invoice none, but audit row .* says INV-\d+-000001/,
  ],
  [
    `delete from invoice where kind = 'credit_note'`,
    /series INV in \d+ go to 2, but there are 1, and the highest is 1/,
  ],
  [`update invoice_counter set last = 3`, /series INV in \d+ go to 3, but there are 2/],
  [`update invoice_counter set series = 'ANY'`, /series ANY in \d+ go to 2, but there are 0/],
  [`update invoice_counter set year = 1999`, /series INV in 1999 go to 2, but there are 0/],
  [`update invoice set sequence = 3 where kind = 'credit_note'`, /000002 .* has another number than its place/],
  [`update invoice set series = 'ANY'`, /series INV in \d+ go to 2, but there are 0/],
  [`update invoice set year = 1999`, /series INV in \d+ go to 2, but there are 0/],
  [`update invoice set number = 'INV-9' where kind = 'payment'`, /Invoice INV-9 .* has another number than its place/],
  [`update invoice set gross_minor = 399 where kind = 'payment'`, /is over 399 EUR, but 400 EUR were paid/],
  [
    `update invoice set gross_minor = 99 where kind = 'credit_note'`,
    /is over 400 EUR, of which 100 were refunded and 99 credited/,
  ],
  [`update invoice set tax_minor = 0`, /is not what its document says/],
  [`update invoice set currency = 'JPY'`, /is over 400 JPY, but 400 EUR were paid/],
  [`update invoice set document = '{}'`, /is not what its document says/],
  [`update invoice set kind = 'month' where kind = 'payment'`, /Payment pay_1 has the invoice none/],
  [`update invoice set payment_id = 'pay_9'`, /is for payment pay_9, for which nothing was granted/],
  [`update invoice set corrects = 'x' where kind = 'credit_note'`, /000002 .* corrects no invoice of its payment/],
  [`update invoice set account_id = '$other'`, /Payment pay_1 has the invoice none/],
  [`update invoice set id = 'x' where kind = 'payment'`, /000002 .* corrects no invoice of its payment/],
  // Its name is what its calls are found by.
  [`update batch set id = 'batch_9'`, /has the price of batches, but account \$account has no batch "batch_1"/],
  [
    `update background set account_id = '$other', key_id = '$key'`,
    /resp_1 .* is paid for by a key of account \$account/,
  ],
]

const PEOPLE = 'people and programs: who may do something, not what it costs'
const CONTENT = 'what was asked and answered, and where it lies'
const OWN_WORK = 'how far a process has come with its own work'
const CODES = 'codes and who redeemed them: what they granted is a transfer of which the audit knows'
const INVOICES = 'whom invoices are made out to from now on, and their files, which have a hash of their own'
const SENT = 'what goes to other systems or comes from them: calls are read for it, and not written'
/** Tables without money or anything that decides it, and why. A table that is neither here nor corrupted is one that nobody thought of. */
export const NO_MONEY: Readonly<Record<string, string>> = {
  ...{
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
    login_group: PEOPLE,
    login_flow: PEOPLE,
    scim_user: PEOPLE,
    scim_group: PEOPLE,
    scim_group_member: PEOPLE,
    starting_credit: PEOPLE,
  },
  ...{
    recording: CONTENT,
    recording_policy: CONTENT,
    stored_file: CONTENT,
    vendor_object: CONTENT,
    background_event: CONTENT,
    job_body: CONTENT,
  },
  ...{ cache_version: OWN_WORK, migration: OWN_WORK, account_move: OWN_WORK, audit_export: OWN_WORK },
  delivery: 'what is sent to receivers outside',
  batch_line: 'gone when its batch has ended, whose counts and hash of calls are checked',
  refusal: 'calls that were refused before anything was held',
  tool_listing: 'what foreign servers list: what is sold, and its price, stands in the catalog',
  vendor_hour: 'requests to vendors and how long they took',
  vendor_probe: 'what the last free probe of a vendor found',
  unbilled_day: 'estimates of what vendors took for what no account pays: no call stands behind them',
  usage_month: 'how a total is made up that statements take from transfers',
  ...{ credential: 'sealed secrets of vendors', byok_key: 'sealed secrets of vendors' },
  login_token: 'sealed tokens of vendors',
  tool_connection: 'sealed sign-ins of people at tool servers',
  ...{
    alert: 'what was told',
    alert_delivery: 'what was told',
    alert_state: 'what was told',
    alert_setting: 'what was told',
  },
  ...{ invoice_file: INVOICES, billing_details: INVOICES },
  ...{ export: SENT, export_customer: SENT },
  ...{ vendor_report: SENT, vendor_report_line: SENT },
  label_name: 'names by which calls are grouped',
  payment_event: 'which events were applied: what they did is in the payments',
  payment_customer: 'cards, and when they are charged: what was charged is a payment',
  account_plan: 'when a plan is renewed: what it granted is a transfer of which the audit knows',
  ...{ code_batch: CODES, code: CODES, code_use: CODES },
  reconciliation: 'what was compared with a provider',
  verification: 'runs of the verification itself',
  verified: 'what an earlier run saw: a full run does not read it, and one that finds a difference reads everything',
}

/** Columns of the other tables that decide no money. */
export const NO_REASON: Readonly<Record<string, string>> = {
  account: 'name created_at frozen_until search status_reason status_at',
  api_key:
    'name digest prefix last4 models endpoints required_labels ip_ranges response_cache routing expires_at revoked_at replaced_by first_id team_id member_id maker_id grant_id client last_used_at created_at',
  // When steps are due, by whom they are done, and contents.
  background:
    'id request sealed_request sealed_answer streams labels vendor_id tries created_at expires_at version lease_until step_at open',
  batch: `endpoint input_file_id completion_window metadata labels output_seconds errors output_file_id error_file_id created_at expires_at in_progress_at
    finalizing_at cancelling_at version lease_until step_at open`,
  job: `id input request callback_url created_at started_at completed_at version lease_until step_at open attempts misses submit_started_at submissions vendor
    task_id delivered error files called_back_at watch_until anomaly`,
  // From where it comes and in which order it is spent: what was spent of it is in the chain.
  lot: 'source priority created_at',
  // Its id says when, and is part of the chain.
  audit: 'at',
  // Its digest is in the audit.
  catalog_version: 'note actor at',
  credit_idempotency: 'request_hash answer at',
  // The minute's tokens, which come and go.
  hold: 'id tokens scopes',
  idempotency: 'key request_hash content_type body sealed created_at',
  // Facts that are copied to the usage row and decide no price there either, and counts of tokens.
  journal:
    'key_id status estimated stream duration_ms attempt_log client labels tokens second input_tokens output_tokens vendor scopes',
  // By whom it was spent, and in which order it is exported.
  usage: 'stream attempt_log vendor labels posting',
  usage_hour: 'input_tokens output_tokens',
  lease: 'id recalled_at retired in_use',
  // What began before is not taken off: of limits on tokens alone.
  counter: 'since own_max',
  budget: 'name alert_percent created_at',
  // Whose it is, what its process last said of itself, and when another lacked it: a dead one's goes back when somebody asks.
  quota_slice: 'process_id recalled_at turn',
  // Settings of the gateway, none of which is an amount that was charged; whether limits are in force is one.
  setting: 'name value',
  margin_hour: 'hour',
  payment:
    'provider kind offer_id price_minor tax_minor catalog_version reason person_id as_of created_at paid_at detail',
  gateway_instance: 'id started_at report reported_at',
  // Of months: what is invoiced was worked out then. Whose name it has is in its document.
  invoice: 'month credits customer issued_at',
}
