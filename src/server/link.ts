// What is known of a caller's connection beyond one request. It is kept on the socket itself: a map from sockets would be looked into several
// times for every call.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { KeyMemory } from '../admission/api-key.ts'
import { CLIENT_CLOSED } from '../kernel/fault.ts'

const LINK: unique symbol = Symbol('link')

declare module 'node:net' {
  interface Socket {
    [LINK]?: Link
  }
}

interface Link {
  /** The calls of a connection share one: whoever closes the connection has left all of them. */
  readonly signal: AbortSignal
  /** The last one that was begun. */
  response: ServerResponse | undefined
  readonly key: KeyMemory
  /** A body came too slowly: nothing more is read from it. */
  isCut: boolean
}

export function linkOf(socket: Socket): Link {
  const known = socket[LINK]
  if (known) return known
  const gone = new AbortController()
  const link: Link = { signal: gone.signal, response: undefined, key: {}, isCut: false }
  socket[LINK] = link
  if (socket.destroyed) gone.abort(CLIENT_CLOSED)
  else socket.once('close', () => gone.abort(CLIENT_CLOSED))
  return link
}
