// `npm run simulate -- --seeds 10000 [--from 1] [--at-once 4] [--limited] [--ledgers 3]`: many stories on one Postgres,
// each in a database of its own, or in as many as it has ledgers. A story that fails is named with the command that
// tells it again; `--tell` prints every line of it; `--limited` limits the whole gateway in all of them.
import { parseArgs } from 'node:util'
import pg from 'pg'
import { today, writePart } from '../chaos/report.ts'
import { testServer } from '../database.ts'
import { withTestServer } from '../with-server.ts'
import { runSeeds } from './seeds.ts'

const PROGRESS_EVERY_MS = 5_000

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '4' },
    limited: { type: 'boolean', default: false },
    ledgers: { type: 'string', default: '1' },
    tell: { type: 'boolean', default: false },
  },
})
const from = Number(values.from)
const wanted = Number(values.seeds)

// Whoever loses patience still learns what has been found.
let stopped = false
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.on(name, () => {
    stopped = true
  })

const failed = await withTestServer(async () => {
  const server = testServer()
  const client = new pg.Client(server)
  await client.connect()
  // What is simulated is the line to the database, not its disk.
  await client.query('alter system set fsync = off')
  await client.query('alter system set full_page_writes = off')
  await client.query('select pg_reload_conf()')
  await client.end()
  const startedMs = performance.now()
  let toldMs = startedMs
  const seconds = () => (performance.now() - startedMs) / 1000
  const { failures, done, events, leased, moved } = await runSeeds(server, {
    from,
    count: wanted,
    atOnce: values.tell ? 1 : Number(values['at-once']),
    ledgers: Number(values.ledgers),
    stage: values.limited ? { limited: true } : undefined,
    stopped: () => stopped,
    ...(values.tell ? { tell: (line) => console.log(line) } : {}),
    onDone(sofar, wrong) {
      if (performance.now() - toldMs < PROGRESS_EVERY_MS) return
      toldMs = performance.now()
      console.log(`${sofar} of ${wanted} seeds, ${wrong} failed, ${(sofar / seconds()).toFixed(1)} a second`)
    },
  })
  for (const { seed, error } of failures)
    console.error(
      `Seed ${seed} fails: ${error instanceof Error ? error.stack : String(error)}\n  Again: npm run simulate -- --seeds 1 --from ${seed} --tell${values.limited ? ' --limited' : ''} --ledgers ${values.ledgers}\n`,
    )
  const pace = `${seconds().toFixed(0)} s (${(done / seconds()).toFixed(1)} a second, ${Math.round(events / Math.max(1, done))} events each; leases in ${leased}; ${moved} moves)`
  console.log(`${done - failures.length} of ${done} seeds pass, in ${pace}.`)
  if (done === wanted && done >= 1_000 && !values.limited && values.ledgers === '1')
    await writePart(
      'simulate',
      `Last run: ${today()}, seeds ${from} to ${from + done - 1}: ${done - failures.length} of ${done} pass, in ${(seconds() / 60).toFixed(0)} minutes.`,
    )
  return failures.length
})
process.exit(failed === 0 ? 0 : 1)
