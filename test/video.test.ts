// Videos and jobs through the public API, with the simulated vendor behind it.
import { createHmac } from 'node:crypto'
import { realWorld } from '../src/kernel/world.ts'
import { assert, atOnce, OPERATOR_TOKEN, pluck, started, startGateway, test, until, words } from './gateway.ts'
import { startReceiver } from './job-engine.ts'

/** The vendor's clock goes forward by this. */
let skippedMs = 0
const HOUR_MS = 3_600_000
const receiver = started(startReceiver)
const on = started(() =>
  startGateway({
    env: { TOLLGATE_OUTBOUND_ALLOW: receiver.host },
    vendorWorld: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skippedMs },
  }),
)

const GRANTED = 1_000_000_000n
const PRICE = 35_000_000n

interface Job {
  id: string
  status: string
  inputParams: Record<string, unknown>
  outputResult: Array<{ url: string[]; lastFrameUrl?: string }> | null
  createdAt: string
  startedAt: string | null
  completedAt: string | null
  error?: { code: number; message: string; reason?: string }
}
type Envelope<T> = { success: boolean; data: T; error?: { code: number; message: string }; requestId: string }

const read = async <T>(response: Response) => (await response.json()) as Envelope<T>

async function create(key: string, body: Record<string, unknown>, headers: Record<string, string> = {}) {
  const response = await on.call('/v1/video/seedance', key, { model: 'videogen-2.0', ...body }, { headers })
  const answer = await read<{ jobId: string; status: string }>(response)
  assert.equal(response.status, 200, JSON.stringify(answer))
  return answer.data.jobId
}

const get = async (key: string, id: string) => (await read<Job>(await on.call(`/v1/jobs/${id}`, key))).data

/** Listens to the job's events until they end. */
async function follow(key: string, id: string): Promise<Job[]> {
  const response = await on.call(`/v1/jobs/${id}/events`, key)
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
  return (await response.text())
    .split('\n\n')
    .filter((frame) => frame.startsWith('event: status'))
    .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as Job)
}

test('a video is created, followed to its end, and downloads as an MP4 file', async () => {
  const { id: account, key } = await on.account({ credits: GRANTED })
  const response = await on.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'a lighthouse' })
  const answer = await read<{ jobId: string; status: string }>(response)
  assert.deepEqual(answer, {
    success: true,
    data: { jobId: answer.data.jobId, status: 'PENDING' },
    requestId: response.headers.get('x-request-id')!,
  })
  assert.match(answer.data.jobId, /^\d{19}$/)
  assert.ok(BigInt(answer.data.jobId) > 2n ** 53n)
  assert.deepEqual(await on.balance(account), { posted: GRANTED, held: PRICE })

  const seen = await follow(key, answer.data.jobId)
  const order = ['PENDING', 'CONNECT', 'PROCESSING', 'COMPLETED']
  assert.deepEqual(
    pluck(seen, 'status'),
    order.filter((status) => seen.some((job) => job.status === status)),
  )
  const job = await get(key, answer.data.jobId)
  assert.deepEqual(job, seen.at(-1))
  assert.deepEqual(Object.keys(job), words('id status inputParams outputResult createdAt startedAt completedAt'))
  assert.equal(job.status, 'COMPLETED')
  assert.deepEqual(job.inputParams, { model: 'videogen-2.0', prompt: 'a lighthouse' })
  assert.ok(job.createdAt <= job.startedAt! && job.startedAt! <= job.completedAt!)
  assert.equal(job.outputResult!.length, 1)
  const url = job.outputResult![0]!.url[0]!
  const film = await fetch(url)
  assert.equal(film.headers.get('content-type'), 'video/mp4')
  const bytes = Buffer.from(await film.arrayBuffer())
  assert.deepEqual(boxes(bytes).slice(0, 2), ['ftyp', 'moov'])
  assert.ok(boxes(bytes).includes('mdat'))
  assert.equal((await fetch(url, { headers: { range: 'bytes=0-99' } })).status, 206)
  assert.deepEqual(await on.balance(account), { posted: GRANTED - PRICE, held: 0n })
})

/** The names of a file's outer boxes; they must fill it to its last byte. */
function boxes(file: Buffer): string[] {
  const names: string[] = []
  let at = 0
  while (at < file.length) {
    names.push(file.toString('latin1', at + 4, at + 8))
    at += file.readUInt32BE(at)
  }
  assert.equal(at, file.length)
  return names
}

test('a failure is told with its reason, in nobody’s words but ours, and costs nothing', async () => {
  const { id: account, key } = await on.account({ credits: GRANTED })
  const [job] = (await follow(key, await create(key, { prompt: 'x [[fail]]' }))).slice(-1)
  assert.equal(job!.status, 'FAILED')
  assert.equal(job!.outputResult, null)
  assert.equal(job!.error!.code, 10000)
  assert.equal(job!.error!.reason, 'OutputVideoSensitiveContentDetected')
  assert.deepEqual(await on.balance(account), { posted: GRANTED, held: 0n })
})

test('the last frame comes along when it is asked for', async () => {
  const { key } = await on.account()
  const job = (await follow(key, await create(key, { prompt: 'a pier', return_last_frame: true }))).at(-1)!
  const frame = await fetch(job.outputResult![0]!.lastFrameUrl!)
  assert.equal(frame.headers.get('content-type'), 'image/png')
  await frame.arrayBuffer()
})

test('what is wrong is told in order: key, body, model, credit', async () => {
  const { key } = await on.account({ credits: 0n })
  const { key: restricted } = await on.account({ models: ['alpha-5.4'] })
  const ask = async (key: string | undefined, body: unknown) => {
    const response = await on.call('/v1/video/seedance', key, body)
    const { error } = await read(response)
    return [response.status, error!.code, error!.message] as const
  }
  const table: Array<[string | undefined, unknown, number, number, RegExp]> = [
    [undefined, '{', 401, 20000, /key/],
    ['tg_live_nonsense', { model: 'nothing' }, 401, 20000, /key/],
    [key, '{', 400, 10000, /JSON/],
    [key, { prompt: 'x' }, 400, 10000, /"model" is required/],
    [key, { model: 'nothing' }, 400, 10000, /"prompt" or "content"/],
    [key, { model: 'nothing', prompt: 'x' }, 404, 30000, /model/],
    [key, { model: 'alpha-5.4', prompt: 'x' }, 404, 30000, /model/],
    [restricted, { model: 'videogen-2.0', prompt: 'x' }, 404, 30000, /model/],
    [key, { model: 'videogen-2.0', prompt: 'x', duration: 16 }, 400, 10000, /"duration".*4 to 15/],
    [key, { model: 'videogen-2.0', prompt: 'x' }, 402, 40000, /needs 35 credits, 0 are available/],
    [key, { model: 'videogen-2.5', prompt: 'x', duration: 30 }, 402, 40000, /needs 270 credits/],
  ]
  for (const [who, body, status, code, words] of table) {
    const [gotStatus, gotCode, message] = await ask(who, body)
    assert.deepEqual([gotStatus, gotCode], [status, code], `${JSON.stringify(body)}: ${message}`)
    assert.match(message, words)
  }
  assert.equal(on.sandbox.seen.submissions[''], undefined)
})

test('a job is shown to its own account only', async () => {
  const { key } = await on.account()
  const { key: stranger } = await on.account()
  const id = await create(key, { prompt: 'a cove' })
  const ask = async (path: string, who: string | undefined, method = 'GET') => {
    const response = await on.call(path, who, undefined, { method })
    return [response.status, (await read(response)).error?.code]
  }
  for (const tail of ['', '/events']) {
    assert.deepEqual(await ask(`/v1/jobs/${id}${tail}`, stranger), [403, 20001])
    assert.deepEqual(await ask(`/v1/jobs/1789000000000000001${tail}`, key), [404, 30000])
    assert.deepEqual(await ask(`/v1/jobs/not-a-number${tail}`, key), [404, 30000])
    assert.deepEqual(await ask(`/v1/jobs/${id}${tail}`, 'tg_live_bad'), [401, 20000])
    assert.deepEqual(await ask(`/v1/jobs/${id}${tail}`, undefined), [401, 20000])
  }
  assert.deepEqual(await ask(`/v1/jobs/${id}`, stranger, 'DELETE'), [403, 20001])
  await follow(key, id)
})

test('an account lists its own jobs, newest first, a page at a time', async () => {
  const { key } = await on.account()
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.push(await create(key, { prompt: `wave ${i}` }))
  const list = async (query: string) => {
    const response = await on.call(`/v1/jobs${query}`, key)
    return (await response.json()) as Envelope<Job[]> & { hasMore: boolean; nextBefore?: string }
  }
  const first = await list('?limit=3')
  assert.deepEqual(pluck(first.data, 'id'), ids.toReversed().slice(0, 3))
  assert.equal(first.hasMore, true)
  const rest = await list(`?limit=3&before=${first.nextBefore}`)
  assert.deepEqual(pluck(rest.data, 'id'), ids.toReversed().slice(3))
  assert.equal(rest.hasMore, false)
  await Promise.all(ids.map((id) => follow(key, id)))
  assert.equal((await list('?status=COMPLETED')).data.length, 5)
  assert.equal((await list('?status=FAILED')).data.length, 0)
  for (const wrong of ['?status=DONE', '?limit=0', '?limit=101', '?limit=x', '?before=abc'])
    assert.equal((await list(wrong)).error?.code, 10000, wrong)
})

test('a waiting job can be cancelled for nothing, a running or finished one not', async () => {
  const { id: account, key } = await on.account({ credits: GRANTED })
  const remove = (id: string) => on.call(`/v1/jobs/${id}`, key, undefined, { method: 'DELETE' })
  const reaches = (id: string, status: string) => until(async () => (await get(key, id)).status, status)
  const waiting = await create(key, { prompt: `slow [[queued-ms=${HOUR_MS}]]` })
  await reaches(waiting, 'CONNECT')
  // The answer to its submission may still be on its way.
  const cancelled = await until(
    () => remove(waiting),
    ({ status }) => status !== 409,
  )
  assert.equal(cancelled.status, 200)
  assert.equal((await read<Job>(cancelled)).data.status, 'CANCELLED')
  assert.deepEqual(await on.balance(account), { posted: GRANTED, held: 0n })
  assert.equal((await remove(waiting)).status, 200)

  const running = await create(key, { prompt: `slow [[queued-ms=0]] [[running-ms=${HOUR_MS}]]` })
  await reaches(running, 'PROCESSING')
  const refused = await remove(running)
  assert.equal(refused.status, 409)
  assert.equal((await read(refused)).error!.code, 30001)
  skippedMs += 2 * HOUR_MS
  assert.equal((await follow(key, running)).at(-1)!.status, 'COMPLETED')
  assert.equal((await remove(running)).status, 409)
  assert.deepEqual(await on.balance(account), { posted: GRANTED - PRICE, held: 0n })
})

test('the same Idempotency-Key makes one job, and answers the same to all', async () => {
  const { id: account, key } = await on.account({ credits: GRANTED })
  const body = { model: 'videogen-2.0', prompt: 'once' }
  const init = { headers: { 'idempotency-key': 'order-17' } }
  const ask = () => on.call('/v1/video/seedance', key, body, init)
  // Those that come in the very moment of the creation are asked to come again.
  const answers = await atOnce(30, () => until(ask, ({ status }) => status !== 409))
  const bodies = await Promise.all(answers.map((answer) => answer.text()))
  assert.equal(new Set(bodies).size, 1, 'one answer')
  assert.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length, 29)
  const other = await on.call('/v1/video/seedance', key, { ...body, prompt: 'twice' }, init)
  assert.equal(other.status, 409)
  const { jobId } = (JSON.parse(bodies[0]!) as Envelope<{ jobId: string }>).data
  await follow(key, jobId)
  assert.equal(await (await on.call('/v1/video/seedance', key, body, init)).text(), bodies[0])
  assert.deepEqual(await on.balance(account), { posted: GRANTED - PRICE, held: 0n })
})

/** As an owner or an operator sees it. */
async function webhookSecret(account: string): Promise<string> {
  const path = `/admin/v1/accounts/${account}/webhook-secret`
  return (await read<{ secret: string }>(await on.call(path, OPERATOR_TOKEN))).data.secret
}

test('no key can read the secret with which the account’s webhooks are signed', async () => {
  const { id, key } = await on.account()
  const { key: restricted } = await on.key(id, { models: ['alpha-5.4'] })
  const secret = await webhookSecret(id)
  assert.match(secret, /^whsec_/)
  const job = await create(key, { prompt: 'a seal', callback_url: receiver.url })
  for (const who of [key, restricted])
    for (const path of ['/v1/account', '/v1/models', '/v1/jobs', `/v1/jobs/${job}`]) {
      const answer = await on.call(path, who)
      assert.equal(answer.status, who === restricted && path.endsWith(job) ? 404 : 200)
      assert.ok(!(await answer.text()).includes('whsec_'), path)
    }
  assert.equal((await on.call(`/admin/v1/accounts/${id}/webhook-secret`, key)).status, 401)
  await follow(key, job)
})

test('a callback is signed with the account’s secret, and never goes to a private address', async () => {
  const { id: account, key } = await on.account()
  const id = await create(key, { prompt: 'a bell', callback_url: receiver.url })
  const { headers, body } = await receiver.about(id)
  const secret = Buffer.from((await webhookSecret(account)).slice('whsec_'.length), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
  const message = JSON.parse(body) as { type: string; data: Job }
  assert.equal(message.type, 'job.completed')
  assert.deepEqual(message.data, await get(key, id))
  for (const url of words('http://127.0.0.1/hook http://169.254.169.254/ ftp://example.com/ x http://a@b.com/')) {
    const response = await on.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'x', callback_url: url })
    assert.equal(response.status, 400, url)
  }
})

test('a picture may be sent inline: the vendor gets all of it, and the job repeats only its beginning', async () => {
  const { key } = await on.account()
  const image = `data:image/png;base64,${'A'.repeat(400_000)}`
  const id = await create(key, { prompt: 'it moves', image })
  const job = (await follow(key, id)).at(-1)!
  assert.equal(job.status, 'COMPLETED')
  assert.match(job.inputParams.image as string, /^data:image\/png;base64,… \(400022 characters\)$/)
  assert.equal(job.inputParams.first_frame, job.inputParams.image)
  const sent = on.sandbox.seen.calls.find((call) => call.method === 'POST' && call.bodyBytes > 400_000)
  assert.ok(sent)
  assert.equal((await on.sql('select 1 from job_body')).length, 0)
})

test('a quote says what a video will hold, and starts nothing', async () => {
  const { id: account, key } = await on.account({ credits: GRANTED })
  const body = { model: 'videogen-2.0', prompt: 'x', duration: 10, resolution: '1080p' }
  const { data } = await read<{ hold: string; costAtMost: string }>(await on.call('/v1/quote', key, body))
  assert.equal(data.hold, '160')
  assert.equal(data.costAtMost, '160')
  assert.deepEqual(await on.balance(account), { posted: GRANTED, held: 0n })
})

test('two hundred clients may follow the same job', async () => {
  const { key } = await on.account()
  const id = await create(key, { prompt: 'a crowd [[queued-ms=300]]' })
  const all = await atOnce(200, () => follow(key, id))
  for (const seen of all) assert.equal(seen.at(-1)!.status, 'COMPLETED')
})
