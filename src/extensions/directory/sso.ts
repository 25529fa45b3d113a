// Single sign-on. A person is identified by issuer and subject, never by the email address. An unknown login
// creates a person, or is connected to an existing person who proves their identity. Memberships follow the provider's
// groups and domains at each login.
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { Flows } from '../../identity/flows.ts'
import type { LeavingDeps } from '../../identity/leaving.ts'
import { domainOf, readMailbox } from '../../identity/mailbox.ts'
import type { Members } from '../../identity/members.ts'
import {
  checkLogin,
  FIND_PERSON,
  insertPerson,
  lockBeforeRole,
  type PeopleDeps,
  type PersonRow,
} from '../../identity/people.ts'
import { proveAddress } from '../../identity/proving.ts'
import { ACCOUNT_ROLES, type AccountRole, OPERATOR_ROLES, type OperatorRole } from '../../identity/roles.ts'
import type { SecondFactors } from '../../identity/second-factors.ts'
import type { Session, SessionUse } from '../../identity/sessions.ts'
import { type LoginStep, type SecurityView, securityView } from '../../identity/views.ts'
import { Fault } from '../../kernel/fault.ts'
import { asView } from '../../kernel/view.ts'
import { newId } from '../../kernel/world.ts'
import { type Claims, type Journey, LOGOUT_MINUTES_MAX, type Oidc } from './oidc.ts'
import type { Providers, StoredProvider } from './providers.ts'

export type Sso = ReturnType<typeof createSso>

type Purpose = 'login' | 'connect' | 'proof'

interface Return {
  readonly provider: string
  /** The query string of the redirect. */
  readonly parameters: string
  readonly token: string | undefined
}

interface Connect {
  readonly token: string | undefined
  readonly password: string
  readonly code?: string | undefined
}

interface SignedIn {
  readonly session: string
  readonly email: string
}

type Finished =
  | ({ readonly kind: 'signed-in' } & SignedIn)
  /** The person with this email address must prove their identity first; the token replaces the cookie. */
  | { readonly kind: 'password'; readonly token: string; readonly needs: LoginStep['needs'] }
  | { readonly kind: 'connected' | 'proved' }

interface SsoDeps extends PeopleDeps, LeavingDeps {
  readonly flows: Flows
  readonly oidc: Oidc
  readonly providers: Providers
  readonly factors: Pick<SecondFactors, 'list' | 'check'>
  readonly members: Pick<Members, 'remove' | 'changeRole' | 'changeOperator'>
  readonly publicUrl: () => string
}

interface Begun extends Journey {
  readonly provider: string
  readonly purpose: Purpose
  readonly session: string | null
}

interface Waiting {
  readonly provider: string
  readonly claims: Claims
}

const FIND = sql('identity_find')`
  select i.person_id, p.email from identity i join person p on p.id = i.person_id where i.issuer = $1 and i.subject = $2`
const INSERT = sql('identity_insert')`
  insert into identity (id, issuer, subject, person_id, provider_id, email) values ($1, $2, $3, $4, $5, $6)
   on conflict do nothing returning id`
const USED = sql('identity_used')`
  update identity set used_at = now(), provider_id = $3, email = $4 where issuer = $1 and subject = $2`
const LIST = sql('identity_list')`
  select i.id, i.provider_id as provider, coalesce(p.name, i.issuer) as name, i.email, i.created_at, i.used_at as last_used_at
   from identity i left join login_provider p on p.id = i.provider_id where i.person_id = $1 order by i.created_at limit 100`
const REMOVE = sql('identity_remove')`
  delete from identity where person_id = $1 and id = $2 returning provider_id as provider, issuer, subject`
const WAYS_IN = sql('identity_ways_in')`
  select p.password is not null or exists (select 1 from identity i where i.person_id = p.id)
     or exists (select 1 from second_factor f where f.person_id = p.id and f.kind = 'passkey' and f.confirmed) as some
   from person p where p.id = $1 for update`
const MEMBERSHIPS = sql('sso_memberships')`select account_id, role, provider_id from membership where person_id = $1`
// A login does not restore a membership that a directory has deactivated.
const JOIN = sql('sso_join')`insert into membership (account_id, person_id, role, provider_id) select $1, $2, $3, $4
   where not exists (select 1 from scim_user s where s.scope = $1 and s.person_id = $2 and not s.active) on conflict do nothing returning role`
const OTHERS_DOMAIN = sql('sso_others_domain')`select 1 from login_domain where domain = $1 and provider_id <> $2`
const WAY_IN = sql('sso_way_in')`
  select 1 from identity where person_id = $1 union all select 1 from second_factor where person_id = $1`
const OPERATOR = sql('sso_operator')`
  select operator_role as role, operator_provider_id as from from person where id = $1`
const OPERATOR_JOIN = sql('sso_operator_join')`
  update person set operator_role = $2, operator_provider_id = $3 where id = $1 and operator_role is null
     and not exists (select 1 from scim_user s where s.scope = '' and s.person_id = $1 and not s.active) returning id`
const LOCK_PERSON = sql('sso_lock_person')`select 1 from person where id = $1 for no key update`
const END_BY_SID = sql('sso_end_sid')`delete from session where provider_id = $1 and sid = $2 returning person_id`
const END_BY_SUBJECT = sql('sso_end_subject')`
  delete from session where provider_id = $1 and person_id = (select person_id from identity where issuer = $2 and subject = $3)
   returning person_id`

/** Long enough to sign in at the provider, with a second factor. */
const JOURNEY_MINUTES = 15
const CONNECT_MINUTES = 10

export const ssoRedirectUri = (base: string, provider: string) => `${base}/console/sso/${provider}`
export const ssoLogoutUri = (base: string, provider: string) => `${base}/sso/${provider}/logout`

export function createSso(deps: SsoDeps) {
  const { database, world, audit, attempts, sessions, flows, oidc, providers } = deps

  async function enabled(id: string): Promise<StoredProvider> {
    const provider = await providers.get(id)
    if (!provider.enabled) throw new Fault('not_found', { message: 'This login provider is turned off.' })
    return provider
  }

  async function insertIdentity(tx: Queryable, person: string, provider: string, claims: Claims): Promise<void> {
    const { issuer, subject, email } = claims
    const row = [`idn_${newId(world)}`, issuer, subject, person, provider, email ?? null]
    const [made] = await tx.query(INSERT, row)
    if (!made) throw new Fault('conflict', { message: 'This login belongs to another person here.' })
  }

  async function signIn(
    provider: StoredProvider,
    person: { id: string; email: string },
    claims: Claims,
    { visit, by, strong = false }: { visit: SessionUse; by: By; strong?: boolean },
  ): Promise<SignedIn> {
    await follow(deps, { provider, person: person.id, claims }, by)
    const isStrong = strong || provider.provesSecondFactor
    const how = { method: 'sso' as const, strong: isStrong, provider: provider.id, sid: claims.sid }
    return database.transaction(async (tx) => {
      await tx.query(USED, [claims.issuer, claims.subject, provider.id, claims.email ?? null])
      const session = await sessions.start(tx, person.id, visit, how)
      const detail = { provider: provider.id }
      await audit.write(tx, { ...by, actor: person.email }, { action: 'session.start', object: person.id, detail })
      return { session, email: person.email }
    })
  }

  async function factorsOf(person: string): Promise<Array<'totp' | 'recovery'>> {
    const { factors } = await deps.factors.list(person)
    if (factors.length === 0) return []
    return factors.some(({ kind }) => kind === 'totp') ? ['totp', 'recovery'] : ['recovery']
  }

  /**
   * The provider is responsible for their domain, and the person has no login yet, or one that somebody else may have
   * prepared.
   */
  async function isExpected(person: PersonRow, provider: StoredProvider, domain: string): Promise<boolean> {
    if (!provider.domains.some((one) => one.domain === domain)) return false
    if (!person.verified) return true
    const [way] = person.password === null ? await database.query(WAY_IN, [person.id]) : [true]
    return way === undefined
  }

  /** The first login with an unknown issuer and subject. */
  async function firstTime(
    provider: StoredProvider,
    claims: Claims,
    about: { visit: SessionUse; by: By },
  ): Promise<Finished> {
    const { email } = claims
    if (email === undefined || !claims.emailVerified || !readMailbox(email))
      throw new Fault('access_denied', {
        message:
          'The login provider does not confirm that your email address is verified, so it cannot be used to sign in.',
      })
    const domain = domainOf(email)
    const [others] = await database.query(OTHERS_DOMAIN, [domain, provider.id])
    if (others)
      throw new Fault('access_denied', {
        message: 'Another login provider is responsible for addresses of this domain. Sign in with that one.',
      })
    const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
    if (known) {
      // A person whom a directory created and who has no login yet, or whose address nobody has proved, may use the
      // provider of their domain.
      if (await isExpected(known, provider, domain)) {
        const { visit, by } = about
        const told = await database.transaction(async (tx) => {
          const proved = await proveAddress(tx, deps, known.id, { ...by, actor: email })
          await insertIdentity(tx, known.id, provider.id, claims)
          return proved
        })
        await told?.()
        return { kind: 'signed-in', ...(await signIn(provider, { id: known.id, email }, claims, { visit, by })) }
      }
      if (known.password === null)
        throw new Fault('access_denied', {
          message:
            'Somebody has this email address already. Sign in as before, then connect this login on your profile page.',
        })
      const waiting: Waiting = { provider: provider.id, claims }
      const token = await flows.begin('link-identity', waiting, { person: known.id, minutes: CONNECT_MINUTES })
      return { kind: 'password', token, needs: ['password', ...(await factorsOf(known.id))] }
    }
    const wanted = wantedBy(provider, claims)
    if (wanted.accounts.size === 0 && wanted.operator === null)
      throw new Fault('access_denied', {
        message:
          'You have no access yet. Ask the owner of an account for an invitation, or the operator to map your group.',
      })
    const { visit, by } = about
    const id = await database.transaction(async (tx) => {
      const person = await insertPerson(tx, world, { email, role: null, password: null, verified: true })
      await insertIdentity(tx, person, provider.id, claims)
      const detail = { provider: provider.id, issuer: claims.issuer, subject: claims.subject }
      await audit.write(
        tx,
        { ...by, actor: email },
        { action: 'person.create', object: person, detail, before: {}, after: { email, ...detail } },
      )
      return person
    })
    return { kind: 'signed-in', ...(await signIn(provider, { id, email }, claims, { visit, by })) }
  }

  async function finish(
    { provider: id, parameters, token }: Return,
    session: Session | undefined,
    visit: SessionUse,
    by: By,
  ): Promise<Finished> {
    const flow = await flows.finish<Begun>('sso', token)
    if (!flow) throw notBegun('unknown, finished or too old')
    // The answer must come from the provider that was asked (mix-up attack), and to the session that asked.
    if (flow.data.provider !== id) throw notBegun('another provider')
    const { purpose } = flow.data
    if (purpose !== 'login' && (!session || session.id !== flow.data.session)) throw notBegun('another session')
    const provider = await enabled(id)
    const claims = await oidc.finish(providers.clientOf(provider), parameters, flow.data)
    const [known] = await database.query<{ person_id: string; email: string }>(FIND, [claims.issuer, claims.subject])
    if (purpose === 'login' || !session) {
      if (!known) return firstTime(provider, claims, { visit, by })
      const person = { id: known.person_id, email: known.email }
      return { kind: 'signed-in', ...(await signIn(provider, person, claims, { visit, by })) }
    }
    if (purpose === 'proof') {
      if (known?.person_id !== session.person.id)
        throw new Fault('access_denied', { message: 'This login at the provider is not yours.' })
      await sessions.prove(database, session.id, { strong: provider.provesSecondFactor })
      return { kind: 'proved' }
    }
    await database.transaction(async (tx) => {
      await sessions.hold(tx, session.id)
      await insertIdentity(tx, session.person.id, provider.id, claims)
      const detail = { provider: provider.id, issuer: claims.issuer, subject: claims.subject }
      const change = { before: {}, after: detail }
      await audit.write(tx, by, { action: 'identity.connect', object: session.person.id, detail, ...change })
    })
    return { kind: 'connected' }
  }

  /** Stores the exact reason in the audit log, for operators. The person sees only the message. */
  async function refusal(provider: string, { message, details }: Fault, by: By): Promise<void> {
    const detail = { provider, why: String(details.internal?.why ?? message).slice(0, 300) }
    await database.transaction((tx) => audit.write(tx, by, { action: 'session.refuse', object: 'unknown', detail }))
  }

  return {
    /**
     * Returns the provider's address and the value of the flow cookie. With a session: to connect a login, or to
     * confirm the person's identity.
     */
    async begin(id: string, purpose: Purpose, session?: Session): Promise<{ url: string; token: string }> {
      const provider = await enabled(id)
      const redirectUri = ssoRedirectUri(deps.publicUrl(), id)
      const again = purpose === 'proof'
      const { url, ...journey } = await oidc.begin(providers.clientOf(provider), redirectUri, { again })
      const begun: Begun = { ...journey, provider: id, purpose, session: session?.id ?? null }
      const about = { person: session?.person.id, minutes: JOURNEY_MINUTES }
      return { url, token: await flows.begin('sso', begun, about) }
    },

    async finish(input: Return, session: Session | undefined, visit: SessionUse, by: By): Promise<Finished> {
      // Every rejected login is written to the audit log, so attempts are limited per network.
      const attempt = await attempts.begin({ ip: visit.ip })
      const done = await finish(input, session, visit, by).catch(async (error: unknown) => {
        if (error instanceof Fault && error.blame === 'caller') await refusal(input.provider, error, by)
        else await attempt.giveBack()
        throw error
      })
      await attempt.succeeded()
      return done
    },

    /**
     * Connects the pending login to the person with its email address, who proves it by password and, if they have one,
     * second factor.
     */
    async connect({ token, password, code }: Connect, visit: SessionUse, by: By): Promise<SignedIn> {
      // Only reads the flow, so that a mistyped password does not end it.
      const waiting = await flows.look<Waiting>('link-identity', token)
      const email = waiting?.data.claims.email
      if (!waiting || email === undefined) throw notBegun('nothing waits')
      const { claims } = waiting.data
      const provider = await enabled(waiting.data.provider)
      const id = await checkLogin(deps, { email, password }, visit, by)
      // Without the second factor, a thief of the password could connect their own login permanently.
      const isProtected = (await factorsOf(id)).length > 0
      if (isProtected) await deps.factors.check(id, code ?? '', visit, { ...by, actor: email })
      if (id !== waiting.person) throw notBegun('another person')
      await database.transaction(async (tx) => {
        await tx.query(LOCK_PERSON, [id])
        if (!(await flows.finish('link-identity', token, tx))) throw notBegun('ended')
        await insertIdentity(tx, id, provider.id, claims)
        const detail = { provider: provider.id, issuer: claims.issuer, subject: claims.subject }
        const change = { before: {}, after: detail }
        await audit.write(tx, { ...by, actor: email }, { action: 'identity.connect', object: id, detail, ...change })
      })
      return signIn(provider, { id, email }, claims, { visit, by, strong: isProtected })
    },

    async identities(person: string): Promise<SecurityView['identities']> {
      const { element } = securityView.shape.identities
      return (await database.query(LIST, [person])).map((row) => asView(element, row))
    },

    async disconnect(session: Session, identity: string, by: By): Promise<void> {
      const person = session.person.id
      await database.transaction(async (tx) => {
        const [gone] = await tx.query<{ provider: string | null; issuer: string; subject: string }>(REMOVE, [
          person,
          identity,
        ])
        if (!gone) throw new Fault('not_found', { message: 'You have no such login.' })
        const [left] = await tx.query<{ some: boolean }>(WAYS_IN, [person])
        if (!left?.some)
          throw new Fault('conflict', {
            message: 'This is your only way to sign in. Add a passkey or a password first.',
          })
        await audit.write(tx, by, {
          action: 'identity.disconnect',
          object: person,
          detail: { identity },
          before: { ...gone },
          after: {},
        })
      })
    },

    /** Ends the sessions that a logout token names. */
    async logOut(id: string, token: string): Promise<void> {
      const provider = await providers.get(id)
      const told = await oidc.readLogout(providers.clientOf(provider), token)
      await database.transaction(async (tx) => {
        // A replayed token must not end the session of a later login.
        if (!(await flows.firstSeen(tx, `logout ${told.issuer} ${told.id}`, 2 * LOGOUT_MINUTES_MAX)))
          throw new Fault('request_invalid', { message: 'This logout token was used already.' })
        const ended =
          told.sid === undefined
            ? await tx.query<{ person_id: string }>(END_BY_SUBJECT, [id, told.issuer, told.subject ?? null])
            : await tx.query<{ person_id: string }>(END_BY_SID, [id, told.sid])
        const by = { actor: `login provider ${id}`, ip: null, requestId: null }
        const detail = { sessions: ended.length }
        await audit.write(tx, by, { action: 'session.logout', object: ended[0]?.person_id ?? 'nobody', detail })
      })
    },
  }
}

const NOBODY_ASKS = { mayGive: () => true, mayRemoveLastOwner: false }

/**
 * Updates the memberships that single sign-on created from the provider's current groups and domains. Memberships that
 * were created otherwise are not changed.
 */
async function follow(
  deps: SsoDeps,
  { provider, person, claims }: { provider: StoredProvider; person: string; claims: Claims },
  by: By,
): Promise<void> {
  const { database, audit, members } = deps
  const mine = { ...by, actor: `login provider ${provider.id}` }
  const wanted = wantedBy(provider, claims)
  const rows = await database.query<{ account_id: string; role: AccountRole; provider_id: string | null }>(
    MEMBERSHIPS,
    [person],
  )
  const held = new Map(rows.map((row) => [row.account_id, row]))
  for (const [account, role] of wanted.accounts) {
    const before = held.get(account)
    if (before?.provider_id === provider.id && before.role !== role)
      await unlessLast(members.changeRole(account, person, { ...NOBODY_ASKS, role }, mine))
    if (before) continue
    await database.transaction(async (tx) => {
      if (!(await mayGetRole(tx, person))) return
      const [joined] = await tx.query(JOIN, [account, person, role, provider.id])
      const change = { before: { role: null }, after: { role } }
      if (joined)
        await audit.write(tx, mine, { action: 'member.join', object: account, detail: { person, role }, ...change })
    })
  }
  for (const { account_id: account, provider_id: from } of rows)
    if (from === provider.id && !wanted.accounts.has(account))
      await unlessLast(members.remove(account, person, NOBODY_ASKS, mine))
  await followOperator(deps, { provider, person, role: wanted.operator }, mine)
}

async function mayGetRole(tx: Queryable, person: string): Promise<boolean> {
  const { verified, lent } = await lockBeforeRole(tx, person)
  return verified && !lent
}

async function followOperator(
  { database, audit, members }: SsoDeps,
  { provider, person, role }: { provider: StoredProvider; person: string; role: OperatorRole | null },
  by: By,
): Promise<void> {
  const [row] = await database.query<{ role: OperatorRole | null; from: string | null }>(OPERATOR, [person])
  const before = row?.role ?? null
  if (before === role) return
  if (before === null)
    return database.transaction(async (tx) => {
      if (!(await mayGetRole(tx, person))) return
      const [joined] = await tx.query(OPERATOR_JOIN, [person, role, provider.id])
      const change = { before: { role: null }, after: { role } }
      if (joined) await audit.write(tx, by, { action: 'operator.join', object: person, detail: { role }, ...change })
    })
  if (row?.from === provider.id) await unlessLast(members.changeOperator(person, { role, mayGive: () => true }, by))
}

/** The last owner or operator keeps the role. Otherwise nobody could invite others. */
async function unlessLast(change: Promise<unknown>): Promise<void> {
  await change.catch((error: unknown) => {
    if (!(error instanceof Fault) || error.kind !== 'conflict') throw error
  })
}

interface Wanted {
  readonly accounts: ReadonlyMap<string, AccountRole>
  /** In the whole gateway. */
  readonly operator: OperatorRole | null
}

/** The roles that the provider's groups and domains give. If several match in an account, the highest counts. */
function wantedBy({ domains, groups }: StoredProvider, claims: Claims): Wanted {
  const theirs = new Set(claims.groups)
  const domain = claims.emailVerified && claims.email !== undefined ? domainOf(claims.email) : undefined
  const fitting = [
    ...groups.filter(({ group }) => theirs.has(group)),
    ...domains.filter((one) => one.domain === domain && one.account !== null),
  ]
  const rolesIn = (place: string | null) => fitting.flatMap(({ account, role }) => (account === place ? [role] : []))
  const places = new Set(fitting.flatMap(({ account }) => account ?? []))
  const accounts = [...places].flatMap((account) => {
    const role = ACCOUNT_ROLES.find((one) => rolesIn(account).includes(one))
    return role ? [[account, role] as const] : []
  })
  const operator = OPERATOR_ROLES.find((one) => rolesIn(null).includes(one)) ?? null
  return { accounts: new Map(accounts), operator }
}

function notBegun(why: string): Fault {
  return new Fault('access_denied', {
    message: 'This sign-in was not started in this browser, was finished already, or took too long. Start again.',
    internal: { why },
  })
}
