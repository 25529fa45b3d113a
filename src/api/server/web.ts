// Requests that are no calls of the API: the operator API, the console, the documentation, webhooks. A handler lets the
// caller in, then reads the body, and returns the answer. Whatever it throws is answered here.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Surface } from '../../catalog/endpoint.ts'
import { asFault, CLIENT_CLOSED, type Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { newId, type World } from '../../kernel/world.ts'
import { drainBody, takeWhole } from './body.ts'
import { writePiece } from './caller.ts'
import { faultBody, faultHeaders, hasSdkMark, logFault, surfaceOf } from './envelope.ts'

interface WebOptions {
  readonly world: World
  readonly log: Log
  readonly strictErrors: boolean
  readonly bytesPerSecondMin: number
  readonly addressOf: (request: IncomingMessage) => string
  readonly isHttps: (request: IncomingMessage) => boolean
  readonly refuseBytes: (code: string, socket: Socket) => void
}

export interface WebRequest {
  readonly id: string
  readonly raw: IncomingMessage
  readonly response: ServerResponse
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** By their names in the path; that of a star is `*`. */
  readonly params: Readonly<Record<string, string>>
  readonly resource: unknown
  /** The caller's network address, behind trusted proxies. */
  readonly ip: string
  readonly isHttps: boolean
  /** Reads the body. GET and HEAD have none. */
  body(bytesMax: number): Promise<Buffer>
}

/** What answers a request; undefined: it has answered by itself. */
export type WebHandle = (request: WebRequest) => WebAnswer | undefined | Promise<WebAnswer | undefined>

export interface WebAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer | AsyncIterable<string | Buffer>
}

/** The deadline of a whole request whose caller is not authenticated. */
export const STRANGER_MS = 15_000
const NOTHING = Buffer.alloc(0)

export const json = (value: unknown, headers: WebAnswer['headers'] = {}): WebAnswer => ({
  headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  body: JSON.stringify(value),
})

export const redirect = (location: string, status = 302): WebAnswer => ({ status, headers: { location } })

export function createWeb({ world, log, strictErrors, bytesPerSecondMin, ...given }: WebOptions) {
  const { addressOf, isHttps, refuseBytes } = given
  const web = {
    /** The caller's network address, behind trusted proxies. */
    addressOf,
    /** Sees every answer before it is sent; the tests compare answers with their schemas. */
    answered: (_request: WebRequest, _answer: WebAnswer): void => undefined,

    open(
      raw: IncomingMessage,
      response: ServerResponse,
      params: WebRequest['params'] = {},
      resource?: unknown,
    ): WebRequest {
      const { method = '', headers } = raw
      const hasBody = method !== 'GET' && method !== 'HEAD'
      return {
        raw,
        response,
        params,
        resource,
        method,
        headers,
        id: `req_${newId(world)}`,
        get ip() {
          return addressOf(raw)
        },
        get isHttps() {
          return isHttps(raw)
        },
        body: (bytesMax) =>
          new Promise((whole, failed) => {
            if (hasBody) takeWhole(raw, { world, bytesPerSecondMin, bytesMax }, null, { whole, failed })
            else whole(NOTHING)
          }),
      }
    },

    /** Limits the time for a body that is read before its caller is authenticated. */
    bodyDeadline(response: ServerResponse): void {
      const request = response.req
      if (request.complete) return
      const { socket } = request
      const cancel = world.after(STRANGER_MS, () => {
        if (response.headersSent) socket.destroy()
        else refuseBytes('ERR_HTTP_REQUEST_TIMEOUT', socket)
      })
      request.once('close', cancel)
    },

    async answer(request: WebRequest, handle: WebHandle): Promise<void> {
      try {
        const answer = await handle(request)
        if (answer) await web.send(request, answer)
      } catch (error) {
        web.fail(request, error)
      }
    },

    fail(request: WebRequest, error: unknown, surface?: Surface): void {
      const { id, raw, response, headers } = request
      // A caller that disconnects in the middle of a body gets no answer, and it is not an error of the gateway.
      const fault: Fault = raw.destroyed && !raw.complete ? CLIENT_CLOSED : asFault(error)
      logFault(fault, id, log)
      if (response.headersSent) {
        response.destroy()
        return
      }
      const sdk = !strictErrors && hasSdkMark(headers)
      const body = faultBody(fault, surfaceOf(raw.url ?? '', surface), { requestId: id, sdk })
      void web.send(request, { status: fault.status, headers: faultHeaders(fault), body })
    },

    async send(request: WebRequest, answer: WebAnswer): Promise<void> {
      const { id, response, method } = request
      const { status = 200, headers, body = '' } = answer
      web.answered(request, answer)
      const ids = { 'x-request-id': id, 'request-id': id }
      const begin = (more: Record<string, string | number>) => {
        if (drainBody(response)) web.bodyDeadline(response)
        response.writeHead(status, { ...ids, ...more, ...headers })
      }
      if (typeof body === 'string' || Buffer.isBuffer(body)) {
        if (response.destroyed) return
        begin(status === 204 || status === 304 ? {} : { 'content-length': Buffer.byteLength(body) })
        response.end(body)
        return
      }
      const pieces = body[Symbol.asyncIterator]()
      try {
        // The first piece is read before the status is sent, so that an error can still be an error status.
        let next = await pieces.next()
        if (!response.destroyed) begin({})
        for (; !next.done && !response.destroyed && method !== 'HEAD'; next = await pieces.next())
          await writePiece(response, next.value)
        if (!response.destroyed) response.end()
      } finally {
        await pieces.return?.()
      }
    },
  }
  return web
}
