// What calls leave in memory when they are over and nobody holds them: bytes that young collections carried into the
// old generation, where only a full one finds them. A program of its own, because the test runner follows every promise
// and keeps some.

import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Caller } from '../src/api/server/caller.ts'
import { SlotSet } from '../src/kernel/slot-set.ts'
import { realWorld as world } from '../src/kernel/world.ts'
import { createUpstream } from '../src/upstream/exchange.ts'
import { freshDatabase } from './database.ts'
import { listen } from './started.ts'

const WARM_UP = 3_000
const CALLS = 4_000
const EVERY = 200

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (how?: { type: 'minor' }) => void // There is one as soon as it is exposed.

function old(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? 0
}

/** For each call, one after the other. */
async function leftBy(call: () => Promise<unknown>): Promise<number> {
  for (let i = 0; i < WARM_UP; i++) await call()
  collect()
  collect()
  const before = old()
  for (let i = 0; i < CALLS; i++) {
    await call()
    // While the next one is under way.
    if (i % EVERY === 0) setTimeout(() => collect({ type: 'minor' }), 0)
  }
  return (old() - before) / CALLS
}

function member(come: (what: object) => () => void): () => Promise<void> {
  return () =>
    new Promise((resolve) => {
      const gone = come({ something: [1, 2, 3] })
      setImmediate(() => {
        gone()
        resolve()
      })
    })
}

const roster = new SlotSet<object>()
const set = new Set<object>()
const fresh = await freshDatabase()
const database = fresh.open({ connectionsMax: 2 })
const statement = { name: 'left', text: 'select $1::text as one, $2::bigint as two', withinMs: 3_000 }
const vendor = await listen((_, response) => response.end('{"one":1}'))
const upstream = createUpstream({ world })
const { signal } = new AbortController()
signal.addEventListener('abort', () => {})
const call = { method: 'GET', url: `${vendor.url}/`, headers: {} } as const
const front = await listen(async (_, response) => {
  const caller = new Caller(response, 'req_left')
  await (await upstream.send(call, { deadlines, signal: caller.signal })).read(1_000)
  response.end()
})
const relayed = { ...call, url: `${front.url}/` }
const deadlines = { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000, totalMs: 5_000 }

const left = {
  roster: await leftBy(
    member((what) => {
      const place = roster.add(what)
      return () => void roster.remove(place, what)
    }),
  ),
  set: await leftBy(
    member((what) => {
      set.add(what)
      return () => void set.delete(what)
    }),
  ),
  statement: await leftBy(() => database.query(statement, ['a', 1n])),
  exchange: await leftBy(async () => (await upstream.send(call, { deadlines, signal })).read(1_000)),
  // The front's exchange goes by the signal of the caller's connection.
  relayed: await leftBy(async () => (await upstream.send(relayed, { deadlines, signal })).read(1_000)),
}
await upstream.close()
await Promise.all([front.close(), vendor.close()])
await database.close()
await fresh.drop()
console.log(JSON.stringify(left))
