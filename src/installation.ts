// The gateway that listens, and those of its ledgers, which may be added and removed while it runs.
import type pg from 'pg'
import { createGateway, type GatewayOptions, isOn } from './compose.ts'
import { alerts } from './extensions/alerts/extension.ts'
import type { LedgerPlace, openLedgers } from './extensions/ledgers/open.ts'
import { installationOf, readLedgers } from './extensions/postgres/ledgers.ts'
import { verify } from './extensions/verify/extension.ts'
import { every } from './kernel/timers.ts'

interface InstallationOptions extends GatewayOptions {
  /** Others than those of the configuration, for tests. */
  readonly ledgers?: ReadonlyMap<string, pg.PoolConfig>
}

const ABANDONED_EVERY_MS = 10_000

type Gateway = Awaited<ReturnType<typeof createGateway>>

export async function openInstallation(options: InstallationOptions) {
  const { config, connection, secret, world, log } = options
  let places: ReadonlyMap<string, LedgerPlace> = new Map()
  const regions = () => [...places.values()].flatMap(({ region }) => region ?? [])
  const gateway = await createGateway({ ...options, regions })
  const { database, changes } = gateway

  async function readPlaces(): Promise<void> {
    const all = new Map<string, LedgerPlace>()
    for (const [name, at] of options.ledgers ?? []) all.set(name, { connection: at, region: undefined })
    for (const [name, { url, region }] of await readLedgers(database, secret, config.TOLLGATE_LEDGERS))
      all.set(name, { connection: { connectionString: url }, region })
    places = all
  }

  let opened: Awaited<ReturnType<typeof openLedgers<Gateway>>> | undefined
  async function open(): Promise<void> {
    await readPlaces()
    if (opened) return opened.renew(places)
    if (places.size === 0) return
    // Loaded here: most installations have none.
    const ledgers = await import('./extensions/ledgers/open.ts')
    opened = await ledgers.openLedgers<Gateway>({
      ...options,
      control: gateway,
      controlAt: connection,
      installation: await installationOf(database),
      ledgers: places,
      open: (name, at, place) =>
        createGateway({ ...options, regions, config: ledgers.ofLedger(config, name), connection: at, place }),
    })
    gateway.join(opened)
    const { all, compare } = opened
    if (isOn(config, verify)) gateway.opened(verify).verifier.comparing(compare)
    if (isOn(config, alerts)) gateway.opened(alerts).gather(() => all().map((one) => one.opened(alerts).common))
  }
  try {
    await open()
  } catch (error) {
    await gateway.close()
    throw error
  }
  const endMoves = async () => {
    const { endAbandoned } = await import('./extensions/moving/abandoned.ts')
    const databases = new Map([['control', database]])
    for (const name of places.keys()) {
      const cell = opened?.of(name)
      if (cell) databases.set(name, cell.database)
    }
    await endAbandoned(databases, { world, log })
  }
  const stop = every(world, ABANDONED_EVERY_MS, endMoves, log)
  gateway.join({ running: () => 0, figures: async () => [], answers: () => false, close: async () => stop() })
  changes.watch('ledgers', () =>
    // What cannot be read would be so a minute later too: this process goes on with what it has.
    open().catch((error: unknown) => log.error({ error }, 'a change of the ledgers could not be read')),
  )
  return { gateway, ledgers: opened }
}
