// Adds a Postgres server to an installation, and removes it again, while the gateways run.
import { CliError, type Settings } from '../../cli/command.ts'
import { readLedger } from '../../config.ts'
import { createAudit } from '../../database/audit.ts'
import { createChanges } from '../../database/changes.ts'
import { type Database, openDatabase, sql } from '../../database/database.ts'
import { checkDurability } from '../../database/migrate.ts'
import { createSecrets } from '../../kernel/secret.ts'
import { sleep } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import { installationOf, LEDGERS, sealLedger } from '../postgres/ledgers.ts'
import { belongsElsewhere, type ControlAddress, installationSeen, prepareLedger, UNMOUNTED } from '../postgres/mount.ts'
import { type PlacesOf, withControl } from './places.ts'

type Adding = PlacesOf & Pick<Settings, 'environment'>

const BY = { actor: 'command line', ip: null, requestId: null }
/** Within this every gateway has learnt of a change. */
const NOTICED_MS = 3_000
const TABLES = sql('adding_tables')`
  select count(*)::int as count, coalesce(bool_or(relname = 'migration'), false) as ours from pg_class
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'f', 'v', 'm')`
/** A gateway that was started with it once has written a catalog. A ledger's own table of that name is empty. */
const USED = sql('adding_used')`select exists (select 1 from catalog_version) as used`
const NEEDED = sql('removing_needed')`
  select (select count(*)::int from account where ledger = $1) as accounts,
  (select count(*)::int from crossing where ledger = $1) as open`

/** Checks it first, and leaves everything as it is where something is wrong. Of one that is there: its new address. */
export async function addLedger(settings: Adding, text: string, world: World): Promise<{ isNew: boolean }> {
  const { name, url, region, problem } = readLedger(text)
  if (problem) throw new CliError(`A ledger needs a name and an address, which ${problem}.`, 2)
  return withControl(settings, async (control) => {
    const secret = secretOf(settings)
    const { [name]: before } = await LEDGERS.read(control)
    const named = settings.ledgers?.get(name)
    if (named && (named.url !== url || named.region !== region))
      throw new CliError(
        `TOLLGATE_LEDGERS names the ledger ${name} with another address or region. Use another name, or change it there.`,
      )
    const password = settings.environment?.('PGPASSWORD')
    const place: ControlAddress = {
      connection: { connectionString: settings.databaseUrl, password },
      ledger: name,
      installation: await installationOf(control),
    }
    await prepare(url, place)
    await change({ control, secret, world }, (others) => ({
      ...others,
      [name]: sealLedger(name, { url, region }, secret, world),
    }))
    return { isNew: before === undefined }
  })
}

async function prepare(url: string, place: ControlAddress): Promise<void> {
  const connection = { connectionString: url }
  const own = openDatabase({ connection, connectionsMax: 2, schemas: UNMOUNTED })
  try {
    await check(own, place).catch(refused('The server of the ledger says'))
    await prepareLedger(connection, place).catch(refused('The ledger could not be prepared'))
    const seen = await installationSeen(own).catch(refused('The server of the ledger does not reach DATABASE_URL'))
    if (seen !== place.installation)
      throw new CliError(
        'The server of the ledger finds another database at DATABASE_URL. Set it to an address that is the same from everywhere, such as a name in your network.',
      )
  } finally {
    await own.close()
  }
}

const refused =
  (what: string) =>
  (error: Error): never => {
    if (error instanceof CliError) throw error
    const said = (error.cause as Error | undefined)?.message ?? error.message // What the driver threw.
    throw new CliError(`${what}: ${said}. Nothing was added.`.replace('..', '.'))
  }

async function check(own: Database, place: ControlAddress): Promise<void> {
  await checkDurability(own, true)
  const [{ count, ours } = { count: 0, ours: false }] = await own.query<{ count: number; ours: boolean }>(TABLES)
  if (count === 0) return
  if (!ours) throw new CliError('This database has tables of something else. Name an empty one.')
  const [is] = await own.query<{ used: boolean }>(USED)
  if (is?.used)
    throw new CliError('This database has a gateway of its own, or is the control database. Name an empty one.')
  const elsewhere = await belongsElsewhere(own, place)
  if (elsewhere !== undefined) throw new CliError(elsewhere)
}

/** Refused while accounts lie there. */
export async function removeLedger(settings: Adding, name: string, world: World): Promise<void> {
  await withControl(settings, async (control) => {
    const secret = secretOf(settings)
    const { [name]: found } = await LEDGERS.read(control)
    const isNamed = settings.ledgers?.has(name) ?? false
    if (!found)
      throw new CliError(
        isNamed
          ? `The ledger ${name} stands in TOLLGATE_LEDGERS: remove it there.`
          : `No ledger ${name} was added. See: tollgate ledgers list`,
      )
    const keepsNone = async () => {
      const [{ accounts, open } = { accounts: 0, open: 0 }] = await control.query<{ accounts: number; open: number }>(
        NEEDED,
        [name],
      )
      if (accounts > 0)
        throw new CliError(
          `${accounts === 1 ? 'An account lies' : `${accounts} accounts lie`} in ${name}, with test accounts. Move them first: tollgate ledgers show ${name}, tollgate ledgers move ACCOUNT --to NAME`,
        )
      if (open > 0) throw new CliError(`Changes for ${name} are not done there yet. Try again in a moment.`)
    }
    const parts = { control, secret, world }
    // Also TOLLGATE_LEDGERS has it: nothing but the second entry goes.
    if (!isNamed) await keepsNone()
    await change(parts, ({ [name]: _, ...others }) => others)
    if (isNamed) return
    // An account may have been made there before every gateway knew.
    await sleep(world, NOTICED_MS)
    await keepsNone().catch(async (error: unknown) => {
      await change(parts, (others) => ({ ...others, [name]: found }))
      throw error
    })
  })
}

interface Parts {
  readonly control: Database
  readonly secret: string
  readonly world: World
}

type Stored = Awaited<ReturnType<typeof LEDGERS.read>>

async function change({ control, secret, world }: Parts, next: (all: Stored) => Stored): Promise<void> {
  const audit = createAudit({ database: control, world, key: createSecrets(secret).key('audit') })
  await LEDGERS.change({ database: control, audit, changes: createChanges(control, world) }, BY, next)
}

function secretOf({ secret }: Adding): string {
  if (secret === undefined) throw new CliError('Set TOLLGATE_SECRET as for the gateway: addresses are stored sealed.')
  return secret
}
