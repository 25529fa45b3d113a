// Accounts, their keys, and the people who may see them.

import * as z from 'zod'
import { type Accounts, accountUnknown, TEST_CREDITS } from '../../admission/accounts.ts'
import { type Keys, keyUnknown } from '../../admission/keys.ts'
import type { Teams } from '../../admission/teams.ts'
import { keyView, newKey } from '../../admission/views.ts'
import type { Members } from '../../identity/members.ts'
import { inviteLink, type People, setupLink } from '../../identity/people.ts'
import { ACCOUNT_ROLES, OPERATOR_ROLES, roleMay } from '../../identity/roles.ts'
import {
  endedView,
  linkView,
  memberView,
  operatorRole,
  operatorView,
  pendingInvite,
  role,
} from '../../identity/views.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
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
  requireCredits,
  resource,
  test,
  text,
  WithHeaders,
} from '../resource.ts'
import { keyChange, keyCreation, keyImport, keyRotation } from './key-input.ts'

/** Callers of the account see this text. */
const reason = text(200).describe('Why; callers read it in the answer to rejected calls')
const closing = z
  .enum(['payout', 'writeoff'])
  .describe('What becomes of the balance: payout (you pay the customer) or writeoff')
const TEST_CREDITS_MAX: Credits = 1_000_000_000_000n

const available = amount
  .refine((value) => value >= 0n && value <= TEST_CREDITS_MAX, `must be 0 to ${formatCredits(TEST_CREDITS_MAX)}`)
  .default(TEST_CREDITS)
  .describe('The new available amount; 1000 by default, 0 empties it')

export interface AccountDeps {
  readonly accounts: Accounts
  readonly statements: Statements
  /** The secret with which receivers verify webhooks. */
  readonly webhookSecret: (account: string) => string
  /** Of the ledgers; none where there are no ledgers. */
  readonly regions: () => readonly string[]
}

/** The test account beside it, and the secret with which receivers verify webhooks. */
function besideResources(
  { accounts, webhookSecret }: AccountDeps,
  show: (id: string) => Promise<AccountView>,
): Resource[] {
  return [
    resource('GET /accounts/{id}/test-balance', 'accounts:read', {
      title: 'Show the test balance of an account',
      answer: accountView,
      run: ({ params }) => show(testAccountOf(params.id)),
    }),
    resource('PUT /accounts/{id}/test-balance', 'test-balance:write', {
      title: 'Set the test balance of an account',
      body: z.strictObject({ available }),
      answer: accountView,
      run: ({ params, body, by }) => accounts.refillTest(params.id, body.available, by),
    }),
    // The secret with which receivers verify webhooks of the gateway itself, such as alerts.
    resource('GET /webhook-secret', 'exports:write', {
      title: 'Show the gateway’s webhook secret',
      answer: webhookSecretView,
      run: () => ({ secret: webhookSecret('') }),
    }),
    resource('GET /accounts/{id}/webhook-secret', 'webhook-secret:read', {
      title: 'Show the webhook secret of an account',
      query: z.strictObject({ test }),
      answer: webhookSecretView,
      run: async ({ params, query }) => {
        const account = query.test === 'true' ? testAccountOf(params.id) : params.id
        return { secret: webhookSecret((await show(account)).id) }
      },
    }),
  ]
}

export function accountResources(deps: AccountDeps): Resource[] {
  const { accounts, regions, statements } = deps
  async function show(id: string): Promise<AccountView> {
    const account = await statements.account(id)
    if (!account) throw accountUnknown()
    return account
  }

  return [
    resource('GET /accounts', 'accounts:read', {
      title: 'List accounts',
      own: true,
      query: z.strictObject({
        ...paging,
        q: text(100, 0)
          .optional()
          .meta({ description: 'Only accounts whose name contains this text', option: 'search' }),
      }),
      answer: page(accountView),
      run({ query, actor }) {
        const only = accountsOf(actor, 'accounts:read')
        return statements.accounts({ ...query, ...(only === null ? {} : { only }) })
      },
    }),
    resource('POST /accounts', 'accounts:write', {
      title: 'Create an account',
      body: z.strictObject({
        name: text(100),
        credits: amount
          .refine((value) => value >= 0n, 'must not be negative')
          .optional()
          .describe('Opening balance'),
        note: text(200, 0).optional().describe('Of the opening balance; stored in the ledger'),
        limits: limitsInput.nullable().optional(),
        region: text(30).optional().describe('In which it stays: that of some ledger (TOLLGATE_LEDGERS)'),
      }),
      repeatable: true,
      answer: accountView,
      async run({ body, by, actor, idempotencyKey: key }) {
        if (body.credits) requireCredits(actor)
        checkRegion(body.region, regions())
        if (key === undefined) return show(await accounts.create(body, by))
        const { id, again } = await accounts.createOnce(key, body, by)
        return again ? new WithHeaders(await show(id), { 'idempotent-replayed': 'true' }) : show(id)
      },
    }),
    resource('GET /accounts/{id}', 'accounts:read', {
      title: 'Show an account',
      answer: accountView,
      run: ({ params }) => show(params.id),
    }),
    resource('PATCH /accounts/{id}', 'accounts:write', {
      title: 'Change an account',
      body: z.strictObject({
        name: text(100).optional().describe('A new name'),
        limits: limitsInput.nullable().optional(),
      }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.change(params.id, body, by)
        return show(params.id)
      },
    }),
    resource('POST /accounts/{id}/suspend', 'accounts:write', {
      title: 'Suspend an account',
      body: z.strictObject({ reason }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.suspend(params.id, body.reason, by)
        return show(params.id)
      },
    }),
    resource('POST /accounts/{id}/close', 'accounts:write', {
      title: 'Close an account',
      body: z.strictObject({ reason, balance: closing }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.close(params.id, body, by)
        return show(params.id)
      },
    }),
    resource('POST /accounts/{id}/reopen', 'accounts:write', {
      title: 'Resume or reopen an account',
      answer: accountView,
      async run({ params, by }) {
        await accounts.reopen(params.id, by)
        return show(params.id)
      },
    }),
    ...besideResources(deps, show),
    ...creditResources({ accounts, statements }),
    ...limitResources(accounts),
  ]
}

/** Balance and credits of an account. */
function creditResources({ accounts, statements }: Pick<AccountDeps, 'accounts' | 'statements'>): Resource[] {
  return [
    resource('GET /accounts/{id}/balance', 'accounts:read', {
      title: 'Show the balance of an account',
      query: z.strictObject({ test }),
      answer: balanceView,
      async run({ params, query }) {
        const balance = await statements.balance(query.test === 'true' ? testAccountOf(params.id) : params.id)
        if (!balance) throw accountUnknown()
        return balance
      },
    }),
    resource('POST /accounts/{id}/credits', 'credits:write', {
      title: 'Add credits to an account',
      body: z.strictObject({
        amount: amount.refine((value) => value !== 0n, 'must not be zero'),
        note: text(200, 0).default('').describe('The purpose; stored in the ledger'),
        correction: z
          .boolean()
          .default(false)
          .describe('A correction in the customer’s favor instead of a top-up; statements list it apart'),
        endsAt: moment.optional().meta({ description: 'When the credits end; never by default', option: 'ends' }),
        products: z
          .array(text(100))
          .min(1)
          .max(200)
          .optional()
          .describe('Models and data endpoints that the credits are for; a name may end in *'),
        priority: z.int().min(0).max(1000).optional().describe('Lower numbers are spent first; 50 by default'),
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
      title: 'Show the limits of the gateway',
      answer: limitsView,
      run: () => accounts.systemLimits(),
    }),
    resource('PATCH /limits', 'limits:write', {
      title: 'Change the limits of the gateway',
      body: limitsInput,
      answer: limitsView,
      run: ({ body, by }) => accounts.changeSystemLimits(body, by),
    }),
  ]
}

export function keyResources({ keys, teams }: { keys: Keys; teams: Pick<Teams, 'of' | 'areByGroup'> }): Resource[] {
  /**
   * The teams whose keys a person with the role member may use. Undefined: all keys of the account, because the person
   * is in no team. Empty: only their own keys; this is so if groups of a directory decide about teams, so that removing
   * a person from their last group does not give them all keys.
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

  /**
   * Member and team of a new key. A key that a person with the role member makes is theirs. If they are in one team it
   * gets that team; if in several, they must name one.
   */
  async function placed<B extends OwnerOfKey>(actor: Actor, account: string, given: B): Promise<B> {
    const body = owned(confined(actor, account), given)
    const own = await fence(actor, account)
    if (!own) return body
    if (own.size === 0) throw outside()
    const teamId = body.teamId ?? (own.size === 1 ? [...own][0] : undefined)
    if (teamId === undefined) throw invalid('teamId: name one of your teams or projects.', 'teamId')
    if (!own.has(teamId)) throw outside()
    return { ...body, teamId }
  }

  /**
   * Checks that a person with the role member may change this key, and returns the person; undefined for all other
   * actors.
   */
  async function requireWithin(actor: Actor, keyId: string, { teamId, memberId }: OwnerOfKey = {}) {
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
      title: 'List the keys of an account',
      query: z.strictObject(paging),
      answer: page(keyView),
      async run({ params, query, actor }) {
        const own = await fence(actor, params.id, 'keys:read')
        const memberId = own?.size === 0 ? confined(actor, params.id, 'keys:read') : undefined
        return keys.list(params.id, { ...query, teams: own, memberId })
      },
    }),
    resource('POST /accounts/{id}/keys', 'keys:write', {
      title: 'Create a key',
      body: keyCreation,
      answer: newKey,
      run: async ({ params, body, by, actor }) => keys.create(params.id, await placed(actor, params.id, body), by),
    }),
    resource('POST /accounts/{id}/imported-keys', 'imported-keys:write', {
      title: 'Import a key from another gateway',
      body: keyImport,
      answer: keyView,
      run: ({ params, body, by }) => keys.import(params.id, body, by),
    }),
    resource('PATCH /keys/{id}', 'keys:write', {
      title: 'Change a key',
      account: accountOf,
      body: keyChange,
      answer: keyView,
      async run({ params, body, by, actor }) {
        await requireWithin(actor, params.id, body)
        return keys.change(params.id, body, by)
      },
    }),
    resource('DELETE /keys/{id}', 'keys:write', {
      title: 'Revoke a key',
      account: accountOf,
      answer: keyView,
      async run({ params, by, actor }) {
        await requireWithin(actor, params.id)
        return keys.revoke(params.id, by)
      },
    }),
    resource('POST /keys/{id}/rotate', 'keys:write', {
      title: 'Rotate a key',
      account: accountOf,
      body: keyRotation,
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
interface OwnerOfKey {
  readonly teamId?: string | null | undefined
  readonly memberId?: string | null | undefined
}

type KeyRight = 'keys:read' | 'keys:write'

/**
 * The person, if they have the right only by the role member of this account, in the console or by an access token of
 * theirs. A gateway role with the right, such as support, has no such restriction.
 */
function confined(
  { session, token, role, roles }: Actor,
  account: string,
  right: KeyRight = 'keys:write',
): string | undefined {
  if ((role !== null && roleMay(role, right)) || roles.get(ownAccountOf(account)) !== 'member') return undefined
  return (session ?? token)?.person?.id
}

/**
 * A person with the role member sees the key's value, so the key becomes theirs. Otherwise they could spend another
 * person's budget.
 */
function owned<B extends OwnerOfKey>(person: string | undefined, body: B): B {
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

const keysTo = id
  .optional()
  .meta({
    description: 'The member who gets the person’s keys; without it they end',
    value: 'user',
    refersTo: '/accounts/{id}/members',
  })

/** Operators may leave an account without an owner. */
const leave = (actor: Actor) => ({ mayGive: mayGive(actor), mayRemoveLastOwner: may(actor, 'accounts:write') })

export function memberResources({ members, people, publicUrl }: MemberDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/members', 'members:read', {
      title: 'List the members of an account',
      answer: page(memberView),
      run: async ({ params }) => ({ items: await members.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/invites', 'members:write', {
      title: 'Invite a member',
      body: z.strictObject({
        email,
        role: role.default('member').describe(`One of ${ACCOUNT_ROLES.join(', ')}; member by default`),
      }),
      /** Null: the link was sent by mail, and nobody else sees it. */
      answer: z.object({ link: z.string().nullable() }),
      async run({ params, body, actor, by }) {
        const inviter = { mayGive: mayGive(actor), vouches: may(actor, 'password-links:write') }
        const token = await members.invite(params.id, body, inviter, by)
        return { link: token && inviteLink(publicUrl(), token) }
      },
    }),
    resource('DELETE /accounts/{id}/members/{userId}', 'members:write', {
      title: 'Remove a member',
      query: z.strictObject({ keysTo }),
      answer: z.object({ removed: z.string(), ended: endedView }),
      async run({ params, query, actor, by }) {
        const ended = await members.remove(params.id, params.userId, { ...leave(actor), ...query }, by)
        return { removed: params.userId, ended }
      },
    }),
    resource('PATCH /accounts/{id}/members/{userId}', 'members:write', {
      title: 'Change the role of a member',
      body: z.strictObject({ role }),
      /** `ended`: not null if people with the new role may not make keys. */
      answer: z.object({ userId: z.string(), role, ended: endedView.nullable() }),
      async run({ params, body, actor, by }) {
        const ended = await members.changeRole(params.id, params.userId, { ...body, ...leave(actor) }, by)
        return { userId: params.userId, role: body.role, ended }
      },
    }),
    resource('GET /accounts/{id}/invites', 'members:read', {
      title: 'List the open invitations of an account',
      answer: page(pendingInvite),
      run: async ({ params }) => ({ items: await members.pending(params.id), next: null }),
    }),
    resource('DELETE /accounts/{id}/invites/{inviteId}', 'members:write', {
      title: 'Withdraw an invitation to an account',
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, actor, by }) {
        await members.withdraw(params.id, params.inviteId, mayGive(actor), by)
        return { withdrawn: params.inviteId }
      },
    }),
    ...operatorResources(members, publicUrl),
    resource('POST /setup-link', 'operators:write', {
      title: 'Create a link for the first login',
      answer: linkView,
      run: async ({ by }) => ({ link: setupLink(publicUrl(), await people.renewSetup(by)) }),
    }),
    resource('POST /password-link', 'password-links:write', {
      title: 'Create a link for a new password',
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
      title: 'List operators',
      answer: page(operatorView),
      run: async () => ({ items: await members.operators(), next: null }),
    }),
    resource('DELETE /operators/{userId}', 'operators:write', {
      title: 'Remove an operator',
      answer: z.object({ removed: z.string(), ended: endedView.nullable() }),
      async run({ params, actor, by }) {
        const change = { role: null, mayGive: mayGive(actor) }
        return { removed: params.userId, ended: await members.changeOperator(params.userId, change, by) }
      },
    }),
    resource('PATCH /operators/{userId}', 'operators:write', {
      title: 'Change the role of an operator',
      body: z.strictObject({ role: operatorRole }),
      answer: z.object({ userId: z.string(), role: operatorRole, ended: endedView.nullable() }),
      async run({ params, body, actor, by }) {
        const ended = await members.changeOperator(params.userId, { ...body, mayGive: mayGive(actor) }, by)
        return { userId: params.userId, role: body.role, ended }
      },
    }),
    resource('GET /operator-invites', 'operators:read', {
      title: 'List open invitations of operators',
      answer: page(pendingInvite),
      run: async () => ({ items: await members.pending(null), next: null }),
    }),
    resource('POST /operator-invites', 'operators:write', {
      title: 'Invite an operator',
      body: z.strictObject({
        email,
        role: operatorRole.default('operator').describe(`One of ${OPERATOR_ROLES.join(', ')}; operator by default`),
      }),
      answer: linkView,
      run: async ({ body, actor, by }) => ({
        link: inviteLink(publicUrl(), await members.inviteOperator(body, mayGive(actor), by)),
      }),
    }),
    resource('DELETE /operator-invites/{inviteId}', 'operators:write', {
      title: 'Withdraw an invitation of an operator',
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, actor, by }) {
        await members.withdraw(null, params.inviteId, mayGive(actor), by)
        return { withdrawn: params.inviteId }
      },
    }),
  ]
}

function checkRegion(region: string | undefined, regions: readonly string[]): void {
  if (region === undefined || regions.includes(region)) return
  const there = regions.length === 0 ? 'No ledger has a region.' : `There are: ${regions.join(', ')}.`
  throw invalid(`region: no ledger lies in "${region}". ${there}`, 'region')
}
