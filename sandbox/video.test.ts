import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realWorld } from '../src/kernel/world.ts'
import { closing, started } from '../test/started.ts'
import { until } from '../test/until.ts'
import { startSandbox } from './server.ts'

/** Added to the real clock, so that tests go forward in time instead of waiting. */
let skippedMs = 0

const sandbox = started(() =>
  startSandbox({ world: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skippedMs } }),
)

const TASKS = '/ark/contents/generations/tasks'

interface Task {
  id: string
  status: string
  error: { code: string; message: string } | null
  content?: { video_url: string; last_frame_url?: string }
  usage?: { completion_tokens: number }
  duration: number
}

function call(method: string, path: string, body?: unknown, key = 'sk-video') {
  return fetch(sandbox.url + path, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

function order(text: string, fields: Record<string, unknown> = {}) {
  return { model: 'doubao-seedance-2-0-260128', content: [{ type: 'text', text }], ...fields }
}

async function create(text: string, fields?: Record<string, unknown>): Promise<string> {
  const response = await call('POST', TASKS, order(text, fields))
  assert.equal(response.status, 200)
  return ((await response.json()) as Task).id
}

async function look(id: string): Promise<Task> {
  return (await (await call('GET', `${TASKS}/${id}`)).json()) as Task
}

/** The boxes of an MP4 file, with those inside containers. */
function boxes(bytes: Buffer, from = 0, to = bytes.length): Map<string, Buffer> {
  const found = new Map<string, Buffer>()
  for (let at = from; at + 8 <= to; ) {
    const size = bytes.readUInt32BE(at)
    const type = bytes.toString('latin1', at + 4, at + 8)
    assert.ok(size >= 8 && at + size <= to, `box ${type} fits`)
    found.set(type, bytes.subarray(at + 8, at + size))
    if (['moov', 'trak', 'mdia', 'minf', 'stbl'].includes(type)) {
      for (const [name, content] of boxes(bytes, at + 8, at + size)) found.set(name, content)
    }
    at += size
  }
  return found
}

test('a task waits, runs and succeeds, and its film has the length that was ordered', async () => {
  const id = await create('A fox in the snow', {
    duration: 6,
    ratio: '9:16',
    resolution: '480p',
    return_last_frame: true,
  })
  assert.match(id, /^cgt-\d{14}-/)
  assert.equal((await look(id)).status, 'queued')
  skippedMs += 3_000
  assert.equal((await look(id)).status, 'running')
  skippedMs += 8_000
  const done = await look(id)
  assert.equal(done.status, 'succeeded')
  assert.equal(done.error, null)
  assert.equal(done.duration, 6)
  assert.equal(done.usage?.completion_tokens, Math.floor((480 * 853 * 145) / 1024))

  const file = await fetch(done.content?.video_url ?? '')
  assert.equal(file.headers.get('content-type'), 'video/mp4')
  const film = boxes(Buffer.from(await file.arrayBuffer()))
  assert.deepEqual([...film.keys()].slice(0, 2), ['ftyp', 'moov'])
  const mvhd = film.get('mvhd')
  const stsz = film.get('stsz')
  const stts = film.get('stts')
  assert.ok(mvhd && stsz && stts && film.get('stco') && film.get('mdat'))
  assert.equal(mvhd.readUInt32BE(16) / mvhd.readUInt32BE(12), 6, 'seconds')
  const frames = stsz.readUInt32BE(8)
  assert.equal((frames * stts.readUInt32BE(12)) / mvhd.readUInt32BE(12), 6, 'seconds of all frames together')
  let bytes = 0
  for (let i = 0; i < frames; i++) bytes += stsz.readUInt32BE(12 + i * 4)
  assert.equal(bytes, film.get('mdat')?.length, 'every byte of the data belongs to a frame')

  const frame = Buffer.from(await (await fetch(done.content?.last_frame_url ?? '')).arrayBuffer())
  assert.equal(frame.toString('latin1', 1, 4), 'PNG')
})

const ENDINGS: readonly [string, string, string | undefined][] = [
  ['[[fail]]', 'failed', 'OutputVideoSensitiveContentDetected'],
  ['[[fail=InternalServiceError]]', 'failed', 'InternalServiceError'],
  ['[[expire]]', 'expired', 'TaskExpired'],
  ['[[cancelled]]', 'cancelled', undefined],
  ['[[stuck]]', 'running', undefined],
]

for (const [trigger, status, code] of ENDINGS) {
  test(`${trigger} ends ${status}`, async () => {
    const id = await create(`A fox ${trigger} [[queued-ms=10]] [[running-ms=10]]`)
    skippedMs += 60
    const task = await look(id)
    assert.equal(task.status, status)
    assert.equal(task.error?.code, code)
    assert.equal(task.content, undefined)
  })
}

test('a waiting task can be cancelled, a running one not, a finished one is deleted', async () => {
  const waiting = await create('one')
  assert.equal((await call('DELETE', `${TASKS}/${waiting}`)).status, 200)
  assert.equal((await look(waiting)).status, 'cancelled')
  const running = await create('two [[queued-ms=0]]')
  assert.equal((await call('DELETE', `${TASKS}/${running}`)).status, 409)
  skippedMs += 20_000
  assert.equal((await call('DELETE', `${TASKS}/${running}`)).status, 200)
  assert.equal((await call('GET', `${TASKS}/${running}`)).status, 404)
})

test('a task is shown only to the key that made it, and listed by state', async () => {
  const id = await create('mine')
  assert.equal((await call('GET', `${TASKS}/${id}`, undefined, 'sk-other')).status, 404)
  const answer = await call('GET', `${TASKS}?filter.status=queued&filter.task_ids=${id}`)
  const listed = (await answer.json()) as { items: Task[]; total: number }
  assert.deepEqual([listed.total, listed.items[0]?.id], [1, id])
})

test('[[lost]] forgets the task once it has left the queue', async () => {
  const id = await create('[[lost]]')
  assert.equal((await look(id)).status, 'queued')
  skippedMs += 3_000
  assert.equal((await call('GET', `${TASKS}/${id}`)).status, 404)
})

test('submissions can fail before the vendor has the task, and after; the log counts what the vendor took', async () => {
  sandbox.seen.clear()
  assert.equal((await call('POST', TASKS, order('[[submit-500]]'))).status, 500)
  assert.equal((await call('POST', TASKS, order('[[reject]]'))).status, 400)
  assert.deepEqual(sandbox.seen.submissions, {})
  const controller = new AbortController()
  const unanswered = fetch(sandbox.url + TASKS, {
    method: 'POST',
    headers: { 'x-client-token': 'job-1' },
    body: JSON.stringify(order('[[submit-timeout]]')),
    signal: controller.signal,
  })
  await until(() => sandbox.seen.submissions['job-1'], 1)
  controller.abort()
  await assert.rejects(unanswered)
  await create('the same twice')
  await create('the same twice')
  assert.equal(sandbox.seen.submissions['the same twice'], 2)
})

test('polls can fail a few times', async () => {
  const id = await create('[[poll-500=2]]')
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await call('GET', `${TASKS}/${id}`)).status)
  assert.deepEqual(statuses, [500, 500, 200])
})

test('at speed Infinity a task is done at once', async () => {
  await using fast = closing(await startSandbox({ world: realWorld, speed: Number.POSITIVE_INFINITY }))
  const made = await fetch(fast.url + TASKS, { method: 'POST', body: JSON.stringify(order('quick')) })
  const { id } = (await made.json()) as Task
  const task = (await (await fetch(`${fast.url}${TASKS}/${id}`)).json()) as Task
  assert.equal(task.status, 'succeeded')
})

test('a task outlives the sandbox that took it', async () => {
  const id = await create('A fox [[queued-ms=0]] [[running-ms=0]]', { duration: 4 })
  await using next = closing(await startSandbox({ world: realWorld }))
  const headers = { authorization: 'Bearer sk-video' }
  const task = (await (await fetch(`${next.url}${TASKS}/${id}`, { headers })).json()) as Task
  assert.equal(task.status, 'succeeded')
  const film = await fetch(task.content?.video_url ?? '')
  const mvhd = boxes(Buffer.from(await film.arrayBuffer())).get('mvhd')
  assert.equal((mvhd?.readUInt32BE(16) ?? 0) / (mvhd?.readUInt32BE(12) ?? 1), 4)
  assert.equal((await fetch(`${next.url}${TASKS}/cgt-20260101000000-nonsense`, { headers })).status, 404)
})
