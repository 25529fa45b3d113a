// The public API: one route per endpoint of the catalog's list and for each of its aliases, directly on Node's requests
// and responses. The key is checked from the headers before a body is read. Whatever is thrown on the way is answered
// here, in the words of the endpoint's surface.

import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ApiKeys, type KeyHeader, type Principal, requireEndpoint, type TokenScope } from '../admission/api-key.ts'
import type { RecordingPolicy } from '../admission/views.ts'
import { type EndpointSpec, isDataEndpoint, type Surface } from '../catalog/endpoint.ts'
import { isId } from '../catalog/field.ts'
import type { FreeId } from '../catalog/generation.ts'
import { definedEndpoints, withAdded } from '../catalog/index.ts'
import type { RequestHeaders } from '../catalog/query.ts'
import type { CatalogStore } from '../catalog/store.ts'
import { asFault, CLIENT_CLOSED, Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { newId, type World } from '../kernel/world.ts'
import type { RecordedCall, Recorder, Recording } from '../pipeline/hooks.ts'
import { isPaid, type PaidSpec } from '../pipeline/read.ts'
import { SURFACES } from '../protocols/text/formats.ts'
import type { Monitor } from '../telemetry/monitor.ts'
import type { Overload } from '../telemetry/overload.ts'
import type { Refusals } from '../telemetry/refusals.ts'
import type { ByteBudget, ByteLease } from '../upstream/budget.ts'
import { type BodyRules, holdBack, linkOf, mayBeLong, takeWhole } from './server/body.ts'
import { Caller, RecordingCaller } from './server/caller.ts'
import { faultBody, faultHeaders, hasSdkMark, logFault, surfaceOf } from './server/envelope.ts'
import { Router } from './server/router.ts'
import { BODY_BYTES_MAX, endLink, rawQuery, type Route as ServerRoute, type WebServer } from './server/server.ts'

/** Answers by `out`, and throws what it refuses. */
export type Handle = (request: RequestContext, out: Caller) => void | Promise<void>

export type HandlersOf<Id extends string> = Record<Id, Handle>

/** What answers at one path, and what is asked before it. */
interface Route {
  readonly surface: Surface
  /** Reached by a path that only SDKs use. */
  readonly alias: boolean
  /** Of a paid endpoint. */
  readonly endpoint?: string
  /** The most that is read of its body. Absent: the handler reads it. */
  readonly bodyBytesMax?: number
  /** What is checked of the key and the path, before a body is read. */
  readonly check?: (principal: Principal, params: Readonly<Record<string, string>>) => void
  /** That is also asked of a key that may use every endpoint. */
  readonly checksPath?: boolean
  /** What is checked before the key is. */
  readonly before?: (request: RequestContext) => void
  /** What an answer says to whom it does not let in. */
  readonly challenge?: () => Record<string, string>
  /** What a token of OAuth must be for. Absent: `api`. */
  readonly scope?: TokenScope
  /** Whether what is asked and answered may be kept. */
  readonly isRecorded: boolean
  readonly handle: Handle
  /** Of a path that takes WebSockets: what becomes of a handshake. What it throws is answered as HTTP. */
  readonly upgrade?: (request: RequestContext, link: Duplex, head: Buffer, door: Door) => Promise<void>
}

/** By which a handshake, and what is called on its socket, is let in like requests are. */
export interface Door {
  authenticate(call: RequestContext): Principal | Promise<Principal>
  readonly admit: Overload['admit']
  readonly keys: Pick<ApiKeys, 'behind' | 'whenChanged'>
  /** What is kept of the call's bytes; undefined: nothing is. */
  record(call: RequestContext): Recording | undefined
  /** Notes a fault that the caller is told by an event. */
  refused(call: RequestContext, fault: Fault): void
}

/** Who may call besides keys, and for whom a key may call. Of an extension. */
export interface CallerRules {
  /** The header by which a request names its caller. */
  readonly header: string
  /** The caller whose credential is no key; undefined: it is one. */
  session(request: RequestContext): Principal | Promise<Principal> | undefined
  /** The caller as a request with that header names it. */
  named(principal: Principal, headers: RequestHeaders): Principal
}

interface ApiOptions {
  readonly keys: ApiKeys
  /** Absent: there are keys only. */
  readonly callers?: CallerRules | undefined
  readonly strictErrors: boolean
  readonly log: Log
  readonly world: World
  readonly admit: Overload['admit']
  readonly budget: ByteBudget
  readonly bodies: BodyRules
  /** Where the bytes of calls may be kept. */
  readonly contents?: Recorder
  /** Hears of what is refused at the client format. */
  readonly refused?: Refused
}

type Refused = (fault: Fault, request: RequestContext) => void

/** A request of the API, from its headers to its answer. */
export class RequestContext {
  readonly id: string
  readonly raw: IncomingMessage
  readonly headers: RequestHeaders
  readonly method: string
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  /** Undefined until the key was found. */
  known: Principal | undefined
  /** The memory that its body takes, where that is counted. */
  lease: ByteLease | null = null
  /** Undefined: it has none, or the handler reads it. */
  body: Buffer | undefined

  constructor(raw: IncomingMessage, id: string, route: Route, params: Readonly<Record<string, string>>) {
    this.id = id
    this.raw = raw
    this.headers = raw.headers as RequestHeaders // Only `set-cookie` is a list there, and nobody reads it.
    this.method = raw.method ?? ''
    this.route = route
    this.params = params
  }

  /** Whose key was checked before any handler runs. */
  get principal(): Principal {
    if (!this.known) throw new Fault('internal', { internal: { why: 'a handler runs before the key was checked' } })
    return this.known
  }

  /** A parameter of the path. */
  param(name: string): string {
    return this.params[name] ?? ''
  }
}

/** Notes what is refused to a key that is known at a paid endpoint, unless the path has. */
export function createRefused(refusals: Refusals, monitor: Pick<Monitor, 'refused'>): Refused {
  return (fault, { id: requestId, known, route: { endpoint } }) => {
    const whose = known ?? fault.details.whose
    if (endpoint === undefined || !whose || refusals.isNoted(fault)) return
    const { product } = fault
    const call = { requestId, account: whose.accountId, key: whose.keyId, product, endpoint }
    refusals.note(fault, call)
    monitor.refused(fault, call)
  }
}

interface Endpoints {
  readonly free: HandlersOf<FreeId>
  readonly paid: (spec: PaidSpec) => Handle
  readonly catalog: Pick<CatalogStore, 'current'>
}

export function mountApi(api: Api, { free, paid, catalog }: Endpoints): void {
  const handleOf = (spec: EndpointSpec) => {
    // An endpoint that sells nothing is listed as a free one.
    return isPaid(spec) ? paid(spec) : free[spec.id as FreeId]
  }

  const own = withAdded(catalog.current.added).filter((spec) => isPaid(spec) || Object.hasOwn(free, spec.id))
  mountAll(api, own, handleOf)
  // Those of products come and go with the versions of the catalog.
  api.follow(
    () => definedEndpoints(catalog.current),
    (place, specs) => mountAll(place, specs, handleOf),
  )
  const missing = {
    '/alpha/v1/images/edits': noEdits,
    '/alpha/images/edits': noEdits,
    '/v1/images/variations': noVariations,
  }
  for (const [path, handle] of Object.entries(missing))
    api.add('POST', path, { surface: 'images', alias: true, isRecorded: false, before: handle, handle })
}

/** Free endpoints, each by its id. */
export function mountFree<Id extends string>(
  place: Mounts,
  specs: Readonly<Record<Id, EndpointSpec>>,
  handlers: HandlersOf<Id>,
): void {
  mountAll(place, Object.values<EndpointSpec>(specs), ({ id }) => handlers[id as Id]) // Entries have their own names.
}

function mountAll(place: Mounts, specs: readonly EndpointSpec[], handleOf: (spec: EndpointSpec) => Handle): void {
  for (const spec of specs) mount(place, spec, handleOf(spec))
  // The last of a path's methods.
  for (const { path, aliases } of specs) for (const one of [path, ...aliases]) place.crossSite(one)
}

/** At all of its paths. */
function mount(place: Mounts, spec: EndpointSpec, handle: Handle): void {
  const { id, sells } = spec
  // An endpoint of data says itself what it takes.
  const hasIds = spec.params !== undefined && !isDataEndpoint(spec)
  for (const [index, path] of [spec.path, ...spec.aliases].entries())
    place.add(spec.method, path, {
      surface: surfaceOf(path, spec.surface),
      alias: index > 0,
      ...(sells === undefined ? {} : { endpoint: id }),
      ...(spec.largeBody ? {} : { bodyBytesMax: BODY_BYTES_MAX }),
      check(principal, params) {
        if (principal.endpoints !== null) requireEndpoint(principal, spec)
        if (hasIds) checkIds(spec, params)
      },
      checksPath: hasIds,
      isRecorded: sells !== undefined || spec.recorded === true,
      handle,
    })
}

/** The contract has no edits route below its own address; whoever looks for it learns where editing is done. */
function noEdits(): never {
  throw new Fault('not_found', {
    message:
      'There is no edits route here. Send the pictures as image_urls to /alpha/v1/images/generations, as JSON, or a form to /v1/images/edits.',
  })
}

function noVariations(): never {
  throw new Fault('not_found', {
    message:
      'Variations are not offered: no model makes them any more. Send the picture to /v1/images/edits, with what should differ as the prompt.',
  })
}

/** Before anything is looked up or asked by them. */
function checkIds(spec: EndpointSpec, given: Readonly<Record<string, string>>): void {
  for (const name in given) {
    const field = spec.params?.[name]
    if (field?.kind === 'text' && field.pattern !== undefined && !isId(given[name] ?? ''))
      throw new Fault('not_found', { message: 'There is nothing with this id.' })
  }
}

interface Mounts {
  add(method: EndpointSpec['method'], path: string, route: Route): void
  /** Browsers of other sites may call what is at this path. */
  crossSite(path: string): void
}

export interface Api extends Mounts {
  /** Further routes, mounted anew whenever `current` gives another list. */
  follow<List>(current: () => List, mount: (place: Mounts, list: List) => void): void
}

export function createApi(app: WebServer, options: ApiOptions): Api {
  const { world, keys, callers } = options

  function authenticate(request: RequestContext): Principal | Promise<Principal> {
    const { headers, raw, route } = request
    const xApiKey = SURFACES[route.surface]?.keyOf?.(headers, rawQuery(request)) ?? headers['x-api-key']
    const header = { authorization: headers.authorization, xApiKey }
    // A key that is known is let in at once; a promise would cost every call turns of the queue.
    const known = keys.known(header, linkOf(raw.socket).key)
    const session = known ? undefined : callers?.session(request)
    if (session) return session
    const found = known ?? byKey(request, header)
    if (!callers || headers[callers.header] === undefined) return found
    const named = (principal: Principal) => callers.named(principal, headers)
    return found instanceof Promise ? found.then(named) : named(found)
  }

  function byKey({ raw, route }: RequestContext, header: KeyHeader): Principal | Promise<Principal> {
    const from = {
      // Asked for rarely, and then it costs a system call.
      get ip() {
        return app.addressOf(raw)
      },
    }
    return keys.authenticate(header, from, route.scope)
  }

  function enter(request: RequestContext, response: ServerResponse, principal: Principal): undefined | Promise<void> {
    const { route, params, raw } = request
    request.known = principal
    if (principal.endpoints !== null || route.checksPath) route.check?.(principal, params)
    if (route.bodyBytesMax === undefined || mayBeLong(raw)) leaseBody(request, response)
    const line = options.admit()
    if (line) return line.then(() => begin(request, response))
    begin(request, response)
    return undefined
  }

  /** What the body takes is its account's, until the answer begins or nobody waits for one. */
  function leaseBody(request: RequestContext, response: ServerResponse): void {
    const lease = options.budget.open(request.principal.accountId)
    request.lease = lease
    response.once('close', () => lease.release())
  }

  function begin(request: RequestContext, response: ServerResponse): void {
    const { route, method, raw, lease } = request
    if (route.bodyBytesMax === undefined || method === 'GET' || method === 'HEAD') {
      answer(request, response)
      return
    }
    takeWhole(raw, { ...options.bodies, bytesMax: route.bodyBytesMax }, lease, {
      whole(body) {
        request.body = body
        answer(request, response)
      },
      failed: (error) => refuse(request, callerOf(request, response), error),
    })
  }

  function record(request: RequestContext): Recording | undefined {
    const rule = request.route.isRecorded ? request.known?.content : undefined
    return rule && options.contents?.begin(recordedCall(request, rule))
  }

  function answer(request: RequestContext, response: ServerResponse): void {
    const { route, lease } = request
    const recording = request.known?.content && record(request)
    // A large body is read later, and recorded by the code that reads it.
    if (recording && request.body) recording.asked(request.body)
    const out = recording
      ? new RecordingCaller(response, recording)
      : new Caller(response, request.id, app.bodyDeadline)
    // After the first byte of an answer the request is not sent to another vendor.
    if (lease) out.whenStarted(() => lease.release())
    let running: void | Promise<void>
    try {
      running = route.handle(request, out)
    } catch (error) {
      running = refuse(request, out, error)
    }
    const ended = running?.catch((error: unknown) => refuse(request, out, error))
    if (recording) Promise.resolve(ended).finally(() => recording.end())
  }

  function callerOf({ id }: RequestContext, response: ServerResponse): Caller {
    return new Caller(response, id, app.bodyDeadline)
  }

  function refuse(request: RequestContext, out: Caller, error: unknown): void {
    if (error === CLIENT_CLOSED) return
    const fault = asFault(error)
    // A caller who hangs up within a body makes reading fail. That is no error of the gateway.
    if (!out.signal.aborted || request.raw.complete) logFault(fault, request.id, options.log)
    if (out.signal.aborted) return
    // An answer that has begun can only be cut: a caller must never take the rest for a clean end, or wait for it.
    if (out.started) {
      out.destroy()
      return
    }
    const { surface, alias, challenge } = request.route
    const sdk = !options.strictErrors && (alias || hasSdkMark(request.headers))
    const headers = { ...(request.known ? {} : challenge?.()), ...faultHeaders(fault) }
    out.send(fault.status, headers, faultBody(fault, surface, { requestId: request.id, sdk }))
    options.refused?.(fault, request)
  }

  function answerFault(request: RequestContext, response: ServerResponse, entering: Promise<void>): void {
    entering.catch((error: unknown) => refuse(request, callerOf(request, response), error))
  }

  /** What is wrong with a handshake is answered as HTTP. */
  function refuseUpgrade(request: RequestContext, link: Duplex, error: unknown): void {
    if (link.destroyed) return
    const response = new ServerResponse(request.raw)
    response.shouldKeepAlive = false
    response.assignSocket(request.raw.socket)
    response.on('finish', () => endLink(link.resume(), world))
    refuse(request, callerOf(request, response), error)
  }

  const door: Door = {
    authenticate,
    admit: options.admit,
    keys,
    record,
    refused(call, fault) {
      logFault(fault, call.id, options.log)
      options.refused?.(fault, call)
    },
  }

  function open(route: Route): ServerRoute {
    const { upgrade } = route
    return {
      ...(upgrade && {
        upgrade(raw, link, head) {
          const request = new RequestContext(raw, `req_${newId(world)}`, route, {})
          upgrade(request, link, head, door).catch((error: unknown) => refuseUpgrade(request, link, error))
        },
      }),
      run(raw, response, params, preauthenticated) {
        const request = new RequestContext(raw, `req_${newId(world)}`, route, params)
        try {
          route.before?.(request)
          const found = preauthenticated ?? authenticate(request)
          if (found instanceof Promise) {
            holdBack(raw)
            answerFault(
              request,
              response,
              found.then((principal) => enter(request, response, principal)),
            )
          } else {
            const entering = enter(request, response, found)
            if (entering) answerFault(request, response, entering)
          }
        } catch (error) {
          refuse(request, callerOf(request, response), error)
        }
      },
    }
  }

  const mountsOf = (router: Router<ServerRoute>): Mounts => ({
    add: (method, path, route) =>
      router.add(path, method === 'GET' ? ['GET', 'HEAD'] : [method], open(route), route.surface),
    crossSite: (path) => router.add(path, ['OPTIONS']),
  })

  return {
    ...mountsOf(app.router),
    follow(current, mount) {
      let known = current()
      let router = new Router<ServerRoute>()
      mount(mountsOf(router), known)
      app.router.further = () => {
        const list = current()
        if (list !== known) {
          known = list
          router = new Router<ServerRoute>()
          mount(mountsOf(router), list)
        }
        return router
      }
    },
  }
}

function recordedCall({ id: requestId, method, raw, principal }: RequestContext, rule: RecordingPolicy): RecordedCall {
  const { accountId: account, keyId: key } = principal
  return { requestId, account, key, rule, method, path: withoutKey(raw.url ?? '') }
}

/** Some SDKs may put the key into the address. */
function withoutKey(url: string): string {
  const [path = '', query] = url.split('?', 2)
  if (query === undefined) return path
  const params = new URLSearchParams(query)
  params.delete('key')
  return params.size === 0 ? path : `${path}?${params}`
}
