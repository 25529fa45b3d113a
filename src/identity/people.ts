// Logging in and out: first set-up by the operator, login, change of password. Every failed login gets the same message
// after the same time.
import { createHash } from 'node:crypto'
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, sql } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import { Fault } from '../kernel/fault.ts'
import { newId, type World } from '../kernel/world.ts'
import { type Attempt, type Attempts, PRUNE_ATTEMPTS } from './attempts.ts'
import type { Flows } from './flows.ts'
import { type Passwords, passwordProblem } from './password.ts'
import type { AnyRole, OperatorRole } from './roles.ts'
import type { Browsers, Person, Session, Sessions, SessionUse } from './sessions.ts'

export interface People {
  /** Whether the gateway has no operator yet. */
  setupOpen(): Promise<boolean>
  /** Returns the token of the set-up link the first time; undefined afterwards. */
  openSetup(): Promise<string | undefined>
  /** Replaces a lost set-up token; the old one becomes invalid. Throws conflict if there is an operator. */
  renewSetup(by: By): Promise<string>
  /** Each of these returns the value of the session cookie. */
  setUp(input: { token: string; email: string; password: string }, visit: SessionUse, by: By): Promise<string>
  logIn(input: { email: string; password: string }, visit: SessionUse, by: By): Promise<string>
  changePassword(session: Session, input: { current: string; next: string }, visit: SessionUse, by: By): Promise<string>
  /** By a passkey, which counts as both factors. */
  logInBy(method: 'passkey', person: KnownPerson, visit: SessionUse, by: By): Promise<string>
  /** The second factor of a login was given. */
  completeLogin(session: string, person: KnownPerson, by: By): Promise<string>
  /** The person has confirmed their identity again by a second factor. */
  proved(session: Session, how: { strong: boolean }, by: By): Promise<void>
  /** The same by the password, for people without a second factor. */
  provePassword(session: Session, password: string, visit: SessionUse, by: By): Promise<void>
  /**
   * Returns the token of a link that signs the person in once, within minutes, for example while a login provider is
   * down.
   */
  loginLink(email: string, mayGive: MayGive, by: By): Promise<string>
  useLoginLink(token: string, visit: SessionUse, by: By): Promise<{ session: string; email: string }>
  /** Removes expired sessions, links and attempts. */
  prune(): Promise<void>
}

export interface PeopleDeps {
  readonly database: Database
  readonly world: World
  readonly audit: Audit
  readonly passwords: Passwords
  readonly attempts: Attempts
  readonly browsers: Browsers
  readonly sessions: Sessions
  readonly flows: Flows
}

type KnownPerson = Pick<Person, 'id' | 'email'>

export interface PersonRow {
  readonly id: string
  /** Null: the person signs in by single sign-on. */
  readonly password: string | null
  /** Whether the mailbox is proved. */
  readonly verified: boolean
  /**
   * Whether somebody without all rights had a link to sign in as them: they get no further role before the mailbox is
   * proved again.
   */
  readonly lent: boolean
}

/** Whether the caller may grant and remove this role, of the gateway or in the account; see `coversRole`. */
export type MayGive = (role: AnyRole, account?: string) => boolean

const OPERATOR_EXISTS = sql('person_operator')`
  select exists (select 1 from person where operator_role = 'operator') as some`
export const FIND_PERSON = sql('person_find')`
  select id, password, email_verified_at is not null as verified, lent_at is not null as lent from person where email = $1`
const LEND = sql('person_lend')`update person set lent_at = coalesce(lent_at, now()) where id = $1`
const LOCK_PERSON = sql('person_lock')`
  select operator_role as role, email_verified_at is not null as verified, lent_at is not null as lent from person where id = $1 for update`
const END_LENDING = [
  sql('lent_links')`
    delete from invite where kind = 'password' and not proves and email = (select email from person where id = $1)`,
  sql('lent_login_links')`
    delete from login_flow where kind = 'login-link' and person_id = $1 and data ->> 'lends' = 'true'`,
]
const ROLES = sql('person_roles')`
  select operator_role as role, null as account from person where id = $1 and operator_role is not null
   union all select role, account_id from membership where person_id = $1`
const INSERT_PERSON = sql('person_insert')`
  insert into person (id, email, operator_role, password, email_verified_at) values ($1, $2, $3, $4, case when $5 then now() end)
   on conflict do nothing returning id`
const SET_PASSWORD = sql('person_password')`update person set password = $2 where id = $1`
const END_LINKS = sql('invite_end_passwords')`
  delete from invite where kind = 'password' and email = (select email from person where id = $1)`
const KEEP_TOKEN = sql('setup_keep')`
  insert into setting (name, value) values ('setup', $1) on conflict (name) do nothing returning name`
const RENEW_TOKEN = sql('setup_renew')`
  insert into setting (name, value) values ('setup', $1) on conflict (name) do update set value = excluded.value`
const LOOK_TOKEN = sql('setup_look')`select name from setting where name = 'setup' and value = $1`
const USE_TOKEN = sql('setup_use')`delete from setting where name = 'setup' and value = $1 returning name`
const TIDY = [
  sql('tidy_sessions')`with gone as (
       delete from session where ctid = any(array(select ctid from session
         where seen_at < now() - interval '60 minutes' or created_at < now() - interval '24 hours' limit 5000))
       returning 1
     ) select count(*)::int as count from gone`,
  sql('tidy_flows')`with gone as (
       delete from login_flow where ctid = any(array(select ctid from login_flow where expires_at < now() limit 5000)) returning 1
     ) select count(*)::int as count from gone`,
  sql('tidy_invites')`with gone as (
       delete from invite where ctid = any(array(select ctid from invite where expires_at < now() limit 5000)) returning 1
     ) select count(*)::int as count from gone`,
  // The row of the first token stays. Otherwise a revoked one would be accepted again at the next start.
  sql('tidy_tokens')`with gone as (
       delete from access_token where ctid = any(array(select ctid from access_token
         where not is_first and least(revoked_at, expires_at) < now() - interval '90 days' limit 5000))
       returning 1
     ) select count(*)::int as count from gone`,
  PRUNE_ATTEMPTS,
]

export function createPeople(deps: PeopleDeps): People {
  const { database, world, audit, passwords, sessions } = deps

  async function operatorExists(on: Queryable): Promise<boolean> {
    const [row] = await on.query<{ some: boolean }>(OPERATOR_EXISTS)
    return row?.some === true
  }

  return {
    async setupOpen() {
      return !(await operatorExists(database))
    },

    async openSetup() {
      if (await operatorExists(database)) return undefined
      const token = newToken(world)
      const [made] = await database.query(KEEP_TOKEN, [stored(token)])
      return made && token
    },

    async renewSetup(by) {
      const token = newToken(world)
      await database.transaction(async (tx) => {
        if (await operatorExists(tx))
          throw new Fault('conflict', { message: 'There is an operator already; the set-up is closed.' })
        await tx.query(RENEW_TOKEN, [stored(token)])
        await audit.write(tx, by, { action: 'setup.renew', object: 'setup' })
      })
      return token
    },

    async setUp({ token, email, password }, visit, by) {
      // The cheap check comes first, because this route stays open to everybody for good.
      const [valid] = await database.query(LOOK_TOKEN, [stored(token)])
      if (!valid || (await operatorExists(database))) throw setupClosed()
      requireGood(password, email)
      const hash = await hashCounted(deps, password, visit)
      return database.transaction(async (tx) => {
        const [used] = await tx.query(USE_TOKEN, [stored(token)])
        if (!used || (await operatorExists(tx))) throw setupClosed()
        const person = await insertPerson(tx, world, { email, role: 'operator', password: hash, verified: true })
        const cookie = await sessions.start(tx, person, visit)
        await audit.write(tx, { ...by, actor: email }, { action: 'setup.finish', object: person })
        return cookie
      })
    },

    async logIn({ email, password }, visit, by) {
      const person = await checkLogin(deps, { email, password }, visit, by)
      return database.transaction(async (tx) => {
        const cookie = await sessions.start(tx, person, visit)
        await audit.write(tx, { ...by, actor: email }, { action: 'session.start', object: person })
        return cookie
      })
    },

    async changePassword(session, { current, next }, visit, by) {
      const { person } = session
      // A signed-in person is known, so only attempts by their own sessions make them wait.
      await checkLogin(deps, { email: person.email, password: current, knownAs: `session ${person.id}` }, visit, by)
      requireGood(next, person.email)
      const hash = await passwords.hash(next)
      return database.transaction(async (tx) => {
        const cookie = await replacePassword(tx, sessions, { id: person.id, hash, how: session }, visit)
        await audit.write(tx, by, { action: 'person.password', object: person.id, detail: { name: person.email } })
        return cookie
      })
    },

    ...proofsOf(deps),

    async prune() {
      for (const removal of TIDY) await pruneAll(database, removal)
    },
  }
}

const LINK_MINUTES = 15

/** Logins without a password, and confirmations of identity. */
function proofsOf(
  deps: PeopleDeps,
): Pick<People, 'logInBy' | 'completeLogin' | 'proved' | 'provePassword' | 'loginLink' | 'useLoginLink'> {
  const { database, audit, sessions, flows } = deps
  const proved: People['proved'] = (session, how, by) =>
    database.transaction(async (tx) => {
      await sessions.prove(tx, session.id, how)
      await audit.write(tx, by, { action: 'session.prove', object: session.person.id })
    })
  return {
    logInBy: (method, { id, email }, visit, by) =>
      database.transaction(async (tx) => {
        const cookie = await sessions.start(tx, id, visit, { method, strong: true })
        await audit.write(tx, { ...by, actor: email }, { action: 'session.start', object: id, detail: { method } })
        return cookie
      }),

    completeLogin: (session, { id, email }, by) =>
      database.transaction(async (tx) => {
        const cookie = await sessions.complete(tx, session)
        await audit.write(tx, { ...by, actor: email }, { action: 'session.factor', object: id })
        return cookie
      }),

    proved,

    async provePassword(session, password, visit, by) {
      const { id, email } = session.person
      if (!session.proofs.includes('password'))
        throw new Fault('access_denied', { message: 'You have a second factor: give that.' })
      const right = await checkLogin(deps, { email, password, knownAs: `session ${id}` }, visit, by).catch(
        (error: unknown) => {
          // 401 would tell the console that the session has ended.
          if (error instanceof Fault && error.kind === 'key_unknown')
            throw new Fault('access_denied', { message: 'This password is not right.' })
          throw error
        },
      )
      if (right === id) await proved(session, { strong: false }, by)
    },

    async loginLink(email, mayGive, by) {
      return database.transaction(async (tx) => {
        const { id } = await findWithin(tx, email, mayGive)
        const data = { email, lends: !mayGive('operator') }
        const token = await flows.begin('login-link', data, { person: id, minutes: LINK_MINUTES, on: tx })
        await audit.write(tx, by, { action: 'person.login-link', object: id })
        return token
      })
    },

    async useLoginLink(token, visit, by) {
      return database.transaction(async (tx) => {
        const flow = await flows.finish<{ email: string; lends: boolean }>('login-link', token, tx)
        if (!flow?.person) throw new Fault('access_denied', { message: 'This link was used already, or is too old.' })
        const [person, { email, lends }] = [flow.person, flow.data]
        if (lends) await lend(tx, person)
        const session = await sessions.start(tx, person, visit, { method: 'link' })
        const detail = { method: 'link' }
        await audit.write(tx, { ...by, actor: email }, { action: 'session.start', object: person, detail })
        return { session, email }
      })
    },
  }
}

export function requireCovered(mayGive: MayGive, role: AnyRole, account?: string): void {
  if (!mayGive(role, account))
    throw new Fault('access_denied', {
      message: `You cannot give or take a role with more rights than your own: ${role}.`,
    })
}

/**
 * The person with this address. The creator of a login link could use it, so the creator must have all the person's
 * rights.
 */
export async function findWithin(tx: Queryable, email: string, mayGive: MayGive): Promise<PersonRow> {
  const [person] = await tx.query<PersonRow>(FIND_PERSON, [email])
  if (!person) throw new Fault('not_found', { message: 'Nobody has this email address here.' })
  // Locked: whoever gets a role at the same moment ends the link that is made now, or has the role when it is looked
  // for.
  await tx.query(LOCK_PERSON, [person.id])
  for (const { role, account } of await tx.query<{ role: AnyRole; account: string | null }>(ROLES, [person.id]))
    requireCovered(mayGive, role, account ?? undefined)
  return person
}

/**
 * Somebody without all rights had a link to sign in as this person, who therefore gets no further role before the
 * mailbox is proved again.
 */
export async function lend(tx: Queryable, person: string): Promise<void> {
  await tx.query(LEND, [person])
}

/** Before a person gets a role that they do not have: links by which others could sign in as them end. */
export async function lockBeforeRole(
  tx: Queryable,
  person: string,
): Promise<{ role: OperatorRole | null; verified: boolean; lent: boolean }> {
  const [row] = await tx.query<{ role: OperatorRole | null; verified: boolean; lent: boolean }>(LOCK_PERSON, [person])
  for (const end of END_LENDING) await tx.query(end, [person])
  return row ?? { role: null, verified: false, lent: false }
}

/** Returns the person's id. An unknown email address and a wrong password get the same answer after the same time. */
export async function checkLogin(
  deps: PeopleDeps,
  { email, password, knownAs }: { email: string; password: string; knownAs?: string },
  visit: SessionUse,
  by: By,
): Promise<string> {
  const { database, passwords, attempts, browsers, audit } = deps
  const browser = knownAs ?? browsers.recognise(visit.browser, email)
  const attempt = await attempts.begin({ ip: visit.ip, email, browser })
  const judge = async () => {
    const [row] = await database.query<PersonRow>(FIND_PERSON, [email])
    const verdict = await (row?.password ? passwords.verify(password, row.password) : passwords.verifyNobody(password))
    return { row, verdict }
  }
  const { row, verdict } = await judge().catch((error: unknown) => giveBack(attempt, error))
  if (!row || verdict === 'wrong') {
    await database.transaction((tx) =>
      audit.write(tx, by, {
        action: 'session.refuse',
        object: row?.id ?? 'unknown',
        ...(row ? { detail: { name: email } } : {}),
      }),
    )
    throw new Fault('key_unknown', { message: 'The email address or the password is not right.' })
  }
  await attempt.succeeded()
  if (verdict === 'stale') await database.query(SET_PASSWORD, [row.id, await passwords.hash(password)])
  return row.id
}

/** Hashes a password that a person chooses by a link; limited per network address. */
export async function hashCounted(
  { attempts, passwords }: PeopleDeps,
  password: string,
  { ip }: SessionUse,
): Promise<string> {
  const attempt = await attempts.begin({ ip })
  return passwords.hash(password).catch((error: unknown) => giveBack(attempt, error))
}

async function giveBack(attempt: Attempt, error: unknown): Promise<never> {
  await attempt.giveBack().catch(() => undefined) // The original error is the one to report.
  throw error
}

function setupClosed(): Fault {
  return new Fault('access_denied', {
    message:
      'This set-up link is not valid, or was used already. "tollgate setup-link" prints a new one while there is no operator.',
  })
}

export function requireGood(password: string, email: string): void {
  const problem = passwordProblem(password, email)
  if (problem) throw new Fault('request_invalid', { message: `password: ${problem}`, param: 'password' })
}

export async function insertPerson(
  tx: Queryable,
  world: World,
  person: { email: string; role: OperatorRole | null; password: string | null; verified: boolean },
): Promise<string> {
  const [row] = await tx.query<{ id: string }>(INSERT_PERSON, [
    `usr_${newId(world)}`,
    person.email,
    person.role,
    person.password,
    person.verified,
  ])
  if (!row) throw new Fault('conflict', { message: 'Somebody has this email address already.' })
  return row.id
}

/**
 * A new password ends every session of the person, and every other link to choose one, and starts a session for the
 * current browser.
 */
export async function replacePassword(
  tx: Queryable,
  sessions: Sessions,
  { id, hash, how }: { id: string; hash: string; how?: Session },
  visit: SessionUse,
): Promise<string> {
  // Links before the person, as where a link is used: transactions that lock both in different orders could wait for
  // each other.
  await tx.query(END_LINKS, [id])
  await tx.query(SET_PASSWORD, [id, hash])
  await sessions.endAll(tx, id)
  // A person who is signed in stays signed in without giving the second factor again,
  // but only if it was given recently: a password alone must not renew it.
  return how
    ? sessions.start(tx, id, visit, { method: how.method, strong: how.strong && how.fresh })
    : sessions.start(tx, id, visit)
}

function stored(token: string): string {
  return digestOfToken(token).toString('base64url')
}

// Secret links: to set up the gateway, to join an account, to choose a new password. The token comes after the `#`,
// which browsers do not send to servers. Only its digest is stored.

export function newToken(world: World): string {
  return world.bytes(32).toString('base64url')
}

export function digestOfToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** `base` is the gateway's public address, without a trailing slash. */
export function setupLink(base: string, token: string): string {
  return `${base}/console/setup#token=${token}`
}

export function signUpLinkOf(base: string, token: string): string {
  return `${base}/console/sign-up#token=${token}`
}

export function inviteLink(base: string, token: string): string {
  return `${base}/console/invite#token=${token}`
}
