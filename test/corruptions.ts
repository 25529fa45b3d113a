// What somebody, or a fault, might do to the tables that money is in. `$call` and the like are ids of the test that plants them,
// src/verify/verify.test.ts.
import { COSTS, DEFERRED, OTHERS, UNMOVED } from './corruptions-of-reasons.ts'

/** What is done by hand, what is said of it, and whether only a full run says it. */
export type Corruption = readonly [what: string, said: RegExp, run?: 'full']

/** Only who was heard of in the last minutes finds others dead, and these tests may take longer. */
const HEARD = 'update gateway_instance set heartbeat_at = now()'

export const CORRUPTIONS: readonly Corruption[] = [
  // account
  [`update account set posted = posted + 1 where id = '$account'`, /balance is/],
  [`update account set held = held + 1 where id = '$account'`, /held amount is/],
  [`delete from account where id = '$other'`, /\$other, which does not exist/],
  [`update account set limits = '{"concurrency": 5}' where id = '$account'`, /not those that were set/],
  [`update account set limits = '{"concurrency": 5}' where id = '$other'`, /are set, but nothing counts/],
  [`update account set limits = '{}' where id = '$account'`, /not those that were set/],
  // hold
  [`update hold set amount = amount + 1 where id = '$open'`, /its holds sum to/],
  [`delete from hold where id = '$open'`, /held amount is/],
  [`update hold set amount = -amount where id = '$open'`, /Hold \$open.* is negative/],
  [
    `insert into hold select account_id, '$call', key_id, process_id, job, 0, product, catalog_version from hold where id = '$open'`,
    /has been resolved, but still stands/,
  ],
  [`update hold set account_id = 'acc_x' where id = '$open'`, /Hold \$open of account acc_x: there is no such account/],
  [`update hold set key_id = 'key_x' where id = '$filming'`, /job_open .* its hold or charge is one of \S+ key_x/],
  [`update hold set job = true where id = '$open'`, /is that of a job, but there is no such job/],
  [`update hold set job = false where id = '$filming'`, /would expire with its process/],
  [`update hold set catalog_version = 77 where id = '$open'`, /no catalog version 77/],
  [`update hold set product = 'omega' where id = '$open'`, /no product "omega"/],
  [
    `update hold set created_at = now() - interval '125 minutes' where id = '$open'`,
    /Hold \$open .* is \d+ minutes old\./,
  ],
  [
    `update hold set process_id = 'p9', created_at = now() - interval '7 minutes' where id = '$open'; ${HEARD}`,
    /Hold \$open .* is \d+ minutes old, and its process is dead/,
  ],
  // account
  [`update account set status = 'closed' where id = '$account'`, /is closed, but has a balance of/],
  // lease
  [`update lease set amount = amount + 1`, /its holds sum to/],
  [`delete from lease`, /held amount is/],
  [`update lease set amount = -500`, /Lease lease_1 .* is negative/],
  [`update lease set account_id = 'acc_x'`, /Lease lease_1 of account acc_x: there is no such account/],
  [
    `update lease set process_id = 'p9', created_at = now() - interval '9 minutes'; ${HEARD}`,
    /Lease .* is \d+ minutes old, and its process is dead/,
  ],
  [
    `update lease set key_id = 'key_x', created_at = now() - interval '99 minutes'`,
    /Lease .* is \d+ minutes old, and nobody uses it/,
  ],
  [`update lease set slices = '{}'`, /bgt_2=\$key .* requests, but calls used only \d+ and \d+ are given/],
  [`update lease set scopes = null`, /bgt_2=\$key .* requests, but calls used only \d+ and \d+ are given/],
  // budgets
  [`update account set budget_values = 9 where id = '$account'`, /budgets of account:\$account have 2 counters, not 9/],
  [`update account set budgets = 0 where id = '$account'`, /\$account has budgets, but is said to have none/],
  [`update counter set used = used + 1 where scope = 'bgt_1=$key'`, /bgt_1=\$key .* but its usage sums to only/],
  [`update counter set used = used - 1 where scope = 'bgt_1=$key'`, /bgt_1=\$key .* as spent, but its usage sums to/],
  [
    `update counter set used = 1 where scope = 'bgt_2=$key'`,
    /bgt_2=\$key .* counts 1 requests, but calls used \d+ and/,
  ],
  [`update counter set used = used + 1 where scope = 'bgt_2=$key'`, /bgt_2=\$key .* requests, but calls used only/],
  [`update counter set used = -1 where scope = 'bgt_2=$key'`, /bgt_2=\$key .* counts -1 requests, which cannot be/],
  [`update counter set soft = true where scope = 'bgt_1=$key'`, /bgt_1=\$key .* is not as its budget says/],
  [`update counter set width = 7 where scope = 'bgt_2=$key'`, /bgt_2=\$key .* is not as its budget says/],
  [`update counter set max = 7 where scope = 'bgt_2=$key'`, /bgt_2=\$key .* is not as its budget says/],
  [`update budget set max = 7 where id = 'bgt_1'`, /bgt_1=\$key .* is not as its budget says/],
  [`update budget set hard = false where id = 'bgt_2'`, /bgt_2=\$key .* is not as its budget says/],
  [`update budget set unit = 'tokens' where id = 'bgt_1'`, /bgt_1=\$key .* is not as its budget says/],
  [
    `update budget set span = 'rolling', window_seconds = 600 where id = 'bgt_2'`,
    /bgt_2=\$key .* is not as its budget says/,
  ],
  [`update budget set id = 'bgt_9' where id = 'bgt_1'`, /bgt_1=\$key .* belongs to no budget/],
  [`update budget set account_id = '$other' where id = 'bgt_2'`, /bgt_2=\$key .* belongs to no budget/],
  [`update budget set scope = 'user' where id = 'bgt_1'`, /bgt_1=\$key .* but its usage sums to only/],
  [`update budget set value = 'x' where id = 'bgt_1'`, /bgt_1=\$key .* but its usage sums to only/],
  // lot
  [`update lot set remaining = remaining - 1 where amount = 200`, /its transfers sum to/],
  [`update lot set amount = amount + 1 where amount = 200`, /is one of .*, but .* were granted/],
  [`update lot set held = held - 1 where held > 0`, /of lot \S+ are held, but its holds sum to/],
  [`update lot set id = 'x' where amount = 200`, /name lot \S+, which does not exist/],
  [
    `update lot set account_id = '$other' where amount = 300`,
    /its lots have .* more than its balance|has lots, but is said to have none/,
  ],
  [`delete from lot where amount = 200`, /transfers or holds name lot \S+, which does not exist/],
  [`update lot set products = '{gamma}' where amount = 500`, /call \$spent of \S+ was paid from lot/],
  [
    `update lot set ends_at = now() + interval '1 hour' where amount = 500`,
    /\(expiry\) does not move of lots what its kind moves/,
  ],
  [`update account set has_lots = false where id = '$saver'`, /it has lots, but is said to have none/],
  [`update account set has_lots = true where id = '$other'`, /is said to have lots, but has none/],
  [`update hold set lots = '[["", 5]]' where id = '$saved'`, /hold \$saved is one of .*, but took/],
  [`update transfer set lots = lots || '{"x": 0}' where id = '$spent'`, /was changed, or the one before it/],
  [`update transfer set lots = null where kind = 'expiry'`, /\(expiry\) does not move of lots/],
  // journal
  [`update journal set account_id = 'acc_x'`, /in the journal is of an account that does not exist/],
  [`update journal set outcome = 'gift'`, /in the journal is "gift"/],
  [`update journal set charged = held + 1`, /charges 101 micro-credits of 100 that were held for it/],
  [`update journal set charged = -1`, /charges -1 micro-credits/],
  [`update journal set catalog_version = 77`, /\$waiting .* in the journal: .*no catalog version 77/],
  [`update journal set at = now() - interval '7 minutes'`, /\$waiting .* has waited for \d+ minutes/],
  [
    `update journal set account_id = '$account', id = '$call', at = now() - interval '4 minutes'`,
    /\$call .* was posted, but still stands there after \d+ minutes/,
  ],
  // transfer
  [`update transfer set amount = amount + 1 where id = '$call'`, /charge of call/],
  [`update transfer set loss = loss + 1 where id = '$call'`, /loss of call/],
  [`update transfer set held = held + 1 where id = '$call'`, /hold of call/],
  [`update transfer set kind = 'released' where id = '$call'`, /is released, but/],
  [`update transfer set kind = 'gift' where id = '$call'`, /is a "gift"/],
  [`update transfer set kind = 'grant' where id = '$call'`, /is a grant but has a usage row/],
  [`update transfer set account_id = 'acc_x' where id = '$call'`, /acc_x, which does not exist/],
  [`update transfer set account_id = '$other' where id = '$call'`, /Transfer \$call \(settled\) has no usage row/],
  [`delete from transfer where id = '$call'`, /has no transfer/],
  [`delete from transfer where id = '$released'`, /has no transfer/],
  [`update transfer set at = at - interval '1 minute' where id = '$call'`, /different times/],
  [
    `update transfer set at = at - interval '1 day' where id = '$call'; update usage set at = at - interval '1 day' where id = '$call'`,
    /written before its id/,
  ],
  [
    `update transfer set at = at + interval '1 day' where id = '$call'; update usage set at = at + interval '1 day' where id = '$call'`,
    /lies in the future/,
  ],
  // Its place in the statement, and the balance there.
  [`update transfer set balance = balance + 1 where id = '$call'`, /statement says .* after transfer \$call, but/],
  [`update transfer set balance = null where id = '$call'`, /Transfer \$call has no place in the statement/],
  [`update transfer set moved_at = null, balance = null where id = '$call'`, /\$call has no place in the statement/],
  [`update transfer set moved_at = at, balance = 0 where id = '$released'`, /says 0 after transfer \$released, but/],
  [`update transfer set moved_at = moved_at - interval '1 day' where id = '$call'`, /its statement says/],
  [
    `update transfer t set moved_at = o.moved_at from transfer o where t.id = '$call' and o.account_id = t.account_id and o.kind = 'grant'`,
    /its statement says/,
  ],
  [
    `update transfer t set balance = balance + 5 from (select id from transfer where account_id = '$account' and moved_at is not null order by moved_at desc limit 1) l where t.id = l.id`,
    /but its statement ends with/,
  ],
  [`update transfer set amount = amount - 100000000000 where kind = 'grant'`, /negative amount/],
  [`update transfer set held = 5 where kind = 'takeback'`, /is a takeback, but has a loss or a hold/],
  [`update transfer set kind = 'released' where id = '$expired'`, /late settlement of a hold that did not expire/],
  [
    `delete from transfer where id = '$expired'; delete from usage where id = '$expired'`,
    /late settlement of a hold that did not expire/,
  ],
  [
    `insert into transfer (account_id, id, kind, amount) values ('$account', '$call+', 'released', 0)`,
    /\(released\) has no usage row/,
  ],
  // grants, the audit and the keys of grants
  [
    `insert into transfer (account_id, id, kind, amount, note, actor) select account_id, '$call', 'grant', 1000, note, actor from transfer where kind = 'grant' and account_id = '$other'; update account set posted = posted + 1000 where id = '$other'`,
    /audit knows nothing of transfer \$call/,
  ],
  [
    `delete from transfer where kind = 'takeback'; update account set posted = posted + 5000000 where id = '$account'`,
    /Audit row .* there is no such transfer/,
  ],
  [
    `update transfer set amount = 1 where kind = 'takeback'; update account set posted = posted + 4999999 where id = '$account'`,
    /was given -5, but transfer .* is one of -0\.000001/,
  ],
  [`update transfer set actor = 'nobody' where kind = 'takeback'`, /by others or for other reasons/],
  [`update transfer set note = 'a gift' where kind = 'takeback'`, /by others or for other reasons/],
  [`update audit set actor = 'nobody' where action = 'account.credit'`, /Audit row .* was changed/],
  [`delete from audit where action = 'catalog.apply'`, /Audit row .* was changed, or one before it/],
  [`delete from audit where id = (select max(id) from audit)`, /Audit row .* was removed/],
  [`delete from credit_idempotency`, /idempotency key that is gone/],
  [
    `insert into credit_idempotency values ('$other', 'payment-2', 'h', '{}')`,
    /kept for a grant of which the audit knows nothing/,
  ],
  // usage
  [`update usage set charged = charged - 1 where id = '$call'`, /its arithmetic gives/],
  [`update usage set loss = 1 where id = '$released'`, /loss of call/],
  [`update usage set held = held - 1 where id = '$released'`, /hold of call/],
  [`update usage set lines = '[["input", 1, "2000000"]]' where id = '$call'`, /its arithmetic gives/],
  [`update usage set lines = '[["input", 100, "6000000"]]' where id = '$call'`, /has the rates/],
  [`update usage set lines = '[["input", "many", "x"]]' where id = '$call'`, /cannot be read/],
  [`update usage set catalog_version = 77 where id = '$call'`, /no catalog version 77/],
  [`update usage set catalog_version = 77 where id = '$released'`, /no catalog version 77/],
  [`update usage set product = 'omega' where id = '$call'`, /no product "omega"/],
  [`update usage set outcome = 'expired' where id = '$released'`, /usage row says expired/],
  [
    `update usage set charged = 5 where id = '$released'; update transfer set amount = 5 where id = '$released'`,
    /was released, but something was charged/,
  ],
  [`delete from usage where id = '$call'`, /has no usage row/],
  [`delete from usage where id = '$expired'`, /has no usage row/],
  [
    `insert into usage select account_id, '$call+', key_id, product, endpoint, outcome, status, charged, loss, held, catalog_version, lines from usage where id = '$call'`,
    /has no transfer/,
  ],
  [`update usage set account_id = '$other' where id = '$call'`, /has no transfer/],
  [`update usage set key_id = 'key_2' where id = '$call'`, /hourly sum of requests .*key_2/],
  [`update usage set product = 'socialapi', lines = '[]' where id = '$released'`, /hourly sum of requests .*socialapi/],
  [`update usage set status = 500 where id = '$call'`, /hourly sum of errors/],
  [`update usage set duration_ms = 5 where id = '$call'`, /hourly sum of durations/],
  // usage_hour
  [`update usage_hour set charged = charged + 5 where account_id = '$account'`, /hourly sum of charges/],
  [`update usage_hour set requests = requests + 1 where account_id = '$account'`, /hourly sum of requests/],
  [`update usage_hour set errors = errors + 1 where account_id = '$account'`, /hourly sum of errors/],
  [`update usage_hour set duration_ms = duration_ms + 1 where account_id = '$account'`, /hourly sum of durations/],
  [
    `update usage_hour set product = 'socialapi' where account_id = '$account' and product = 'alpha-5.4'`,
    /hourly sum of requests .*socialapi/,
  ],
  [`update usage_hour set key_id = 'key_x' where account_id = '$account'`, /hourly sum of requests .*key_x/],
  [`update usage_hour set hour = hour - interval '1 hour' where account_id = '$account'`, /hourly sum of requests/],
  [`delete from usage_hour where account_id = '$other'`, /hourly sum of requests .* is 0/],
  [`update usage_hour set account_id = 'acc_x' where account_id = '$other'`, /acc_x, which does not exist/],
  // counter
  [
    `update counter set used = used + 1 where scope = 'account' and name = 'spendPerDay'`,
    /limits of account:\$account count .* as spent of the day/,
  ],
  [
    `update counter set used = used + 1 where scope = '$key' and name = 'spendPerMonth'`,
    /limits of key:\$key count .* as spent of the month/,
  ],
  [
    `update counter set used = used - 1 where scope = '$key' and name = 'spendPerMonth'`,
    /limits of key:\$key count .* as spent of the month/,
  ],
  [
    `update counter set used = used - 1 where scope = 'account' and name = 'spendTotal'`,
    /account:\$account count .* as spent in all/,
  ],
  [
    `update counter set used = 0 where scope = 'account' and name = 'spendTotal'`,
    /account:\$account count .* as spent in all/,
  ],
  [`update counter set used = used + 1 where name = 'requestsPerMinute'`, /key:\$key count .* requests in a minute/],
  [`update counter set used = used + 1 where name = 'tokensPerMinute'`, /key:\$key count .* tokens in a minute/],
  [
    `update counter set used = 3 where name = 'concurrency'`,
    /account:\$account counts 3 calls, which holds say by themselves/,
  ],
  [
    `update counter set used = used + 20000000 where account_id = '' and name = 'spendPerDay'`,
    /limits of the system count .* of the day/,
  ],
  [
    `update counter set used = used + 1 where account_id = '' and name = 'spendPerMonth'`,
    /limits of the system count .* of the month/,
  ],
  [
    // Within its day.
    `update counter set since = least(since + interval '2 hours', date_trunc('day', since, 'UTC') + interval '86399 seconds') where account_id = '' and name = 'spendPerDay'`,
    /limits of the system count .* of the day/,
  ],
  [
    `update counter set max = 7 where scope = 'account' and name = 'concurrency'`,
    /account:\$account that are counted are not those that were set/,
  ],
  [
    `update counter set unit = 'tokens' where scope = 'account' and name = 'spendPerDay'`,
    /spendPerDay of account:\$account counts tokens by day/,
  ],
  [
    `update counter set span = 'month' where scope = 'account' and name = 'spendPerDay'`,
    /spendPerDay of account:\$account counts credits by month/,
  ],
  [
    `update counter set name = 'spendPerYear' where scope = 'account' and name = 'spendPerDay'`,
    /spendPerYear of account:\$account counts credits by day/,
  ],
  [`delete from counter where scope = '$key'`, /Limits of key:\$key are set, but nothing counts/],
  [`delete from counter where account_id = ''`, /limits of the system are set, but nothing counts/],
  [
    `update counter set scope = 'key_x' where scope = '$key'`,
    /key:key_x are those of a key that the account does not have/,
  ],
  [`update counter set scope = 'systems' where account_id = ''`, /limits \(systems\) that are neither/],
  [`update counter set account_id = 'acc_x' where scope = '$key'`, /limits .* of account acc_x, which does not exist/],
  [`delete from setting where name = 'system-limits'`, /limits of the system are counted, but not in force/],
  // quota_slice
  [
    `update quota_slice set amount = 900000000001 where unit = 'credits'`,
    /quota slices of the system's limit spendPerDay/,
  ],
  [`update quota_slice set amount = -1 where unit = 'credits'`, /quota slice of process p1 \(credits\) cannot be -1/],
  [`update quota_slice set unit = 'gold' where unit = 'credits'`, /quota slice of process p1 \(gold\) cannot be/],
  [
    `update quota_slice set account_id = '$other' where unit = 'credits'`,
    /quota slice of process p1 \(credits\) is that of account \$other/,
  ],
  // idempotency
  [`update idempotency set hold_id = 'gone' where key = 'running'`, /says that it runs, but nothing is held/],
  [
    `insert into idempotency (account_id, key, request_hash, hold_id) values ('$account', 'orphan', 'h', 'gone')`,
    /says that it runs, but nothing is held/,
  ],
  [`update idempotency set status = 200 where key = 'running'`, /has an answer, but the call is still held for/],
  [`update idempotency set hold_id = 'gone' where key = 'answered'`, /there never was such a call/],
  [`update idempotency set freed = true where key = 'running'`, /is free, but the call is still held for/],
  [`update idempotency set freed = true where key = 'answered'`, /is free, but has an answer/],
  [`update idempotency set account_id = 'acc_x' where key = 'answered'`, /acc_x: there is no such account/],
  // job
  [`delete from job where id = 'job_open'`, /is that of a job, but there is no such job/],
  [`update job set hold_id = 'gone' where id = 'job_open'`, /job_open .* has neither a hold nor a charge/],
  [`update job set hold_id = 'gone' where id = 'job_done'`, /job_done .* has neither a hold nor a charge/],
  [`update job set account_id = 'acc_x' where id = 'job_done'`, /job_done .* an account that does not exist/],
  [`update job set verdict = 'FAILED', status = 'FAILED' where id = 'job_done'`, /is FAILED, but its hold was settled/],
  [
    `update job set verdict = 'COMPLETED', status = 'COMPLETED' where id = 'job_failed'`,
    /is COMPLETED, but its hold was released/,
  ],
  [`update job set status = 'CANCELLED' where id = 'job_failed'`, /is CANCELLED, but was decided otherwise/],
  [`update job set verdict = null, status = 'PROCESSING' where id = 'job_done'`, /was settled before it was decided/],
  [
    `update job set verdict = 'FAILED', status = 'FAILED' where id = 'job_open'`,
    /is FAILED, but its hold still stands/,
  ],
  [`update job set product = 'socialapi' where id = 'job_open'`, /is one of socialapi/],
  [`update job set key_id = 'key_x' where id = 'job_done'`, /its hold or charge is one of/],
  [`update job set catalog_version = 77 where id = 'job_open'`, /no catalog version 77/],
  [
    `update job set deadline_at = now() - interval '3 hours' where id = 'job_open'`,
    /should have ended \d+ minutes ago/,
  ],
  // catalog_version
  [`delete from catalog_version where version = 1`, /Catalog version 1 was removed/],
  [`delete from catalog_version where version = 2`, /no catalog version 2/],
  [`update catalog_version set version = 9 where version = 2`, /Catalog version 2 was removed: the next is 9/],
  [`update catalog_version set document = 'x' where version = 1`, /Catalog version 1 cannot be read/],
  [`update catalog_version set document = 'x' where version = 2`, /version 2, by which it was priced, cannot be read/],
  [
    `update catalog_version set document = replace(document, '"0.5"', '"0.1"') where version = 2`,
    /Catalog version 2 is not what was applied/,
  ],
  // What was covered up: every sum is put right again, and only the price or the chain tells.
  ...coveredUp(),
  // What decided the price.
  [
    `update usage set lines = '[["input", 100, "4000000"], ["output", 50, "16000000"]]', charged = 1200 where id = '$call'; update transfer set amount = 1200 where id = '$call'`,
    /Call \$call: the price .* for such a call has the rates input 2000000, output 8000000/,
  ],
  [
    `update usage set lines = '[]', charged = 0 where id = '$call'; update transfer set amount = 0 where id = '$call'`,
    /\$call/,
  ],
  [`update usage set lines = '[]' where id = '$call'`, /\$call: its arithmetic gives 0/],
  [
    `update usage set lines = lines || '[["cachedInput", 0, "7"]]' where id = '$call'; update usage set lines = '[["output", 75, "8000000"]]' where id = '$call'; update usage set lines = '[["output", 75, "8000001"]]', charged = 601 where id = '$call'`,
    /\$call/,
  ],
  [
    `update usage set lines = '[["input", 1, "600000000"]]' where id = '$call'`,
    /\$call: the price .* has the rates input 2000000/,
  ],
  [`update usage set credential = 'own' where id = '$call'`, /\$call: it was charged as one by a BYOK key/],
  [
    `update usage set lines = '[["call", 1, "600000000"]]' where id = '$call'`,
    /\$call: the price .* has the rates nothing/,
  ],
  // A planted row of the journal, and one whose price is not that of such a call.
  [
    `update journal set lines = '[["input", 1, "4000000"]]', charged = 4`,
    /\$waiting .* for such a call has the rates input 2000000/,
  ],
  [`update journal set charged = 3`, /\$waiting .*: its arithmetic gives/],
  [`update journal set lease_id = 'none'`, /\$waiting .* is covered by no lease/],
  // api_key
  [
    `update api_key set account_id = '$other' where id = '$key'`,
    /Key \$key was made for account \$account, but is one of account \$other/,
  ],
  // batch and background
  [`update batch set account_id = 'acc_x'`, /Batch batch_1 of account acc_x: there is no such account/],
  [
    `update batch set key_id = '$key', account_id = '$other'`,
    /Batch batch_1 .* is paid for by a key of account \$account/,
  ],
  [`update batch set completed = completed + 1`, /Batch batch_1 .* is completed, but its counts/],
  [`update batch set failed = -1`, /Batch batch_1 .* is completed, but its counts/],
  [`update batch set total = 5`, /Batch batch_1 .* is completed, but its counts/],
  [`update batch set status = 'in_progress'`, /Batch batch_1 .* is in_progress, but/],
  [`update batch set ended_at = null`, /Batch batch_1 .* is completed, but/],
  [
    `update background set account_id = 'acc_x'`,
    /Background response resp_1 of account acc_x: there is no such account/,
  ],
  [
    `update background set account_id = '$other'`,
    /Background response resp_1 .* is paid for by a key of account \$account/,
  ],
  [`update background set answer = null`, /Background response resp_1 .* is completed, but/],
  [`update background set status = 'queued'`, /Background response resp_1 .* is queued, but/],
  [`update background set ended_at = null`, /Background response resp_1 .* is completed, but/],
  // The chain of an account's movements.
  [`update transfer set hash = sha256('x') where id = '$call'`, /transfer .* was changed, or the one before it/],
  [`update transfer set hash = null where id = '$call'`, /transfer .* was changed, or the one before it/],
  [`update account set chain = sha256('x') where id = '$account'`, /\$account: its last transfer is not the one/],
  [`update account set chain = null where id = '$other'`, /\$other: its last transfer is not the one/],
  ...COSTS,
  ...UNMOVED,
  ...DEFERRED,
  ...OTHERS,
  // gateway_instance
  [
    `update gateway_instance set heartbeat_at = now() + interval '1 year' where id = 'p1'`,
    /said to have lived in the future/,
  ],
]

/** What a thorough hand does to one call: all that sums it up follows. */
function coveredUp(): readonly Corruption[] {
  const follow = (by: string) => `
    update transfer set balance = balance + ${by} where account_id = '$account' and moved_at > (select min(moved_at) from transfer where id = '$first');
    update account set posted = posted + ${by} where id = '$account';
    update usage_hour set charged = charged - ${by} where account_id = '$account' and key_id = '$key' and product = 'alpha-5.4';
    update counter set used = used - ${by} where unit = 'credits' and account_id in ('$account', '')`
  const changed = /was changed, or the one before it was changed, removed or put there/
  return [
    // At the rates of another tier.
    [
      `update transfer set amount = 1200, balance = balance - 600 where id = '$call'; update usage set charged = 1200, lines = '[["input", 100, "4000000"], ["output", 50, "16000000"]]' where id = '$call'; ${follow('-600').replaceAll('$first', '$call')}`,
      /Call \$call: the price .* has the rates/,
    ],
    // Fewer tokens than were used, at the right price.
    [
      `update transfer set amount = 200, balance = balance + 400 where id = '$call'; update usage set charged = 200, lines = '[["input", 100, "2000000"]]' where id = '$call'; ${follow('400').replaceAll('$first', '$call')}`,
      changed,
    ],
    // A charge becomes a loss.
    [
      `update usage set charged = 0, loss = 600 where id = '$call'; ${follow('600').replaceAll('$first', '$call')}; update transfer set amount = 0, loss = 600, moved_at = null, balance = null, hash = null where id = '$call'`,
      changed,
    ],
    // A part of it does.
    [
      `update transfer set amount = 500, loss = 100, balance = balance + 100 where id = '$call'; update usage set charged = 500, loss = 100 where id = '$call'; ${follow('100').replaceAll('$first', '$call')}`,
      changed,
    ],
    // A call is erased.
    [
      `${follow('600').replaceAll('$first', '$call')}; delete from transfer where id = '$call'; update usage_hour h set requests = h.requests - 1, duration_ms = h.duration_ms - 12 where account_id = '$account' and key_id = '$key'; delete from usage where id = '$call'`,
      changed,
    ],
    // A grant's note, where nothing else tells of it.
    [
      `update transfer set note = 'x' where id = (select min(id) from transfer where account_id = '$other' and kind = 'grant')`,
      changed,
    ],
  ]
}

/** A settlement that is not in the ledger yet, of a call like another. */
export function journalRow(id: string, like: string): string {
  return `insert into journal (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, route, first_byte_ms, cost, lease_id, tokens, second, input_tokens, output_tokens, estimated, stream, duration_ms, at)
    select account_id, '${id}', key_id, product, endpoint, outcome, status, charged, 100, catalog_version, lines, route, first_byte_ms, cost, 'lease_1', 0, 0, 1, 1, estimated, stream, duration_ms, now() + interval '1 hour' from usage where id = '${like}'`
}
