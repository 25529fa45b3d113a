// Which ledger an account is in. The control database says; what it said is kept, so that calls with known keys go on
// while it is away, and is asked for anew when an account moves.
import { createHash } from 'node:crypto'
import type { ApiKeys } from '../../admission/api-key.ts'
import type { Changes } from '../../database/changes.ts'
import { type Database, SHORT_MS, sql } from '../../database/database.ts'
import { ownAccountOf } from '../../kernel/test-account.ts'
import type { World } from '../../kernel/world.ts'

/** The name of a ledger; null: the control database itself, which also answers what nobody knows. */
export type Home = string | null

const KNOWN_MAX = 200_000
const HERE_MS = 1_000
const OF_ACCOUNT = sql('home_of_account', SHORT_MS)`select ledger, is_moving from account where id = $1`
const OF_KEY = sql('home_of_key', SHORT_MS)`
  select a.ledger, a.is_moving from key_home k join account a on a.id = k.account_id where k.digest = $1`
const OF_GRANT = sql('home_of_grant', SHORT_MS)`
  select a.ledger from key_home k join account a on a.id = k.account_id where k.grant_id = $1`
const OF_TOKEN = sql('home_of_token', SHORT_MS)`
  select a.ledger, a.is_moving from oauth_object o join key_home k on k.grant_id = o.grant_id join account a on a.id = k.account_id
  where o.model = 'AccessToken' and o.digest = $1`

interface Row {
  readonly ledger: Home
  readonly is_moving: boolean
}

interface HomeDeps {
  /** The control database. */
  readonly database: Database
  readonly changes: Pick<Changes, 'watch'>
  readonly apiKeys: Pick<ApiKeys, 'digestsOf'>
  readonly world: World
}

export type Homes = ReturnType<typeof createHomes>

export function createHomes({ database, changes, apiKeys, world }: HomeDeps) {
  const known = new Map<string, Home>()
  /** Until when a key is taken for one that no ledger knows. */
  const here = new Map<string, number>()
  changes.watch('homes', () => {
    known.clear()
    here.clear()
  })

  function keep(name: string, { ledger: home, is_moving }: Row): Home {
    if (is_moving) return home
    if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value!) // It is not empty.
    known.set(name, home)
    return home
  }

  async function ofKey(name: string, key: string): Promise<Home> {
    for (const { digest, isToken } of apiKeys.digestsOf(key)) {
      const [row] = await database.query<Row>(isToken ? OF_TOKEN : OF_KEY, [digest])
      if (row) return keep(name, row)
    }
    // Control's own, or nobody's. Not kept for long: it may be of a key that a ledger makes next.
    if (here.size >= KNOWN_MAX) here.clear()
    here.set(name, world.elapsedMs() + HERE_MS)
    return null
  }

  return {
    /** At once for what is known: a promise would cost every call turns of the queue. */
    ofKey(key: string): Home | Promise<Home> {
      const name = createHash('sha256').update(key).digest('base64')
      const home = known.get(name) ?? ((here.get(name) ?? 0) > world.elapsedMs() ? null : undefined)
      return home === undefined ? ofKey(name, key) : home
    },
    async ofGrant(grant: string): Promise<Home> {
      const [row] = await database.query<{ ledger: Home }>(OF_GRANT, [grant])
      return row?.ledger ?? null
    },
    ofAccount(id: string): Home | Promise<Home> {
      const account = ownAccountOf(id)
      const home = known.get(account)
      if (home !== undefined) return home
      return database.query<Row>(OF_ACCOUNT, [account]).then(([row]) => (row ? keep(account, row) : null))
    },
  }
}
