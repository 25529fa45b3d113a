// A real database behind a bad line: statements that are slow, never arrive, lose their answer after the commit, or
// arrive long after everybody has given them up.
import type { Database, Queryable, Statement, Value } from '../../src/database/database.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { watchFences } from './fences.ts'
import type { Lane } from './lane.ts'
import type { VirtualWorld } from './virtual-world.ts'

export interface Weather {
  readonly slow: number
  readonly lostBefore: number
  readonly lostAfter: number
  /** The answer is lost, and the statement runs later. */
  readonly zombie: number
}

/** Breaks the gateway on purpose, to see that it is noticed: runs another statement than the one that was asked for. */
export type Sabotage = (
  statement: Statement,
  values: readonly Value[],
  run: Queryable['query'],
  chance: () => boolean,
) => Promise<unknown[]> | undefined

/** What a story must be like for something to be seen in it at once. */
export interface Stage {
  /** Nothing goes wrong. */
  readonly fair?: true
  /** The whole gateway is limited. */
  readonly limited?: true
  /** The first of these that a process is about to send leaves when others have long taken it for dead. */
  readonly stoppedBefore?: RegExp
  /** A process dies when it is about to send the first of these. */
  readonly diesBefore?: RegExp
}

type Ask<T> = (on: Database) => Promise<T>

export class Line {
  readonly #lane: Lane
  readonly #world: VirtualWorld
  readonly #weather: Weather
  readonly #sabotage: Sabotage | undefined
  /** Told of what must never happen. */
  onWrong: (error: Error) => void = () => {}
  /** What is wrong after a statement. */
  look: (statement: Statement, on: Queryable) => Promise<readonly string[]> = async () => []
  /** Statements that will still run. */
  zombies = 0
  calm = false

  constructor(lane: Lane, world: VirtualWorld, weather: Weather, sabotage?: Sabotage) {
    this.#lane = lane
    this.#world = world
    this.#weather = weather
    this.#sabotage = sabotage
  }

  /** The story's own look at the database: it always works, and changes nothing in the order of things. */
  see<R>(text: string, values: readonly Value[] = []): Promise<R[]> {
    return this.#run('', (on) => on.query<R>({ text }, values))
  }

  /** What an operator does: it always works. */
  arrange<T>(name: string, work: (tx: Queryable) => Promise<T>): Promise<T> {
    return this.#run(name, (on) => on.transaction(work))
  }

  /** The same, without a transaction around it. */
  turn<T>(name: string, work: Ask<T>): Promise<T> {
    return this.#run(name, work)
  }

  /** Within the turn of another line. */
  now<T>(work: Ask<T>): Promise<T> {
    this.#lane.setClock(this.#world.nowMs())
    return work(this.#lane.database)
  }

  /** As whoever broke the gateway wants it. */
  sabotaged(queryable: Queryable): Queryable {
    const run: Queryable['query'] = (statement, values) => queryable.query(statement, values)
    const chance = () => this.#world.chance.is(0.3)
    return {
      query: (statement, values = []) =>
        (this.#sabotage?.(statement, values, run, chance) as Promise<never[]> | undefined) ?? run(statement, values),
    }
  }

  query<R>(statement: Statement, values: readonly Value[] = []): Promise<R[]> {
    const name = statement.name ?? statement.text
    return this.#through(name, (on) => this.#on(on).query<R>(statement, values))
  }

  /** As one: it has happened, or it has not. */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    return this.#through('transaction', (on) => on.transaction((tx) => work(this.#on(tx))))
  }

  #on(queryable: Queryable): Queryable {
    const sabotaged = this.sabotaged(queryable)
    return {
      query: async <R>(statement: Statement, values: readonly Value[] = []) => {
        const ask = () => sabotaged.query<R>(statement, values)
        const { result, broken } = await watchFences(statement, values, queryable, ask)
        const wrong = await this.look(statement, queryable)
        for (const what of [...broken, ...wrong]) this.onWrong(new Error(what))
        return result
      },
    }
  }

  #run<T>(name: string, ask: Ask<T>): Promise<T> {
    const world = this.#world
    return world.perform(async () => {
      this.#lane.setClock(world.nowMs())
      try {
        const result = await ask(this.#lane.database)
        if (name) world.note(`${name} → ${Array.isArray(result) ? result.length : ''}`)
        return result
      } catch (error) {
        world.note(`${name} → ${error}`)
        throw error
      }
    })
  }

  async #through<T>(name: string, ask: Ask<T>): Promise<T> {
    const { chance } = this.#world
    if (this.calm) return this.#run(name, ask)
    const { slow, lostBefore, lostAfter, zombie } = this.#weather
    if (chance.is(slow)) await this.#world.pause(chance.below(3_000))
    if (chance.is(lostBefore)) throw away('before')
    if (chance.is(zombie)) {
      this.zombies += 1
      this.#world.after(chance.below(20_000), () => {
        void this.#run(`${name}, late`, ask)
          .catch(() => undefined)
          .finally(() => {
            this.zombies -= 1
          })
      })
      throw away('zombie')
    }
    const result = await this.#run(name, ask)
    if (chance.is(lostAfter)) throw away('after')
    return result
  }
}

function away(how: string): Fault {
  return new Fault('unavailable', { internal: { why: `simulated: lost ${how}` } })
}

/** What a process can lose its life at: before a step, or after it and before its answer. */
export interface Mortal {
  readonly dead: boolean
  /** A step outside of the process; some are its last. Answers what it must wait for while it is stopped. */
  step(): Promise<void> | undefined
}

/** Nothing is ever answered to the dead. */
export async function asMortal<T>(mortal: Mortal, run: () => Promise<T>): Promise<T> {
  await mortal.step()
  if (mortal.dead) return new Promise(() => {})
  try {
    const result = await run()
    await mortal.step()
    return mortal.dead ? await new Promise(() => {}) : result
  } catch (error) {
    if (mortal.dead) return new Promise(() => {})
    throw error
  }
}

/** The database as one process sees it. It may be stopped before a statement leaves, and while it is on its way. */
export function databaseOf(
  line: Line,
  mortal: Mortal,
  stops: { before(name: string): void; during(name: string): void },
): Database {
  return {
    query: (statement, values) => {
      stops.before(statement.name ?? '')
      return asMortal(mortal, () => {
        stops.during(statement.name ?? '')
        return line.query(statement, values)
      }) as never
    },
    transaction: (run) => asMortal(mortal, () => line.transaction(run)),
    outside: () => Promise.reject(new Error('not here')),
    measure: () => undefined,
    waiting: () => 0,
    close: async () => {},
  }
}
