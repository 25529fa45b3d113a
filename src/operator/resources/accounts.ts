// Accounts, their keys, and the people who may see them.

import * as z from 'zod'
import { type Accounts, accountUnknown, TEST_CREDITS } from '../../admission/accounts.ts'
import { type Keys, keyUnknown } from '../../admission/keys.ts'
import type { Teams } from '../../admission/teams.ts'
import { keyRouting, keyView, newKey } from '../../admission/views.ts'
import type { Members } from '../../identity/members.ts'
import { inviteLink, type People, setupLink } from '../../identity/people.ts'
import { roleMay } from '../../identity/roles.ts'
import { linkView, memberView, operatorRole, operatorView, pendingInvite, role } from '../../identity/views.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { LABEL_NAME } from '../../kernel/label.ts'
import { ownAccountOf, testAccountOf } from '../../kernel/test-account.ts'
import { page } from '../../kernel/view.ts'
import { type AccountView, accountView, balanceView, webhookSecretView } from '../../ledger/views.ts'
import { limitsInput, limitsView } from '../../meter/limits.ts'
import type { Statements } from '../../reports/statement.ts'
import {
  type Actor,
  accountsOf,
  amount,
  email,
  id,
  may,
  mayGive,
  moment,
  paging,
  type Resource,
  resource,
  test,
  text,
  WithHeaders,
} from '../resource.ts'

/** Callers of the account see this text. */
const reason = text(200)
const TEST_CREDITS_MAX: Credits = 1_000_000_000_000n

export interface AccountDeps {
  readonly accounts: Accounts
  readonly statements: Statements
  /** The secret with which receivers verify webhooks. */
  readonly webhookSecret: (account: string) => string
}

export function accountResources({ accounts, statements, webhookSecret }: AccountDeps): Resource[] {
  async function show(id: string): Promise<AccountView> {
    const account = await statements.account(id)
    if (!account) throw accountUnknown()
    return account
  }

  return [
    resource('GET /accounts', 'accounts:read', {
      own: true,
      query: z.strictObject({ ...paging, q: text(100, 0).optional() }),
      answer: page(accountView),
      run({ query, actor }) {
        const only = accountsOf(actor, 'accounts:read')
        return statements.accounts({ ...query, ...(only === null ? {} : { only }) })
      },
    }),
    resource('POST /accounts', 'accounts:write', {
      body: z.strictObject({
        name: text(100),
        credits: amount.refine((value) => value >= 0n, 'must not be negative').optional(),
        note: text(200, 0).optional(),
        limits: limitsInput.nullable().optional(),
      }),
      repeatable: true,
      answer: accountView,
      async run({ body, by, idempotencyKey: key }) {
        if (key === undefined) return show(await accounts.create(body, by))
        const { id, again } = await accounts.createOnce(key, body, by)
        return again ? new WithHeaders(await show(id), { 'idempotent-replayed': 'true' }) : show(id)
      },
    }),
    resource('GET /accounts/{id}', 'accounts:read', {
      answer: accountView,
      run: ({ params }) => show(params.id),
    }),
    resource('PATCH /accounts/{id}', 'accounts:write', {
      body: z.strictObject({ name: text(100).optional(), limits: limitsInput.nullable().optional() }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.change(params.id, body, by)
        return show(params.id)
      },
    }),
    resource('POST /accounts/{id}/suspend', 'accounts:write', {
      body: z.strictObject({ reason }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.suspend(params.id, body.reason, by)
        return show(params.id)
      },
    }),
    resource('POST /accounts/{id}/close', 'accounts:write', {
      body: z.strictObject({ reason, balance: z.enum(['payout', 'writeoff']) }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.close(params.id, body, by)
        return show(params.id)
      },
    }),
    resource('POST /accounts/{id}/reopen', 'accounts:write', {
      answer: accountView,
      async run({ params, by }) {
        await accounts.reopen(params.id, by)
        return show(params.id)
      },
    }),
    resource('GET /accounts/{id}/test-balance', 'accounts:read', {
      answer: accountView,
      run: ({ params }) => show(testAccountOf(params.id)),
    }),
    resource('PUT /accounts/{id}/test-balance', 'test-balance:write', {
      body: z.strictObject({
        available: amount
          .refine(
            (value) => value >= 0n && value <= TEST_CREDITS_MAX,
            `must be 0 to ${formatCredits(TEST_CREDITS_MAX)}`,
          )
          .default(TEST_CREDITS),
      }),
      answer: accountView,
      run: ({ params, body, by }) => accounts.refillTest(params.id, body.available, by),
    }),
    resource('GET /accounts/{id}/webhook-secret', 'webhook-secret:read', {
      query: z.strictObject({ test }),
      answer: webhookSecretView,
      run: async ({ params, query }) => {
        const account = query.test === 'true' ? testAccountOf(params.id) : params.id
        return { secret: webhookSecret((await show(account)).id) }
      },
    }),
    ...creditResources({ accounts, statements }),
    ...limitResources(accounts),
  ]
}

/** Balance and credits of an account. */
function creditResources({ accounts, statements }: Pick<AccountDeps, 'accounts' | 'statements'>): Resource[] {
  return [
    resource('GET /accounts/{id}/balance', 'accounts:read', {
      query: z.strictObject({ test }),
      answer: balanceView,
      async run({ params, query }) {
        const balance = await statements.balance(query.test === 'true' ? testAccountOf(params.id) : params.id)
        if (!balance) throw accountUnknown()
        return balance
      },
    }),
    resource('POST /accounts/{id}/credits', 'credits:write', {
      body: z.strictObject({
        amount: amount.refine((value) => value !== 0n, 'must not be zero'),
        note: text(200, 0).default(''),
        /** A correction in the customer's favour, not a top-up: statements list it separately. */
        correction: z.boolean().default(false),
        /** When the credits expire; absent: never. */
        endsAt: moment.optional(),
        /** The models and data endpoints that they are for; a name that ends in * stands for all that begin so. Absent: for all. */
        products: z.array(text(100)).min(1).max(200).optional(),
        /** 0 is spent first; credits without a priority have 50. */
        priority: z.int().min(0).max(1000).optional(),
      }),
      repeatable: true,
      answer: accountView,
      async run({ params, body: { amount, note, correction, endsAt, ...of }, by, idempotencyKey: key }) {
        const lot =
          endsAt === undefined && Object.keys(of).length === 0
            ? undefined
            : { ...of, ...(endsAt === undefined ? {} : { endsAt: new Date(endsAt) }) }
        const { account, again } = await accounts.credit(
          params.id,
          { amount, note, lot, isCorrection: correction, key },
          by,
        )
        return again ? new WithHeaders(account, { 'idempotent-replayed': 'true' }) : account
      },
    }),
  ]
}

/** Those of the whole system. */
function limitResources(accounts: Accounts): Resource[] {
  return [
    resource('GET /limits', 'limits:read', {
      answer: limitsView,
      run: () => accounts.systemLimits(),
    }),
    resource('PATCH /limits', 'limits:write', {
      body: limitsInput,
      answer: limitsView,
      run: ({ body, by }) => accounts.changeSystemLimits(body, by),
    }),
  ]
}

/** A replaced key works for at most a month. */
const OVERLAP_SECONDS_MAX = 30 * 86_400
const OVERLAP_SECONDS = 86_400

const labelName = z
  .string()
  .regex(LABEL_NAME, 'must be the name of a label: letters, digits or any of . _ : / - , beginning with a letter')

const fields = {
  name: text(100),
  models: z.array(text(100)).min(1, 'must name at least one model; null allows all').max(500).nullable().optional(),
  endpoints: z
    .array(text(100))
    .min(1, 'must name at least one endpoint; null allows all')
    .max(100)
    .nullable()
    .optional(),
  requiredLabels: z
    .array(labelName)
    .min(1, 'must name at least one label; null requires none')
    .max(8)
    .nullable()
    .optional(),
  teamId: id.nullable().optional(),
  memberId: id.nullable().optional(),
  expiresAt: moment.nullable().optional(),
  limits: limitsInput.nullable().optional(),
  ipRanges: z.array(text(64)).min(1, 'must name at least one range; null allows all').max(100).nullable().optional(),
  responseCache: z.boolean().nullable().optional(),
  routing: keyRouting.nullable().optional(),
}

const creation = z.strictObject({ ...fields, test: z.boolean().optional() }).transform(withMs)
const imported = z
  .strictObject({
    ...fields,
    sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be the SHA-256 of the key in 64 hexadecimal digits'),
    last4: z.string().regex(/^[\x21-\x7e]{1,4}$/, 'must be the last four characters of the key'),
  })
  .transform(withMs)
const change = z.strictObject({ ...fields, name: fields.name.optional() }).transform(withMs)

const rotation = z
  .strictObject({
    ...fields,
    name: fields.name.optional(),
    overlapSeconds: z.number().int().min(0).max(OVERLAP_SECONDS_MAX).default(OVERLAP_SECONDS),
  })
  .transform(withMs)

function withMs<T extends { expiresAt?: number | null | undefined }>({ expiresAt, ...rest }: T) {
  return { ...rest, ...(expiresAt === undefined ? {} : { expiresAtMs: expiresAt }) }
}

export function keyResources({ keys, teams }: { keys: Keys; teams: Pick<Teams, 'of' | 'areByGroup'> }): Resource[] {
  /**
   * The teams whose keys a person with the role member may use. Undefined: all keys of the account, because the person is in no team. Empty: only their own keys; this is so if
   * groups of a directory decide about teams, so that removing a person from their last group does not give them all keys.
   */
  async function fence(
    actor: Actor,
    account: string,
    right: KeyRight = 'keys:write',
  ): Promise<ReadonlySet<string> | undefined> {
    const person = confined(actor, account, right)
    const own = person === undefined ? undefined : await teams.of(account, person)
    return own?.size === 0 && !(await teams.areByGroup(account)) ? undefined : own
  }

  /** Member and team of a new key. A key that a person with the role member makes is theirs. If they are in one team it gets that team; if in several, they must name one. */
  async function placed<B extends Place>(actor: Actor, account: string, given: B): Promise<B> {
    const body = owned(confined(actor, account), given)
    const own = await fence(actor, account)
    if (!own) return body
    if (own.size === 0) throw outside()
    const teamId = body.teamId ?? (own.size === 1 ? [...own][0] : undefined)
    if (teamId === undefined) throw invalid('teamId: name one of your teams or projects.', 'teamId')
    if (!own.has(teamId)) throw outside()
    return { ...body, teamId }
  }

  /** Checks that a person with the role member may change this key, and returns the person; undefined for all other actors. */
  async function requireWithin(actor: Actor, keyId: string, { teamId, memberId }: Place = {}) {
    const found = await keys.get(keyId)
    const person = found && confined(actor, found.account)
    if (!found || person === undefined) return undefined
    const { teamId: was } = found.key
    const own = await fence(actor, found.account)
    const isMoved = teamId !== undefined && teamId !== was
    if (own && !own.has(was ?? '') && (own.size > 0 || found.key.memberId !== person)) throw outside()
    if (own && isMoved && !own.has(teamId ?? '')) throw outside()
    // A person in no team may change all keys, but may not move a key out of its team and its budgets.
    if (!own && was !== null && isMoved) throw outside()
    if (memberId !== undefined && memberId !== person) throw notTheirs()
    return person
  }

  async function accountOf({ id }: { id: string }): Promise<string> {
    const found = await keys.get(id)
    if (!found) throw keyUnknown()
    return found.account
  }

  return [
    resource('GET /accounts/{id}/keys', 'keys:read', {
      query: z.strictObject(paging),
      answer: page(keyView),
      async run({ params, query, actor }) {
        const own = await fence(actor, params.id, 'keys:read')
        const memberId = own?.size === 0 ? confined(actor, params.id, 'keys:read') : undefined
        return keys.list(params.id, { ...query, teams: own, memberId })
      },
    }),
    resource('POST /accounts/{id}/keys', 'keys:write', {
      body: creation,
      answer: newKey,
      run: async ({ params, body, by, actor }) => keys.create(params.id, await placed(actor, params.id, body), by),
    }),
    resource('POST /accounts/{id}/imported-keys', 'imported-keys:write', {
      body: imported,
      answer: keyView,
      run: ({ params, body, by }) => keys.import(params.id, body, by),
    }),
    resource('PATCH /keys/{id}', 'keys:write', {
      account: accountOf,
      body: change,
      answer: keyView,
      async run({ params, body, by, actor }) {
        await requireWithin(actor, params.id, body)
        return keys.change(params.id, body, by)
      },
    }),
    resource('DELETE /keys/{id}', 'keys:write', {
      account: accountOf,
      answer: keyView,
      async run({ params, by, actor }) {
        await requireWithin(actor, params.id)
        return keys.revoke(params.id, by)
      },
    }),
    resource('POST /keys/{id}/rotate', 'keys:write', {
      account: accountOf,
      body: rotation,
      answer: newKey,
      async run({ params, body, by, actor }) {
        // The person who rotates a key sees its new value, so the key belongs to that person from then on.
        const person = await requireWithin(actor, params.id, body)
        return keys.rotate(params.id, owned(person, body), by)
      },
    }),
  ]
}

/** Team and member of a key, as a request may set them. */
interface Place {
  readonly teamId?: string | null | undefined
  readonly memberId?: string | null | undefined
}

type KeyRight = 'keys:read' | 'keys:write'

/** The person, if they have the right only by the role member of this account, in the console or by an access token of theirs. A gateway role with the right, such as support, has no such restriction. */
function confined(
  { session, token, role, roles }: Actor,
  account: string,
  right: KeyRight = 'keys:write',
): string | undefined {
  if ((role !== null && roleMay(role, right)) || roles.get(ownAccountOf(account)) !== 'member') return undefined
  return (session ?? token)?.person?.id
}

/** A person with the role member sees the key's value, so the key becomes theirs. Otherwise they could spend another person's budget. */
function owned<B extends Place>(person: string | undefined, body: B): B {
  if (person === undefined) return body
  if (body.memberId && body.memberId !== person) throw notTheirs()
  return { ...body, memberId: person }
}

function notTheirs(): Fault {
  return new Fault('access_denied', {
    message: 'memberId: with the role member you may make a key yours only. Ask an owner of the account.',
  })
}

function outside(): Fault {
  return new Fault('access_denied', {
    message: 'You may use keys of your own teams only. Ask an owner of the account.',
  })
}

export interface MemberDeps {
  readonly members: Members
  readonly people: People
  /** The address that people reach the gateway at, without a slash at its end. */
  readonly publicUrl: () => string
}

/** Operators may leave an account without an owner. */
const leave = (actor: Actor) => ({
  mayGive: mayGive(actor),
  mayRemoveLastOwner: may(actor, 'accounts:write'),
})

export function memberResources({ members, people, publicUrl }: MemberDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/members', 'members:read', {
      answer: page(memberView),
      run: async ({ params }) => ({ items: await members.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/invites', 'members:write', {
      body: z.strictObject({ email, role }),
      answer: linkView,
      run: async ({ params, body, actor, by }) => ({
        link: inviteLink(publicUrl(), await members.invite(params.id, body, mayGive(actor), by)),
      }),
    }),
    resource('DELETE /accounts/{id}/members/{userId}', 'members:write', {
      answer: z.object({ removed: z.string() }),
      async run({ params, actor, by }) {
        await members.remove(params.id, params.userId, leave(actor), by)
        return { removed: params.userId }
      },
    }),
    resource('PATCH /accounts/{id}/members/{userId}', 'members:write', {
      body: z.strictObject({ role }),
      answer: z.object({ userId: z.string(), role }),
      async run({ params, body, actor, by }) {
        await members.changeRole(params.id, params.userId, { ...body, ...leave(actor) }, by)
        return { userId: params.userId, role: body.role }
      },
    }),
    resource('GET /accounts/{id}/invites', 'members:read', {
      answer: page(pendingInvite),
      run: async ({ params }) => ({ items: await members.pending(params.id), next: null }),
    }),
    resource('DELETE /accounts/{id}/invites/{inviteId}', 'members:write', {
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, actor, by }) {
        await members.withdraw(params.id, params.inviteId, mayGive(actor), by)
        return { withdrawn: params.inviteId }
      },
    }),
    ...operatorResources(members, publicUrl),
    resource('POST /setup-link', 'operators:write', {
      answer: linkView,
      run: async ({ by }) => ({ link: setupLink(publicUrl(), await people.renewSetup(by)) }),
    }),
    resource('POST /password-link', 'password-links:write', {
      body: z.strictObject({ email }),
      answer: linkView,
      run: async ({ body, actor, by }) => ({
        link: inviteLink(publicUrl(), await members.resetPassword(body.email, mayGive(actor), by)),
      }),
    }),
  ]
}

/** People with gateway roles. */
function operatorResources(members: Members, publicUrl: () => string): Resource[] {
  return [
    resource('GET /operators', 'operators:read', {
      answer: page(operatorView),
      run: async () => ({ items: await members.operators(), next: null }),
    }),
    resource('DELETE /operators/{userId}', 'operators:write', {
      answer: z.object({ removed: z.string() }),
      async run({ params, actor, by }) {
        await members.changeOperator(params.userId, null, mayGive(actor), by)
        return { removed: params.userId }
      },
    }),
    resource('PATCH /operators/{userId}', 'operators:write', {
      body: z.strictObject({ role: operatorRole }),
      answer: z.object({ userId: z.string(), role: operatorRole }),
      async run({ params, body, actor, by }) {
        await members.changeOperator(params.userId, body.role, mayGive(actor), by)
        return { userId: params.userId, role: body.role }
      },
    }),
    resource('GET /operator-invites', 'operators:read', {
      answer: page(pendingInvite),
      run: async () => ({ items: await members.pending(null), next: null }),
    }),
    resource('POST /operator-invites', 'operators:write', {
      body: z.strictObject({ email, role: operatorRole.default('operator') }),
      answer: linkView,
      run: async ({ body, actor, by }) => ({
        link: inviteLink(publicUrl(), await members.inviteOperator(body, mayGive(actor), by)),
      }),
    }),
    resource('DELETE /operator-invites/{inviteId}', 'operators:write', {
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, actor, by }) {
        await members.withdraw(null, params.inviteId, mayGive(actor), by)
        return { withdrawn: params.inviteId }
      },
    }),
  ]
}
