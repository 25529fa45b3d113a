// Reports of usage as vendors really send them, each with what it is charged as.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTextTraits } from '../../catalog/traits.ts'
import { passChatAnswer, readChatReply } from './openai-chat/answer.ts'
import { usageOfFailed } from './openai-responses/pass.ts'
import { mergedReports, readChatUsage, readMessagesUsage, toUsage } from './tokens.ts'

const traits = readTextTraits()

test('reports of known vendors are read as they mean them', () => {
  const chat = (usage: object) => toUsage(readChatUsage(usage))
  // Mistral counts sound in seconds, and its tokens only in the total.
  const sound = { prompt_audio_seconds: 203, prompt_tokens: 4, completion_tokens: 635, total_tokens: 3264 }
  assert.deepEqual(chat(sound), { input: 4, inputAudio: 2625, output: 635 })
  // More reasoning than output, and the total says that it is part of the output.
  const thought = { completion_tokens_details: { reasoning_tokens: 90 } }
  const plain = { prompt_tokens: 10, completion_tokens: 50 }
  assert.equal(chat({ ...plain, ...thought, total_tokens: 60 })?.output, 50)
  assert.equal(chat({ ...plain, ...thought, total_tokens: 150 })?.output, 140)
  assert.equal(chat({ ...plain, ...thought })?.output, 140)
  // Cached tokens beside the prompt, as the total shows, or more of them than can be.
  const cached = { prompt_tokens_details: { cached_tokens: 100 } }
  assert.deepEqual(chat({ ...plain, ...cached, total_tokens: 160 }), { input: 10, cachedInput: 100, output: 50 })
  assert.deepEqual(chat({ ...plain, ...cached, total_tokens: 60 }), { input: 0, cachedInput: 10, output: 50 })
  assert.deepEqual(chat({ ...plain, cache_read_input_tokens: 4 }), { input: 6, cachedInput: 4, output: 50 })
  assert.deepEqual(chat({ ...plain, server_tool_use: { web_search_requests: 2 } })?.webSearch, 2)
  // Not as many as were offered, which is charged where nothing is reported.
  assert.deepEqual(chat({ ...plain, server_tool_use: { web_search_requests: 0 } })?.webSearch, 0)
})

test('a compaction that read the cache is counted once: a whole report’s zero replaces what came before', () => {
  const start = { input_tokens: 100, cache_read_input_tokens: 17_000, cache_creation_input_tokens: 0, output_tokens: 1 }
  const turns = [
    { type: 'compaction', input_tokens: 90, cache_read_input_tokens: 17_000, output_tokens: 30 },
    { type: 'message', input_tokens: 40, cache_read_input_tokens: 0, output_tokens: 5 },
  ]
  const end = {
    input_tokens: 40,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
    output_tokens: 5,
    iterations: turns,
  }
  const used = toUsage(readMessagesUsage(mergedReports(start, end)))
  assert.deepEqual(used, { input: 130, cachedInput: 17_000, output: 35 })
  // Of a report that counts only the output, zeros say nothing.
  const short = mergedReports(start, { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 })
  assert.deepEqual(toUsage(readMessagesUsage(short)), { input: 100, cachedInput: 17_000, output: 5 })
})

test('usage in a place of its own is found, and without any all that was written counts', () => {
  const message = { role: 'assistant', content: 'Hi' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  const groq = { choices, x_groq: { id: 'req_1', usage: { prompt_tokens: 7, completion_tokens: 3 } } }
  assert.deepEqual(passChatAnswer(Buffer.from(JSON.stringify(groq)), 'm', traits).usage, { input: 7, output: 3 })
  assert.equal(readChatReply(groq, traits).tokens?.prompt, 7)
  const written = (more: object) => {
    const body = { choices: [{ index: 0, message: { role: 'assistant', ...more }, finish_reason: 'stop' }] }
    return passChatAnswer(Buffer.from(JSON.stringify(body)), 'm', traits).outputChars ?? 0
  }
  const long = 'x'.repeat(400)
  for (const more of [
    { content: long },
    { content: [{ type: 'text', text: long }] },
    { content: null, reasoning: long },
    { content: null, function_call: { name: 'f', arguments: long } },
    { content: null, tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f', input: long } }] },
  ])
    assert.ok(written(more) >= 400, JSON.stringify(more).slice(0, 60))
})

test('a response that failed is charged as far as it reports usage, as its stream is', () => {
  const failed = { id: 'resp_1', status: 'failed', error: { code: 'server_error', message: 'It broke.' }, output: [] }
  const used = (value: object) => usageOfFailed(Buffer.from(JSON.stringify(value)))?.usage
  assert.deepEqual(used({ ...failed, usage: { input_tokens: 9, output_tokens: 4 } }), { input: 9, output: 4 })
  assert.equal(used(failed), undefined)
})
