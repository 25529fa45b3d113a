// Routes for what is written against `Request` and `Response`, the web's own types, such as the library of a protocol.
// The key is checked as for every endpoint; what answers never sees Node's request.
import { isIP } from 'node:net'
import type { Principal } from '../../admission/api-key.ts'
import type { Api, RequestContext } from '../../api/api.ts'
import { jsonBody } from '../../api/server/body.ts'
import type { Caller } from '../../api/server/caller.ts'
import { Fault } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import { plainAddress } from '../../upstream/address.ts'

export interface FetchCall {
  /** Its body is in `json`. */
  readonly request: Request
  readonly json: unknown
  readonly principal: Principal
  readonly requestId: string
}

interface FetchRoutes {
  /** Where callers reach this gateway. */
  readonly publicUrl: () => string
  readonly answer: (call: FetchCall) => Promise<Response>
  /** What a 401 says about how to come in. */
  readonly challenge: () => string
}

const BODY_BYTES_MAX = 16 * 1024 * 1024

export function mountFetch(api: Api, paths: readonly string[], options: FetchRoutes): void {
  for (const path of paths) {
    api.add('POST', path, {
      surface: 'native',
      alias: false,
      bodyBytesMax: BODY_BYTES_MAX,
      scope: 'mcp',
      isRecorded: false,
      challenge: () => ({ 'www-authenticate': options.challenge() }),
      before: (request) => checkHost(request, options.publicUrl()),
      handle: async (request, out) => relay(await options.answer(callOf(request, out)), out),
    })
    api.crossSite(path)
  }
}

/**
 * A page of a stranger can have its own name resolve to the machine that shows it, and then call what listens there as
 * if it were its own server. What comes from this machine therefore names it by a name that is known, or by an address.
 */
function checkHost({ raw, headers }: RequestContext, publicUrl: string): void {
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

function callOf(request: RequestContext, out: Caller): FetchCall {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one)
  // Nothing is asked at this address; only its path and query are read.
  const url = new URL(request.raw.url ?? '/', 'http://localhost')
  return {
    request: new Request(url, { method: request.method, headers, signal: out.signal }),
    json: messageOf(jsonBody(request)),
    principal: request.principal,
    requestId: request.id,
  }
}

/** Bounded like every body; a batch is an array, and is read as a member of an object for that. */
export function messageOf(bytes: Buffer): unknown {
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
