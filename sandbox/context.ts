// One request and its answer, as the rooms see them.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { World } from '../src/kernel/world.ts'
import type { CallLog, SeenCall } from './log.ts'
import type { Memory } from './memory.ts'
import { Refusal } from './refusal.ts'
import type { Variation } from './variation.ts'

/** The most of a body that the log keeps. */
const BODY_TEXT_MAX = 64 * 1024

type Given = Pick<
  RoomContext,
  'world' | 'speed' | 'baseUrl' | 'path' | 'query' | 'log' | 'call' | 'memory' | 'variation'
>

export class RoomContext {
  readonly world: World
  /** How many times faster than a real vendor: 1 is lifelike, Infinity does not wait. */
  readonly speed: number
  /** The sandbox's own address, without a trailing slash. */
  readonly baseUrl: string
  readonly path: string
  readonly query: URLSearchParams
  readonly log: CallLog
  /** This request's entry in the log. */
  readonly call: SeenCall
  readonly memory: Memory
  /** How text answers are written; undefined: plainly. */
  readonly variation: Variation | undefined
  isGone = false
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  /** What waits for this exchange to end. */
  readonly #waiting = new Set<() => void>()

  constructor(req: IncomingMessage, res: ServerResponse, given: Given) {
    this.#req = req
    this.#res = res
    this.world = given.world
    this.speed = given.speed
    this.baseUrl = given.baseUrl
    this.path = given.path
    this.query = given.query
    this.log = given.log
    this.call = given.call
    this.memory = given.memory
    this.variation = given.variation
    res.once('close', () => {
      this.isGone = true
      this.call.status = res.statusCode
      this.log.callEnded(this.call, res.writableFinished ? 'finished' : 'aborted', this.world.elapsedMs())
      for (const wake of this.#waiting) wake()
    })
  }

  /** The whole request body. Rooms that take large uploads read `req` themselves. */
  body(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const pieces: Buffer[] = []
      let bytes = 0
      this.#req.on('data', (piece: Buffer) => {
        pieces.push(piece)
        bytes += piece.length
      })
      this.#req.once('error', reject)
      this.#req.once('end', () => {
        const whole = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)
        this.call.bodyBytes = bytes
        if (bytes <= BODY_TEXT_MAX) this.call.body = whole.toString('utf8')
        resolve(whole)
      })
    })
  }

  json(status: number, value: unknown, headers: Record<string, string> = {}, text = JSON.stringify(value)): void {
    if (this.isGone) return
    this.#res.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      ...headers,
    })
    this.#res.end(text)
  }

  /** Answers with a refusal in the words of a vendor; whatever else went wrong is thrown on. */
  refuse(
    error: unknown,
    body: (status: number, message: string, param: string | null, code: string | null) => unknown,
  ) {
    if (!(error instanceof Refusal)) throw error
    this.json(error.status, body(error.status, error.message, error.param, error.code))
  }

  /** Waits; true while the client is still there. */
  pause(ms: number): Promise<boolean> {
    if (this.isGone) return Promise.resolve(false)
    return new Promise((resolve) => {
      const wake = () => {
        cancel()
        resolve(false)
      }
      const cancel = this.world.after(ms, () => {
        this.#waiting.delete(wake)
        resolve(!this.isGone)
      })
      this.#waiting.add(wake)
    })
  }

  /** Resolves when the client has gone, so that a stalled answer can be held open and let go. */
  gone(): Promise<void> {
    if (this.isGone) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.add(resolve))
  }

  /** Breaks the connection, as a vendor's crash would. */
  cut(): void {
    this.call.status = this.#res.statusCode
    this.log.callEnded(this.call, 'cut', this.world.elapsedMs())
    this.#res.destroy()
  }
}
