// Two gateway processes, control and three ledgers: limits of the whole gateway are of all of them together.

import { join } from 'node:path'
import { type GatewayProcess, startProcess } from '../../../test/chaos/gateway-process.ts'
import { after, assert, atOnce, before, OPERATOR_TOKEN, test, until } from '../../../test/gateway.ts'
import { type Customer, type Servers, startServers, visitorOf } from '../../../test/installation.ts'
import { formatCredits } from '../../kernel/credits.ts'

const LEDGERS = ['east', 'north', 'west']
const CREDITS = '1000000'

let servers: Servers
/** One in each ledger. */
let all: Map<string, Customer>
let started = 0
const gateways: GatewayProcess[] = []
const visitor = () => visitorOf(servers, () => gateways[0]!.url)

async function startGateway(): Promise<void> {
  const TOLLGATE_DATA = join(servers.folder, `data-${started++}`)
  const env = { ...servers.environment, TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN, TOLLGATE_SANDBOX_SPEED: '100' }
  gateways.push(await startProcess({ env: { ...env, TOLLGATE_DATA } }))
}

before(async () => {
  servers = await startServers(LEDGERS)
  for (let i = 0; i < 2; i++) await startGateway()
  all = await visitor().customers(LEDGERS, { credits: CREDITS })
})
after(async () => {
  for (const gateway of gateways) gateway.kill('SIGTERM')
  await Promise.all(gateways.map(({ exited }) => exited))
  await servers.close()
})

const SLICES = { text: 'select unit, amount from quota_slice where amount > 0' }
const CREDIT = 1_000_000n
const SPENT = {
  text: 'select coalesce(sum(charged), 0)::bigint as sum from (select charged from usage_hour union all select charged from journal) x',
}

/** Of all, as parts of a credit. */
async function spent(): Promise<bigint> {
  const sums = await Promise.all(LEDGERS.map((name) => servers.databaseOf(name).query<{ sum: bigint }>(SPENT)))
  return sums.reduce((sum, [row]) => sum + row!.sum, 0n)
}

/** Calls of all accounts at all gateways at once; gives how many were served. */
async function burst(times: number, more: readonly number[] = []): Promise<number> {
  const visitors = gateways.map(({ url }) => visitorOf(servers, () => url))
  const keys = [...all.values()].map(({ key }) => key)
  const statuses = await atOnce(times, async (i) => {
    const answer = await visitors[i % visitors.length]!.chat(keys[i % keys.length]!)
    await answer.text()
    return answer.status
  })
  for (const status of statuses) assert.ok([200, 429, ...more].includes(status), String(statuses))
  return statuses.filter((status) => status === 200).length
}

test('limits of the whole gateway hold over all ledgers and processes, to the call', async (t) => {
  const limit = (limits: object) => visitor().ask('/limits', limits, 'PATCH')
  assert.equal(await burst(12), 12)
  await limit({ requestsPerMinute: 20 })
  const served = await burst(60)
  assert.ok(served <= 20 && served >= 15, `${served} of 20`)
  const before = await spent()
  const most = before + CREDIT
  await limit({ requestsPerMinute: null, spendTotal: formatCredits(most) })
  let calls = 0
  for (let last = -1; last !== 0 && calls < 2_000; calls += last) last = await burst(30)
  // Processes have told of what they spent, and given back what they do not need.
  await until(() => servers.databaseOf('control').query(SLICES), [])
  calls += await burst(30)
  const after = await spent()
  assert.ok(after <= most && calls > 0, `${after - before} of ${most - before} by ${calls} calls`)
  await limit({ spendTotal: null })
  assert.equal(await burst(12), 12)
  t.diagnostic(`${served} of 20 requests of 60; ${after - before} of ${most - before} spent by ${calls} calls`)
})
