// Opens the ledgers of an installation in this process, beside the gateway of the control database.
import type pg from 'pg'
import type { Changes, Topic } from '../../database/changes.ts'
import { type Database, SHORT_MS, sql } from '../../database/database.ts'
import { LEDGER_SCHEMAS } from '../../database/tables.ts'
import type { CoreParts } from '../../extension.ts'
import { Fault } from '../../kernel/fault.ts'
import { every } from '../../kernel/timers.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Figures } from '../../telemetry/metrics.ts'
import { prepareLedger } from '../postgres/mount.ts'
import { compareLedgers } from './compare.ts'
import { type Crossed, cross } from './crossings.ts'
import { type Cell, type ControlCell, type Ledgers, openFront } from './front.ts'
import { mirror } from './mirror.ts'
import { createSpent } from './spent.ts'

/** What a ledger's gateway is started with, besides what all gateways of the process are. */
interface Place {
  readonly control: Pick<Database, 'query'>
  readonly listener: ControlCell['app']
  readonly system: Ledger['system']
  readonly prepare: () => ReturnType<typeof prepareLedger>
  readonly schemas: string
}

interface Opened extends Cell, Crossed {
  readonly keys: Cell['keys'] & Crossed['keys']
  readonly accounts: Cell['accounts'] & Crossed['accounts']
  readonly changes: Pick<Changes, 'notice'>
  readonly figures: () => Promise<Figures>
  readonly monitor: { readonly running: number }
  close(): Promise<void>
}

export interface LedgerPlace {
  readonly connection: pg.PoolConfig
  readonly region: string | undefined
}

/** By name. */
type LedgerPlaces = ReadonlyMap<string, LedgerPlace>

interface LedgersOptions<G> extends Pick<CoreParts, 'world' | 'log'> {
  readonly control: ControlCell & Crossed & { readonly ledger: Pick<Ledger, 'system'> }
  /** Where control is, as the servers of the ledgers reach it. */
  readonly controlAt: pg.PoolConfig
  readonly installation: string
  readonly ledgers: LedgerPlaces
  readonly open: (name: string, connection: pg.PoolConfig, place: Place) => Promise<Opened & G>
}

/** Of what is shared: ledgers of this process learn of these at once, those of others within two seconds. */
const SHARED_TOPICS: readonly Topic[] = ['catalog', 'credentials', 'branding', 'tool-servers', 'keys']
const TRY_EVERY_MS = 1_000
const MIRROR_EVERY_MS = 1_000
const CROSS_EVERY_MS = 2_000

/** A ledger that does not answer at the start is tried again and again; its accounts wait, and nobody else. */
export async function openLedgers<G>(options: LedgersOptions<G>) {
  const { control, controlAt, installation, open, world, log } = options
  let { ledgers } = options
  const cells = new Map<string, Opened & G>()
  const failing = new Set<string>()
  let closed = false

  async function openOne(name: string, connection: pg.PoolConfig): Promise<void> {
    try {
      const cell = await open(name, connection, {
        control: control.database,
        listener: control.app,
        system: control.ledger.system,
        prepare: () => prepareLedger(connection, { connection: controlAt, ledger: name, installation }),
        schemas: LEDGER_SCHEMAS,
      })
      try {
        await mirror(control.database, cell.database)
      } catch (error) {
        await cell.close()
        throw error
      }
      // It may have been removed meanwhile, or have another address.
      if (closed || ledgers.get(name)?.connection !== connection) return await cell.close()
      cells.set(name, cell)
      if (failing.delete(name)) log.info({ ledger: name }, 'a ledger that did not answer is served again')
    } catch (error) {
      if (!failing.has(name)) {
        // What its server said.
        const cause = error instanceof Fault ? (error.cause ?? error) : error
        log.error({ ledger: name, error: cause }, 'a ledger could not be opened; it is tried again every second')
      }
      failing.add(name)
    }
  }

  const opening = new Set<string>()
  async function openMissing(): Promise<void> {
    const missing = [...ledgers].filter(([name]) => !cells.has(name) && !opening.has(name))
    for (const [name] of missing) opening.add(name)
    await Promise.all(
      missing.map(([name, { connection }]) => openOne(name, connection).finally(() => opening.delete(name))),
    )
  }
  const mirrorAll = () => Promise.allSettled([...cells.values()].map((cell) => mirror(control.database, cell.database)))
  await openMissing()
  // Control itself does what was meant for the ledger of an account that has moved to it.
  let isCrossing = false
  async function crossAll(): Promise<void> {
    // What control does itself bumps the topic that leads here.
    if (isCrossing) return
    isCrossing = true
    const all = [['control', control] as const, ...cells].map(([name, cell]) => crossOne(name, cell))
    await Promise.all(all)
    isCrossing = false
  }
  const crossOne = (name: string, cell: Crossed) =>
    cross(control.database, name, cell).catch((error: unknown) =>
      log.error({ ledger: name, error }, 'what control decided is not done in a ledger yet; it is tried again'),
    )
  for (const topic of SHARED_TOPICS)
    control.changes.watch(topic, async () => {
      // Whoever leaves an account bumps the topic of keys.
      if (topic === 'keys') await crossAll()
      await Promise.allSettled([...cells.values()].map((cell) => cell.changes.notice(topic)))
    })
  const roomiest = createRoom(cells, () => ledgers)
  control.ledger.system.countElsewhere(createSpent(control.database, cells, world))
  openFront(control, {
    get names() {
      return [...ledgers.keys()]
    },
    of: (name) => cells.get(name),
    roomiest,
    async cross(name) {
      const cell = cells.get(name)
      if (cell) await crossOne(name, cell)
    },
    changed: mirrorAll,
  })
  const timers = [
    every(world, TRY_EVERY_MS, openMissing, log),
    every(world, MIRROR_EVERY_MS, mirrorAll, log),
    every(world, CROSS_EVERY_MS, crossAll, log),
  ]
  return {
    /** Undefined: it does not answer yet. */
    of: (name: string) => cells.get(name),
    all: () => [...cells.values()],
    /** Says what differs, in sentences. */
    async compare() {
      const databases = [...ledgers.keys()].flatMap((name) => cells.get(name)?.database ?? [])
      if (databases.length < ledgers.size) throw new Error('Not all ledgers answer, so they cannot be compared.')
      return compareLedgers([control.database, ...databases])
    },
    /** Opens those that were added, and closes those that were removed or have another address. */
    async renew(now: LedgerPlaces): Promise<void> {
      const isSame = (name: string) => sameAddress(ledgers.get(name)?.connection, now.get(name)?.connection)
      const gone = [...cells].filter(([name]) => !isSame(name))
      const connectionOf = (name: string) => (isSame(name) ? ledgers : now).get(name)?.connection
      ledgers = new Map(
        Array.from(now, ([name, at]) => [name, { ...at, connection: connectionOf(name) ?? at.connection }]),
      )
      for (const [name] of gone) cells.delete(name)
      void Promise.allSettled(gone.map(([, cell]) => cell.close()))
      await openMissing()
    },
    answers: () => cells.size > 0,
    running: () => [...cells.values()].reduce((sum, cell) => sum + cell.monitor.running, 0),
    figures: async () => (await Promise.all([...cells.values()].map((cell) => cell.figures()))).flat(),
    async close(): Promise<void> {
      closed = true
      for (const stop of timers) stop()
      await Promise.allSettled([...cells.values()].map((cell) => cell.close()))
    },
  }
}

const sameAddress = (one: pg.PoolConfig | undefined, other: pg.PoolConfig | undefined) =>
  one === other || (one?.connectionString !== undefined && one.connectionString === other?.connectionString)

const SIZE = sql('ledger_size', SHORT_MS)`select pg_database_size(current_database()) as bytes`
/** What a new account is taken for, until the sizes are read again. */
const ACCOUNT_BYTES = 65_536n

/** Who has most room: the smallest of those that answer. */
function createRoom(cells: ReadonlyMap<string, Cell>, ledgers: () => LedgerPlaces): Ledgers['roomiest'] {
  const placed = new Map<string, bigint>()
  return async (region) => {
    const isIn = (name: string) => region === undefined || ledgers().get(name)?.region === region
    if (![...ledgers().keys()].some(isIn)) return null
    const sizes = await Promise.all(
      [...cells].map(async ([name, { database }]) => {
        if (!isIn(name)) return []
        const [row] = await database.query<{ bytes: bigint }>(SIZE).catch(() => [])
        return row ? [{ name, bytes: row.bytes + (placed.get(name) ?? 0n) }] : []
      }),
    )
    const [least] = sizes.flat().sort((one, other) => (one.bytes < other.bytes ? -1 : 1))
    if (!least) throw new Fault('unavailable', { retryAfterSeconds: 1 })
    placed.set(least.name, (placed.get(least.name) ?? 0n) + ACCOUNT_BYTES)
    return least.name
  }
}

/** Each ledger has a database of its own in the analytics store, as each knows only of its own calls what is there. */
export function ofLedger<C extends { readonly TOLLGATE_ANALYTICS_URL?: string | undefined }>(
  config: C,
  ledger: string,
): C {
  if (config.TOLLGATE_ANALYTICS_URL === undefined) return config
  const there = new URL(config.TOLLGATE_ANALYTICS_URL)
  const [, database] = there.pathname.split('/')
  there.pathname = `/${database || 'default'}_${ledger.replaceAll('-', '_')}`
  return { ...config, TOLLGATE_ANALYTICS_URL: there.href }
}
