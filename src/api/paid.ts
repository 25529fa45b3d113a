// The paid endpoints: each request is read into what it asks for, and put on the path.
import { readIdempotencyKey } from '../admission/idempotency.ts'
import { isDataEndpoint } from '../catalog/endpoint.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson, withMembers } from '../kernel/json.ts'
import { newId } from '../kernel/world.ts'
import { type ArriveDeps, arrive, readBody, readFor } from '../pipeline/arrive.ts'
import type { PathHooks } from '../pipeline/hooks.ts'
import { broughtBy, type PaidSpec, type RequestBody } from '../pipeline/read.ts'
import type { ResponseSink } from '../pipeline/response-sink.ts'
import { serve } from '../pipeline/serve.ts'
import { readAudioForm } from '../protocols/media/openai-audio.ts'
import {
  BODY_BYTES_MAX,
  checkImageContentType,
  readEditForm,
  readImageBody,
} from '../protocols/media/openai-images/body.ts'
import { readVideoBody } from '../protocols/media/video-task/request.ts'
import { JSON_HEADER } from '../protocols/text/json-answer.ts'
import { chatsOf } from '../protocols/text/openai-completions.ts'
import { routingHeaders } from '../routing/preference.ts'
import type { Handle, RequestContext } from './api.ts'
import { CompletionSink, completeAll } from './completions.ts'
import { arriving, type BodyRules, jsonBody } from './server/body.ts'
import { type Caller, RecordingCaller } from './server/caller.ts'
import { rawQuery } from './server/server.ts'

export interface PaidDeps extends ArriveDeps, Pick<PathHooks, 'background'> {
  readonly bodies: BodyRules
}

/** What of a request is its body, as far as the endpoint has one. */
interface Taken extends RequestBody {
  /** What an idempotency key is bound to: the body, or a hash of it. Absent: the endpoint takes no such key. */
  readonly digest?: string | Buffer | undefined
}

const NO_BODY: Taken = { json: readJson(Buffer.from('{}')) }

export function paidHandler(deps: PaidDeps): (spec: PaidSpec) => Handle {
  return (spec) => {
    const take = bodyOf(spec)
    if (spec.largeBody) return (request, out) => handleLarge(request, out, spec, deps)
    // Of other endpoints nothing runs in the background, or is several calls.
    const isOne = spec.id !== 'completions' && spec.format !== 'openai-responses'
    const go = isOne ? handle : handleSmall
    return (request, out) => go(request, out, { spec, body: take(request) }, deps)
  }
}

async function handleLarge(request: RequestContext, out: Caller, spec: PaidSpec, deps: PaidDeps): Promise<void> {
  const body = await takeLarge(request, spec, deps)
  if (out instanceof RecordingCaller) out.recording.asked(body.json.text)
  await handle(request, out, { spec, body }, deps)
}

/** A response may run in the background, or continue one that did. */
export function handleSmall(
  request: RequestContext,
  out: ResponseSink,
  asked: { spec: PaidSpec; body: Taken },
  deps: PaidDeps,
): Promise<void> {
  if (asked.spec.id === 'completions') return handleCompletion(request, out, asked, deps)
  const { background, previous_response_id: previous } = asked.body.json.value
  const isPlain = asked.spec.format !== 'openai-responses' || (background !== true && typeof previous !== 'string')
  return isPlain ? handle(request, out, asked, deps) : handleResponse(request, out, asked, deps)
}

function handleCompletion(
  request: RequestContext,
  out: ResponseSink,
  { spec, body }: { spec: PaidSpec; body: Taken },
  deps: PaidDeps,
): Promise<void> {
  const chats = chatsOf(body.json).map((json) => ({ ...body, json }))
  const [only, ...more] = chats
  if (only && more.length === 0) return handle(request, new CompletionSink(out), { spec, body: only }, deps)
  const calls = chats.map((body, part) => (sink: ResponseSink) => handle(request, sink, { spec, body, part }, deps))
  return completeAll(out, calls)
}

async function handleResponse(
  request: RequestContext,
  out: ResponseSink,
  { spec, body }: { spec: PaidSpec; body: Taken },
  deps: PaidDeps,
): Promise<void> {
  const principal = request.principal
  const { json } = body
  const background = deps.background?.()
  if (json.value.background !== true || spec.id !== 'responses') {
    const goesOn = background ? await background.goingOn(json, principal.accountId) : json
    return handle(request, out, { spec, body: { ...body, json: goesOn } }, deps)
  }
  if (!background)
    throw invalid('"background" must be false: this gateway runs no responses in the background.', 'background')
  const { headers } = request
  await background.accept({ principal, spec, json, headers, idempotencyKey: idempotencyKeyOf(request) }, out)
}

/** `part`: which of the calls of one request it is. */
async function handle(
  request: RequestContext,
  out: ResponseSink,
  { spec, body, part }: { spec: PaidSpec; body: Taken; part?: number },
  deps: PaidDeps,
): Promise<void> {
  const { principal, params, headers } = request
  const requestId = part === undefined || part === 0 ? request.id : `req_${newId(deps.path.world)}`
  const said = headers['x-tollgate-cache']
  const cacheHeader = said === undefined ? undefined : cacheHeaderOf(said)
  const bringing = broughtBy(principal, deps.read)
  const brought = bringing instanceof Promise ? await bringing : bringing
  const query = spec.sells === 'data' ? rawQuery(request) : ''
  const { asked, catalog } = readFor({ spec, principal, brought, params, query, body, headers, cacheHeader }, deps)
  // Only the vendor knows the headers of an answer, and asking it would cost what the answer costs.
  if (request.method === 'HEAD') {
    out.send(200, { 'content-type': 'application/json; charset=utf-8' }, '')
    return
  }
  const { digest } = body
  const isRepeatable = digest !== undefined && headers['idempotency-key'] !== undefined
  const key = isRepeatable ? idempotencyKeyOf(request) : undefined
  // Headers that name other models or vendors or what becomes of the answer are part of what was asked.
  const others = key === undefined ? [] : [...routingHeaders(headers), ...[headers[JSON_HEADER] ?? []].flat()]
  const asText = others.length === 0 ? digest : [String(digest), ...others].join('\n')
  const ownKey = part === undefined ? key : key && `${key} ${part}`
  const idempotency = ownKey === undefined || asText === undefined ? undefined : { key: ownKey, digest: asText }
  const arrival = { requestId, principal, endpoint: spec.id, out, headers, idempotency }
  return serve(arrive(arrival, asked, catalog, deps.path), deps.path)
}

/** How the endpoint takes its body. */
function bodyOf(spec: PaidSpec): (request: RequestContext) => Taken {
  if (spec.method === 'GET') return () => NO_BODY
  if (isDataEndpoint(spec)) return (request) => takeData(request, spec)
  const isAddressed = spec.path.includes('{model}')
  return (request) => {
    const { json: sent } = readBody(spec, jsonBody(request))
    const json = isAddressed ? addressed(sent, request, spec) : sent
    return { json, digest: json.text }
  }
}

/** What is asked stands in the address too. */
function takeData(request: RequestContext, spec: PaidSpec): Taken {
  const { json } = spec.body ? readBody(spec, jsonBody(request)) : NO_BODY
  return { json, digest: JSON.stringify([request.params, rawQuery(request), json.text]) }
}

/** Of a format that says in its address what others say in the body: from here on all of them say it in the body. */
function addressed(json: JsonText, request: RequestContext, spec: PaidSpec): JsonText {
  const model = request.param('model')
  const alt = new URLSearchParams(rawQuery(request)).get('alt') ?? 'json'
  const says = { model, stream: spec.streams === true, alt }
  return withMembers(
    json,
    Object.fromEntries(Object.entries(says).map(([name, value]) => [name, JSON.stringify(value)])),
  )
}

/** A body of up to hundreds of megabytes is read straight from the socket, within the budget of bytes. */
function takeLarge(request: RequestContext, spec: PaidSpec, deps: PaidDeps): Promise<Taken> {
  if (!spec.form) return takePictures(request, deps)
  if (spec.sells === 'video') return takeVideo(request, deps)
  return spec.sells === 'image' ? takeEdit(request, deps) : takeRecording(request, deps)
}

async function takePictures(request: RequestContext, deps: PaidDeps): Promise<Taken> {
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

/** A form with pictures, within the same budget. */
async function takeEdit(request: RequestContext, deps: PaidDeps): Promise<Taken> {
  const lease = request.lease! // The route of a large body has made it.
  const read = await readEditForm(arriving(request.raw, deps.bodies, lease), formHeadersOf(request))
  lease.shrinkTo(read.inlineBytes + read.json.text.length)
  return { json: read.json, pictures: { ...read, lease }, digest: read.digest }
}

/** A form of a video, or the same as JSON. */
async function takeVideo(request: RequestContext, deps: PaidDeps): Promise<Taken> {
  const body = arriving(request.raw, deps.bodies, request.lease)
  const { json, digest } = await readVideoBody(body, formHeadersOf(request))
  request.lease?.shrinkTo(json.text.length)
  return { json, digest }
}

/** A form with a recording, within the same budget. */
async function takeRecording(request: RequestContext, deps: PaidDeps): Promise<Taken> {
  const body = arriving(request.raw, deps.bodies, request.lease)
  const { json, file, digest } = await readAudioForm(body, formHeadersOf(request))
  request.lease?.shrinkTo(file.bytes + json.text.length)
  return { json, file, digest }
}

function formHeadersOf(request: RequestContext) {
  return { contentType: request.headers['content-type'], contentLength: contentLengthOf(request) }
}

function contentLengthOf({ headers: { 'content-length': length } }: RequestContext): number | undefined {
  return length === undefined ? undefined : Number(length)
}

function cacheHeaderOf(header: string): boolean | undefined {
  if (header === '') return undefined
  if (header !== 'on' && header !== 'off') throw invalid('"x-tollgate-cache" must be on or off.', 'x-tollgate-cache')
  return header === 'on'
}

function idempotencyKeyOf(request: RequestContext): string | undefined {
  return readIdempotencyKey(request.headers['idempotency-key'])
}
