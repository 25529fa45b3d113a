// Names instead of ids: people know an account as "Team A", not as acc_01jd0….
import type { KeyView } from '../admission/views.ts'
import type { CurrentView } from '../catalog/views.ts'
import { nearest } from '../kernel/nearest.ts'
import type { Page } from '../kernel/view.ts'
import type { AccountView } from '../ledger/views.ts'
import type { VendorView } from '../operator/views.ts'
import type { Found } from '../reports/views.ts'
import type { Api } from './api.ts'
import { at, CliError } from './command.ts'
import { query } from './table.ts'

interface Named {
  readonly id: string
  readonly name: string
}

const LISTED_MAX = '200'

/** The entry with this id or name, ignoring case. If several have the name, the id must be given. */
function oneOf(what: string, given: string, listed: readonly Named[]): string | undefined {
  const exact = listed.find(({ id }) => id === given)
  if (exact) return exact.id
  const same = listed.filter(({ name }) => name.toLowerCase() === given.toLowerCase())
  if (same.length > 1)
    throw new CliError(
      `There are ${same.length} ${what}s called "${given}". Say which by its id: ${same.map(({ id }) => id).join(', ')}.`,
      2,
    )
  return same[0]?.id
}

function unknown(what: string, given: string, names: readonly string[], list: string): CliError {
  const near = nearest(given, names)
  const hint = near === undefined ? ` See: tollgate ${list}` : ` Did you mean "${near}"?`
  return new CliError(`There is no ${what} "${given}".${hint}`)
}

async function search(api: Api, kind: Found['kind'], given: string): Promise<Found[]> {
  const { items } = await api.call<Page<Found>>('GET', `/search${query({ q: given })}`)
  return items.filter((one) => one.kind === kind)
}

async function accountId(api: Api, given: string): Promise<string> {
  if (/^acc_\w+$/.test(given)) return given
  const listed = (await search(api, 'account', given)).map(({ id, label: name }) => ({ id, name }))
  const sought = oneOf('account', given, listed)
  if (sought !== undefined) return sought
  const { items } = await api.call<Page<AccountView>>('GET', `/accounts${query({ limit: LISTED_MAX })}`)
  const names = items.map(({ name }) => name)
  throw unknown('account', given, names, 'accounts list')
}

/** A key of the account in the arguments, or of any account. Revoked keys are found by id only. */
async function keyId(api: Api, given: string, [account]: readonly string[]): Promise<string> {
  if (/^key_\w+$/.test(given)) return given
  const listed =
    account === undefined
      ? (await search(api, 'key', given)).flatMap(({ id, label }) => {
          const [, name, last4, revoked] = /^(.*) · …(\w{4})( · revoked)?$/s.exec(label) ?? []
          return name === undefined || last4 === undefined || revoked ? [] : [{ id, name, last4 }]
        })
      : await keysOf(api, account)
  const byEnd = listed.filter(({ last4 }) => last4 === given || given.endsWith(`…${last4}`))
  const sought = oneOf('key', given, listed) ?? (byEnd.length === 1 ? byEnd[0]?.id : undefined)
  if (sought !== undefined) return sought
  const names = listed.map(({ name }) => name)
  throw unknown('key', given, names, account === undefined ? 'keys list <account>' : `keys list ${account}`)
}

async function keysOf(api: Api, account: string): Promise<KeyView[]> {
  const path = at`/accounts/${account}/keys` + query({ limit: LISTED_MAX })
  const { items } = await api.call<Page<KeyView>>('GET', path)
  return items.filter(({ revokedAt }) => revokedAt === null)
}

async function vendorName(api: Api, given: string): Promise<string> {
  const { items } = await api.call<Page<VendorView>>('GET', '/vendors')
  const names = items.map(({ name }) => name)
  const named = names.map((name) => ({ id: name, name }))
  const sought = oneOf('vendor', given, named)
  if (sought === undefined) throw unknown('vendor', given, names, 'vendors list')
  return sought
}

/** Of a model or an endpoint. */
async function productUid(api: Api, given: string): Promise<string> {
  const { models, endpoints } = (await api.call<CurrentView>('GET', '/catalog')).document
  const named = [
    ...Object.entries(models).map(([id, { name }]) => ({ id, name })),
    ...Object.keys(endpoints).map((id) => ({ id, name: id })),
  ]
  const sought = oneOf('model', given, named)
  if (sought !== undefined) return sought
  const names = named.flatMap(({ id, name }) => [id, name])
  throw unknown('model or endpoint', given, names, 'catalog export')
}

/** A list of the operator API whose rows have an id and a name. */
export interface Collection {
  readonly path: string
  readonly id: string
  readonly name: string
  readonly isPaged: boolean
}

/** The id of the row with this id or name. An id is not looked up: a right to read the list is not needed for it. */
export async function resolveIn(api: Api, { path, id, name, isPaged }: Collection, given: string): Promise<string> {
  if (/^[a-z]+_\w{26}$/.test(given)) return given
  const listed: Named[] = []
  // All pages, as two may have the same name.
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const paging = isPaged ? query({ limit: LISTED_MAX, cursor }) : ''
    const { items, next } = await api.call<Page<Record<string, unknown>>>('GET', path + paging)
    listed.push(...items.map((row) => ({ id: String(row[id]), name: String(row[name]) })))
    isLast = !isPaged || next === null
    cursor = next ?? undefined
  }
  const noun = path.split('/').at(-1) ?? ''
  const one = noun.replace(/s$/, '').replaceAll('-', ' ')
  const found = oneOf(one, given, listed)
  if (found !== undefined) return found
  const names = listed.map((row) => row.name)
  throw unknown(one, given, names, `${noun} list`)
}

const RESOLVERS = { account: accountId, key: keyId, vendor: vendorName, uid: productUid }

/** How names are resolved, by the name of the argument or option. */
export type Reference = keyof typeof RESOLVERS

/** Resolves a name to an id. Earlier arguments are already ids. */
export function resolveName(
  api: Api,
  reference: string,
  given: string,
  before: readonly string[] = [],
): Promise<string> | string {
  const resolve = Object.entries(RESOLVERS).find(([name]) => name === reference)?.[1]
  return resolve ? resolve(api, given, before) : given
}

/** The names of accounts by their ids, for people. */
export async function accountNames(
  api: Api,
  ids: Iterable<string | null>,
): Promise<ReadonlyMap<string | null, string>> {
  const wanted = [...new Set(ids)].filter((id) => id !== null)
  // A deleted one is shown by its id.
  const accounts = await Promise.all(
    wanted.map((id) => api.call<AccountView>('GET', at`/accounts/${id}`).catch(() => ({ id, name: id }))),
  )
  return new Map(accounts.map(({ id, name }) => [id, name]))
}
