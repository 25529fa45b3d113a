// The web server: limits and timeouts, request ids, dispatch, and the errors for unknown paths. The API runs on its own routes; the framework
// serves the operator API, the console, the documentation and everything else that is not an API endpoint.
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Principal } from '../admission/api-key.ts'
import type { Surface } from '../catalog/endpoint.ts'
import { PATH_PART_CHARS_MAX } from '../catalog/field.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { renamedHint } from '../kernel/renamed.ts'
import { newId, type World } from '../kernel/world.ts'
import { addressReader, isTrusted } from './address.ts'
import { drainBody, linkOf, takeWhole } from './body.ts'
import { CORS } from './caller.ts'
import { faultBody, faultHeaders, hasSdkMark, surfaceOf } from './envelope.ts'
import { type Place, Router } from './router.ts'

/** The handler of an API path. `preauthenticated`: a caller that another part of this server has already authenticated. */
export interface ApiRoute {
  run(
    request: IncomingMessage,
    response: ServerResponse,
    params: Readonly<Record<string, string>>,
    preauthenticated?: Principal,
  ): void
  /** Of a path that takes WebSockets. */
  upgrade?(request: IncomingMessage, link: Duplex, head: Buffer): void
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly router: Router<ApiRoute>
    /** The caller's network address, behind trusted proxies. */
    addressOf(request: IncomingMessage): string
    /** Hands a request to the handler of its path. */
    dispatch(request: IncomingMessage, response: ServerResponse, preauthenticated?: Principal): void
    /** Sets the deadline for a body that is read before its caller is authenticated. */
    bodyDeadline(response: ServerResponse): void
    /** Allows cross-origin requests to this path. */
    crossSite(url: string): void
    /** Resolves when every answered call is posted, so that a reader of the ledger finds it. */
    posted: () => Promise<void>
  }
  interface FastifyContextConfig {
    surface?: Surface
  }
}

interface ServerOptions {
  readonly world: World
  readonly log: Log
  /** Contract bodies only, even for SDKs. */
  readonly strictErrors: boolean
  /** The proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[]
  /** Bodies that arrive more slowly are cut off. */
  readonly bodyBytesPerSecondMin?: number
}

const STATUS_WORDS = { 400: 'Bad Request', 408: 'Request Timeout', 431: 'Request Header Fields Too Large' }
/** The largest body, unless an endpoint says otherwise. */
export const BODY_BYTES_MAX = 64 * 1024 * 1024
const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 300_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 32_768,
} as const
/** The deadline of a whole request whose caller is not authenticated. */
const STRANGER_MS = 15_000

export function createServer(options: ServerOptions): FastifyInstance {
  const { world, log, strictErrors, trustedProxies = [], bodyBytesPerSecondMin: bytesPerSecondMin = 1 } = options
  const router = new Router<ApiRoute>()
  const newRequestId = () => `req_${newId(world)}`
  let framework: (request: IncomingMessage, response: ServerResponse) => void = () => undefined

  const app = fastify({
    logger: false,
    serverFactory(handler) {
      framework = handler
      const upgrades = { shouldUpgradeCallback: (request: IncomingMessage) => socketRoute(request) !== undefined }
      const server = createHttpServer({ ...LIMITS, ...upgrades }, (request, response) => {
        linkOf(request.socket).response = response
        dispatch(request, response)
      })
      server.on('upgrade', (request: IncomingMessage, link: Duplex, head: Buffer) =>
        socketRoute(request)?.upgrade?.(request, link, head),
      )
      return server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseBytes(error.code, socket))
    },
    trustProxy: trustedProxies.length > 0 ? isTrusted(trustedProxies) : false,
    genReqId: newRequestId,
    bodyLimit: BODY_BYTES_MAX,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: {
      ignoreDuplicateSlashes: true,
      ignoreTrailingSlash: true,
      maxParamLength: PATH_PART_CHARS_MAX,
      // Endpoints parse the raw query themselves: frameworks merge and rename parameters that the contract distinguishes.
      querystringParser: () => ({}),
    },
    // No route uses the framework's schemas; its compilers would cost 50 ms at startup, and memory.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    frameworkErrors: (error, request, reply) => {
      sendFault(
        new Fault(error.code === 'FST_ERR_BAD_URL' ? 'request_invalid' : 'not_found', { cause: error }),
        request,
        reply,
      )
    },
  })

  function dispatch(request: IncomingMessage, response: ServerResponse, preauthenticated?: Principal): void {
    const { method = '', url = '/' } = request
    let found: ReturnType<typeof router.find>
    try {
      found = router.find(method, url)
    } catch {
      framework(request, response) // The framework rejects a path that cannot be decoded.
      return
    }
    const entry = found?.values && method !== 'OPTIONS' ? found.place.methods.get(method) : undefined
    if (entry?.route) entry.route.run(request, response, paramsOf(entry.names, found?.values), preauthenticated)
    else if (entry || url[0] !== '/') framework(request, response)
    else refusePath(request, response, found?.place)
  }

  /** What takes a WebSocket here; undefined: the request is answered like any other. */
  function socketRoute({ method = '', url = '/', headers }: IncomingMessage): ApiRoute | undefined {
    if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') return undefined
    try {
      const found = router.find(method, url)
      const route = found?.values && found.place.methods.get(method)?.route
      return route?.upgrade ? route : undefined
    } catch {
      return undefined // The path cannot be decoded.
    }
  }

  /** Rejects a request without a handler before its body is read. */
  function refusePath(request: IncomingMessage, response: ServerResponse, place: Place<ApiRoute> | undefined): void {
    const requestId = newRequestId()
    const ids = { 'x-request-id': requestId, 'request-id': requestId }
    if (drainBody(response)) setBodyDeadline(response)
    if (request.method === 'OPTIONS' && place?.methods.has('OPTIONS')) {
      response.writeHead(204, { ...ids, ...preflightHeaders(place) }).end()
      return
    }
    const fault = notTaken(request, place)
    // A path with an overlong id is still a known path, so its own surface applies.
    const surface = surfaceOf(request.url ?? '', fault.kind === 'not_found' ? place?.surface : undefined)
    const body = faultBody(fault, surface, { requestId, sdk: !strictErrors && hasSdkMark(request.headers) })
    response.writeHead(fault.status, {
      ...{ ...faultHeaders(fault), ...ids },
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  }

  /** Rejects bytes that are not valid HTTP, or a request that arrives too slowly. */
  function refuseBytes(code: string | undefined, socket: Socket): void {
    const status = code === 'HPE_HEADER_OVERFLOW' ? 431 : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
    const requestId = newRequestId()
    const fault = new Fault('request_invalid', { message: 'This is not a valid HTTP request.' })
    const body = faultBody(fault, 'native', { requestId, sdk: false })
    const { response } = linkOf(socket)
    const isAnswering = response?.headersSent === true && !response.writableFinished
    // In the middle of an answer, the caller would read a second one as part of the first.
    if (socket.writable && !socket.destroyed && !isAnswering)
      socket.end(
        `HTTP/1.1 ${status} ${STATUS_WORDS[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${requestId}\r\nconnection: close\r\n\r\n${body}`,
      )
    else socket.destroy()
  }

  function sendFault(fault: Fault, request: FastifyRequest, reply: FastifyReply): void {
    const surface = surfaceOf(request.url, request.routeOptions?.config?.surface)
    logFault(fault, request.id, log)
    if (reply.raw.headersSent) return
    reply
      .code(fault.status)
      .headers({ ...faultHeaders(fault), 'x-request-id': request.id, 'request-id': request.id })
      .send(faultBody(fault, surface, { requestId: request.id, sdk: !strictErrors && hasSdkMark(request.headers) }))
  }

  /** Limits the time for the body of an unauthenticated caller. */
  function setBodyDeadline(response: ServerResponse): void {
    const request = response.req
    if (request.complete) return
    const { socket } = request
    const cancel = world.after(STRANGER_MS, () => {
      if (response.headersSent) socket.destroy()
      else refuseBytes('ERR_HTTP_REQUEST_TIMEOUT', socket)
    })
    request.once('close', cancel)
  }

  app.decorate('router', router)
  app.decorate('dispatch', dispatch)
  app.decorate('addressOf', addressReader(trustedProxies))
  app.decorate('bodyDeadline', setBodyDeadline)
  app.decorate('posted', async () => undefined)
  // Not a route of the framework for each path: a sixth of all routes would exist only for preflight requests, whose answer is always the same.
  app.decorate('crossSite', (url: string) => router.add(inBraces(url), ['OPTIONS']))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', ({ raw, routeOptions }, _payload, done) => {
    const { bodyLimit: bytesMax = BODY_BYTES_MAX } = routeOptions
    const rules = { world, bytesPerSecondMin, bytesMax }
    takeWhole(raw, rules, null, { whole: (body) => done(null, body), failed: (error) => done(asFault(error)) })
  })
  app.addHook('onRoute', ({ url, method, config }) =>
    router.add(inBraces(url), [method].flat(), undefined, config?.surface),
  )
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('request-id', request.id)
    done(request.is404 ? new Fault('not_found') : undefined)
  })
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (drainBody(reply.raw)) setBodyDeadline(reply.raw)
    done()
  })
  app.setErrorHandler((error, request, reply) => {
    // A caller that disconnects in the middle of a body gets no answer, and it is not an error of the gateway.
    const { destroyed, complete } = request.raw
    sendFault(
      destroyed && !complete ? new Fault('request_invalid', { cause: error }) : frameworkFault(error),
      request,
      reply,
    )
  })
  return app
}

/** Turns a path of the framework into the router's notation. */
function inBraces(url: string): string {
  return url.replaceAll(/:(\w+)/g, '{$1}')
}

const NO_PARAMS: Readonly<Record<string, string>> = {}

function paramsOf(names: readonly string[], values: readonly string[] = []): Readonly<Record<string, string>> {
  if (names.length === 0) return NO_PARAMS
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']))
}

function noCompiler(): never {
  throw new Error('Routes have no schemas: bodies are read by the endpoints, answers are written by them.')
}

/** Logs the gateway's own faults with their cause for the operator. The caller gets only the general message. */
export function logFault(fault: Fault, requestId: string, log: Log): void {
  if ((fault.blame === 'gateway' || fault.kind === 'internal') && !fault.details.counted)
    log.error({ requestId, fault: fault.kind, ...fault.details.internal, error: fault.cause }, 'fault')
}

/** The answer to a CORS preflight. */
function preflightHeaders({ methods }: Place<ApiRoute>): Record<string, string> {
  const allow = [...methods.keys()].join(', ')
  return {
    ...CORS,
    allow,
    'access-control-allow-methods': allow,
    'access-control-allow-headers': '*, authorization',
    'access-control-max-age': '86400',
  }
}

function notTaken({ method = '', headers, url = '' }: IncomingMessage, place: Place<ApiRoute> | undefined): Fault {
  if (place && headers.upgrade?.toLowerCase() === 'websocket')
    return new Fault('no_websocket', {
      message: 'WebSockets are not offered here. Send a POST, with "stream": true for events.',
      // What the status is defined with: the protocol to use instead.
      headers: { upgrade: 'HTTP/1.1' },
    })
  // If the path accepts the method and still did not match, one of its parameters is too long.
  const message = renamedHint(url.split(/[/?]/))
  if (!place || place.methods.has(method)) return new Fault('not_found', message ? { message } : {})
  const allow = [...place.methods.keys()].join(', ')
  return new Fault('method_not_allowed', { message: `This path takes ${allow}.`, headers: { allow } })
}

/** Turns the framework's own errors into faults. */
function frameworkFault(error: unknown): Fault {
  const code = (error as { code?: unknown }).code
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH')
    return new Fault('request_invalid', { message: 'The body does not have the length that Content-Length says.' })
  if (typeof code === 'string' && code.startsWith('FST_ERR_CTP'))
    return new Fault('request_invalid', { message: 'Send the body as JSON with Content-Type: application/json.' })
  return asFault(error)
}

export function rawQuery({ raw: { url = '' } }: { readonly raw: IncomingMessage }): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}
