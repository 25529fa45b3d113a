// Handshakes of WebSockets on which calls are made, each like a request of its own.
import type { Duplex } from 'node:stream'
import { type Principal, requireEndpoint } from '../../admission/api-key.ts'
import { type Api, type Door, RequestContext } from '../../api/api.ts'
import type { EndpointSpec } from '../../catalog/endpoint.ts'
import { accessNameOf } from '../../catalog/endpoint-access.ts'
import { asFault, Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { every } from '../../kernel/timers.ts'
import { newId, type World } from '../../kernel/world.ts'
import { openaiError } from '../../protocols/vendor-fault.ts'
import { type CallerSocket, CLOSE, type SocketListener, type Sockets } from './caller-sockets.ts'

/** How often the key of an open socket is checked without a change: it may expire. */
const RECHECK_MS = 15_000

/** What a handshake opens. Throws for a credential that does not open it. */
export type SocketHandle = (request: RequestContext) => {
  /** The key in whose name a browser opens it; absent: the request shows its key. */
  readonly keyId?: string | undefined
  readonly listen: (session: SocketSession) => SocketListener
}

/** A WebSocket on which calls are made. */
export interface SocketSession extends Pick<Door, 'record' | 'refused'> {
  readonly socket: CallerSocket
  /** That of the handshake. */
  readonly request: RequestContext
  /** A call with an id of its own, whose key is not checked yet. */
  call(): RequestContext
  /** Checks the key anew, as that of every request. */
  enter(call: RequestContext): Promise<void>
}

interface HandshakeDeps {
  readonly api: Api
  readonly sockets: Sockets
  readonly world: World
  readonly log: Log
}

export function mountSocket(deps: HandshakeDeps, spec: EndpointSpec, handle: SocketHandle): void {
  const { api } = deps
  const endpoint = accessNameOf(spec) ?? spec.id
  const route = {
    surface: spec.surface,
    endpoint,
    check: (principal: Principal) => requireEndpoint(principal, spec),
    isRecorded: true,
    handle: socketsOnly,
    async upgrade(request: RequestContext, link: Duplex, head: Buffer, door: Door) {
      if (hasKeyInAddress(request.raw.url ?? '')) await refuseAddress(deps.sockets, request, link, head)
      else await open(deps, { request, link, head, door }, handle(request))
    },
  }
  for (const [index, path] of [spec.path, ...spec.aliases].entries()) {
    api.add('GET', path, { ...route, alias: index > 0 })
    api.crossSite(path)
  }
}

function socketsOnly(): never {
  throw new Fault('websocket_required', { headers: { upgrade: 'websocket' } })
}

/** A browser does not see the answer to a handshake, so this is said on the socket. */
async function refuseAddress(sockets: Sockets, { raw, id }: RequestContext, link: Duplex, head: Buffer): Promise<void> {
  const message =
    'The address contains a credential, which others can read there (in logs, for example). Replace the credential, and send the new one in a header.'
  const fault = new Fault('key_missing', { message })
  const asked = { request: raw, link, head, account: '' }
  const accepted = sockets.accept(asked, (socket) => {
    socket.send(JSON.stringify({ type: 'error', status: fault.status, error: openaiError(fault), request_id: id }))
    socket.close(CLOSE.policy, message)
    return { frame: (_text, lease) => lease.release() }
  })
  // Of strangers, few get a socket.
  await accepted.catch((error: unknown) => {
    throw asFault(error).status === 429 ? fault : error
  })
}

interface Handshake {
  readonly request: RequestContext
  readonly link: Duplex
  readonly head: Buffer
  readonly door: Door
}

async function open(
  { sockets, world, log }: HandshakeDeps,
  { request, link, head, door }: Handshake,
  { keyId, listen }: ReturnType<SocketHandle>,
): Promise<void> {
  const { raw, route, params } = request
  const { keys, record, refused } = door
  const check = async (call: RequestContext) => {
    call.known = await (keyId === undefined ? door.authenticate(call) : keys.behind(keyId))
    route.check?.(call.known, params)
  }
  const enter = async (call: RequestContext) => {
    await check(call)
    await door.admit()
  }
  await enter(request)
  const { accountId: account } = request.principal
  await sockets.accept({ request: raw, link, head, account }, (socket) => {
    const call = () => new RequestContext(raw, `req_${newId(world)}`, route, params)
    // A key that ends closes its sockets, also those on which nothing happens.
    const recheck = () =>
      check(call()).catch((error: unknown) => {
        const { status, message } = asFault(error)
        if (status === 401 || status === 403) socket.close(CLOSE.policy, message)
      })
    const unwatch = [keys.whenChanged(() => void recheck()), every(world, RECHECK_MS, recheck, log)]
    const stopWatching = () => {
      for (const stop of unwatch) stop()
    }
    socket.signal.addEventListener('abort', stopWatching, { once: true })
    return listen({ socket, request, enter, record, call, refused })
  })
}

const KEY_NAMES = /^(?:api[-_]?key|key|token|access_token|authorization|secret|client_secret)$/i

function hasKeyInAddress(url: string): boolean {
  const mark = url.indexOf('?')
  return mark >= 0 && [...new URLSearchParams(url.slice(mark + 1)).keys()].some((name) => KEY_NAMES.test(name))
}
