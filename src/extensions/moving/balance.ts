// How full the ledgers of an installation are, and what would move to make them even.
import { type Database, sql } from '../../database/database.ts'
import { IS_TEST } from '../../kernel/test-account.ts'
import { sumUsage } from '../../ledger/usage-sums.ts'
import { controlOf, type Place, type Places } from './places.ts'
import { CONTROL } from './steps.ts'

const COUNTS = sql('places_accounts')`
  select coalesce(ledger, '${CONTROL}') as name, count(*)::int as count from account where not ${IS_TEST('id')} group by 1`
const BYTES = sql('place_bytes', 5_000)`select pg_database_size(current_database())::float8 as bytes`
const ACCOUNTS = sql('place_accounts')`
  select id, name, status, region from account where coalesce(ledger, '${CONTROL}') = $1 and not ${IS_TEST('id')} and ($2::text is null or id < $2)
  order by id desc limit $3`
const CALLS = sql('place_calls', 600_000)`
  select a.id as account, a.region, coalesce((select sum(d.calls) from usage_day d where d.account_id = a.id), 0)::float8 as calls
  from account a where a.ledger is null and a.frozen_until is distinct from 'infinity' and not ${IS_TEST('a.id')}`
/** Below that share of the fullest ledger a difference is not worth a move. */
const EVEN = 0.1

interface PlaceView {
  readonly name: string
  readonly region: string | null
  readonly address: string
  readonly answers: boolean
  readonly accounts: number
  readonly bytes: number | null
}

export async function readPlaces(places: Places): Promise<PlaceView[]> {
  const counts = await controlOf(places).query<{ name: string; count: number }>(COUNTS)
  return Promise.all(
    [...places.values()].map(async ({ name, region = null, address, database }) => {
      const bytes = await bytesOf(database)
      const accounts = counts.find((row) => row.name === name)?.count ?? 0
      return { name, region, address, answers: bytes !== null, accounts, bytes }
    }),
  )
}

const bytesOf = (database: Database): Promise<number | null> =>
  database.query<{ bytes: number }>(BYTES).then(
    ([row]) => row?.bytes ?? null,
    () => null,
  )

interface PlacedAccount {
  readonly id: string
  readonly name: string
  readonly status: string
  /** Where it must stay. */
  readonly region: string | null
}

export const readAccounts = (
  places: Places,
  name: string,
  { cursor = null, limit }: { readonly cursor?: string | null | undefined; readonly limit: number },
): Promise<PlacedAccount[]> => controlOf(places).query<PlacedAccount>(ACCOUNTS, [name, cursor, limit])

interface PlannedMove {
  readonly account: string
  readonly from: string
  readonly to: string
  readonly calls: number
  readonly why: string
}

interface Sized {
  readonly account: string
  readonly region: string | null
  readonly calls: number
}

/** From the fullest to the emptiest, the largest account that makes them more even, until none does. */
export async function planBalance(places: Places): Promise<PlannedMove[]> {
  const fill = await Promise.all(
    [...places.values()].map(async (place) => {
      await sumUsage(place.database)
      const accounts = await place.database.query<Sized>(CALLS)
      return { place, accounts, calls: accounts.reduce((sum, { calls }) => sum + calls, 0) }
    }),
  )
  const planned: PlannedMove[] = []
  const moved = new Set<string>()
  for (let next = pick(fill, moved); next; next = pick(fill, moved)) {
    const { one, from, to } = next
    const why = `${from.place.name} has ${from.calls} calls, and ${to.place.name} ${to.calls}`
    planned.push({ account: one.account, from: from.place.name, to: to.place.name, calls: one.calls, why })
    moved.add(one.account)
    from.calls -= one.calls
    to.calls += one.calls
  }
  return planned
}

interface Fill {
  readonly place: Place
  readonly accounts: readonly Sized[]
  calls: number
}

/** Control takes no accounts: it has everything else. */
function pick(fill: readonly Fill[], moved: ReadonlySet<string>) {
  for (const from of fill.toSorted((one, other) => other.calls - one.calls))
    for (const to of fill.toSorted((one, other) => one.calls - other.calls)) {
      const gap = from.calls - to.calls
      if (to.place.name === CONTROL || gap <= from.calls * EVEN) continue
      const [one] = from.accounts
        .filter(({ account, region, calls }) => {
          const mayGo = region === null || region === to.place.region
          return !moved.has(account) && mayGo && calls > 0 && calls < gap
        })
        .toSorted((one, other) => Math.abs(gap / 2 - one.calls) - Math.abs(gap / 2 - other.calls))
      if (one) return { one, from, to }
    }
  return undefined
}
