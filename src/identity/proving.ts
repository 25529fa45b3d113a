// An address is a fact only after its mailbox proved it. Somebody who was invited by a link that others could open may
// have prepared a login for a foreign address: the first proof removes everything that was made before it. A mailed
// link proves, a link from an operator, a login provider or directory of the address's domain. Memberships that a login
// provider or a directory gave stay. The same proof ends what was added to a person's ways in after somebody with fewer
// rights than all had a link to sign in as them.
import type { Audit, By } from '../database/audit.ts'
import { type Queryable, sql } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { type LeavingDeps, leaveAccount, leaveOperators } from './leaving.ts'
import type { Sessions } from './sessions.ts'

interface ProvingDeps extends LeavingDeps {
  readonly audit: Audit
  readonly sessions: Pick<Sessions, 'endAll'>
}

const UNPROVED = sql('prove_look')`
  select p.email, p.email_verified_at is not null as lent, coalesce(array_agg(m.account_id order by m.account_id) filter (where m.account_id is not null), '{}') as accounts
   from person p left join membership m on m.person_id = p.id and m.provider_id is null
     and not exists (select 1 from scim_user s where s.person_id = p.id and s.scope = m.account_id)
   where p.id = $1 and (p.email_verified_at is null or p.lent_at is not null) group by p.id, p.email, p.email_verified_at`
const END_LINKS = sql('prove_links')`delete from invite where email = $1 or made_by = $1`
const LEAVE = sql('prove_leave')`delete from membership where person_id = $1 and account_id = any($2)`
const PROVE = sql('prove_person')`
  update person set email_verified_at = now(), lent_at = null, password = null where id = $1 and email_verified_at is null returning id`
/** Logins at providers, and what is about to become one. */
export const END_LOGINS = [
  sql('end_identities')`delete from identity where person_id = $1`,
  sql('end_flows')`delete from login_flow where person_id = $1`,
]
/** What signs a person in, besides the password. */
export const END_WAYS_IN = [
  ...END_LOGINS,
  sql('end_factors')`delete from second_factor where person_id = $1`,
  sql('end_codes')`delete from recovery_code where person_id = $1`,
]

const END_LENT = [
  sql('lent_factors')`
    delete from second_factor f using person p where p.id = $1 and f.person_id = p.id and f.created_at >= p.lent_at`,
  sql('lent_codes')`delete from recovery_code where person_id = $1`,
  sql('lent_end')`update person set lent_at = null, password = null where id = $1`,
]

/** Programs, and their tokens. Second factors stay: a thief of the mailbox must not get rid of them. */
export async function endOtherWays(
  tx: Queryable,
  deps: Pick<ProvingDeps, 'keys' | 'audit'>,
  person: string,
  by: By,
): Promise<() => Promise<void>> {
  const programs = await deps.keys.endPrograms(tx, { person, isOutside: false }, by)
  await deps.audit.write(tx, by, { action: 'person.others', object: person, detail: { programs } })
  return deps.keys.noticed
}

async function endLent(tx: Queryable, deps: ProvingDeps, person: string, by: By): Promise<() => Promise<void>> {
  const told = await endOtherWays(tx, deps, person, by)
  for (const end of [...END_LENT, ...END_LOGINS]) await tx.query(end, [person])
  await deps.sessions.endAll(tx, person)
  return told
}

/**
 * Does nothing if the address was proved before and nobody with fewer rights had a way in since. Else the person has no
 * way in afterwards; the caller gives them one. Call the result after the commit.
 */
export async function proveAddress(
  tx: Queryable,
  deps: ProvingDeps,
  person: string,
  by: By,
): Promise<(() => Promise<void>) | undefined> {
  const [found] = await tx.query<{ email: string; accounts: string[]; lent: boolean }>(UNPROVED, [person])
  if (!found) return undefined
  if (found.lent) return endLent(tx, deps, person, by)
  // In the order of locks of leaving: links, accounts, members, the person.
  await tx.query(END_LINKS, [found.email])
  const left = [await leaveOperators(tx, deps, { person }, by)]
  for (const account of found.accounts) left.push(await leaveAccount(tx, deps, { account, person }, by))
  await tx.query(LEAVE, [person, found.accounts])
  if (!(await tx.query(PROVE, [person]))[0])
    throw new Fault('conflict', { message: 'This address was proved at the same moment. Try again.' })
  for (const end of END_WAYS_IN) await tx.query(end, [person])
  await deps.sessions.endAll(tx, person)
  const keys = left.reduce((sum, { ended }) => sum + ended.keys, 0)
  await deps.audit.write(tx, by, {
    action: 'person.prove',
    object: person,
    detail: { name: found.email, memberships: found.accounts.length, keys },
  })
  return async () => {
    for (const { told } of left) await told()
  }
}
