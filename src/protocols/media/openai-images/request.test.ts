import assert from 'node:assert/strict'
import { test } from 'node:test'
import { words } from '../../../../test/lists.ts'
import { SIZE_TABLE, TIER_OF } from '../../../catalog/images.ts'
import { Fault } from '../../../kernel/fault.ts'
import { realWorld } from '../../../kernel/world.ts'
import { createByteBudget } from '../../../upstream/budget.ts'
import type { Exchange, PaidRequest, Target } from '../../protocol.ts'
import { vendorCall } from '../../vendor-call.ts'
import { readImageBody } from './body.ts'
import { type ImageRequestDeps, readImageRequest } from './request.ts'

const signal = new AbortController().signal
const MB = 1_048_576
const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d494844520000000100000001', 'hex'), Buffer.alloc(9)])
const JPEG = Buffer.from('ffd8ffc0001108000100010301220002110103110100', 'hex')
const PNG_URI = `data:image/png;base64,${PNG.toString('base64')}`

const target: Target = {
  protocol: 'openai-images',
  baseUrl: 'http://vendor.example/openai',
  secret: 'vendor-key',
  headers: { 'x-extra': '1' },
  model: 'vendor-image-2',
}
const options = { requestId: 'req_1', createdSeconds: 1_700_000_000, signal }

async function opened(ask: PaidRequest): Promise<Exchange> {
  await ask.gather?.(options.signal)
  const exchange = await ask.open(target, options)
  return { ...exchange, call: vendorCall(exchange.call, target) }
}

async function depsOf(over: Partial<ImageRequestDeps> = {}) {
  const kept: Buffer[] = []
  const removed: string[] = []
  const budget = createByteBudget({ world: realWorld, bytesMax: 1024 * MB, queueMax: 10 })
  const lease = await budget.acquire('a', 1000, signal)
  const deps: ImageRequestDeps = {
    fetchImage: async () => ({ bytes: JPEG, type: 'jpeg' }),
    async store(pieces, type) {
      const url = `http://gateway.example/assets/${kept.length}.${type}`
      kept.push(Buffer.concat([...pieces]))
      return { url, remove: async () => void removed.push(url) }
    },
    lease,
    ...over,
  }
  return { deps, kept, removed, budget, lease }
}

async function ask(request: object, over: Partial<ImageRequestDeps> = {}) {
  const bytes = Buffer.from(JSON.stringify({ model: 'alpha-image-2', ...request }))
  const body = await readImageBody(
    (async function* () {
      yield bytes
    })(),
    { contentLength: bytes.length },
  )
  const made = await depsOf(over)
  return { ...made, ask: readImageRequest(body, { uid: 'alpha-image-2' }, made.deps) }
}

async function sent(request: object): Promise<Record<string, unknown>> {
  const made = await ask(request)
  const { call } = await opened(made.ask)
  return JSON.parse(call.body as string)
}

function refused(request: object, param: string, message: RegExp): Promise<void> {
  return assert.rejects(ask(request), (error) => {
    assert.ok(error instanceof Fault, String(error))
    assert.equal(error.status, 400)
    assert.equal(error.code, 10_000)
    assert.equal(error.details.param, param)
    assert.match(error.message, message)
    return true
  })
}

test('a plain request becomes the vendor’s JSON, with its own model name and key', async () => {
  const made = await ask({ model: 'alpha-image-2', prompt: 'a cat', unknown: [1], seed: 7 })
  assert.equal(made.ask.product, 'alpha-image-2')
  assert.equal(made.ask.stream, false)
  assert.deepEqual(made.ask.price, { resolution: '1k', quality: 'auto' })
  const { call } = await opened(made.ask)
  assert.equal(call.method, 'POST')
  assert.equal(call.url, 'http://vendor.example/openai/images/generations')
  assert.equal(call.headers.authorization, 'Bearer vendor-key')
  assert.equal(call.headers['x-extra'], '1')
  assert.deepEqual(JSON.parse(call.body as string), {
    model: 'vendor-image-2',
    prompt: 'a cat',
    n: 1,
    size: 'auto',
    quality: 'auto',
    output_format: 'png',
  })
})

test('null is the same as absent, in every field', async () => {
  const names = words('n size quality resolution image_urls output_format stream mask mask_url maskUrl response_format')
  const nulls = Object.fromEntries(names.map((name) => [name, null]))
  assert.deepEqual(await sent({ prompt: 'a cat', ...nulls }), await sent({ prompt: 'a cat' }))
})

test('each field that is wrong is named, with what is allowed', async () => {
  const cases: ReadonlyArray<readonly [object, string, RegExp]> = [
    [{ prompt: undefined }, 'prompt', /required/],
    [{ prompt: null }, 'prompt', /required/],
    [{ prompt: 7 }, 'prompt', /string/],
    [{ prompt: ' \n' }, 'prompt', /empty/],
    [{ prompt: 'x'.repeat(32_001) }, 'prompt', /32000/],
    [{ n: 2 }, 'n', /must be 1/],
    [{ n: 0 }, 'n', /must be 1/],
    [{ n: '1' }, 'n', /must be 1/],
    [{ n: 1.5 }, 'n', /must be 1/],
    [{ n: true }, 'n', /must be 1/],
    [{ size: '1000x1000' }, 'size', /1024x1024/],
    [{ size: '5:4' }, 'size', /16:9/],
    [{ size: '__proto__' }, 'size', /16:9/],
    [{ size: 1024 }, 'size', /string/],
    [{ quality: 'ultra' }, 'quality', /low, medium, high, auto/],
    [{ quality: 1 }, 'quality', /low, medium/],
    [{ resolution: '8k' }, 'resolution', /1k, 2k, 4k/],
    [{ output_format: 'gif' }, 'output_format', /png, jpeg, webp/],
    [{ stream: 'true' }, 'stream', /true or false/],
    [{ response_format: 'file' }, 'response_format', /url, b64_json/],
    [{ mask: 'x' }, 'mask', /not supported/],
    [{ mask: false }, 'mask', /not supported/],
    [{ mask_url: 'http://x/' }, 'mask_url', /not supported/],
    [{ maskUrl: '' }, 'maskUrl', /not supported/],
    [{ image_urls: 'http://x/' }, 'image_urls', /array/],
    [{ image_urls: [1] }, 'image_urls[0]', /string/],
    [{ image_urls: [PNG_URI, null] }, 'image_urls[1]', /string/],
    [{ image_urls: ['ftp://x/'] }, 'image_urls[0]', /public http/],
    [{ image_urls: ['x.png'] }, 'image_urls[0]', /public http/],
    [{ image_urls: new Array(17).fill('http://x/') }, 'image_urls', /at most 16/],
  ]
  for (const [fields, param, message] of cases) await refused({ prompt: 'a cat', ...fields }, param, message)
})

test('n may be written as 1.0, and a prompt may have 32,000 characters', async () => {
  const body = Buffer.from(`{"model":"m","n":1.0,"prompt":"${'x'.repeat(32_000)}"}`)
  const read = await readImageBody([body] as unknown as AsyncIterable<Buffer>, { contentLength: undefined })
  readImageRequest(read, { uid: 'alpha-image-2' }, (await depsOf()).deps)
})

// ---- Sizes: ratio × tier, to the cell.

const TABLE: ReadonlyArray<readonly [string, string, string, string]> = [
  ['1:1', '1024x1024', '2048x2048', '-'],
  ['3:2', '1536x1024', '2048x1360', '-'],
  ['2:3', '1024x1536', '1360x2048', '-'],
  ['4:3', '1024x768', '2048x1536', '-'],
  ['3:4', '768x1024', '1536x2048', '-'],
  ['16:9', '1536x864', '2048x1152', '3840x2160'],
  ['9:16', '864x1536', '1152x2048', '2160x3840'],
  ['21:9', '2016x864', '2688x1152', '3840x1648'],
  ['9:21', '864x2016', '1152x2688', '1648x3840'],
]

test('a ratio and a tier give the pixels of the table, and an empty cell is refused', async () => {
  for (const [ratio, ...cells] of TABLE) {
    for (const [index, pixels] of cells.entries()) {
      const resolution = ['1k', '2k', '4k'][index]!
      const request = { prompt: 'x', size: ratio, resolution }
      if (pixels === '-') {
        await refused(request, 'resolution', /not available with the ratio/)
        continue
      }
      assert.equal((await sent(request)).size, pixels)
      assert.equal((await ask(request)).ask.price.resolution, resolution)
    }
    assert.equal((await sent({ prompt: 'x', size: ratio })).size, cells[0])
  }
})

test('explicit pixels win over a tier, in what is sent and in what is charged', async () => {
  for (const [, ...cells] of TABLE)
    for (const [index, size] of cells.entries())
      for (const resolution of [undefined, '1k', '2k', '4k']) {
        if (size === '-') continue
        const made = await ask({ prompt: 'x', size, resolution })
        assert.equal((await sent({ prompt: 'x', size, resolution })).size, size)
        assert.equal(made.ask.price.resolution, ['1k', '2k', '4k'][index])
      }
  assert.equal(Object.keys(SIZE_TABLE).length + TIER_OF.size, 9 + 22)
})

test('auto leaves the choice to the vendor at 1k, is square at 2k, and needs a ratio at 4k', async () => {
  assert.equal((await sent({ prompt: 'x', size: 'auto', resolution: '1k' })).size, 'auto')
  assert.equal((await sent({ prompt: 'x', resolution: '2k' })).size, '2048x2048')
  await refused({ prompt: 'x', resolution: '4k' }, 'resolution', /one of 16:9, 9:16, 21:9, 9:21/)
})

test('the worst case grows with pixels, quality and references', async () => {
  const worst = async (request: object) => (await ask({ prompt: 'x', ...request })).ask.worst
  assert.equal((await worst({ size: '1:1', quality: 'low' })).outputImage, 272)
  assert.equal((await worst({ size: '1:1', quality: 'auto' })).outputImage, 4_160)
  assert.equal((await worst({ size: '3840x2160', quality: 'high' })).outputImage, 32_907)
  assert.equal((await worst({})).image, 1)
  assert.ok((await worst({ image_urls: [PNG_URI, PNG_URI] })).inputImage! >= 13_000)
})

// ---- References.

test('references make a multipart upload in the order they were given, from data URIs and addresses alike', async () => {
  const asked: string[] = []
  const made = await ask(
    {
      prompt: 'fuse "these"\r\n--tollgate',
      image_urls: ['https://pics.example/a.jpg', PNG_URI],
      size: '16:9',
      stream: true,
    },
    {
      fetchImage: async (url) => {
        asked.push(url)
        return { bytes: JPEG, type: 'jpeg' }
      },
    },
  )
  const { call } = await opened(made.ask)
  assert.equal(call.url, 'http://vendor.example/openai/images/edits')
  assert.ok(Array.isArray(call.body))
  const pieces = call.body.map((piece) => Buffer.from(piece))
  const form = await new Response(Buffer.concat(pieces), {
    headers: { 'content-type': call.headers['content-type']! },
  }).formData()
  const fields = Object.fromEntries([...form].filter(([, value]) => typeof value === 'string'))
  assert.deepEqual(fields, {
    model: 'vendor-image-2',
    prompt: 'fuse "these"\r\n--tollgate',
    n: '1',
    size: '1536x864',
    quality: 'auto',
    output_format: 'png',
    stream: 'true',
  })
  const files = form.getAll('image[]') as File[]
  assert.deepEqual(
    files.map((file) => [file.name, file.type]),
    [
      ['image-1.jpg', 'image/jpeg'],
      ['image-2.png', 'image/png'],
    ],
  )
  assert.deepEqual(Buffer.from(await files[0]!.arrayBuffer()), JPEG)
  assert.deepEqual(Buffer.from(await files[1]!.arrayBuffer()), PNG)
  await made.ask.open(target, options)
  assert.deepEqual(asked, ['https://pics.example/a.jpg'], 'a second vendor gets the same bytes, without a second fetch')
})

test('a reference that cannot be fetched names its position, stops the others, and gives the memory back', async () => {
  const stopped = Promise.withResolvers<void>()
  const made = await ask(
    { prompt: 'x', image_urls: ['https://a.example/', 'https://dead.example/'] },
    {
      fetchImage(url, { signal: own }) {
        if (url.includes('dead')) return Promise.reject(new Fault('request_invalid', { message: 'no.' }))
        return new Promise((_resolve, reject) =>
          own.addEventListener('abort', () => {
            stopped.resolve()
            reject(own.reason)
          }),
        )
      },
    },
  )
  await assert.rejects(opened(made.ask), { message: '"image_urls[1]": no.', status: 400 })
  await stopped.promise
  made.lease.release()
  assert.equal(made.budget.bytesInUse, 0)
})

test('fetched references count against the budget, and against the 256 MB of the request', async () => {
  const big = Buffer.alloc(17 * MB)
  const made = await ask(
    { prompt: 'x', image_urls: new Array(16).fill('https://a.example/') },
    { fetchImage: async () => ({ bytes: big, type: 'png' }) },
  )
  await assert.rejects(opened(made.ask), /256 MB in all/)
  const fine = await ask(
    { prompt: 'x', image_urls: new Array(16).fill('https://a.example/') },
    { fetchImage: async () => ({ bytes: big.subarray(0, MB), type: 'png' }) },
  )
  await opened(fine.ask)
  assert.equal(fine.budget.bytesInUse, 1000 + 16 * MB)
})

// ---- Answers.

const DRAWN = Buffer.concat([PNG, Buffer.alloc(2_000_000, 'picture')])
const vendorAnswer = {
  created: 1_789_000_000,
  data: [{ b64_json: DRAWN.toString('base64') }],
  size: '1024x1024',
  usage: {
    input_tokens: 50,
    output_tokens: 4_160,
    total_tokens: 4_210,
    input_tokens_details: { text_tokens: 10, image_tokens: 40 },
    secret: 1,
  },
}

test('the vendor’s picture is stored before it is answered with its address, and the usage is passed on', async () => {
  const made = await ask({ prompt: 'x' })
  const exchange = await opened(made.ask)
  const answer = await exchange.answer(Buffer.from(JSON.stringify(vendorAnswer)), {})
  assert.ok(made.kept[0]?.equals(DRAWN))
  assert.deepEqual(JSON.parse(String(answer.body)), {
    created: 1_789_000_000,
    data: [{ url: 'http://gateway.example/assets/0.png' }],
    usage: {
      input_tokens: 50,
      output_tokens: 4_160,
      total_tokens: 4_210,
      input_tokens_details: { text_tokens: 10, image_tokens: 40 },
    },
  })
  assert.deepEqual(answer.usage, { image: 1, input: 10, inputImage: 40, outputImage: 4_160 })
  await exchange.discard?.()
  assert.deepEqual(made.removed, ['http://gateway.example/assets/0.png'])
})

test('b64_json comes next to the address for SDKs that ask for it', async () => {
  const made = await ask({ prompt: 'x', response_format: 'b64_json' })
  const answer = await (await opened(made.ask)).answer(Buffer.from(JSON.stringify(vendorAnswer)), {})
  const { data } = JSON.parse(String(answer.body))
  assert.ok(Buffer.from(data[0].b64_json, 'base64').equals(DRAWN))
  assert.equal(data[0].url, 'http://gateway.example/assets/0.png')
})

test('without a report of the vendor’s the answer has no usage, and the charge is one image', async () => {
  const made = await ask({ prompt: 'x' })
  const body = Buffer.from(JSON.stringify({ data: vendorAnswer.data }))
  const answer = await (await opened(made.ask)).answer(body, {})
  assert.deepEqual(JSON.parse(String(answer.body)), {
    created: 1_700_000_000,
    data: [{ url: 'http://gateway.example/assets/0.png' }],
  })
  assert.equal(answer.usage?.image, 1)
})

test('an answer that holds an error, no picture, or not even JSON is the vendor’s fault, and nothing is stored', async () => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    ['{"error":{"message":"Your request was rejected","type":"invalid_request_error"}}', 'upstream_invalid'],
    ['{"created":1,"data":[]}', 'upstream_garbled'],
    ['{"data":[{"b64_json":"AAAA"}]}', 'upstream_garbled'],
    ['{"data":[{"b64_json":"not base64!"}]}', 'upstream_garbled'],
    ['{"data":[{"url":"http://vendor.example/x.png"}]}', 'upstream_garbled'],
    ['<html>', 'upstream_garbled'],
    ['', 'upstream_garbled'],
  ]
  for (const [body, kind] of cases) {
    const made = await ask({ prompt: 'x' })
    const exchange = await opened(made.ask)
    await assert.rejects(async () => exchange.answer(Buffer.from(body), {}), { kind })
    assert.equal(made.kept.length, 0)
    await exchange.discard?.()
  }
})
