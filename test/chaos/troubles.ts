// What befalls processes and their Postgres, each for a while and under load.
import pg from 'pg'
import { PATIENT } from '../../src/database/database.ts'
import { realWorld } from '../../src/kernel/world.ts'
import { maintainUsage } from '../../src/ledger/retention.ts'
import { above, until } from '../until.ts'
import { type Account, DIRECT, type Scene } from './scene.ts'

/** What most of them need. */
type Store = Pick<Scene, 'door' | 'direct'>

export interface Trouble<Needs = Scene> {
  readonly name: string
  readonly fault: string
  /** Two servers instead of one. */
  readonly standby?: boolean
  /** Concerns the database as a whole: nobody is untroubled. */
  readonly everybody?: boolean
  /** Brings it about for so long and ends it; answers what was done. */
  run(scene: Needs, busy: Account, forMs: number): Promise<string>
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
const seconds = (ms: number) => `${Math.round(ms / 1000)} s`
/** After so long whoever shares calls out notices that a process does not answer. */
const NOTICED_MS = 2_000
const STOPPED_MS = 30_000
const LOST_SHARE = 0.2
const TERMINATED_EVERY_MS = 100
const RESET_EVERY_MS = 200
const LOCKED_MS_MAX = 8_000
const MONTH_MS = 31 * 24 * 3_600_000
/** What a failover manager takes to notice. */
const PROMOTED_AFTER_MS = 10_000

const stopped: Trouble = {
  name: 'stopped',
  fault: 'a process that is stopped (SIGSTOP) and goes on',
  async run(scene) {
    const victim = scene.gateways[0]!
    victim.kill('SIGSTOP')
    await pause(NOTICED_MS)
    scene.listed.splice(scene.listed.indexOf(victim), 1)
    await pause(STOPPED_MS - NOTICED_MS)
    victim.kill('SIGCONT')
    await pause(NOTICED_MS)
    scene.listed.push(victim)
    return `one of ${scene.gateways.length} for ${seconds(STOPPED_MS)}; off the list of callers after ${seconds(NOTICED_MS)}`
  },
}

export const lost: Trouble<Store> = {
  name: 'lost',
  fault: 'commits whose answers are lost',
  everybody: true,
  async run({ door }, _, forMs) {
    let [sent, cut] = [0, 0]
    // The ledger's statements commit by themselves: the piece that carries one is forwarded, and its connection is cut.
    door.cutAfter = (piece) => {
      if (!piece.includes('ledger_') && !piece.includes('journal_write')) return false
      sent += 1
      if (Math.random() >= LOST_SHARE) return false
      cut += 1
      return true
    }
    await pause(forMs)
    door.cutAfter = undefined
    return `${cut} of ${sent} answers to the ledger’s commits lost, in ${seconds(forMs)}`
  },
}

export const terminated: Trouble<Store> = {
  name: 'terminated',
  fault: 'backends that are terminated',
  everybody: true,
  async run({ direct }, _, forMs) {
    const fromMs = performance.now()
    let [due, ended] = [0, 0]
    while (performance.now() - fromMs < forMs) {
      const rows = await direct.query<{ done: boolean }>(
        {
          text: `select pg_terminate_backend(pid) as done from (
              select pid from pg_stat_activity
              where datname = current_database() and backend_type = 'client backend' and application_name <> $1
              order by state = 'active' desc, random() limit 1) one`,
        },
        [DIRECT],
      )
      ended += rows.filter(({ done }) => done).length
      due += TERMINATED_EVERY_MS
      await pause(Math.max(0, fromMs + due - performance.now()))
    }
    return `pg_terminate_backend ${ended} times in ${seconds(forMs)}, busy ones first`
  },
}

export const reset: Trouble<Store> = {
  name: 'reset',
  fault: 'connections that are reset',
  everybody: true,
  async run({ door }, _, forMs) {
    const fromMs = performance.now()
    let [times, cut] = [0, 0]
    while (performance.now() - fromMs < forMs) {
      times += 1
      cut += door.connections
      door.reset()
      await pause(RESET_EVERY_MS)
    }
    return `all of them ${times} times in ${seconds(forMs)}, ${cut} together`
  },
}

const locked: Trouble<Store> = {
  name: 'locked',
  fault: 'an account that somebody else has locked',
  async run({ direct }, busy, forMs) {
    const lockedMs = Math.min(LOCKED_MS_MAX, forMs / 2)
    const times = Math.floor(forMs / (lockedMs * 2))
    for (let i = 0; i < times; i++) {
      await direct.transaction(async (tx) => {
        await tx.query({ text: 'select 1 from account where id = $1 for update' }, [busy.id])
        await pause(lockedMs)
      }, PATIENT)
      await pause(lockedMs)
    }
    return `the row of the busiest account, ${times} times ${seconds(lockedMs)}`
  },
}

const month: Trouble<Store> = {
  name: 'month',
  fault: 'a change of month while somebody reads usage',
  async run({ direct }, _, forMs) {
    const at = (months: number) => ({ ...realWorld, nowMs: () => realWorld.nowMs() + months * MONTH_MS })
    await maintainUsage(direct, at(-60), { usageMonths: 100, tries: 5 })
    const fromMs = performance.now()
    let [changes, made, dropped, left] = [0, 0, 0, 0]
    const change = async (reading: boolean) => {
      changes += 1
      const done = await maintainUsage(direct, at(changes), { usageMonths: 36, tries: reading ? 2 : 20 })
      made += done.made.length
      dropped += done.dropped.length
      left += done.left.length
    }
    while (performance.now() - fromMs < forMs) {
      await direct.transaction(async (tx) => {
        await tx.query({ text: 'select count(*) from usage' })
        await change(true)
        await pause(2_000)
      }, PATIENT)
      await change(false)
      await pause(2_000)
    }
    return `${changes} changes, every other one beside an open reader: ${made} months made, ${dropped} dropped, ${left} put off`
  },
}

const promoted: Trouble = {
  name: 'promoted',
  fault: 'a primary that vanishes, and a synchronous standby that is promoted',
  standby: true,
  everybody: true,
  async run(scene, _, forMs) {
    await scene.pair!.losePrimary()
    await pause(PROMOTED_AFTER_MS)
    await scene.pair!.promote()
    const promotedMs = performance.now()
    const { connection } = scene.pair!.standby.server
    const client = new pg.Client({ ...connection })
    await client.connect()
    const before = await client.query('select count(*) as n from usage')
    await until(async () => (await client.query('select count(*) as n from usage')).rows[0].n, above(before.rows[0].n))
    const wroteMs = performance.now() - promotedMs
    await client.end()
    await scene.moved()
    await pause(forMs / 2)
    return `promoted ${seconds(PROMOTED_AFTER_MS)} after the loss; the first charge ${Math.round(wroteMs)} ms after the promotion`
  },
}

export const TROUBLES: readonly Trouble[] = [stopped, lost, terminated, reset, locked, month, promoted]
