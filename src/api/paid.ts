// The paid endpoints: each request is read into what it asks for, and put on the path.
import { readIdempotencyKey } from '../admission/idempotency.ts'
import { isDataEndpoint } from '../catalog/endpoint.ts'
import { invalid } from '../kernel/fault.ts'
import { type JsonText, readJson, withMembers } from '../kernel/json.ts'
import { newId } from '../kernel/world.ts'
import { type ArriveDeps, arrive, readBody, readFor } from '../pipeline/arrive.ts'
import type { PathHooks } from '../pipeline/hooks.ts'
import { completed, type Taken } from '../pipeline/paid-endpoint.ts'
import { broughtBy, type PaidSpec } from '../pipeline/read.ts'
import type { ResponseSink } from '../pipeline/response-sink.ts'
import { serve } from '../pipeline/serve.ts'
import { JSON_HEADER } from '../protocols/text/json-answer.ts'
import { routingHeaders } from '../routing/preference.ts'
import type { Handle, RequestContext } from './api.ts'
import { arriving, type BodyRules, jsonBody } from './server/body.ts'
import { type Caller, RecordingCaller } from './server/caller.ts'
import { rawQuery } from './server/server.ts'

export interface PaidDeps extends ArriveDeps, Pick<PathHooks, 'background'> {
  readonly bodies: BodyRules
}

const NO_BODY: Taken = { json: readJson(Buffer.from('{}')) }

export function paidHandler(deps: PaidDeps): (spec: PaidSpec) => Handle {
  return (given) => {
    const spec = completed(given)
    const { take } = spec
    if (take) return (request, out) => handleLarge(request, out, { spec, take }, deps)
    const bodyTo = bodyOf(spec)
    // Of other endpoints nothing runs in the background, or is several calls.
    const go = spec.convert || spec.format === 'openai-responses' ? handleSmall : handle
    return (request, out) => go(request, out, { spec, body: bodyTo(request) }, deps)
  }
}

/** A body of up to hundreds of megabytes is read straight from the socket, within the budget of bytes. */
async function handleLarge(
  request: RequestContext,
  out: Caller,
  { spec, take }: { spec: PaidSpec; take: NonNullable<PaidSpec['take']> },
  deps: PaidDeps,
): Promise<void> {
  const { raw, headers } = request
  const { 'content-type': contentType, 'content-length': length } = headers
  const lease = request.lease! // The route of a large body has made it.
  const body = await take({
    pieces: arriving(raw, deps.bodies, lease),
    lease,
    contentType,
    contentLength: length === undefined ? undefined : Number(length),
    isRepeatable: idempotencyKeyOf(request) !== undefined,
  })
  lease.shrinkTo(body.json.text.length + (body.pictures?.inlineBytes ?? 0) + (body.file?.bytes ?? 0))
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
  const { spec, body } = asked
  if (spec.convert)
    return spec.convert(body.json, out, (json, sink, part) =>
      handle(request, sink, { spec, body: { ...body, json }, part }, deps),
    )
  const { background, previous_response_id: previous } = body.json.value
  const isPlain = spec.format !== 'openai-responses' || (background !== true && typeof previous !== 'string')
  return isPlain ? handle(request, out, asked, deps) : handleResponse(request, out, asked, deps)
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
  { spec, body, part }: { spec: PaidSpec; body: Taken; part?: number | undefined },
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

function cacheHeaderOf(header: string): boolean | undefined {
  if (header === '') return undefined
  if (header !== 'on' && header !== 'off') throw invalid('"x-tollgate-cache" must be on or off.', 'x-tollgate-cache')
  return header === 'on'
}

function idempotencyKeyOf(request: RequestContext): string | undefined {
  return readIdempotencyKey(request.headers['idempotency-key'])
}
