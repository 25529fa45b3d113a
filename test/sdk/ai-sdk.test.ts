// The Vercel AI SDK with its openai, anthropic and openai-compatible providers, unchanged.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateText, type LanguageModel, Output, stepCountIs, streamText, tool } from 'ai'
import * as z from 'zod'
import { testGateway } from '../gateway.ts'

let key: string
const g = testGateway({ isShared: true }, async () => {
  key = (await g.account()).key
})

const openai = (path = '/v1') => createOpenAI({ apiKey: key, baseURL: `${g.url}${path}` })
const compatible = () =>
  createOpenAICompatible({ name: 'tollgate', apiKey: key, baseURL: `${g.url}/v1`, includeUsage: true })
const anthropic = () => createAnthropic({ apiKey: key, baseURL: `${g.url}/beta/v1` })

const MODELS: Record<string, () => LanguageModel> = {
  'openai responses, alpha': () => openai('/alpha')('alpha-5.4'),
  'openai chat, alpha': () => openai().chat('alpha-5.6-terra'),
  'openai chat, beta': () => openai().chat('beta-sonnet-4-6'),
  'anthropic, beta': () => anthropic()('beta-sonnet-4-6'),
  'compatible, gamma': () => compatible()('gamma-v4-pro'),
  'compatible, delta': () => compatible()('delta-3.8-flash'),
  'compatible, epsilon': () => compatible()('epsilon-k3'),
  'compatible, zeta': () => compatible()('zeta-m3'),
}

for (const [name, make] of Object.entries(MODELS)) {
  test(`${name}: text and stream`, async () => {
    const whole = await generateText({ model: make(), prompt: 'Say hello.' })
    assert.ok(whole.text.length > 0)
    assert.ok((whole.usage.totalTokens ?? 0) > 0)
    const stream = streamText({ model: make(), prompt: 'Count to five.' })
    let text = ''
    for await (const piece of stream.textStream) text += piece
    assert.ok(text.length > 0)
    assert.equal(await stream.finishReason, 'stop')
  })

  test(`${name}: a tool loop`, async () => {
    const asked: string[] = []
    const result = await generateText({
      model: make(),
      prompt: 'What is the weather in Oslo? Use get_weather.',
      stopWhen: stepCountIs(3),
      tools: {
        get_weather: tool({
          description: 'The current weather in a city.',
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => {
            asked.push(city)
            return { celsius: 4 }
          },
        }),
      },
    })
    assert.equal(asked.length, 1)
    assert.ok(result.text.length > 0)
  })
}

test('structured output', async () => {
  for (const name of ['openai responses, alpha', 'openai chat, alpha', 'anthropic, beta']) {
    const { output } = await generateText({
      model: MODELS[name]!(),
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
  const seen: unknown[] = []
  const stream = streamText({
    model: compatible()('gamma-v4-flash'),
    prompt: 'A story. [[cut=3]] [[chunks=20]]',
    maxRetries: 0,
    onError: ({ error }) => void seen.push(error),
  })
  for await (const part of stream.fullStream) if (part.type === 'error') seen.push(part.error)
  assert.ok(seen.length > 0)
})
