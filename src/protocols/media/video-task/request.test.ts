// Every name that callers use is understood, and what a model does not take is refused before anything is held.
import assert from 'node:assert/strict'
import { test } from 'node:test'
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
const refusals: Array<[string, Record<string, unknown>, string | undefined, RegExp]> = [
  // why                          body                                                     field            words
  ['nothing', {}, 'prompt', /required/],
  ['an empty prompt', { prompt: ' ' }, 'prompt', /required/],
  ['an empty content', { content: [] }, 'prompt', /required/],
  ['a prompt that is none', { prompt: 5 }, 'prompt', /string/],
  ['too short', { prompt: 'x', duration: 3 }, 'duration', /4 to 15/],
  ['too long', { prompt: 'x', duration: 16 }, 'duration', /4 to 15/],
  ['a part of a second', { prompt: 'x', duration: 5.5 }, 'duration', /whole/],
  ['as long as it likes', { prompt: 'x', duration: -1 }, 'duration', /4 to 15/],
  ['seconds in words', { prompt: 'x', seconds: 'five' }, 'seconds', /whole/],
  ['two lengths', { prompt: 'x', duration: 5, seconds: 6 }, 'seconds', /different values/],
  ['an unknown resolution', { prompt: 'x', resolution: '8k' }, 'resolution', /480p, 720p, 1080p/],
  ['an unknown ratio', { prompt: 'x', ratio: '2:1' }, 'ratio', /16:9/],
  ['a seed too large', { prompt: 'x', seed: 2 ** 32 }, 'seed', /4294967295/],
  ['a seed that is text', { prompt: 'x', seed: '1' }, 'seed', /whole number/],
  ['a flag that is text', { prompt: 'x', watermark: 'true' }, 'watermark', /true or false/],
  ['audio as text', { prompt: 'x', audio: 'https://a.example/s.mp3' }, 'audio', /true or false/],
  ['two first frames', { prompt: 'x', image: A, first_frame: B }, 'image', /only one of/],
  ['a last frame alone', { prompt: 'x', last_frame: A }, 'last_frame', /first_frame/],
  ['frames and references', { prompt: 'x', image: A, images: [B] }, 'content', /cannot be combined/],
  ['too many pictures', { prompt: 'x', images: many(10) }, 'images', /at most 9/],
  ['too many videos', { prompt: 'x', videos: many(4) }, 'videos', /at most 3/],
  ['sound alone', { prompt: 'x', audios: [A] }, 'audios', /image or video/],
  ['no address', { prompt: 'x', image: 'file:///etc/passwd' }, 'image', /http/],
  ['a bad data URI', { prompt: 'x', image: 'data:text/html;base64,AAAA' }, 'image', /data:image/],
  ['a video inline', { prompt: 'x', videos: ['data:video/mp4;base64,AAAA'] }, 'videos[0]', /only images/],
  [
    'two pictures without roles',
    {
      content: [
        { type: 'image_url', image_url: { url: A } },
        { type: 'image_url', image_url: { url: B } },
      ],
    },
    'content',
    /role/,
  ],
  ['a draft', { content: [{ type: 'draft_task', draft_task: { id: 'x' } }] }, 'content[0].type', /must be text/],
  [
    'a wrong role',
    { content: [{ type: 'image_url', image_url: { url: A }, role: 'middle' }] },
    'content[0].role',
    /first_frame/,
  ],
  ['a prompt that is a book', { prompt: 'x'.repeat(32_001) }, 'prompt', /32000 characters/],
  ['a book of blanks', { prompt: ' '.repeat(32_001), image: A }, 'prompt', /32000 characters/],
  [
    'a book in pieces',
    { content: Array.from({ length: 33 }, () => ({ type: 'text', text: 'x'.repeat(1_000) })) },
    'content',
    /32000 characters/,
  ],
  [
    'more parts than any model takes',
    { content: Array.from({ length: 65 }, () => ({ type: 'text', text: 'x' })) },
    'content',
    /at most 64/,
  ],
  ['no callback', { prompt: 'x', callback_url: 'mailto:a@b' }, 'callback_url', /http/],
]

for (const [why, body, field, words] of refusals)
  test(`refused before anything is held: ${why}`, () => {
    assert.throws(
      () => read(body),
      (error) => {
        assert.ok(error instanceof Fault)
        assert.equal(error.code, 10000)
        assert.equal(error.details.param, field)
        assert.match(error.message, words)
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
