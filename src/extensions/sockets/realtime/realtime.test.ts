// Realtime sessions: the official openai package unchanged, and each response as a call of its own, whatever ends it.
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { launchChromium } from '../../../../test/browser/chromium.ts'
import { makeAuthority, makeCertificate } from '../../../../test/certificate.ts'
import { testGateway } from '../../../../test/gateway.ts'
import { after, afterEach, assert, atOnce, before, pluck, started, test, until } from '../../../../test/kit.ts'
import { openSocket as connectSocket, type TestSocket } from '../../../../test/socket-client.ts'

const TRANSCRIBED = 'alpha-realtime-heard'
const g = testGateway({
  catalog({ models }) {
    const model = structuredClone(models[MODEL])
    model.pricing.tiers[0].second = '0.01'
    model.routes[0].model = MODEL
    models[TRANSCRIBED] = model
  },
})
const MODEL = 'alpha-realtime-1'
const at = `/v1/realtime?model=${MODEL}`
const sockets: TestSocket[] = []
// Of a test that failed too: others wait until the vendor has no session.
afterEach(() => {
  for (const { ws } of sockets.splice(0)) ws.terminate()
})
const openSocket: typeof connectSocket = async (...given) => {
  const socket = await connectSocket(...given)
  sockets.push(socket)
  return socket
}
const open = (key: string) => openSocket(g.url + at, { key })
const say = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
})
const TEXT = { type: 'response.create', response: { output_modalities: ['text'] } }

/** The price of alpha-realtime-1, in micro-credits. */
function priceOf(usage: any): bigint {
  const { input_token_details: read, output_token_details: made } = usage
  const cached = read.cached_tokens
  const text = read.text_tokens - read.cached_tokens_details.text_tokens
  return BigInt(
    text * 400 + cached * 40 + read.audio_tokens * 3200 + made.text_tokens * 1600 + made.audio_tokens * 6400,
  )
}

test('a session answers in text and sound, and each response is charged by what the vendor reports', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  const { session } = await socket.next('session.created')
  assert.equal(session.model, MODEL)
  assert.equal(session.audio.input.turn_detection.create_response, true, 'as the caller knows it')
  socket.send({ type: 'session.update', session: { type: 'realtime', instructions: 'Be brief.' } })
  assert.equal((await socket.next('session.updated')).session.instructions, 'Be brief.')
  const prices: bigint[] = []
  for (const ask of [TEXT, { type: 'response.create' }]) {
    socket.send(say('What is a toll gate?'))
    socket.send(ask)
    const { response } = await socket.next('response.done')
    assert.equal(response.status, 'completed')
    assert.ok(response.max_output_tokens <= 4096, 'the vendor was told a cap')
    prices.push(priceOf(response.usage))
  }
  assert.ok(socket.events.some(({ type }) => type === 'response.output_audio.delta'))
  assert.ok(!socket.events.some(({ type }) => type === 'rate_limits.updated'))
  socket.ws.close()
  const rows = await g.calls(id)
  assert.deepEqual(
    pluck(rows, 'endpoint', 'outcome', 'charged'),
    prices.map((price) => ['realtime', 'settled', price]),
  )
  assert.deepEqual(await g.problems(), [])
})

test('when the caller stops speaking, the gateway makes the response, after its hold', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  await socket.next('session.created')
  for (const byte of [9, 9, 0]) socket.send(sound(0.5, byte))
  await socket.next('input_audio_buffer.committed')
  const { response } = await socket.next('response.done')
  assert.equal(response.status, 'completed')
  assert.ok(response.usage.input_token_details.audio_tokens > 0)
  // Who wants none gets none.
  socket.send({
    type: 'session.update',
    session: { type: 'realtime', audio: { input: { turn_detection: { type: 'server_vad', create_response: false } } } },
  })
  assert.equal((await socket.next('session.updated')).session.audio.input.turn_detection.create_response, false)
  for (const byte of [9, 0]) socket.send(sound(0.5, byte))
  await socket.next('input_audio_buffer.committed')
  socket.send(TEXT)
  await socket.next('response.done')
  socket.ws.close()
  const vendor = g.sandbox.seen.calls.find(({ room }) => room === 'openai-realtime')
  assert.ok(vendor)
  assert.equal((await g.calls(id)).length, 2)
})

test('what is wrong is an error event or a close code with its reason, and nothing is charged', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  await socket.next('session.created')
  const wrong: [event: string | object, words: RegExp][] = [
    ['{', /JSON/],
    [{ type: 'no.such' }, /Realtime protocol/],
    [{ type: 'session.update', session: { model: 'alpha-5.4' } }, /cannot be changed/],
    [{ type: 'session.update', session: { prompt: { id: 'pmpt_1' } } }, /prompt/],
    [{ type: 'response.create', response: { tools: [{ type: 'mcp', server_label: 'x' }] } }, /functions only/],
    [{ type: 'response.create', response: { prompt: { id: 'x' } } }, /prompt/],
    [{ type: 'input_audio_buffer.commit' }, /empty/],
  ]
  for (const [event, words] of wrong) {
    socket.send(typeof event === 'string' ? event : { ...event, event_id: 'mine' })
    const { error } = await socket.next('error')
    assert.match(error.message, words)
    if (typeof event !== 'string') assert.equal(error.event_id, 'mine')
  }
  socket.send(say('[[slow=20000]] one'))
  socket.send(TEXT)
  socket.send(TEXT)
  assert.equal((await socket.next('error')).error.code, 'conversation_already_has_active_response')
  socket.send({ type: 'response.cancel' })
  assert.equal((await socket.next('response.done')).response.status, 'cancelled')
  socket.ws.send(Buffer.from([1, 2, 3]))
  assert.equal((await socket.closed()).code, 1003)
  const large = await open(key)
  large.send('x'.repeat(17_000_000))
  assert.equal((await large.closed()).code, 1009)
  for (const [query, words] of [
    ['model=alpha-5.4', /not a model of the type realtime/],
    ['model=no-such', /no-such/],
    [`model=${MODEL}&intent=transcription`, /not offered/],
    [`model=${MODEL}&api_key=${key}`, /address contains a credential/],
  ] as const) {
    const other = await openSocket(`${g.url}/v1/realtime?${query}`, { key })
    assert.match((await other.next('error')).error.message, words)
    const { code, reason } = await other.closed()
    assert.equal(code, 1008)
    assert.match(reason, words)
  }
  assert.equal((await g.calls(id)).length, 1, 'only the response that was cancelled')
})

test('settings that are not offered are left out and named, and the others of the same update apply', async () => {
  const { id, key } = await g.account()
  const tool = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }
  const session = {
    type: 'realtime',
    model: MODEL,
    instructions: 'Be an agent.',
    tracing: 'auto',
    'bad\r\nname': 1,
    prompt: null,
    tools: [tool, { type: 'mcp', server_label: 'x' }],
    audio: {
      input: {
        transcription: { model: 'gpt-4o-mini-transcribe' },
        turn_detection: { type: 'server_vad', idle_timeout_ms: 9 },
      },
    },
  }
  const left = ['tracing', 'audio.input.transcription', 'turn_detection.idle_timeout_ms', 'tools.mcp']
  const socket = await open(key)
  await socket.next('session.created')
  socket.send({ type: 'session.update', session })
  const updated = await socket.next('session.updated')
  assert.deepEqual(updated.left_out, left)
  assert.equal(updated.session.instructions, 'Be an agent.')
  assert.deepEqual(updated.session.tools, [tool])
  assert.equal(updated.session.audio.input.turn_detection.create_response, true)
  assert.equal(updated.session.tracing ?? updated.session.audio.input.transcription, null)
  assert.equal(updated.session.audio.input.turn_detection.idle_timeout_ms, null)
  socket.ws.close()
  const made = await g.call('/v1/realtime/client_secrets', key, { session })
  assert.equal(made.status, 200)
  assert.equal(made.headers.get('x-tollgate-left-out'), left.join(', '))
  const other = await openSocket(g.url + at, { key: ((await made.json()) as any).value })
  assert.deepEqual((await other.next('session.created')).left_out, left)
  assert.equal((await g.calls(id)).length, 0)
})

const sound = (seconds: number, byte = 9) => ({
  type: 'input_audio_buffer.append',
  audio: Buffer.alloc(seconds * 48_000, byte).toString('base64'),
})
const transcribed = (model: string | null) => ({
  type: 'session.update',
  session: { type: 'realtime', audio: { input: { transcription: model === null ? null : { model } } } },
})
const COMPLETED = 'conversation.item.input_audio_transcription.completed'

test('with a price by the second the input is transcribed, held before it is sent and charged as reported', async () => {
  const { id, key } = await g.account()
  const heldOf = async () => (await g.balance(id)).held
  const socket = await openSocket(`${g.url}/v1/realtime?model=${TRANSCRIBED}`, { key })
  await socket.next('session.created')
  socket.send({
    type: 'session.update',
    session: { type: 'realtime', audio: { input: { turn_detection: { type: 'server_vad', create_response: false } } } },
  })
  await socket.next('session.updated')
  socket.send(transcribed('gpt-4o-mini-transcribe'))
  const { session, left_out } = await socket.next('session.updated')
  assert.deepEqual([session.audio.input.transcription.model, left_out], ['gpt-4o-mini-transcribe', undefined])
  assert.equal(await heldOf(), 0n, 'nothing was said')
  socket.send(sound(2))
  await socket.next('input_audio_buffer.speech_started')
  assert.equal(await heldOf(), 640_000n, 'twice the sound, and a minute')
  socket.send(sound(0.5, 0))
  assert.equal((await socket.next(COMPLETED)).usage.input_token_details.audio_tokens, 25)
  socket.send(transcribed('whisper-1'))
  await socket.next('session.updated')
  // More than the first call covers.
  for (let second = 0; second < 100; second += 20) socket.send(sound(20))
  socket.send(sound(1, 0))
  assert.equal((await socket.next(COMPLETED)).usage.seconds, 101)
  socket.send(transcribed(null))
  await socket.next('session.updated')
  socket.send(sound(1))
  socket.send(sound(1, 0))
  await socket.next('input_audio_buffer.committed')
  socket.ws.close()
  const rows = await g.calls(id)
  const charged = rows.reduce((sum, row) => sum + row.charged, 0n)
  assert.equal(charged, 1_040_000n, '2.5 seconds, rounded up, and 101')
  assert.deepEqual(
    pluck(rows, 'endpoint', 'outcome', 'loss'),
    rows.map(() => ['realtime', 'settled', 0n]),
  )
  assert.ok(rows.length <= 3, String(rows.length))
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n - charged, held: 0n })
})

test('where the credits for a transcript end, transcription ends with the reason and the session goes on', async () => {
  const { id, key } = await g.account({ credits: 500_000n })
  const socket = await openSocket(`${g.url}/v1/realtime?model=${TRANSCRIBED}`, { key })
  await socket.next('session.created')
  socket.send(transcribed('whisper-1'))
  await socket.next('session.updated')
  socket.send(sound(2))
  assert.equal((await socket.next('error')).status, 402)
  assert.equal((await socket.next('session.updated')).session.audio.input.transcription, null)
  socket.send({ type: 'input_audio_buffer.commit' })
  await socket.next('conversation.item.done')
  socket.send(say('Hello!'))
  socket.send({ type: 'response.create', response: { output_modalities: ['text'], max_output_tokens: 64 } })
  assert.equal((await socket.next('response.done', 'error')).type, 'response.done')
  assert.ok(!socket.events.some(({ type }) => type === COMPLETED))
  socket.ws.close()
  assert.equal((await g.calls(id)).length, 1)
  assert.equal((await g.balance(id)).held, 0n)
})

test('a response can be cancelled before its hold is made: the vendor hears of both, one after the other', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  await socket.next('session.created')
  socket.send(say('[[slow=20000]] one'))
  await g.gateway.database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [id])
    socket.send(TEXT)
    socket.send({ type: 'response.cancel' })
    await until(() => g.gateway.monitor.running, 1)
  })
  const { response, error } = await socket.next('response.done', 'error')
  assert.equal(response?.status, 'cancelled', JSON.stringify(error))
  socket.ws.close()
})

test('a reason with characters beyond ASCII is cut between them, and the process lives', async () => {
  const { key } = await g.account()
  for (const letter of ['é', '“”', '😀']) {
    const socket = await openSocket(`${g.url}/v1/realtime?model=${encodeURIComponent(letter.repeat(100))}`, { key })
    await socket.next('error')
    const { code, reason } = await socket.closed()
    assert.equal(code, 1008)
    assert.ok(Buffer.byteLength(reason) <= 123 && reason.includes(letter) && !reason.includes('\ufffd'), reason)
  }
})

test('who stops speaking while a response runs gets the next one after it', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  await socket.next('session.created')
  const turn_detection = { type: 'server_vad', interrupt_response: false }
  socket.send({ type: 'session.update', session: { type: 'realtime', audio: { input: { turn_detection } } } })
  await socket.next('session.updated')
  socket.send(say('[[slow=50]] one'))
  socket.send(TEXT)
  await socket.next('response.created')
  for (const byte of [9, 0])
    socket.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(24_000, byte).toString('base64') })
  await socket.next('input_audio_buffer.committed')
  for (let turn = 0; turn < 2; turn++)
    assert.equal((await socket.next('response.done', 'error')).response?.status, 'completed')
  socket.ws.close()
  assert.equal((await g.calls(id)).length, 2)
})

test('sound that comes faster than it is spoken is held for before it is read', async () => {
  const { id, key } = await g.account({ credits: 1_000_000n })
  const socket = await open(key)
  await socket.next('session.created')
  // Two minutes, which cost 3.8 credits to read.
  for (let second = 0; second < 120; second += 20)
    socket.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(20 * 48_000, 9).toString('base64') })
  socket.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(4_800).toString('base64') })
  await socket.next('input_audio_buffer.committed')
  assert.equal((await socket.next('error', 'response.done')).status, 402)
  socket.ws.close()
  await g.calls(id)
  assert.deepEqual(await g.balance(id), { posted: 1_000_000n, held: 0n })
})

test('strangers take few sockets, and the next of them is answered as HTTP', async () => {
  const { port, hostname } = new URL(g.url)
  const answers = await atOnce(20, async () => {
    // It does not answer the end of its socket.
    const link = connect(Number(port), hostname)
    links.add(link)
    link.write(`GET ${at}&key=x HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n`)
    link.write('sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n')
    return new Promise<string>((resolve) => link.once('data', (piece) => resolve(String(piece).slice(9, 12))))
  })
  assert.deepEqual(answers.sort(), [...Array(16).fill('101'), ...Array(4).fill('401')])
})

test('a response ends where the credits do, the session says why, and the next one is refused', async () => {
  const { id, key } = await g.account({ credits: 2_000_000n })
  const socket = await open(key)
  await socket.next('session.created')
  socket.send(say('[[long=100000]] Go on.'))
  const ends: string[] = []
  for (let turn = 0; turn < 40 && !ends.includes('402'); turn++) {
    socket.send({ type: 'response.create' })
    const end = await socket.next('response.done', 'error')
    if (end.type === 'error') ends.push(String(end.status))
    else if (end.response.status === 'incomplete') {
      assert.equal(end.response.status_details.reason, 'max_output_tokens')
      ends.push(String((await socket.next('error')).error.message))
    }
  }
  assert.match(ends[0] ?? '', /ended where the credits/)
  assert.equal(ends.at(-1), '402')
  socket.ws.close()
  const rows = await g.calls(id)
  const charged = rows.reduce((sum, row) => sum + row.charged, 0n)
  assert.equal((await g.balance(id)).posted + charged, 2_000_000n)
  assert.ok(charged > 1_000_000n)
})

test('a vendor that ignores the cap is stopped, and sessions at once spend no more than there is', async () => {
  const { id, key } = await g.account({ credits: 3_000_000n })
  // Its loss is what this test is about.
  g.mayExceedHold(id)
  const sockets = await atOnce(6, () => open(key))
  await Promise.all(
    sockets.map(async (socket) => {
      await socket.next('session.created')
      socket.send(say('[[ignore-cap]] [[long=100000]] Go on.'))
      socket.send({ type: 'response.create' })
      const end = await socket.next('response.done', 'error')
      if (end.type === 'response.done') assert.equal(end.response.status, 'cancelled')
      else assert.equal(end.status, 402)
      socket.ws.close()
    }),
  )
  const rows = await g.calls(id)
  const sum = (name: 'charged' | 'loss') => rows.reduce((all, row) => all + row[name], 0n)
  assert.equal((await g.balance(id)).posted, 3_000_000n - sum('charged'))
  assert.ok(sum('charged') <= 3_000_000n)
  // What the vendor made until it was stopped. All that was asked for would cost 640 credits.
  assert.ok(sum('loss') > 0n && sum('loss') < 3_000_000n, String(sum('loss')))
})

test('a caller that leaves stops its vendor, and pays what that reports', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  await socket.next('session.created')
  socket.send(say('[[slow=20000]] Go on.'))
  socket.send({ type: 'response.create' })
  await socket.next('response.output_audio.delta')
  socket.ws.terminate()
  const [row] = await g.calls(id)
  assert.equal(row?.status, 499)
  assert.ok(row.charged > 0n)
  await until(() => g.sandbox.seen.openCalls, 0)
})

test('a vendor that dies ends the session with the reason, and what it did not report is not charged', async () => {
  const { id, key } = await g.account()
  const socket = await open(key)
  await socket.next('session.created')
  socket.send(say('[[cut]] Go on.'))
  socket.send({ type: 'response.create' })
  assert.ok((await socket.next('error')).status >= 500)
  assert.equal((await socket.closed()).code, 1011)
  assert.deepEqual(pluck(await g.calls(id), 'charged'), [0n])
  assert.equal((await g.balance(id)).held, 0n)
})

// The SDKs speak to wss: addresses only.

let certificate = ''
const links = new Set<Socket>()
const authority = makeAuthority('Tests')
const server = makeCertificate(authority, { address: '127.0.0.1', fromDays: -1, toDays: 1 })
const tls = started(() =>
  createServer(server, (secure) => {
    const { port, hostname } = new URL(g.url)
    const plain = connect(Number(port), hostname)
    links.add(plain)
    secure.pipe(plain).pipe(secure)
    for (const one of [secure, plain]) one.on('error', () => undefined)
  }),
)
before(async () => {
  certificate = authority.certificate
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve))
})
after(async () => {
  for (const link of links) link.destroy()
})

test('the realtime client of the openai package speaks to the gateway unchanged', async () => {
  const { id, key } = await g.account()
  const { port } = tls.address() as { port: number }
  const client = new OpenAI({ apiKey: key, baseURL: `https://127.0.0.1:${port}/v1`, maxRetries: 0 })
  const rt = new OpenAIRealtimeWS({ model: MODEL, options: { ca: certificate } as any }, client)
  const errors: unknown[] = []
  rt.on('error', (error) => errors.push(error))
  let text = ''
  rt.on('response.output_text.delta', ({ delta }) => {
    text += delta
  })
  await new Promise((resolve) => rt.on('session.created', resolve))
  rt.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
  rt.send({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello!' }] },
  })
  rt.send({ type: 'response.create' })
  const done: any = await new Promise((resolve) => rt.on('response.done', resolve))
  rt.close()
  assert.equal(done.response.status, 'completed')
  assert.match(text, /simulated answer/)
  assert.deepEqual(errors, [])
  assert.equal((await g.calls(id)).length, 1)
})

/** In a page: one response with the SDK's files as they are, and what it said. */
const inPage = async ({ model, secret, baseURL }: Record<'model' | 'secret' | 'baseURL', string>) => {
  const { OpenAI: Client } = await import('/openai/client.mjs' as string)
  const { OpenAIRealtimeWebSocket } = await import('/openai/realtime/websocket.mjs' as string)
  const client = new Client({ apiKey: secret, baseURL, dangerouslyAllowBrowser: true })
  const session = new OpenAIRealtimeWebSocket({ model }, client)
  let text = ''
  return new Promise<{ text: string; status: string; instructions: string }>((resolve, reject) => {
    let instructions = ''
    session.on('error', reject)
    session.on('session.created', (event: any) => {
      instructions = event.session.instructions
      const content = [{ type: 'input_text', text: 'Hello!' }]
      session.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
      session.send({ type: 'response.create', response: { output_modalities: ['text'] } })
    })
    session.on('response.output_text.delta', ({ delta }: { delta: string }) => {
      text += delta
    })
    session.on('response.done', ({ response }: any) => {
      session.close()
      resolve({ text, status: response.status, instructions })
    })
  })
}

test('the browser client of the openai package speaks to the gateway in a browser, with a client secret', async () => {
  const { id, key } = await g.account()
  const { port } = tls.address() as { port: number }
  const origin = `https://127.0.0.1:${port}`
  const { value: secret } = await new OpenAI({ apiKey: key, baseURL: `${g.url}/v1` }).realtime.clientSecrets.create({
    session: { type: 'realtime', model: MODEL, instructions: 'Be brief.' },
    origins: [origin],
  } as any)
  const browser = await launchChromium()
  try {
    const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
    await page.route(`${origin}/page`, (route) => route.fulfill({ contentType: 'text/html', body: '<p>A page.' }))
    await page.route(`${origin}/openai/**`, async (route) => {
      const file = new URL(route.request().url()).pathname.slice('/openai/'.length)
      const body = await readFile(new URL(`../../../../node_modules/openai/${file}`, import.meta.url))
      await route.fulfill({ contentType: 'text/javascript', body })
    })
    await page.goto(`${origin}/page`)
    const said = await page.evaluate(inPage, { model: MODEL, secret, baseURL: `${origin}/v1` })
    assert.deepEqual([said.status, said.instructions], ['completed', 'Be brief.'])
    assert.match(said.text, /simulated answer/)
  } finally {
    await browser.close()
  }
  const rows = await g.calls(id)
  assert.deepEqual(pluck(rows, 'endpoint', 'outcome'), [['realtime', 'settled']])
  assert.ok(rows[0]!.charged > 0n)
})

test('a client secret opens sessions of its model from its sites for a minute, and nothing else', async () => {
  const { id, key } = await g.account()
  const client = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
  const made = await client.realtime.clientSecrets.create(
    {
      expires_after: { anchor: 'created_at', seconds: 600 },
      session: { type: 'realtime', model: MODEL, instructions: 'Be brief.' },
      origins: ['https://app.example'],
    } as any,
    { headers: { 'x-tollgate-tags': 'team=a' } },
  )
  assert.match(made.value, /^ek_/)
  assert.ok(!('expires_at' in made.session))
  assert.ok(made.expires_at <= Date.now() / 1000 + 61)
  const protocols = ['realtime', `openai-insecure-api-key.${made.value}`]
  const headers = { origin: 'https://app.example', 'x-tollgate-tags': 'team=b' }
  const second = await openSocket(g.url + at, { protocols, headers })
  const socket = await openSocket(g.url + at, { protocols, headers })
  assert.equal(socket.ws.protocol, 'realtime')
  assert.equal((await socket.next('session.created')).session.instructions, 'Be brief.')
  for (const one of [socket, second]) {
    one.send(say('Hello!'))
    one.send(TEXT)
    assert.equal((await one.next('response.done')).response.status, 'completed')
    one.ws.close()
  }
  assert.deepEqual(
    pluck(await g.calls(id), 'labels'),
    [{ team: 'a' }, { team: 'a' }],
    'those of the request that made the secret',
  )
  await assert.rejects(
    openSocket(g.url + at, { protocols, headers: { origin: 'https://evil.example' } }),
    /^Error: 403 /,
  )
  await assert.rejects(openSocket(g.url + at, { protocols }), /^Error: 403 /)
  await assert.rejects(
    openSocket(g.url + at, { protocols: ['realtime', `openai-insecure-api-key.${key}`] }),
    /^Error: 401 /,
  )
  await assert.rejects(
    openSocket(g.url + at, { protocols: ['realtime', 'openai-insecure-api-key.ek_AAAA'] }),
    /^Error: 401 /,
  )
  const other = await openSocket(`${g.url}/v1/realtime?model=alpha-5.4`, { protocols, headers })
  assert.match((await other.next('error')).error.message, /another model/)
  assert.equal((await g.call('/v1/models', made.value)).status, 401, 'it is no key')
  const open = await client.realtime.clientSecrets.create({ session: { type: 'realtime', model: MODEL } })
  const offered = ['realtime', `openai-insecure-api-key.${open.value}`]
  await assert.rejects(openSocket(g.url + at, { protocols: offered, headers }), /^Error: 403 /, 'no page is named')
  const program = await openSocket(g.url + at, { protocols: offered })
  program.ws.close()
  await assert.rejects(openSocket(`${g.url}/v1/responses`, { protocols, headers }), /^Error: 401 /)
  await assert.rejects(openSocket(`${g.url}/v1/responses`, { key: made.value, headers }), /^Error: 401 /)
  for (const body of [{}, { session: { model: 'alpha-5.4' } }, { session: { model: MODEL, prompt: { id: 'x' } } }])
    assert.ok((await g.call('/v1/realtime/client_secrets', key, body)).status >= 400)
})
