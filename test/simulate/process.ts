// One gateway process of a story: the real ledger, path and job engine, on a line that may fail, and mortal itself.

import { createUsualOutput } from '../../src/admission/usual-output.ts'
import { createAudit } from '../../src/database/audit.ts'
import { createChanges } from '../../src/database/changes.ts'
import type { Database } from '../../src/database/database.ts'
import { createHomes, type Home, type Homes } from '../../src/extensions/ledgers/homes.ts'
import { type JobEngine, startJobs } from '../../src/jobs/engine.ts'
import type { JobTiming } from '../../src/jobs/job.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { createContentSealer, createSecrets } from '../../src/kernel/secret.ts'
import { newId } from '../../src/kernel/world.ts'
import { createLedger, type Ledger } from '../../src/ledger/ledger.ts'
import type { PathDeps } from '../../src/pipeline/call.ts'
import { createResponseCache } from '../../src/pipeline/response-cache.ts'
import { createVendors } from '../../src/routing/vendor.ts'
import { createMonitor, createStreamWatch } from '../../src/telemetry/monitor.ts'
import type { HttpCall } from '../../src/upstream/call.ts'
import type { Books } from './books.ts'
import { catalogs } from './catalog.ts'
import { asMortal, databaseOf, type Line, type Mortal, type Stage } from './faulty-database.ts'
import { faultyVendor, type VendorPlan } from './faulty-vendor.ts'
import type { VirtualWorld } from './virtual-world.ts'

/** A job's life in some minutes, so that a story has few idle turns. */
const PACE: Partial<JobTiming> = {
  pollMsMin: 3_000,
  pollMsMax: 9_000,
  fetchEveryMs: 3_000,
  leaseMs: 20_000,
  retryMs: 2_000,
  submitForMs: 60_000,
  searchForMs: 40_000,
  watchEveryMs: 20_000,
  watchForMs: 60_000,
  eventsEveryMs: 5_000,
  webhookRetrySeconds: 2,
}
const SWEEP_MS = 7_000
/** The database that also says where each account is. */
export const CONTROL = 'control'

export interface Surroundings {
  readonly world: VirtualWorld
  /** To the databases: control first, which may be the only one. */
  readonly lines: ReadonlyMap<string, Line>
  readonly booksOf: (account: string) => Books
  /** How often fetching a file or telling a caller's own address fails. */
  readonly faults: () => number
  readonly onCall: (call: HttpCall) => Promise<VendorPlan>
  readonly onWebhook: (body: string) => void
  readonly stage: Stage | undefined
}

/** What a process has for each ledger. */
export interface Cell {
  readonly ledger: Ledger
  readonly path: PathDeps
  readonly engine: JobEngine
}

/** Shorter than a caller's patience, so that some wait in vain. */
const CREDIT_WAIT_MS = 3_000

export class Process implements Mortal {
  readonly id: string
  /** By the name of the ledger. */
  readonly cells = new Map<string, Cell>()
  readonly #homes: Homes | undefined
  readonly #world: VirtualWorld
  #stepsLeft = Number.POSITIVE_INFINITY
  #sleepsUntilMs = 0
  #dozes = 0
  #onDeath: () => void = () => {}
  dead = false
  /** Was stopped for longer than others wait. */
  slept = false

  constructor(around: Surroundings) {
    const { world, lines } = around
    this.#world = world
    this.id = `p_${newId(world)}`
    const databases = [...lines].map(([name, line]) => {
      const database = databaseOf(line, this, {
        before: (statement) => this.#mayStop(statement, around.stage),
        during: (statement) => this.#mayDoze(statement),
      })
      this.cells.set(name, this.#open(database, around))
      return database
    })
    if (databases.length > 1) this.#homes = this.#learn(databases[0]!) // Control is the first.
  }

  /** Where the account is, as far as this process knows. */
  cellOf(account: string): Cell | Promise<Cell> {
    const home = this.#homes?.ofAccount(account)
    const cellIn = (name: Home | undefined) => this.cells.get(name ?? CONTROL)! // There is one for each.
    return home instanceof Promise ? home.then(cellIn) : cellIn(home)
  }

  #learn(database: Database): Homes {
    const changes = createChanges(database, this.#world)
    const start = () => void changes.start().catch(() => this.#world.after(1_000, start))
    start()
    return createHomes({ database, changes, apiKeys: { digestsOf: () => [] }, world: this.#world })
  }

  #open(database: Database, around: Surroundings): Cell {
    const { world } = around
    const ledger = createLedger({ database, world, processId: this.id, creditWaitMs: CREDIT_WAIT_MS })
    const { reserve } = ledger
    ledger.reserve = async (reservation, waits) => {
      const cameMs = world.nowMs()
      const reserved = await reserve(reservation, waits)
      if (reserved.outcome === 'held')
        around.booksOf(reservation.account).admitted(this, reservation, reserved.amount, cameMs)
      return reserved
    }
    const path: PathDeps = {
      database,
      sealer: createContentSealer(createSecrets('of a simulated process'), world),
      ledger,
      upstream: faultyVendor({ world, mortal: this, onCall: around.onCall }),
      logins: { open: () => Promise.reject(new Error('no logins')) },
      world,
      log: silentLog,
      vendors: createVendors(world),
      routes: { world, sandboxUrl: () => undefined, credential: () => undefined },
      monitor: createMonitor({ world, log: silentLog }),
      watch: createStreamWatch(world),
      cache: createResponseCache(world),
      jobs: { open: (...about) => engine.open(...about) },
      refusals: { note() {} },
      shadows: { copy() {} },
      labelNames: { check: () => undefined },
      unbilled: { count() {} },
      usualOutput: createUsualOutput(),
    }
    this.#beat(ledger)
    const engine = this.#startEngine(path, around)
    return { ledger, path, engine }
  }

  step(): Promise<void> | undefined {
    this.#stepsLeft -= 1
    if (this.#stepsLeft <= 0) this.crash()
    const restMs = this.#sleepsUntilMs - this.#world.elapsedMs()
    return restMs > 0 ? this.#world.pause(restMs) : undefined
  }

  /** Stopped for a while: nothing that it asks gets out, and no answer gets in. */
  sleep(forMs: number): void {
    this.#sleepsUntilMs = this.#world.elapsedMs() + forMs
    this.slept = true
    this.#world.note(`${this.id} sleeps for ${forMs} ms`)
  }

  /**
   * It will be stopped in the middle of a job or of a change of what it has leased, for longer than anybody waits for
   * it.
   */
  dozeOnce(): void {
    this.#dozes = 1
  }

  #mayDoze(statement: string): void {
    const { chance } = this.#world
    if (this.#dozes === 0 || !/^(job_(take|begin|decide|processing)|ledger_lease)/.test(statement) || !chance.is(0.25))
      return
    this.#dozes -= 1
    this.sleep(25_000 + chance.below(30_000))
  }

  #mayStop(statement: string, { stoppedBefore, diesBefore }: Stage = {}): void {
    if (Number.isFinite(this.#stepsLeft) && diesBefore?.test(statement)) this.crash()
    if (this.slept || !stoppedBefore?.test(statement)) return
    this.sleep(25_000 + this.#world.chance.below(30_000))
  }

  /** It will die at one of its next steps. */
  dieAfter(steps: number, onDeath: () => void): void {
    this.#stepsLeft = steps
    this.#onDeath = onDeath
  }

  crash(): void {
    if (this.dead) return
    this.dead = true
    this.#world.note(`${this.id} dies`)
    this.#onDeath()
  }

  #beat(ledger: Ledger): void {
    if (this.dead) return
    ledger.sweep().then(
      () => this.#world.after(SWEEP_MS, () => this.#beat(ledger)),
      () => this.#world.after(1_000, () => this.#beat(ledger)),
    )
  }

  #startEngine(path: PathDeps, { world, faults, onWebhook }: Surroundings): JobEngine {
    const { database, ledger, upstream, vendors, routes, log } = path
    const { chance } = world
    const unreliable = <T>(run: () => T, fault: () => Fault): Promise<T> =>
      asMortal(this, async () => {
        await world.pause(chance.below(chance.is(0.05) ? 30_000 : 1_000))
        if (chance.is(faults())) throw fault()
        const result = run()
        if (chance.is(faults() / 2)) throw fault()
        return result
      })
    return startJobs({
      database,
      ledger,
      catalog: catalogs,
      upstream,
      vendors,
      routes,
      world,
      log,
      timing: PACE,
      logins: { open: () => Promise.reject(new Error('no logins')) },
      byokKeys: { of: () => undefined },
      mailer: undefined,
      audit: createAudit({ database, world }),
      results: {
        copy: (url) =>
          unreliable(
            () => {
              if (url.includes('/gone/')) throw new Fault('upstream_failed')
              return `file-${url.split('/').at(-1)}`
            },
            () => new Fault(chance.is(0.7) ? 'upstream_failed' : 'unavailable'),
          ),
        url: (name) => `https://files.example/${name}`,
      },
      guard: {
        check: async () => undefined,
        post: ((_url: string, body: string) =>
          unreliable(
            () => {
              onWebhook(body)
              return { status: chance.is(faults()) ? 500 : 204, excerpt: '' }
            },
            () => new Fault('upstream_failed'),
          )) as never,
      },
      secrets: createSecrets('a secret for stories, of more than thirty-two bytes'),
    })
  }
}
