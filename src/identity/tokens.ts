// Tokens of the operator API: for the whole gateway, or for one account. A token is shown once; the row has a keyed
// digest. A token may do what its scopes name, but never more than its creator may do at that moment. It is looked up
// in the database on every call, so a revocation or a changed role takes effect at once in all processes.

import { isIP } from 'node:net'
import { accountUnknown } from '../admission/accounts.ts'
import { isRangeWithin, readIpRanges } from '../admission/api-key.ts'
import type { Audit, By } from '../database/audit.ts'
import { type Database, sql } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { sameBytes, sign } from '../kernel/secret.ts'
import { asView } from '../kernel/view.ts'
import { newId, type World } from '../kernel/world.ts'
import { type AccountRole, type OperatorRole, type Permission, rightsIn, roleMay } from './roles.ts'
import { type NewToken, type TokenView, tokenView } from './views.ts'

/** A token in use: for whom it acts, and its limits. */
export interface TokenUse {
  readonly id: string
  readonly name: string
  /** The process was started with it. */
  readonly isFirst: boolean
  /** Null: of the whole gateway. */
  readonly account: string | null
  readonly scopes: readonly string[]
  /** The person who made it, or who made the token that made it. Null: made with the token of the first start. */
  readonly person: { readonly id: string; readonly email: string } | null
  /** That person's current roles; a token without a person has all rights in the gateway or its account. */
  readonly role: OperatorRole | null
  readonly accountRole: AccountRole | null
  /** Until when, and from where. Null: without end, and from everywhere. */
  readonly bounds: Bounds
}

interface Bounds {
  readonly expiresAtMs: number | null
  readonly ipRanges: readonly string[] | null
}

interface Maker {
  readonly may: (permission: Permission) => boolean
  readonly person: string | null
  /** The token with which it is created. The new token has at most the same bounds, and is revoked with it. */
  readonly token: Pick<TokenUse, 'id' | 'bounds' | 'isFirst'> | undefined
}

interface TokenInput {
  readonly name: string
  readonly scopes: readonly string[]
  readonly expiresAtMs?: number | null | undefined
  readonly ipRanges?: readonly string[] | null | undefined
}

/** `account` null: tokens of the whole gateway. */
export interface Tokens {
  list(account: string | null): Promise<TokenView[]>
  create(account: string | null, input: TokenInput, maker: Maker, by: By): Promise<NewToken>
  /**
   * Needs the rights that the token has. Also revokes all tokens that descend from it, except for tokens created with
   * the first token.
   */
  revoke(account: string | null, id: string, may: Maker['may'], by: By): Promise<TokenView>
  /** Throws if it may not be used, or not from this address. */
  use(token: string, ip: string): Promise<TokenUse>
  /** Registers the token with which this process was started. */
  adopt(token: string): Promise<void>
}

interface TokenRow {
  readonly id: string
  readonly name: string
  readonly scopes: string[]
  readonly ip_ranges: string[] | null
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
  readonly is_first: boolean
}

interface UsedRow extends Pick<TokenRow, 'id' | 'name' | 'scopes' | 'ip_ranges' | 'expires_at' | 'is_first'> {
  account_id: string | null
  person_id: string | null
  email: string | null
  role: OperatorRole | null
  account_role: AccountRole | null
  expired: boolean | null
  revoked: boolean
  resting: boolean
}

type FoundRow = Pick<TokenRow, 'revoked_at' | 'scopes'> & Pick<UsedRow, 'person_id' | 'role' | 'account_role'>

/** Per account, and for the gateway. */
const LIVE_MAX = 200
/** Also the name in the audit log, for its use and for the tokens that it made. */
export const FIRST = 'operator token'

const COLUMNS =
  'id, name, last4, scopes, ip_ranges, expires_at, made_by as created_by, created_at, last_used_at, last_ip, revoked_at, is_first'
const LIST = sql('token_list')`
  select ${COLUMNS} from access_token where account_id is not distinct from $1 order by revoked_at is not null, created_at desc limit 500`
// Locks the account's row, so that concurrent requests cannot exceed the limit.
const LOCK_ACCOUNT = sql('token_account')`select 1 from account where id = $1 for no key update`
const LIVE = sql('token_live')`
  select count(*)::int as count from access_token where account_id is not distinct from $1 and revoked_at is null
     and (expires_at is null or expires_at > now())`
const INSERT = sql('token_insert')`
  insert into access_token (id, digest, account_id, name, last4, scopes, ip_ranges, expires_at, person_id, made_by, parent_id)
   values ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8::double precision / 1000), $9, $10, $11) returning ${COLUMNS}`
const FIND = sql('token_find')`
  select t.revoked_at, t.scopes, t.person_id, p.operator_role as role, m.role as account_role
   from access_token t left join person p on p.id = t.person_id
     left join membership m on m.person_id = t.person_id and m.account_id = t.account_id
   where t.id = $2 and t.account_id is not distinct from $1 for update of t`
const REVOKE = sql('token_revoke')`
  update access_token set revoked_at = coalesce(revoked_at, now()) where id = $2 and account_id is not distinct from $1 returning ${COLUMNS}`
// Revoking the parent waits for this lock, and then revokes the new token too.
const LOCK_PARENT = sql('token_lock_parent')`select 1 from access_token where id = $1 and revoked_at is null for share`
const REVOKE_MADE = sql('token_revoke_made')`
  update access_token set revoked_at = now() where parent_id = any($1) and revoked_at is null returning ${COLUMNS}`
const USE = sql('token_use')`
  select t.id, t.name, t.account_id, t.scopes, t.ip_ranges, t.expires_at, t.is_first, t.person_id, p.email, p.operator_role as role, m.role as account_role,
     t.expires_at <= now() as expired, t.revoked_at is not null as revoked,
     t.last_used_at is null or t.last_used_at < now() - interval '60 seconds' as resting
   from access_token t left join person p on p.id = t.person_id
     left join membership m on m.person_id = t.person_id and m.account_id = t.account_id
   where t.digest = $1`
const USED = sql('token_used')`update access_token set last_used_at = now(), last_ip = $2 where id = $1`
const ADOPT = sql('token_adopt')`
  insert into access_token (id, digest, name, last4, scopes, made_by, is_first) values ($1, $2, $3, $4, '{*}', 'the first start', true)
   on conflict do nothing`

export function createTokens(deps: { database: Database; world: World; audit: Audit; pepper: Buffer }): Tokens {
  const { database, world, audit, pepper } = deps
  const digestOf = (token: string) => sign(pepper, token)
  let own: Buffer | undefined

  return {
    list: async (account) => (await database.query<TokenRow>(LIST, [account])).map(viewOf),

    async create(account, { name, scopes, ...given }, maker, by) {
      checkScopes(scopes, account, maker)
      const { expiresAtMs, ipRanges } = boundsOf(given, maker, world.nowMs())
      const token = `${account === null ? 'tg_op_' : 'tg_acc_'}${world.bytes(32).toString('base64url')}`
      const id = `tok_${newId(world)}`
      const values = [id, digestOf(token), account, name, token.slice(-4), scopes, ipRanges, expiresAtMs, maker.person]
      const row = await database.transaction(async (tx) => {
        if (account !== null && !(await tx.query(LOCK_ACCOUNT, [account]))[0]) throw accountUnknown()
        const [live] = await tx.query<{ count: number }>(LIVE, [account])
        if ((live?.count ?? 0) >= LIVE_MAX)
          throw new Fault('conflict', { message: `There are ${LIVE_MAX} tokens already. Revoke one first.` })
        // Tokens created with the first token have no parent, because they are meant to replace it.
        const parent = maker.token && !maker.token.isFirst ? maker.token.id : null
        if (parent !== null && !(await tx.query(LOCK_PARENT, [parent]))[0])
          throw new Fault('key_unknown', { message: 'This token was revoked.' })
        const [made] = await tx.query<TokenRow>(INSERT, [...values, by.token ?? by.actor, parent])
        const detail = { name, scopes, ...(account === null ? {} : { account }) }
        const until = made?.expires_at?.toISOString() ?? null
        await audit.write(tx, by, {
          action: 'token.create',
          object: id,
          detail,
          before: {},
          after: { name, scopes, expiresAt: until, ipRanges },
        })
        return made! // An insert returns its row.
      })
      return { ...viewOf(row), token }
    },

    async revoke(account, id, may, by) {
      return database.transaction(async (tx) => {
        const [was] = await tx.query<FoundRow>(FIND, [account, id])
        if (!was) throw new Fault('not_found', { message: 'There is no such token here.' })
        requireRights(was, account, may)
        const [row] = await tx.query<TokenRow>(REVOKE, [account, id])
        if (!row) throw new Fault('not_found', { message: 'There is no such token here.' })
        await audit.write(tx, by, {
          action: 'token.revoke',
          object: id,
          detail: { name: row.name },
          before: { revokedAt: was.revoked_at },
          after: { revokedAt: row.revoked_at },
        })
        // One level at a time: each statement waits for tokens that are being created, and then sees them.
        for (let parents = [id]; parents.length > 0; ) {
          const made = await tx.query<TokenRow>(REVOKE_MADE, [parents])
          for (const { id: child, name, revoked_at: revokedAt } of made)
            await audit.write(tx, by, {
              action: 'token.revoke',
              object: child,
              detail: { name, madeWith: id },
              before: { revokedAt: null },
              after: { revokedAt },
            })
          parents = made.map((one) => one.id)
        }
        return viewOf(row)
      })
    },

    async use(token, ip) {
      const digest = digestOf(token)
      const [row] = await database.query<UsedRow>(USE, [digest])
      // A process accepts only the first token that it was started with, so a new one in the environment replaces the
      // old one.
      if (!row || (row.is_first && !(own && sameBytes(own, digest))))
        throw new Fault('key_unknown', { message: 'This operator token is not valid.' })
      if (row.revoked) throw new Fault('key_unknown', { message: 'This token was revoked.' })
      if (row.expired) throw new Fault('key_unknown', { message: 'This token has expired.' })
      if (row.ip_ranges && !readIpRanges(row.ip_ranges).check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4'))
        throw new Fault('access_denied', { message: 'This token may not be used from this address.' })
      if (row.resting) await database.query(USED, [row.id, ip])
      const isNobodys = row.person_id === null
      return {
        id: row.id,
        name: row.name,
        isFirst: row.is_first,
        account: row.account_id,
        scopes: row.scopes,
        person: row.person_id === null ? null : { id: row.person_id, email: row.email ?? '' },
        role: isNobodys && row.account_id === null ? 'operator' : row.role,
        accountRole: isNobodys && row.account_id !== null ? 'owner' : row.account_role,
        bounds: { expiresAtMs: row.expires_at?.getTime() ?? null, ipRanges: row.ip_ranges },
      }
    },

    async adopt(token) {
      own = digestOf(token)
      await database.query(ADOPT, [`tok_${newId(world)}`, own, FIRST, token.slice(-4)])
    },
  }
}

/** Otherwise a token that may do little could lock out everybody else. */
function requireRights({ scopes, ...of }: FoundRow, account: string | null, may: Maker['may']): void {
  const isNobodys = of.person_id === null
  const roles = isNobodys ? [account === null ? ('operator' as const) : ('owner' as const)] : [of.role, of.account_role]
  const held = roles.flatMap((role) => (role === null ? [] : rightsIn(scopes, role)))
  const beyond = held.find((right) => (account === null || roleMay('owner', right)) && !may(right))
  if (beyond === undefined) return
  throw new Fault('access_denied', { message: `This token has a right that you do not have: ${beyond}.` })
}

/** Every scope must exist here and be among the rights of the token's maker. */
function checkScopes(scopes: readonly string[], account: string | null, { may }: Maker): void {
  const most = account === null ? 'operator' : 'owner'
  const unknown = scopes.find((scope) => rightsIn([scope], most).length === 0)
  if (unknown !== undefined)
    throw new Fault('request_invalid', {
      message: `scopes: "${unknown.slice(0, 60).toWellFormed()}" names no right ${account === null ? 'here' : 'in an account'}. Rights are named like keys:read; the reference page "Roles and rights" lists them.`,
      param: 'scopes',
    })
  const beyond = rightsIn(scopes, most).filter((permission) => !may(permission))
  if (beyond.length > 0)
    throw new Fault('access_denied', {
      message: `A token cannot have more rights than its creator. You do not have ${beyond.slice(0, 5).join(', ')}${beyond.length > 5 ? ' and more' : ''}.`,
    })
}

/**
 * A token made by a token expires no later and works from no other addresses. Omitted values are taken from the maker.
 */
function boundsOf(given: Pick<TokenInput, 'expiresAtMs' | 'ipRanges'>, { token }: Maker, nowMs: number): Bounds {
  const { expiresAtMs = null, ipRanges = null } = given
  if (expiresAtMs !== null && expiresAtMs <= nowMs)
    throw new Fault('request_invalid', { message: 'expiresAt: must be in the future.', param: 'expiresAt' })
  if (ipRanges) readIpRanges(ipRanges)
  const until = token?.bounds.expiresAtMs ?? null
  const from = token?.bounds.ipRanges ?? null
  if (until !== null && expiresAtMs !== null && expiresAtMs > until)
    throw new Fault('access_denied', { message: 'expiresAt: a token cannot outlive the token that creates it.' })
  const beyond = from && ipRanges?.find((range) => !isRangeWithin(range, from))
  if (beyond)
    throw new Fault('access_denied', {
      message: `ipRanges: the token that creates it cannot be used from all of ${beyond}.`,
    })
  return { expiresAtMs: expiresAtMs ?? until, ipRanges: ipRanges ?? from }
}

const viewOf = (row: TokenRow): TokenView => asView(tokenView, row)
