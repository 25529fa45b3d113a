// Batches run the requests of a file, a few at a time when the gateway has capacity, each as if the caller had sent it. A step does a part of one
// batch and then yields it, so that many batches progress side by side, in any process.
import { type ApiKeys, maySee, type Principal } from '../admission/api-key.ts'
import type { Audit, By } from '../database/audit.ts'
import type { JobTiming } from '../jobs/timing.ts'
import type { Work } from '../jobs/work.ts'
import { Fault } from '../kernel/fault.ts'
import { newId } from '../kernel/world.ts'
import type { Overload } from '../telemetry/overload.ts'
import { type BatchQueries, createBatchQueries } from './batch-queries.ts'
import {
  type BatchRow,
  type BatchTable,
  type ClaimedBatch,
  createBatchTable,
  type LeftLine,
  type NewBatch,
  OPEN_MAX,
} from './batch-table.ts'
import { callLater, type DeferredDeps, isLater, paidBefore, type Told } from './call.ts'
import type { Files, Upload } from './files.ts'
import { bodyOf, endpointAt, readLines } from './lines.ts'

export interface BatchDeps extends DeferredDeps {
  readonly audit: Pick<Audit, 'write'>
  readonly files: Files
  readonly keys: Pick<ApiKeys, 'holder'>
  readonly overload: Pick<Overload, 'spare'>
  readonly work: Pick<Work, 'begin'>
  readonly timing: Pick<JobTiming, 'leaseMs'>
}

export interface Batches {
  readonly table: Pick<BatchTable, 'find' | 'list'>
  /** Creates a batch for the key `by`, which owns it and must be allowed to read the input file. */
  create(batch: Omit<NewBatch, 'id' | 'account_id' | 'key_id'>, by: Principal): Promise<BatchRow>
  /** Undefined: there is no such batch. Throws `conflict` when it has ended. `by`: an actor other than the caller, for the audit log. */
  cancel(account: string, id: string, by?: By): Promise<BatchRow | undefined>
  readonly queries: BatchQueries
}

/** Limits of one process and of one batch. They are low, so that batches do not slow down interactive calls. */
const BATCHES_AT_ONCE = 4
const ACCOUNT_BATCHES_AT_ONCE = 3
const LINES_AT_ONCE = 4
/** The most lines and the longest time of one step. */
const STEP_LINES = 200
const STEP_MS = 10_000
const NO_ROOM_MS = 500
/** A batch that waits for a rate limit checks again after this at the latest, in case the limit was raised. */
const WAIT_MS_MAX = 30_000
const VENDOR_TRIES_MAX = 5

export function startBatches(deps: BatchDeps): Batches {
  const { path, files, work } = deps
  const { world, database } = path
  const table = createBatchTable(database, path.sealer, deps.timing)
  const steps = work.begin({
    table: table.work,
    atOnceMax: BATCHES_AT_ONCE,
    shareMax: ACCOUNT_BATCHES_AT_ONCE,
    run: async (batch, { stopping }) => ({ afterMs: await stepBatch(batch, { ...deps, table, stopping }) }),
  })

  const cancelFor = (by: By, account: string, id: string) =>
    database.transaction(async (tx) => {
      const cancelled = await table.cancel(account, id, tx)
      if (cancelled) await deps.audit.write(tx, by, { action: 'batch.cancel', object: id, detail: { account } })
      return cancelled
    })

  return {
    table,
    queries: createBatchQueries({ ...deps, database, table }),
    async create(order, by) {
      const batch = { ...order, account_id: by.accountId, key_id: by.keyId }
      const input = await files.find(batch.account_id, batch.input_file_id)
      if (!input || !maySee(by, input))
        throw new Fault('request_invalid', {
          message: `There is no file "${batch.input_file_id.slice(0, 60)}" of this account.`,
          param: 'input_file_id',
        })
      const made = await table.insert({ ...batch, id: `batch_${newId(world)}` })
      if (!made)
        throw new Fault('rate_limited', {
          message: `This account has ${OPEN_MAX} batches that have not ended, which is the most.`,
          retryAfterSeconds: 60,
        })
      steps.wake()
      return made
    },
    async cancel(account, id, by) {
      const cancelled = by ? await cancelFor(by, account, id) : await table.cancel(account, id)
      if (cancelled) {
        steps.wake()
        return cancelled
      }
      const found = await table.find(account, id)
      if (!found || found.status === 'cancelling' || found.status === 'cancelled') return found
      throw new Fault('conflict', { message: `This batch is ${found.status} and cannot be cancelled any more.` })
    },
  }
}

interface StepDeps extends BatchDeps {
  readonly table: BatchTable
  readonly stopping: AbortSignal
}

async function stepBatch(batch: ClaimedBatch, deps: StepDeps): Promise<number | undefined> {
  const { status, overdue } = batch
  if (status === 'validating' && !overdue) return validate(batch, deps)
  if (status === 'in_progress' && !overdue) return workOff(batch, deps)
  if (status === 'validating' || status === 'in_progress' || status === 'finalizing' || status === 'cancelling')
    return finish(batch, deps)
  await deps.table.dropLines(batch)
  return undefined
}

async function validate(batch: ClaimedBatch, { table, files }: StepDeps): Promise<number | undefined> {
  const from = ['validating']
  const input = await files.find(batch.account_id, batch.input_file_id)
  const pieces = input && (await files.read(input))
  const found = await readLines(pieces ?? [], batch.endpoint, {
    take: (lines) => table.putLines(batch, lines),
  })
  const { total, errors } = found
  if (errors.length > 0) {
    // If the caller cancelled the batch meanwhile, the next step finishes it as cancelled.
    if (!(await table.move(batch, { from, to: 'failed', errors }))) return 0
    await table.dropLines(batch)
    return undefined
  }
  await table.move(batch, { from, to: 'in_progress', total })
  return 0
}

/** Runs a few lines at once, until the step's time is over, the gateway is at capacity, or a limit asks to wait. */
async function workOff(batch: ClaimedBatch, deps: StepDeps): Promise<number> {
  const { table, files, keys, overload, path, stopping } = deps
  const { world } = path
  const lines = await table.left(batch, STEP_LINES)
  const input = await files.find(batch.account_id, batch.input_file_id)
  const spec = endpointAt(batch.endpoint)
  if (lines.length === 0 || !input || !spec) {
    await table.move(batch, { from: ['in_progress'], to: 'finalizing' })
    return 0
  }
  const principal = await keys.holder(batch.key_id, batch.account_id)
  const untilMs = world.elapsedMs() + STEP_MS
  let pauseMs: number | undefined
  let moved = false

  const workOne = async (line: LeftLine): Promise<void> => {
    const first = Number(line.first_byte)
    const bytes = await readAll(await files.read(input, first, first + line.bytes - 1))
    const call = {
      account: batch.account_id,
      name: nameOf(batch, line.number),
      batch: batch.id,
      labels: batch.labels ?? undefined,
    }
    const ending = await callLater({ ...call, principal, spec, body: bodyOf(bytes) }, deps)
    if (isLater(ending) && !(ending.isVendors && (await table.tried(batch, line.number)) >= VENDOR_TRIES_MAX)) {
      pauseMs = Math.max(pauseMs ?? 0, Math.min(ending.afterMs, WAIT_MS_MAX))
      return
    }
    const told = isLater(ending) ? ending.told : ending
    const status = await table.told(batch, line.number, endOf(batch, line, told))
    if (status !== 'in_progress') moved = true
  }

  async function workOn(): Promise<void> {
    while (pauseMs === undefined && !moved && !stopping.aborted && world.elapsedMs() < untilMs) {
      if (!overload.spare) {
        pauseMs = NO_ROOM_MS
        return
      }
      const line = lines.shift()
      if (!line) return
      await workOne(line)
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: LINES_AT_ONCE }, workOn))
  for (const one of ended) if (one.status === 'rejected') throw one.reason
  return pauseMs ?? 0
}

const nameOf = (batch: BatchRow, number: number) => `${batch.id} ${number}`

/** The result of a line as JSON. */
function endOf(batch: BatchRow, { number, custom_id }: Pick<LeftLine, 'number' | 'custom_id'>, told: Told) {
  const { status, requestId, body } = told
  const id = JSON.stringify(`${batch.id}_${number}`)
  const response = `{"status_code":${status},"request_id":"${requestId}","body":${body}}`
  const result = `{"id":${id},"custom_id":${JSON.stringify(custom_id)},"response":${response},"error":null}`
  return { result, ok: status >= 200 && status < 300, requestId }
}

const ENDINGS = {
  expired: {
    status: 'expired',
    code: 'batch_expired',
    message: 'This request was not begun before the batch expired.',
  },
  cancelled: { status: 'cancelled', code: 'batch_cancelled', message: 'The batch was cancelled before this request.' },
  completed: { status: 'completed', code: 'input_gone', message: 'The input file was gone before this request.' },
}

/** Writes the results to files. Lines that were not begun are listed as errors, and are not charged. */
async function finish(batch: ClaimedBatch, deps: StepDeps): Promise<number | undefined> {
  const { table } = deps
  const { status: now } = batch
  const ending = ENDINGS[now === 'cancelling' ? 'cancelled' : now === 'finalizing' ? 'completed' : 'expired']
  const [output, errors] = [lazyFile(batch, deps, 'output'), lazyFile(batch, deps, 'errors')]
  try {
    for (let after = 0; ; ) {
      const lines = await table.results(batch, after)
      if (lines.length === 0) break
      const untold = lines.flatMap(({ number, result }) => (result === null ? [nameOf(batch, number)] : []))
      const paid = untold.length > 0 ? await paidBefore(batch.account_id, untold, deps) : undefined
      for (const line of lines) {
        const { number, custom_id } = line
        const told = paid?.get(nameOf(batch, number))
        const ended = told && endOf(batch, line, told)
        if (ended) await table.told(batch, number, ended)
        const { result, ok } = ended ?? line
        const { code, message } = ending
        const unfinished = { id: `${batch.id}_${number}`, custom_id, response: null, error: { code, message } }
        await (ok ? output : errors).write(result ?? JSON.stringify(unfinished))
        after = number
      }
    }
    await output.commit()
    await errors.commit()
    const ended = await table.end(batch, ending.status, async (tx) => ({
      output: await output.record(tx),
      errors: await errors.record(tx),
    }))
    if (!ended) await Promise.all([output.remove(), errors.remove()])
    return ended ? undefined : 0
  } catch (error) {
    await Promise.all([output.remove(), errors.remove()])
    throw error
  }
}

/** A file that is created at the first write. */
function lazyFile(batch: ClaimedBatch, { files }: StepDeps, what: 'output' | 'errors') {
  let upload: Upload | undefined
  let made: Awaited<ReturnType<Upload['commit']>> | undefined
  return {
    async write(line: string): Promise<void> {
      upload ??= await files.upload(batch, true)
      await upload.write(Buffer.from(`${line}\n`))
    },
    async commit(): Promise<void> {
      made = await upload?.commit()
    },
    async record(tx: Parameters<NonNullable<typeof made>['record']>[1]): Promise<string | null> {
      const facts = { purpose: 'batch_output', filename: `${batch.id}_${what}.jsonl`, seconds: batch.output_seconds }
      return made ? (await made.record(facts, tx)).id : null
    },
    async remove(): Promise<void> {
      await (made ? made.remove() : upload?.abort())?.catch(() => undefined)
    },
  }
}

async function readAll(pieces: AsyncIterable<Buffer> | undefined): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces ?? []) all.push(piece)
  return Buffer.concat(all)
}
