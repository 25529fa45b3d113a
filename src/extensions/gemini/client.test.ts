// Google's format as its clients have it: streams that Google's own SDKs can read, addresses and spellings that they
// use.

import { json } from 'node:stream/consumers'
import Anthropic from '@anthropic-ai/sdk'
import { addScripted, CLIENT_FORMATS } from '../../../test/formats.ts'
import { assert, before, isOff, listen, started, test, testGateway, textOf } from '../../../test/gateway.ts'
import { fixture, recordingsOf } from '../../../test/text-replay.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import { realWorld, type World } from '../../kernel/world.ts'

type Json = Record<string, any>

/** The gateway looks for quiet streams every two seconds: here at once, and whoever wants to know is told. */
const LOOK_EVERY_MS = 2_000
let looks = 0
let looked: () => void = () => {}
const hurried: World = {
  ...realWorld,
  after: (delayMs, run) =>
    realWorld.after(delayMs === LOOK_EVERY_MS ? 1 : delayMs, () => {
      run()
      if (delayMs !== LOOK_EVERY_MS) return
      looks += 1
      looked()
    }),
}
/** Until a stream that says nothing has been found quiet, twice. */
async function untilQuiet(): Promise<void> {
  const enough = looks + 20
  while (looks < enough)
    await new Promise<void>((resolve) => {
      looked = resolve
    })
}

let key: string
/** What the vendor answers next, and whether it makes a pause in the middle; what it was asked last. */
const script = { answer: Buffer.alloc(0), type: 'text/event-stream', pauses: false, asked: {} as Json, path: '' }

const vendor = started(() =>
  listen(async (incoming, response) => {
    script.asked = (await json(incoming)) as Json
    script.path = incoming.url ?? ''
    const { answer, type, pauses } = script
    response.writeHead(200, { 'content-type': type })
    if (!pauses) return response.end(answer)
    const middle = answer.indexOf('\n\n', answer.length / 3) + 2
    response.flushHeaders()
    await untilQuiet()
    response.write(answer.subarray(0, middle))
    await untilQuiet()
    return response.end(answer.subarray(middle))
  }),
)
const g = testGateway(() => ({
  world: hurried,
  catalog(document: CatalogInput) {
    for (const model of Object.values(document.models))
      if (model.type === 'text') model.clientFormats = [...CLIENT_FORMATS]
    addScripted(document, vendor.url)
  },
}))
before(async () => {
  key = (await g.account()).key
})

const HELLO = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }
const at = (model: string, action: string, version = 'v1beta') => `/gemini/${version}/models/${model}:${action}`

for (const back of CLIENT_FORMATS)
  test(`a stream from ${back} has events and nothing else, also while the vendor says nothing`, async () => {
    for (const name of recordingsOf(back, 'sse').filter((file) => !file.startsWith('error'))) {
      Object.assign(script, { answer: fixture(back, name), pauses: name === 'text.sse' })
      const text = await textOf(g.call(at(`from-${back}`, 'streamGenerateContent?alt=sse'), key, HELLO))
      for (const block of text.split('\n\n').slice(0, -1)) assert.match(block, /^data: \{.*\}$/, name)
      assert.ok(text.endsWith('}\n\n'), name)
    }
    script.pauses = false
  })

test('other formats are kept alive by comments, and end with what was charged', async () => {
  Object.assign(script, { answer: fixture('gemini', 'text.sse'), pauses: true })
  const body = { model: 'from-gemini', stream: true, messages: [{ role: 'user', content: 'Hello' }] }
  const text = await (await g.call('/v1/chat/completions', key, body)).text()
  script.pauses = false
  assert.match(text, /^: /m)
  assert.match(text, /^: tollgate charge=/m)
})

const SIGNATURE = 'c2lnbmVkIGJ5IHRoZSB2ZW5kb3I='
const piece = (parts: Json[], more: Json = {}) =>
  `data: ${JSON.stringify({ candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }], modelVersion: 'm', responseId: 'r' })}\n\n`
const STOPPED = { finishReason: 'STOP' }
/** As vendors sign a text: at its last piece, or at an empty one after it; with their thoughts shown or not. */
const SIGNED: Record<string, string> = {
  'at the last piece': piece([{ text: 'One ' }]) + piece([{ text: 'two', thoughtSignature: SIGNATURE }], STOPPED),
  'after it':
    piece([{ text: 'One ' }]) + piece([{ text: 'two' }]) + piece([{ text: '', thoughtSignature: SIGNATURE }], STOPPED),
  'after a thought and it':
    piece([{ text: 'Hm.', thought: true }]) +
    piece([{ text: 'One two' }]) +
    piece([{ text: '', thoughtSignature: SIGNATURE }], STOPPED),
}

for (const [where, answer] of Object.entries(SIGNED))
  for (const streams of [true, false])
    test(`a text that a Gemini vendor signs ${where} is the last block of a message, ${streams ? 'streamed' : 'whole'}, and its signature finds the way back`, async () => {
      const client = new Anthropic({ apiKey: key, baseURL: g.url, maxRetries: 0 })
      const pieces = [...answer.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as Json)
      const said = pieces.flatMap(({ candidates }): Json[] => candidates[0].content.parts)
      const thoughts = said.filter(({ thought }) => thought === true)
      // A whole answer has its text in one part.
      const text = { text: 'One two', thoughtSignature: SIGNATURE }
      const whole = {
        ...pieces.at(-1),
        candidates: [{ content: { parts: [...thoughts, text], role: 'model' }, ...STOPPED }],
      }
      const ask = { model: 'from-gemini', max_tokens: 1_000, messages: [{ role: 'user' as const, content: 'Hello' }] }
      Object.assign(
        script,
        streams
          ? { answer: Buffer.from(answer), type: 'text/event-stream' }
          : { answer: Buffer.from(JSON.stringify(whole)), type: 'application/json' },
      )
      const stopped: number[] = []
      const message = streams
        ? await client.messages
            .stream(ask)
            .on('streamEvent', (event) => event.type === 'content_block_stop' && stopped.push(event.index))
            .finalMessage()
        : await client.messages.create(ask)
      const last = message.content.at(-1)
      assert.equal(last?.type === 'text' && last.text, 'One two')
      // Claude Code takes blocks as they end.
      if (streams) assert.equal(stopped.at(-1), message.content.length - 1)
      const again = [
        ...ask.messages,
        { role: 'assistant' as const, content: message.content },
        { role: 'user' as const, content: 'And?' },
      ]
      await client.messages
        .stream({ ...ask, messages: again })
        .finalMessage()
        .catch(() => undefined)
      const { contents } = script.asked as { contents: Json[] }
      assert.deepEqual(contents[1], { role: 'model', parts: [{ text: 'One two', thoughtSignature: SIGNATURE }] })
      script.type = 'text/event-stream'
    })

test('what Gemini CLI sends by itself is no reason for a beta model to refuse', async () => {
  const generationConfig = { temperature: 1, topP: 0.95, topK: 64, thinkingConfig: { includeThoughts: true } }
  for (const model of ['beta-opus-4-7', 'beta-fable-5', 'beta-haiku-4-5']) {
    const answer = await g.call(at(model, 'generateContent'), key, { ...HELLO, generationConfig })
    assert.equal(answer.status, 200, `${model}: ${await answer.text()}`)
  }
})

test('every endpoint of the format is found below v1 and v1beta', async () => {
  Object.assign(script, { answer: fixture('gemini', 'text.json'), type: 'application/json' })
  for (const version of ['v1', 'v1beta']) {
    for (const action of ['generateContent', 'countTokens']) {
      const answer = await g.call(at('from-gemini', action, version), key, HELLO)
      assert.equal(answer.status, 200, `${version} ${action}: ${await answer.text()}`)
    }
    const { models } = (await (await g.call(`/gemini/${version}/models`, key)).json()) as { models: Json[] }
    assert.ok(models.some(({ name }) => name === 'models/from-gemini'))
    assert.equal((await g.call(`/gemini/${version}/models/from-gemini`, key)).status, 200)
  }
  Object.assign(script, { answer: fixture('gemini', 'text.sse'), type: 'text/event-stream' })
  const streamed = await g.call(at('from-gemini', 'streamGenerateContent?alt=sse', 'v1'), key, HELLO)
  assert.match(await streamed.text(), /^data: \{/)
})

test('the tokens of a model that does not exist are not counted', async () => {
  const answer = await g.call(at('nobody', 'countTokens'), key, HELLO)
  const { error } = (await answer.json()) as { error: Json }
  assert.deepEqual([answer.status, error.code, error.status], [404, 404, 'NOT_FOUND'])
})

test('an answer of a type that the vendor cannot give is refused by the field, and is left to a vendor of the format', async () => {
  const generationConfig = { responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['a', 'b'] } }
  for (const back of CLIENT_FORMATS.filter((name) => name !== 'gemini')) {
    const answer = await g.call(at(`from-${back}`, 'generateContent'), key, { ...HELLO, generationConfig })
    const { error } = (await answer.json()) as { error: Json }
    assert.equal(answer.status, 400)
    assert.match(error.message, /responseMimeType.*text\/x\.enum/)
  }
  Object.assign(script, { answer: fixture('gemini', 'text.json'), type: 'application/json' })
  assert.equal((await g.call(at('from-gemini', 'generateContent'), key, { ...HELLO, generationConfig })).status, 200)
  assert.equal(script.asked.generationConfig.responseMimeType, 'text/x.enum')
})

test('members in snake_case, as LiteLLM sends them, mean the same to every vendor', async () => {
  const picture = { mime_type: 'image/png', data: 'iVBORw0KGgo=' }
  const body = {
    system_instruction: { parts: [{ text: 'Be brief.' }] },
    contents: [{ role: 'user', parts: [{ text: 'What is this?' }, { inline_data: picture }] }],
    generation_config: { max_output_tokens: 77, stop_sequences: ['END'], temperature: 0.5 },
    tools: [
      {
        function_declarations: [
          { name: 'look_up', parameters: { type: 'OBJECT', properties: { a: { type: 'STRING' } } } },
        ],
      },
    ],
    tool_config: { function_calling_config: { mode: 'ANY', allowed_function_names: ['look_up'] } },
    safety_settings: [],
  }
  const camel = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(camel)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value).map(([name, one]) => [
              name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
              camel(one),
            ]),
          )
        : value
  for (const back of CLIENT_FORMATS) {
    Object.assign(script, { answer: fixture(back, 'text.json'), type: 'application/json' })
    const asked: Json[] = []
    for (const form of [body, camel(body)]) {
      const answer = await g.call(at(`from-${back}`, 'generateContent'), key, form)
      assert.equal(answer.status, 200, `${back}: ${await answer.text()}`)
      asked.push(script.asked)
    }
    assert.deepEqual(camel(asked[0]), camel(asked[1]), back)
    assert.ok(JSON.stringify(asked[0]).includes('look_up') && JSON.stringify(asked[0]).includes('77'), back)
  }
})

test('an id that is too long for any address is not found, in the words of the endpoint', async () => {
  const long = 'x'.repeat(400)
  const faultAt = async (path: string) => {
    const answer = await g.call(path, key)
    return [answer.status, (await answer.json()) as Json] as const
  }
  if (!isOff('background')) {
    const [status, responses] = await faultAt(`/v1/responses/${long}`)
    assert.deepEqual([status, typeof responses.error?.message, responses.success], [404, 'string', undefined])
  }
  const [, google] = await faultAt(`/gemini/v1/models/${long}`)
  assert.equal(google.error.status, 'NOT_FOUND')
  const [, native] = await faultAt(`/v1/jobs/${long}`)
  assert.equal(native.success, false)
})
