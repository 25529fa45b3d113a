// `npm run fuzz -- --runs 1000000 [--seed 1]`: through the test runner's Postgres; see test/run.ts.
import { parseArgs } from 'node:util'
import { today, writePart } from '../chaos/report.ts'
import { startGateway } from '../gateway.ts'
import { withTestServer } from '../with-server.ts'
import { fuzz } from './run.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '16' },
  },
})
const findings = await withTestServer(async () => {
  const g = await startGateway()
  try {
    const run = await fuzz(g, {
      runs: Number(values.runs),
      seed: Number(values.seed),
      atOnce: Number(values['at-once']),
      slowMsMax: 2_000,
    })
    console.log(`${run.sent} requests, ${JSON.stringify(run.byStatus)}, slowest ${Math.round(run.slowestMs)} ms`)
    for (const finding of run.findings) console.error(finding)
    await g.settled()
    if (run.sent >= 10_000)
      await writePart(
        'fuzz',
        `Last run: ${today()}, seed ${values.seed}: ${run.sent} requests, ${run.findings.length} findings; answers by status: ${JSON.stringify(run.byStatus).replaceAll(/["{}]/g, '').replaceAll(',', ', ')}; slowest ${Math.round(run.slowestMs)} ms.`,
      )
    return run.findings.length
  } finally {
    await g.close()
  }
})
process.exit(findings === 0 ? 0 : 1)
