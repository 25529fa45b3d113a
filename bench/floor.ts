// The least that a gateway with durable money can be on this platform: `node:http` in front, undici behind, and between
// the vendor's answer and the caller's one durable update of one row, shared by all who wait. No key, price, limit,
// lease, usage row, log or figure. What Tollgate takes beyond it is Tollgate's.
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Pool } from 'undici'
import { openDatabase } from '../src/database/database.ts'
import type { Embedded } from '../src/extensions/postgres/embedded.ts'
import { createBatch } from '../src/kernel/batch.ts'
import { freePort, start } from './process.ts'
import type { Target, TargetOptions } from './target.ts'

const CONNECTIONS = 256

/** The bare update: the row is there once. */
export const BARE = {
  table: 'create table if not exists bench_bare (id int primary key, n bigint)',
  row: 'insert into bench_bare values (1, 0) on conflict do nothing',
  update: { name: 'bench_bare', text: 'update bench_bare set n = n + 1 where id = 1' },
} as const

interface Orders {
  readonly port: number
  readonly upstreamPort: number
  readonly connection: Embedded['connection']
}

export async function startFloor(options: TargetOptions & { store: Embedded }): Promise<Target> {
  const port = await freePort()
  const orders: Orders = { port, upstreamPort: options.upstreamPort, connection: options.store.connection }
  const started = await start(process.execPath, [import.meta.filename, JSON.stringify(orders)], {
    cores: options.cores,
    port,
    logFile: join(options.directory, 'floor.log'),
    env: { NODE_ENV: 'production' },
  })
  return { ...started, name: 'floor', version: 'of node:http, undici and pg', port, headers: {} }
}

/** What undici makes of a request, without deadlines, an abort or backpressure. */
export function bareExchange(pool: Pool, body: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    const headers = ['content-type', 'application/json']
    pool.dispatch(
      { path: '/v1/chat/completions', method: 'POST', headers, body },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData: (_, piece) => void pieces.push(piece),
        onResponseEnd: () => resolve(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)),
        onResponseError: (_, error) => reject(error),
      },
    )
  })
}

async function serve({ port, upstreamPort, connection }: Orders): Promise<void> {
  const database = openDatabase({ connection: { ...connection } })
  await database.query({ text: BARE.table })
  await database.query({ text: BARE.row })
  const commits = createBatch<undefined, undefined>({
    flush: async (group) => {
      await database.query(BARE.update)
      return group
    },
    flushesMax: 1,
    sizeMax: CONNECTIONS,
  })
  const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { connections: CONNECTIONS })
  createServer((request, response) => {
    request.on('data', async (body: Buffer) => {
      const answer = await bareExchange(pool, body)
      await commits.run(undefined)
      response.end(answer)
    })
  }).listen(port, '127.0.0.1')
}

if (process.argv[1] === import.meta.filename) await serve(JSON.parse(process.argv[2] ?? '{}') as Orders)
