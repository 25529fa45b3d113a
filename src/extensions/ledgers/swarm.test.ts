// The money of accounts in three ledgers, at two gateways: calls, credits given, codes redeemed and moves at once.
// Nobody is served beyond what was granted, and in the end every millionth is where it belongs.

import { startSandbox } from '../../../sandbox/server.ts'
import { checkBooks, noHolds } from '../../../test/chaos/books.ts'
import { countBy, startTraffic } from '../../../test/chaos/traffic.ts'
import { assert, before, OPERATOR_TOKEN, runs, started, test, until } from '../../../test/gateway.ts'
import { type Customer, startServers, visitorOf } from '../../../test/installation.ts'
import { type Killable, killable } from '../../../test/killable.ts'
import { CliError } from '../../cli/command.ts'
import { parseCredits } from '../../kernel/credits.ts'
import { realWorld } from '../../kernel/world.ts'
import { MoveRefused } from '../moving/move.ts'
import { cancelWithin, moveWithin, type Places, withPlaces } from '../moving/places.ts'

const LEDGERS = ['east', 'north', 'west']
const ALL = ['control', ...LEDGERS]
const ROUNDS = runs(6, 60)
/** What an account begins with, and is given each time: some ten calls' worth. */
const FIRST = '2'
const GIVEN = '0.5'
const CODE = '0.25'

const servers = started(() => startServers(LEDGERS))
const vendor = started(() => startSandbox({ world: realWorld, speed: 1000 }))
const start = killable()
const gateways: Killable[] = []
const customers: Customer[] = []
const visitor = (n: number) => visitorOf(servers, () => gateways[n % gateways.length]!.url) // There are two.

before(async () => {
  for (let i = 0; i < 2; i++) gateways.push(await start(servers.processOf(vendor.url)))
  for (let i = 0; i < 2; i++) customers.push(...(await visitor(i).customers(LEDGERS, { credits: FIRST })).values())
})

/** The same again until somebody says that it is done: credits by their idempotency key, a code by itself. */
async function insist(n: number, path: string, body: object, key: string): Promise<void> {
  await until(async () => {
    const answer = await fetch(`${gateways[n % gateways.length]!.url}/admin/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${OPERATOR_TOKEN}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify(body),
    })
    const text = await answer.text()
    assert.ok([200, 503].includes(answer.status), `${path}: ${answer.status} ${text}`)
    return answer.status === 200
  })
}

async function move(places: Places, account: string, to: string): Promise<boolean> {
  const about = { places, account, to, world: realWorld, waitMs: 20_000, say: () => undefined }
  try {
    await moveWithin(about)
    return true
  } catch (error) {
    if (!(error instanceof MoveRefused)) throw error
    await cancelWithin(about).catch((refused: unknown) =>
      assert.ok(refused instanceof CliError || refused instanceof MoveRefused),
    )
    return false
  }
}

const total = async (name: string, text: string, values: string[][] = []) =>
  (await servers.databaseOf(name).query<{ sum: bigint }>({ text }, values))[0]?.sum ?? 0n
const BALANCES = 'select coalesce(sum(posted), 0)::bigint as sum from public.account where id = any($1)'

test('calls, credits, codes and moves at once leave every millionth where it belongs', async (t) => {
  const { list } = await visitor(0).ask<{ list: string[] }>('/code-batches', {
    name: 'swarm',
    credits: CODE,
    codes: ROUNDS * customers.length,
  })
  const traffic = new Map(
    customers.map(({ id, key }) => [
      id,
      startTraffic({ urls: () => gateways.map(({ url }) => url), key, kinds: ['chat', 'stream', 'leave'], atOnce: 2 }),
    ]),
  )
  const ledgers = new Map(LEDGERS.map((name) => [name, { url: servers.addressOf(name), region: undefined }]))
  let moves = 0
  await withPlaces({ databaseUrl: servers.addressOf('control'), ledgers }, (places) =>
    Promise.all(
      customers.map(async ({ id }, at) => {
        for (let round = 0; round < ROUNDS; round++) {
          const to = ALL[(at + round) % ALL.length]! // It is one of them.
          const moving = round % 2 === at % 2 ? move(places, id, to) : undefined
          await insist(round, `/accounts/${id}/credits`, { amount: GIVEN, note: `gift ${round}` }, `${id} ${round}`)
          await insist(round + 1, `/accounts/${id}/codes`, { code: list[at * ROUNDS + round] }, `${id} code ${round}`)
          if (await moving) moves++
        }
      }),
    ),
  )
  for (const one of traffic.values()) await one.stop()
  const granted = BigInt(ROUNDS) * (parseCredits(GIVEN)! + parseCredits(CODE)!) + parseCredits(FIRST)! // They are amounts.
  let spent = 0n
  for (const { id } of customers) {
    const { told } = traffic.get(id)!
    t.diagnostic(`${id}: ${JSON.stringify(countBy(told))}`)
    for (const { status, text } of told) assert.ok([200, 402, 429, 503].includes(status), `${status}: ${text}`)
    const [home, ...others] = await servers.homesOf(id)
    assert.deepEqual(others, [], 'it is in one ledger')
    await using database = servers.open(home!) // It has one.
    await noHolds(database, 90_000)
    const [row] = await database.query<{ posted: bigint; charged: bigint }>(
      {
        text: `select posted, (select coalesce(sum(charged), 0)::bigint from usage u where u.account_id = a.id) as charged from account a where id = $1`,
      },
      [id],
    )
    assert.equal(row!.posted + row!.charged, granted, `${id}: ${row!.posted} are left, and ${row!.charged} were spent`)
    assert.ok(told.reduce((sum, { charge = 0n }) => sum + charge, 0n) <= row!.charged)
    await checkBooks(database, traffic.get(id)!.acknowledged())
    spent += row!.charged
  }
  let left = 0n
  for (const name of ALL) {
    await using database = servers.open(name)
    await checkBooks(database, [])
    left += await total(name, BALANCES, [customers.map(({ id }) => id)])
  }
  assert.equal(left + spent, granted * BigInt(customers.length), 'the sums of all ledgers')
  await until(() => total('control', 'select count(*)::bigint as sum from crossing'), 0n)
  assert.equal(await total('control', 'select sum(uses)::bigint as sum from code'), BigInt(list.length))
  t.diagnostic(`${moves} moves; ${spent} of ${granted * BigInt(customers.length)} spent`)
})
