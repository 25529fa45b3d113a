// Operators change things while calls go on: what their changes wait for, calls do not.

import { freshDatabase } from '../../test/database.ts'
import { assert, atOnce, started, test, until } from '../../test/kit.ts'
import { runSwarm } from '../../test/ledger-swarm.ts'
import { release, settlement } from '../../test/settlement.ts'
import { createAudit } from '../database/audit.ts'
import { createChanges } from '../database/changes.ts'
import { PATIENT } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { newId, realWorld as world } from '../kernel/world.ts'
import { createLedger, type Ledger } from '../ledger/ledger.ts'
import { storeLimits } from '../ledger/limits.ts'
import { createAccounts } from './accounts.ts'

const fresh = started(freshDatabase)
const database = started(() => fresh.open({ connectionsMax: 8 }))

const BY = { actor: 'test', ip: null, requestId: null }
/** Of database/audit.ts. */
const AUDIT_LOCK = 7_046_029_258

const auditOf = () => createAudit({ database, world })
const accountsOf = (ledger: Ledger) =>
  createAccounts({ database, world, ledger, audit: auditOf(), changes: createChanges(database, world) })

test('a change of the system’s limits stops no call, whatever the change itself has to wait for', async () => {
  const ledger = createLedger({ database, world, processId: newId(world) })
  await ledger.sweep()
  const accounts = accountsOf(ledger)
  const [first, second] = [
    await accounts.create({ name: 'first', credits: 1_000_000n }, BY),
    await accounts.create({ name: 'second', credits: 1_000_000n }, BY),
  ]
  await accounts.changeSystemLimits({ concurrency: 50 }, BY)
  let called = 0
  const calls = async (over: () => boolean) => {
    while (!over()) {
      const shared = { id: newId(world), account: first, key: 'k', product: 'p', catalogVersion: 1 }
      const reserved = await ledger.reserve({ ...shared, want: 10n, floor: 10n, tokens: 1 })
      assert.equal(reserved.outcome, 'held')
      await ledger.resolve(settlement(first, shared.id, 1n, shared))
      called += 1
    }
  }
  // Somebody has locked an account and writes the audit, and stops there.
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [second])
    await tx.query({ text: 'select pg_advisory_xact_lock($1)' }, [AUDIT_LOCK])
    let over = false
    const calling = calls(() => over)
    const changed = await accounts.changeSystemLimits({ concurrency: 60 }, BY).catch((error: unknown) => error)
    over = true
    await calling
    assert.ok(changed instanceof Fault && changed.kind === 'unavailable', 'it waited for the audit, and was told')
  }, PATIENT)
  // The change was refused after seconds. Calls that waited for it would have been one, or none.
  assert.ok(called > 3, `${called} calls beside the change`)
  // An account that somebody has locked keeps nobody from changing the system's limits.
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [second])
    assert.deepEqual(await accounts.changeSystemLimits({ concurrency: 60 }, BY), { concurrency: 60 })
  }, PATIENT)
  await ledger.idle()
})

test('a change of the gateway’s limits does not wait for one of an account’s, which waits for the audit', async () => {
  const ledger = createLedger({ database, world, processId: newId(world) })
  const accounts = accountsOf(ledger)
  const id = await accounts.create({ name: 'leased', credits: 1_000n }, BY)
  const lease = `insert into lease (account_id, id, key_id, process_id, amount, retired) values ($1, 'l', 'k', 'p', 0, true)`
  await database.query({ text: lease }, [id])
  await database.transaction(async (tx) => {
    await storeLimits(tx, { kind: 'account', account: id }, { requestsPerMinute: 10 })
    await accounts.changeSystemLimits({ requestsPerMinute: 1_000_000 }, BY)
    await auditOf().write(tx, BY, { action: 'account.change', object: id, detail: {}, before: {}, after: {} })
  })
  await accounts.changeSystemLimits({ requestsPerMinute: null }, BY)
  await database.query({ text: 'delete from lease where account_id = $1' }, [id])
})

test('a lower limit of an account holds from its answer on, also in processes that have leases', async () => {
  const operator = createLedger({ database, world, processId: newId(world) })
  const accounts = accountsOf(operator)
  const id = await accounts.create({ name: 'lowered', credits: 1_000_000n }, BY)
  const ledger = createLedger({ database, world, processId: newId(world) })
  const shared = { account: id, key: 'k', product: 'p', catalogVersion: 1 }
  const ids: string[] = []
  const call = () => {
    ids.push(newId(world))
    return ledger.reserve({ ...shared, id: ids.at(-1)!, want: 10n, floor: 10n, tokens: 1 }) // it has one
  }
  // They go on, so that the lease stays where it is.
  await until(async () => {
    await ledger.sweep()
    assert.equal((await call()).outcome, 'held')
    return (await database.query({ text: 'select 1 from lease where account_id = $1 and amount > 0' }, [id])).length > 0
  })
  await accounts.change(id, { limits: { spendTotal: '0' } }, BY)
  assert.equal((await call()).outcome, 'limited')
  for (const id of ids) await ledger.resolve(release(id, id, shared))
  await ledger.idle()
})

test('what is taken back while two processes call is found, also what they have leased, and no call fails for it', async () => {
  const ledger = createLedger({ database, world, processId: newId(world) })
  await ledger.sweep()
  const accounts = accountsOf(ledger)
  const GIVEN = 2_000_000n
  // Calls that are counted one by one are not leased for.
  await accounts.changeSystemLimits({ concurrency: null }, BY)
  const id = await accounts.create({ name: 'busy', credits: GIVEN }, BY)
  const rows = <R>(text: string) => database.query<R>({ text }, [id])
  let isTaken = false
  const of = [{ url: fresh.url, account: id }]
  const calling = runSwarm(2, { of, want: '10000', charge: '1', isEnough: () => isTaken })
  const leasing = 'select process_id from lease where account_id = $1 and amount > 0 group by process_id'
  // Both have leased of it.
  await until(
    () => rows(leasing),
    ({ length }) => length >= 2,
  )
  // Together nearly all that there is: more than is to be had without what is leased. Calls under way hold 3 % at most.
  const each = GIVEN / 9n
  const taken = await atOnce(8, () => accounts.credit(id, { amount: -each, note: 'back' }, BY))
  assert.equal(taken.length, 8)
  isTaken = true
  const [books] = await rows<{ back: bigint; short: bigint }>(
    `select sum(amount)::bigint as back, count(*) filter (where amount < ${each}) as short from transfer where account_id = $1 and kind = 'takeback'`,
  )
  const [counts] = await calling
  assert.deepEqual([counts?.failed, books?.short], [0, 0n])
  assert.equal(books?.back, each * 8n)
  // Nothing is said to be there only where nothing is leased either; those that were killed may have left something.
  const [left] = await rows<{ available: bigint }>('select posted - held as available from account where id = $1')
  await accounts.credit(id, { amount: -left!.available, note: 'the rest' }, BY)
  const said = (await rows(leasing)).length > 0 ? /held by running calls/ : /has nothing available/
  await assert.rejects(accounts.credit(id, { amount: -1n, note: 'more' }, BY), said)
  await ledger.idle()
})
