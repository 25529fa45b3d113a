// A server that we did not write behind each text format that it speaks: llama.cpp's, with a tiny random model. What it
// answered is recorded in fixtures/llama.cpp, byte for byte, and answered again here by a socket; the gateway does not
// know the difference.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { VendorTest } from '../src/routing/views.ts'
import { assert, listen, started, test, testGateway } from './gateway.ts'

const FOLDER = join(import.meta.dirname, 'fixtures', 'llama.cpp')
const MODEL = 'tiny-random'

type Recorded = { readonly status: number; readonly contentType: string; readonly body: string }

const recorded = async (name: string) => JSON.parse(await readFile(join(FOLDER, `${name}.json`), 'utf8')) as Recorded

/** Which recording answers a request. */
const NAMES: Readonly<Record<string, string>> = {
  '/v1/models': 'models',
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
  '/v1/messages': 'messages',
}

const server = started(() =>
  listen(async (req, res) => {
    const sent = await text(req)
    const asked = sent ? (JSON.parse(sent) as { stream?: boolean }) : {}
    const name = NAMES[req.url ?? ''] ?? 'not-found'
    const { status, contentType, body } = await recorded(asked.stream ? `${name}-stream` : name)
    res.writeHead(status, { 'content-type': contentType }).end(body)
  }),
)

const gateway = testGateway({ isShared: true })

/** The formats that it speaks, and the address below which each is. */
const BACKS = [
  ['openai-chat', '/v1'],
  ['openai-responses', '/v1'],
  ['anthropic-messages', ''],
] as const

const QUESTION = [{ role: 'user', content: 'Say something about gates.' }]
const DOORS = [
  ['/v1/chat/completions', { messages: QUESTION, max_tokens: 12 }],
  ['/alpha/responses', { input: QUESTION, max_output_tokens: 12 }],
  ['/beta/v1/messages', { messages: QUESTION, max_tokens: 12 }],
] as const

for (const [format, path] of BACKS)
  test(`${format}: the vendor’s test passes, and every door is answered and charged, whole and streamed`, async () => {
    const place = { preset: 'llama.cpp', vendor: `llama-${format}`, baseUrl: server.url + path, formats: [format] }
    const tested = await gateway.ask<VendorTest>('POST', '/connect/test', place)
    assert.equal(tested.ok, true, tested.message)
    assert.deepEqual(tested.models, [MODEL])
    assert.ok((tested.steps[1]?.inputTokens ?? 0) > 0 && (tested.steps[1]?.outputTokens ?? 0) > 0)
    const uid = `tiny-${format}`
    const price = (rate: string) => ({ unit: 'credits', tiers: [{ input: rate, output: rate }] })
    const models = [{ model: MODEL, uid, cost: price('100'), pricing: price('1000') }]
    await gateway.ask('POST', '/connect', { ...place, models })
    const tokens = (tested.steps[1]?.inputTokens ?? 0) + (tested.steps[1]?.outputTokens ?? 0)
    const { key } = await gateway.account()
    for (const [door, body] of DOORS)
      for (const stream of [false, true]) {
        const answer = await gateway.call(door, key, { model: uid, stream, ...body })
        const said = await answer.text()
        assert.equal(answer.status, 200, `${door} ${said}`)
        // What the random model wrote; a stream brings it in pieces.
        if (!stream) assert.match(said, /xopv thetcwdgwk/, door)
        if (stream) {
          assert.match(said, /\[DONE\]|response\.(completed|incomplete)|message_stop/, door)
          assert.match(said, /: tollgate charge=0\.0\d+/, door)
        } else assert.equal(Number(answer.headers.get('x-tollgate-charge')), (tokens * 1000) / 1_000_000, door)
      }
  })

test('a wrong address of such a server is put right', async () => {
  const place = { preset: 'llama.cpp', baseUrl: `${server.url}/nothing`, formats: ['openai-chat'] }
  const { ok, addressSuggested } = await gateway.ask<VendorTest>('POST', '/connect/test', place)
  assert.deepEqual([ok, addressSuggested], [false, `${server.url}/v1`])
})
