// Every name that callers use is understood, and what a model does not take is refused before anything is held.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixtureOf } from '../../../../test/fixture.ts'
import shipped from '../../../catalog/default.json' with { type: 'json' }
import { traitsOf, type VideoTraits } from '../../../catalog/traits.ts'
import { Fault } from '../../../kernel/fault.ts'
import { readJson } from '../../../kernel/json.ts'
import { readVideoRequest } from './request.ts'

const rulesOf = (model: string, traits = {}): VideoTraits =>
  traitsOf('video').parse({
    ...(shipped.models[model as 'videogen-2.0'] as { traits: object } | undefined)?.traits,
    ...traits,
  }) as VideoTraits // by the schema of this kind

const read = (body: Record<string, unknown>, model = 'videogen-2.0', traits = {}) =>
  readVideoRequest(readJson(Buffer.from(JSON.stringify({ model, ...body }))), rulesOf(model, traits))

const A = 'https://a.example/1.png'
const B = 'https://a.example/2.png'

test('a prompt alone is five seconds of 720p, and both are said to the vendor', () => {
  const { order, worst, price, input } = read({ prompt: 'a gate' })
  assert.deepEqual(order, { content: [{ type: 'text', text: 'a gate' }], duration: 5, resolution: '720p' })
  assert.deepEqual(worst, { second: 5 })
  assert.deepEqual(price, { resolution: '720p' })
  assert.deepEqual(input, { model: 'videogen-2.0', prompt: 'a gate' })
})

test('all names for the same thing mean the same', () => {
  const image = (role: string, url: string) => ({ type: 'image_url', image_url: { url }, role })
  const names = {
    first_frame: ['image', 'image_url', 'first_frame', 'first_frame_url'],
    last_frame: ['last_frame', 'last_frame_url', 'end_image'],
    duration: ['duration', 'seconds', 'duration_seconds'],
    ratio: ['ratio', 'aspect_ratio'],
    generate_audio: ['generate_audio', 'with_audio', 'audio'],
  }
  for (const name of names.first_frame)
    assert.deepEqual(read({ prompt: 'x', [name]: A }).order.content[1], image('first_frame', A))
  for (const name of names.last_frame)
    assert.deepEqual(read({ prompt: 'x', image: A, [name]: B }).order.content[2], image('last_frame', B))
  for (const name of names.duration)
    for (const value of [8, '8']) assert.equal(read({ prompt: 'x', [name]: value }).order.duration, 8)
  for (const name of names.ratio) assert.equal(read({ prompt: 'x', [name]: '9:16' }).order.ratio, '9:16')
  for (const name of names.generate_audio)
    assert.equal(read({ prompt: 'x', [name]: false }).order.generate_audio, false)
  for (const [kind, list] of Object.entries({
    image: ['images', 'image_urls', 'reference_images'],
    video: ['videos', 'video_urls', 'reference_videos'],
  }))
    for (const name of list) {
      const parts = read({ prompt: 'x', [name]: [A, B] }).order.content.slice(1)
      assert.deepEqual(
        parts.map((part) => part.type !== 'text' && part.role),
        [`reference_${kind}`, `reference_${kind}`],
      )
    }
  for (const name of ['audios', 'audio_urls', 'reference_audios'])
    assert.equal(read({ prompt: 'x', images: [A], [name]: ['https://a.example/s.mp3'] }).order.content.length, 3)
})

test('the parameters are kept as they were sent, with their proper names beside them, and nothing else is', () => {
  const sent = { prompt: 'x', seconds: '6', aspect_ratio: '1:1', image: A, camera_fixed: true }
  const junk = { style: { grain: 1 }, constructor: 'x', metadata: ['y'.repeat(1_000_000)] }
  assert.deepEqual(read({ ...junk, ...sent, image: { url: A, ...junk } }).input, {
    model: 'videogen-2.0',
    ...sent,
    image: { url: A },
    duration: 6,
    ratio: '1:1',
    first_frame: { url: A },
  })
  const content = [
    { type: 'text', text: 'x' },
    { type: 'image_url', image_url: { url: A }, role: 'reference_image' },
    { type: 'video_url', video_url: B },
  ]
  const stuffed = content.map((part) => ({ ...part, text: 'x', ...junk }))
  Object.assign(stuffed[1]!, { image_url: { url: A, ...junk }, audio_url: 'z'.repeat(1_000_000) })
  assert.deepEqual(read({ content: stuffed }).input, { model: 'videogen-2.0', content })
})

test('the vendor’s own content passes as it is, and a lone picture is the first frame', () => {
  const content = [
    { type: 'text', text: 'x' },
    { type: 'image_url', image_url: { url: A } },
  ]
  assert.deepEqual(read({ content }).order.content, [content[0], { ...content[1], role: 'first_frame' }])
  assert.equal(read({ content: [content[1]] }).order.content.length, 1)
})

test('a seed is kept, 0 too, and -1 is none', () => {
  assert.equal(read({ prompt: 'x', seed: 0 }).order.seed, 0)
  assert.equal(read({ prompt: 'x', seed: 4_294_967_295 }).order.seed, 4_294_967_295)
  assert.equal(read({ prompt: 'x', seed: -1 }).order.seed, undefined)
})

test('a price by tokens is covered for every frame', () => {
  const json = readJson(Buffer.from(JSON.stringify({ model: 'videogen-2.0', prompt: 'x' })))
  // The vendor reports 108,900 tokens for five seconds of 720p.
  assert.ok(readVideoRequest(json, rulesOf('videogen-2.0'), true).worst.output! >= 108_900)
})

test('what differs between models can be said in the catalog', () => {
  assert.equal(
    read({ prompt: 'x', resolution: '4K' }, 'videogen-2.0', { resolutions: ['720p', '4k'] }).order.resolution,
    '4k',
  )
  assert.equal(read({ prompt: 'x', duration: 60 }, 'videogen-9', { secondsMax: 60 }).order.duration, 60)
})

const many = (count: number) => Array.from({ length: count }, (_, i) => `https://a.example/${i}.png`)
const LONG = 'x'.repeat(32_001)
const pieces = (count: number, text: string) => Array.from({ length: count }, () => ({ type: 'text', text }))
const refusals: [why: string, body: Record<string, unknown>, field: string, words: string][] = [
  ...fixtureOf<typeof refusals>('refused-videos.yaml'),
  ['a prompt that is a book', { prompt: LONG }, 'prompt', '32000 characters'],
  ['a book of blanks', { prompt: ' '.repeat(32_001), image: A }, 'prompt', '32000 characters'],
  ['a book in pieces', { content: pieces(33, 'x'.repeat(1_000)) }, 'content', '32000 characters'],
  ['more parts than any model takes', { content: pieces(65, 'x') }, 'content', 'at most 64'],
]

for (const [why, body, field, words] of refusals)
  test(`refused before anything is held: ${why}`, () => {
    assert.throws(
      () => read(body),
      (error) => {
        assert.ok(error instanceof Fault)
        assert.equal(error.code, 10000)
        assert.equal(error.details.param, field)
        assert.match(error.message, new RegExp(words))
        return true
      },
    )
  })

test('the newer model is longer, takes more references, and knows no 1080p', () => {
  assert.equal(read({ prompt: 'x', duration: 30 }, 'videogen-2.5').order.duration, 30)
  assert.equal(read({ prompt: 'x', images: many(30) }, 'videogen-2.5').order.content.length, 31)
  assert.throws(() => read({ prompt: 'x', duration: 31 }, 'videogen-2.5'), /4 to 30/)
  assert.throws(() => read({ prompt: 'x', resolution: '1080p' }, 'videogen-2.5'), /480p, 720p for/)
})
