// The official clients at each of the three doors, in front of each family's simulated vendor: every pair of formats,
// whole and streamed, with tools sent there and back.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, type LanguageModel, stepCountIs, streamText, tool } from 'ai'
import OldAnthropic from 'anthropic-sdk-060'
import OpenAI from 'openai'
import * as z from 'zod'
import { startSandbox } from '../sandbox/server.ts'
import catalog from '../src/catalog/default.json' with { type: 'json' }
import { checkDocument } from '../src/catalog/document.ts'
import type { TextTraits } from '../src/catalog/traits.ts'
import { Fault } from '../src/kernel/fault.ts'
import { readJson } from '../src/kernel/json.ts'
import { realWorld } from '../src/kernel/world.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { readModelName, readTextRequest } from '../src/protocols/text/text.ts'
import { started } from './started.ts'

const DOORS: Record<string, ClientFormatName> = {
  '/v1/chat/completions': 'openai-chat',
  '/v1/responses': 'openai-responses',
  '/v1/messages': 'anthropic-messages',
}
const ROOMS: Record<ClientFormatName, string> = {
  'openai-chat': '/openai/v1',
  'openai-responses': '/openai/v1',
  'anthropic-messages': '/anthropic',
  gemini: '/google',
}
/** A model of each family, and the format that its vendor speaks. */
const MODELS: Record<string, ClientFormatName> = {
  'alpha-5.4': 'openai-responses',
  'beta-sonnet-4-6': 'anthropic-messages',
  'beta-haiku-4-5': 'anthropic-messages',
  'gamma-v4-pro': 'openai-chat',
  'delta-3.8-flash': 'openai-chat',
  'delta-3.7-flash': 'gemini',
  'epsilon-k3': 'openai-chat',
  'zeta-m3': 'openai-chat',
}

let server: Server
let url: string

/** The shortest gateway there is: one ask, one fetch, no money. */
const sandbox = started(() => startSandbox({ world: realWorld, speed: Number.POSITIVE_INFINITY }))
before(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    try {
      const json = readJson(Buffer.concat(chunks))
      const uid = readModelName(json)
      const traits = shipped(uid)
      const limits = { outputTokensReserve: 4096, outputTokensFloor: 64 }
      const ask = readTextRequest(DOORS[request.url ?? '']!, json, { uid, traits, limits })
      // As the shipped catalog has it: chat goes to chat, unless it needs tools.
      const protocol =
        uid.startsWith('alpha') && ask.clientFormat === 'openai-chat' && !ask.needs ? ask.clientFormat : MODELS[uid]!
      const target = { protocol, baseUrl: sandbox.url + ROOMS[protocol], secret: 'sk-vendor', headers: {}, model: uid }
      const exchange = await ask.open(target, {
        requestId: 'req_01test',
        createdSeconds: 1789000000,
        signal: new AbortController().signal,
        outputTokensCap: ask.outputOpen?.mostTokens,
      })
      const { call } = exchange
      const answer = await fetch(call.url, { method: call.method, headers: call.headers, body: call.body as string })
      if (!answer.ok) {
        const said = exchange.vendorError?.(Buffer.from(await answer.arrayBuffer()))?.message
        throw new Fault('upstream_invalid', { message: `${answer.status} ${said}` })
      }
      if (!ask.stream) {
        const { body } = await exchange.answer(Buffer.from(await answer.arrayBuffer()), {})
        response.writeHead(200, { 'content-type': 'application/json' }).end(body)
        return
      }
      const relay = exchange.stream!({})
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for await (const chunk of answer.body!) {
        const out = relay.push(Buffer.from(chunk))
        if (out !== undefined) response.write(out, relay.encoding)
      }
      response.write(relay.end() ?? '', relay.encoding)
      const { fault, terminal } = relay.state
      response.end(
        fault || !terminal
          ? relay.fail(fault ?? new Fault('upstream_garbled'), 'req_01test')
          : relay.finish('charge=1'),
      )
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message }, message }))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const QUESTION = 'What is the weather in Oslo?'
const schema = { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] }

for (const model of Object.keys(MODELS)) {
  test(`${model} answers the OpenAI client at the chat door, whole and streamed, and takes a tool's result back`, async () => {
    const client = new OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 0 })
    const tools = [
      { type: 'function' as const, function: { name: 'get_weather', description: 'The weather', parameters: schema } },
    ]
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: QUESTION },
    ]
    const plain = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Hello 你好' }],
      max_tokens: 2000,
    })
    assert.equal(plain.model, model)
    assert.equal(plain.choices[0]?.finish_reason, 'stop')
    assert.ok(plain.choices[0]?.message.content && !plain.choices[0].message.content.includes('<think>'))
    assert.ok(plain.usage && plain.usage.prompt_tokens > 0 && plain.usage.completion_tokens > 0)

    const whole = await client.chat.completions.create({ model, messages, tools })
    assert.equal(whole.choices[0]?.finish_reason, 'tool_calls')
    const call = whole.choices[0]?.message.tool_calls?.[0]
    assert.ok(call?.type === 'function')
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Oslo' })

    const stream = client.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } })
    const streamed = await stream.finalChatCompletion()
    assert.equal(streamed.choices[0]?.finish_reason, 'tool_calls')
    assert.equal(streamed.model, model)
    assert.ok(streamed.usage && streamed.usage.completion_tokens > 0)
    const message = streamed.choices[0]!.message
    const [called] = message.tool_calls!
    assert.ok(called?.type === 'function')
    assert.deepEqual(JSON.parse(called.function.arguments), { city: 'Oslo' })

    const second = client.chat.completions.stream({
      model,
      messages: [...messages, message, { role: 'tool', tool_call_id: called.id, content: '12 degrees' }],
      tools,
    })
    assert.ok((await second.finalContent())?.includes('12 degrees'))
  })

  test(`${model} answers the OpenAI client at the Responses door, whole and streamed, and takes a tool's result back`, async () => {
    const client = new OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 0 })
    const tools = [
      { type: 'function' as const, name: 'get_weather', description: 'The weather', parameters: schema, strict: false },
    ]
    const plain = await client.responses.create({ model, input: 'Hello', instructions: 'Be brief.' })
    assert.equal(plain.status, 'completed')
    assert.equal(plain.model, model)
    assert.ok(plain.output_text.length > 0 && plain.usage!.output_tokens > 0)

    const whole = await client.responses.create({ model, input: QUESTION, tools, store: false })
    const call = whole.output.find((item) => item.type === 'function_call')
    assert.deepEqual(JSON.parse(call!.arguments), { city: 'Oslo' })

    const stream = client.responses.stream({ model, input: QUESTION, tools, store: false })
    const names = new Set<string>()
    for await (const event of stream) names.add(event.type)
    const streamed = await stream.finalResponse()
    assert.ok(names.has('response.function_call_arguments.done') && names.has('response.completed'))
    assert.equal(streamed.model, model)
    assert.ok(streamed.usage && streamed.usage.output_tokens > 0)
    const called = streamed.output.find((item) => item.type === 'function_call')
    assert.deepEqual(JSON.parse(called!.arguments), { city: 'Oslo' })

    const second = client.responses.stream({
      model,
      input: [
        { role: 'user', content: QUESTION },
        ...(streamed.output as OpenAI.Responses.ResponseInputItem[]),
        { type: 'function_call_output', call_id: called!.call_id, output: '12 degrees' },
      ],
      tools,
      store: false,
    })
    for await (const _ of second);
    assert.ok((await second.finalResponse()).output_text.includes('12 degrees'))
  })

  for (const [name, Client] of [
    ['newest', Anthropic],
    ['0.60', OldAnthropic as unknown as typeof Anthropic],
  ] as const)
    test(`${model} answers the ${name} Anthropic client at the Messages door, whole and streamed, and takes a tool's result back`, async () => {
      const client = new Client({ apiKey: 'k', baseURL: url, maxRetries: 0 })
      const tools = [{ name: 'get_weather', description: 'The weather', input_schema: schema }]
      const question = { role: 'user' as const, content: QUESTION }
      const plain = await client.messages.create({
        model,
        max_tokens: 2000,
        system: 'Be brief.',
        messages: [{ role: 'user', content: 'Hello' }],
      })
      assert.equal(plain.stop_reason, 'end_turn')
      assert.equal(plain.model, model)
      assert.ok(plain.content.some((block) => block.type === 'text' && block.text.length > 0))

      const whole = await client.messages.create({ model, max_tokens: 4000, messages: [question], tools })
      assert.equal(whole.stop_reason, 'tool_use')

      const streamed = await client.messages
        .stream({ model, max_tokens: 4000, messages: [question], tools })
        .finalMessage()
      assert.equal(streamed.stop_reason, 'tool_use')
      assert.ok(streamed.usage.output_tokens > 0 && streamed.usage.input_tokens > 0)
      const use = streamed.content.find((block) => block.type === 'tool_use')
      assert.deepEqual(use!.input, { city: 'Oslo' })

      const answer = { type: 'tool_result' as const, tool_use_id: use!.id, content: '12 degrees' }
      const second = await client.messages
        .stream({
          model,
          max_tokens: 4000,
          tools,
          messages: [question, { role: 'assistant', content: streamed.content }, { role: 'user', content: [answer] }],
        })
        .finalText()
      assert.ok(second.includes('12 degrees'))
    })

  const clients: Record<string, () => LanguageModel> = {
    'openai at the Responses door': () => createOpenAI({ apiKey: 'k', baseURL: `${url}/v1` })(model),
    'openai at the chat door': () => createOpenAI({ apiKey: 'k', baseURL: `${url}/v1` }).chat(model),
    'openai-compatible': () =>
      createOpenAICompatible({ name: 'tollgate', apiKey: 'k', baseURL: `${url}/v1`, includeUsage: true })(model),
    anthropic: () => createAnthropic({ apiKey: 'k', baseURL: `${url}/v1` })(model),
  }
  for (const [name, open] of Object.entries(clients))
    test(`${model} runs the AI SDK's loop with tools through ${name}`, async () => {
      const tools = {
        get_weather: tool({
          description: 'The weather',
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => `12 degrees in ${city}`,
        }),
      }
      const whole = await generateText({
        model: open(),
        prompt: QUESTION,
        tools,
        stopWhen: stepCountIs(3),
        maxRetries: 0,
        maxOutputTokens: 4000,
      })
      assert.match(whole.text, /12 degrees/)
      const errors: unknown[] = []
      const streamed = streamText({
        model: open(),
        prompt: QUESTION,
        tools,
        stopWhen: stepCountIs(3),
        maxRetries: 0,
        maxOutputTokens: 4000,
        onError: ({ error }) => errors.push(error),
      })
      const text = await streamed.text
      assert.deepEqual(errors, [])
      assert.match(text, /12 degrees/)
      assert.ok((await streamed.totalUsage).outputTokens! > 0)
    })
}

/** The traits that the shipped catalog gives a model. */
function shipped(uid: string): TextTraits {
  const checked = checkDocument(catalog)
  assert.ok(checked.ok)
  const model = checked.document.models[uid]
  assert.ok(model?.type === 'text')
  return model.traits
}

const OUTCOME = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

for (const model of Object.keys(MODELS)) {
  test(`${model} answers in the shape that the caller gave, at all three doors`, async () => {
    const openai = new OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 0 })
    const format = { name: 'outcome', schema: OUTCOME, strict: true }
    const chat = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: QUESTION }],
      response_format: { type: 'json_schema', json_schema: format },
    })
    assert.equal(typeof JSON.parse(chat.choices[0]?.message.content ?? '').city, 'string')
    const response = await openai.responses.create({
      model,
      input: QUESTION,
      text: { format: { type: 'json_schema', ...format } },
    })
    assert.equal(typeof JSON.parse(response.output_text).city, 'string')
    const anthropic = new Anthropic({ apiKey: 'k', baseURL: url, maxRetries: 0 })
    const message = await anthropic.messages.create({
      model,
      max_tokens: 4000,
      messages: [{ role: 'user', content: QUESTION }],
      output_config: { format: { type: 'json_schema', schema: OUTCOME } },
    })
    const text = message.content.find((block) => block.type === 'text')
    assert.equal(typeof JSON.parse(text!.text).city, 'string')
  })

  test(`${model}: an error inside a stream is an error to every client, with words that a person can read`, async () => {
    const prompt = '[[error-in-stream=3]] Tell me a long story'
    const openai = new OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 0 })
    const readable = (error: unknown) => error instanceof Error && /vendor/i.test(error.message)
    await assert.rejects(async () => {
      const stream = await openai.chat.completions.create({
        model,
        messages: [{ role: 'user', content: prompt }],
        stream: true,
      })
      for await (const _ of stream);
    }, readable)
    await assert.rejects(async () => {
      const stream = await openai.responses.create({ model, input: prompt, stream: true })
      for await (const event of stream)
        if (event.type === 'response.failed') throw new Error(event.response.error?.message)
    }, readable)
    for (const Client of [Anthropic, OldAnthropic as unknown as typeof Anthropic]) {
      const anthropic = new Client({ apiKey: 'k', baseURL: url, maxRetries: 0 })
      await assert.rejects(
        () =>
          anthropic.messages
            .stream({ model, max_tokens: 4000, messages: [{ role: 'user', content: prompt }] })
            .finalMessage(),
        readable,
      )
    }
    const seen: unknown[] = []
    const result = streamText({
      model: createOpenAICompatible({ name: 't', apiKey: 'k', baseURL: `${url}/v1` })(model),
      prompt,
      maxRetries: 0,
      onError: ({ error }) => seen.push(error),
    })
    await result.consumeStream({ onError: () => undefined })
    assert.equal(seen.length, 1)
  })
}
