import { getEventListeners } from 'node:events'
import { assert, test } from '../../test/kit.ts'
import { follow, unfollow } from './slot-set.ts'

test('many who follow a signal are told once each by one listener, but for those who have left', () => {
  const controller = new AbortController()
  const { signal } = controller
  const told: string[] = []
  const follower = (name: string) => ({ aborted: (reason: unknown) => void told.push(`${name} ${reason}`) })
  const [a, b, c] = [follower('a'), follower('b'), follower('c')]
  follow(signal, a)
  const place = follow(signal, b)
  follow(signal, c)
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  unfollow(signal, place, b)
  controller.abort('gone')
  controller.abort('again')
  assert.deepEqual(told, ['a gone', 'c gone'])
})

test('whoever leaves because another was told is not told', () => {
  const controller = new AbortController()
  const told: string[] = []
  let place = 0
  const second = { aborted: () => void told.push('second') }
  follow(controller.signal, {
    aborted() {
      told.push('first')
      unfollow(controller.signal, place, second)
    },
  })
  place = follow(controller.signal, second)
  controller.abort()
  assert.deepEqual(told, ['first'])
})

test('the end of one signal is nothing to those who follow another', () => {
  const [ends, stays] = [new AbortController(), new AbortController()]
  const told: string[] = []
  follow(ends.signal, { aborted: () => void told.push('ends') })
  const stayer = { aborted: () => void told.push('stays') }
  const place = follow(stays.signal, stayer)
  unfollow(ends.signal, place, stayer)
  ends.abort()
  assert.deepEqual(told, ['ends'])
  stays.abort()
  assert.deepEqual(told, ['ends', 'stays'])
})
