// Routes for what is written against `Request` and `Response`, the web's own types, such as the library of a protocol. The key
// is checked as for every endpoint; what answers never sees the web framework.
import { isIP } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ApiKeys, Principal } from '../admission/api-key.ts'
import { Fault } from '../kernel/fault.ts'
import { readJson } from '../kernel/json.ts'
import type { Log } from '../kernel/log.ts'
import { plainAddress } from '../upstream/address.ts'
import type { Caller } from './caller.ts'
import { authenticate, leaseBody, onPath, type RoutesOptions } from './routes.ts'
import { CORS, holdBack, jsonBody, mayBeLong } from './server.ts'

export interface FetchCall {
  /** Its body is in `json`. */
  readonly request: Request
  readonly json: unknown
  readonly principal: Principal
  readonly requestId: string
}

interface FetchRoutes {
  readonly keys: ApiKeys
  readonly admit: RoutesOptions['admit']
  readonly budget: RoutesOptions['budget']
  readonly strictErrors: boolean
  readonly log: Log
  /** Where callers reach this gateway. */
  readonly publicUrl: () => string
  readonly answer: (call: FetchCall) => Promise<Response>
  /** What a 401 says about how to come in. */
  readonly challenge: () => string
}

const BODY_BYTES_MAX = 16 * 1024 * 1024

export function mountFetch(app: FastifyInstance, paths: readonly string[], options: FetchRoutes): void {
  for (const url of paths) {
    app.route({
      method: 'POST',
      url,
      bodyLimit: BODY_BYTES_MAX,
      config: { surface: 'native' },
      async onRequest(request, reply) {
        reply.headers({ ...CORS, 'www-authenticate': options.challenge() })
        holdBack(request.raw)
        checkHost(request, options.publicUrl())
        request.principal = await authenticate(request, options.keys, { tokens: true })
        reply.removeHeader('www-authenticate')
        if (mayBeLong(request.raw)) leaseBody(request, reply.raw, options.budget)
        await options.admit()
      },
      handler(request, reply) {
        reply.hijack()
        onPath(request, reply.raw, options, async (out) => relay(await options.answer(callOf(request, out)), out))
      },
    })
    app.crossSite(url)
  }
}

/**
 * A page of a stranger can have its own name resolve to the machine that shows it, and then call what listens there as if it
 * were its own server. What comes from this machine therefore names it by a name that is known, or by an address.
 */
function checkHost({ raw, headers }: FastifyRequest, publicUrl: string): void {
  if (!isLoopback(raw.socket.remoteAddress ?? '')) return
  const named = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  if (named === 'localhost' || isIP(named) !== 0 || named === new URL(publicUrl).hostname) return
  throw new Fault('access_denied', {
    message:
      'This server is not known by the name in the Host header. Use localhost, an address, or the name in PUBLIC_URL.',
  })
}

function isLoopback(address: string): boolean {
  const plain = plainAddress(address)
  return plain === '::1' || plain.startsWith('127.')
}

function callOf(request: FastifyRequest, out: Caller): FetchCall {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one)
  // Nothing is asked at this address; only its path and query are read.
  const url = new URL(request.raw.url ?? '/', 'http://localhost')
  return {
    request: new Request(url, { method: request.method, headers, signal: out.signal }),
    json: messageOf(jsonBody(request)),
    // The hook before the handler has found it.
    principal: request.principal!,
    requestId: request.id,
  }
}

/** Bounded like every body; a batch is an array, and is read as a member of an object for that. */
function messageOf(bytes: Buffer): unknown {
  return readJson(Buffer.concat([Buffer.from('{"message":'), bytes, Buffer.from('}')])).value.message
}

async function relay(response: Response, out: Caller): Promise<void> {
  const headers = Object.fromEntries(response.headers)
  const streams = headers['content-type']?.startsWith('text/event-stream')
  if (!streams || !response.body) return out.send(response.status, headers, Buffer.from(await response.arrayBuffer()))
  out.startStream(headers)
  const reader = response.body.getReader()
  const leave = () => void reader.cancel().catch(() => undefined)
  out.signal.addEventListener('abort', leave)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      await out.write(Buffer.from(value))
    }
  } finally {
    out.signal.removeEventListener('abort', leave)
  }
  out.end('')
}
