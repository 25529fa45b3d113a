import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { inflateSync } from 'node:zlib'
import OpenAI, { toFile } from 'openai'
import { readImageFacts } from '../src/kernel/parsers/image-file.ts'
import { realWorld } from '../src/kernel/world.ts'
import { atOnce } from '../test/lists.ts'
import { started } from '../test/started.ts'
import { readForm } from './multipart.ts'
import { paint } from './picture.ts'
import { startSandbox } from './server.ts'

let client: OpenAI

const sandbox = started(() => startSandbox({ world: realWorld }))
before(async () => {
  client = new OpenAI({ apiKey: 'sk-any', baseURL: `${sandbox.url}/openai`, maxRetries: 0 })
})

const model = 'alpha-image-2'

function decode(b64: string | undefined): Buffer {
  assert.ok(b64)
  return Buffer.from(b64, 'base64')
}

test('a PNG has the size that was ordered and data for every row', async () => {
  const made = await client.images.generate({
    model,
    prompt: 'A red fox in the snow',
    size: '1536x1024',
    quality: 'high',
  })
  const png = decode(made.data?.[0]?.b64_json)
  assert.deepEqual(readImageFacts([png]), { type: 'png', width: 1536, height: 1024 })
  const at = png.indexOf('IDAT')
  const rows = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)))
  assert.equal(rows.length, 1537 * 1024)
  assert.ok(rows.includes(240), 'there is ink on it')
  assert.equal(made.size, '1536x1024')
  assert.equal(made.usage?.output_tokens, 6240)
  assert.equal(made.usage?.total_tokens, (made.usage?.input_tokens ?? 0) + 6240)
})

for (const format of ['jpeg', 'webp'] as const) {
  test(`${format} has its own header, its size and its end`, async () => {
    const made = await client.images.generate({
      model,
      prompt: 'A red fox',
      size: '1024x768' as '1024x1024',
      output_format: format,
    })
    const bytes = decode(made.data?.[0]?.b64_json)
    assert.deepEqual(readImageFacts([bytes]), { type: format, width: 1024, height: 768 })
    if (format === 'jpeg') assert.equal(bytes.readUInt16BE(bytes.length - 2), 0xffd9)
    else assert.equal(bytes.readUInt32LE(4), bytes.length - 8)
  })
}

test('the same prompt paints the same picture, another prompt another one', async () => {
  const paint = async (prompt: string) =>
    (await client.images.generate({ model, prompt, size: '1024x1024' })).data?.[0]?.b64_json
  const first = await paint('a fox')
  assert.equal(await paint('a fox'), first)
  assert.notEqual(await paint('a dog'), first)
})

test('a stream shows partial pictures and then the finished one with its usage', async () => {
  const stream = await client.images.generate({ model, prompt: 'A fox', stream: true, partial_images: 2 })
  const types: string[] = []
  for await (const event of stream) {
    types.push(event.type)
    assert.equal(readImageFacts([decode(event.b64_json)])?.width, 1024)
    if (event.type === 'image_generation.completed') assert.ok(event.usage.output_tokens > 0)
  }
  assert.deepEqual(types, [
    'image_generation.partial_image',
    'image_generation.partial_image',
    'image_generation.completed',
  ])
})

function picture(width: number, height: number): Promise<Buffer> {
  const style = { format: 'png', quality: 'low', seed: 1, references: [], note: '' } as const
  return paint({ prompt: 'x', model, width, height, ...style })
}

test('an edit receives every reference, whole or streamed', async () => {
  sandbox.seen.clear()
  const files = await Promise.all(
    [320, 640].map(async (side) => toFile(await picture(side, side), `${side}.png`, { type: 'image/png' })),
  )
  const made = await client.images.edit({ model, prompt: 'Put them side by side', image: files })
  assert.equal(readImageFacts([decode(made.data?.[0]?.b64_json)])?.type, 'png')
  assert.equal(made.usage?.input_tokens_details.image_tokens, 100 + 400)
  assert.equal(JSON.parse(sandbox.seen.calls[0]?.body ?? '').files.length, 2)
  const stream = await client.images.edit({ model, prompt: 'Again', image: files, stream: true })
  const types = []
  for await (const event of stream) types.push(event.type)
  assert.deepEqual(types, ['image_edit.completed'])
})

test('sixteen references are taken and seventeen refused', async () => {
  const one = await picture(256, 256)
  const edit = async (count: number) =>
    client.images.edit({
      model,
      prompt: 'Mix',
      image: await atOnce(count, (i) => toFile(one, `${i}.png`, { type: 'image/png' })),
    })
  assert.ok((await edit(16)).data?.[0]?.b64_json)
  await assert.rejects(edit(17), /at most 16/)
})

test('a file that is not what it says is refused', async () => {
  const edit = async (bytes: Buffer, type: string) =>
    client.images.edit({ model, prompt: 'Mix', image: await toFile(bytes, 'file', { type }) })
  await assert.rejects(edit(Buffer.from('<svg/>'), 'image/png'), /unsupported mimetype/)
  await assert.rejects(edit(await picture(256, 256), 'image/webp'), /its content is image\/png/)
  await assert.rejects(edit(await picture(256, 256), 'application/octet-stream'), /unsupported mimetype/)
})

test('faults come on demand here too', async () => {
  const send = (prompt: string, stream = false) =>
    fetch(`${sandbox.url}/openai/images/generations`, {
      method: 'POST',
      body: JSON.stringify({ model, prompt, stream }),
    })
  assert.equal((await send('[[503]]')).status, 503)
  assert.match(await (await send('[[reject]]')).text(), /moderation_blocked/)
  assert.doesNotMatch(await (await send('[[no-usage]]')).text(), /usage/)
  const broken = await (await send('[[error-in-stream=0]]', true)).text()
  assert.match(broken, /^event: error\ndata: /)
  const bad = (await (await send('[[bad-image]]')).json()) as { data: { b64_json: string }[] }
  assert.equal(readImageFacts([decode(bad.data[0]?.b64_json)]), undefined)
})

test('a form is read the same wherever the network cuts it', async () => {
  const form = Buffer.from(
    '--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nA fox\r\n--b\r\nContent-Disposition: form-data; name="image[]"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n\r\n--not the end\r\n\r\n--b\r\nContent-Disposition: form-data; name="empty"\r\n\r\n\r\n--b--\r\n',
  )
  const read = async (pieces: Buffer[]) => {
    const stream = (async function* () {
      yield* pieces
    })()
    const parts = await readForm(stream, 'multipart/form-data; boundary=b')
    return parts.map(({ name, filename, type, bytes, head }) => [name, filename, type, bytes, head.toString()])
  }
  const whole = await read([form])
  assert.deepEqual(whole, [
    ['prompt', undefined, '', 5, 'A fox'],
    ['image[]', 'a.png', 'image/png', 17, '\r\n--not the end\r\n'],
    ['empty', undefined, '', 0, ''],
  ])
  for (let at = 1; at < form.length; at++) {
    assert.deepEqual(await read([form.subarray(0, at), form.subarray(at)]), whole)
  }
  await assert.rejects(read([form.subarray(0, -6)]), /last boundary/)
})
