// The rows of batches and their lines. A worker's writes are fenced by the version that it raised when it took the
// batch. The result of a line is written once.
import type { Labels } from '../../admission/labels.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import { createWorkTable, type WorkRow } from '../../jobs/work.ts'
import type { ContentSealer } from '../../kernel/secret.ts'
import { CALLS_HASH } from '../verify/tables.ts'
import type { BatchStatus } from './batch-endpoints.ts'
import { secondsOf } from './files.ts'
import { HEAD_CHARS, type Line, type LineError } from './lines.ts'

export interface BatchRow extends WorkRow {
  readonly key_id: string
  readonly endpoint: string
  readonly input_file_id: string
  readonly completion_window: string
  readonly metadata: Readonly<Record<string, string>> | null
  /** Of the request that made it: each of its calls has them. */
  readonly labels: Labels | null
  readonly output_seconds: number
  readonly status: BatchStatus
  readonly errors: readonly LineError[] | null
  readonly output_file_id: string | null
  readonly error_file_id: string | null
  readonly total: number
  readonly completed: number
  readonly failed: number
  readonly created_at: Date
  readonly expires_at: Date
  readonly in_progress_at: Date | null
  readonly finalizing_at: Date | null
  readonly cancelling_at: Date | null
  readonly ended_at: Date | null
}

export interface ClaimedBatch extends BatchRow {
  /** The completion window has passed. */
  readonly overdue: boolean
}

export interface LeftLine {
  readonly number: number
  readonly custom_id: string
  readonly first_byte: bigint
  readonly bytes: number
}

export type NewBatch = Pick<
  BatchRow,
  | 'account_id'
  | 'id'
  | 'key_id'
  | 'endpoint'
  | 'input_file_id'
  | 'completion_window'
  | 'metadata'
  | 'labels'
  | 'output_seconds'
> & { readonly windowSeconds: number }

const OVERDUE = '*, now() >= expires_at as overdue'
const INSERT = sql('batch_insert')`
  insert into batch (account_id, id, key_id, endpoint, input_file_id, completion_window, metadata, output_seconds, expires_at, labels)
   select $1, $2, $3, $4, $5, $6, $7::jsonb, $8::int, now() + make_interval(secs => $9), $11::jsonb
   where (select count(*) from batch where account_id = $1 and open) < $10 returning *`
const FIND = sql('batch_find')`select * from batch where account_id = $1 and id = $2`
const LIST = sql('batch_list')`
  select * from batch where account_id = $1 and ($2::text is null or id < $2) and ($4::text is null or status = $4)
     and ($5::text is null or key_id = $5) and ($6::text is null or endpoint = $6)
   order by id desc limit $3`
const CANCEL = sql('batch_cancel')`update batch set status = 'cancelling', cancelling_at = now(), step_at = '-infinity'
   where account_id = $1 and id = $2 and status in ('validating', 'in_progress') returning *`
const PUT_LINES = sql('batch_put_lines')`
  insert into batch_line (account_id, batch_id, number, custom_id, first_byte, bytes)
   select $1, $2, * from unnest($3::int[], $4::text[], $5::bigint[], $6::int[]) on conflict do nothing`
const DROP_LINES = sql('batch_drop_lines')`delete from batch_line where account_id = $1 and batch_id = $2`
/**
 * Null values keep the column. The status only moves forward, and only the worker that holds the batch may change it.
 */
const MOVE = sql('batch_move')`update batch set status = $4, total = coalesce($5, total), errors = coalesce($6, errors),
     in_progress_at = case when $4 = 'in_progress' then now() else in_progress_at end,
     finalizing_at = case when $4 = 'finalizing' then now() else finalizing_at end,
     ended_at = case when $4 = 'failed' then now() else ended_at end
   where account_id = $1 and id = $2 and version = $3 and status = any($7) returning id`
const LEFT = sql('batch_left')`select number, custom_id, first_byte, bytes from batch_line
   where account_id = $1 and batch_id = $2 and ok is null order by number limit $3`
const TRIED = sql('batch_tried')`
  update batch_line set tries = tries + 1 where account_id = $1 and batch_id = $2 and number = $3 returning tries`
const TOLD = sql('batch_told')`with told as (
     update batch_line set sealed = $4, ok = $5, call_id = $6
     where account_id = $1 and batch_id = $2 and number = $3 and ok is null returning 1
   )
   update batch set completed = completed + (select count(*) from told where $5), failed = failed + (select count(*) from told where not $5)
   where account_id = $1 and id = $2 returning status`
/** Bytes of results in one query's answer, which has at least one line. */
const RESULTS_BYTES_MAX = 4_000_000
const RESULTS = sql('batch_results')`with page as (
     select number, custom_id, result, sealed, ok, coalesce(octet_length(sealed), octet_length(result), 0) as bytes from batch_line
     where account_id = $1 and batch_id = $2 and number > $3 and ($4::boolean is null or ok = $4) order by number limit 500
   ), measured as (
     select page.*, row_number() over by_number as place, sum(bytes) over by_number - bytes as bytes_before
     from page window by_number as (order by number)
   )
   select number, custom_id, result, sealed, ok from measured where place = 1 or bytes_before < ${RESULTS_BYTES_MAX} order by number`
const END = sql('batch_end')`
  update batch set status = $4, output_file_id = $5, error_file_id = $6, ended_at = now(), calls_hash = (
     select case when count(*) = count(call_id) then ${CALLS_HASH('call_id')} end from batch_line where account_id = $1 and batch_id = $2 and ok)
   where account_id = $1 and id = $2 and version = $3 and open returning id`
const PRUNE = sql('batch_prune')`with gone as (
     delete from batch where ctid = any(array(
       select ctid from batch where not open and ended_at < now() - interval '30 days' limit 1000)) returning 1
   ) select count(*)::int as count from gone`

interface ListPage {
  readonly after?: string | undefined
  readonly limit: number
  readonly status?: string | undefined
  /** Only batches that this key created. */
  readonly key?: string | null
  readonly endpoint?: string
}

interface ResultLine {
  readonly number: number
  readonly custom_id: string
  readonly result: string | null
  readonly ok: boolean | null
}

/** The number of batches of one account that have not ended. */
export const OPEN_MAX = 50

export function createBatchTable(database: Database, sealer: ContentSealer, { leaseMs }: { leaseMs: number }) {
  const of = ({ account_id, id }: Pick<WorkRow, 'account_id' | 'id'>) => [account_id, id] as const
  const placeOf = (batch: WorkRow, number: number) => ({
    table: 'batch_line',
    row: [...of(batch), number].join(' '),
    column: 'sealed',
  })

  /**
   * Some lines after a number; `ok` null means all of them. A result sealed with another secret is treated as missing.
   */
  async function results(batch: WorkRow, after: number, ok: boolean | null = null): Promise<ResultLine[]> {
    type ResultRow = ResultLine & { readonly sealed: Buffer | null }
    const rows = await database.query<ResultRow>(RESULTS, [...of(batch), after, ok])
    return rows.map(({ sealed, ...line }) => {
      if (!sealed) return line
      const result = sealer.open(placeOf(batch, line.number), sealed)?.toString() ?? null
      return { ...line, result, ok: result === null ? null : line.ok }
    })
  }

  return {
    /** The batches' steps. */
    work: createWorkTable<ClaimedBatch>(database, 'batch', { leaseMs, COLUMNS: OVERDUE }),
    /** Undefined when the account has too many open batches. */
    async insert(batch: NewBatch): Promise<BatchRow | undefined> {
      const { key_id, endpoint, input_file_id, completion_window, metadata, output_seconds, windowSeconds } = batch
      const values = [key_id, endpoint, input_file_id, completion_window, metadata, output_seconds, windowSeconds]
      return (await database.query<BatchRow>(INSERT, [...of(batch), ...values, OPEN_MAX, batch.labels]))[0]
    },
    find: async (account: string, id: string): Promise<BatchRow | undefined> =>
      (await database.query<BatchRow>(FIND, [account, id]))[0],
    async list(account: string, { after, limit, status, key, endpoint }: ListPage) {
      const values = [account, after ?? null, limit + 1, status ?? null, key ?? null, endpoint ?? null]
      const rows = await database.query<BatchRow>(LIST, values)
      return { rows: rows.slice(0, limit), more: rows.length > limit }
    },
    /** Undefined when the batch has ended, is finalizing, or is being cancelled already. */
    cancel: async (account: string, id: string, on: Queryable = database): Promise<BatchRow | undefined> =>
      (await on.query<BatchRow>(CANCEL, [account, id]))[0],
    async putLines(batch: WorkRow, lines: readonly Line[]): Promise<void> {
      if (lines.length === 0) return
      await database.query(PUT_LINES, [
        ...of(batch),
        lines.map(({ number }) => number),
        lines.map(({ customId }) => customId),
        lines.map(({ firstByte }) => BigInt(firstByte)),
        lines.map(({ bytes }) => bytes),
      ])
    },
    async dropLines(batch: WorkRow): Promise<void> {
      await database.query(DROP_LINES, of(batch))
    },
    async move(
      batch: WorkRow,
      {
        from,
        to,
        total,
        errors,
      }: { from: readonly string[]; to: string; total?: number; errors?: readonly LineError[] },
    ): Promise<boolean> {
      const values = [...of(batch), batch.version, to, total ?? null, errors ? JSON.stringify(errors) : null, from]
      return (await database.query(MOVE, values)).length > 0
    },
    left: (batch: WorkRow, limit: number) => database.query<LeftLine>(LEFT, [...of(batch), limit]),
    /** Counts a failed attempt of this line, and returns the number so far. */
    tried: async (batch: WorkRow, number: number): Promise<number> =>
      (await database.query<{ tries: number }>(TRIED, [...of(batch), number]))[0]?.tries ?? 0,
    /** Stores a line's result and returns the status of the batch, which may have been cancelled meanwhile. */
    async told(
      batch: WorkRow,
      number: number,
      line: { result: string; ok: boolean; requestId: string },
    ): Promise<string | undefined> {
      const sealed = sealer.seal(placeOf(batch, number), line.result)
      const values = [...of(batch), number, sealed, line.ok, line.requestId.replace(/^req_/, '')]
      return (await database.query<{ status: string }>(TOLD, values))[0]?.status
    },
    /** The beginnings of results, in line order. */
    async heads(batch: WorkRow, { ok, after, limit }: { ok: boolean; after: number; limit: number }) {
      const heads: Array<{ number: number; head: string }> = []
      for (let last = after; heads.length < limit; ) {
        const page = await results(batch, last, ok)
        if (page.length === 0) break
        for (const { number, result } of page) {
          if (result !== null && heads.length < limit) heads.push({ number, head: result.slice(0, HEAD_CHARS) })
          last = number
        }
      }
      return heads
    },
    results,
    /** Ends the batch and records its result files in one transaction. False when another worker has the batch. */
    end: (
      batch: WorkRow,
      status: string,
      files: (tx: Queryable) => Promise<{ output: string | null; errors: string | null }>,
    ): Promise<boolean> =>
      database.transaction(async (tx) => {
        const { output, errors } = await files(tx)
        const ended = await tx.query(END, [...of(batch), batch.version, status, output, errors])
        if (ended.length > 0) await tx.query(DROP_LINES, of(batch))
        return ended.length > 0
      }),
  }
}

export type BatchTable = ReturnType<typeof createBatchTable>

export async function pruneBatches(database: Database): Promise<void> {
  await pruneAll(database, PRUNE)
}

// A batch as the SDKs read it.

export function viewBatch(batch: BatchRow): object {
  const { status, errors, ended_at: endedAt } = batch
  const moment = (at: Date | null) => at && secondsOf(at)
  const endedAs = (name: string) => (status === name ? moment(endedAt) : null)
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: errors && { object: 'list', data: errors },
    input_file_id: batch.input_file_id,
    completion_window: batch.completion_window,
    status,
    output_file_id: batch.output_file_id,
    error_file_id: batch.error_file_id,
    created_at: secondsOf(batch.created_at),
    in_progress_at: moment(batch.in_progress_at),
    expires_at: moment(batch.expires_at),
    finalizing_at: moment(batch.finalizing_at),
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: moment(batch.cancelling_at),
    cancelled_at: endedAs('cancelled'),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    metadata: batch.metadata,
  }
}
