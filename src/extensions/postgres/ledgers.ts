// The further Postgres servers of an installation: those of TOLLGATE_LEDGERS, and those that `tollgate ledgers add` has
// stored, sealed, in the control database. Both lists are one.
import * as z from 'zod'
import { withoutPassword } from '../../database/address.ts'
import { type Queryable, sql } from '../../database/database.ts'
import { defineSetting } from '../../database/setting.ts'
import { createSecrets, seal, unseal } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'

interface LedgerAddress {
  readonly url: string
  /** Accounts that demand it stay there. */
  readonly region: string | undefined
}

/** By name. */
type LedgerAddresses = ReadonlyMap<string, LedgerAddress>

const stored = z.object({
  region: z.string().nullable(),
  /** Without its password. */
  address: z.string(),
  sealed: z.base64(),
})
export const LEDGERS_NAME = 'ledgers'
export const LEDGERS = defineSetting({
  name: LEDGERS_NAME,
  schema: z.record(z.string(), stored),
  defaults: {},
  action: 'system.ledgers',
  object: 'system',
  noted: (all) => Object.fromEntries(Object.entries(all).map(([name, { sealed, ...rest }]) => [name, rest])),
  topic: 'ledgers',
})

/** A value that was moved to another name does not open. */
const placeOf = (name: string) => `setting|ledgers|${name}|1`
const keyOf = (secret: string) => createSecrets(secret).key('ledger-address')

export function sealLedger(name: string, { url, region }: LedgerAddress, secret: string, world: World) {
  const sealed = seal(keyOf(secret), placeOf(name), url, world).toString('base64')
  return { region: region ?? null, address: withoutPassword(url).text, sealed }
}

const MADE = sql('ledgers_made')`select to_regclass('setting') is not null as made`

/** `given`: those of TOLLGATE_LEDGERS. */
export async function readLedgers(
  control: Queryable,
  secret: string,
  given: LedgerAddresses = new Map(),
): Promise<LedgerAddresses> {
  // A database may still be empty.
  const [is] = await control.query<{ made: boolean }>(MADE)
  const all = new Map(given)
  for (const [name, { region, sealed }] of Object.entries(is?.made ? await LEDGERS.read(control) : {})) {
    const url = unseal(keyOf(secret), placeOf(name), Buffer.from(sealed, 'base64'))
    if (url === undefined)
      throw new Error(
        `The address of the ledger ${name} was stored under another TOLLGATE_SECRET. Set that one, or name the ledger in TOLLGATE_LEDGERS after tollgate ledgers remove ${name}.`,
      )
    const found = { url, region: region ?? undefined }
    const other = given.get(name)
    if (other && (other.url !== url || other.region !== found.region))
      throw new Error(
        `The ledger ${name} has one address or region in TOLLGATE_LEDGERS and another that tollgate ledgers add has stored. Keep one: remove ${name} from TOLLGATE_LEDGERS, or run tollgate ledgers remove ${name}.`,
      )
    all.set(name, found)
  }
  return all
}

export const INSTALLATION = 'installation'
const MAKE = sql('installation_make')`
  insert into setting (name, value) values ('${INSTALLATION}', gen_random_uuid()::text) on conflict (name) do nothing`
const READ = sql('installation_read')`select value from setting where name = '${INSTALLATION}'`

/** By which a ledger knows the control database that it belongs to. */
export async function installationOf(control: Queryable): Promise<string> {
  await control.query(MAKE)
  const [row] = await control.query<{ value: string }>(READ)
  return row!.value // It was made if it was not there.
}
