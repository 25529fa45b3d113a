// A caller who reads, dawdles or leaves, and remembers what it was told.
import { parseCredits } from '../../src/kernel/credits.ts'
import { GONE } from '../../src/pipeline/call.ts'
import type { Out } from '../../src/pipeline/out.ts'
import type { VirtualWorld } from './virtual-world.ts'

export class SimulatedCaller implements Out {
  readonly #gone = new AbortController()
  readonly #world: VirtualWorld
  started = false
  /** The answer, complete: with a charge when it was a new one, without when it was a replay. */
  complete: { readonly charge: bigint | undefined; readonly replayed: boolean } | undefined
  refused: number | undefined
  text = ''

  constructor(world: VirtualWorld) {
    this.#world = world
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  get left(): boolean {
    return this.#gone.signal.aborted
  }

  leave(): void {
    this.#gone.abort(GONE)
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

  write(piece: string | Buffer): Promise<void> | undefined {
    if (this.left) return undefined
    this.text += piece
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
