import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { started } from '../../test/started.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { createChanges } from './changes.ts'

const fresh = started(freshDatabase)
const database = started(() => fresh.open())

test('a change that cannot be read is said, counted and tried again, and keeps no other one waiting', async () => {
  let nowMs = 0
  let asked = Promise.withResolvers<() => void>()
  const world: World = {
    ...realWorld,
    elapsedMs: () => nowMs,
    after: (_ms, run) => {
      asked.resolve(run)
      return () => undefined
    },
  }
  const said: string[] = []
  const say = (_fields: object, message: string) => said.push(message)
  const changes = createChanges(database, world, { debug: say, info: say, warn: say, error: say })
  const heard: string[] = []
  let isReadable = false
  changes.watch('catalog', () => {
    if (!isReadable) throw new Error('of a newer version')
    heard.push('catalog')
  })
  changes.watch('catalog', () => void heard.push('catalog, the second'))
  changes.watch('keys', () => void heard.push('keys'))
  const poll = async () => {
    const run = await asked.promise
    asked = Promise.withResolvers()
    run()
    await asked.promise
  }
  await changes.start()
  for (const topic of ['catalog', 'keys'] as const) await changes.bump(database, topic)
  await poll()
  assert.deepEqual(heard.sort(), ['catalog, the second', 'keys'])
  nowMs += 50_000
  await poll()
  assert.deepEqual([changes.failures().get('catalog'), changes.isStuck(), changes.current.atMs], [2, false, nowMs])
  nowMs += 11_000
  assert.equal(changes.isStuck(), true)
  isReadable = true
  await poll()
  assert.deepEqual([heard.includes('catalog'), changes.isStuck()], [true, false])
  assert.deepEqual(said, ['a change could not be read', 'a change is read that could not be read before'])
  changes.stop()
})
