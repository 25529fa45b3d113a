// Sound: forms that are wrong, callers who leave and vendors that break. Nothing is left held, and nothing is paid that
// was not had.
import { once } from 'node:events'
import { request } from 'node:http'
import { afterEach, assert, leaveAfter, started, startGateway, test, until } from '../../../test/gateway.ts'
import { form, SPEECH, soundOf, startSoundVendor, TRANSCRIBE, wav } from '../../../test/sound.ts'
import type { CatalogInput } from '../../catalog/document.ts'

const vendor = started(startSoundVendor)
const g = started(() =>
  startGateway({
    env: { TOLLGATE_BYTES_IN_FLIGHT_MAX: '500000000' },
    catalog(document: CatalogInput) {
      document.vendors.other = { baseUrl: vendor.url }
      const routes = [{ vendor: 'other', protocol: 'openai-speech' as const }]
      document.models.spoken = { ...document.models[SPEECH]!, routes }
    },
  }),
)
afterEach(() => g.settled())

const { post, rows } = soundOf(() => g)

test('what is wrong with a form or a text is said by the field, before any vendor hears of it and with nothing held', async () => {
  const { id, key } = await g.account()
  const seen = g.sandbox.seen.requests
  const good = wav(1)
  const type = { 'content-type': 'multipart/form-data; boundary=x' }
  const part = (name: string, value: string, more = '') =>
    `--x\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
  const cases: Array<[body: RequestInit['body'], headers: Record<string, string>, status: number, said: RegExp]> = [
    [JSON.stringify({ model: TRANSCRIBE }), { 'content-type': 'application/json' }, 400, /multipart\/form-data/],
    ['', {}, 400, /multipart\/form-data/],
    ['x', { 'content-type': 'multipart/form-data' }, 400, /boundary/],
    ['x', { 'content-type': `multipart/form-data; boundary=${'y'.repeat(71)}` }, 400, /boundary/],
    [part('model', TRANSCRIBE), type, 400, /ends before its last boundary/],
    ['y'.repeat(5_000), type, 400, /does not begin with its boundary/],
    [`--x\r\ncontent-type: text/plain\r\n\r\na\r\n--x--`, type, 400, /no name/],
    [`--x\r\nx: ${'y'.repeat(10_000)}`, type, 400, /headers of a part/],
    [`${part('a[]', 'b').repeat(101)}--x--`, type, 400, /more than 100 parts/],
    [`${part('model', 'a')}${part('model', 'b')}--x--`, type, 400, /"model" may be given once/],
    [`${part('other', 'a', '; filename="b"')}--x--`, type, 400, /"other" is a file/],
    [form({ model: TRANSCRIBE }), {}, 400, /"file" is required/],
    [form({ model: TRANSCRIBE }, Buffer.alloc(0)), {}, 400, /"file" must not be empty/],
    [form({ model: TRANSCRIBE }, Buffer.from('not a recording at all')), {}, 400, /must be a recording/],
    [form({ model: TRANSCRIBE }, Buffer.from('RIFF0000WAVE')), {}, 400, /must be a recording/],
    [form({ model: TRANSCRIBE, response_format: 'docx' }, good), {}, 400, /response_format/],
    [form({ model: TRANSCRIBE, stream: 'perhaps' }, good), {}, 400, /stream/],
    [form({ model: TRANSCRIBE, stream: 'true', response_format: 'srt' }, good), {}, 400, /stream/],
    [form({}, good), {}, 400, /model/],
    [form({ model: 'nobody' }, good), {}, 404, /model/],
    [form({ model: SPEECH }, good), {}, 400, /is not a model of the type transcription/],
    [form({ model: TRANSCRIBE }, Buffer.concat([good, Buffer.alloc(26 * 1_048_576)])), {}, 413, /25 MB/],
    [form({ model: TRANSCRIBE, prompt: 'x'.repeat(1_100_000) }, good), {}, 413, /1 MB of everything else/],
  ]
  for (const [body, headers, status, said] of cases) {
    const response = await post(key, body, headers)
    const text = await response.text()
    assert.equal(response.status, status, `${said}: ${text}`)
    assert.match((JSON.parse(text) as { message: string }).message, said)
  }
  const speech: Array<[body: object, param: string]> = [
    [{ voice: 'a' }, 'input'],
    [{ input: '', voice: 'a' }, 'input'],
    [{ input: 'x'.repeat(4097), voice: 'a' }, 'input'],
    [{ input: 'x' }, 'voice'],
    [{ input: 'x', voice: 'a', response_format: 'midi' }, 'response_format'],
    [{ input: 'x', voice: 'a', stream_format: 'both' }, 'stream_format'],
    [{ input: 'x', voice: 'a', instructions: 'x'.repeat(4097) }, 'instructions'],
  ]
  for (const [body, param] of speech) {
    const response = await g.call('/v1/audio/speech', key, { model: SPEECH, ...body })
    const { error } = (await response.json()) as { error: { param: string } }
    assert.deepEqual([response.status, error.param], [400, param])
  }
  assert.equal(g.sandbox.seen.requests, seen)
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n, held: 0n })
})

test('a form that comes in small pieces, without a length, is heard like any other', async () => {
  const { key } = await g.account()
  const body = new Response(form({ model: TRANSCRIBE }, wav(1)))
  const sent = request(`${g.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': body.headers.get('content-type') ?? '' },
  })
  const bytes = Buffer.from(await body.arrayBuffer())
  const status = await new Promise((resolve, reject) => {
    sent.on('response', (response) => resolve(response.resume().statusCode))
    sent.on('error', reject)
    for (let at = 0; at < bytes.length; at += 7) sent.write(bytes.subarray(at, at + 7))
    sent.end()
  })
  assert.equal(status, 200)
})

test('however a call ends, it is settled or released once: what was not delivered and not reported costs nothing', async () => {
  const { id, key } = await g.account()
  const before = await g.balance(id)
  const paid = async () => before.posted - (await g.balance(id)).posted
  const ask = (prompt: string, more: Record<string, string> = {}) =>
    post(key, form({ model: TRANSCRIBE, prompt, ...more }, wav(9)))
  // The vendor's faults, before and in the middle of an answer.
  const faults: Array<[prompt: string, status: number]> = [
    ['[[500]]', 502],
    ['[[hang-up]]', 502],
    ['[[garbage]]', 502],
    ['[[cut]]', 502],
    ['[[truncate=9]]', 502],
  ]
  for (const [prompt, status] of faults) assert.equal((await ask(prompt)).status, status, prompt)
  for (const prompt of ['[[cut=1]]', '[[stream-error]]', '[[truncate=200]]'])
    assert.match(await (await ask(prompt, { stream: 'true' })).text(), /"type":"error"/, prompt)
  const speak = (input: string) => g.call('/v1/audio/speech', key, { model: SPEECH, voice: 'alloy', input })
  assert.equal((await speak('Hello [[503]]')).status, 503)
  await assert.rejects(async () => await (await speak('Hello, dear gate [[cut=2]]')).arrayBuffer(), 'no clean end')
  vendor.answer = { type: 'audio/wav', body: '' }
  const empty = await g.call('/v1/audio/speech', key, { model: 'spoken', voice: 'alloy', input: 'a' })
  assert.equal(empty.status, 502, 'nothing is no speech')
  vendor.answer = { type: 'text/html', body: 'Welcome' }
  assert.equal((await g.call('/v1/audio/speech', key, { model: 'spoken', voice: 'alloy', input: 'a' })).status, 502)
  await g.settled()
  assert.equal(await paid(), 0n)
  // Callers who leave: in the middle of the upload, before an answer, and in the middle of it.
  const gone = new AbortController()
  const half = new ReadableStream({
    start(controller) {
      controller.enqueue(
        Buffer.from('--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF'),
      )
    },
  })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'multipart/form-data; boundary=x' }
  const init = { method: 'POST', headers, body: half, duplex: 'half', signal: gone.signal }
  const arrived = once(g.gateway.app.server, 'request')
  const leaving = fetch(`${g.url}/v1/audio/transcriptions`, init as RequestInit)
  void arrived.then(() => gone.abort())
  await assert.rejects(leaving)
  await g.settled()
  assert.equal(await paid(), 0n)
  const leave = async (body: RequestInit['body'], path: string, type?: string) => {
    const before = (await rows(id)).length
    const response = await fetch(`${g.url}/v1/audio/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...(type ? { 'content-type': type } : {}) },
      body: body ?? null,
    })
    // A comment that keeps the connection open may come first.
    await leaveAfter(response, path === 'transcriptions' ? /data:/ : /^/)
    const [left] = await until(
      () => rows(id),
      (all) => all.length > before && all[0]?.status === 499,
    )
    return left
  }
  const heard = await leave(
    form({ model: TRANSCRIBE, stream: 'true', prompt: '[[slow=30]]' }, wav(60)),
    'transcriptions',
  )
  assert.deepEqual([heard?.charged, heard?.estimated], [600_000n, true])
  const body = JSON.stringify({ model: SPEECH, voice: 'alloy', input: `${'Hello '.repeat(30)}[[slow=30]]` })
  const spoken = await leave(body, 'speech', 'application/json')
  assert.ok(spoken)
  assert.equal(spoken.charged, spoken.held)
})

test('forms that are refused leave no memory taken', async () => {
  const { key } = await g.account()
  const type = 'multipart/form-data; boundary=x'
  // Each might have been as large as a form can be, and together they are more than there is.
  const refused = async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('y'.repeat(5_000)))
        controller.close()
      },
    })
    const init = {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': type },
      body,
      duplex: 'half',
    }
    return (await fetch(`${g.url}/v1/audio/transcriptions`, init as RequestInit)).status
  }
  for (let turn = 0; turn < 40; turn++) assert.equal(await refused(), 400)
  assert.equal((await post(key, form({ model: TRANSCRIBE }, wav(1)))).status, 200)
})
