// The rows of keys: how they are read, written and shown.
import { statement } from '../database/database.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { type Limits, showLimits } from '../ledger/limits.ts'
import type { KeyView } from './views.ts'

export interface KeyRow {
  id: string
  account_id: string
  name: string
  prefix: string
  last4: string
  models: string[] | null
  ip_ranges: string[] | null
  limits: Limits
  keeps_answers: boolean | null
  expires_at: Date | null
  revoked_at: Date | null
  replaced_by: string | null
  client: string | null
  last_used_at: Date | null
  created_at: Date
}

/** What the audit may keep of a key. */
export function told(view: KeyView): Record<string, unknown> {
  const { name, last4, models, expiresAt, limits, ipRanges, keepsAnswers, client } = view
  return { name, last4, models, expiresAt, limits, ipRanges, keepsAnswers, ...(client === null ? {} : { client }) }
}

export function keyView(row: KeyRow): KeyView {
  return {
    id: row.id,
    name: row.name,
    test: isTestAccount(row.account_id),
    prefix: row.prefix,
    last4: row.last4,
    models: row.models,
    expiresAt: row.expires_at?.toISOString() ?? null,
    limits: showLimits(row.limits),
    ipRanges: row.ip_ranges,
    keepsAnswers: row.keeps_answers,
    revokedAt: row.revoked_at?.toISOString() ?? null,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    replacedBy: row.replaced_by,
    client: row.client,
  }
}

const COLUMNS = `id, account_id, name, prefix, last4, models, ip_ranges, limits, keeps_answers, expires_at, revoked_at, replaced_by, client, last_used_at, created_at`
// Locked at once as the limits will need it: a weaker lock that grows later may meet a flush half-way.
export const ACCOUNT = statement(
  'key_account',
  'select frozen_until > now() as frozen from account where id = $1 for update',
)
export const LIST = statement(
  'key_list',
  `select ${COLUMNS} from api_key where account_id = any($1) and id < $2 order by id desc limit $3`,
)
export const GET = statement('key_get', `select ${COLUMNS} from api_key where id = $1`)
export const LOCK = statement('key_lock', `select ${COLUMNS} from api_key where id = $1 for update`)
export const INSERT = statement(
  'key_insert',
  `insert into api_key (id, account_id, name, digest, prefix, last4, models, ip_ranges, limits, expires_at, grant_id, client, keeps_answers)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, to_timestamp($10::double precision / 1000), $11, $12, $13)
   on conflict (digest) do nothing returning ${COLUMNS}`,
)
export const BY_DIGEST = statement('key_by_digest', `select ${COLUMNS} from api_key where digest = $1`)
export const CHANGE = statement(
  'key_change',
  `update api_key set name = $2, models = $3, ip_ranges = $4, limits = $5, expires_at = to_timestamp($6::double precision / 1000),
     keeps_answers = $7
   where id = $1 returning ${COLUMNS}`,
)
// The earlier of the two clocks, so that the key is dead to whoever looks at either.
export const REVOKE = statement(
  'key_revoke',
  `update api_key set revoked_at = least(revoked_at, now(), to_timestamp($2::double precision / 1000)) where id = $1
   returning ${COLUMNS}`,
)
export const REPLACE = statement(
  'key_replace',
  'update api_key set replaced_by = $2, revoked_at = to_timestamp($3::double precision / 1000) where id = $1',
)
export const KEEP_CONTENT_RULE = statement(
  'key_keep_content_rule',
  'insert into recording_policy (account_id, scope, days, bytes) select account_id, $2, days, bytes from recording_policy where scope = $1',
)
export const OF_GRANT = statement('key_of_grant', 'select id from api_key where grant_id = $1 and revoked_at is null')
export const OF_PERSON = statement(
  'key_of_person',
  `select k.id from api_key k join oauth_object o on o.model = 'Grant' and o.digest = sha256(convert_to(k.grant_id, 'UTF8'))
   where k.account_id = any($1) and k.revoked_at is null and o.payload ->> 'accountId' = $2 order by k.id`,
)
// What the same person let the same program do with the account before.
export const OF_CONSENT = statement(
  'key_of_consent',
  `select k.id from api_key k join oauth_object o on o.model = 'Grant' and o.digest = sha256(convert_to(k.grant_id, 'UTF8'))
   join oauth_object mine on mine.model = 'Grant' and mine.digest = sha256(convert_to($2, 'UTF8'))
   where k.account_id = $1 and k.grant_id <> $2 and k.revoked_at is null
   and o.payload ->> 'accountId' = mine.payload ->> 'accountId' and o.payload ->> 'clientId' = mine.payload ->> 'clientId' order by k.id`,
)
export const EARLIER = statement(
  'key_earlier',
  `with recursive earlier as (
     select id from api_key where replaced_by = $1
     union select k.id from api_key k join earlier e on k.replaced_by = e.id
   ) select id from earlier`,
)
