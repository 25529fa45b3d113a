// The WebSocket client for vendors, with the same rules as the HTTP client: their addresses come from the catalog,
// redirects are not followed.
import type { WebSocket } from 'ws'
import { Fault } from '../../../kernel/fault.ts'
import { isMetadataHost } from '../../../upstream/address.ts'
import type { Deadlines, HttpCall, UpstreamReply } from '../../../upstream/call.ts'
import { lookUpVendor } from '../../../upstream/exchange.ts'

export type VendorSocket = ReturnType<typeof vendorSocket>

export interface VendorListener {
  /** Before any frame. */
  opened(socket: VendorSocket): void
  frame(text: Buffer): void
  /** Called once, whichever side closed it. */
  gone(code: number): void
}

const FRAME_BYTES_MAX = 16 * 1024 * 1024
const UNREAD_BYTES_MAX = 1024 * 1024
const ERROR_BYTES_MAX = 262_144
const CLOSE_MS = 2_000

/** Resolves when the vendor has accepted the handshake, or answered it with an error. */
export async function openVendorSocket(
  call: HttpCall,
  { deadlines, signal }: { deadlines: Deadlines; signal: AbortSignal },
  listener: VendorListener,
): Promise<UpstreamReply> {
  const url = URL.parse(call.url.replace(/^http/, 'ws'))
  if (!url || isMetadataHost(url.hostname))
    throw new Fault('upstream_failed', { internal: { why: 'no address, or one of metadata', sent: false } })
  const { WebSocket: Client } = await import('ws')
  signal.throwIfAborted()
  const options = {
    headers: call.headers,
    perMessageDeflate: false,
    followRedirects: false,
    maxPayload: FRAME_BYTES_MAX,
    handshakeTimeout: deadlines.connectMs,
    lookup: lookUpVendor,
  }
  const socket = new Client(url, options)
  return new Promise((resolve, reject) => {
    const failed = (error: unknown) =>
      reject(signal.aborted ? signal.reason : new Fault('upstream_failed', { cause: error, internal: { sent: false } }))
    const leave = () => socket.terminate()
    signal.addEventListener('abort', leave)
    socket.once('error', failed)
    socket.on('error', () => undefined) // Followed by the close.
    socket.on('message', (data) => listener.frame(data as Buffer)) // ws hands over one buffer a message.
    socket.on('close', (code) => {
      signal.removeEventListener('abort', leave)
      listener.gone(code)
    })
    socket.once('unexpected-response', (_request, response) => {
      const pieces: Buffer[] = []
      let bytes = 0
      response.on('data', (piece: Buffer) => {
        bytes += piece.length
        if (bytes <= ERROR_BYTES_MAX) pieces.push(piece)
      })
      response.on('error', failed)
      response.on('end', () => {
        socket.terminate()
        resolve(replyOf(response.statusCode ?? 502, Buffer.concat(pieces)))
      })
    })
    socket.once('open', () => {
      signal.removeEventListener('abort', leave)
      listener.opened(vendorSocket(socket))
      resolve(replyOf(200, Buffer.alloc(0)))
    })
  })
}

function replyOf(status: number, body: Buffer): UpstreamReply {
  return {
    status,
    headers: {},
    read: async () => body,
    pipe: async () => undefined,
    letGo: () => undefined,
    abort: () => undefined,
  }
}

function vendorSocket(socket: WebSocket) {
  return {
    /** Undefined while the vendor keeps up; else a promise that resolves when it has read on, or has gone. */
    send(text: string): Promise<void> | undefined {
      if (socket.readyState !== socket.OPEN) return undefined
      if (socket.bufferedAmount < UNREAD_BYTES_MAX) {
        socket.send(text)
        return undefined
      }
      return new Promise((resolve) => socket.send(text, () => resolve()))
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close() {
      socket.close(1000)
      const timer = setTimeout(() => socket.terminate(), CLOSE_MS)
      socket.once('close', () => clearTimeout(timer))
    },
  }
}
