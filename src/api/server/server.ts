// The web server: limits and timeouts, dispatch, and the errors for unknown paths.
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Principal } from '../../admission/api-key.ts'
import { insteadOf } from '../../catalog/not-offered.ts'
import { asFault, Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { newId, type World } from '../../kernel/world.ts'
import { SURFACES } from '../../protocols/text/formats.ts'
import { addressReader, httpsReader } from './address.ts'
import { linkOf } from './body.ts'
import { CORS } from './caller.ts'
import { faultBody, logFault } from './envelope.ts'
import { type Place, Router } from './router.ts'
import { createWeb, STRANGER_MS, type WebHandle, type WebRequest } from './web.ts'

/** What answers at a path. `preauthenticated`: a caller that another part of this server has already authenticated. */
export interface Route {
  run(
    request: IncomingMessage,
    response: ServerResponse,
    params: Readonly<Record<string, string>>,
    preauthenticated?: Principal,
  ): void
  /** Of a path that takes WebSockets. */
  upgrade?(request: IncomingMessage, link: Duplex, head: Buffer): void
  readonly handle?: WebHandle
  /** The resource of the operator API that answers here, for the tests. */
  readonly resource?: unknown
}

export type WebServer = ReturnType<typeof createServer>

/** A server that answers what arrives at another. */
type Elsewhere =
  | {
      readonly dispatch: (request: IncomingMessage, response: ServerResponse) => void
      readonly upgrade: (request: IncomingMessage, link: Duplex, head: Buffer) => void
    }
  | undefined

type Diversion = (request: IncomingMessage) => Elsewhere | Promise<Elsewhere>

/** The answer to a handshake for which nobody is there. */
const UNAVAILABLE =
  'HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'

const STATUS_WORDS = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
}
/**
 * The parser takes any list that ends in "chunked", such as "gzip, chunked", and would hand on what is still
 * compressed.
 */
const CODINGS = /^chunked$/i
const UNKNOWN_CODING = 'UNKNOWN_CODING'
const REFUSED: Readonly<Record<string, keyof typeof STATUS_WORDS>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  [UNKNOWN_CODING]: 501,
}
/** The largest body, unless an endpoint says otherwise. */
export const BODY_BYTES_MAX = 64 * 1024 * 1024
const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 300_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 32_768,
} as const

export function createServer(options: {
  readonly world: World
  readonly log: Log
  /** Contract bodies only, even for SDKs. */
  readonly strictErrors: boolean
  /** The proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[]
  /** Bodies that arrive more slowly are cut off. */
  readonly bodyBytesPerSecondMin?: number
}) {
  const { world, log, strictErrors, trustedProxies = [], bodyBytesPerSecondMin: bytesPerSecondMin = 1 } = options
  const router = new Router<Route>()
  const web = createWeb({
    world,
    log,
    strictErrors,
    bytesPerSecondMin,
    refuseBytes,
    addressOf: addressReader(trustedProxies),
    isHttps: httpsReader(trustedProxies),
  })
  const upgrades = { shouldUpgradeCallback: (request: IncomingMessage) => socketRoute(request) !== undefined }
  const server = createHttpServer({ ...LIMITS, ...upgrades }, (request, response) => {
    const { socket, headers } = request
    if (socket.writableEnded) return // What follows a refused request on its connection is not read.
    linkOf(socket).response = response
    if (!CODINGS.test(headers['transfer-encoding'] ?? 'chunked')) refuseBytes(UNKNOWN_CODING, socket)
    else if (elsewhere) void divert(request, response, elsewhere)
    else dispatch(request, response)
  })
  server.on('upgrade', (request: IncomingMessage, link: Duplex, head: Buffer) => {
    if (!elsewhere) return upgrade(request, link, head)
    void divertUpgrade(request, link, head, elsewhere)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseBytes(error.code, socket))

  let elsewhere: Diversion | undefined

  async function divert(request: IncomingMessage, response: ServerResponse, by: Diversion): Promise<void> {
    try {
      const found = by(request)
      const other = found instanceof Promise ? await found : found
      ;(other?.dispatch ?? dispatch)(request, response)
    } catch (error) {
      web.fail(web.open(request, response), error)
    }
  }

  async function divertUpgrade(request: IncomingMessage, link: Duplex, head: Buffer, by: Diversion): Promise<void> {
    // A caller may hang up before it is known who reads.
    link.on('error', () => link.destroy())
    link.pause()
    try {
      const other = await by(request)
      link.resume()
      ;(other?.upgrade ?? upgrade)(request, link, head)
    } catch (error) {
      logFault(asFault(error), `req_${newId(world)}`, log)
      endLink(link.resume(), world, UNAVAILABLE)
    }
  }

  function upgrade(request: IncomingMessage, link: Duplex, head: Buffer): void {
    socketRoute(request)?.upgrade?.(request, link, head)
  }

  /** Hands a request to the handler of its path. */
  function dispatch(request: IncomingMessage, response: ServerResponse, preauthenticated?: Principal): void {
    const { method = '', url = '/' } = request
    let found: ReturnType<typeof router.find>
    try {
      found = router.find(method, url)
    } catch (cause) {
      web.fail(web.open(request, response), new Fault('request_invalid', { cause })) // The path cannot be decoded.
      return
    }
    const entry = found?.values && found.place.methods.get(method)
    if (entry?.route) {
      const params = entry.names.length === 0 ? NO_PARAMS : paramsOf(entry.names, found?.values)
      entry.route.run(request, response, params, preauthenticated)
    } else refusePath(web.open(request, response), found?.place)
  }

  /** What takes a WebSocket here; undefined: the request is answered like any other. */
  function socketRoute({ method = '', url = '/', headers }: IncomingMessage): Route | undefined {
    if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') return undefined
    try {
      const found = router.find(method, url)
      const route = found?.values && found.place.methods.get(method)?.route
      return route?.upgrade ? route : undefined
    } catch {
      return undefined // The path cannot be decoded.
    }
  }

  /** Answers a request without a handler before its body is read. */
  function refusePath(request: WebRequest, place: Place<Route> | undefined): void {
    if (request.method === 'OPTIONS' && place?.methods.has('OPTIONS')) {
      web.send(request, { status: 204, headers: preflightHeaders(place) })
      return
    }
    const fault = notTaken(request.raw, place)
    // A path with an overlong id is still a known path, so its own surface applies.
    web.fail(request, fault, fault.kind === 'not_found' ? place?.surface : undefined)
  }

  /** Rejects bytes that are not valid HTTP, or a request that arrives too slowly. */
  function refuseBytes(code: string | undefined, socket: Socket): void {
    const status = REFUSED[code ?? ''] ?? 400
    const requestId = `req_${newId(world)}`
    const fault = new Fault('request_invalid', { message: 'This is not a valid HTTP request.' })
    const body = faultBody(fault, 'native', { requestId, sdk: false })
    const { response } = linkOf(socket)
    const isAnswering = response?.headersSent === true && !response.writableFinished
    // In the middle of an answer, the caller would read a second one as part of the first.
    if (socket.writable && !socket.destroyed && !isAnswering)
      endLink(
        socket,
        world,
        `HTTP/1.1 ${status} ${STATUS_WORDS[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${requestId}\r\nconnection: close\r\n\r\n${body}`,
      )
    else socket.destroy()
  }

  /** Adds a route, of a GET for HEAD too. */
  function add(method: string, path: string, handle: WebHandle, resource?: unknown): void {
    const run = (raw: IncomingMessage, response: ServerResponse, params: Readonly<Record<string, string>>) =>
      void web.answer(web.open(raw, response, params, resource), handle)
    router.add(path, method === 'GET' ? ['GET', 'HEAD'] : [method], { run, handle, resource })
  }

  /** What this request's caller would get at another address, where the credentials are checked again. */
  async function within(request: WebRequest, method: string, url: string, body?: object) {
    const found = router.find(method, url)
    const entry = found?.place.methods.get(method)
    if (!entry?.route?.handle) throw new Fault('not_found')
    const raw: IncomingMessage = Object.create(request.raw, { method: { value: method }, url: { value: url } })
    const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body))
    const { authorization } = request.headers
    const headers = { authorization, accept: 'application/json', 'content-type': 'application/json' }
    const params = paramsOf(entry.names, found?.values)
    return entry.route.handle({ ...request, raw, method, headers, params, body: async () => bytes })
  }

  return Object.assign(web, {
    server,
    router,
    dispatch,
    upgrade,
    /** Has each request that arrives here answered by the server that `by` says; undefined: by this one. */
    divert(by: Diversion): void {
      elsewhere = by
    },
    add,
    within,
    get: (path: string, handle: WebHandle) => add('GET', path, handle),
    /** Allows cross-origin requests to this path. */
    crossSite: (path: string) => router.add(path, ['OPTIONS']),
    /** What connections that are no longer HTTP do at a shutdown: end what is idle, and at last everything. */
    upgraded: { drain() {}, destroy() {} },
    /** Resolves when every answered call is posted, so that a reader of the ledger finds it. */
    posted: async (): Promise<void> => undefined,
    /** Resolves with the address. */
    async listen({ port, host }: { port: number; host: string }): Promise<string> {
      server.listen(port, host)
      await once(server, 'listening')
      const { address, family, port: chosen } = server.address() as AddressInfo // It listens on a port.
      const reached = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
      return `http://${family === 'IPv6' && reached === address ? `[${reached}]` : reached}:${chosen}`
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  })
}

/**
 * Ends a connection after these bytes. The sides close one by one: a caller that keeps its own open, or sends on, is
 * cut off.
 */
export function endLink(link: Duplex, world: World, bytes = ''): void {
  link.end(bytes)
  link.once(
    'close',
    world.after(STRANGER_MS, () => link.destroy()),
  )
}

const NO_PARAMS: Readonly<Record<string, string>> = {}

function paramsOf(names: readonly string[], values: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']))
}

/** The answer to a CORS preflight. */
function preflightHeaders({ methods }: Place<Route>): Record<string, string> {
  const allow = [...methods.keys()].join(', ')
  return {
    ...CORS,
    allow,
    'access-control-allow-methods': allow,
    'access-control-allow-headers': '*, authorization',
    'access-control-max-age': '86400',
  }
}

function notTaken({ method = '', headers, url = '' }: IncomingMessage, place: Place<Route> | undefined): Fault {
  if (place && headers.upgrade?.toLowerCase() === 'websocket')
    return new Fault('no_websocket', {
      message: 'WebSockets are not offered here. Send a POST, with "stream": true for events.',
      // What the status is defined with: the protocol to use instead.
      headers: { upgrade: 'HTTP/1.1' },
    })
  // If the path accepts the method and still did not match, one of its parameters is too long.
  const message = insteadOf(url, Object.values(SURFACES))
  if (!place || place.methods.has(method)) return new Fault('not_found', message ? { message } : {})
  const allow = [...place.methods.keys()].join(', ')
  return new Fault('method_not_allowed', { message: `This path takes ${allow}.`, headers: { allow } })
}

export function rawQuery({ raw: { url = '' } }: { readonly raw: IncomingMessage }): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}
