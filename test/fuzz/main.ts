// `npm run fuzz -- --runs 1000000 [--seed 1]`: through the test runner's Postgres; see test/run.ts.
import { parseArgs } from 'node:util'
import { today, writePart } from '../chaos/report.ts'
import { withTestServer } from '../with-server.ts'
import { fuzz } from './run.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '32' },
  },
})
const runs = Number(values.runs)
const seed = Number(values.seed)
const findings = await withTestServer(async () => {
  const startedMs = performance.now()
  const secondsNow = () => (performance.now() - startedMs) / 1000
  const run = await fuzz({ runs, seed, atOnce: Number(values['at-once']), slowMsMax: 2_000 }, (sent) =>
    console.log(`${sent} of ${runs} requests, ${(sent / secondsNow()).toFixed(0)} a second`),
  )
  const seconds = secondsNow()
  const statuses = JSON.stringify(run.byStatus).replaceAll(/["{}]/g, '').replaceAll(',', ', ')
  console.log(
    `${run.sent} requests in ${seconds.toFixed(0)} s (${(run.sent / seconds).toFixed(0)} a second), ${statuses}, slowest ${Math.round(run.slowestMs)} ms (over 2 s and not when sent again: ${run.slow})`,
  )
  for (const finding of run.findings) console.error(finding)
  if (run.sent === runs && runs >= 10_000)
    await writePart(
      'fuzz',
      `Last run: ${today()}, seeds ${seed} to ${seed + runs - 1}: ${run.sent} requests, ${run.findings.length} findings; answers by status: ${statuses}; slowest ${Math.round(run.slowestMs)} ms.`,
    )
  return run.findings.length
})
process.exit(findings === 0 ? 0 : 1)
