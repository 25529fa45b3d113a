// Callers name addresses that the gateway fetches from and posts to. How much it does so for one account has a bound.
import { pipeline, Readable } from 'node:stream'
import { startGateway, type TestGateway } from './gateway.ts'
import { startReceiver } from './job-engine.ts'
import { after, assert, atLeast, atOnce, before, listen, started, test, until } from './kit.ts'

const MB = 1_000_000
const FETCHES = 6

let on: TestGateway
let receiver: Awaited<ReturnType<typeof startReceiver>>
const fetched = { requests: 0, bytes: 0 }

/** The header of a PNG of 8 × 8, and as many bytes as the path says, as fast as they are read. */
const pictures = started(() =>
  listen((request, response) => {
    fetched.requests += 1
    const file = Buffer.alloc(Number(request.url!.slice(1)))
    Buffer.from('89504e470d0a1a0a0000000d4948445200000008000000080802000000', 'hex').copy(file)
    response.writeHead(200, { 'content-type': 'image/png', 'content-length': file.length })
    function* pieces() {
      for (let at = 0; at < file.length; at += 65_536) {
        const piece = file.subarray(at, at + 65_536)
        fetched.bytes += piece.length
        yield piece
      }
    }
    // Whoever has read enough hangs up.
    pipeline(Readable.from(pieces()), response, () => undefined)
  }),
)
let picture: (bytes: number) => string

before(async () => {
  const { port } = pictures
  picture = (bytes) => `http://127.0.0.1:${port}/${bytes}`
  receiver = await startReceiver((count) => (count % 2 === 1 ? 500 : 204))
  on = await startGateway({
    env: {
      TOLLGATE_OUTBOUND_ALLOW: `127.0.0.1:${port},${receiver.host}`,
      TOLLGATE_FETCHES_PER_MINUTE: String(FETCHES),
      TOLLGATE_FETCH_BYTES_PER_MINUTE: String(25 * MB),
      TOLLGATE_WEBHOOKS_PER_MINUTE: '60',
    },
  })
})
after(async () => {
  await on.close()
  await receiver.close()
})

type Refusal = { code: number; message: string }

async function edit(key: string, image_urls: string[]) {
  const answer = await on.call('/alpha/v1/images/generations', key, {
    model: 'alpha-image-2',
    prompt: 'x',
    quality: 'low',
    image_urls,
  })
  return { answer, body: (await answer.json()) as Refusal }
}

async function refused(key: string, account: string, image_urls: string[], words: RegExp) {
  const { answer, body } = await edit(key, image_urls)
  assert.deepEqual([answer.status, body.code], [429, 40001], body.message)
  assert.match(body.message, words)
  assert.ok(Number(answer.headers.get('retry-after')) >= 1)
  await on.settled()
  assert.equal((await on.balance(account)).held, 0n)
}

test('an account that has had its pictures fetched waits for the next, and others do not', async () => {
  const { id, key } = await on.account()
  const before = fetched.requests
  await refused(key, id, Array(FETCHES + 1).fill(picture(1_000)), /6 pictures fetched.*data URIs/)
  assert.ok(fetched.requests - before <= FETCHES)
  assert.equal((await edit((await on.account()).key, Array(FETCHES).fill(picture(1_000)))).answer.status, 200)
})

test('a small request cannot make the gateway fetch without end', async () => {
  const { id, key } = await on.account()
  const before = fetched.bytes
  await refused(key, id, Array(4).fill(picture(15 * MB)), /25 MB of pictures fetched/)
  const bytes = fetched.bytes - before
  // What was on its way in the buffers of the sockets is not undone.
  assert.ok(bytes < 50 * MB, `${bytes} bytes were fetched`)
})

test('webhooks beyond an account’s budget are put off, and none is lost', async () => {
  const { id, key } = await on.account()
  const { guard } = on.gateway
  const startMs = performance.now()
  // All but one of this minute are spent.
  const nowhere = { account: id, signal: new AbortController().signal }
  await Promise.allSettled(Array.from({ length: 59 }, () => guard.post('http://127.0.0.1:1/', '', {}, nowhere)))
  const jobs = await atOnce(4, async (i) => {
    const body = { model: 'videogen-2.0', prompt: `bell ${i} [[fail]]`, callback_url: receiver.url }
    const answer = await on.call('/v1/video/seedance', key, body)
    return ((await answer.json()) as { data: { jobId: string } }).data.jobId
  })
  await until(() => receiver.got.length, atLeast(6))
  assert.ok(performance.now() - startMs > 4_900, 'one a second comes back, and one was left')
  for (const job of jobs) await receiver.about(job)
})
