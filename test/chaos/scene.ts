// Several gateways in front of one Postgres, or of a primary and its standby, with accounts of every kind of caller.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestOf, makeKey } from '../../src/admission/api-key.ts'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { startEmbedded } from '../../src/extensions/postgres/embedded.ts'
import { createSecrets } from '../../src/kernel/secret.ts'
import { newId, realWorld } from '../../src/kernel/world.ts'
import { SECRET } from '../gateway.ts'
import { type GatewayProcess, startProcess } from './gateway-process.ts'
import { type Pair, startPair } from './pair.ts'
import { type ChaosProxy, startProxy } from './proxy.ts'

export type Account = { readonly id: string; readonly key: string }

export interface Scene {
  readonly gateways: readonly GatewayProcess[]
  /** Those to which callers go: whoever shares the calls out has taken the others off his list. */
  readonly listed: GatewayProcess[]
  /** Between the gateways and Postgres; of a pair, before the primary. */
  readonly door: ChaosProxy
  /** Past the door. Not to be kept: after a promotion it is another server. */
  readonly direct: Database
  /** Where there is a standby. */
  readonly pair: Pair | undefined
  /** After the standby was promoted. */
  moved(): Promise<void>
  account(credits?: bigint): Promise<Account>
  close(): Promise<void>
}

/** By which `direct` is told from the gateways' connections. */
export const DIRECT = 'direct'
const CREDITS = 1_000_000_000_000n

interface Store {
  readonly url: string
  readonly door: ChaosProxy
  readonly pair: Pair | undefined
  open(isPromoted: boolean): Database
  close(): Promise<void>
}

const openDirect = (connection: object) =>
  openDatabase({ connection: { ...connection, application_name: DIRECT }, connectionsMax: 4 })

async function oneServer(directory: string): Promise<Store> {
  const server = await startEmbedded({
    dataDirectory: join(directory, 'store'),
    loopback: true,
    log: (line) => console.log(`  ${line}`),
  })
  const { port, user, password, database } = server.connection
  const door = await startProxy({ host: '127.0.0.1', port })
  return {
    door,
    pair: undefined,
    url: `postgres://${user}:${password}@127.0.0.1:${door.port}/${database}`,
    open: () => openDirect(server.connection),
    async close() {
      await door.close()
      await server.stop()
    },
  }
}

async function twoServers(synchronous: boolean): Promise<Store> {
  const pair = await startPair({ synchronous })
  const { primary, standby, url, close } = pair
  return {
    pair,
    url,
    close,
    door: primary.door,
    open: (isPromoted) => openDirect((isPromoted ? standby : primary).server.connection),
  }
}

export type SceneOptions = { readonly processes: number; readonly standby: 'synchronous' | 'lagging' | undefined }

export async function openScene(options: SceneOptions): Promise<Scene> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-troubles-'))
  const store = options.standby ? await twoServers(options.standby === 'synchronous') : await oneServer(directory)
  const gateways: GatewayProcess[] = []
  let direct = store.open(false)
  const scene: Scene = {
    gateways,
    listed: [],
    door: store.door,
    pair: store.pair,
    get direct() {
      return direct
    },
    async moved() {
      await direct.close().catch(() => undefined)
      direct = store.open(true)
    },
    async account(credits = CREDITS) {
      const [id, key] = [`acc_${newId(realWorld)}`, makeKey(realWorld)]
      const digest = digestOf(createSecrets(SECRET).key('api-key'), key)
      await direct.query({ text: 'insert into account (id, name) values ($1, $2)' }, [id, 'troubles'])
      await direct.query({ text: `select ledger_grant($1, $2, $3, 'troubles', 'troubles')` }, [
        newId(realWorld),
        id,
        credits,
      ])
      await direct.query(
        { text: 'insert into api_key (id, account_id, name, digest, prefix, last4) values ($1, $2, $3, $4, $5, $6)' },
        [`key_${newId(realWorld)}`, id, 'troubles', digest, key.slice(0, 12), key.slice(-4)],
      )
      return { id, key }
    },
    async close() {
      for (const gateway of gateways) {
        gateway.kill('SIGCONT')
        gateway.kill('SIGKILL')
      }
      await Promise.all(gateways.map(({ exited }) => exited))
      await direct.close().catch(() => undefined)
      await store.close()
      await rm(directory, { recursive: true, force: true, maxRetries: 10 })
    },
  }
  try {
    while (gateways.length < options.processes)
      gateways.push(
        await startProcess({
          env: {
            DATABASE_URL: store.url,
            TOLLGATE_SECRET: SECRET,
            TOLLGATE_DATA: join(directory, `data-${gateways.length}`),
            TOLLGATE_SANDBOX_SPEED: '100',
            TOLLGATE_DATABASE_CONNECTIONS: '8',
          },
        }),
      )
    scene.listed.push(...gateways)
    return scene
  } catch (error) {
    await scene.close()
    throw error
  }
}
