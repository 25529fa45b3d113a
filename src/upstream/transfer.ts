// One request and its answer on a vendor's connection: the deadlines, the abort and the backpressure of a single call.
import { Fault, type FaultName } from '../kernel/fault.ts'
import { type Follower, follow, unfollow } from '../kernel/slot-set.ts'
import type { World } from '../kernel/world.ts'
import type { Deadlines, UpstreamReply } from './call.ts'
import type { Connection, Receiver } from './connection.ts'
import { type DeadlineWatch, Patience, type Watched } from './deadline.ts'
import { gather, ownMemory } from './pieces.ts'

/** The most bytes in memory before a consumer reads the answer's body. */
const UNCLAIMED_BYTES_MAX = 65_536
/** After backpressure has held the vendor this long in all, a broken connection counts as our consumer's fault. */
const PATIENCE_MS = 10_000

type Phase = 'connect' | 'first-byte' | 'body' | 'done'
type OnData = (chunk: Buffer) => Promise<void> | undefined

interface Consumer {
  readonly onData: OnData
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}

export interface TransferOptions {
  readonly world: World
  readonly watch: DeadlineWatch
  readonly deadlines: Deadlines
  readonly signal: AbortSignal
  /** Gets the connection back, once, when it is free for the next call. */
  readonly connections?: { give(connection: Connection): void }
}

/** The consumer of an answer that was read at once. */
const NOBODY: Consumer = { onData: () => undefined, resolve() {}, reject() {} }

export class Transfer implements Receiver, UpstreamReply, Watched, Follower {
  status = 0
  headers: Readonly<Record<string, string>> = {}

  readonly #watch: DeadlineWatch
  readonly #watched: number
  readonly #world: World
  readonly #deadlines: Deadlines
  readonly #signal: AbortSignal
  readonly #followed: number
  readonly #reply: Pick<PromiseWithResolvers<UpstreamReply>, 'resolve' | 'reject'>
  readonly #patience: Patience
  readonly #connection: Connection

  #phase: Phase = 'connect'
  #connections: TransferOptions['connections']
  #sent = false
  /** The reply was returned to the caller: from now on, failures go to the consumer of the body. */
  #answered = false
  /** Why this side gave up. Set once; later errors of the socket are ignored. */
  #givenUp: { readonly reason: unknown } | undefined
  #broken: { readonly reason: unknown } | undefined

  #consumer: Consumer | undefined
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** The consumer has not taken the last piece yet. */
  #busy = false

  constructor(
    connection: Connection,
    options: TransferOptions,
    reply: Pick<PromiseWithResolvers<UpstreamReply>, 'resolve' | 'reject'>,
  ) {
    this.#connection = connection
    this.#world = options.world
    this.#watch = options.watch
    this.#deadlines = options.deadlines
    this.#signal = options.signal
    this.#reply = reply
    this.#patience = new Patience(options.deadlines, options.world.elapsedMs())
    this.#connections = options.connections
    this.#followed = follow(options.signal, this)
    this.#watched = options.watch.add(this)
  }

  // ---- Callbacks of the connection.

  onOpen(): boolean {
    if (this.#givenUp) {
      // The caller left while the connection was being made.
      this.#free()
      return false
    }
    this.#sent = true
    this.#phase = 'first-byte'
    this.#patience.alive(this.#deadlines.firstByteMs)
    return true
  }

  /** A long upload is not silence: the deadline for the answer starts with the last piece that the socket took. */
  onSent(): void {
    if (this.#phase === 'first-byte') this.#patience.alive(this.#deadlines.firstByteMs)
  }

  onHead(status: number, headers: Readonly<Record<string, string>>): void {
    this.#phase = 'body'
    this.#patience.alive(this.#deadlines.idleMs)
    this.status = status
    this.headers = headers
    const encoding = headers['content-encoding']
    if (encoding !== undefined && !/^(identity)?$/i.test(encoding)) {
      // We asked for no encoding, and decoding would allow bodies that unpack to gigabytes.
      this.#giveUp(new Fault('upstream_garbled', { internal: { phase: 'first-byte', why: 'the answer is encoded' } }))
      return
    }
    this.#answered = true
    this.#reply.resolve(this)
  }

  onPiece(piece: Buffer): void {
    this.#waiting.push(this.#busy || (!this.#consumer && this.#waiting.length > 0) ? ownMemory(piece) : piece)
    this.#waitingBytes += piece.length
    if (this.#waitingBytes >= UNCLAIMED_BYTES_MAX) this.#connection.pause()
    this.#patience.alive(this.#deadlines.idleMs)
    if (this.#consumer && !this.#busy) this.#pump()
  }

  onEnd(): void {
    this.#free()
    this.#leave()
    if (this.#consumer) this.#settle()
  }

  onBroken(error: unknown): void {
    this.#free()
    if (this.#phase === 'done') return
    const phase = this.#phase
    const code = (error as { code?: unknown }).code
    const held = this.#patience.heldMs(this.#world.elapsedMs()) >= PATIENCE_MS ? { heldBack: true } : {}
    const fault = new Fault(faultOf(code), { internal: { phase, sent: this.#sent, code, ...held }, cause: error })
    this.#leave()
    this.#broken = { reason: fault }
    if (phase === 'body') this.#settle()
    else this.#fail(fault)
  }

  // ---- The reply's methods.

  read(bytesMax: number): Promise<Buffer> {
    // The usual case: the whole body came with the headers.
    if (this.isHere && !this.#consumer && this.#waitingBytes <= bytesMax) {
      this.#consumer = NOBODY
      this.letGo()
      return Promise.resolve(joined(this.#waiting, this.#waitingBytes))
    }
    return this.#readOn(bytesMax)
  }

  async #readOn(bytesMax: number): Promise<Buffer> {
    const announced = Number(this.headers['content-length'] ?? 0)
    if (announced > bytesMax) this.#giveUp(tooLarge(bytesMax))
    const chunks: Buffer[] = []
    let bytes = 0
    await this.pipe((chunk) => {
      bytes += chunk.length
      if (bytes > bytesMax) throw tooLarge(bytesMax)
      chunks.push(chunks.length === 0 ? chunk : ownMemory(chunk))
      return undefined
    })
    return joined(chunks, bytes)
  }

  pipe(onData: OnData): Promise<void> {
    if (this.#consumer) throw new Error('The answer of a vendor can be read only once.')
    return new Promise((resolve, reject) => {
      this.#consumer = { onData, resolve, reject }
      this.#pump()
    })
  }

  aborted(reason: unknown): void {
    this.#giveUp(reason)
  }

  get isHere(): boolean {
    return this.#phase === 'done' && !this.#givenUp && !this.#broken
  }

  letGo(): void {
    unfollow(this.#signal, this.#followed, this)
  }

  abort(): void {
    this.#giveUp(new Fault('upstream_failed', { internal: { phase: this.#phase, sent: this.#sent, why: 'aborted' } }))
  }

  slept(ms: number): void {
    this.#patience.slept(ms)
  }

  look(nowMs: number): number {
    const isHeldBack = this.#phase === 'body' && this.#connection.isPaused
    const exceeded = this.#patience.exceeded(nowMs, isHeldBack)
    if (!exceeded) return this.#patience.dueMs
    const quiet = this.#phase === 'body' ? 'idle' : this.#phase
    const phase = exceeded === 'quiet' ? quiet : 'total'
    const held = exceeded === 'held' ? { heldBack: true } : {}
    this.#giveUp(new Fault('upstream_timeout', { internal: { phase, sent: this.#sent, ...held } }))
    return nowMs
  }

  // ---- Between connection and consumer.

  #free(): void {
    this.#connections?.give(this.#connection)
    this.#connections = undefined
  }

  /** Hands over one piece, and pauses the vendor's socket until the consumer has taken it. */
  #hand(consumer: Consumer, chunk: Buffer): void {
    let taken: Promise<void> | undefined
    this.#busy = true
    try {
      taken = consumer.onData(chunk)
    } catch (error) {
      this.#giveUp(error)
    }
    if (taken === undefined) {
      this.#busy = false
      return
    }
    if (this.#phase !== 'done') this.#connection.pause()
    this.#patience.hold(this.#world.elapsedMs())
    taken.then(
      () => {
        this.#patience.goOn(this.#world.elapsedMs())
        this.#busy = false
        this.#pump()
      },
      (error) => {
        this.#giveUp(error)
        this.#busy = false
      },
    )
  }

  /** Hands over the waiting pieces, and resumes the socket. */
  #pump(): void {
    const consumer = this.#consumer
    while (consumer && !this.#busy && !this.#givenUp && this.#waiting.length > 0) {
      const chunk = gather(this.#waiting)
      this.#waitingBytes -= chunk.length
      this.#hand(consumer, chunk)
    }
    if (this.#busy) return
    if (this.#phase === 'done') this.#settle()
    else if (this.#connection.isPaused) {
      this.#patience.alive(this.#deadlines.idleMs)
      this.#connection.resume()
    }
  }

  /** Resolves or rejects the consumer once it has taken all data. */
  #settle(): void {
    const consumer = this.#consumer
    if (!consumer || (!this.#givenUp && this.#unread())) return
    this.letGo()
    const failure = this.#givenUp ?? this.#broken
    if (failure) consumer.reject(failure.reason)
    else consumer.resolve()
  }

  /** Rejects a call that has no answer yet. */
  #fail(reason: unknown): void {
    this.letGo()
    this.#reply.reject(reason)
  }

  #giveUp(reason: unknown): void {
    if (this.#givenUp || (this.#phase === 'done' && !this.#unread())) return
    const isUnderWay = this.#sent && this.#phase !== 'done'
    this.#givenUp = { reason }
    this.#waiting = []
    this.#leave()
    if (isUnderWay) {
      this.#connection.abort()
      this.#free()
    }
    if (this.#answered) this.#settle()
    else this.#fail(reason)
  }

  #unread(): boolean {
    return this.#busy || this.#waiting.length > 0
  }

  /** The exchange is over on the connection, or its consumer is gone. */
  #leave(): void {
    this.#phase = 'done'
    this.#watch.remove(this.#watched, this)
  }
}

function faultOf(code: unknown): FaultName {
  return code === 'ETIMEDOUT' ? 'upstream_timeout' : 'upstream_failed'
}

function tooLarge(bytesMax: number): Fault {
  return new Fault('upstream_garbled', { internal: { phase: 'body', why: 'the answer is too large', bytesMax } })
}

function joined(chunks: readonly Buffer[], bytes: number): Buffer {
  const [first] = chunks
  return first && chunks.length === 1 ? first : Buffer.concat(chunks, bytes)
}
