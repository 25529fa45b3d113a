// The vendor's tasks, as its API shows them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluck } from '../../../../test/lists.ts'
import type { Target } from '../../protocol.ts'
import {
  cancelCall,
  createCall,
  findMarked,
  groupTasks,
  readCreated,
  readTask,
  readTasks,
  showCall,
  showManyCall,
} from './task.ts'

const target: Target = {
  protocol: 'video-task',
  baseUrl: 'https://vendor.example/api/v3',
  secret: 'key',
  headers: { 'x-region': 'north' },
  model: 'seed-2-0',
}

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

test('a creation names the vendor’s model, the length that is paid for, and our mark', () => {
  const call = createCall({ content: [{ type: 'text', text: 'x' }], duration: 5, resolution: '720p' }, target, {
    token: '1789',
    seed: 7,
  })
  assert.equal(call.url, 'https://vendor.example/api/v3/contents/generations/tasks')
  assert.deepEqual(JSON.parse(call.body as string), {
    model: 'seed-2-0',
    content: [{ type: 'text', text: 'x' }],
    duration: 5,
    resolution: '720p',
    seed: 7,
    execution_expires_after: 86_400,
    safety_identifier: '1789',
  })
})

test('tasks are asked for one by one, several at once, and cancelled by their id', () => {
  assert.equal(showCall('cgt/1', target).url, 'https://vendor.example/api/v3/contents/generations/tasks/cgt%2F1')
  assert.equal(
    showManyCall(['a', 'b'], target).url,
    'https://vendor.example/api/v3/contents/generations/tasks?page_num=1&page_size=2&filter.task_ids=a&filter.task_ids=b',
  )
  assert.equal(cancelCall('a', target).method, 'DELETE')
})

test('one question is about a hundred tasks at most, and of a length that servers take', () => {
  const short = Array.from({ length: 250 }, (_, i) => `cgt-${i}`)
  assert.deepEqual(pluck(groupTasks(short), 'length'), [100, 100, 50])
  const long = Array.from({ length: 5 }, (_, i) => `${i}`.padEnd(2_500, 'x'))
  assert.deepEqual(pluck(groupTasks(long), 'length'), [2, 2, 1])
  assert.deepEqual(groupTasks(long).flat(), long)
  assert.deepEqual(groupTasks([]), [])
})

test('a finished task tells what was delivered', () => {
  const task = readTask(
    bytes({
      id: 'cgt-1',
      model: 'seed-2-0',
      status: 'succeeded',
      error: null,
      content: { video_url: 'https://v.example/1.mp4?x', last_frame_url: 'https://v.example/1.png' },
      usage: { completion_tokens: 108_900, total_tokens: 108_900 },
      resolution: '720P',
      duration: 5,
    }),
    target,
  )
  assert.deepEqual(task, {
    id: 'cgt-1',
    status: 'succeeded',
    word: 'succeeded',
    videoUrl: 'https://v.example/1.mp4?x',
    lastFrameUrl: 'https://v.example/1.png',
    outputTokens: 108_900,
    seconds: 5,
    resolution: '720p',
  })
})

test('nonsense in the figures is not believed', () => {
  for (const usage of [{ completion_tokens: -1 }, { completion_tokens: '5' }, { completion_tokens: 1e300 }, null, 7])
    assert.equal(readTask(bytes({ id: 'a', status: 'succeeded', usage }), target).outputTokens, undefined)
  for (const duration of [-1, 0, '5', Number.NaN])
    assert.equal(readTask(bytes({ id: 'a', status: 'succeeded', duration }), target).seconds, undefined)
})

test('a status that we do not know is no verdict', () => {
  for (const status of ['postprocessing', '', 7, null])
    assert.equal(readTask(bytes({ id: 'a', status }), target).status, undefined)
  for (const status of ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'])
    assert.equal(readTask(bytes({ id: 'a', status }), target).status, status)
})

test('a failure is the caller’s where the content is, and is told in clean words', () => {
  const failed = (code: string, message: string) =>
    readTask(bytes({ id: 'a', status: 'failed', error: { code, message } }), target).failure
  const refused = failed(
    'OutputVideoSensitiveContentDetected',
    'The output may be sensitive, see https://vendor.example/x key sk-abcdef123456',
  )
  assert.equal(refused!.kind, 'upstream_invalid')
  assert.equal(refused!.reason, 'OutputVideoSensitiveContentDetected')
  assert.doesNotMatch(refused!.message!, /vendor\.example|sk-abc/)
  assert.deepEqual(failed('InternalServiceError', 'node 10.0.0.1 died'), {
    kind: 'upstream_failed',
    reason: 'InternalServiceError',
  })
  assert.equal(readTask(bytes({ id: 'a', status: 'expired' }), target).failure!.kind, 'upstream_timeout')
})

const mark = { token: '1789', seed: 42, model: 'seed-2-0', sinceSeconds: 1_000_000 }

test('a task without a known id is found by our mark, or by the seed that we drew', () => {
  const other = { id: 'b', status: 'queued', seed: 43, created_at: 1_000_001 }
  const found = (items: object[]) => findMarked(bytes({ items, total: items.length }), mark, target).task?.id
  assert.equal(found([other, { id: 'a', status: 'queued', safety_identifier: '1789' }]), 'a')
  assert.equal(found([other, { id: 'a', status: 'queued', seed: 42, created_at: 1_000_002 }]), 'a')
  assert.equal(found([other]), undefined)
  assert.equal(found([{ id: 'a', status: 'queued', seed: 42, created_at: 900_000 }]), undefined, 'too old to be ours')
  assert.equal(
    found([{ id: 'a', status: 'queued', seed: 42, created_at: 1_000_002, safety_identifier: '1' }]),
    undefined,
  )
})

test('the search goes on while there may be more, and no further back than the submission', () => {
  const page = (created: number) =>
    bytes({ items: Array.from({ length: 100 }, (_, i) => ({ id: `${i}`, status: 'queued', created_at: created })) })
  assert.equal(findMarked(page(1_000_100), mark, target).more, true)
  assert.equal(findMarked(page(900_000), mark, target).more, false)
  assert.equal(findMarked(bytes({ items: [] }), mark, target).more, false)
})

test('what is no task is told as what it is', () => {
  for (const body of ['', '<html>', '[]', '{}', '{"status":"queued"}'])
    assert.throws(() => readTask(Buffer.from(body), target), { kind: 'upstream_garbled' })
  assert.throws(() => readCreated(Buffer.from('{"task":1}')), { kind: 'upstream_garbled' })
  assert.throws(() => readTasks(Buffer.from('{"items":7}'), target), { kind: 'upstream_garbled' })
  assert.deepEqual(readTasks(Buffer.from('{"total":0}'), target), [])
  assert.equal(readCreated(Buffer.from('{"id":"cgt-1"}')), 'cgt-1')
})
