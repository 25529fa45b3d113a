// Sound: the official openai package, unchanged; what a recording is held for and costs; and what strangers send as a
// form.
import OpenAI, { toFile } from 'openai'
import { afterEach, assert, pluck, started, startGateway, test } from '../../../test/gateway.ts'
import { form, SPEECH, soundOf, startSoundVendor, TRANSCRIBE, wav } from '../../../test/sound.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import { readAudioFacts } from './audio-file.ts'

const vendor = started(startSoundVendor)
const g = started(() =>
  startGateway({
    catalog(document: CatalogInput) {
      document.vendors.other = { baseUrl: vendor.url }
      const told = { ...document.models[TRANSCRIBE]!, routes: [{ vendor: 'other', protocol: 'openai-audio' as const }] }
      document.models.told = { ...told, pricing: { unit: 'credits', tiers: [{ second: '1' }] } }
      document.models.least = { ...document.models.told, traits: { secondsMin: 10 } }
      document.models.short = { ...told, traits: { secondsMax: 30 } }
    },
  }),
)
afterEach(() => g.settled())

const { post, rows } = soundOf(() => g)
const client = (key: string, path = '/v1') => new OpenAI({ apiKey: key, baseURL: g.url + path, maxRetries: 0 })
const upload = (seconds: number) => toFile(wav(seconds), 'hello.wav', { type: 'audio/wav' })

test('the openai package transcribes and translates in every format, by every path', async () => {
  const { id, key } = await g.account()
  for (const path of ['/v1', '/alpha', '/alpha/v1']) {
    const { audio } = client(key, path)
    const plain = await audio.transcriptions.create({ file: await upload(3), model: TRANSCRIBE })
    assert.match(plain.text, /\w+/)
    assert.deepEqual(plain.usage, { type: 'duration', seconds: 3 })
    const translated = await audio.translations.create({ file: await upload(3), model: TRANSCRIBE })
    assert.equal(translated.text, plain.text)
  }
  const { audio } = client(key)
  const asked = { file: await upload(9), model: TRANSCRIBE, language: 'en', temperature: 0 }
  const verbose = await audio.transcriptions.create({
    ...asked,
    response_format: 'verbose_json',
    timestamp_granularities: ['segment'],
  })
  assert.deepEqual([verbose.duration, verbose.segments?.length], [9, 3])
  const sent = JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}')
  assert.equal(sent['timestamp_granularities[]'], 'segment')
  assert.deepEqual(sent.file, { filename: 'hello.wav', type: 'audio/wav', bytes: 9 * 16_000 + 44 })
  assert.equal(verbose.words, undefined)
  for (const granularities of [['word'], ['word', 'segment']] as const) {
    const timed = await audio.transcriptions.create({
      ...asked,
      response_format: 'verbose_json',
      timestamp_granularities: [...granularities],
    })
    assert.equal(timed.words?.map(({ word }) => word).join(' '), verbose.text.replaceAll(/[.,]/g, ''))
    const times = timed.words?.flatMap(({ start, end }) => [start, end]) ?? []
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    )
    assert.ok(times.at(-1)! <= 9)
    assert.deepEqual(timed.segments, granularities.length === 2 ? verbose.segments : undefined)
  }
  const said = await audio.transcriptions.create({ ...asked, response_format: 'text' })
  assert.equal(said, `${verbose.text}\n`)
  assert.match(await audio.transcriptions.create({ ...asked, response_format: 'srt' }), /^1\n00:00:00,000 --> /)
  assert.match(await audio.transcriptions.create({ ...asked, response_format: 'vtt' }), /^WEBVTT\n\n00:00:00.000 --> /)
  const spoken = await audio.transcriptions.create({ ...asked, response_format: 'diarized_json' })
  assert.ok('segments' in spoken && Array.isArray(spoken.segments))
  assert.equal(spoken.segments.length, 3)
  const all = await rows(id)
  assert.deepEqual(
    pluck(all.slice(0, 5), 'charged', 'estimated'),
    // srt and vtt come without a report: the file's own length is taken.
    [
      [90_000n, false],
      [90_000n, true],
      [90_000n, true],
      [90_000n, false],
      [90_000n, false],
    ],
  )
  assert.deepEqual(all[0]?.lines, [['second', 9, '10000000000']])
  assert.deepEqual(new Set(all.map(({ endpoint }) => endpoint)), new Set(['transcriptions', 'translations']))
})

test('a transcript streams as events, also from vendors that do not stream', async () => {
  const { id, key } = await g.account()
  for (const prompt of ['', '[[no-stream]]', '[[tokens]]']) {
    const stream = await client(key).audio.transcriptions.create({
      file: await upload(9),
      model: TRANSCRIBE,
      stream: true,
      prompt,
    })
    let said = ''
    let whole = ''
    for await (const event of stream) {
      if (event.type === 'transcript.text.delta') said += event.delta
      if (event.type === 'transcript.text.done') whole = event.text
    }
    assert.ok(said !== '' && said === whole, prompt)
    const [row] = await rows(id)
    assert.deepEqual([row?.charged, row?.estimated], [90_000n, false], prompt)
  }
})

test('the openai package hears speech as it comes, and as events', async () => {
  const { id, key } = await g.account()
  const { audio } = client(key)
  const input = 'The gate is open. ⛩️'
  const asked = { model: SPEECH, voice: 'alloy', input }
  const sound = Buffer.from(await (await audio.speech.create(asked)).arrayBuffer())
  assert.equal(readAudioFacts(sound, sound, sound.length)?.type, 'wav')
  const slow = await g.call('/v1/audio/speech', key, { ...asked, input: `${input} [[slow=20]]` })
  const first = await slow.body?.getReader().read()
  const piece: unknown = first?.value
  assert.ok(piece instanceof Uint8Array && piece.length < sound.length, 'the beginning came before the end')
  const events = await (await audio.speech.create({ ...asked, stream_format: 'sse' })).text()
  const pieces = [...events.matchAll(/"audio":\s*"([^"]*)"/g)].map(([, piece]) => Buffer.from(piece ?? '', 'base64'))
  assert.deepEqual(Buffer.concat(pieces), sound)
  assert.match(events, /speech\.audio\.done/)
  const [row] = await rows(id)
  // Twenty characters, as people count them, at 1,500 credits a million.
  assert.deepEqual([row?.charged, row?.held, row?.lines], [30_000n, 30_000n, [['character', 20, '1500000000']]])
})

test('the hold is what the file can hold, the charge what the vendor reports, and never above it', async () => {
  const { id, key } = await g.account({ credits: 1_000_000_000_000n })
  const charge = async (said: object | string, file: Buffer, fields: Record<string, string> = {}, name = 'a.wav') => {
    vendor.answer = {
      type: typeof said === 'string' ? 'text/plain' : 'application/json',
      body: typeof said === 'string' ? said : JSON.stringify({ text: 'hi', ...said }),
    }
    const response = await post(key, form({ model: 'told', ...fields }, file, name))
    assert.equal(response.status, 200, await response.text())
    const [row] = await rows(id)
    return [Number(row?.charged) / 1e6, Number(row?.held) / 1e6, row?.estimated]
  }
  const ten = wav(10)
  assert.deepEqual(await charge({ usage: { type: 'duration', seconds: 7 } }, ten), [7, 11, false])
  assert.deepEqual(await charge({ duration: 6.2 }, ten), [7, 11, false])
  assert.deepEqual(await charge({ duration: '6.2' }, ten), [7, 11, false])
  assert.deepEqual(await charge({ usage: { input_token_details: { audio_tokens: 41 } } }, ten), [5, 11, false])
  assert.deepEqual(await charge({ usage: { seconds: 999 } }, ten), [11, 11, true])
  assert.deepEqual(await charge({ usage: { seconds: -4 } }, ten), [10, 11, true])
  assert.deepEqual(await charge({}, ten), [10, 11, true])
  assert.deepEqual(await charge('WEBVTT\n', ten, { response_format: 'vtt' }), [10, 11, true])
  // A header that says much more a second than any microphone gives makes no recording short.
  const lying = wav(10)
  lying.writeUInt32LE(6_000_000, 28)
  assert.deepEqual(await charge({ duration: 10 }, lying), [10, 11, false])
  // 64 kbit/s by its first frame, 8 kbit/s at worst.
  const mp3 = Buffer.concat([Buffer.from([0xff, 0xfb, 0x50, 0xc4]), Buffer.alloc(79_996)])
  assert.deepEqual(await charge({}, mp3, {}, 'a.mp3'), [10, 80, true])
  const flac = Buffer.alloc(40_000)
  flac.write('fLaC')
  flac.writeUIntBE((16_000 << 4) | 0, 18, 3)
  flac.writeUInt32BE(16_000 * 12, 22)
  assert.deepEqual(await charge({}, flac, {}, 'a.flac'), [12, 20, true])
  vendor.answer = { type: 'application/json', body: '{"text":"hi"}' }
  assert.equal((await post(key, form({ model: 'short' }, wav(60)))).status, 200)
  assert.equal((await rows(id))[0]?.held, 300_000n, 'no more than the model takes')
})

test('a vendor’s minimum is held for and charged, whatever shorter time it reports, or none', async () => {
  const { id, key } = await g.account()
  for (const [said, seconds, due] of [
    [{ usage: { type: 'duration', seconds: 3 } }, 3, 10],
    [{}, 3, 10],
    [{ usage: { type: 'duration', seconds: 12 } }, 12, 12],
  ] as const) {
    vendor.answer = { type: 'application/json', body: JSON.stringify({ text: 'hi', ...said }) }
    const response = await post(key, form({ model: 'least' }, wav(seconds), 'a.wav'))
    assert.equal(response.status, 200, await response.text())
    const [row] = await rows(id)
    assert.deepEqual([row?.charged, row!.held >= row!.charged], [BigInt(due) * 1_000_000n, true])
  }
})

test('a file that says little of itself is not cheap: what is compressed, said elsewhere or heard in it counts', async () => {
  const { id, key } = await g.account({ credits: 1_000_000_000_000n })
  // Silence that is packed has no bound by its bytes.
  g.mayExceedHold(id)
  const charge = async (body: string, file: Buffer, fields: Record<string, string> = {}) => {
    vendor.answer = { type: body.startsWith('{') ? 'application/json' : 'text/plain', body }
    const response = await post(key, form({ model: 'told', ...fields }, file))
    assert.equal(response.status, 200, await response.text())
    const [row] = await rows(id)
    return [Number(row?.charged) / 1e6, Number(row?.held) / 1e6]
  }
  const told = (seconds: number) => JSON.stringify({ text: 'hi', usage: { seconds } })
  /** The largest rates that a header can say. */
  const loud = (change: (header: Buffer) => void, seconds = 10) => {
    const file = wav(seconds)
    file.writeUInt32LE(192_000, 24)
    file.writeUInt32LE(6_000_000, 28)
    file.writeUInt16LE(32, 32)
    change(file)
    return file
  }
  // MP3 in a WAV, of 8 kbit/s: decoders look at its frames, and not at the header.
  const compressed = loud((file) => file.writeUInt16LE(0x55, 20))
  assert.deepEqual(await charge(told(160), compressed), [160, 321])
  // Samples of one byte in frames that are said to have 32.
  const narrow = loud((file) => file.writeUInt16LE(8, 34), 100)
  assert.deepEqual(await charge(told(1), narrow), [1, 9])
  // A format that stands in the text of another chunk.
  const text = Buffer.concat([Buffer.from('LIST\x18\0\0\0', 'latin1'), loud(() => {}).subarray(12, 36)])
  const honest = wav(10)
  const hidden = Buffer.concat([honest.subarray(0, 12), text, honest.subarray(12)])
  assert.deepEqual(await charge(told(10), hidden), [10, 11])
  // Silence takes next to no bytes in FLAC, and this one does not say how long it is.
  const flac = Buffer.alloc(4_000)
  flac.write('fLaC')
  assert.deepEqual(await charge(told(900), flac), [900, 2])
  // The first frame says 320 kbit/s, and the rest is of 8.
  const mp3 = Buffer.concat([Buffer.from([0xff, 0xfb, 0xe0, 0xc4]), Buffer.alloc(79_996)])
  assert.deepEqual(await charge(JSON.stringify({ text: 'word '.repeat(200) }), mp3), [40, 80])
  const srt = '1\n00:00:00,000 --> 00:01:09,400\nword\n'
  assert.deepEqual(await charge(srt, mp3, { response_format: 'srt' }), [69, 80])
  const vtt = 'WEBVTT\n\n00:00.000 --> 00:59.000\nword\n'
  assert.deepEqual(await charge(vtt, mp3, { response_format: 'vtt' }), [59, 80])
  const elsewhere = await post(key, form({ model: 'told', url: 'https://example.com/long.mp3' }, wav(1)))
  assert.equal(elsewhere.status, 400, await elsewhere.text())
})

test('a quote says what a recording of so many seconds, or a text, costs at most', async () => {
  const { key } = await g.account()
  const quote = async (body: object) => {
    const response = await g.call('/v1/quote', key, body)
    return (await response.json()) as { data?: { endpoint: string; costAtMost: string }; error?: { message: string } }
  }
  const { data } = await quote({ model: TRANSCRIBE, seconds: 90 })
  assert.deepEqual([data?.endpoint, data?.costAtMost], ['transcriptions', '0.9'])
  const spoken = await quote({ model: SPEECH, input: 'four', voice: 'alloy' })
  assert.deepEqual([spoken.data?.endpoint, spoken.data?.costAtMost], ['speech', '0.006'])
  assert.match((await quote({ model: TRANSCRIBE })).error?.message ?? '', /"seconds" is required in a quote/)
})

test('a key that is restricted hears no other model, and the same form with the same key is paid once', async () => {
  const { id, key } = await g.account({ models: [TRANSCRIBE] })
  assert.equal((await g.call('/v1/audio/speech', key, { model: SPEECH, input: 'a', voice: 'b' })).status, 403)
  const { audio } = client(key)
  const options = { headers: { 'idempotency-key': 'one' } }
  const texts: string[] = []
  for (let turn = 0; turn < 2; turn++) {
    // Each time with another boundary.
    texts.push((await audio.transcriptions.create({ file: await upload(3), model: TRANSCRIBE }, options)).text)
  }
  assert.equal(texts[0], texts[1])
  assert.equal((await rows(id)).length, 1)
  await assert.rejects(audio.transcriptions.create({ file: await upload(4), model: TRANSCRIBE }, options), /409/)
  const free = await g.key(id)
  const speak = () =>
    g.call('/v1/audio/speech', free.key, { model: SPEECH, input: 'a', voice: 'b' }, { headers: options.headers })
  await assert.rejects(async () => assert.equal((await speak()).status, 200), 'a key is bound to its request')
  const own = { 'idempotency-key': 'two' }
  const [first, again] = [0, 1].map(
    () => () => g.call('/v1/audio/speech', free.key, { model: SPEECH, input: 'a', voice: 'b' }, { headers: own }),
  )
  const sound = Buffer.from(await (await first!()).arrayBuffer())
  await g.settled()
  const replayed = await again!()
  assert.equal(replayed.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual(Buffer.from(await replayed.arrayBuffer()), sound)
})
