// Files and batches of a caller, in the shapes of the openai SDKs.
import { Readable } from 'node:stream'
import { keySeenBy, maySee, type Principal, requireEndpoint, storedPlace } from '../../admission/api-key.ts'
import { readLabels } from '../../admission/labels.ts'
import type { HandlersOf, RequestContext } from '../../api/api.ts'
import { arriving, type BodyRules, jsonBody } from '../../api/server/body.ts'
import type { Caller } from '../../api/server/caller.ts'
import { rawQuery } from '../../api/server/server.ts'
import { isId } from '../../catalog/field.ts'
import type { Catalog, CatalogStore } from '../../catalog/store.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { type JsonText, readJson } from '../../kernel/json.ts'
import { FormError, FormReader, type PartHead } from '../../kernel/parsers/multipart.ts'
import { readBody } from '../../protocols/check.ts'
import { type BATCHES, batchBody, FILE_SECONDS_MAX, fileExpiry } from './batch-endpoints.ts'
import { type BatchRow, viewBatch } from './batch-table.ts'
import type { Batches } from './batches.ts'
import { FILE_BYTES_MAX, type FileRow, type Files, type Upload, viewFile } from './files.ts'
import { ENDPOINT_URLS, endpointAt } from './lines.ts'

interface BatchDeps {
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly files: Files
  readonly batches: Batches
  readonly bodies: BodyRules
}

const FIELD_BYTES_MAX = 1_024
const FILENAME_CHARS_MAX = 255
/** What of a form is not its file. */
const BESIDE_BYTES_MAX = 65_536
export const WINDOW = { completion_window: '24h', windowSeconds: 86_400 }
const JSON_TYPE = 'application/json; charset=utf-8'
/** A caller wrote it: no browser may take it for a page of ours. */
export const DOWNLOAD = {
  'content-type': 'application/octet-stream',
  'content-disposition': 'attachment',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cache-control': 'no-store',
}

export function batchHandlers(deps: BatchDeps): HandlersOf<keyof typeof BATCHES> {
  const { catalog, files, batches } = deps

  const ownFile = async (request: RequestContext): Promise<FileRow> => {
    const found = await files.find(accountOf(request), idOf(request))
    if (!found || !maySee(viewerOf(request), found))
      throw new Fault('not_found', { message: 'There is no file with this id.' })
    return found
  }
  const ownBatch = async (request: RequestContext): Promise<BatchRow> => {
    const found = await batches.table.find(accountOf(request), idOf(request))
    // Its lines may ask for any model: none that it could be seen by.
    if (!found || !maySee(viewerOf(request), found)) throw batchUnknown()
    return found
  }

  return {
    async files(request, out) {
      const query = new URLSearchParams(rawQuery(request))
      const order = query.get('order') ?? 'desc'
      if (order !== 'asc' && order !== 'desc') throw invalid('"order" must be asc or desc.', 'order')
      const page = {
        after: afterOf(query),
        limit: limitOf(query, 1000, 100),
        order,
        purpose: purposeOf(query),
        key: keyOf(request),
      } as const
      const { rows, more } = await files.list(accountOf(request), page)
      const shown = pageOf(rows.map(shapeOf(request)), rows, more)
      return send(out, isAnthropic(request) ? { ...shown, next_page: more ? rows.at(-1)?.id : null } : shown)
    },
    async 'files/create'(request, out) {
      const made = await takeFile(request, deps)
      out.send(200, { 'content-type': JSON_TYPE }, JSON.stringify(shapeOf(request)(made)))
    },
    'files/{id}': async (request, out) => send(out, shapeOf(request)(await ownFile(request))),
    async 'files/{id}/content'(request, out) {
      const file = await ownFile(request)
      const content = await files.read(file)
      if (!content && file.bytes > 0n) throw new Fault('not_found', { message: 'The content of this file is gone.' })
      const headers = { ...DOWNLOAD, 'content-length': String(file.bytes) }
      await out.sendStream(headers, content ?? Readable.from([]))
    },
    async 'files/{id}/delete'(request, out) {
      const { id } = await ownFile(request)
      if (!(await files.remove(accountOf(request), id)))
        throw new Fault('not_found', { message: 'There is no file with this id.' })
      return send(out, isAnthropic(request) ? { id, type: 'file_deleted' } : { id, object: 'file', deleted: true })
    },
    async batches(request, out) {
      const query = new URLSearchParams(rawQuery(request))
      const page = { after: afterOf(query), limit: limitOf(query, 100, 20), key: keyOf(request) }
      const { rows, more } = await batches.table.list(accountOf(request), page)
      return send(out, pageOf(rows.map(viewBatch), rows, more))
    },
    async 'batches/create'(request, out) {
      const order = readOrder(readJson(jsonBody(request)), request.principal, catalog.current)
      return send(out, viewBatch(await batches.create({ ...order, labels: labelsOf(request) }, viewerOf(request))))
    },
    'batches/{id}': async (request, out) => send(out, viewBatch(await ownBatch(request))),
    async 'batches/{id}/cancel'(request, out) {
      const { id } = await ownBatch(request)
      const cancelled = await batches.cancel(accountOf(request), id)
      if (!cancelled) throw batchUnknown()
      return send(out, viewBatch(cancelled))
    },
  }
}

/** Its metadata describes a batch, and each line has labels of its own. */
export function labelsOf({ headers, principal }: RequestContext) {
  const own = readLabels({ headers, body: {} })
  const place = storedPlace(principal)
  return own || place ? { ...own, ...place } : null
}

/** The parts may come in any order, so that the file is stored before it is known whether it may be. */
async function takeFile(request: RequestContext, { files, bodies }: BatchDeps): Promise<FileRow> {
  const { raw, headers, lease } = request
  if (Number(headers['content-length'] ?? 0) > FILE_BYTES_MAX + BESIDE_BYTES_MAX) throw new Fault('request_too_large')
  const fields = new Map<string, string>()
  let upload: Upload | undefined
  let filename = ''
  try {
    await readForm(arriving(raw, bodies, lease), headers['content-type'], async (head): Promise<PartTaker> => {
      if (head.name !== 'file') return fieldOf(fields, head.name)
      if (upload) throw invalid('"file" was sent twice.', 'file')
      filename = head.filename ?? ''
      upload = await files.upload({ account_id: accountOf(request), key_id: viewerOf(request).keyId })
      const taken = upload
      return {
        async write(piece) {
          await taken.write(piece)
          // What is stored needs no room any more.
          lease?.shrinkTo(taken.bytesInMemory)
        },
      }
    })
    if (!upload) throw invalid('"file" is missing: the form has no such part.', 'file')
    const seconds = isAnthropic(request) ? FILE_SECONDS_MAX : readFacts(fields)
    const name = filename
      .toWellFormed()
      .replaceAll(/\p{Cc}/gu, '')
      .slice(0, FILENAME_CHARS_MAX)
    const made = await upload.commit()
    return await made.record({ purpose: 'batch', filename: name || 'batch.jsonl', seconds })
  } catch (error) {
    await upload?.abort().catch(() => undefined)
    throw error
  }
}

function fieldOf(fields: Map<string, string>, name: string): PartTaker {
  if (fields.has(name)) throw invalid(`${JSON.stringify(name.slice(0, 60))} was sent twice.`)
  fields.set(name, '')
  return {
    write(piece) {
      const value = fields.get(name) + piece.toString()
      if (value.length > FIELD_BYTES_MAX) throw invalid(`${JSON.stringify(name.slice(0, 60))} is too long.`)
      fields.set(name, value)
    },
  }
}

/** The anthropic SDKs have files at the same address. */
const isAnthropic = ({ headers }: RequestContext) => headers['anthropic-version'] !== undefined
const shapeOf = (request: RequestContext) => (isAnthropic(request) ? viewAnthropicFile : viewFile)

function viewAnthropicFile({ id, bytes, created_at, expires_at, filename }: FileRow): object {
  return {
    id,
    type: 'file',
    filename,
    mime_type: 'application/octet-stream',
    size_bytes: Number(bytes),
    created_at: created_at.toISOString(),
    expires_at: expires_at.toISOString(),
    downloadable: true,
  }
}

/** Answers how long the file is kept. */
function readFacts(fields: ReadonlyMap<string, string>): number {
  const purpose = fields.get('purpose')
  if (purpose !== 'batch') throw invalid('"purpose" must be batch: files for other purposes are not kept.', 'purpose')
  const anchor = fields.get('expires_after[anchor]')
  const seconds = fields.get('expires_after[seconds]')
  if (anchor === undefined && seconds === undefined) return FILE_SECONDS_MAX
  const given = { anchor, seconds: /^\d{1,9}$/.test(seconds ?? '') ? Number(seconds) : seconds }
  return readBody(fileExpiry, readJson(Buffer.from(JSON.stringify({ expires_after: given })))).expires_after.seconds
}

function readOrder(json: JsonText, principal: Principal, catalog: Catalog) {
  const { output_expires_after: kept, metadata = null, ...order } = readBody(batchBody, json)
  const spec = endpointAt(order.endpoint, catalog)
  if (!spec) throw invalid(`"endpoint" must be one of ${ENDPOINT_URLS.join(', ')}.`, 'endpoint')
  requireEndpoint(principal, spec)
  return { ...order, ...WINDOW, output_seconds: kept?.seconds ?? FILE_SECONDS_MAX, metadata }
}

const viewerOf = (request: RequestContext) => request.principal
const accountOf = (request: RequestContext) => viewerOf(request).accountId
const keyOf = (request: RequestContext) => keySeenBy(viewerOf(request))
const idOf = (request: RequestContext) => request.param('id')

export function afterOf(query: URLSearchParams): string | undefined {
  const after = query.get('after') ?? query.get('after_id') ?? query.get('page') ?? undefined
  if (after !== undefined && !isId(after)) throw invalid('"after" must be the id of the last one seen.', 'after')
  return after
}

function purposeOf(query: URLSearchParams): string | undefined {
  const purpose = query.get('purpose') ?? undefined
  if (purpose !== undefined && !/^[\w-]{1,40}$/.test(purpose)) throw invalid('"purpose" must be a purpose.', 'purpose')
  return purpose
}

export function limitOf(query: URLSearchParams, most: number, initial: number): number {
  const limit = query.get('limit')
  if (limit === null) return initial
  if (!(/^\d{1,5}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= most))
    throw invalid(`"limit" must be a whole number from 1 to ${most}.`, 'limit')
  return Number(limit)
}

export function batchUnknown(): Fault {
  return new Fault('not_found', { message: 'There is no batch with this id.' })
}

export function pageOf(data: readonly object[], rows: ReadonlyArray<{ id: string }>, more: boolean): object {
  return { object: 'list', data, first_id: rows[0]?.id ?? null, last_id: rows.at(-1)?.id ?? null, has_more: more }
}

export function send(out: Caller, body: object): void {
  out.send(200, { 'content-type': JSON_TYPE, 'cache-control': 'no-store' }, JSON.stringify(body))
}

// A form, read as it arrives: whoever takes a part gets its bytes piece by piece, and is waited for.

interface PartTaker {
  write(piece: Buffer): Promise<void> | void
}

/** Throws request_invalid for what is no form; what `take` throws ends it. */
async function readForm(
  pieces: AsyncIterable<Buffer>,
  contentType: string | undefined,
  take: (head: PartHead) => Promise<PartTaker> | PartTaker,
): Promise<void> {
  let taker: PartTaker | undefined
  // What the reader has found in a piece, worked off before the next one is asked for.
  const found: Array<() => Promise<void> | void> = []
  try {
    const reader = new FormReader(contentType ?? '', (head) => {
      found.push(async () => {
        taker = await take(head)
      })
      return { push: (bytes) => void found.push(() => taker?.write(bytes)), end: () => undefined }
    })
    for await (const piece of pieces) {
      reader.push(piece)
      for (const next of found.splice(0)) await next()
    }
    reader.end()
  } catch (error) {
    if (!(error instanceof FormError)) throw error
    throw invalid(`The form in the body is incomplete: ${error.message}.`)
  }
}
