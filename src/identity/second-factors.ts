// Second factors of people: codes of an authenticator app, passkeys (passkeys.ts adds and checks them), and recovery
// codes for a lost phone.
import type { By } from '../database/audit.ts'
import { type Queryable, sql } from '../database/database.ts'
import { defineSetting } from '../database/setting.ts'
import { Fault } from '../kernel/fault.ts'
import { seal, sign, unseal } from '../kernel/secret.ts'
import { newId } from '../kernel/world.ts'
import type { Attempt } from './attempts.ts'
import { findWithin, type MayGive, type PeopleDeps, requireCovered } from './people.ts'
import type { Person, Session, SessionUse } from './sessions.ts'
import { base32, TOTP_SECRET_BYTES, totpStep, totpUri } from './totp.ts'
import { type FactorView, type LoginPolicy, loginPolicy, type TotpSecret } from './views.ts'

export interface SecondFactors {
  list(person: string): Promise<{ factors: FactorView[]; recoveryCodes: number }>
  /** Creates the secret for the app. It becomes a factor when a first code is given. */
  beginTotp(person: Person, issuer: string): Promise<TotpSecret>
  confirmTotp(session: Session, code: string, visit: SessionUse, by: By): Promise<string[] | null>
  /**
   * A factor was added in this transaction, and counts as given in this session. With the first factor, all other
   * sessions end and recovery codes are created, which are returned.
   */
  added(tx: Queryable, session: Session, factor: string, by: By): Promise<string[] | null>
  remove(person: string, factor: string, by: By): Promise<void>
  renewCodes(person: string, by: By): Promise<string[]>
  /** Checks a code of the app or a recovery code. Each is accepted once. Throws if it is wrong. */
  check(person: string, code: string, visit: SessionUse, by: By): Promise<void>
  /** For a person who has lost every factor: the operator removes all factors and ends all sessions. */
  reset(email: string, mayGive: MayGive, by: By): Promise<void>
  policy(): Promise<LoginPolicy>
  changePolicy(policy: LoginPolicy, mayGive: MayGive, by: By): Promise<LoginPolicy>
}

export interface SecondFactorDeps extends PeopleDeps {
  /** Seals the apps' secrets and signs recovery codes. */
  readonly factorKey: Buffer
}

const LIST = sql('factor_list')`
  select id, kind, name, created_at, used_at from second_factor where person_id = $1 and confirmed order by created_at limit 100`
const COUNT_CODES = sql('factor_codes')`select count(*)::int as count from recovery_code where person_id = $1`
const LOCK_PERSON = sql('factor_lock')`select id from person where id = $1 for update`
const DROP_PENDING = sql('factor_drop_pending')`
  delete from second_factor where person_id = $1 and kind = 'totp' and not confirmed`
const INSERT_TOTP = sql('factor_insert_totp')`
  insert into second_factor (id, person_id, kind, name, sealed) values ($1, $2, 'totp', 'Authenticator app', $3)`
const TOTPS = sql('factor_totps')`
  select id, sealed from second_factor where person_id = $1 and kind = 'totp' and confirmed = $2`
// The check is the write: a code is accepted only for a later time step than the last one, so it is accepted once.
const USE_STEP = sql('factor_use_step')`
  update second_factor set counter = $2, used_at = now() where id = $1 and counter < $2 returning id`
const CONFIRM = sql('factor_confirm')`update second_factor set confirmed = true where id = $1`
const OTHERS = sql('factor_others')`
  select count(*)::int as count from second_factor where person_id = $1 and confirmed and id <> $2`
const REMOVE = sql('factor_remove')`delete from second_factor where person_id = $1 and id = $2 returning kind`
const REMOVE_ALL = sql('factor_remove_all')`delete from second_factor where person_id = $1`
const DROP_CODES = sql('factor_drop_codes')`delete from recovery_code where person_id = $1`
const PUT_CODES = sql('factor_put_codes')`insert into recovery_code (person_id, digest) select $1, unnest($2::bytea[])`
const USE_CODE = sql('factor_use_code')`
  delete from recovery_code where person_id = $1 and digest = $2 returning person_id`

const POLICY = defineSetting({
  name: 'login',
  schema: loginPolicy,
  defaults: { secondFactorRoles: [] },
  action: 'login.policy',
  object: 'login',
})

const CODES = 10
/** Fifty bits, signed with a key that the database does not have. */
const CODE_CHARS = 10
const TOTP_CODE = /^\d{6}$/

export function createSecondFactors(deps: SecondFactorDeps): SecondFactors {
  const { database, world, audit, attempts, sessions, factorKey } = deps
  const placeOf = (id: string) => `second_factor|${id}|sealed|1`
  const digestOf = (person: string, code: string) => sign(factorKey, `recovery ${person} ${code}`)

  async function newCodes(tx: Queryable, person: string): Promise<string[]> {
    const codes = Array.from({ length: CODES }, () => base32(world.bytes(7)).slice(0, CODE_CHARS))
    await tx.query(DROP_CODES, [person])
    await tx.query(PUT_CODES, [person, codes.map((code) => digestOf(person, code))])
    return codes.map((code) => `${code.slice(0, CODE_CHARS / 2)}-${code.slice(CODE_CHARS / 2)}`)
  }

  /** Uses the code, and returns the factor to which it belongs. */
  async function useTotp(person: string, code: string, confirmed: boolean): Promise<string | undefined> {
    for (const { id, sealed } of await database.query<{ id: string; sealed: Buffer }>(TOTPS, [person, confirmed])) {
      const secret = unseal(factorKey, placeOf(id), sealed)
      const step = secret && totpStep(Buffer.from(secret, 'base64'), code, world.nowMs())
      if (step && (await database.query(USE_STEP, [id, step])).length > 0) return id
    }
    return undefined
  }

  async function useRecovery(person: string, given: string): Promise<boolean> {
    const code = given.toUpperCase().replaceAll(/[\s-]/g, '')
    const [used] = await database.query(USE_CODE, [person, digestOf(person, code)])
    return used !== undefined
  }

  /** Limits guesses per person, from all browsers and networks together. */
  async function guarded<T>(person: string, visit: SessionUse, by: By, use: () => Promise<T | undefined>): Promise<T> {
    const attempt = await attempts.begin({ ip: visit.ip, browser: `code ${person}` })
    const right = await use().catch((error: unknown) => takeBack(attempt, error))
    if (right === undefined) {
      await database.transaction((tx) => audit.write(tx, by, { action: 'session.refuse', object: person }))
      throw new Fault('access_denied', { message: 'This code is not right, or was used already.' })
    }
    await attempt.succeeded()
    return right
  }

  const factors: SecondFactors = {
    async list(person) {
      const [rows, [codes]] = await Promise.all([
        database.query<{ id: string; kind: FactorView['kind']; name: string; created_at: Date; used_at: Date | null }>(
          LIST,
          [person],
        ),
        database.query<{ count: number }>(COUNT_CODES, [person]),
      ])
      const views = rows.map(({ id, kind, name, ...at }) => ({
        id,
        kind,
        name,
        createdAt: at.created_at.toISOString(),
        lastUsedAt: at.used_at?.toISOString() ?? null,
      }))
      return { factors: views, recoveryCodes: codes?.count ?? 0 }
    },

    async beginTotp(person, issuer) {
      const secret = world.bytes(TOTP_SECRET_BYTES)
      const id = `fac_${newId(world)}`
      await database.transaction(async (tx) => {
        await tx.query(DROP_PENDING, [person.id])
        await tx.query(INSERT_TOTP, [id, person.id, seal(factorKey, placeOf(id), secret.toString('base64'), world)])
      })
      return { secret: base32(secret), uri: totpUri(secret, { issuer, account: person.email }) }
    },

    async confirmTotp(session, code, visit, by) {
      const { person } = session
      const id = await guarded(person.id, visit, by, () => useTotp(person.id, code, false))
      return database.transaction(async (tx) => {
        await tx.query(CONFIRM, [id])
        return factors.added(tx, session, id, by)
      })
    },

    async added(tx, session, factor, by) {
      const person = session.person.id
      await sessions.hold(tx, session.id)
      const [others] = await tx.query<{ count: number }>(OTHERS, [person, factor])
      const isFirst = others?.count === 0
      await sessions.prove(tx, session.id, { strong: true })
      // The other sessions were started without a second factor.
      if (isFirst) await sessions.endAll(tx, person, session.id)
      const codes = isFirst ? await newCodes(tx, person) : null
      await audit.write(tx, by, {
        action: 'factor.add',
        object: person,
        detail: { factor },
        before: { factors: await kindsOf(tx, person, factor) },
        after: { factors: await kindsOf(tx, person) },
      })
      return codes
    },

    async remove(person, factor, by) {
      await database.transaction(async (tx) => {
        await tx.query(LOCK_PERSON, [person])
        const before = await kindsOf(tx, person)
        const [gone] = await tx.query<{ kind: string }>(REMOVE, [person, factor])
        if (!gone) throw new Fault('not_found', { message: 'You have no such second factor.' })
        const [others] = await tx.query<{ count: number }>(OTHERS, [person, factor])
        if (others?.count === 0) await tx.query(DROP_CODES, [person])
        await audit.write(tx, by, {
          action: 'factor.remove',
          object: person,
          detail: { factor, kind: gone.kind },
          before: { factors: before },
          after: { factors: await kindsOf(tx, person) },
        })
      })
    },

    async renewCodes(person, by) {
      return database.transaction(async (tx) => {
        await tx.query(LOCK_PERSON, [person])
        const [others] = await tx.query<{ count: number }>(OTHERS, [person, ''])
        if (others?.count === 0)
          throw new Fault('conflict', { message: 'Recovery codes replace a second factor: add one first.' })
        const codes = await newCodes(tx, person)
        await audit.write(tx, by, { action: 'factor.codes', object: person })
        return codes
      })
    },

    async check(person, code, visit, by) {
      await guarded(person, visit, by, async () =>
        TOTP_CODE.test(code) ? await useTotp(person, code, true) : (await useRecovery(person, code)) || undefined,
      )
    },

    async reset(email, mayGive, by) {
      await database.transaction(async (tx) => {
        const person = await findWithin(tx, email, mayGive)
        const before = await kindsOf(tx, person.id)
        await tx.query(REMOVE_ALL, [person.id])
        await tx.query(DROP_CODES, [person.id])
        await sessions.endAll(tx, person.id)
        await audit.write(tx, by, {
          action: 'factor.reset',
          object: person.id,
          before: { factors: before },
          after: { factors: [] },
        })
      })
    },

    policy: () => POLICY.read(database),

    changePolicy: (policy, mayGive, by) =>
      POLICY.change({ database, audit }, by, (before) => {
        for (const role of [...before.secondFactorRoles, ...policy.secondFactorRoles])
          if (before.secondFactorRoles.includes(role) !== policy.secondFactorRoles.includes(role))
            requireCovered(mayGive, role)
        return policy
      }),
  }
  return factors
}

/** The kinds of a person's factors for the audit log, except one factor. */
async function kindsOf(tx: Queryable, person: string, but = ''): Promise<string[]> {
  const rows = await tx.query<{ id: string; kind: string }>(LIST, [person])
  return rows.filter(({ id }) => id !== but).map(({ kind }) => kind)
}

async function takeBack(attempt: Attempt, error: unknown): Promise<never> {
  await attempt.giveBack().catch(() => undefined) // The original error is the one to report.
  throw error
}
