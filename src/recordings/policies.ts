// Recording policies: which requests and answers are recorded. By default none are; an account's owner or an operator turns recording on for the
// account or for one key. A change is announced like a change of keys, because the cached keys carry the policy.

import { accountUnknown } from '../admission/accounts.ts'
import { keyUnknown } from '../admission/keys.ts'
import type { ContentRules, RecordingPolicy } from '../admission/views.ts'
import type { Audit, By } from '../database/audit.ts'
import type { Changes } from '../database/changes.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import { ownAccountOf, testAccountOf } from '../kernel/test-account.ts'

export interface RecordingPolicies {
  get(account: string): Promise<ContentRules>
  /** The policy for calls of the account that are made without a key. */
  ofAccount(account: string): Promise<RecordingPolicy | undefined>
  /** Sets the policy for the account and its test account, or for one key of either. */
  set(account: string, key: string | undefined, rule: RecordingPolicy, by: By): Promise<ContentRules>
  /** `remove`: also deletes the recordings at once. */
  unset(account: string, key: string | undefined, remove: boolean, by: By): Promise<ContentRules>
}

/** The scope of a policy for the whole account. */
const ACCOUNT = 'account'

const LIST = statement(
  'content_rules',
  `select scope, days, bytes as "maxBytes" from recording_policy where account_id = any($1) order by account_id, scope`,
)
const OF_ACCOUNT = statement(
  'content_rule_of_account',
  `select days, bytes as "maxBytes" from recording_policy where account_id = $1 and scope = '${ACCOUNT}'`,
)
const FIND = statement(
  'content_rule_find',
  'select days, bytes as "maxBytes" from recording_policy where account_id = any($1) and scope = $2 limit 1 for update',
)
const COUNT = statement(
  'content_count',
  'select count(*)::int as calls from recording where account_id = any($1) and expires_at > now() and sealed is not null',
)
const EXISTS = statement('content_account', 'select 1 from account where id = $1')
const KEY = statement('content_key', 'select account_id from api_key where id = $1 and account_id = any($2)')
const SET = statement(
  'content_rule_set',
  `insert into recording_policy (account_id, scope, days, bytes) select x, $2, $3, $4 from unnest($1::text[]) x
   on conflict (account_id, scope) do update set days = excluded.days, bytes = excluded.bytes`,
)
const UNSET = statement('content_rule_unset', 'delete from recording_policy where account_id = any($1) and scope = $2')
// Recordings of other keys, and of keys with their own policy, do not belong to the removed policy and stay.
const REMOVE = statement(
  'content_remove_all',
  `with gone as (delete from recording where (account_id, id) in (
     select c.account_id, c.id from recording c where c.account_id = any($1) and case when $2 = '${ACCOUNT}'
       then not exists (select 1 from recording_policy r where r.account_id = c.account_id and r.scope = c.key_id) else c.key_id = $2 end
     limit 500) returning 1)
   select count(*)::int as count from gone`,
)

export function createRecordingPolicies(options: {
  database: Database
  changes: Changes
  audit: Audit
}): RecordingPolicies {
  const { database, changes, audit } = options

  async function get(account: string): Promise<ContentRules> {
    const both = [account, testAccountOf(account)]
    const rows = await database.query<{ scope: string } & RecordingPolicy>(LIST, [both])
    const [kept] = await database.query<{ calls: number }>(COUNT, [both])
    const whole = rows.find(({ scope }) => scope === ACCOUNT)
    return {
      account: whole ? { days: whole.days, maxBytes: whole.maxBytes } : null,
      keys: rows.filter(({ scope }) => scope !== ACCOUNT).map(({ scope: key, ...rule }) => ({ key, ...rule })),
      kept: kept?.calls ?? 0,
    }
  }

  /** The accounts of a policy, and its scope. */
  async function scopeOf(account: string, key: string | undefined): Promise<[accounts: string[], scope: string]> {
    const own = ownAccountOf(account)
    if ((await database.query(EXISTS, [own])).length === 0) throw accountUnknown()
    const both = [own, testAccountOf(own)]
    if (key === undefined) return [both, ACCOUNT]
    const [row] = await database.query<{ account_id: string }>(KEY, [key, both])
    if (!row) throw keyUnknown()
    return [[row.account_id], key]
  }

  async function changing(run: (tx: Queryable) => Promise<void>): Promise<void> {
    await database.transaction(async (tx) => {
      await changes.bump(tx, 'keys')
      await run(tx)
    })
    await changes.notice('keys')
  }

  return {
    get,
    ofAccount: async (account) => (await database.query<RecordingPolicy>(OF_ACCOUNT, [account]))[0],
    async set(account, key, rule, by) {
      const [accounts, scope] = await scopeOf(account, key)
      await changing(async (tx) => {
        const [before = {}] = await tx.query<RecordingPolicy>(FIND, [accounts, scope])
        await tx.query(SET, [accounts, scope, rule.days, rule.maxBytes])
        await audit.write(tx, by, {
          ...{ action: 'content.on', object: key ?? account, detail: { account, ...rule } },
          before,
          after: rule,
        })
      })
      return get(account)
    },
    async unset(account, key, remove, by) {
      const [accounts, scope] = await scopeOf(account, key)
      await changing(async (tx) => {
        const [before = {}] = await tx.query<RecordingPolicy>(FIND, [accounts, scope])
        await tx.query(UNSET, [accounts, scope])
        await audit.write(tx, by, {
          action: 'content.off',
          object: key ?? account,
          detail: { account, removed: remove },
          before,
          after: {},
        })
      })
      if (remove) await pruneAll(database, REMOVE, [accounts, scope])
      return get(account)
    },
  }
}
