// Sessions of the console. The browser holds 32 random bytes, the database their SHA-256. Sessions are ended in the
// database, so a copied cookie is worthless afterwards.
import { createHash } from 'node:crypto'
import { type Database, type Queryable, sql } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { sameBytes, sign } from '../kernel/secret.ts'
import { newId, type World } from '../kernel/world.ts'
import type { OperatorRole } from './roles.ts'
import { loginPolicy, type SessionView, type WhoView } from './views.ts'

export interface SessionUse {
  readonly ip: string
  readonly userAgent: string
  /** The browser cookie of an earlier login, if there is one. */
  readonly browser?: string | undefined
}

export interface Person {
  readonly id: string
  readonly email: string
  /** In the whole gateway. */
  readonly role: OperatorRole | null
}

/** How a person signed in. */
interface LoginMethod {
  readonly method: SessionView['method']
  /** A second factor was part of it. */
  readonly strong?: boolean
  readonly provider?: string
  /** The provider's id of its own session. */
  readonly sid?: string | undefined
}

export interface Session {
  readonly id: string
  readonly person: Person
  readonly accounts: WhoView['accounts']
  readonly method: SessionView['method']
  readonly provider: string | null
  readonly strong: boolean
  /** The person confirmed their identity within the last ten minutes, by a second factor if they have one. */
  readonly fresh: boolean
  /** The ways in which the person can confirm it. */
  readonly proofs: readonly Proof[]
  readonly hasPassword: boolean
  /** A role of the person requires a second factor. */
  readonly factorRequired: boolean
  /** A second factor is required, and this session was started without one. */
  readonly lacksFactor: boolean
}

export type Sessions = ReturnType<typeof createSessions>

export type Proof = 'passkey' | 'totp' | 'recovery' | 'password' | 'sso'

interface Awaiting {
  readonly session: string
  readonly person: Pick<Person, 'id' | 'email'>
  readonly proofs: readonly Proof[]
}

const TOKEN_BYTES = 32
/** The length of the token in base64url. */
const TOKEN_CHARS = 43

const ALIVE = `s.seen_at > now() - interval '60 minutes' and s.created_at > now() - interval '24 hours'`
// Also while single sign-on is switched off: that opens no way in that was closed.
const SSO_ONLY = `exists (select 1 from login_domain d where d.sso_only and d.domain = split_part(p.email, '@', 2) and ($6 <> 'sso' or d.provider_id is distinct from $8))`
const FACTORS = `(select coalesce(array_agg(distinct f.kind), '{}') from second_factor f where f.person_id = p.id and f.confirmed)`
// No row: the person's domain allows single sign-on only. A login link from the operator works nevertheless, for when
// the provider is down.
const INSERT = sql('session_insert')`
  insert into session (id, digest, person_id, ip, user_agent, method, strong, awaits_factor, provider_id, sid)
   select $1, $2, p.id, $4, $5, $6, $7, not $7 and cardinality(${FACTORS}) > 0, $8, $9 from person p
   where p.id = $3 and ($6 = 'link' or not ${SSO_ONLY})
   returning id`
const FIND = sql('session_find')`
  select s.id, s.seen_at < now() - interval '60 seconds' as resting, p.id as person_id, p.email, p.operator_role,
     s.method, s.provider_id, s.strong, s.proved_at > now() - interval '10 minutes' as proved, ${FACTORS} as factors,
     p.password is not null as has_password, (select value from setting where name = 'login') as policy,
     coalesce((select json_agg(json_build_object('id', a.id, 'name', a.name, 'role', m.role) order by a.name)
       from membership m join account a on a.id = m.account_id where m.person_id = p.id), '[]') as accounts
   from session s join person p on p.id = s.person_id where s.digest = $1 and not s.awaits_factor and ${ALIVE}`
// Time to give the second factor.
const AWAITING = sql('session_awaiting')`
  select s.id, p.id as person_id, p.email, ${FACTORS} as factors from session s join person p on p.id = s.person_id
   where s.digest = $1 and s.awaits_factor and s.created_at > now() - interval '10 minutes'`
const COMPLETE = sql('session_complete')`
  update session set digest = $2, awaits_factor = false, strong = true, proved_at = now(), seen_at = now()
   where id = $1 and awaits_factor returning id`
const PROVE = sql('session_prove')`
  update session set proved_at = now(), strong = strong or $2 where id = $1 and not awaits_factor`
const HOLD = [
  sql('session_hold')`select 1 from person where id = (select person_id from session where id = $1) for no key update`,
  sql('session_held')`select 1 from session where id = $1`,
]
const SEEN = sql('session_seen')`update session set seen_at = now() where id = $1`
const LIST = sql('session_list')`
  select s.id, s.created_at, s.seen_at, s.ip, s.user_agent, s.method, s.strong from session s
   where s.person_id = $1 and not s.awaits_factor and ${ALIVE}
   order by s.seen_at desc limit 200`
const END = sql('session_end')`delete from session where person_id = $1 and id = $2 returning id`
const END_ALL = sql('session_end_all')`delete from session where person_id = $1 and id is distinct from $2::text`

interface FoundRow {
  id: string
  resting: boolean
  person_id: string
  email: string
  operator_role: OperatorRole | null
  accounts: WhoView['accounts']
  method: SessionView['method']
  provider_id: string | null
  strong: boolean
  proved: boolean
  factors: Array<'passkey' | 'totp'>
  has_password: boolean
  policy: string | null
}

interface SessionDeps {
  readonly database: Database
  readonly world: World
  /**
   * What extensions ask for. A factor of an extension that is switched off still protects its person, who has recovery
   * codes.
   */
  readonly proofs: readonly Proof[]
}

export function createSessions({ database, world, proofs }: SessionDeps) {
  // A lost phone is replaced by a recovery code.
  const factorProofs = ({ factors }: Pick<FoundRow, 'factors'>): Proof[] =>
    factors.length > 0 ? [...factors.filter((kind) => kind === 'totp' || proofs.includes(kind)), 'recovery'] : []
  const proofsOf = (row: FoundRow): Proof[] =>
    row.factors.length > 0 ? factorProofs(row) : row.has_password ? ['password'] : proofs.filter((one) => one === 'sso')
  const newToken = () => world.bytes(TOKEN_BYTES).toString('base64url')
  return {
    /**
     * Returns the value of the cookie. If the person has a second factor that was not part of the login, the session
     * has no rights until it is given (`awaiting`). Throws if people of this email domain may only use single sign-on.
     */
    async start(
      on: Queryable,
      person: string,
      { ip, userAgent }: SessionUse,
      { method, strong = false, provider, sid }: LoginMethod = { method: 'password' },
    ): Promise<string> {
      const token = newToken()
      const values = [`ses_${newId(world)}`, digestOf(token), person, ip, userAgent, method, strong]
      const [row] = await on.query(INSERT, [...values, provider ?? null, sid ?? null])
      if (!row)
        throw new Fault('access_denied', {
          message: 'People with an email address of this domain sign in by single sign-on only.',
        })
      return token
    },
    async find(token: string): Promise<Session | undefined> {
      if (token.length !== TOKEN_CHARS) return undefined
      const [row] = await database.query<FoundRow>(FIND, [digestOf(token)])
      if (!row) return undefined
      // Updated at most once a minute, which is precise enough for the idle timeout.
      if (row.resting) await database.query(SEEN, [row.id])
      const person = { id: row.person_id, email: row.email, role: row.operator_role }
      const hasFactor = row.factors.length > 0
      const factorRequired = asksFactor(row)
      return {
        id: row.id,
        person,
        accounts: row.accounts,
        method: row.method,
        provider: row.provider_id,
        strong: row.strong,
        fresh: row.proved && (row.strong || !hasFactor),
        proofs: proofsOf(row),
        hasPassword: row.has_password,
        factorRequired,
        lacksFactor: factorRequired && !row.strong,
      }
    },
    /** The session that waits for its second factor, and the accepted factors. */
    async awaiting(token: string): Promise<Awaiting | undefined> {
      if (token.length !== TOKEN_CHARS) return undefined
      const [row] = await database.query<Pick<FoundRow, 'id' | 'person_id' | 'email' | 'factors'>>(AWAITING, [
        digestOf(token),
      ])
      return row && { session: row.id, person: { id: row.person_id, email: row.email }, proofs: factorProofs(row) }
    },
    /**
     * The second factor was given. Returns the value of a new cookie, because somebody else may know the old one
     * (session fixation).
     */
    async complete(on: Queryable, session: string): Promise<string> {
      const token = newToken()
      const [row] = await on.query(COMPLETE, [session, digestOf(token)])
      if (!row) throw new Fault('key_missing', { message: 'This login has ended. Sign in again.' })
      return token
    },
    /**
     * Locks the person, and throws if the session has ended. What ends a person's ways in locks them too, so a new way
     * in is made before or not at all.
     */
    async hold(on: Queryable, session: string): Promise<void> {
      // A second statement, which sees what was waited for.
      for (const text of HOLD)
        if (!(await on.query(text, [session]))[0])
          throw new Fault('key_unknown', { message: 'Your session has ended. Sign in again.' })
    },
    /** The person has just confirmed their identity. */
    async prove(on: Queryable, session: string, { strong }: { strong: boolean }): Promise<void> {
      await on.query(PROVE, [session, strong])
    },
    async list(person: string, current: string): Promise<SessionView[]> {
      const rows = await database.query<{
        id: string
        created_at: Date
        seen_at: Date
        ip: string
        user_agent: string
        method: SessionView['method']
        strong: boolean
      }>(LIST, [person])
      return rows.map((row) => ({
        id: row.id,
        createdAt: row.created_at.toISOString(),
        lastSeenAt: row.seen_at.toISOString(),
        ip: row.ip,
        userAgent: row.user_agent,
        method: row.method,
        secondFactor: row.strong,
        current: row.id === current,
      }))
    },
    /** Returns false if the person has no such session. */
    async end(person: string, id: string): Promise<boolean> {
      const [row] = await database.query(END, [person, id])
      return row !== undefined
    },
    async endAll(on: Queryable, person: string, except?: string): Promise<void> {
      await on.query(END_ALL, [person, except ?? null])
    },
  }
}

function asksFactor({ policy, operator_role: operator, accounts }: FoundRow): boolean {
  const { secondFactorRoles } = loginPolicy.parse(JSON.parse(policy ?? '{}'))
  if (secondFactorRoles.length === 0) return false
  const roles: string[] = [...(operator === null ? [] : [operator]), ...accounts.map(({ role }) => role)]
  return secondFactorRoles.some((role) => roles.includes(role))
}

/** How long a confirmation is valid, for messages; the statement above has the interval. */
const FRESH_MINUTES = 10

/**
 * For sensitive actions, so that a stolen session is not enough. Tokens need no confirmation: every request has the
 * token.
 */
export function requireFresh(session: Session | null): void {
  if (session && !session.fresh)
    throw new Fault('proof_required', {
      message: `Confirm that it is you: this needs a confirmation that is at most ${FRESH_MINUTES} minutes old.`,
      headers: { [PROOF_HEADER]: session.proofs.join(' ') },
    })
}

/** The error for a session that must first give or set up its second factor. */
export function requireFactor(session: Session): void {
  if (!session.lacksFactor) return
  const proofs = session.proofs.filter((proof) => proof !== 'password' && proof !== 'sso')
  throw new Fault('proof_required', {
    message: 'Your role requires a second factor. Add a passkey or an authenticator app on your profile page first.',
    headers: { [PROOF_HEADER]: proofs.length > 0 ? proofs.join(' ') : 'enrol' },
  })
}

/** Tells the console which confirmation to ask for. */
const PROOF_HEADER = 'x-tollgate-proof'

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

// A known browser is one in which a person has logged in before. Only its own failed attempts make it wait, so guessing
// from elsewhere does not delay the person. The mark is not a credential: a thief still has to guess the password, as
// slowly as anybody.

export type Browsers = ReturnType<typeof createBrowsers>

const ID_BYTES = 16

export function createBrowsers({ key, world }: { key: Buffer; world: World }) {
  const signatureOf = (id: string, email: string) => sign(key, `${id} ${email}`)
  return {
    mark(email: string): string {
      const id = world.bytes(ID_BYTES).toString('base64url')
      return `${id}.${signatureOf(id, email).toString('base64url')}`
    },
    /**
     * The id by which the browser's attempts are counted; undefined unless the mark has our signature for this person.
     */
    recognise(mark: string | undefined, email: string): string | undefined {
      const [id = '', signature = ''] = (mark ?? '').split('.', 2)
      return sameBytes(Buffer.from(signature, 'base64url'), signatureOf(id, email)) ? id : undefined
    },
  }
}
