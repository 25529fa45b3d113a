// Callers of a video model in a story: they order, look, listen, change their minds, and are told at an address of
// their own.
import assert from 'node:assert/strict'
import type { JobStatus } from '../../src/catalog/generation-answers.ts'
import { asFault, Fault } from '../../src/kernel/fault.ts'
import { readJson } from '../../src/kernel/json.ts'
import { newId } from '../../src/kernel/world.ts'
import type { PathDeps } from '../../src/pipeline/call.ts'
import { serve } from '../../src/pipeline/serve.ts'
import { readVideo } from '../job-engine.ts'
import { SimulatedCaller } from './caller.ts'
import { catalog, VIDEO_MODEL } from './catalog.ts'
import type { Line } from './faulty-database.ts'
import type { Process } from './process.ts'
import { principalOf } from './text-calls.ts'
import type { VirtualWorld } from './virtual-world.ts'

export interface VideoCall {
  /** Empty until it has one. */
  jobId: string
  readonly holdId: string
  readonly seconds: number
  readonly callback: boolean
  readonly process: Process
  /** The caller knows that the job is there. */
  acknowledged: boolean
  cancelAcknowledged: boolean
  refused: number | undefined
  ended: boolean
  readonly seen: JobStatus[]
  /** The statuses that its own address was told. */
  readonly told: string[]
}

const RANKS: Readonly<Record<JobStatus, number>> = {
  PENDING: 0,
  CONNECT: 1,
  PROCESSING: 2,
  COMPLETED: 3,
  FAILED: 3,
  CANCELLED: 3,
}

export class VideoCalls {
  readonly made: VideoCall[] = []
  readonly #world: VirtualWorld
  readonly #lines: readonly Line[]
  readonly #account: string
  readonly #wrong: (error: unknown) => void
  /** A process that lives. */
  readonly #some: () => Process

  constructor(around: {
    world: VirtualWorld
    lines: readonly Line[]
    account: string
    some: () => Process
    wrong: (error: unknown) => void
  }) {
    const { world, lines, account, some, wrong } = around
    this.#world = world
    this.#lines = lines
    this.#account = account
    this.#some = some
    this.#wrong = wrong
  }

  has(job: string): boolean {
    return this.made.some(({ jobId }) => jobId === job)
  }

  holdOf(job: string): string {
    return this.made.find(({ jobId }) => jobId === job)!.holdId // It was made.
  }

  get over(): boolean {
    return this.made.every((call) => call.ended || call.process.dead)
  }

  begin(process: Process): void {
    const { chance } = this.#world
    const seconds = 4 + chance.below(6)
    const callback = chance.is(0.5)
    const call: VideoCall = {
      jobId: '',
      holdId: newId(this.#world),
      seconds,
      callback,
      process,
      acknowledged: false,
      cancelAcknowledged: false,
      refused: undefined,
      ended: false,
      seen: [],
      told: [],
    }
    this.made.push(call)
    this.#create(call)
      .catch((error: unknown) => {
        call.refused = this.#expected(error, call)
      })
      .catch(this.#wrong)
      .finally(() => {
        call.ended = true
      })
  }

  webhook(body: string): void {
    const { type, data } = JSON.parse(body) as { type: string; data: { id: string; status: string } }
    const call = this.made.find(({ jobId }) => jobId === data.id)
    try {
      assert.ok(call?.callback, `${data.id} has no address to be told at`)
      assert.equal(type, `job.${data.status.toLowerCase()}`)
      call.told.push(data.status)
    } catch (error) {
      this.#wrong(error)
    }
  }

  async #create(call: VideoCall): Promise<void> {
    const { process } = call
    const { chance } = this.#world
    const principal = principalOf(this.#account)
    const { path, engine } = await process.cellOf(this.#account)
    const body = {
      model: VIDEO_MODEL,
      prompt: 'a toll gate in the rain',
      duration: call.seconds,
      ...(call.callback ? { callback_url: 'https://receiver.example/hook' } : {}),
    }
    const asked = readVideo(readJson(Buffer.from(JSON.stringify(body))), catalog, principal)
    const out = new SimulatedCaller(this.#world, process)
    const open: PathDeps['jobs']['open'] = async (...about) => {
      const job = await engine.open(...about)
      call.jobId = job.row.id
      return job
    }
    await serve(
      {
        requestId: `req_${call.holdId}`,
        principal,
        catalog,
        ...asked,
        routes: asked.product.routes,
        endpoint: 'video',
        startedMs: this.#world.elapsedMs(),
        out,
        callerHeaders: {},
        ...(chance.is(0.2) ? { idempotency: { key: 'video', requestHash: 'the same' } } : {}),
      },
      { ...path, jobs: { open } },
    )
    // Its process died between the commit and the answer: nobody was told.
    if (process.dead && out.text === '') return
    const { data } = JSON.parse(out.text) as { data: { jobId: string } }
    if (out.complete?.replayed) {
      assert.ok(
        this.made.some(({ jobId }) => jobId === data.jobId),
        `a repetition was told of ${data.jobId}, which nobody ordered`,
      )
      call.refused = 200
      return
    }
    assert.equal(data.jobId, call.jobId)
    call.acknowledged = true
    this.#world.note(`${call.jobId} is acknowledged`)
    this.#world.after(chance.below(20_000), () => this.#look(call))
    if (chance.is(0.3)) this.#world.after(chance.below(40_000), () => this.#cancel(call))
    if (chance.is(0.3)) this.#listen(call)
  }

  /** Where its account is now. */
  async #find({ jobId }: VideoCall) {
    const process = this.#some()
    const { engine } = await process.cellOf(this.#account)
    const row = await engine.jobs.find(jobId)
    // It moved between the two questions.
    if (!row && engine !== (await process.cellOf(this.#account)).engine) throw new Fault('unavailable')
    assert.ok(row, `${jobId} was acknowledged and is not there`)
    return { row, engine, process }
  }

  #look(call: VideoCall): void {
    const { chance } = this.#world
    this.#find(call)
      .then(({ row }) => this.#see(call, row.status))
      .catch((error: unknown) => void this.#expected(error, call))
      .catch(this.#wrong)
    if (call.seen.length < 8) this.#world.after(5_000 + chance.below(40_000), () => this.#look(call))
  }

  #listen(call: VideoCall): void {
    this.#find(call)
      .then(({ row, engine, process }) =>
        engine.events.listen(row, (now) => {
          if (!process.dead) this.#see(call, now.status).catch(this.#wrong)
        }),
      )
      .catch((error: unknown) => void this.#expected(error, call))
      .catch(this.#wrong)
  }

  /** Statuses go forward, and who sees the end sees it after the money. */
  async #see(call: VideoCall, status: JobStatus): Promise<void> {
    if (RANKS[status] < 3) {
      call.seen.push(status)
      return
    }
    const held = await Promise.all(
      this.#lines.map((line) => line.see('select 1 from hold where id = $1', [call.holdId])),
    )
    assert.deepEqual(held.flat(), [], `${call.jobId} is ${status}, and its hold is still there`)
    const other = call.seen.find((seen) => RANKS[seen] === 3 && seen !== status)
    assert.equal(other, undefined, `${call.jobId} was ${other} and is ${status}`)
    call.seen.push(status)
  }

  #cancel(call: VideoCall): void {
    this.#find(call)
      .then(({ row, engine }) => engine.cancel(row))
      .then(({ status }) => {
        assert.equal(status, 'CANCELLED')
        call.cancelAcknowledged = true
        this.#world.note(`${call.jobId} is cancelled`)
      })
      .catch((error: unknown) => void this.#expected(error, call))
      .catch(this.#wrong)
  }

  /** A refusal is no surprise; anything else goes up. */
  #expected(error: unknown, call: VideoCall): number {
    const fault = asFault(error)
    if (fault.kind !== 'internal') return fault.status
    throw new Error(`${call.jobId}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}
