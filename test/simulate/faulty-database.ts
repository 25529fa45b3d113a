// A real database behind a bad line: statements that are slow, never arrive, lose their answer after the commit, or arrive
// long after everybody has given them up.
import type { Database, Queryable, Statement, Value } from '../../src/database/database.ts'
import { Fault } from '../../src/kernel/fault.ts'
import type { VirtualWorld } from './virtual-world.ts'

export interface Weather {
  readonly slow: number
  readonly lostBefore: number
  readonly lostAfter: number
  /** The answer is lost, and the statement runs later. */
  readonly zombie: number
}

export class Line {
  readonly #database: Database
  readonly #world: VirtualWorld
  readonly #weather: Weather
  /** One statement after the other, so that a seed always tells the same story. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Statements that will still run. */
  zombies = 0
  calm = false

  constructor(database: Database, world: VirtualWorld, weather: Weather) {
    this.#database = database
    this.#world = world
    this.#weather = weather
  }

  run<R>(statement: Statement, values?: readonly Value[]): Promise<R[]> {
    this.#world.busy += 1
    const result = this.#turn.then(() => this.#database.query<R>(statement, values))
    this.#turn = result.catch(() => undefined)
    return result.finally(() => {
      this.#world.busy -= 1
    })
  }

  async query<R>(statement: Statement, values?: readonly Value[]): Promise<R[]> {
    const { chance } = this.#world
    if (this.calm) return this.run(statement, values)
    const { slow, lostBefore, lostAfter, zombie } = this.#weather
    if (chance.is(slow)) await this.#world.pause(chance.below(3_000))
    if (chance.is(lostBefore)) throw away('before')
    if (chance.is(zombie)) {
      this.zombies += 1
      this.#world.after(chance.below(20_000), () => {
        void this.run(statement, values)
          .catch(() => undefined)
          .finally(() => {
            this.zombies -= 1
          })
      })
      throw away('zombie')
    }
    const rows = await this.run<R>(statement, values)
    if (chance.is(lostAfter)) throw away('after')
    return rows
  }
}

function away(how: string): Fault {
  return new Fault('unavailable', { internal: { why: `simulated: lost ${how}` } })
}

/** The database as one process sees it; after the process has died nothing is ever answered. */
export function databaseOf(line: Line, isDead: () => boolean): Database {
  const query: Queryable['query'] = async (statement, values) => {
    if (isDead()) return new Promise(() => {})
    const rows = await line.query(statement, values)
    return isDead() ? new Promise(() => {}) : (rows as never)
  }
  return {
    query,
    transaction: (run) => run({ query }),
    waiting: () => 0,
    close: async () => {},
  }
}
