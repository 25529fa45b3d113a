// Message batches in the shapes of the anthropic SDKs, on the gateway's own files and batches: the messages become the
// lines of a file.
import { Readable } from 'node:stream'
import { keySeenBy, maySee, requireEndpoint } from '../../admission/api-key.ts'
import type { HandlersOf, RequestContext } from '../../api/api.ts'
import { jsonBody } from '../../api/server/body.ts'
import { rawQuery } from '../../api/server/server.ts'
import { PAID } from '../../catalog/generation.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isObject, type Json, objectOf, readJson } from '../../kernel/json.ts'
import { readBody } from '../../protocols/check.ts'
import { FILE_SECONDS_MAX } from './batch-endpoints.ts'
import { afterOf, batchUnknown, DOWNLOAD, labelsOf, limitOf, pageOf, send, WINDOW } from './batch-routes.ts'
import type { BatchRow } from './batch-table.ts'
import type { Batches } from './batches.ts'
import type { FileRow, Files } from './files.ts'
import { readLines } from './lines.ts'
import { type MESSAGE_BATCHES, messageBatchBody } from './message-batch-endpoints.ts'

const ENDPOINT = '/v1/messages'

export function messageBatchHandlers(deps: {
  readonly files: Files
  readonly batches: Batches
}): HandlersOf<keyof typeof MESSAGE_BATCHES> {
  const { files, batches } = deps

  const own = async ({ principal, params }: RequestContext): Promise<BatchRow> => {
    const found = await batches.table.find(principal.accountId, params.id ?? '')
    if (!found || found.endpoint !== ENDPOINT || !maySee(principal, found)) throw batchUnknown()
    return found
  }

  return {
    async 'messages/batches'(request, out) {
      const query = new URLSearchParams(rawQuery(request))
      if (query.has('before_id')) throw invalid('"before_id" is not offered here; use "after_id".', 'before_id')
      const { principal } = request
      const page = { after: afterOf(query), limit: limitOf(query, 1000, 20), key: keySeenBy(principal) }
      const { rows, more } = await batches.table.list(principal.accountId, { ...page, endpoint: ENDPOINT })
      return send(out, pageOf(rows.map(viewMessageBatch), rows, more))
    },
    async 'messages/batches/create'(request, out) {
      const { principal } = request
      requireEndpoint(principal, PAID.messages)
      const { requests } = readBody(messageBatchBody, readJson(jsonBody(request)))
      const file = await linesFile(request, requests, files)
      const { id: input_file_id } = file
      const order = { ...WINDOW, endpoint: ENDPOINT, input_file_id, output_seconds: FILE_SECONDS_MAX, metadata: null }
      try {
        const made = await batches.create({ ...order, labels: labelsOf(request) }, principal)
        return send(out, viewMessageBatch({ ...made, total: requests.length }))
      } catch (error) {
        await files.remove(principal.accountId, file.id).catch(() => undefined)
        throw error
      }
    },
    'messages/batches/{id}': async (request, out) => send(out, viewMessageBatch(await own(request))),
    async 'messages/batches/{id}/results'(request, out) {
      const batch = await own(request)
      if (!batch.ended_at) throw new Fault('conflict', { message: 'This batch has not ended yet.' })
      const headers = { ...DOWNLOAD, 'content-type': 'application/octet-stream' }
      await out.sendStream(headers, Readable.from(resultsOf(batch, files)))
    },
    async 'messages/batches/{id}/cancel'(request, out) {
      const { id, account_id } = await own(request)
      const cancelled = await batches.cancel(account_id, id)
      if (!cancelled) throw batchUnknown()
      return send(out, viewMessageBatch(cancelled))
    },
  }
}

/** A wrong message is said now: the SDKs know no batch that failed. */
async function linesFile({ principal }: RequestContext, requests: readonly Json[], files: Files): Promise<FileRow> {
  const lines = Buffer.from(
    requests
      .map(({ custom_id, params: body }) => `${JSON.stringify({ custom_id, method: 'POST', url: ENDPOINT, body })}\n`)
      .join(''),
  )
  const { errors } = await readLines([lines], ENDPOINT, {})
  const [wrong] = errors
  if (wrong) throw invalid(`"requests[${(wrong.line ?? 1) - 1}]": ${wrong.message}`, 'requests')
  const upload = await files.upload({ account_id: principal.accountId, key_id: principal.keyId })
  try {
    await upload.write(lines)
    const made = await upload.commit()
    return await made.record({ purpose: 'batch', filename: 'messages.jsonl', seconds: FILE_SECONDS_MAX })
  } catch (error) {
    await upload.abort().catch(() => undefined)
    throw error
  }
}

function viewMessageBatch(batch: BatchRow): object {
  const { id, status, total, completed, failed, ended_at: endedAt } = batch
  const left = Math.max(0, total - completed - failed)
  const leftAs = (...names: string[]) => (names.includes(status) ? left : 0)
  return {
    id,
    type: 'message_batch',
    processing_status: endedAt ? 'ended' : status === 'cancelling' ? 'canceling' : 'in_progress',
    request_counts: {
      processing: endedAt ? 0 : left,
      succeeded: completed,
      errored: failed + leftAs('completed', 'failed'),
      canceled: leftAs('cancelled'),
      expired: leftAs('expired'),
    },
    created_at: batch.created_at.toISOString(),
    expires_at: batch.expires_at.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    archived_at: null,
    cancel_initiated_at: batch.cancelling_at?.toISOString() ?? null,
    // The SDKs put their own address before it, by which they reached the gateway.
    results_url: endedAt ? `/v1/messages/batches/${id}/results` : null,
  }
}

async function* resultsOf(batch: BatchRow, files: Files): AsyncGenerator<Buffer> {
  for (const id of [batch.output_file_id, batch.error_file_id]) {
    const file = id === null ? undefined : await files.find(batch.account_id, id)
    const pieces = file && (await files.read(file))
    for await (const line of pieces ? linesOf(pieces) : []) yield Buffer.from(`${JSON.stringify(resultOf(line))}\n`)
  }
}

const LINE_BREAK = 10

async function* linesOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let kept: Buffer[] = []
  for await (const piece of pieces) {
    let start = 0
    for (let end = piece.indexOf(LINE_BREAK); end !== -1; end = piece.indexOf(LINE_BREAK, start)) {
      yield Buffer.concat([...kept, piece.subarray(start, end)])
      kept = []
      start = end + 1
    }
    kept.push(piece.subarray(start))
  }
}

const UNBEGUN: Readonly<Record<string, string>> = { batch_expired: 'expired', batch_cancelled: 'canceled' }

function resultOf(line: Buffer): object {
  const { custom_id, response, error }: Json = JSON.parse(line.toString())
  const { code, message } = objectOf(error)
  if (isObject(response)) {
    const { status_code: status, body, request_id } = response
    const isFine = typeof status === 'number' && status < 300
    return {
      custom_id,
      result: isFine
        ? { type: 'succeeded', message: body }
        : { type: 'errored', error: { request_id, ...objectOf(body) } },
    }
  }
  const type = UNBEGUN[String(code)]
  const about = { type: 'error', request_id: null, error: { type: 'api_error', message } }
  return { custom_id, result: type === undefined ? { type: 'errored', error: about } : { type } }
}
