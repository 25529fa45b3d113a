// Opens the ledgers of TOLLGATE_LEDGERS in this process, beside the gateway of the control database.
import type pg from 'pg'
import type { Changes, Topic } from '../../database/changes.ts'
import { type Database, SHORT_MS, statement } from '../../database/database.ts'
import { LEDGER_SCHEMAS } from '../../database/tables.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { every } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Figures } from '../../telemetry/metrics.ts'
import { type Crossed, cross } from './crossings.ts'
import { type Cell, type ControlCell, type Ledgers, openFront } from './front.ts'
import { mirror } from './mirror.ts'
import { prepareLedger } from './mount.ts'
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
  readonly changes: Pick<Changes, 'notice'>
  readonly figures: () => Promise<Figures>
  readonly monitor: { readonly running: number }
  close(): Promise<void>
}

/** By the name of the ledger. */
type Regions = ReadonlyMap<string, string | undefined>

interface LedgersOptions<G> {
  readonly regions: Regions
  readonly control: ControlCell & Crossed & { readonly ledger: Pick<Ledger, 'system'> }
  /** Where control is, as the servers of the ledgers reach it. */
  readonly controlAt: pg.PoolConfig
  /** By name, where each is. */
  readonly ledgers: ReadonlyMap<string, pg.PoolConfig>
  readonly open: (name: string, connection: pg.PoolConfig, place: Place) => Promise<Opened & G>
  readonly world: World
  readonly log: Log
}

/** Of what is shared: ledgers of this process learn of these at once, those of others within two seconds. */
const SHARED_TOPICS: readonly Topic[] = ['catalog', 'credentials', 'branding', 'tool-servers', 'keys']
const TRY_EVERY_MS = 1_000
const MIRROR_EVERY_MS = 1_000
const CROSS_EVERY_MS = 2_000

/** A ledger that does not answer at the start is tried again and again; its accounts wait, and nobody else. */
export async function openLedgers<G>(options: LedgersOptions<G>) {
  const { control, controlAt, ledgers, regions, open, world, log } = options
  const cells = new Map<string, Opened & G>()
  const failing = new Set<string>()
  let closed = false

  async function openOne(name: string, connection: pg.PoolConfig): Promise<void> {
    try {
      const cell = await open(name, connection, {
        control: control.database,
        listener: control.app,
        system: control.ledger.system,
        prepare: () => prepareLedger(connection, { connection: controlAt, ledger: name }),
        schemas: LEDGER_SCHEMAS,
      })
      try {
        await mirror(control.database, cell.database)
      } catch (error) {
        await cell.close()
        throw error
      }
      if (closed) return await cell.close()
      cells.set(name, cell)
      if (failing.delete(name)) log.info({ ledger: name }, 'a ledger that did not answer is served again')
    } catch (error) {
      if (!failing.has(name))
        log.error({ ledger: name, error }, 'a ledger could not be opened; it is tried again every second')
      failing.add(name)
    }
  }

  const openMissing = () =>
    Promise.all([...ledgers].flatMap(([name, at]) => (cells.has(name) ? [] : [openOne(name, at)])))
  const mirrorAll = () => Promise.allSettled([...cells.values()].map((cell) => mirror(control.database, cell.database)))
  await openMissing()
  // Control itself does what was meant for the ledger of an account that has moved to it.
  let isCrossing = false
  async function crossAll(): Promise<void> {
    // What control does itself bumps the topic that leads here.
    if (isCrossing) return
    isCrossing = true
    const all = [['control', control] as const, ...cells].map(([name, cell]) =>
      cross(control.database, name, cell).catch((error: unknown) =>
        log.error({ ledger: name, error }, 'what control decided is not done in a ledger yet; it is tried again'),
      ),
    )
    await Promise.all(all)
    isCrossing = false
  }
  for (const topic of SHARED_TOPICS)
    control.changes.watch(topic, async () => {
      // Whoever leaves an account bumps the topic of keys.
      if (topic === 'keys') await crossAll()
      await Promise.allSettled([...cells.values()].map((cell) => cell.changes.notice(topic)))
    })
  const roomiest = createRoom(cells, regions)
  control.ledger.system.countElsewhere(createSpent(control.database, cells, world))
  openFront(control, { names: [...ledgers.keys()], of: (name) => cells.get(name), roomiest, changed: mirrorAll })
  const timers = [
    every(world, TRY_EVERY_MS, openMissing, log),
    every(world, MIRROR_EVERY_MS, mirrorAll, log),
    every(world, CROSS_EVERY_MS, crossAll, log),
  ]
  return {
    /** Undefined: it does not answer yet. */
    of: (name: string) => cells.get(name),
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

const SIZE = statement('ledger_size', 'select pg_database_size(current_database()) as bytes', SHORT_MS)
/** What a new account is taken for, until the sizes are read again. */
const ACCOUNT_BYTES = 65_536n

/** Who has most room: the smallest of those that answer. */
function createRoom(cells: ReadonlyMap<string, Cell>, regions: Regions): Ledgers['roomiest'] {
  const placed = new Map<string, bigint>()
  return async (region) => {
    const isIn = (name: string) => region === undefined || regions.get(name) === region
    if (![...regions.keys()].some(isIn)) return null
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
