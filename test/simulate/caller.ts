// A caller who reads, dawdles or leaves, and remembers what it was told.
import { parseCredits } from '../../src/kernel/credits.ts'
import { CLIENT_CLOSED } from '../../src/kernel/fault.ts'
import type { ResponseSink } from '../../src/pipeline/response-sink.ts'
import type { VirtualWorld } from './virtual-world.ts'

export class SimulatedCaller implements ResponseSink {
  readonly #gone = new AbortController()
  readonly #world: VirtualWorld
  readonly #process: { readonly dead: boolean }
  started = false
  /** The answer, complete: with a charge when it was a new one, without when it was a replay. */
  complete: { readonly charge: bigint | undefined; readonly replayed: boolean } | undefined
  refused: number | undefined
  text = ''

  constructor(world: VirtualWorld, process: { readonly dead: boolean }) {
    this.#world = world
    this.#process = process
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  /** Nothing reaches a caller who has gone, nor from a process that is dead. */
  get left(): boolean {
    return this.#gone.signal.aborted || this.#process.dead
  }

  leave(): void {
    this.#gone.abort(CLIENT_CLOSED)
  }

  send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    if (this.left || this.started) return
    this.started = true
    this.text = String(body)
    if (status !== 200) {
      this.refused = status
      return
    }
    const charge = headers['x-tollgate-charge']
    this.complete = {
      charge: charge === undefined ? undefined : parseCredits(charge),
      replayed: headers['idempotent-replayed'] === 'true',
    }
  }

  startStream(): void {
    this.started = true
  }

  write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
    if (this.left) return undefined
    this.text += typeof piece === 'string' ? Buffer.from(piece, encoding) : piece
    return this.#world.chance.is(0.2) ? this.#world.pause(this.#world.chance.below(2_000)) : undefined
  }

  end(piece: string | Buffer): void {
    if (this.left) return
    this.text += piece
    if (this.text.includes('"error"')) return
    const charge = /^: tollgate charge=(\S+)/m.exec(this.text)?.[1]
    this.complete = { charge: charge === undefined ? undefined : parseCredits(charge), replayed: false }
  }

  destroy(): void {
    this.leave()
  }
}
