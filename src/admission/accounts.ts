// Accounts as an operator sees them: made, named, given credits, limited. Every change is one transaction with its audit row.

import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { newId, type World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import {
  keepLimits,
  type Limits,
  type LimitsPatch,
  mergeLimits,
  readSystemLimits,
  showLimits,
} from '../ledger/limits.ts'
import { createStatements } from '../ledger/statement.ts'
import type { AccountView, LimitsView } from '../ledger/views.ts'
import { hashRequest } from './idempotency.ts'

export interface Accounts {
  /** Answers the new account's id. */
  create(
    input: { name: string; credits?: Credits | undefined; limits?: LimitsPatch | null | undefined },
    by: By,
  ): Promise<string>
  change(
    id: string,
    input: { name?: string | undefined; limits?: LimitsPatch | null | undefined },
    by: By,
  ): Promise<void>
  /** A negative amount takes back what is available, and no more. With the key of an earlier credit: its answer again. */
  credit(
    id: string,
    input: { amount: Credits; note: string; key?: string | undefined },
    by: By,
  ): Promise<{ account: AccountView; again: boolean }>
  systemLimits(): Promise<LimitsView>
  changeSystemLimits(patch: LimitsPatch, by: By): Promise<LimitsView>
}

const INSERT = statement('account_insert', 'insert into account (id, name, limits) values ($1, $2, $3)')
const FIND = statement(
  'account_lock',
  'select name, limits, posted, held, frozen_until > now() as frozen from account where id = $1 for update',
)
const CHANGE = statement('account_change', 'update account set name = $2, limits = $3 where id = $1')

const FIND_KEY = statement(
  'grant_key_find',
  'select request_hash, answer from grant_key where account_id = $1 and key = $2',
)
const KEEP_KEY = statement(
  'grant_key_keep',
  'insert into grant_key (account_id, key, request_hash, answer) values ($1, $2, $3, $4)',
)

interface FoundRow {
  name: string
  frozen: boolean | null
  limits: Limits
  posted: bigint
  held: bigint
}

export function createAccounts(options: { database: Database; world: World; ledger: Ledger; audit: Audit }): Accounts {
  const { database, world, ledger, audit } = options

  async function find(tx: Queryable, id: string): Promise<FoundRow> {
    const [row] = await tx.query<FoundRow>(FIND, [id])
    if (!row) throw accountUnknown()
    if (row.frozen) throw accountMoving()
    return row
  }

  return {
    async create({ name, credits = 0n, limits: given }, by) {
      const id = `acc_${newId(world)}`
      const limits = mergeLimits({}, given)
      await database.transaction(async (tx) => {
        await tx.query(INSERT, [id, name, JSON.stringify(limits)])
        const granted =
          credits > 0n
            ? await ledger.grant({ account: id, amount: credits, note: 'first credits', actor: by.actor }, tx)
            : undefined
        if (Object.keys(limits).length > 0) await keepLimits(tx, { kind: 'account', account: id }, limits)
        const transfer = granted ? { transfer: granted.id } : {}
        const detail = { name, credits: formatCredits(credits), limits: showLimits(limits), ...transfer }
        await audit.write(tx, by, { action: 'account.create', object: id, detail })
      })
      return id
    },

    async change(id, input, by) {
      await database.transaction(async (tx) => {
        const row = await find(tx, id)
        const name = input.name ?? row.name
        const limits = input.limits === undefined ? row.limits : mergeLimits(row.limits, input.limits)
        await tx.query(CHANGE, [id, name, JSON.stringify(limits)])
        if (input.limits !== undefined) await keepLimits(tx, { kind: 'account', account: id }, limits)
        const detail = {
          ...(input.name === undefined ? {} : { name }),
          ...(input.limits === undefined ? {} : { limits: showLimits(limits) }),
        }
        await audit.write(tx, by, { action: 'account.change', object: id, detail })
      })
      if (input.limits !== undefined) ledger.recall(id)
    },

    async credit(id, { amount, note, key }, by) {
      const hash = hashRequest('credit', JSON.stringify([formatCredits(amount), note]))
      return database.transaction(async (tx) => {
        // The account's lock makes two requests with one key follow each other.
        const row = await find(tx, id)
        if (key !== undefined) {
          const [earlier] = await tx.query<{ request_hash: string; answer: AccountView }>(FIND_KEY, [id, key])
          if (earlier && earlier.request_hash !== hash)
            throw new Fault('conflict', { message: 'This Idempotency-Key was used with a different request.' })
          if (earlier) return { account: earlier.answer, again: true }
        }
        if (row.posted + amount > CREDITS_MAX)
          throw new Fault('request_invalid', {
            message: `amount: the balance may not exceed ${formatCredits(CREDITS_MAX)} credits.`,
            param: 'amount',
          })
        if (amount < 0n && row.posted === row.held)
          throw new Fault('conflict', { message: 'The account has nothing available that could be taken back.' })
        const after = await ledger.grant({ account: id, amount, note, actor: by.actor }, tx)
        const moved = (after?.posted ?? row.posted) - row.posted
        await audit.write(tx, by, {
          action: 'account.credit',
          object: id,
          // By its transfer, the ledger's verification finds that each of the two has the other.
          detail: { amount: formatCredits(moved), note, transfer: after?.id, ...(key === undefined ? {} : { key }) },
        })
        const account = (await createStatements(tx).account(id))!
        if (key !== undefined) await tx.query(KEEP_KEY, [id, key, hash, JSON.stringify(account)])
        return { account, again: false }
      })
    },

    async systemLimits() {
      return showLimits(await readSystemLimits(database))
    },

    async changeSystemLimits(patch, by) {
      const shown = await database.transaction(async (tx) => {
        const limits = mergeLimits(await readSystemLimits(tx), patch)
        // First what others may keep waiting; last what everybody's calls would wait for.
        await audit.write(tx, by, { action: 'system.limits', object: 'system', detail: { limits: showLimits(limits) } })
        await keepLimits(tx, { kind: 'system' }, limits)
        return showLimits(limits)
      })
      ledger.recall()
      return shown
    },
  }
}

export function accountUnknown(): Fault {
  return new Fault('not_found', { message: 'There is no account with this id.' })
}

/** What was changed here now would be missing there. */
export function accountMoving(): Fault {
  return new Fault('conflict', {
    message: 'This account is being moved to another database, or has been. Change it there, or try again later.',
  })
}
