// A person deletes their own login. Personal data are deleted: address, password, sessions, memberships, links, saved
// views and mails. Money stays: the accounts of which they were the only member are closed and keep their transfers,
// usage and statements, without the person's name.
import type { Accounts } from '../../../admission/accounts.ts'
import type { By } from '../../../database/audit.ts'
import { type Queryable, sql } from '../../../database/database.ts'
import type { Branding } from '../../../identity/branding/branding.ts'
import { renderMail } from '../../../identity/branding/mail.ts'
import { type LeavingDeps, type Left, leaveAccount, leaveOperators } from '../../../identity/leaving.ts'
import { LOCK_OPERATORS } from '../../../identity/members.ts'
import type { PeopleDeps } from '../../../identity/people.ts'
import { PERSON_MAILS, type PersonMails } from '../../../identity/person-mails.ts'
import type { OperatorRole } from '../../../identity/roles.ts'
import type { Person } from '../../../identity/sessions.ts'
import type { EndedView } from '../../../identity/views.ts'
import { formatCredits, parseCredits } from '../../../kernel/credits.ts'
import { Fault } from '../../../kernel/fault.ts'

export interface OwnDeletion {
  /** `forfeit`: the person accepts that credits on their accounts are lost. */
  delete(person: Person, forfeit: boolean, by: By): Promise<EndedView>
}

export interface DeletionDeps extends LeavingDeps, Pick<PeopleDeps, 'database' | 'audit'> {
  readonly accounts: Pick<Accounts, 'close' | 'change' | 'read'>
  readonly branding: Pick<Branding, 'get'>
  readonly publicUrl: () => string
  readonly mails: (PersonMails & { forget(tx: Queryable, to: string): Promise<void> }) | undefined
}

interface Membership {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly posted: bigint
  /** Another ledger has it, and knows its balance. */
  readonly ledger: string | null
  readonly owners: number
  readonly members: number
  readonly role: string
}

const ACCOUNTS = sql('deletion_accounts')`select a.id, a.name, a.status, a.posted, a.ledger, m.role,
     (select count(*)::int from membership o where o.account_id = a.id and o.role = 'owner') as owners,
     (select count(*)::int from membership o where o.account_id = a.id) as members
   from membership m join account a on a.id = m.account_id where m.person_id = $1 order by a.id`
const LOCK_MINE = sql('deletion_lock')`
  select 1 from membership where account_id in (select account_id from membership where person_id = $1)
   order by account_id, person_id for update`
const END_LINKS = sql('deletion_links')`delete from invite where email = $1 or made_by = $1`
const DELETE = sql('person_delete')`delete from person where id = $1`

/** The name of an account whose owner is gone; names are often those of people. */
const CLOSED_NAME = 'Deleted by its owner'
const REASON = 'Its owner deleted their login.'

export function createOwnDeletion(deps: DeletionDeps): OwnDeletion {
  const { database, audit, accounts, mails, branding, publicUrl } = deps

  /** As its ledger knows it. */
  async function there(one: Membership): Promise<Membership> {
    const { status, balance } = await accounts.read(one.id)
    return { ...one, status, posted: parseCredits(balance) ?? 0n }
  }

  /** The accounts to close; throws a conflict that says what must be done first. */
  async function look(on: Queryable, person: Person, forfeit: boolean): Promise<Membership[]> {
    const all = await on.query<Membership>(ACCOUNTS, [person.id])
    // In the transaction, what is closed elsewhere is known here.
    const isFirst = on === database
    const last: Membership[] = []
    for (const one of all)
      if (one.role === 'owner' && one.owners === 1) {
        const now = one.ledger === null || !isFirst ? one : await there(one)
        if (now.status !== 'closed') last.push(now)
      }
    const shared = last.find(({ members }) => members > 1)
    if (shared)
      throw new Fault('conflict', {
        message: `You are the last owner of "${shared.name}". Make another member its owner, or remove the members first.`,
      })
    const left = last.find(({ posted }) => posted > 0n)
    if (left && !forfeit)
      throw new Fault('conflict', {
        message: `"${left.name}" has ${formatCredits(left.posted)} credits. They are lost with your login: confirm that, or ask for a refund first.`,
      })
    const staff = person.role === null ? [] : await on.query<{ role: OperatorRole }>(LOCK_OPERATORS)
    if (person.role === 'operator' && staff.filter(({ role }) => role === 'operator').length === 1)
      throw new Fault('conflict', { message: 'You are the last operator. Invite another one first.' })
    return last
  }

  return {
    async delete(person, forfeit, by) {
      // From here on the audit log names the person by their id.
      const mine = { ...by, actor: person.id }
      const closing = await look(database, person, forfeit)
      for (const { id } of closing) {
        await accounts.close(id, { reason: REASON, balance: 'writeoff' }, mine)
        await accounts.change(id, { name: CLOSED_NAME }, mine)
      }
      const left = await database.transaction(async (tx) => {
        await tx.query(END_LINKS, [person.email])
        const all = await tx.query<Membership>(ACCOUNTS, [person.id])
        const left = [await leaveOperators(tx, deps, { person: person.id }, mine)]
        for (const { id } of all) left.push(await leaveAccount(tx, deps, { account: id, person: person.id }, mine))
        await tx.query(LOCK_MINE, [person.id])
        // Somebody may have given this person another account meanwhile, or made them the last owner of one.
        const now = await look(tx, person, forfeit)
        if (now.length > 0 || (await tx.query<Membership>(ACCOUNTS, [person.id])).length !== all.length)
          throw new Fault('conflict', { message: 'Your accounts changed meanwhile. Try again.' })
        await mails?.forget(tx, person.email)
        const brand = branding.get()
        const mail = renderMail(PERSON_MAILS.deleted.make({ name: brand.name, url: '' }), brand, publicUrl())
        await mails?.add(tx, { ...mail, to: person.email, event: 'person.deleted', about: person.id })
        await tx.query(DELETE, [person.id])
        const detail = { closed: closing.length, ...sumOf(left) }
        await audit.write(tx, mine, { action: 'person.delete', object: person.id, detail })
        return left
      })
      for (const { told } of left) await told()
      mails?.wake()
      return sumOf(left)
    },
  }
}

function sumOf(all: readonly Left[]): EndedView {
  const sum = (name: keyof EndedView) => all.reduce((total, { ended }) => total + ended[name], 0)
  return { keys: sum('keys'), handedOver: 0, programs: sum('programs'), tokens: sum('tokens'), links: sum('links') }
}
