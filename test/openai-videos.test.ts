// Videos in the shape of the openai SDK, over the same jobs, holds and prices.
import OpenAI, { toFile } from 'openai'
import { assert, test, testGateway, until } from './gateway.ts'
import { PICTURE } from './picture.ts'

const MODEL = 'videogen-2.0'

let key: string
let account: string
const g = testGateway({}, async () => {
  ;({ key, id: account } = await g.account())
})
const client = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })

test('the openai SDK orders a video with a first frame, waits for it and downloads it; it is one job, paid once', async () => {
  const { videos } = client()
  const made = await videos.create({
    model: MODEL,
    prompt: 'A paper boat',
    seconds: '4',
    size: '1280x720',
    input_reference: await toFile(PICTURE, 'first.png', { type: 'image/png' }),
  })
  assert.deepEqual([made.object, made.status, made.seconds, made.size], ['video', 'queued', '4', '1280x720'])
  let video = made
  await until(async () => {
    video = await videos.retrieve(made.id)
    return video.status === 'completed'
  })
  assert.deepEqual([video.model, video.prompt, video.progress, video.error], [MODEL, 'A paper boat', 100, null])
  const file = Buffer.from(await (await videos.downloadContent(made.id)).arrayBuffer())
  assert.equal(file.toString('latin1', 4, 8), 'ftyp')
  await g.settled()

  const job = await g.call(`/v1/jobs/${made.id.replace('video_', '')}`, key)
  const { data } = (await job.json()) as { data: { inputParams: Record<string, unknown> } }
  assert.deepEqual([data.inputParams.resolution, data.inputParams.ratio], ['720p', '16:9'])
  assert.match(String(data.inputParams.first_frame), /^data:image\/png;base64,/)
  const [row, ...others] = await g.calls(account)
  assert.deepEqual([row?.endpoint, row?.outcome, others.length], ['video/create', 'settled', 0])
  const quote = await g.call('/v1/quote?endpoint=video/create', key, { model: MODEL, prompt: 'x', size: '1280x720' })
  const { data: quoted } = (await quote.json()) as { data: { costAtMost: string } }
  assert.equal(BigInt(Math.round(Number(quoted.costAtMost) * 1_000_000)), row?.charged)
})

test('JSON is taken too, and an order that is sent again with its key is one job', async () => {
  const order = { model: MODEL, prompt: 'A lighthouse', seconds: 5 }
  const headers = { 'idempotency-key': 'video-1' }
  const ask = async () =>
    (await (await g.call('/v1/videos', key, order, { headers })).json()) as { id: string; size: string }
  const [first, again] = [await ask(), await ask()]
  assert.equal(first.id, again.id)
  assert.equal(first.size, '720x1280')
  await until(async () => (await client().videos.retrieve(first.id)).status, 'completed')
})

test('a video that is not there yet, of somebody else, or ordered wrongly is refused in the SDK’s words', async () => {
  const before = await g.balance(account)
  const { videos } = client()
  for (const [order, param] of [
    [{ size: '1x1' }, 'size'],
    [{ seconds: '4000' }, 'seconds'],
    [{ input_reference: { file_id: 'file_1' } }, 'input_reference'],
    [{ input_reference: await toFile(Buffer.from('no picture'), 'x.png') }, 'input_reference'],
    [{ input_reference: { image_url: 'ftp://a.example/x.png' } }, 'input_reference'],
    [{ prompt: '' }, 'prompt'],
  ] as const)
    await assert.rejects(
      videos.create({ model: MODEL, prompt: 'x', ...order } as Parameters<typeof videos.create>[0]),
      (error: InstanceType<typeof OpenAI.BadRequestError>) => {
        assert.equal(error.status, 400, error.message)
        assert.equal(error.param, param, error.message)
        return true
      },
    )
  await assert.rejects(videos.create({ model: 'no-video', prompt: 'x' }), { status: 404 })
  assert.deepEqual(await g.balance(account), before)

  const made = await videos.create({ model: MODEL, prompt: '[[fail]]' })
  const other = await g.account()
  await assert.rejects(client(other.key).videos.retrieve(made.id), { status: 403 })
  await assert.rejects(videos.retrieve('video_123'), { status: 404 })
  await until(async () => (await videos.retrieve(made.id)).status, 'failed')
  assert.ok((await videos.retrieve(made.id)).error?.message)
  await assert.rejects(videos.downloadContent(made.id), { status: 409 })
  await g.settled()
})
