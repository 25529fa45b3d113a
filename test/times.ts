// Loaded into every process of `npm test -- --times`: it writes down at its end how much processor time it took. Postgres is not counted.
import { appendFileSync } from 'node:fs'

const file = process.env.TOLLGATE_TEST_TIMES
if (file !== undefined)
  process.on('exit', () => {
    const { user, system } = process.cpuUsage()
    appendFileSync(file, `${((user + system) / 1e6).toFixed(1)} ${process.argv[1] ?? ''}\n`)
  })
