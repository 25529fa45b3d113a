// The web server: limits and time-outs, request ids, one place where a fault becomes an answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import fastify, {
  type FastifyContextConfig,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Principal } from '../admission/api-key.ts'
import type { Surface } from '../catalog/endpoint.ts'
import { PATH_PART_CHARS_MAX } from '../catalog/field.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { newId, type World } from '../kernel/world.ts'
import { type ByteLease, SMALL_BODY_BYTES } from '../upstream/budget.ts'
import { wholeBody } from './body.ts'
import { faultBody, faultHeaders, hasSdkMark, surfaceOf } from './envelope.ts'
import { KnownPaths, withModelAsPart } from './known-paths.ts'
import { linkOf } from './link.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** For a body that is read before it is known who sends it. */
    hurry(response: ServerResponse): void
    /** A way past the framework, for requests that need nothing of it; it answers whether it took one. */
    shortcut: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
    /** Browsers of other sites may call what is at this path. */
    crossSite(url: string): void
    /** Whoever reads the books finds in them what was answered before. */
    booked: () => Promise<void>
    /** Hears of what is refused. */
    refused: ((fault: Fault, visit: RefusedVisit) => void) | undefined
  }
  interface FastifyRequest {
    principal: Principal | null
    /** The memory that its body takes, where that is counted. */
    lease: ByteLease | null
  }
  interface FastifyContextConfig {
    surface?: Surface
    /** Reached by a path that only SDKs use. */
    alias?: boolean
    /** Of a paid endpoint. */
    endpoint?: string
  }
}

export type RefusedVisit = Pick<FastifyRequest, 'id' | 'principal'> & {
  readonly routeOptions: { readonly config?: FastifyContextConfig }
}

interface ServerOptions {
  readonly world: World
  readonly log: Log
  /** Contract bodies only, even for SDKs. */
  readonly strictErrors: boolean
  /** Whose X-Forwarded-For is believed. */
  readonly trustedProxies?: readonly string[]
  /** Bodies that arrive more slowly are cut off. */
  readonly bodyBytesPerSecondMin?: number
}

const STATUS_WORDS = { 400: 'Bad Request', 408: 'Request Timeout', 431: 'Request Header Fields Too Large' }
const BODY_BYTES_MAX = 64 * 1024 * 1024
const HEADERS_MS = 10_000
const REQUEST_MS = 300_000
/** A whole request of somebody whom nobody knows. */
const STRANGER_MS = 15_000
const LINGER_MS = 1_000
/** A body that we will not read is cut off with the connection, beyond what is under way anyhow. */
const UNREAD_BYTES_MAX = SMALL_BODY_BYTES

/** What the answers of the API bear besides what each says of itself, for browsers of other sites. */
export const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'x-request-id, request-id, retry-after, retry-after-ms, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-tollgate-charge, x-tollgate-required, x-tollgate-available, x-should-retry, x-tollgate-route, x-tollgate-left-out, idempotent-replayed, x-cache',
} as const

export function createServer(options: ServerOptions): FastifyInstance {
  const { world, log, strictErrors, trustedProxies = [], bodyBytesPerSecondMin: bytesPerSecondMin = 1 } = options
  const app = fastify({
    logger: false,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    genReqId: () => `req_${newId(world)}`,
    bodyLimit: BODY_BYTES_MAX,
    rewriteUrl: ({ url = '/' }) => withModelAsPart(url),
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: { headersTimeout: HEADERS_MS, connectionsCheckingInterval: 2_000, maxHeaderSize: 32_768 },
    routerOptions: {
      ignoreDuplicateSlashes: true,
      ignoreTrailingSlash: true,
      maxParamLength: PATH_PART_CHARS_MAX,
      // The raw query is read by whoever needs it: frameworks merge and rename what the contract keeps apart.
      querystringParser: () => ({}),
    },
    // No route has a schema of the framework's; its compilers would cost a start 50 ms and their memory.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    frameworkErrors: (error, request, reply) => {
      sendFault(
        new Fault(error.code === 'FST_ERR_BAD_URL' ? 'request_invalid' : 'not_found', { cause: error }),
        request,
        reply,
      )
    },
    clientErrorHandler(error, socket) {
      const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
      const requestId = `req_${newId(world)}`
      const body = faultBody(new Fault('request_invalid', { message: 'This is not a valid HTTP request.' }), 'native', {
        requestId,
        sdk: false,
      })
      // In the middle of an answer, a second one would be read as part of the first.
      if (socket.writable && !socket.destroyed && !isAnswering(socket))
        socket.end(
          `HTTP/1.1 ${status} ${STATUS_WORDS[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${requestId}\r\nconnection: close\r\n\r\n${body}`,
        )
      else socket.destroy()
    },
  })

  const [framework] = app.server.listeners('request')
  app.server.removeAllListeners('request')
  app.server.on('request', (request, response) => {
    linkOf(request.socket).response = response
    if (!app.shortcut?.(request, response)) framework?.call(app.server, request, response)
  })

  function isAnswering(socket: Socket): boolean {
    const { response } = linkOf(socket)
    return response?.headersSent === true && !response.writableFinished
  }

  function sendFault(fault: Fault, request: FastifyRequest, reply: FastifyReply): void {
    // An id that is too long for the router reaches no route; the path is known all the same.
    const known = request.is404 && fault.kind === 'not_found' ? paths.surfaceAt(request.raw.url ?? '') : undefined
    const surface = surfaceOf(request.url, request.routeOptions?.config?.surface ?? known)
    const sdk = !strictErrors && (request.routeOptions?.config?.alias === true || hasSdkMark(request.headers))
    logFault(fault, request.id, log)
    const headers = { ...faultHeaders(fault), 'x-request-id': request.id, 'request-id': request.id }
    if (reply.raw.headersSent) return
    reply
      .code(fault.status)
      .headers(headers)
      .send(faultBody(fault, surface, { requestId: request.id, sdk }))
    app.refused?.(fault, request)
  }

  /** What of a body has not come by then, from somebody whom nobody knows, is not waited for. */
  function hurry(response: ServerResponse): void {
    const request = response.req
    if (request.complete) return
    const { socket } = request
    const cancel = world.after(STRANGER_MS, () => {
      if (response.headersSent) socket.destroy()
      else
        app.server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket)
    })
    request.once('close', cancel)
  }

  app.decorate('hurry', hurry)
  app.decorate('shortcut', undefined)
  app.decorate('booked', async () => undefined)
  app.decorate('refused', undefined)
  app.decorateRequest('principal', null)
  app.decorateRequest('lease', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', ({ raw, lease, routeOptions }, _payload, done) => {
    const { bodyLimit: bytesMax = BODY_BYTES_MAX } = routeOptions
    wholeBody(raw, { world, bytesPerSecondMin, bytesMax }, lease).then((body) => done(null, body), done)
  })
  const paths = new KnownPaths()
  app.addHook('onRoute', ({ url, method, config }) => paths.add(url, [method].flat(), config?.surface))
  // Not a route for each: a sixth of all routes would be there for a question that is the same for all.
  app.decorate('crossSite', (url: string) => paths.add(url, ['OPTIONS']))
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('request-id', request.id)
    if (!request.is404) return done()
    const methods = paths.methodsAt(request.raw.url ?? '')
    if (request.method === 'OPTIONS' && methods?.has('OPTIONS')) answerPreflight(reply, methods)
    // Before the framework would read the body of a request that nobody takes.
    else done(notTaken(request, methods))
  })
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (leaveBody(reply.raw)) hurry(reply.raw)
    done()
  })
  app.setErrorHandler((error, request, reply) => {
    // Whoever hangs up in the middle of a body hears nothing more, and it is no fault of ours.
    const { destroyed, complete } = request.raw
    sendFault(
      destroyed && !complete ? new Fault('request_invalid', { cause: error }) : frameworkFault(error),
      request,
      reply,
    )
  })
  return app
}

function noCompiler(): never {
  throw new Error('Routes have no schemas: bodies are read by the endpoints, answers are written by them.')
}

/** What is our own doing is told to the operator, with its cause; the caller reads only the table's text. */
export function logFault(fault: Fault, requestId: string, log: Log): void {
  if ((fault.blame === 'us' || fault.kind === 'internal') && !fault.details.counted)
    log.error({ requestId, fault: fault.kind, ...fault.details.internal, error: fault.cause }, 'fault')
}

/**
 * To be called before an answer is written: what its request's body still holds must not stand before the next request. A
 * short rest is read and thrown away, which `true` says; a long one, or one that nobody can read any more, ends with the
 * connection.
 */
export function leaveBody(response: ServerResponse): boolean {
  const { req: request, socket } = response
  if (request.readableEnded || !hasBody(request)) return false
  // What somebody began to read piece by piece, and left, nobody else can throw away.
  const isLeft = request.destroyed || request.listenerCount('readable') > 0
  if (!isLeft && (request.complete || !mayBeLong(request))) {
    response.once('finish', () => request.resume())
    return true
  }
  response.shouldKeepAlive = false
  if (socket) socket.destroySoon = () => linger(socket)
  return false
}

/** To close at once what is still being written to resets the connection, and a reset can overtake the answer. */
function linger(socket: Socket): void {
  socket.end()
  socket.setTimeout(LINGER_MS, () => socket.destroy())
  // Node is about to read what is left and throw it away.
  setImmediate(() => socket.pause())
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Nothing more is read of a long body until it is known whose it is. */
export function holdBack(request: IncomingMessage): void {
  if (mayBeLong(request)) request.socket.pause()
}

/** Whether it is worth counting, or may be. */
export function mayBeLong(request: IncomingMessage): boolean {
  const length = Number(request.headers['content-length'] ?? 0)
  return length > UNREAD_BYTES_MAX || request.headers['transfer-encoding'] !== undefined
}

/** For browsers of other sites, which ask first. Answered before a body would be read. */
function answerPreflight(reply: FastifyReply, methods: ReadonlySet<string>): void {
  const allow = [...methods].join(', ')
  reply
    .headers({
      ...CORS,
      allow,
      'access-control-allow-methods': allow,
      'access-control-allow-headers': '*, authorization',
      'access-control-max-age': '86400',
    })
    .code(204)
    .send()
}

function notTaken(
  { method, headers }: Pick<FastifyRequest, 'method' | 'headers'>,
  methods: ReadonlySet<string> | undefined,
): Fault {
  if (methods && headers.upgrade?.toLowerCase() === 'websocket')
    return new Fault('request_invalid', {
      message: 'WebSockets are not offered here. Send a POST, with "stream": true for events.',
    })
  // A path that takes the method and was not found has a part that is too long, or is spelt in a way that the router refuses.
  if (!methods || methods.has(method)) return new Fault('not_found')
  const allow = [...methods].join(', ')
  return new Fault('method_not_allowed', { message: `This path takes ${allow}.`, headers: { allow } })
}

/** The framework's own refusals, in our words. */
function frameworkFault(error: unknown): Fault {
  const code = (error as { code?: unknown }).code
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH')
    return new Fault('request_invalid', { message: 'The body does not have the length that Content-Length says.' })
  if (typeof code === 'string' && code.startsWith('FST_ERR_CTP'))
    return new Fault('request_invalid', { message: 'Send the body as JSON with Content-Type: application/json.' })
  return asFault(error)
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json *(?:;.*)?$/i

/** Bodies are JSON: other types are refused, a missing type is forgiven. */
export function jsonBody(request: Pick<FastifyRequest, 'headers' | 'body'>): Buffer {
  const type = request.headers['content-type']
  if (type !== undefined && !JSON_TYPE.test(type))
    throw new Fault('request_invalid', {
      message: `Send the body as JSON with Content-Type: application/json; ${JSON.stringify(type.slice(0, 60))} is not accepted.`,
    })
  const body = request.body
  if (!Buffer.isBuffer(body) || body.length === 0)
    throw new Fault('request_invalid', { message: 'The request has no body; send a JSON object.' })
  return body
}

export function rawQuery(request: Pick<FastifyRequest, 'raw'>): string {
  const url = request.raw.url ?? ''
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}
