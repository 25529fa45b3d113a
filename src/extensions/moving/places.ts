// The databases of one installation, and which of them has which account.
import { CliError, type Settings } from '../../cli/command.ts'
import { withoutPassword } from '../../database/address.ts'
import { type Database, openDatabase } from '../../database/database.ts'
import { LEDGER_SCHEMAS } from '../../database/tables.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import type { World } from '../../kernel/world.ts'
import { readLedgers } from '../postgres/ledgers.ts'
import { cancelMove, type Moved, type MoveOptions, MoveRefused, moveAccount, NOTICE_MS } from './move.ts'
import { CONTROL, ENDED, HOME, STATE } from './steps.ts'

export interface Place {
  readonly name: string
  readonly region: string | undefined
  /** Without a password. */
  readonly address: string
  readonly database: Database
}

/** By name, control first. */
export type Places = ReadonlyMap<string, Place>

/** Opens them for the time of a command. */
export async function withPlaces<T>(settings: PlacesOf, run: (places: Places) => Promise<T>): Promise<T> {
  return withControl(settings, async (control, address) => {
    const ledgers = await listed(control, settings)
    if (ledgers.size === 0)
      throw new CliError('This installation has one database only. Add another: tollgate ledgers add NAME URL')
    const name = CONTROL
    const places = new Map<string, Place>([[name, { name, region: undefined, address, database: control }]])
    for (const [name, { url, region }] of ledgers) {
      const connection = { connectionString: url }
      const database = openDatabase({ connection, connectionsMax: 4, schemas: LEDGER_SCHEMAS })
      places.set(name, { name, region, address: withoutPassword(url).text, database })
    }
    try {
      return await run(places)
    } finally {
      await Promise.all([...places.values()].map(({ database }) => database !== control && database.close()))
    }
  })
}

export type PlacesOf = Pick<Settings, 'databaseUrl' | 'ledgers' | 'secret'>

export async function withControl<T>(
  { databaseUrl }: PlacesOf,
  run: (control: Database, address: string) => Promise<T>,
): Promise<T> {
  if (databaseUrl === undefined)
    throw new CliError(
      'Ledgers need DATABASE_URL: their servers cannot reach the built-in database. Set it as for the gateway.',
    )
  const control = openDatabase({ connection: { connectionString: databaseUrl }, connectionsMax: 4 })
  try {
    return await run(control, withoutPassword(databaseUrl).text)
  } finally {
    await control.close()
  }
}

/** Those of TOLLGATE_LEDGERS and those that were added. */
const listed = (control: Database, { ledgers, secret = '' }: PlacesOf) =>
  readLedgers(control, secret, ledgers).catch((error: Error) => {
    throw error.name === 'Error' ? new CliError(error.message) : error
  })

export const controlOf = (places: Places): Database => places.get(CONTROL)!.database // It was added first.

async function homeOf(places: Places, account: string) {
  const [home] = await controlOf(places).query<{ name: string; region: string | null }>(HOME, [account, CONTROL])
  return home
}

export interface MoveWithin {
  readonly places: Places
  readonly account: string
  readonly to: string
  readonly world: World
  readonly waitMs: number
  readonly noticeMs?: number
  readonly say: (line: string) => void
}

/** Moves an account and its test account to another ledger of the installation, or ends what an earlier try began. */
export async function moveWithin(options: MoveWithin): Promise<Moved> {
  const { places, account, to } = options
  const target = placeOf(places, to)
  const home = await homeOf(places, account)
  if (!home) throw new MoveRefused(`There is no account ${account} in this installation.`)
  if (home.region !== null && home.region !== target.region)
    throw new MoveRefused(
      `Account ${account} must stay in the region ${home.region}, and ${to} lies in ${target.region ?? 'no region'}.`,
    )
  const moved = await moveOne(options, home.name)
  const test = { ...options, account: testAccountOf(account), say: () => undefined }
  const testHome = await homeOf(places, test.account)
  if (testHome) await moveOne(test, testHome.name)
  for (const { database } of places.values()) await database.query(ENDED, [account, test.account])
  if (!moved) throw new MoveRefused(`Account ${account} is in ${to}.`)
  return moved
}

/** Undefined: it is there, and nothing is left to do. */
async function moveOne(options: MoveWithin, home: string): Promise<Moved | undefined> {
  const { places, account, to } = options
  if (home !== to) return moveAccount(between(options, home))
  const stateIn = async ({ database }: Place) =>
    (await database.query<{ move_id: string; state: string }>(STATE, [account]))[0]
  const there = await stateIn(placeOf(places, to))
  for (const place of there ? places.values() : []) {
    const left = await stateIn(place)
    if (left?.state === 'gone' && left.move_id === there?.move_id) return moveAccount(between(options, place.name))
  }
  return undefined
}

/** The account stays where it is. */
export async function cancelWithin(options: MoveWithin): Promise<void> {
  const home = await homeOf(options.places, options.account)
  await cancelMove(between(options, home?.name ?? CONTROL))
}

function placeOf(places: Places, name: string): Place {
  const place = places.get(name)
  if (!place) throw new MoveRefused(`There is no ledger ${name}. There are: ${[...places.keys()].join(', ')}.`)
  return place
}

function between(options: MoveWithin, from: string): MoveOptions {
  const { places, to, noticeMs = NOTICE_MS } = options
  return {
    ...options,
    source: placeOf(places, from).database,
    target: placeOf(places, to).database,
    from,
    within: { control: controlOf(places), ledger: to === CONTROL ? null : to, noticeMs },
  }
}
