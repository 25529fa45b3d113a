import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runs } from '../../../../test/runs.ts'
import { Chance } from '../../../../test/simulate/virtual-world.ts'
import { randomlyCut, sliced } from '../../../../test/text-replay.ts'
import { Fault } from '../../../kernel/fault.ts'
import { ImageRelay } from './exchange.ts'
import type { CheckedImages } from './request.ts'

const PNG = Buffer.concat([
  Buffer.from('89504e470d0a1a0a0000000d494844520000000100000001', 'hex'),
  Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 31) & 255)),
])
const b64_json = PNG.toString('base64')
const checked: CheckedImages = {
  prompt: 'x',
  size: 'auto',
  quality: 'auto',
  format: 'png',
  stream: true,
  inlineAnswer: false,
  isEdit: false,
  mask: undefined,
  outputTokens: 100,
}
const usage = { input_tokens: 5, output_tokens: 100, total_tokens: 105 }
const partial = `event: image_generation.partial_image\ndata: ${JSON.stringify({ type: 'image_generation.partial_image', b64_json, partial_image_index: 0 })}\n\n`
const completed = `event: image_generation.completed\ndata: ${JSON.stringify({ type: 'image_generation.completed', b64_json, usage })}\n\n`
const expected = `event: image_generation.completed\ndata: {"type":"image_generation.completed","data":[{"index":0,"url":"http://g/0"}],"usage":${JSON.stringify(usage)}}\n\ndata: [DONE]\n\n`

function relayOf(over: Partial<CheckedImages> = {}, store?: () => Promise<never>) {
  const stored: Buffer[] = []
  const relay = new ImageRelay({
    checked: { ...checked, ...over },
    unreported: { image: 1, output: 100 },
    store:
      store ??
      (async (drawn) => {
        stored.push(Buffer.concat([...drawn.pieces]))
        return { url: 'http://g/0', remove: async () => undefined }
      }),
  })
  return { relay, stored }
}

function run(stream: string, size: number) {
  return runPieces(sliced(Buffer.from(stream), size))
}

async function runPieces(pieces: Iterable<Buffer>) {
  const { relay, stored } = relayOf()
  for (const piece of pieces) assert.equal(relay.push(piece), undefined)
  relay.end()
  await relay.ready()
  return { relay, stored }
}

test('exactly one event and [DONE] come out, partial pictures swallowed, however the stream is cut', async () => {
  const forms = [
    completed,
    partial + partial + completed,
    `: ping\n\n${partial}: data: x\n${completed}data: [DONE]\n\n`,
    (partial + completed).replaceAll('\n', '\r\n'),
    completed.replace(/^event.*\n/, ''),
    completed.replaceAll('image_generation', 'image_edit'),
    completed.slice(0, -1),
    completed.slice(0, -2),
    completed.replace('data: {', 'data:\ndata: {'),
    completed.replaceAll('/', '\\/'),
    `id: 7\nretry: 100\n${completed}`,
  ]
  for (const form of forms) {
    for (const size of [1, 2, 3, 7, 100_000]) {
      const { relay, stored } = await run(form, size)
      assert.equal(relay.state.terminal, true)
      assert.equal(relay.state.fault, undefined)
      assert.deepEqual(relay.state.usage, { image: 1, input: 5, outputImage: 100 })
      assert.equal(stored.length, 1)
      assert.ok(stored[0]?.equals(PNG))
      assert.equal(relay.finish(''), expected)
    }
  }
})

test('the picture is the same however the network cuts it', async () => {
  const forms = [partial + completed, `: ping\n\n${partial}: data: x\n${completed}data: [DONE]\n\n`]
  forms.push(...forms.map((form) => form.replaceAll('\n', '\r\n')))
  for (let seed = 1, last = runs(150, 10_000); seed <= last; seed++) {
    const pieces = randomlyCut(Buffer.from(forms[seed % forms.length]!), new Chance(seed))
    const { relay, stored } = await runPieces(pieces)
    if (!stored[0]?.equals(PNG) || relay.finish('') !== expected)
      assert.fail(`seed ${seed}: pieces of ${pieces.map((piece) => piece.length)} bytes`)
  }
})

test('a stream that is cut anywhere before its end is not complete, and stores nothing', async () => {
  const stream = Buffer.from(partial + completed)
  for (let end = 0; end < stream.length - 3; end++) {
    const { relay, stored } = relayOf()
    relay.push(stream.subarray(0, end))
    try {
      relay.end()
    } catch (error) {
      assert.ok(error instanceof Fault && error.kind === 'upstream_garbled')
    }
    assert.equal(relay.state.terminal, false)
    assert.equal(relay.state.usage, undefined)
    assert.equal(stored.length, 0)
  }
})

test('[DONE] without a picture is no success', async () => {
  const { relay } = await run(`${partial}data: [DONE]\n\n`, 50)
  assert.equal(relay.state.terminal, false)
})

test('an error inside the stream becomes the caller’s error event, never [DONE]', async () => {
  for (const error of [
    'event: error\ndata: {"type":"error","error":{"type":"server_error","message":"sk-12345678 broke"}}\n\n',
    'data: {"error":{"code":"content_policy_violation","type":"invalid_request_error","message":"Not allowed."}}\n\n',
    'event: error\ndata: {"type":"error","code":"rate_limit_exceeded","message":"slow down"}\n\n',
  ]) {
    const { relay } = await run(partial + error + completed, 9)
    assert.ok(relay.state.fault)
    assert.equal(relay.state.terminal, false)
    const frames = relay.fail(relay.state.fault, 'req_1')
    assert.match(frames, /^event: error\ndata: \{"error":\{"message":/)
    assert.doesNotMatch(frames, /\[DONE\]|sk-12345678/)
  }
})

test('noise is garbled, and an endless event is cut', () => {
  assert.throws(() => relayOf().relay.push(Buffer.from('data: {"type":\n\n')), { kind: 'upstream_garbled' })
  const { relay } = relayOf()
  const piece = Buffer.alloc(1_048_576, 'A')
  relay.push(Buffer.from(`data: {"b64_json":"${b64_json}`))
  assert.throws(
    () => {
      for (let i = 0; i < 100; i++) relay.push(piece)
    },
    { kind: 'upstream_garbled' },
  )
})

test('a file that could not be written is a failure without usage, so nothing is charged', async () => {
  const { relay } = relayOf({}, () => Promise.reject(new Error('disk full')))
  relay.push(Buffer.from(completed))
  await assert.rejects(relay.ready(), /disk full/)
  assert.equal(relay.state.usage, undefined)
})

test('the charge is told in a comment, and b64_json when it was asked for', async () => {
  const { relay } = relayOf({ inlineAnswer: true })
  relay.push(Buffer.from(completed))
  await relay.ready()
  const frames = relay.finish(': tollgate charge=1\n')
  assert.match(frames, /: tollgate charge=1\n/)
  assert.ok(frames.includes(`"b64_json":"${b64_json}"`))
})
