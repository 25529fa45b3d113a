// `npm run simulate -- --seeds 10000 [--from 1] [--at-once 8]`: many stories on one Postgres. A story that fails is named
// with the command that tells it again.
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openDatabase } from '../../src/database/database.ts'
import { startEmbedded } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { today, writePart } from '../chaos/report.ts'
import { runSeeds } from './seeds.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: String(availableParallelism() * 4) },
  },
})
const directory = await mkdtemp(join(tmpdir(), 'tollgate-simulate-'))
const server = await startEmbedded({ dataDirectory: join(directory, 'data'), log: () => {} })
// What is simulated is the line to the database, not its disk.
const database = openDatabase({
  connection: { ...server.connection, options: '-c synchronous_commit=off' },
  connectionsMax: Number(values['at-once']),
})
let failed = 1
// Whoever loses patience still learns what has been found.
let stopped = false
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.on(name, () => {
    stopped = true
  })
try {
  await migrate(database)
  const startedMs = performance.now()
  const { failures, done } = await runSeeds(database, {
    from: Number(values.from),
    count: Number(values.seeds),
    atOnce: Number(values['at-once']),
    stopped: () => stopped,
  })
  for (const { seed, error } of failures)
    console.error(
      `Seed ${seed} fails: ${error instanceof Error ? error.stack : String(error)}\n  Again: npm run simulate -- --seeds 1 --from ${seed}\n`,
    )
  console.log(
    `${done - failures.length} of ${done} seeds pass, in ${((performance.now() - startedMs) / 1000).toFixed(0)} s.`,
  )
  failed = failures.length
  if (done >= 1_000)
    await writePart(
      'simulate',
      `Last run: ${today()}, seeds ${values.from} to ${Number(values.from) + done - 1}: ${done - failures.length} of ${done} pass, in ${((performance.now() - startedMs) / 60_000).toFixed(0)} minutes.`,
    )
} finally {
  await database.close()
  await server.stop()
  await rm(directory, { recursive: true, force: true })
}
process.exit(failed === 0 ? 0 : 1)
