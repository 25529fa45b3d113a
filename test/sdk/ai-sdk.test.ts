// The Vercel AI SDK with its openai, anthropic and openai-compatible providers, unchanged.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateText, type LanguageModel, Output, stepCountIs, streamText, tool } from 'ai'
import * as z from 'zod'
import { assert, test, testGateway } from '../gateway.ts'
import { everyKind, FAMILIES, WEATHER, WEATHER_QUESTION } from './families.ts'

let key: string
const g = testGateway({ catalog: everyKind, isShared: true }, async () => {
  key = (await g.account({ credits: 1_000_000_000_000n })).key
})

const openai = (path = '/v1') => createOpenAI({ apiKey: key, baseURL: `${g.url}${path}` })
const compatible = () =>
  createOpenAICompatible({ name: 'tollgate', apiKey: key, baseURL: `${g.url}/v1`, includeUsage: true })
const anthropic = () => createAnthropic({ apiKey: key, baseURL: `${g.url}/beta/v1` })

const PROVIDERS: Record<string, (model: string) => LanguageModel> = {
  'openai responses': (model) => openai('/alpha')(model),
  'openai chat': (model) => openai().chat(model),
  anthropic: (model) => anthropic()(model),
  compatible: (model) => compatible()(model),
}
const maxRetries = 0

for (const model of FAMILIES)
  for (const [name, open] of Object.entries(PROVIDERS)) {
    test(`${name}, ${model}: text and stream`, async () => {
      const whole = await generateText({ model: open(model), prompt: 'Say hello.' })
      assert.ok(whole.text.length > 0)
      assert.ok((whole.usage.totalTokens ?? 0) > 0)
      const stream = streamText({ model: open(model), prompt: 'Count to five.' })
      let text = ''
      for await (const piece of stream.textStream) text += piece
      assert.ok(text.length > 0)
      assert.equal(await stream.finishReason, 'stop')
    })

    test(`${name}, ${model}: a tool loop, whole and streamed`, async () => {
      const asked: string[] = []
      const errors: unknown[] = []
      const get_weather = tool({
        description: WEATHER.description,
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }) => {
          asked.push(city)
          return `12 degrees in ${city}`
        },
      })
      const prompt = { prompt: WEATHER_QUESTION, tools: { get_weather }, maxOutputTokens: 4000 }
      const whole = await generateText({ model: open(model), ...prompt, stopWhen: stepCountIs(3), maxRetries })
      assert.match(whole.text, /12 degrees/)
      const onError = ({ error }: { error: unknown }) => void errors.push(error)
      const streamed = streamText({ model: open(model), ...prompt, stopWhen: stepCountIs(3), maxRetries, onError })
      assert.match(await streamed.text, /12 degrees/)
      assert.ok(((await streamed.totalUsage).outputTokens ?? 0) > 0)
      assert.deepEqual([asked, errors], [['Oslo', 'Oslo'], []])
    })
  }

test('structured output', async () => {
  for (const [name, model] of [
    ['openai responses', 'alpha-5.4'],
    ['openai chat', 'alpha-5.4'],
    ['anthropic', 'beta-sonnet-4-6'],
  ] as const) {
    const { output } = await generateText({
      model: PROVIDERS[name]!(model),
      prompt: 'Describe a person.',
      output: Output.object({ schema: z.object({ name: z.string(), age: z.number() }) }),
    })
    assert.equal(typeof output.name, 'string', name)
  }
})

test('errors carry our message and status', async () => {
  for (const [name, make] of Object.entries({
    openai: () => openai().chat('nope'),
    responses: () => openai('/alpha')('nope'),
    anthropic: () => anthropic()('nope'),
    compatible: () => compatible()('nope'),
  })) {
    await assert.rejects(generateText({ model: make(), prompt: 'x', maxRetries: 0 }), (error: unknown) => {
      assert.ok(APICallError.isInstance(error), name)
      assert.equal(error.statusCode, 404)
      assert.match(error.message, /does not exist/, name)
      return true
    })
  }
})

test('a broken stream is an error part, not a clean end', async () => {
  for (const model of FAMILIES)
    for (const trigger of ['[[cut=3]]', '[[error-in-stream=3]]']) {
      const seen: unknown[] = []
      const onError = ({ error }: { error: unknown }) => void seen.push(error)
      const prompt = `${trigger} [[chunks=20]] Tell me a long story`
      const stream = streamText({ model: compatible()(model), prompt, maxRetries, onError })
      await stream.consumeStream({ onError: () => undefined })
      assert.equal(seen.length, 1, `${model} ${trigger}`)
    }
})
