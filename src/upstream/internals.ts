// All code that relies on undocumented internals of Node. The tests beside this file check each assumption against the
// version in the lockfile: run them first when you upgrade it.
import type { IncomingMessage } from 'node:http'
import { Server, type Socket } from 'node:net'

/** Accepts no new connections but keeps idle ones open: `close` of an HTTP server would close them at once. */
export function stopAccepting(server: Server): void {
  Server.prototype.close.call(server)
}

/** Calls `run` instead of closing a connection after its last answer was written: Node closes it by `destroySoon`. */
export function whenLastIsWritten(socket: Socket, run: () => void): void {
  socket.destroySoon = run
}

/** Whether an iterator reads the request, or did and stopped: an iterator listens until the request has ended. */
export function isReadInPieces(request: IncomingMessage): boolean {
  return request.listenerCount('readable') > 0
}
