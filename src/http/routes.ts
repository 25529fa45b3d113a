// The public API: one route per endpoint of the catalog's list, and its aliases. The key is checked from the headers,
// before a body is read.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ApiKeys, Principal } from '../admission/api-key.ts'
import type { Contents } from '../admission/contents.ts'
import type { Call, Recording } from '../admission/recording.ts'
import type { ContentRule } from '../admission/views.ts'
import { type EndpointSpec, isDataEndpoint } from '../catalog/endpoint.ts'
import { isId } from '../catalog/field.ts'
import type { FreeId } from '../catalog/generation.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { asFault, Fault, GONE } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Refusals } from '../ledger/refusals.ts'
import type { Monitor } from '../pipeline/monitor.ts'
import type { Overload } from '../pipeline/overload.ts'
import type { PaidSpec } from '../pipeline/read.ts'
import type { ByteBudget } from '../upstream/budget.ts'
import { Caller } from './caller.ts'
import { faultBody, faultHeaders, hasSdkMark, surfaceOf } from './envelope.ts'
import { RecordingCaller } from './recording-caller.ts'
import { CORS, holdBack, logFault, mayBeLong, type RefusedVisit, rawQuery } from './server.ts'
import { createShortcut } from './shortcut.ts'

type Handle = (request: FastifyRequest, reply: FastifyReply) => unknown

export type HandlersOf<Id extends FreeId> = Record<Id, Handle>

/** What the path needs of a request, whichever way it came in. */
export type Visit = Pick<
  FastifyRequest,
  'id' | 'raw' | 'headers' | 'method' | 'params' | 'body' | 'principal' | 'lease'
> & {
  readonly routeOptions: { readonly config: FastifyContextConfig }
}

export type Paid = (visit: Visit, response: ServerResponse, spec: PaidSpec) => void

export interface RoutesOptions {
  readonly keys: ApiKeys
  readonly free: HandlersOf<FreeId>
  readonly paid: Paid
  readonly strictErrors: boolean
  readonly log: Log
  readonly world: World
  readonly admit: Overload['admit']
  readonly budget: ByteBudget
  /** Hears of what is refused at the door. */
  readonly refused: Refused
}

type Refused = (fault: Fault, visit: RefusedVisit) => void

/** Notes what is refused to a key that is known at a paid endpoint, unless the path has. */
export function createRefused(refusals: Refusals, monitor: Pick<Monitor, 'refused'>): Refused {
  return (fault, { id: requestId, principal, routeOptions }) => {
    const endpoint = routeOptions.config?.endpoint
    const whose = principal ?? fault.details.whose
    if (endpoint === undefined || !whose || refusals.isNoted(fault)) return
    const { product } = fault
    const call = { requestId, account: whose.accountId, key: whose.keyId, product, endpoint }
    refusals.note(fault, call)
    monitor.refused(fault, call)
  }
}

/** The part of a route's settings by which a refusal is known to be of a paid endpoint. */
export function paidConfig({ sells, id: endpoint }: EndpointSpec): { endpoint?: string } {
  return sells === undefined ? {} : { endpoint }
}

/** What the body takes is its account's, until the answer begins or nobody waits for one. */
export function leaseBody(request: FastifyRequest, response: ServerResponse, budget: ByteBudget): void {
  const lease = budget.open(request.principal?.accountId ?? '')
  request.lease = lease
  response.once('close', () => lease.release())
}

/** Calls that another door of this server (the console's playground) has already vouched for. */
const vouched = new WeakMap<IncomingMessage, Principal>()

export function vouch(request: IncomingMessage, principal: Principal): void {
  vouched.set(request, principal)
}

export function mountApi(app: FastifyInstance, options: RoutesOptions): void {
  const urls = new Set<string>()
  for (const spec of ENDPOINTS) {
    const handle = handlerOf(spec, options)
    const unparsed = spec.largeBody === true
    for (const [index, path] of [spec.path, ...spec.aliases].entries()) {
      // A colon of the path's own is written twice for the router, which has to know what stands before it.
      const url = path.replaceAll(/\{(\w+)\}:/g, ':$1([^:]+)::').replaceAll(/\{(\w+)\}/g, ':$1')
      const config = { surface: spec.surface, alias: index > 0, ...paidConfig(spec) }
      urls.add(url)
      app.route({
        method: spec.method,
        url,
        config,
        onRequest(request, reply, done) {
          reply.headers(CORS)
          const begin = () => {
            // The handler takes the response over here, before the framework would read the body.
            if (unparsed) handle(request, reply)
          }
          const enter = (principal: Principal): undefined | Promise<void> => {
            request.principal = principal
            checkIds(spec, request.params as Readonly<Record<string, string>>) // The router makes texts of them.
            if (unparsed || mayBeLong(request.raw)) leaseBody(request, reply.raw, options.budget)
            const line = options.admit()
            return line ? line.then(begin) : void begin()
          }
          // A key that is known is let in at once; a promise would cost every call turns of the queue.
          const found = vouched.get(request.raw) ?? authenticate(request, options.keys)
          if (found instanceof Promise) {
            holdBack(request.raw)
            found.then(enter).then(() => done(), done)
            return
          }
          const line = enter(found)
          if (line) line.then(() => done(), done)
          else done()
        },
        handler: (request, reply) => handle(request, reply),
      })
    }
  }
  for (const url of urls) app.crossSite(url)
  app.shortcut = createShortcut(options)
  app.refused = options.refused
}

/** Before anything is looked up or asked by them. An endpoint of data says itself what it takes. */
function checkIds(spec: EndpointSpec, given: Readonly<Record<string, string>>): void {
  if (isDataEndpoint(spec)) return
  for (const name in given) {
    const field = spec.params?.[name]
    if (field?.kind === 'text' && field.pattern !== undefined && !isId(given[name] ?? ''))
      throw new Fault('not_found', { message: 'There is nothing with this id.' })
  }
}

function handlerOf(spec: EndpointSpec, { free, paid }: RoutesOptions): Handle {
  const { sells } = spec
  if (sells === undefined) return free[spec.id as FreeId] // An endpoint that sells nothing is listed as a free one.
  const sold: PaidSpec = { ...spec, sells }
  return (request, reply) => {
    reply.hijack()
    paid(request, reply.raw, sold)
  }
}

export function authenticate(
  request: FastifyRequest,
  keys: ApiKeys,
  options?: { readonly tokens: boolean },
): Principal | Promise<Principal> {
  const { headers } = request
  const google =
    surfaceOf(request.url, request.routeOptions.config.surface) === 'gemini' ? googleKey(request) : undefined
  const xApiKey = google ?? headers['x-api-key']
  return keys.authenticate(
    { authorization: headers.authorization, xApiKey: Array.isArray(xApiKey) ? xApiKey[0] : xApiKey },
    request,
    options,
  )
}

/** Where Google's SDKs, and its examples for curl, put a key. */
function googleKey(request: FastifyRequest): string | undefined {
  const header = request.headers['x-goog-api-key']
  const given = Array.isArray(header) ? header[0] : header
  return given ?? new URLSearchParams(rawQuery(request)).get('key') ?? undefined
}

interface PathOptions {
  /** Where the bytes of calls may be kept. */
  readonly contents?: Pick<Contents, 'begin'>
  readonly strictErrors: boolean
  readonly refused?: Refused
  readonly log: Log
}

/** Runs what answers by itself, outside of the framework's hands, and answers whatever it throws. */
export function onPath(
  visit: Visit,
  response: ServerResponse,
  options: PathOptions,
  run: (out: Caller) => Promise<void>,
): void {
  // Nearly nobody wants the bytes to be kept, and then this is all that it costs.
  const rule = visit.principal?.content
  const recording = rule && options.contents?.begin(recordedCall(visit, rule))
  const out = recording ? recordingCaller(visit, response, recording) : new Caller(response, visit.id)
  // From its first byte on, an answer is nobody else's to make: what was asked is not sent again.
  const { lease } = visit
  if (lease) out.whenStarted(() => lease.release())
  let running: Promise<void>
  try {
    running = run(out)
  } catch (error) {
    // What is thrown before the first promise is answered like the rest: the framework no longer can.
    refuse(visit, out, error, options)
    recording?.end()
    return
  }
  const ended = running.catch((error: unknown) => refuse(visit, out, error, options))
  if (recording) ended.finally(() => recording.end())
}

function recordedCall({ id: requestId, method, raw, principal }: Visit, rule: ContentRule): Call {
  const { accountId: account = '', keyId: key = '' } = principal ?? {}
  return { requestId, account, key, rule, method, path: withoutKey(raw.url ?? '') }
}

/** A body that is read later, because it is large, is noted by whoever reads it. */
function recordingCaller({ body }: Visit, response: ServerResponse, recording: Recording): RecordingCaller {
  if (Buffer.isBuffer(body)) recording.asked(body)
  return new RecordingCaller(response, recording)
}

/** Google's SDKs may put the key into the address. */
function withoutKey(url: string): string {
  const [path = '', query] = url.split('?', 2)
  if (query === undefined) return path
  const params = new URLSearchParams(query)
  params.delete('key')
  return params.size === 0 ? path : `${path}?${params}`
}

export function refuse(visit: Visit, out: Caller, error: unknown, options: PathOptions): void {
  if (error === GONE) return
  // Whoever hangs up in the middle of a body makes reading it fail, which is nobody's mistake.
  if (!out.signal.aborted || visit.raw.complete) logFault(asFault(error), visit.id, options.log)
  if (out.signal.aborted) return
  // An answer that has begun can only be cut: a caller must never take the rest for a clean end, or wait for it.
  if (out.started) {
    out.destroy()
    return
  }
  const fault = asFault(error)
  const { surface = 'native', alias = false } = visit.routeOptions.config
  const sdk = !options.strictErrors && (alias || hasSdkMark(visit.headers))
  out.send(fault.status, faultHeaders(fault), faultBody(fault, surface, { requestId: visit.id, sdk }))
  options.refused?.(fault, visit)
}
