// What must be true at the end of every story.
import assert from 'node:assert/strict'
import { verifyLedger } from '../../src/extensions/verify/verify.ts'
import { pluck } from '../lists.ts'
import { catalogs, PRICE_PER_SECOND } from './catalog.ts'
import type { Line } from './faulty-database.ts'
import type { Lane } from './lane.ts'
import type { SimulatedTask } from './task-vendor.ts'
import type { TextCall } from './text-calls.ts'
import type { VideoCall } from './video-calls.ts'
import type { VirtualWorld } from './virtual-world.ts'

export interface Ending {
  readonly account: string
  readonly texts: readonly TextCall[]
  readonly videos: readonly VideoCall[]
  readonly tasks: readonly SimulatedTask[]
  /** Nothing was lost on the line, nobody died and no vendor failed. */
  readonly fair: boolean
}

interface UsageRow {
  readonly id: string
  readonly outcome: string
  readonly charged: bigint
  readonly loss: bigint
}

export interface EndedJob {
  readonly id: string
  readonly hold_id: string
  readonly status: string
  readonly verdict: string
  readonly open: boolean
  readonly task_id: string | null
  readonly anomaly: string | null
  readonly delivered: boolean
}

export async function checkEnding(ending: Ending, line: Line, world: VirtualWorld): Promise<void> {
  const { account } = ending
  const rows = await line.see<UsageRow>(
    'select id, outcome, charged, loss from usage where account_id = $1 order by id',
    [account],
  )
  for (const row of rows) world.note(`usage ${row.id} ${row.outcome} ${row.charged} ${row.loss}`)
  const usage = new Map(rows.map((row) => [row.id, row]))
  const paid = checkTexts(ending, usage) + (await checkVideos(ending, usage, line, world))
  const [state] = await line.see<{ gone: bigint; held: bigint; keys: bigint; holds: bigint }>(
    `select (select sum(case when t.kind in ('grant', 'purchase') then t.amount when t.kind in ('takeback', 'expiry', 'refund') then -t.amount else 0 end) from transfer t where t.account_id = a.id)::bigint - a.posted as gone,
       a.held, (select count(*) from held h where h.account_id = a.id) + (select count(*) from journal j where j.account_id = a.id) as holds,
       (select count(*) from idempotency i where i.account_id = a.id and i.status is null and not i.freed) as keys from account a where a.id = $1`,
    [account],
  )
  assert.deepEqual(state, { gone: paid, held: 0n, holds: 0n, keys: 0n })
}

export async function checkLane(lane: Lane, world: VirtualWorld): Promise<void> {
  const { ok, problems } = await world.perform(() => verifyLedger(lane.database, catalogs))
  assert.ok(ok, problems.join('\n'))
}

function settledOf(id: string, usage: ReadonlyMap<string, UsageRow>): { own: UsageRow[]; settled: UsageRow[] } {
  const own = [usage.get(id), usage.get(`${id}+late`)].filter((row) => row !== undefined)
  const settled = own.filter(({ outcome }) => outcome === 'settled')
  assert.ok(settled.length <= 1, `${id} was settled ${settled.length} times`)
  return { own, settled }
}

function checkTexts({ texts }: Ending, usage: ReadonlyMap<string, UsageRow>): bigint {
  let paid = 0n
  for (const { requestId, caller, process, plans } of texts) {
    const { own, settled } = settledOf(requestId.slice('req_'.length), usage)
    const charged = settled[0]?.charged ?? 0n
    paid += charged
    const told = caller.complete
    if (told && !told.replayed) {
      // A hold that expired under a sleeping process needs no late settlement when there is nothing to pay.
      const free = told.charge === 0n && own[0]?.outcome === 'expired'
      assert.ok(settled.length === 1 || free, `${requestId} was complete and is not settled`)
      assert.equal(charged, told.charge, `${requestId} was told ${told.charge} and charged ${charged}`)
    }
    const reported = plans.some(({ pieces }) => pieces?.some(({ text }) => text.includes('"usage"')))
    if (caller.refused !== undefined && !reported && !process.dead)
      assert.equal(charged, 0n, `${requestId} was refused (${caller.refused}) and charged`)
    if (plans.length === 0) assert.equal(charged, 0n, `${requestId} reached no vendor and was charged`)
  }
  return paid
}

const OUTCOMES: Readonly<Record<string, string>> = { COMPLETED: 'settled', FAILED: 'released', CANCELLED: 'released' }

async function checkVideos(
  { account, videos, tasks, fair }: Ending,
  usage: ReadonlyMap<string, UsageRow>,
  line: Line,
  world: VirtualWorld,
): Promise<bigint> {
  const jobs = await line.see<EndedJob>(
    `select id, hold_id, status, verdict, open, task_id, anomaly,
       exists (select 1 from delivery d where d.subject = job.id and d.delivered_at is not null) as delivered
     from job where account_id = $1 order by id`,
    [account],
  )
  let paid = 0n
  for (const job of jobs) {
    world.note(`job ${JSON.stringify(job)}`)
    const call = videos.find(({ jobId }) => jobId === job.id)
    assert.ok(call, `${job.id} was ordered by nobody`)
    const { own } = settledOf(job.hold_id, usage)
    const charged = own[0]?.charged ?? 0n
    paid += charged
    assert.equal(job.open, false, `${job.id} was left open`)
    assert.equal(job.status, job.verdict, `${job.id} does not end as was decided`)
    // One outcome of its money, and the one that its status says.
    assert.deepEqual(pluck(own, 'outcome'), [OUTCOMES[job.status]], `${job.id} is ${job.status}`)
    const made = tasks.filter(({ token }) => token === job.id)
    assert.ok(made.length <= 1, `${job.id} was submitted ${made.length} times`)
    if (job.status === 'COMPLETED') {
      assert.equal(made[0]?.ending, 'succeeded', `${job.id} is complete without a video`)
      const seconds = Math.min(made[0]!.seconds ?? call.seconds, call.seconds)
      assert.equal(charged + own[0]!.loss, PRICE_PER_SECOND * BigInt(seconds), `${job.id} has another price`)
    }
    if (call.cancelAcknowledged) assert.equal(job.status, 'CANCELLED', `${job.id} was cancelled`)
    if (job.status === 'CANCELLED')
      assert.ok(
        made.every(({ cancelled }) => cancelled),
        `${job.id} goes on`,
      )
    const seen = call.seen.find((status) => OUTCOMES[status] !== undefined)
    if (seen) assert.equal(job.status, seen, `${job.id} was seen to be ${seen}`)
    if (call.callback) {
      // Of an account that has moved since, it was delivered from where it fired.
      assert.ok(job.delivered || call.told.length > 0, `what became of ${job.id} was not delivered`)
      assert.ok(call.told.length > 0, `nobody was told of ${job.id}`)
    }
    for (const told of call.told) assert.equal(told, job.status, `${job.id} was told to be ${told}`)
    if (fair && !call.cancelAcknowledged) assert.equal(job.status, 'COMPLETED', `${job.id} failed in fair weather`)
  }
  for (const { jobId, acknowledged } of videos)
    assert.ok(!acknowledged || jobs.some(({ id }) => id === jobId), `${jobId} was acknowledged and is gone`)
  for (const { token } of tasks)
    assert.ok(
      jobs.some(({ id }) => id === token),
      `a task was made for ${token}, which is no job`,
    )
  return paid
}
