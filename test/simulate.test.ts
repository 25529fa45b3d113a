// The short form of `npm run simulate`: some stories of crashes, lost answers and bad vendors. And whether the
// simulator would notice: each way to break the gateway makes some story fail, and each story is the same when it is
// told again.

import { testServer } from './database.ts'
import { after, assert, before, runs, test } from './kit.ts'
import { makeLaneTemplate } from './simulate/lane.ts'
import { LEDGER_SABOTAGES, SABOTAGES, STAGES } from './simulate/sabotages.ts'
import { openLanes, runSeeds } from './simulate/seeds.ts'
import { simulate } from './simulate/simulation.ts'

const LIMITED_SEEDS = runs(3, 20)
const SEEDS = runs(4, 60)
/** Seeds that a broken gateway may pass before one notices. */
const UNNOTICED_MAX = 150

let lanes: Awaited<ReturnType<typeof openLanes>>
before(async () => {
  await makeLaneTemplate(testServer())
  lanes = await openLanes(testServer(), 'alone', 3)
})
after(() => lanes.close())
const one = () => lanes.all.slice(0, 1)

test('seeds of crashes, lost answers and bad vendors leave the ledger right', async () => {
  const { done, failures } = await runSeeds(testServer(), { from: 1, count: SEEDS, atOnce: 4 })
  for (const { seed, error } of failures)
    console.error(
      `seed ${seed}: ${error instanceof Error ? error.stack : error}\n  again: npm run simulate -- --seeds 1 --from ${seed} --tell`,
    )
  assert.deepEqual([done, failures.length], [SEEDS, 0])
})

test('what a job holds is not given to calls as well when a slice of the limits is on its way', async () => {
  const { failures } = await runSeeds(testServer(), { from: 9998, count: 1, atOnce: 1 })
  assert.deepEqual(
    failures.map(({ error }) => String(error)),
    [],
  )
})

test('seeds with limits of the whole gateway keep within them', async () => {
  const story = { from: 1, count: LIMITED_SEEDS, atOnce: 4, stage: { limited: true } as const }
  const { done, failures } = await runSeeds(testServer(), story)
  assert.deepEqual([done, failures.map(({ seed, error }) => `${seed}: ${error}`)], [LIMITED_SEEDS, []])
})

test('seeds with accounts that move between three ledgers leave all of them right', async (t) => {
  const count = runs(3, 60)
  const { done, moved, failures } = await runSeeds(testServer(), { from: 1, count, atOnce: 2, ledgers: 3 })
  assert.deepEqual([done, failures.map(({ seed, error }) => `${seed}: ${error}`)], [count, []])
  assert.ok(moved > 0)
  t.diagnostic(`${moved} moves`)
})

test('a seed tells the same story again, alone or after and beside others', async () => {
  const { digests } = await runSeeds(testServer(), { from: 1, count: runs(3, 6), atOnce: 3 })
  for (const seed of [...digests.keys()].reverse().slice(0, runs(2, 6)))
    assert.equal((await simulate(seed, one())).digest, digests.get(seed), `seed ${seed}`)
})

/** Each takes seconds, and some many seeds. The long tests break the gateway in every way. */
const some = (sabotages: typeof SABOTAGES, few: number) =>
  Object.entries(sabotages).slice(0, runs(few, Number.POSITIVE_INFINITY))
for (const [name, sabotage] of [...some(SABOTAGES, 2), ...some(LEDGER_SABOTAGES, 1)])
  test(`the simulator notices when ${name}`, async (t) => {
    for (let seed = 1; seed <= UNNOTICED_MAX; seed++) {
      const failure = await simulate(seed, name in LEDGER_SABOTAGES ? lanes.all : one(), {
        sabotage,
        stage: STAGES[name],
      }).then(
        () => undefined,
        (error: Error) => error,
      )
      if (!failure) continue
      // Noticed for what it does, and not because the break itself is broken.
      assert.doesNotMatch(
        failure.message,
        /(Syntax|Type|Reference)Error|error: |Cannot read|is not (a function|iterable|defined)/,
      )
      t.diagnostic(`seed ${seed}: ${failure.message.split('\n')[0]}`)
      return
    }
    assert.fail(`${UNNOTICED_MAX} seeds noticed nothing`)
  })
