import { above, assert, pluck, test, until } from '../../test/kit.ts'
import { silentLog } from './log.ts'
import { createBufferedWriter } from './timers.ts'
import { realWorld } from './world.ts'

/** A writer whose writes end when the test says so, and the clock that it waits by. */
function writer() {
  let waiting: string[] = []
  const written: string[][] = []
  const ends: Array<(error?: Error) => void> = []
  const timers: Array<{ afterMs: number; run: () => void }> = []
  const world = {
    ...realWorld,
    after(afterMs: number, run: () => void) {
      timers.push({ afterMs, run })
      return () => void timers.splice(0)
    },
  }
  async function write() {
    const some = waiting
    waiting = []
    if (some.length > 0)
      await new Promise<void>((resolve, reject) => ends.push((error) => (error ? reject(error) : resolve()))).catch(
        (error: unknown) => {
          waiting = [...some, ...waiting]
          throw error
        },
      )
    if (some.length > 0) written.push(some)
  }
  const end = async (error?: Error) => {
    await until(() => ends.length, above(0))
    ends.shift()?.(error)
  }
  const put = (one: string) => {
    waiting.push(one)
    own.soon()
  }
  const own = createBufferedWriter({ world, log: silentLog, write, failed: 'it waits' })
  return { ...own, put, end, written, timers }
}

test('what came while a write was under way is written before a flush, or the last one, has ended', async () => {
  for (const ending of ['flush', 'close'] as const) {
    const { put, end, written, ...own } = writer()
    put('first')
    const under = own.flush()
    await new Promise((resolve) => setImmediate(resolve))
    put('second')
    const last = own[ending]()
    await end()
    await under
    await Promise.all([last, end()])
    assert.deepEqual(written, [['first'], ['second']])
  }
})

test('what could not be written is tried again, once for all that wait', async () => {
  const { put, end, written, timers } = writer()
  for (const one of ['a', 'b']) put(one)
  assert.deepEqual(pluck(timers, 'afterMs'), [1_000])
  timers.shift()?.run()
  await end(new Error('away'))
  await until(() => timers.length, above(0))
  put('c')
  assert.deepEqual(pluck(timers, 'afterMs'), [5_000])
  timers.shift()?.run()
  await end()
  await until(() => written.length, above(0))
  assert.deepEqual(written, [['a', 'b', 'c']])
})
