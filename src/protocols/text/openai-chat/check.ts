// What the chat endpoint refuses before any vendor is called.

import { CHAT_ANSWERS_MAX } from '../../../catalog/generation-bodies.ts'
import type { TextTraits } from '../../../catalog/traits.ts'
import { invalid } from '../../../kernel/fault.ts'
import { type Fields, isObject, type Json, mustBe, shown } from '../../check.ts'
import type { CheckedAsk } from '../format.ts'

const NUMBERS = ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty']
const BOOLEANS = ['logprobs', 'parallel_tool_calls', 'store', 'reasoning_split']
const STRINGS = ['reasoning_effort', 'verbosity', 'user', 'service_tier', 'safety_identifier', 'prompt_cache_key']
const OBJECTS = ['thinking', 'logit_bias', 'metadata', 'audio', 'prediction']
const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

export function checkChat(fields: Fields, traits: TextTraits): CheckedAsk {
  checkMessages(fields.required('messages'))
  for (const name of NUMBERS) fields.number(name)
  fields.integer('seed', Number.MIN_SAFE_INTEGER)
  fields.integer('top_logprobs', 0)
  const n = fields.integer('n', 1) ?? 1
  const nMax = Math.min(traits.nMax ?? CHAT_ANSWERS_MAX, CHAT_ANSWERS_MAX)
  if (n > nMax)
    throw invalid(`"n" must be ${nMax === 1 ? 'exactly 1' : `at most ${nMax}`} for this model, not ${n}.`, 'n')
  const tokensMax = fields.integer('max_tokens', 1)
  const completionMax = fields.integer('max_completion_tokens', 1)
  checkStop(fields.get('stop'))
  for (const name of BOOLEANS) fields.boolean(name)
  for (const name of STRINGS) fields.string(name)
  for (const name of OBJECTS) fields.object(name)
  checkFormat(fields.object('response_format'))
  const tools = checkTools(fields.list('tools'))
  const functions = fields.list('functions')
  checkChoice(fields.get('tool_choice'))
  const stream = fields.boolean('stream') ?? false
  const options = fields.object('stream_options')
  const includeUsage = options?.include_usage ?? false
  if (typeof includeUsage !== 'boolean') throw mustBe('stream_options.include_usage', 'true or false', includeUsage)
  return {
    stream,
    includeUsage,
    n,
    tokensMax: completionMax ?? tokensMax,
    hasTools: tools > 0 || (functions?.length ?? 0) > 0,
  }
}

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages)) throw mustBe('messages', 'an array of objects', messages)
  if (messages.length === 0) throw invalid('"messages" must hold at least one message.', 'messages')
  for (let i = 0; i < messages.length; i++) checkMessage(messages[i], i)
}

function checkMessage(message: unknown, i: number): void {
  if (!isObject(message)) throw bad(i, '', `must be an object, not ${shown(message)}.`)
  const role = message.role
  if (typeof role !== 'string' || !ROLES.includes(role))
    throw bad(i, '.role', `must be one of ${ROLES.join(', ')}, not ${shown(role)}.`)
  if (role === 'tool' && (typeof message.tool_call_id !== 'string' || message.tool_call_id === ''))
    throw bad(i, '.tool_call_id', 'is required in a message with role "tool".')
  if (role === 'function' && typeof message.name !== 'string')
    throw bad(i, '.name', 'is required in a message with role "function".')
  if (role === 'assistant') checkCalls(message.tool_calls, i)
  const content = message.content
  if (typeof content === 'string') return
  if (content === undefined || content === null) {
    if (role === 'function' && content === null) return
    if (role === 'assistant' && speaksOtherwise(message)) return
    throw bad(i, '.content', content === null ? 'must not be null here.' : 'is required.')
  }
  if (!Array.isArray(content)) throw bad(i, '.content', `must be a string or an array of parts, not ${shown(content)}.`)
  for (let j = 0; j < content.length; j++) checkPart(content[j], i, j)
}

/** An assistant's turn without content: it called a tool, refused or spoke. */
function speaksOtherwise(message: Json): boolean {
  const { tool_calls: calls, refusal, audio, function_call: called } = message
  return (
    (Array.isArray(calls) && calls.length > 0) || typeof refusal === 'string' || isObject(audio) || isObject(called)
  )
}

function checkPart(part: unknown, i: number, j: number): void {
  const at = `.content[${j}]`
  if (!isObject(part)) throw bad(i, at, `must be an object, not ${shown(part)}.`)
  if (typeof part.type !== 'string') throw bad(i, `${at}.type`, 'must be a string, such as "text".')
  if (part.type === 'text' && typeof part.text !== 'string')
    throw bad(i, `${at}.text`, `must be a string, not ${shown(part.text)}.`)
  if (part.type === 'image_url' && (!isObject(part.image_url) || typeof part.image_url.url !== 'string'))
    throw bad(i, `${at}.image_url.url`, 'must be a string: an address or a data URI.')
}

function checkCalls(calls: unknown, i: number): void {
  if (calls === undefined || calls === null) return
  if (!Array.isArray(calls)) throw bad(i, '.tool_calls', `must be an array, not ${shown(calls)}.`)
  calls.forEach((call, j) => {
    const at = `.tool_calls[${j}]`
    if (!isObject(call)) throw bad(i, at, `must be an object, not ${shown(call)}.`)
    if (typeof call.id !== 'string') throw bad(i, `${at}.id`, 'must be a string.')
    if (call.type === 'custom') return
    const called = call.function
    if (!isObject(called) || typeof called.name !== 'string') throw bad(i, `${at}.function.name`, 'must be a string.')
    if (typeof called.arguments !== 'string') throw bad(i, `${at}.function.arguments`, 'must be a string of JSON.')
  })
}

function checkStop(stop: unknown): void {
  if (stop === undefined || typeof stop === 'string') return
  if (Array.isArray(stop) && stop.every((entry) => typeof entry === 'string')) return
  throw invalid('"stop" must be a string or an array of strings.', 'stop')
}

function checkFormat(format: Json | undefined): void {
  if (!format) return
  if (typeof format.type !== 'string') throw invalid('"response_format.type" must be a string.', 'response_format.type')
  if (format.type !== 'json_schema') return
  const schema = format.json_schema
  if (!isObject(schema) || typeof schema.name !== 'string')
    throw invalid('"response_format.json_schema.name" must be a string.', 'response_format.json_schema.name')
  if (schema.schema !== undefined && schema.schema !== null && !isObject(schema.schema))
    throw invalid('"response_format.json_schema.schema" must be an object.', 'response_format.json_schema.schema')
}

function checkTools(tools: Json[] | undefined): number {
  tools?.forEach((tool, i) => {
    const at = `tools[${i}]`
    if (typeof tool.type !== 'string') throw invalid(`"${at}.type" must be a string, such as "function".`, `${at}.type`)
    if (tool.type !== 'function') return
    const named = tool.function
    if (!isObject(named) || typeof named.name !== 'string')
      throw invalid(`"${at}.function.name" must be a string.`, `${at}.function.name`)
    if (named.parameters !== undefined && named.parameters !== null && !isObject(named.parameters))
      throw invalid(`"${at}.function.parameters" must be an object (a JSON schema).`, `${at}.function.parameters`)
  })
  return tools?.length ?? 0
}

function checkChoice(choice: unknown): void {
  if (choice === undefined || typeof choice === 'string' || isObject(choice)) return
  throw mustBe('tool_choice', 'a string or an object', choice)
}

function bad(i: number, at: string, why: string): Error {
  return invalid(`"messages[${i}]${at}" ${why}`, `messages[${i}]${at}`)
}
