// An operator who moves an account to another ledger: by the real mover, which may die at any of its words to a
// database, and is started again until it has done its work.
import type { Database, Queryable } from '../../src/database/database.ts'
import { MoveRefused } from '../../src/extensions/moving/move.ts'
import { cancelWithin, type MoveWithin, moveWithin } from '../../src/extensions/moving/places.ts'
import { Died, dieAt } from '../dying.ts'
import type { Line } from './faulty-database.ts'
import type { VirtualWorld } from './virtual-world.ts'

/** Its words; a move has some four hundred. */
const WORDS_MAX = 500
const AGAIN_MS_MAX = 4_000
const WAIT_MS = 4_000
const REFUSALS_MAX = 3

export class Mover {
  readonly #world: VirtualWorld
  readonly #lines: ReadonlyMap<string, Line>
  readonly #account: string
  #last = Promise.resolve()
  /** Moves that have not ended. */
  busy = 0
  moved = 0

  constructor(world: VirtualWorld, lines: ReadonlyMap<string, Line>, account: string) {
    this.#world = world
    this.#lines = lines
    this.#account = account
  }

  /** One after the other. `mayDie` is asked before each try. */
  move(to: string, mayDie: () => boolean): Promise<void> {
    this.busy += 1
    this.#last = this.#last.then(() => this.#move(to, mayDie))
    return this.#last.finally(() => {
      this.busy -= 1
    })
  }

  async #move(to: string, mayDie: () => boolean): Promise<void> {
    const { chance } = this.#world
    for (let refused = 0; refused < REFUSALS_MAX; ) {
      const about = this.#about(to, mayDie() ? 1 + chance.below(WORDS_MAX) : Number.MAX_SAFE_INTEGER)
      try {
        await moveWithin(about)
        this.moved += 1
        this.#world.note(`${this.#account} has moved to ${to}`)
        return
      } catch (error) {
        this.#world.note(`${this.#account} does not move to ${to}: ${error}`)
        if (error instanceof MoveRefused) refused += 1
        else if (!(error instanceof Died)) throw error
        if (error instanceof MoveRefused && refused === REFUSALS_MAX) await this.#cancel(to)
        else await this.#world.pause(chance.below(AGAIN_MS_MAX))
      }
    }
  }

  /** Whoever gives up takes it back, unless it had not begun. */
  async #cancel(to: string): Promise<void> {
    await cancelWithin(this.#about(to, Number.MAX_SAFE_INTEGER)).catch((error: unknown) => {
      if (!(error instanceof MoveRefused)) throw error
    })
  }

  #about(to: string, diesAt: number): MoveWithin {
    const databases = dieAt(diesAt, this.#databases())
    const places = new Map(
      [...this.#lines.keys()].map((name, n) => [
        name,
        { name, region: undefined, address: '', database: databases[n]! }, // One for each.
      ]),
    )
    return { places, account: this.#account, to, world: this.#world, waitMs: WAIT_MS, say: () => undefined }
  }

  /** A transaction of several databases is one step of the story: what is asked within it does not wait for a turn. */
  #databases(): Database[] {
    let within: Set<Promise<unknown>> | undefined
    return Array.from(this.#lines.values(), (line) => {
      const turn = async <T>(name: string, ask: (on: Database) => Promise<T>): Promise<T> => {
        if (within) {
          const asked = line.now(ask)
          within.add(asked.catch(() => undefined))
          return asked
        }
        return line.turn(name, async (on) => {
          const all = new Set<Promise<unknown>>()
          within = all
          try {
            return await ask(on)
          } finally {
            // What was asked beside that which failed ends before anybody else has this line.
            for (const one of all) await one
            within = undefined
          }
        })
      }
      return {
        query: ((what, values) =>
          turn(what.name ?? '', (on) => line.sabotaged(on).query(what, values))) as Queryable['query'],
        transaction: (work) => turn('move', (on) => on.transaction((tx) => work(line.sabotaged(tx)))),
        outside: () => Promise.reject(new Error('not here')),
        measure: () => undefined,
        waiting: () => 0,
        close: async () => {},
      }
    })
  }
}
