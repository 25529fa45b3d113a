// `npm run chaos`: every fault with its full figures (`--short`: those of the test suite), into docs/reliability.md.
// `npm run chaos -- cluster --minutes 5`: several processes and one Postgres, killed and restarted under load.
// `npm run chaos -- troubles --seconds 45 [--only stopped,month]`: what else befalls several processes and their
// Postgres under load. `npm run chaos -- overload`: four times the peak of one process, and what it serves meanwhile.
import { parseArgs } from 'node:util'
import { runCluster } from './cluster.ts'
import { runOverload } from './overload.ts'
import { runFaults } from './run-faults.ts'
import { runTroubles } from './run-troubles.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '5' },
    'per-second': { type: 'string', default: '200' },
    processes: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '45' },
    only: { type: 'string' },
    'kill-every': { type: 'string', default: '30' },
  },
})
if (positionals[0] === 'cluster')
  await runCluster({
    minutes: Number(values.minutes),
    perSecond: Number(values['per-second']),
    processes: Number(values.processes),
    killEverySeconds: Number(values['kill-every']),
  })
else if (positionals[0] === 'troubles')
  process.exitCode = await runTroubles({
    seconds: Number(values.seconds),
    perSecond: Number(values['per-second']),
    processes: Number(values.processes),
    only: values.only?.split(','),
  })
else if (positionals[0] === 'overload')
  process.exitCode = await runOverload({ seconds: 15, connections: [256, 1_000, 4_000], times: 4 })
else process.exitCode = (await runFaults({ full: !values.short })) === 0 ? 0 : 1
