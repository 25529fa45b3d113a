// What somebody, or a fault, might do to the tables that money is in, and which of them decide none. `$call` and the
// like are ids of the test that plants the corruptions, src/extensions/verify/verify.test.ts.
import { fixtureOf, fixtureText } from './fixture.ts'
import { words } from './lists.ts'

/** What is done by hand, what is said of it, and whether only a full run says it. */
export type Corruption = readonly [what: string, said: RegExp, run?: 'full']

/** A line with the statements, and one with what is said of them. */
const ONE = /^(?!--)(.+)\n--> (full )?\/(.+)\/$/gm
export const corruptionsOf = (file: string) =>
  [...fixtureText(file).matchAll(ONE)].map(
    ([, what = '', isFull, said = '']): Corruption =>
      isFull ? [what, new RegExp(said), 'full'] : [what, new RegExp(said)],
  )
export const CORRUPTIONS = corruptionsOf('corruptions.sql')

/** A settlement that is not in the ledger yet, of a call like another. */
export function journalRow(id: string, like: string): string {
  return `insert into journal (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, route, first_byte_ms, cost, lease_id, tokens, second, input_tokens, output_tokens, estimated, stream, duration_ms, at)
    select account_id, '${id}', key_id, product, endpoint, outcome, status, charged, 100, catalog_version, lines, route, first_byte_ms, cost, 'lease_1', 0, 0, 1, 1, estimated, stream, duration_ms, now() + interval '1 hour' from usage where id = '${like}'`
}

interface NoCorruptions {
  readonly tables: Readonly<Record<string, string>>
  readonly columns: Readonly<Record<string, string>>
}
const { tables, columns } = fixtureOf<NoCorruptions>('no-corruptions.yaml')
export const NO_MONEY = Object.values(tables).flatMap(words)
export const NO_REASON = Object.fromEntries(Object.entries(columns).map(([table, names]) => [table, words(names)]))
