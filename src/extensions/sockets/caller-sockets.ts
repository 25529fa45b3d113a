// WebSockets of callers: how many there may be, the memory of their frames, pings, and their end at shutdown.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket, WebSocketServer } from 'ws'
import { CLIENT_CLOSED, Fault } from '../../kernel/fault.ts'
import type { World } from '../../kernel/world.ts'
import { type ByteBudget, type ByteLease, SMALL_BODY_BYTES } from '../../upstream/budget.ts'

/** The codes of RFC 6455 by which a socket ends. */
export const CLOSE = { leaving: 1001, binary: 1003, policy: 1008, failed: 1011, busy: 1013 } as const

/** A caller's socket. */
export interface CallerSocket {
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal
  /** Something runs on it: until the function that it returns is called, a shutdown and the end of its time wait. */
  begin(): () => void
  /** Undefined while the caller keeps up; else a promise that resolves when it has read on, or has gone. */
  send(text: string): Promise<void> | undefined
  /** Like `send`, about a frame that is wrong: too many of them in a row end the socket. */
  sendError(text: string): Promise<void> | undefined
  /** The process is being stopped: what runs may end, nothing more begins. */
  readonly isLeaving: boolean
  /** Ends it with a reason, after what was sent. */
  close(code: number, reason: string): void
  destroy(): void
}

export interface SocketListener {
  /** A whole text frame, and the memory that it takes. No more is read until the promise resolves. */
  frame(text: Buffer, lease: ByteLease): Promise<void> | undefined | void
  /** The socket has lived as long as one may. */
  expired?(): void
  /** Called once. */
  gone?(): void
}

export type Sockets = ReturnType<typeof createSockets>

interface Handshake {
  readonly request: IncomingMessage
  readonly link: Duplex
  readonly head: Buffer
  readonly account: string
}

interface SocketOptions {
  readonly world: World
  readonly budget: Pick<ByteBudget, 'open'>
  /** In this process. An account may have as many as it leaves free for others. */
  readonly socketsMax: number
}

const FRAME_BYTES_MAX = 16 * 1024 * 1024
/** A caller that has so much to read makes the vendor wait. */
const UNREAD_BYTES_MAX = 65_536
const PING_MS = 30_000
/** The longest that a socket lives, as at the vendors. */
const LIFE_MS = 3_600_000
/** How long a caller may take to answer the end of its socket. */
const CLOSE_MS = 2_000
/** Wrong frames in a row. */
const WRONG_MAX = 50
/** Sockets of callers that have shown no key. */
const STRANGERS_MAX = 16
const REASON_BYTES_MAX = 120

class Connection implements CallerSocket {
  readonly account: string
  readonly #socket: WebSocket
  readonly #gone = new AbortController()
  readonly #budget: Pick<ByteBudget, 'open'>
  readonly #world: World
  readonly openedMs: number
  #running = 0
  isAlive = true
  isLeaving = false
  listener: SocketListener | undefined
  /** Of the frame that is arriving. */
  #lease: ByteLease
  #bytes = 0
  /** Wrong frames since the last right one. */
  #wrong = 0

  constructor(socket: WebSocket, account: string, { world, budget }: SocketOptions) {
    this.#socket = socket
    this.account = account
    this.#world = world
    this.#budget = budget
    this.#lease = budget.open(account)
    this.openedMs = world.elapsedMs()
    // An error is followed by the close.
    socket.on('error', () => undefined)
    socket.on('pong', () => {
      this.isAlive = true
    })
    socket.on('message', (data, isBinary) => {
      // ws hands over one buffer a message unless another type was asked for.
      this.#message(data as Buffer, isBinary)
    })
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  get isIdle(): boolean {
    return this.#running === 0
  }

  begin(): () => void {
    this.#running += 1
    return () => {
      this.#running -= 1
      if (this.isLeaving) this.leave()
    }
  }

  /** At shutdown. */
  leave(): void {
    this.isLeaving = true
    if (this.isIdle) this.close(CLOSE.leaving, 'The gateway is being stopped. Connect again.')
  }

  closed(): void {
    this.#gone.abort(CLIENT_CLOSED)
    this.#lease.release()
    this.listener?.gone?.()
  }

  /** Counts what arrives before it is a whole frame: while the budget has no room, no more is read. */
  arrived({ length }: Buffer): void {
    this.isAlive = true
    this.#bytes += length
    const more = this.#bytes - this.#lease.bytes
    if (this.#bytes <= SMALL_BODY_BYTES || more < SMALL_BODY_BYTES) return
    this.#socket.pause()
    this.#lease.grow(more, this.signal).then(
      () => this.#socket.resume(),
      () => {
        this.#socket.resume()
        this.close(CLOSE.busy, 'Too many large requests are in progress. Try again shortly.')
      },
    )
  }

  #message(data: Buffer, isBinary: boolean): void {
    const lease = this.#lease
    this.#lease = this.#budget.open(this.account)
    this.#bytes = 0
    if (isBinary) {
      lease.release()
      this.close(CLOSE.binary, 'Frames must be text: JSON events. Sound is base64 in them.')
    } else if (this.#socket.readyState === this.#socket.OPEN) {
      const wrong = this.#wrong
      const full = this.listener?.frame(data, lease)
      if (this.#wrong === wrong) this.#wrong = 0
      if (!full) return
      this.#socket.pause()
      const resume = () => this.#socket.resume()
      full.then(resume, resume)
    } else lease.release()
  }

  send(text: string): Promise<void> | undefined {
    const socket = this.#socket
    if (socket.readyState !== socket.OPEN) return undefined
    if (socket.bufferedAmount < UNREAD_BYTES_MAX) {
      socket.send(text)
      return undefined
    }
    return new Promise((resolve) => socket.send(text, () => resolve()))
  }

  sendError(text: string): Promise<void> | undefined {
    this.#wrong += 1
    const full = this.send(text)
    if (this.#wrong >= WRONG_MAX) this.close(CLOSE.policy, `${WRONG_MAX} frames in a row were wrong.`)
    return full
  }

  close(code: number, reason: string): void {
    const socket = this.#socket
    if (socket.readyState !== socket.OPEN) return
    try {
      socket.close(code, cut(reason))
    } catch {
      socket.terminate()
    }
    const cancel = this.#world.after(CLOSE_MS, () => socket.terminate())
    socket.once('close', cancel)
  }

  destroy(): void {
    this.#socket.terminate()
  }

  get isPaused(): boolean {
    return this.#socket.isPaused
  }

  ping(): void {
    this.isAlive = false
    this.#socket.ping()
  }
}

/** As much as a close frame holds, in whole characters. */
function cut(reason: string): string {
  const { read } = new TextEncoder().encodeInto(reason, new Uint8Array(REASON_BYTES_MAX))
  return reason.slice(0, read)
}

export function createSockets(options: SocketOptions) {
  const { world, socketsMax } = options
  const open = new Set<Connection>()
  const held = new Map<string, number>()
  let taken = 0
  let isLeaving = false
  let server: Promise<WebSocketServer> | undefined
  let stopSweep: (() => void) | undefined

  /** Loaded when the first one comes. */
  function load(): Promise<WebSocketServer> {
    server ??= import('ws').then(
      ({ WebSocketServer: Server }) =>
        new Server({
          noServer: true,
          clientTracking: false,
          perMessageDeflate: false,
          maxPayload: FRAME_BYTES_MAX,
          // Of what a browser offers, the credential among it must not be repeated.
          handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
        }),
    )
    return server
  }

  function take(account: string): () => void {
    // Codex goes on over HTTP at once then, instead of trying again.
    if (socketsMax === 0) throw new Fault('no_websocket')
    const own = held.get(account) ?? 0
    const free = socketsMax - taken - 1
    if (isLeaving) throw new Fault('unavailable', { message: 'This process is being stopped. Connect again.' })
    const isStrange = account === '' && own >= STRANGERS_MAX
    if (isStrange || free < 0 || (own > 0 && own + 1 > free))
      throw new Fault('rate_limited', { message: 'Too many WebSockets are open. Close some, or try again later.' })
    taken += 1
    held.set(account, own + 1)
    let isGiven = false
    return () => {
      if (isGiven) return
      isGiven = true
      taken -= 1
      const left = (held.get(account) ?? 1) - 1
      if (left > 0) held.set(account, left)
      else held.delete(account)
    }
  }

  /** One timer for all of them. */
  function sweep(): void {
    for (const one of open) {
      // While this process does not read a socket, it sees no pong either.
      if (!one.isAlive && !one.isPaused) one.destroy()
      else one.ping()
      if (!one.isIdle || world.elapsedMs() - one.openedMs < LIFE_MS) continue
      one.listener?.expired?.()
      one.close(CLOSE.policy, 'A WebSocket lives for 60 minutes at most. Connect again.')
    }
    stopSweep = world.after(PING_MS, sweep)
  }

  function add(one: Connection): void {
    open.add(one)
    stopSweep ??= world.after(PING_MS, sweep)
  }

  function remove(one: Connection): void {
    open.delete(one)
    one.closed()
    if (open.size > 0) return
    stopSweep?.()
    stopSweep = undefined
  }

  return {
    get open() {
      return open.size
    },
    /** Throws when there are too many. `listen` is called when the handshake is done, before a frame is read. */
    async accept(asked: Handshake, listen: (socket: CallerSocket) => SocketListener): Promise<void> {
      const { request, link, head, account } = asked
      const give = take(account)
      link.once('close', give)
      const upgrader = await load()
      if (link.destroyed) return give()
      upgrader.handleUpgrade(request, link, head, (socket) => {
        const one = new Connection(socket, account, options)
        add(one)
        socket.on('close', () => remove(one))
        // Before the reader of frames, which may have a whole one then.
        link.prependListener('data', (piece: Buffer) => one.arrived(piece))
        one.listener = listen(one)
      })
    },
    /** Ends those that do nothing now, and the others when what they do has ended. */
    drain() {
      isLeaving = true
      for (const one of open) one.leave()
    },
    destroy() {
      for (const one of open) one.destroy()
    },
  }
}
