import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Fault } from '../../../kernel/fault.ts'
import { checkImageContentType, type ImageRequestBody, readImageBody } from './body.ts'

const MB = 1_048_576
/** The start of a PNG of 1×1, as long as three groups of base64 are even. */
const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d494844520000000100000001', 'hex'), Buffer.alloc(6)])
const PNG_URI = `data:image/png;base64,${PNG.toString('base64')}`

async function* slices(body: Buffer, size = body.length): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size)
}

function read(body: string | Buffer, size?: number, contentLength?: number): Promise<ImageRequestBody> {
  return readImageBody(slices(Buffer.from(body), size), { contentLength, digest: true })
}

function refused(promise: Promise<unknown>, message: RegExp, status = 400): Promise<void> {
  return assert.rejects(promise, (error) => {
    assert.ok(error instanceof Fault, String(error))
    assert.equal(error.status, status)
    assert.match(error.message, message)
    return true
  })
}

function withUrls(...urls: string[]): string {
  return JSON.stringify({ prompt: 'a cat', image_urls: urls })
}

test('pictures become bytes and everything else stays as it was, however the body is cut', async () => {
  const file = Buffer.concat([PNG, Buffer.from(Array.from({ length: 500 }, (_, i) => (i * 7919) & 255))])
  const uri = `data:image/png;base64,${file.toString('base64')}`
  const text = JSON.stringify({
    model: 'alpha-image-2',
    prompt: 'say "data:image/png;base64,AAAA" — 中文 \\ and 😀',
    extra: { image_urls: [PNG_URI], deep: [[[['data:x']]]] },
    image_urls: ['https://example.com/a.png', uri, 'HTTPS://example.com/data:', PNG_URI.replace('data', 'DATA')],
    size: '1:1',
  })
  // As PHP writes it, as .NET writes it, and with escapes where nobody writes them.
  const forms = [
    text,
    text.replaceAll('/', '\\/'),
    text.replaceAll('+', '\\u002B').replaceAll('/', '\\u002f'),
    text.replace('"image_urls":["https', '"image\\u005furls":["https'),
    text.replace(`"${uri}"`, `"\\u0064${uri.slice(1)}"`),
    `\ufeff${text}`,
  ]
  for (const form of forms) {
    const bytes = Buffer.from(form)
    for (const size of [1, 2, 3, 5, 64, bytes.length]) {
      const body = await read(bytes, size)
      assert.deepEqual([...body.inline.keys()].sort(), [1, 3])
      assert.ok(Buffer.concat([...body.inline.get(1)!.pieces]).equals(file))
      assert.equal(body.inline.get(1)!.type, 'png')
      assert.equal(body.inlineBytes, file.length + PNG.length)
      const { image_urls: urls, ...rest } = body.json.value
      const { image_urls: _, ...expected } = JSON.parse(text)
      assert.deepEqual(rest, expected)
      assert.equal((urls as string[])[0], 'https://example.com/a.png')
      assert.equal(body.digest, createHash('sha256').update(bytes).digest('hex'))
    }
  }
})

test('a body without pictures is read like any other', async () => {
  const body = await read('{"prompt":"x","image_urls":[]}')
  assert.deepEqual(body.json.value, { prompt: 'x', image_urls: [] })
  assert.equal(body.inline.size, 0)
})

test('what is not strict JSON is refused, pictures or not', async () => {
  const cases: ReadonlyArray<readonly [string, RegExp]> = [
    ['', /empty/],
    ['[]', /must be a JSON object/],
    ['{"prompt":"x"', /not valid JSON/],
    [`{"image_urls":["${PNG_URI.slice(0, -3)}`, /not valid JSON/],
    [`{"image_urls":["${PNG_URI}"`, /not valid JSON/],
    [`{"image_urls":["${PNG_URI}"]]}`, /not valid JSON/],
    [`{"image_urls":["${PNG_URI}"],"image_urls":["${PNG_URI}"]}`, /twice/],
    [`{"image_urls":["${PNG_URI}"],"image\\u005furls":[]}`, /twice/],
    ['{"__proto__":{"n":2}}', /__proto__/],
    [`{"a":${'['.repeat(100)}${']'.repeat(100)}}`, /nested/],
    [`{"image_urls":["${PNG_URI}" "x"]}`, /not valid JSON/],
  ]
  for (const [body, message] of cases) await refused(read(body, 7), message)
})

test('a data URI must be a base64 picture, to the letter', async () => {
  const base64 = PNG.toString('base64')
  const cases: ReadonlyArray<readonly [string, RegExp]> = [
    ['data:', /of the form/],
    ['data:image/png;base64', /of the form/],
    [`data:image/png,${base64}`, /of the form/],
    [`data:text/html;base64,${base64}`, /of the form/],
    [`data:image/png;base64,${base64.slice(0, 8)}\n${base64.slice(8)}`, /without blanks/],
    [`data:image/png;base64,${base64.slice(0, 8)} ${base64.slice(8)}`, /without blanks/],
    [`data:image/png;base64,${base64.slice(0, 8)}é${base64.slice(8)}`, /without blanks/],
    [`data:image/png;base64,${base64.slice(0, 8)}"${base64.slice(8)}`, /without blanks/],
    [`data:image/png;base64,${base64}AAA=AAAA`, /without blanks/],
    [`data:image/png;base64,${base64}A`, /without blanks/],
    [`data:image/png;base64,${base64}====`, /without blanks/],
    ['data:image/png;base64,', /PNG, JPEG, WebP or GIF/],
    [`data:image/svg+xml;base64,${Buffer.from('<svg xmlns="x"></svg>').toString('base64')}`, /PNG, JPEG, WebP or GIF/],
    [`data:image/png;base64,${Buffer.from('not a picture at all').toString('base64')}`, /PNG, JPEG, WebP or GIF/],
    [`data:image/png;base64,${PNG.subarray(0, 20).toString('base64')}`, /PNG, JPEG, WebP or GIF/],
    [`data:${'x'.repeat(500)},`, /of the form/],
  ]
  for (const [uri, message] of cases)
    for (const size of [3, 1000]) await refused(read(withUrls('http://x.example/', uri), size), message)
  const padded = `data:image/png;base64,${Buffer.concat([PNG, Buffer.of(1)]).toString('base64')}`
  for (const uri of [padded, padded.replace(/=+$/, '')])
    assert.equal((await read(withUrls(uri))).inlineBytes, PNG.length + 1)
})

test('more than 50 megapixels are refused by the header, without decoding', async () => {
  const bomb = Buffer.from(PNG)
  bomb.writeUInt32BE(50_000, 16)
  bomb.writeUInt32BE(50_000, 20)
  await refused(read(withUrls(`data:image/png;base64,${bomb.toString('base64')}`)), /megapixels/)
})

// ---- The limits, to the byte. The bodies are made as they are read.

async function* bodyOf(sizes: readonly number[]): AsyncGenerator<Buffer> {
  const run = Buffer.alloc(65_536, 'A')
  yield Buffer.from('{"prompt":"x","image_urls":[')
  for (const [index, size] of sizes.entries()) {
    yield Buffer.from(`${index > 0 ? ',' : ''}"${PNG_URI}`)
    const left = size - PNG.length
    for (let chars = Math.floor(left / 3) * 4; chars > 0; chars -= run.length)
      yield chars < run.length ? run.subarray(0, chars) : run
    yield Buffer.from(`${['', 'AA==', 'AAA='][left % 3]}"`)
  }
  yield Buffer.from(']}')
}

test('16 images pass, the 17th is refused before it is read', async () => {
  const read16 = await readImageBody(bodyOf(new Array(16).fill(100)), { contentLength: undefined })
  assert.equal(read16.inline.size, 16)
  await refused(readImageBody(bodyOf(new Array(17).fill(100)), { contentLength: undefined }), /at most 16/)
  await refused(read(withUrls(...new Array(17).fill('http://x.example/'))), /at most 16/)
})

test('an image of 20 MB passes; one byte more is refused', async () => {
  for (const size of [20 * MB - 1, 20 * MB]) {
    const body = await readImageBody(bodyOf([size]), { contentLength: undefined })
    assert.equal(body.inlineBytes, size)
  }
  await refused(readImageBody(bodyOf([100, 20 * MB + 1]), { contentLength: undefined }), /image_urls\[1\].*20 MB/)
})

test('256 MB in all pass; one byte more is refused', async () => {
  const images = new Array<number>(16).fill(16 * MB)
  assert.equal((await readImageBody(bodyOf(images), { contentLength: undefined })).inlineBytes, 256 * MB)
  images[15]! += 1
  await refused(readImageBody(bodyOf(images), { contentLength: undefined }), /256 MB in all/)
})

test('a body that announces or sends too much besides pictures is refused with 413', async () => {
  async function* never(): AsyncGenerator<Buffer> {
    yield await Promise.reject(new Error('was read'))
  }
  await refused(readImageBody(never(), { contentLength: 400 * MB + 1 }), /too large/, 413)
  await refused(read(JSON.stringify({ prompt: 'x'.repeat(2 * MB) }), 65_536), /too large/, 413)
  await refused(
    read(JSON.stringify({ other: [`data:image/png;base64,${'A'.repeat(3 * MB)}`] }), 65_536),
    /too large/,
    413,
  )
})

test('JSON is the only content type, and a missing one is forgiven', () => {
  for (const type of [
    undefined,
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON ;charset=utf-8',
  ])
    checkImageContentType(type)
  for (const type of [
    'multipart/form-data; boundary=x',
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonx',
    'application/json\tx',
  ])
    assert.throws(() => checkImageContentType(type), { status: 400 })
})
