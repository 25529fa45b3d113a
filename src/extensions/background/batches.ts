// Batches run the requests of a file, a few at a time when the gateway has capacity, each as if the caller had sent it.
// A step does a part of one batch and then yields it, so that many batches progress side by side, in any process.

import { type ApiKeys, maySee, type Principal, playerOf } from '../../admission/api-key.ts'
import type { Audit, By } from '../../database/audit.ts'
import type { Database } from '../../database/database.ts'
import type { JobTiming } from '../../jobs/job.ts'
import type { Work } from '../../jobs/work.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { isObject, text } from '../../kernel/json.ts'
import { asView, type Page, type Paging } from '../../kernel/view.ts'
import { newId } from '../../kernel/world.ts'
import { broughtBy } from '../../pipeline/read.ts'
import type { Overload } from '../../telemetry/overload.ts'
import {
  type BatchRow,
  type BatchTable,
  type ClaimedBatch,
  createBatchTable,
  type LeftLine,
  type NewBatch,
  OPEN_MAX,
} from './batch-table.ts'
import {
  type BackgroundCallDeps,
  isLater,
  paidBefore,
  readBackgroundCall,
  runBackgroundCall,
  type Told,
} from './call.ts'
import { readCharges, readKnownCalls } from './charges.ts'
import type { Files, Upload } from './files.ts'
import { bodyOf, endpointAt, HEAD_CHARS, readLines } from './lines.ts'
import { type BatchDetail, type BatchLineView, type BatchView, batchView, type FileCheck } from './views.ts'

export interface BatchDeps extends BackgroundCallDeps {
  readonly audit: Pick<Audit, 'write'>
  readonly files: Files
  readonly keys: Pick<ApiKeys, 'holder'>
  readonly overload: Pick<Overload, 'spare'>
  readonly work: Pick<Work, 'begin'>
  readonly timing: Pick<JobTiming, 'leaseMs'>
}

export type Batches = ReturnType<typeof startBatches>

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

export function startBatches(deps: BatchDeps) {
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
    /** Creates a batch for the key `by`, which owns it and must be allowed to read the input file. */
    async create(order: Omit<NewBatch, 'id' | 'account_id' | 'key_id'>, by: Principal): Promise<BatchRow> {
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
          message: `This account has ${OPEN_MAX} batches that have not ended, which is the maximum.`,
          retryAfterSeconds: 60,
        })
      steps.wake()
      return made
    },
    /**
     * Undefined: there is no such batch. Throws `conflict` when it has ended. `by`: an actor other than the caller, for
     * the audit log.
     */
    async cancel(account: string, id: string, by?: By): Promise<BatchRow | undefined> {
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
  const found = await readLines(pieces ?? [], batch.endpoint, { take: (lines) => table.putLines(batch, lines) })
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
  const spec = endpointAt(batch.endpoint, deps.catalog.current)
  if (lines.length === 0 || !input || !spec) {
    await table.move(batch, { from: ['in_progress'], to: 'finalizing' })
    return 0
  }
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
    // For each line: the key may end between two.
    const principal = await keys.holder(batch.key_id, batch.account_id, call.labels)
    const ending = await runBackgroundCall({ ...call, principal, spec, body: bodyOf(bytes) }, deps)
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
    message: 'This request was not started before the batch expired.',
  },
  cancelled: { status: 'cancelled', code: 'batch_cancelled', message: 'The batch was cancelled before this request.' },
  completed: { status: 'completed', code: 'input_gone', message: 'The input file was gone before this request.' },
}

/** Writes the results to files. Lines that were not begun are listed as errors, and are not charged. */
async function finish(batch: ClaimedBatch, deps: StepDeps): Promise<number | undefined> {
  const { table } = deps
  const { status: now, account_id: account } = batch
  const spec = endpointAt(batch.endpoint, deps.catalog.current)
  const ending = ENDINGS[now === 'cancelling' ? 'cancelled' : now === 'finalizing' ? 'completed' : 'expired']
  const [output, errors] = [lazyFile(batch, deps, 'output'), lazyFile(batch, deps, 'errors')]
  try {
    for (let after = 0; ; ) {
      const lines = await table.results(batch, after)
      if (lines.length === 0) break
      const untold = lines.flatMap(({ number, result }) => (result === null ? [nameOf(batch, number)] : []))
      const paid = untold.length > 0 && spec ? await paidBefore({ account, spec }, untold, deps) : undefined
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

// Batches as the console, the command line and the operator API show them: the cost, the result of each line, and a
// check of an input file. Lines are read from the database while a batch runs, and from its files when it has ended.

/** A page ends after reading so many bytes of the file, but has at least one line. */
const PAGE_BYTES = 8_000_000
const MESSAGE_CHARS_MAX = 500
const LINE_BREAK = 10
const CURSOR = /^\d{1,9}(?:-\d{1,15})?$/

function createBatchQueries(
  deps: Pick<BackgroundCallDeps, 'catalog' | 'read'> & { database: Database; files: Files; table: BatchTable },
) {
  const { database, files, table } = deps
  /** Accounts with a check in flight. Reading a file of 100 MB takes a while, so each account may run one at a time. */
  const checking = new Set<string>()

  async function viewed(account: string, rows: readonly BatchRow[]): Promise<BatchView[]> {
    const ids = rows.map(({ id }) => id)
    const kept = rows.flatMap((row) => [row.input_file_id, row.output_file_id ?? [], row.error_file_id ?? []].flat())
    const [charges, names] = await Promise.all([readCharges(database, account, ids), files.names(account, kept)])
    return rows.map((row) => viewOf(row, charges.get(row.id) ?? 0n, names))
  }

  return {
    async list(
      account: string,
      { cursor, limit, status }: Paging & { status?: string | undefined },
    ): Promise<Page<BatchView>> {
      const { rows, more } = await table.list(account, { after: cursor, limit, status })
      return { items: await viewed(account, rows), next: more ? (rows.at(-1)?.id ?? null) : null }
    },
    /** Undefined: there is no such batch. */
    async find(account: string, id: string): Promise<BatchDetail | undefined> {
      const row = await table.find(account, id)
      if (!row) return undefined
      const [view] = await viewed(account, [row])
      return { ...view!, errors: [...(row.errors ?? [])] } // One row gives one view.
    },
    /** The answered lines if `ok`, else the failed ones. */
    async lines(
      account: string,
      id: string,
      { ok, cursor, limit }: Paging & { ok: boolean },
    ): Promise<Page<BatchLineView> | undefined> {
      const batch = await table.find(account, id)
      if (!batch) return undefined
      // An invalid cursor starts at the first line.
      const [after = 0, byte = 0] = cursor !== undefined && CURSOR.test(cursor) ? cursor.split('-').map(Number) : []
      const read = batch.ended_at ? fromFile : fromRows
      const { heads, next } = await read(batch, { ok, after, byte, limit })
      const lines = heads.flatMap((head) => lineOf(head, ok))
      const calls = await readKnownCalls(
        database,
        account,
        lines.flatMap(({ call }) => call ?? []),
      )
      const known = (call: string | null) => (call !== null && calls.has(call) ? call : null)
      return { items: lines.map((line) => ({ ...line, call: known(line.call) })), next }
    },
    /** The errors that a batch of this file would have. */
    async check(account: string, id: string, endpoint: string): Promise<FileCheck | undefined> {
      const file = await files.find(account, id)
      if (!file) return undefined
      if (checking.has(account))
        throw new Fault('rate_limited', { message: 'A file of this account is being checked.', retryAfterSeconds: 2 })
      checking.add(account)
      try {
        const spec = endpointAt(endpoint, deps.catalog.current)
        const principal = playerOf(account)
        const brought = spec && (await broughtBy(principal, deps.read))
        const { total, errors } = await readLines((await files.read(file)) ?? [], endpoint, {
          review: (line) => {
            if (spec && brought) readBackgroundCall({ principal, spec, brought, body: bodyOf(line) }, deps, false)
          },
        })
        return { total, errors: [...errors] }
      } finally {
        checking.delete(account)
      }
    },
  }

  async function fromRows(batch: BatchRow, { ok, after, limit }: Wanted): Promise<Heads> {
    const rows = await table.heads(batch, { ok, after, limit: limit + 1 })
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    return { heads: shown.map(({ head }) => head), next: rows.length > limit && last ? String(last.number) : null }
  }

  /**
   * The cursor has the number of the last line, in case the batch has ended since the previous page, and the byte where
   * the next line begins.
   */
  async function fromFile(batch: BatchRow, { ok, after, byte, limit }: Wanted): Promise<Heads> {
    const id = ok ? batch.output_file_id : batch.error_file_id
    const file = id === null ? undefined : await files.find(batch.account_id, id)
    const pieces = file && (await files.read(file, byte))
    const heads: string[] = []
    let last = after
    for await (const { head, end } of pieces ? headsOf(pieces, byte) : []) {
      const number = numberIn(head)
      if (number === undefined || (byte === 0 && number <= after)) continue
      heads.push(head)
      last = number
      if (heads.length < limit && end - byte < PAGE_BYTES) continue
      return { heads, next: file && end < Number(file.bytes) ? `${last}-${end}` : null }
    }
    return { heads, next: null }
  }
}

interface Wanted {
  readonly ok: boolean
  readonly after: number
  readonly byte: number
  readonly limit: number
}

interface Heads {
  readonly heads: readonly string[]
  readonly next: string | null
}

/** The beginning of each line, and the byte where the next line begins. */
async function* headsOf(
  pieces: AsyncIterable<Buffer>,
  firstByte: number,
): AsyncGenerator<{ readonly head: string; readonly end: number }> {
  let kept: Buffer[] = []
  let keptBytes = 0
  let at = firstByte
  const keep = (piece: Buffer) => {
    at += piece.length
    const some = piece.subarray(0, Math.max(0, HEAD_CHARS - keptBytes))
    keptBytes += some.length
    if (some.length > 0) kept.push(some)
  }
  for await (const piece of pieces) {
    let start = 0
    for (let end = piece.indexOf(LINE_BREAK); end !== -1; end = piece.indexOf(LINE_BREAK, start)) {
      keep(piece.subarray(start, end))
      at += 1
      yield { head: Buffer.concat(kept).toString(), end: at }
      kept = []
      keptBytes = 0
      start = end + 1
    }
    keep(piece.subarray(start))
  }
}

const numberIn = (head: string): number | undefined => {
  const found = /^\{"id":"batch_\w+_(\d{1,9})"/.exec(head)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** Reads a result line as `batches.ts` writes it. For a long line, the part before its body suffices. */
function lineOf(head: string, ok: boolean): BatchLineView[] {
  const line = numberIn(head)
  const read = parsed(head) ?? parsed(`${head.slice(0, head.indexOf(BODY))}}}`)
  if (line === undefined || !read) return []
  const response = isObject(read.response) ? read.response : undefined
  const status = typeof response?.status_code === 'number' ? response.status_code : null
  return [
    {
      line,
      customId: text(read.custom_id) ?? '',
      ok,
      status,
      message: ok ? null : (messageIn(response?.body) ?? messageIn(read) ?? null),
      call: text(response?.request_id) ?? null,
    },
  ]
}

/** Cannot occur inside a JSON string, because its quotes would be escaped. */
const BODY = ',"body":'

function parsed(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : undefined
  } catch {
    return undefined // The line is truncated.
  }
}

/** Each client format has its own field for the message. */
function messageIn(body: unknown): string | undefined {
  const error = isObject(body) ? body.error : undefined
  const message = isObject(error) ? text(error.message) : undefined
  return message?.slice(0, MESSAGE_CHARS_MAX)
}

function viewOf(row: BatchRow, charged: bigint, names: ReadonlyMap<string, string>): BatchView {
  const kept = (id: string | null) => (id !== null && names.has(id) ? id : null)
  return {
    ...asView(batchView, row),
    key: row.key_id,
    input: { id: row.input_file_id, name: names.get(row.input_file_id) ?? null },
    outputFile: kept(row.output_file_id),
    errorFile: kept(row.error_file_id),
    counts: { total: row.total, completed: row.completed, failed: row.failed },
    charged: formatCredits(charged),
    startedAt: row.in_progress_at?.toISOString() ?? null,
  }
}
