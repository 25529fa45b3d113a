import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atOnce } from '../../test/lists.ts'
import { realWorld } from '../kernel/world.ts'
import {
  type CachedResponse,
  createResponseCache,
  isCached,
  type ResponseCache,
  type SingleFlight,
} from './response-cache.ts'

const HERE = new AbortController().signal
const answer: CachedResponse = { body: 'yes', contentType: 'text/plain', usage: { call: 1 }, route: 0 }
const ruleOf = (key: string) => ({ key, ttlSeconds: 60 })

async function takeOff(cache: ResponseCache, key: string): Promise<SingleFlight> {
  const found = await cache.enter(ruleOf(key), HERE)
  assert.ok(found && !isCached(found))
  return found
}

test('small answers and their keys count as the memory that they take', async () => {
  const cache = createResponseCache(realWorld)
  for (let number = 0; number < 70_000; number++) (await takeOff(cache, `question ${number}`)).complete(answer)
  const last = await cache.enter(ruleOf('question 69999'), HERE)
  assert.ok(last && isCached(last))
  assert.equal(last.body.toString(), 'yes')
  assert.ok(Buffer.isBuffer(last.body))
  assert.equal(last.body.buffer.byteLength, 3, 'no slab is kept for the sake of a small answer')
  await takeOff(cache, 'question 0')
})

test('answers that are under way take a bounded share of memory together, and give it back when they land', async () => {
  const cache = createResponseCache(realWorld)
  const flights = await atOnce(9, (number) => takeOff(cache, `question ${number}`))
  const MEGABYTES_8 = 8 * 1024 * 1024
  assert.deepEqual(
    flights.map((flight) => flight.carry(MEGABYTES_8)),
    [true, true, true, true, true, true, true, true, false],
  )
  flights[0]?.complete()
  assert.equal(flights[0]?.carry(1), false, 'what has landed carries nothing')
  assert.equal(flights[8]?.carry(MEGABYTES_8), true)
})

test('whoever waits does so twice at most: when nothing was kept then either, all go on at the same time', async () => {
  const cache = createResponseCache(realWorld)
  const first = await takeOff(cache, 'question')
  const others = Array.from({ length: 4 }, () => cache.enter(ruleOf('question'), HERE))
  first.complete()
  const second = await Promise.race(others)
  assert.ok(second && !isCached(second))
  second.complete()
  const found = await Promise.all(others)
  assert.equal(found.filter((one) => one && !isCached(one)).length, 2)
  assert.equal(found.filter((one) => one === undefined).length, 2)
})

test('nobody waits for longer than ten seconds, or after having gone', async () => {
  const delays: number[] = []
  let pass = () => {}
  const after = (delayMs: number, run: () => void) => {
    delays.push(delayMs)
    pass = run
    return () => {}
  }
  const cache = createResponseCache({ ...realWorld, after })
  await takeOff(cache, 'question')
  const leaving = new AbortController()
  const left = cache.enter(ruleOf('question'), leaving.signal)
  leaving.abort()
  assert.equal(await left, undefined)
  const patient = cache.enter(ruleOf('question'), HERE)
  pass()
  assert.equal(await patient, undefined)
  assert.deepEqual(delays, [10_000, 10_000])
})
