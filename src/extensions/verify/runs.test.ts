import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { started } from '../../../test/started.ts'
import { until } from '../../../test/until.ts'
import { createAudit } from '../../database/audit.ts'
import { type Log, silentLog } from '../../kernel/log.ts'
import { realWorld } from '../../kernel/world.ts'
import { createVerifier, type Verifier } from './runs.ts'
import type { VerificationRun } from './views.ts'

const HOUR_MS = 3_600_000
/** By how much the clock of the processes is ahead. */
let aheadMs = 0
const world = { ...realWorld, nowMs: () => realWorld.nowMs() + aheadMs }

const fresh = started(freshDatabase)
const database = started(() => fresh.open())
before(async () => {
  await sql(`insert into account (id, name) values ('acc_1', 'one'), ('acc_2', 'two')`)
})

const sql = (text: string) => database.query({ text })

function open(options: { log?: Log; nightlyAt?: string } = {}): Verifier {
  const audit = createAudit({ database, world })
  return createVerifier({ database, audit, world, log: silentLog, usageMonths: 24, nightlyAt: 'off', ...options })
}

async function ended(verifier: Verifier): Promise<VerificationRun> {
  return until(async () => {
    const { running, last } = await verifier.state()
    return !running && (last ?? false)
  })
}

test('one run at a time over all processes, and each of them sees what came of it', async () => {
  const [one, two] = [open(), open()]
  assert.deepEqual(await one.state(), { running: null, last: null, nextAt: null })
  const [first, second] = await Promise.all([one.start({ whole: false }), two.start({ whole: true })])
  assert.equal(first.id, second.id)
  const last = await ended(two)
  assert.deepEqual([last.id, last.ok, last.problems, last.failure], [first.id, true, [], null])
  assert.deepEqual(last.checked, { accounts: 2, charges: 0, transfers: 0, holds: 0, usage: 0, jobs: 0 })
})

test('what is wrong is said in the log, so that somebody is called', async () => {
  const lines: Array<{ alert?: boolean; problems?: string[]; message: string }> = []
  const verifier = open({ log: { ...silentLog, error: (fields, message) => lines.push({ ...fields, message }) } })
  await sql(`update account set posted = 5 where id = 'acc_1'`)
  await verifier.start({ whole: false })
  const last = await ended(verifier)
  assert.equal(last.ok, false)
  assert.match(last.problems.join(), /acc_1: the balance is 0\.000005/)
  await verifier.stop()
  assert.deepEqual(lines, [{ alert: true, problems: last.problems, message: 'the ledger does not add up' }])
  await sql(`update account set posted = 0 where id = 'acc_1'`)
})

test('a run whose process died does not stand in the way, and one that is stopped says so', async () => {
  await sql(`insert into verification (id, whole, seen_at) values ('0dead', false, now() - interval '2 minutes')`)
  const verifier = open()
  assert.equal((await verifier.state()).running, null)
  const stopping = open()
  await stopping.start({ whole: true })
  await stopping.stop()
  const { last } = await verifier.state()
  assert.deepEqual([last?.ok, last?.failure], [null, 'the process was stopped'])
  await verifier.start({ whole: false })
  assert.equal((await ended(verifier)).ok, true)
})

test('every night, by one of the processes, and once', async () => {
  const hourNow = new Date(world.nowMs()).getUTCHours()
  const nightlyAt = `${String((hourNow + 2) % 24).padStart(2, '0')}:00`
  const [one, two] = [open({ nightlyAt }), open({ nightlyAt })]
  const count = async () =>
    Number((await database.query<{ n: bigint }>({ text: 'select count(*) as n from verification' }))[0]!.n)
  // Today's is done.
  await sql(`delete from verification`)
  await one.start({ whole: false })
  await ended(one)
  await one.tick()
  assert.equal(await count(), 1)
  assert.equal(new Date((await one.state()).nextAt!).getUTCHours(), (hourNow + 2) % 24)
  aheadMs = 3 * HOUR_MS
  await Promise.all([one.tick(), two.tick()])
  await ended(one)
  assert.equal(await count(), 2)
  // Its start is by the database's clock, which stands still for this test.
  await sql(`update verification set started_at = started_at + interval '3 hours'`)
  await one.tick()
  await two.tick()
  assert.equal(await count(), 2)
  aheadMs = 0
})
