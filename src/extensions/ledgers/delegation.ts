// Which ledger answers a request of operators and people: that of the account; where no account is named, all of them,
// put together, or the one that knows the id.
import { rawQuery } from '../../api/server/server.ts'
import { Fault } from '../../kernel/fault.ts'
import { type HERE, type Resource, type ResourceCall, readParams } from '../../operator/resource.ts'
import { ACROSS } from './across.ts'
import { type Cell, type Ledgers, ledgerAway } from './front.ts'
import type { Homes } from './homes.ts'

type Delegation = typeof HERE

const nameOf = ({ method, path }: Resource) => `${method} ${path}`

export function delegationOf(control: Cell, ledgers: Ledgers, homes: Homes): Delegation {
  const indexes = new WeakMap<Cell, Map<string, Resource>>()
  /** The same resource of another gateway. */
  function of(cell: Cell, entry: Resource): Resource {
    const index = indexes.get(cell) ?? new Map(cell.office.routes.resources.map((one) => [nameOf(one), one]))
    indexes.set(cell, index)
    return index.get(nameOf(entry)) ?? entry
  }

  async function ofAccount(account: string, entry: Resource): Promise<Resource> {
    const home = await homes.ofAccount(account)
    return home === null ? entry : inLedger(home, entry)
  }

  async function inLedger(name: string, entry: Resource): Promise<Resource> {
    const cell = ledgers.of(name)
    if (!cell) throw ledgerAway(name)
    await cell.app.posted()
    return of(cell, entry)
  }

  /** Control first, then each ledger; undefined: it is away. */
  const everywhere = () => [control, ...ledgers.names.map((name) => ledgers.of(name))]

  /** Of the first that knows what it is about. */
  async function whereKnown<T>(entry: Resource, ask: (one: Resource) => Promise<T>): Promise<T> {
    let unknown: unknown
    let isAway = false
    for (const cell of everywhere()) {
      if (!cell) {
        isAway = true
        continue
      }
      try {
        await cell.app.posted()
        return await ask(of(cell, entry))
      } catch (error) {
        if (!(error instanceof Fault) || error.status !== 404) throw error
        unknown = error
      }
    }
    if (isAway) throw new Fault('unavailable', { message: AWAY, retryAfterSeconds: 1 })
    throw unknown
  }

  const changing = (entry: Resource) => async (call: never) => {
    const answer = await entry.run(call)
    await ledgers.changed()
    return answer
  }

  return {
    async at(entry, request) {
      if (entry.path.startsWith('/accounts/{id}')) return ofAccount(request.params.id ?? '', entry)
      if (entry.account)
        return whereKnown(entry, async (one) => {
          // `resource` gave it the types of its path.
          await one.account?.(readParams(one, request) as never)
          return one
        })
      const way = ACROSS[nameOf(entry)]
      if (way === undefined) return entry.method === 'GET' ? entry : { ...entry, run: changing(entry) }
      const account = new URLSearchParams(rawQuery(request)).get('account')
      if (account !== null) return ofAccount(account, entry)
      if (way === 'new') {
        const name = await ledgers.roomiest()
        return inLedger(name, entry)
      }
      if (way === 'one') return { ...entry, run: (call: never) => whereKnown(entry, async (one) => one.run(call)) }
      return {
        ...entry,
        run: async (call: ResourceCall) => {
          const asked = everywhere().map(async (cell) => {
            if (!cell) throw new Fault('unavailable')
            await cell.app.posted()
            return of(cell, entry).run(call as never) // What `resource` gave it the types of.
          })
          const answers = await Promise.allSettled(asked)
          return way(answers, call, ['control', ...ledgers.names])
        },
      }
    },
  }
}

const AWAY = 'One of the ledgers does not answer right now, and none of the others knows this id. Try again shortly.'
