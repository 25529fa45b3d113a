// The official @anthropic-ai/sdk, newest and 0.60, unchanged, at the Messages door.
import Newest from '@anthropic-ai/sdk'
import Older from 'anthropic-sdk-060'
import { assert, describe, test, testGateway, textOf } from '../gateway.ts'
import { everyKind, FAMILIES, OUTCOME, WEATHER, WEATHER_QUESTION } from './families.ts'

let key: string
const g = testGateway({ catalog: everyKind, isShared: true }, async () => {
  key = (await g.account()).key
})

const VERSIONS = [
  ['newest', (options = {}) => new Newest({ apiKey: key, baseURL: g.url, ...options })],
  ['0.60', (options = {}) => new Older({ apiKey: key, baseURL: `${g.url}/beta`, ...options }) as unknown as Newest],
] as const
const tool = {
  name: WEATHER.name,
  description: WEATHER.description,
  input_schema: WEATHER.parameters as unknown as Newest.Tool.InputSchema,
}

for (const [version, make] of VERSIONS)
  describe(`@anthropic-ai/sdk ${version}`, () => {
    for (const model of FAMILIES) {
      test(`${model}: an answer`, async () => {
        const answer = await make().messages.create({
          model,
          max_tokens: 2000,
          system: 'Be brief.',
          messages: [{ role: 'user', content: 'Say hello.' }],
        })
        assert.equal(answer.type, 'message')
        assert.equal(answer.model, model)
        assert.equal(answer.stop_reason, 'end_turn')
        assert.ok(answer.content.some((block) => block.type === 'text' && block.text.length > 0))
        assert.ok(answer.usage.input_tokens > 0 && answer.usage.output_tokens > 0)
        assert.match(answer._request_id ?? '', /^req_/)
      })

      test(`${model}: a stream that the SDK’s own reader accepts`, async () => {
        const stream = make().messages.stream({
          model,
          max_tokens: 2000,
          messages: [{ role: 'user', content: 'Count to five.' }],
        })
        let text = ''
        stream.on('text', (delta) => {
          text += delta
        })
        const final = await stream.finalMessage()
        assert.equal(final.stop_reason, 'end_turn')
        const said = final.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
        assert.equal(said, text)
        assert.ok(text.length > 0 && final.usage.output_tokens > 0)
      })

      test(`${model}: tools, there and back again, whole and streamed`, async () => {
        const { messages } = make()
        const question = { role: 'user' as const, content: WEATHER_QUESTION }
        const asked = { model, max_tokens: 4000, tools: [tool], messages: [question] }
        for (const first of [await messages.create(asked), await messages.stream(asked).finalMessage()]) {
          assert.equal(first.stop_reason, 'tool_use')
          assert.ok(first.usage.output_tokens > 0 && first.usage.input_tokens > 0)
          const call = first.content.find((block) => block.type === 'tool_use')
          assert.deepEqual(call?.input, { city: 'Oslo' })
          const answered = { role: 'assistant' as const, content: first.content as Newest.ContentBlockParam[] }
          const content = [{ type: 'tool_result' as const, tool_use_id: call.id, content: '12 degrees' }]
          const again = { ...asked, messages: [question, answered, { role: 'user' as const, content }] }
          assert.equal((await messages.create(again)).stop_reason, 'end_turn')
          assert.match(await messages.stream(again).finalText(), /12 degrees/)
        }
      })

      test(`${model}: an answer in the shape that the caller gave`, async () => {
        const format = { type: 'json_schema' as const, schema: OUTCOME.schema }
        const messages = [{ role: 'user' as const, content: 'Extract: Oslo' }]
        const said = await make().messages.create({ model, max_tokens: 4000, messages, output_config: { format } })
        const text = said.content.find((block) => block.type === 'text')
        assert.equal(typeof JSON.parse(text?.text ?? '').city, 'string')
      })

      test(`${model}: a fault inside a stream is thrown, with words that a person can read, and is never a clean end`, async () => {
        for (const trigger of ['[[cut=3]]', '[[error-in-stream=3]]']) {
          const messages = [{ role: 'user' as const, content: `${trigger} [[chunks=20]] Tell me a long story` }]
          await assert.rejects(make().messages.stream({ model, max_tokens: 4000, messages }).finalMessage(), /vendor/i)
        }
      })
    }

    test('thinking comes back signed, and survives a tool turn', async () => {
      const thinking = { type: 'enabled' as const, budget_tokens: 1024 }
      const question = { role: 'user' as const, content: WEATHER_QUESTION }
      const first = await make().messages.create({
        model: 'beta-opus-4-5',
        max_tokens: 3000,
        thinking,
        tools: [tool],
        messages: [question],
      })
      assert.equal(first.content[0]?.type, 'thinking')
      const call = first.content.find((block) => block.type === 'tool_use')
      assert.ok(call)
      const second = await make().messages.create({
        model: 'beta-opus-4-5',
        max_tokens: 3000,
        thinking,
        tools: [tool],
        messages: [
          question,
          { role: 'assistant', content: first.content as Newest.ContentBlockParam[] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }] },
        ],
      })
      assert.equal(second.stop_reason, 'end_turn')
    })

    test('tokens are counted, models are listed', async () => {
      const counted = await make().messages.countTokens({
        model: 'beta-opus-5',
        messages: [{ role: 'user', content: 'How many tokens is this?' }],
      })
      assert.ok(counted.input_tokens > 0 && counted.input_tokens < 50)
      const ids: string[] = []
      for await (const model of make().models.list()) ids.push(model.id)
      assert.ok(ids.includes('beta-opus-5'))
    })

    test('errors are the SDK’s classes, with a readable message', async () => {
      const api = make({ maxRetries: 0 })
      const ask = (content: string, model = 'beta-opus-5') =>
        api.messages.create({ model, max_tokens: 100, messages: [{ role: 'user', content }] })
      const named = (name: string, words: RegExp) => (error: Error & { status?: number }) => {
        assert.equal(error.constructor.name, name)
        assert.match(error.message, words)
        return true
      }
      await assert.rejects(ask('x', 'nope'), named('NotFoundError', /does not exist/))
      await assert.rejects(ask('[[429]]'), named('RateLimitError', /rate limit/))
      await assert.rejects(ask('[[500]]'), named('InternalServerError', /vendor failed/))
      await assert.rejects(
        make({ apiKey: 'tg_live_wrong', maxRetries: 0 }).models.list(),
        named('AuthenticationError', /not valid/),
      )
    })
  })

test('deprecated sampling parameters are the model’s to refuse, with its own words', async () => {
  assert.match(
    await textOf(
      g.call('/beta/v1/messages', key, {
        model: 'beta-opus-5',
        max_tokens: 100,
        top_p: 1,
        messages: [{ role: 'user', content: 'x' }],
      }),
      400,
    ),
    /top_p/,
  )
})
