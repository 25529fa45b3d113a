// The paid endpoints: each request is read into what it asks for, and put on the path.
import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Contents } from '../admission/contents.ts'
import { hashRequest, readIdempotencyKey } from '../admission/idempotency.ts'
import { catalogFor } from '../catalog/simulated.ts'
import type { CatalogStore } from '../catalog/store.ts'
import type { Background } from '../deferred/background.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson, splice } from '../kernel/json.ts'
import type { Log } from '../kernel/log.ts'
import type { Arrived, PathDeps } from '../pipeline/call.ts'
import { type PaidSpec, type Read, type ReadDeps, type RequestBody, read } from '../pipeline/read.ts'
import { serve } from '../pipeline/serve.ts'
import { readAudioForm } from '../protocols/media/openai-audio/form.ts'
import { BODY_BYTES_MAX, checkImageContentType, readImageBody } from '../protocols/media/openai-images/body.ts'
import { checkVideoBody } from '../protocols/media/video-task/body.ts'
import { arriving, type BodyRules } from './body.ts'
import type { Caller } from './caller.ts'
import { RecordingCaller } from './recording-caller.ts'
import { onPath, type Paid, type RoutesOptions, type Visit } from './routes.ts'
import { jsonBody, rawQuery } from './server.ts'

interface PaidDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly read: ReadDeps
  readonly background: Background
  readonly bodies: BodyRules
  readonly contents: Pick<Contents, 'begin'>
  readonly strictErrors: boolean
  readonly refused: RoutesOptions['refused']
  readonly log: Log
}

/** The caller's headers that a format or a trace may need. */
const VERSIONS = ['anthropic-version', 'anthropic-beta'] as const
const FORWARDED = [...VERSIONS, 'traceparent'] as const

/** What of a request is its body, as far as the endpoint has one. */
interface Taken extends RequestBody {
  /** What an idempotency key is bound to: the body, or a hash of it. Absent: the endpoint takes no such key. */
  readonly digest?: string | Buffer | undefined
}

/** The number before that of a stream's first event. */
const NOTHING_YET = -1

const NO_BODY: Taken = { json: readJson(Buffer.from('{}')) }

export function paidHandler(deps: PaidDeps): Paid {
  return (visit, response, spec) =>
    onPath(visit, response, deps, (out) =>
      spec.largeBody
        ? handleLarge(visit, out, spec, deps)
        : handleSmall(visit, out, { spec, body: takeBody(visit, spec) }, deps),
    )
}

async function handleLarge(visit: Visit, out: Caller, spec: PaidSpec, deps: PaidDeps): Promise<void> {
  const body = spec.form ? await takeForm(visit, deps) : await takeLarge(visit, deps)
  if (out instanceof RecordingCaller) out.recording.asked(body.json.text)
  await handle(visit, out, { spec, body }, deps)
}

/** A response may be one that nobody waits for, or go on from one. */
function handleSmall(visit: Visit, out: Caller, asked: { spec: PaidSpec; body: Taken }, deps: PaidDeps): Promise<void> {
  const { background, previous_response_id: previous } = asked.body.json.value
  const isPlain = asked.spec.format !== 'openai-responses' || (background !== true && typeof previous !== 'string')
  return isPlain ? handle(visit, out, asked, deps) : handleResponse(visit, out, asked, deps)
}

async function handleResponse(
  visit: Visit,
  out: Caller,
  { spec, body }: { spec: PaidSpec; body: Taken },
  deps: PaidDeps,
): Promise<void> {
  const principal = visit.principal! // The key was checked before.
  const { json } = body
  if (json.value.background !== true || spec.id !== 'responses') {
    const goesOn = await deps.background.goingOn(json, principal.accountId)
    return handle(visit, out, { spec, body: { ...body, json: goesOn } }, deps)
  }
  const accepted = await deps.background.accept({ principal, spec, json, idempotencyKey: idempotencyKeyOf(visit) })
  if (accepted.streams) return deps.background.follow(accepted, NOTHING_YET, out)
  out.send(200, { 'content-type': 'application/json; charset=utf-8' }, accepted.answer)
}

function handle(
  request: Visit,
  out: Caller,
  { spec, body }: { spec: PaidSpec; body: Taken },
  { catalog: { current }, path, read: readDeps }: PaidDeps,
): Promise<void> {
  const principal = request.principal!
  const catalog = catalogFor(principal.accountId, current)
  const params = request.params as Record<string, string>
  const keeps = keepsOf(headerOf(request, 'x-tollgate-cache'))
  const asked = read({ spec, catalog, principal, params, query: rawQuery(request), body, keeps }, readDeps)
  // Only the vendor knows the headers of an answer, and asking it would cost what the answer costs.
  if (request.method === 'HEAD') {
    out.send(200, { 'content-type': 'application/json; charset=utf-8' }, '')
    return Promise.resolve()
  }
  const arrived = arrive(request, { endpoint: spec.id, out, catalog, digest: body.digest }, asked, path)
  return serve(arrived, path)
}

/** A request, as far as the path has to know of it. Written out, because copying objects for every call costs. */
export function arrive(
  request: Visit,
  { endpoint, out, catalog, digest }: Pick<Arrived, 'endpoint' | 'out' | 'catalog'> & Pick<Taken, 'digest'>,
  { ask, product, cache, own }: Read,
  { world }: PathDeps,
): Arrived {
  const key = digest === undefined ? undefined : idempotencyKeyOf(request)
  const callerHeaders = forwarded(request)
  return {
    requestId: request.id,
    principal: request.principal!,
    ask,
    product,
    catalog,
    endpoint,
    startedMs: world.elapsedMs(),
    out,
    callerHeaders,
    own,
    cache: cache && { ...cache, key: questionOf(cache.key, ask, callerHeaders) },
    idempotency: key === undefined ? undefined : { key, requestHash: hashRequest(endpoint, digest!) },
  }
}

/** What a vendor of text is told beside the body is part of the question. A hash, because callers may send long ones. */
function questionOf(key: string, { door }: Read['ask'], headers: Arrived['callerHeaders']): string {
  const beside = door === undefined ? [] : VERSIONS.map((name) => headers[name] ?? '')
  return createHash('sha256')
    .update(JSON.stringify([key, ...beside]))
    .digest('base64')
}

function takeBody(request: Visit, spec: PaidSpec): Taken {
  if (spec.method === 'GET') return NO_BODY
  const bytes = jsonBody(request)
  const sent = readJson(spec.sells === 'video' ? checkVideoBody(bytes) : bytes)
  const json = spec.path.includes('{model}') ? addressed(sent, request, spec) : sent
  return { json, digest: json.text }
}

/** Of a format that says in its address what others say in the body: from here on all of them say it in the body. */
function addressed(json: JsonText, request: Visit, spec: PaidSpec): JsonText {
  const { model } = request.params as { model: string } // The path has it.
  const alt = new URLSearchParams(rawQuery(request)).get('alt') ?? 'json'
  const says = { model, stream: spec.streams === true, alt }
  const edits = { replace: {} as Record<string, string>, add: {} as Record<string, string> } // Filled below.
  for (const [name, value] of Object.entries(says))
    edits[json.member(name) ? 'replace' : 'add'][name] = JSON.stringify(value)
  return readJson(Buffer.from(splice(json, edits)))
}

/** A body of up to hundreds of megabytes is read straight from the socket, within the budget of bytes. */
async function takeLarge(request: Visit, deps: PaidDeps): Promise<Taken> {
  checkImageContentType(request.headers['content-type'])
  const contentLength = contentLengthOf(request)
  if ((contentLength ?? 0) > BODY_BYTES_MAX) throw new Fault('request_too_large')
  const lease = request.lease! // The route of a large body has made it.
  const digest = idempotencyKeyOf(request) !== undefined
  const read = await readImageBody(arriving(request.raw, deps.bodies, lease), { contentLength, digest })
  // The text is gone; what stays are the pictures and little else.
  lease.shrinkTo(read.inlineBytes + read.json.text.length)
  return { json: read.json, pictures: { ...read, lease }, digest: read.digest }
}

/** A form with a recording, within the same budget. */
async function takeForm(request: Visit, deps: PaidDeps): Promise<Taken> {
  const contentLength = contentLengthOf(request)
  const contentType = request.headers['content-type']
  const body = arriving(request.raw, deps.bodies, request.lease)
  const { json, file, digest } = await readAudioForm(body, { contentType, contentLength })
  request.lease?.shrinkTo(file.bytes + json.text.length)
  return { json, file, digest }
}

function contentLengthOf({ headers: { 'content-length': length } }: Visit): number | undefined {
  return length === undefined ? undefined : Number(length)
}

function keepsOf(header: string | undefined): boolean | undefined {
  if (header === undefined || header === '') return undefined
  if (header !== 'on' && header !== 'off') throw invalid('"x-tollgate-cache" must be on or off.', 'x-tollgate-cache')
  return header === 'on'
}

function idempotencyKeyOf(request: Visit): string | undefined {
  return readIdempotencyKey(headerOf(request, 'idempotency-key'))
}

function headerOf(request: Visit, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

function forwarded(request: Visit): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of FORWARDED) {
    const value = headerOf(request, name)
    if (value !== undefined) headers[name] = value
  }
  return headers
}

/** The contract has no edits route; whoever looks for it learns where editing is done. */
export function mountNoEdits(app: FastifyInstance): void {
  for (const url of ['/alpha/v1/images/edits', '/alpha/images/edits', '/v1/images/edits'])
    app.route({
      method: 'POST',
      url,
      config: { surface: 'images', alias: true },
      onRequest: (_request, _reply, done) =>
        done(
          new Fault('not_found', {
            message:
              'There is no edits route. Send the pictures as image_urls to /alpha/v1/images/generations, as JSON.',
          }),
        ),
      handler: () => undefined,
    })
}
