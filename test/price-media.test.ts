// Pictures are priced by what was drawn and paid whole by whoever leaves; sound in chat has rates of its own, or is
// refused by its name.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type { CatalogInput } from '../src/catalog/document.ts'
import { assert, jsonOf, listen, started, test, testGateway, textOf } from './gateway.ts'

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const usage = { input_tokens: 9, output_tokens: 90, total_tokens: 99 }
let drawn = 'high'
let begun: (response: ServerResponse) => void = () => {}

const vendor = started(() => listen(paint))
async function paint(request: IncomingMessage, response: ServerResponse) {
  const { stream } = (await json(request)) as { stream?: boolean }
  if (!stream) {
    const answer = { created: 1, quality: drawn, data: [{ b64_json: PICTURE }], usage }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    return
  }
  const event = (type: string) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: PICTURE, quality: drawn, usage, partial_image_index: 0 })}\n\n`
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(event('image_generation.partial_image'), () => begun(response))
  if (drawn !== 'never') response.end(event('image_generation.completed'))
}

const g = testGateway(() => ({
  catalog(document: CatalogInput) {
    document.vendors.painter = { baseUrl: vendor.url }
    const image = document.models['alpha-image-2']
    const text = document.models['alpha-5.4']
    assert.ok(image && text)
    const tier = (quality: string, price: string) => ({ when: { quality }, image: price })
    document.models.painting = {
      ...image,
      routes: [{ vendor: 'painter', protocol: 'openai-images' }],
      pricing: { unit: 'credits', tiers: [tier('low', '1'), tier('high', '16'), { image: '4' }] },
    }
    document.models.deaf = text
  },
}))

async function rowOf(account: string) {
  const row = await g.lastCall(account)
  return { charged: Number(row.charged) / 1e6, held: Number(row.held) / 1e6 }
}

test('a picture of quality auto is held for as the dearest and charged as what was drawn, whole and streamed', async () => {
  const { id, key } = await g.account()
  for (const stream of [false, true])
    for (const [asked, made, due] of [
      ['auto', 'high', 16],
      ['auto', 'low', 1],
      ['auto', 'medium', 4],
      ['low', 'high', 1],
    ] as const) {
      drawn = made
      await textOf(
        g.call('/v1/images/generations', key, { model: 'painting', prompt: 'A gate', quality: asked, stream }),
      )
      const { charged, held } = await rowOf(id)
      assert.deepEqual([charged, held], [due, asked === 'auto' ? 16 : 1], `${asked} ${made} ${stream}`)
    }
})

test('whoever hangs up on a picture that was begun pays for it', async () => {
  const { id, key } = await g.account()
  drawn = 'never'
  const leaving = new AbortController()
  const started = new Promise<ServerResponse>((resolve) => {
    begun = resolve
  })
  const asked = fetch(`${g.url}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'painting', prompt: 'A gate', quality: 'high', stream: true }),
    signal: leaving.signal,
  }).then((answer) => answer.text())
  const response = await started
  // More than sockets buffer: when it is written, the gateway has read the beginning.
  await new Promise((resolve) => response.write(`: ${'x'.repeat(16_000_000)}\n\n`, resolve))
  leaving.abort()
  await assert.rejects(asked)
  response.destroy()
  assert.equal((await rowOf(id)).charged, 16)
})

test('sound and pictures in chat are refused by their names where the model has no rate for them', async () => {
  const { id, key } = await g.account()
  const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
  assert.match(
    await textOf(
      g.call('/v1/chat/completions', key, { model: 'deaf', messages: [{ role: 'user', content: [audio] }] }),
      400,
    ),
    /inputAudio/,
  )
  const spoken = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }
  assert.match(
    await textOf(
      g.call('/v1/chat/completions', key, { model: 'deaf', messages: [{ role: 'user', content: 'Hi' }], ...spoken }),
      400,
    ),
    /outputAudio/,
  )
  for (const stream of [false, true]) {
    const { error } = await jsonOf<{ error: { message: string; param: string } }>(
      g.call('/v1/chat/completions', key, {
        model: 'deaf',
        messages: [{ role: 'user', content: 'Draw a gate' }],
        modalities: ['text', 'image'],
        stream,
      }),
      400,
    )
    assert.equal(error.param, 'modalities')
    assert.match(error.message, /a picture has no price here \("outputImage"/)
  }
  const [held] = await g.sql('select 1 from transfer where account_id = $1 and kind <> $2', [id, 'grant'])
  assert.equal(held, undefined)
})
