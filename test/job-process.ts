// A gateway in a process of its own, to be killed: says where it listens, and which jobs it has ended.
import type pg from 'pg'
import { readConfig } from '../src/config.ts'
import { openInstallation } from '../src/installation.ts'
import { realWorld } from '../src/kernel/world.ts'
import { OPERATOR_TOKEN, SECRET } from './gateway.ts'
import { FAST } from './job-pace.ts'

export interface JobProcessOptions {
  readonly connection: pg.PoolConfig
  readonly sandboxUrl: string
  readonly data: string
  /** Private addresses that deliveries may go to. */
  readonly outboundAllow?: string
  /** What else it is configured with, such as ledgers. */
  readonly environment?: Readonly<Record<string, string>>
}

const options = JSON.parse(process.argv[2]!) as JobProcessOptions
const say = (line: string) => process.stdout.write(`${line}\n`)
const { gateway } = await openInstallation({
  config: readConfig({
    TOLLGATE_DATA: options.data,
    TOLLGATE_SECRET: SECRET,
    TOLLGATE_OVERLOAD_LAG_MS: '60000',
    TOLLGATE_OUTBOUND_ALLOW: options.outboundAllow ?? '',
    ...options.environment,
  }),
  world: realWorld,
  log: {
    debug() {},
    info(fields, message) {
      if (message === 'job ended') say(`ended ${(fields as { job: string }).job}`)
    },
    warn() {},
    error() {},
  },
  connection: options.connection,
  secret: SECRET,
  operatorToken: OPERATOR_TOKEN,
  sandboxUrl: () => options.sandboxUrl,
  jobs: FAST,
})
say(`listening ${await gateway.app.listen({ port: 0, host: '127.0.0.1' })}`)
process.on('SIGTERM', () => {
  void gateway.close().then(() => process.exit(0))
})
