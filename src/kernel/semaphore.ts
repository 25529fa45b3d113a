// A semaphore: at most `unitsMax` units at once. The others wait in a bounded queue, first come, first served.
import type { World } from './world.ts'

export interface SemaphoreRules {
  readonly unitsMax: number
  readonly waitersMax: number
  /** The error when the queue is full, or after `patience.waitMs`. */
  refusal(): Error
  /** Absent: a caller waits until there is room, or until its signal aborts. */
  readonly patience?: { readonly world: World; readonly waitMs: number }
}

export class Semaphore {
  /** May change while it is in use. */
  rules: SemaphoreRules
  #used = 0
  readonly #line: { readonly units: number; admit(): void }[] = []

  constructor(rules: SemaphoreRules) {
    this.rules = rules
  }

  get used(): number {
    return this.#used
  }

  get waiting(): number {
    return this.#line.length
  }

  /** Takes them if there is room and nobody waits. */
  tryTake(units = 1): boolean {
    if (this.#line.length > 0) this.#serveLine()
    if (this.#line.length > 0 || !this.#fits(units)) return false
    this.#used += units
    return true
  }

  /**
   * Undefined: they are taken. Throws the refusal when the line is full; rejects with it, or with the signal's reason.
   */
  take(units = 1, signal?: AbortSignal): Promise<void> | undefined {
    // The usual case: nobody waits, and there is room.
    if (this.#line.length === 0 && this.#used + units <= this.rules.unitsMax) {
      this.#used += units
      return undefined
    }
    if (this.tryTake(units)) return undefined
    if (this.#line.length >= this.rules.waitersMax) throw this.rules.refusal()
    return this.#wait(units, signal)
  }

  give(units = 1): void {
    this.#used -= units
    if (this.#line.length > 0) this.#serveLine()
  }

  #fits(units: number): boolean {
    // One that is larger than everything there is may run when it is alone.
    return this.#used + units <= this.rules.unitsMax || this.#used === 0
  }

  #serveLine(): void {
    // Strictly in order, so that a large one is not overtaken for ever.
    for (let next = this.#line[0]; next && this.#fits(next.units); next = this.#line[0]) {
      this.#line.shift()
      this.#used += next.units
      next.admit()
    }
  }

  #wait(units: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const { patience } = this.rules
    return new Promise((resolve, reject) => {
      const leave = (reason: unknown) => {
        stop()
        const at = this.#line.indexOf(waiter)
        if (at >= 0) this.#line.splice(at, 1)
        reject(reason)
        this.#serveLine()
      }
      const onAbort = () => leave(signal?.reason)
      const cancel = patience?.world.after(patience.waitMs, () => leave(this.rules.refusal()))
      const stop = () => {
        cancel?.()
        signal?.removeEventListener('abort', onAbort)
      }
      const waiter = {
        units,
        admit() {
          stop()
          resolve()
        },
      }
      signal?.addEventListener('abort', onAbort)
      this.#line.push(waiter)
    })
  }
}
