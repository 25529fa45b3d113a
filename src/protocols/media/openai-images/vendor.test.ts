// The image format against the simulated vendor, over real sockets, with real files at the end.

import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Sandbox, startSandbox } from '../../../../sandbox/server.ts'
import { listen, started } from '../../../../test/started.ts'
import { openDiskStore } from '../../../assets/open.ts'
import { type AssetHost, type AssetStore, createAssetHost, createAssetSigner } from '../../../assets/store.ts'
import { readImageFacts } from '../../../kernel/parsers/image-file.ts'
import { realWorld } from '../../../kernel/world.ts'
import { createByteBudget } from '../../../upstream/budget.ts'
import type { Upstream } from '../../../upstream/call.ts'
import { createUpstream } from '../../../upstream/exchange.ts'
import { createGuardedFetch } from '../../../upstream/guard.ts'
import { type Target, vendorCall } from '../../protocol.ts'
import { readImageBody } from './body.ts'
import { readImageRequest } from './request.ts'

const signal = new AbortController().signal
const deadlines = { connectMs: 5_000, firstByteMs: 30_000, idleMs: 30_000, totalMs: 60_000 }
let sandbox: Sandbox
let upstream: Upstream
let directory = ''
let store: AssetStore
let host: AssetHost
const pictures = started(() =>
  listen((request, response) => {
    if (request.url === '/fox') response.end(picture)
    else response.writeHead(404).end()
  }),
)
let picture: Buffer

before(async () => {
  sandbox = await startSandbox({ world: realWorld, speed: 1000 })
  upstream = createUpstream({ world: realWorld })
  directory = await mkdtemp(join(tmpdir(), 'tollgate-images-'))
  store = await openDiskStore({ world: realWorld, directory })
  const signer = createAssetSigner({ key: Buffer.alloc(32, 1), publicUrl: () => 'http://gateway.example' })
  host = createAssetHost({ store, signer, world: realWorld, lifetimeMs: 3_600_000 })
})
after(async () => {
  await upstream.close()
  await sandbox.close()
  await rm(directory, { recursive: true, force: true })
})

async function generate(request: object) {
  const bytes = Buffer.from(JSON.stringify({ model: 'alpha-image-2', ...request }))
  const body = await readImageBody(
    (async function* () {
      yield bytes
    })(),
    { contentLength: bytes.length },
  )
  const lease = await createByteBudget({ world: realWorld, bytesMax: 1e9, queueMax: 1 }).acquire(
    'a',
    bytes.length,
    signal,
  )
  const { fetchImage } = createGuardedFetch({ world: realWorld, allow: [pictures.host] })
  const ask = readImageRequest(body, { uid: 'alpha-image-2' }, { lease, fetchImage, store: host.store })
  const target: Target = {
    protocol: 'openai-images',
    baseUrl: `${sandbox.url}/openai`,
    secret: 'sk-any',
    headers: {},
    model: 'alpha-image-2',
  }
  await ask.gather?.(signal)
  const exchange = await ask.open(target, { requestId: 'req_0123456789', createdSeconds: 1_800_000_000, signal })
  const reply = await upstream.send(vendorCall(exchange.call, target), { deadlines, signal })
  return { exchange, reply }
}

async function drawn(request: object): Promise<{ url: string; usage: Record<string, unknown> }> {
  const { exchange, reply } = await generate(request)
  assert.equal(reply.status, 200)
  const answer = await exchange.answer(await reply.read(64 * 1_048_576), reply.headers)
  const { data, usage } = JSON.parse(String(answer.body))
  return { url: data[0].url, usage }
}

async function fileAt(url: string): Promise<Buffer> {
  const asset = await store.open(new URL(url).pathname.replace('/assets/', ''))
  assert.ok(asset)
  const chunks: Buffer[] = []
  for await (const chunk of asset.read(0, asset.bytes - 1)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('PNG, JPEG and WebP of the asked size lie at the address that is answered', async () => {
  for (const [request, type, width, height] of [
    [{ size: '16:9' }, 'png', 1536, 864],
    [{ size: '2:3', output_format: 'jpeg' }, 'jpeg', 1024, 1536],
    [{ size: '3:4', output_format: 'webp', quality: 'low' }, 'webp', 768, 1024],
    [{ size: '21:9', resolution: '2k' }, 'png', 2688, 1152],
  ] as const) {
    const { url, usage } = await drawn({ prompt: 'a red fox', ...request })
    assert.ok(new URL(url).pathname.endsWith(type === 'jpeg' ? '.jpg' : `.${type}`))
    assert.deepEqual(readImageFacts([await fileAt(url)]), { type, width, height })
    assert.ok(Number(usage.output_tokens) > 0)
  }
})

test('references from an address and from a data URI both reach the vendor', async () => {
  picture = await fileAt((await drawn({ prompt: 'a fox', size: '1:1', output_format: 'jpeg' })).url)
  const uri = `data:image/jpeg;base64,${picture.toString('base64')}`
  const none = await drawn({ prompt: 'fuse', size: '1:1' })
  const both = await drawn({ prompt: 'fuse', size: '1:1', image_urls: [`http://${pictures.host}/fox`, uri] })
  assert.deepEqual(readImageFacts([await fileAt(both.url)]), { type: 'png', width: 1024, height: 1024 })
  assert.ok(Number(both.usage.input_tokens) > Number(none.usage.input_tokens), 'the vendor counted the pictures')
})

test('a dead reference is refused by its position before the vendor hears of it', async () => {
  await assert.rejects(generate({ prompt: 'fuse', image_urls: [`http://${pictures.host}/gone`] }), {
    status: 400,
    message: /^"image_urls\[0\]": The image could not be fetched/,
  })
})

test('a streamed picture is one event, and its file is there before the event is', async () => {
  const { exchange, reply } = await generate({ prompt: 'a fox', size: '1:1', stream: true })
  const relay = exchange.stream!(reply.headers)
  await reply.pipe((chunk) => {
    relay.push(chunk)
    return undefined
  })
  relay.end()
  assert.equal(relay.state.terminal, true)
  await relay.ready?.()
  const frames = relay.finish('').trim().split('\n\n')
  assert.equal(frames.length, 2)
  assert.equal(frames[1], 'data: [DONE]')
  const { data, usage } = JSON.parse(frames[0]!.split('\ndata: ')[1]!)
  assert.equal(data[0].index, 0)
  assert.deepEqual(readImageFacts([await fileAt(data[0].url)]), { type: 'png', width: 1024, height: 1024 })
  assert.ok(usage.total_tokens > 0)
  await exchange.discard?.()
  assert.equal(await store.open(new URL(data[0].url).pathname.replace('/assets/', '')), undefined)
})

test('nothing unfinished is left behind', async () => {
  assert.deepEqual(await readdir(join(directory, 'unfinished')), [])
})
