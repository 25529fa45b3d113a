// Batches as the console, the command line and the operator API show them: the cost, the result of each line, and a check of an input file.
// Lines are read from the database while a batch runs, and from its files when it has ended.
import { playerOf } from '../admission/api-key.ts'
import type { Database } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import type { Page, Paging } from '../kernel/view.ts'
import { isObject, text } from '../protocols/check.ts'
import { readCharges, readKnownCalls } from '../reports/clients.ts'
import type { BatchRow, BatchTable } from './batch-table.ts'
import { type DeferredDeps, readDeferred } from './call.ts'
import type { Files } from './files.ts'
import { bodyOf, endpointAt, HEAD_CHARS, readLines } from './lines.ts'
import type { BatchDetail, BatchLineView, BatchView, FileCheck } from './views.ts'

export interface BatchQueries {
  list(account: string, page: Paging & { status?: string | undefined }): Promise<Page<BatchView>>
  /** Undefined: there is no such batch. */
  find(account: string, id: string): Promise<BatchDetail | undefined>
  /** The answered lines if `ok`, else the failed ones. */
  lines(account: string, id: string, page: Paging & { ok: boolean }): Promise<Page<BatchLineView> | undefined>
  /** The errors that a batch of this file would have. */
  check(account: string, file: string, endpoint: string): Promise<FileCheck | undefined>
}

/** A page ends after reading so many bytes of the file, but has at least one line. */
const PAGE_BYTES = 8_000_000
const MESSAGE_CHARS_MAX = 500
const LINE_BREAK = 10
const CURSOR = /^\d{1,9}(?:-\d{1,15})?$/

export function createBatchQueries(
  deps: Pick<DeferredDeps, 'catalog' | 'read'> & { database: Database; files: Files; table: BatchTable },
): BatchQueries {
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
    async list(account, { cursor, limit, status }) {
      const { rows, more } = await table.list(account, { after: cursor, limit, status })
      return { items: await viewed(account, rows), next: more ? (rows.at(-1)?.id ?? null) : null }
    },
    async find(account, id) {
      const row = await table.find(account, id)
      if (!row) return undefined
      const [view] = await viewed(account, [row])
      return { ...view!, errors: [...(row.errors ?? [])] } // One row gives one view.
    },
    async lines(account, id, { ok, cursor, limit }) {
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
    async check(account, id, endpoint) {
      const file = await files.find(account, id)
      if (!file) return undefined
      if (checking.has(account))
        throw new Fault('rate_limited', { message: 'A file of this account is being checked.', retryAfterSeconds: 2 })
      checking.add(account)
      try {
        const spec = endpointAt(endpoint)
        const principal = playerOf(account)
        const { total, errors } = await readLines((await files.read(file)) ?? [], endpoint, {
          review: (line) => {
            if (spec) readDeferred({ principal, spec, body: bodyOf(line) }, deps, false)
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
    return {
      heads: shown.map(({ head }) => head),
      next: rows.length > limit && last ? String(last.number) : null,
    }
  }

  /** The cursor has the number of the last line, in case the batch has ended since the previous page, and the byte where the next line begins. */
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
  const moment = (at: Date | null) => at?.toISOString() ?? null
  return {
    id: row.id,
    status: row.status,
    endpoint: row.endpoint,
    key: row.key_id,
    input: { id: row.input_file_id, name: names.get(row.input_file_id) ?? null },
    outputFile: kept(row.output_file_id),
    errorFile: kept(row.error_file_id),
    counts: { total: row.total, completed: row.completed, failed: row.failed },
    charged: formatCredits(charged),
    createdAt: row.created_at.toISOString(),
    startedAt: moment(row.in_progress_at),
    endedAt: moment(row.ended_at),
    expiresAt: row.expires_at.toISOString(),
  }
}
