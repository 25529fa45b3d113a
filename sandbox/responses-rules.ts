// What the Responses vendor refuses: above all, requests in the shape of chat completions.
import { versionOf } from './family.ts'
import { isRecord, type Json, list, number, record, string } from './json.ts'
import { checkTokensMost, invalid, missing, notAmong, notOfType, unknown } from './refusal.ts'

const KNOWN = new Set(
  [
    'model input instructions tools tool_choice parallel_tool_calls max_tool_calls text reasoning max_output_tokens',
    'previous_response_id conversation store background include prompt truncation stream stream_options temperature top_p',
    'top_logprobs metadata user safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention',
    'service_tier context_management moderation client_metadata image access_programs',
  ]
    .join(' ')
    .split(' '),
)

export function checkResponses(body: Json, model: string): void {
  for (const name of Object.keys(body)) if (!KNOWN.has(name)) throw unknown(name)
  if (model === '') throw missing('model')
  if (body.input === undefined) throw missing('input')
  if (typeof body.input !== 'string' && !Array.isArray(body.input))
    throw notOfType('input', 'one of a string or array of input items')
  checkTokensMost('max_output_tokens', number(body.max_output_tokens))
  const none = "Unsupported value: 'none' is not supported with this model."
  if (record(body.reasoning).effort === 'none' && versionOf(model) >= 6)
    throw invalid(none, 'reasoning.effort', 'unsupported_value')
  checkTools(body)
  checkItems(list(body.input), body.previous_response_id !== undefined && body.previous_response_id !== null)
}

function checkTools(body: Json): void {
  for (const [i, given] of list(body.tools).entries()) {
    const tool = record(given)
    if (tool.type === 'function' && string(tool.name) === '') throw missing(`tools[${i}].name`)
  }
  const choice = record(body.tool_choice)
  if (choice.type === 'function' && string(choice.name) === '') throw missing('tool_choice.name')
  const format = record(record(body.text).format)
  if (format.type === 'json_schema' && string(format.name) === '') throw missing('text.format.name')
}

const ROLES = ['user', 'assistant', 'system', 'developer']

function checkItems(items: readonly unknown[], continued: boolean): void {
  const called = new Set<string>()
  const answered = new Set<string>()
  for (const [i, given] of items.entries()) {
    if (!isRecord(given)) throw notOfType(`input[${i}]`, 'an input item')
    const type = string(given.type) || 'message'
    if (type === 'message') checkMessage(given, i)
    if (type === 'function_call') called.add(string(given.call_id))
    if (type === 'function_call_output') {
      const id = string(given.call_id)
      if (!continued && !called.has(id))
        throw invalid(`No tool call found for function call output with call_id ${id}.`, 'input', null)
      answered.add(id)
    }
    const alone = `Item '${string(given.id)}' of type 'reasoning' was provided without its required following item.`
    if (type === 'reasoning' && !isFollowed(items, i)) throw invalid(alone, 'input', null)
  }
  for (const id of called)
    if (!answered.has(id)) throw invalid(`No tool output found for function call ${id}.`, 'input', null)
}

function isFollowed(items: readonly unknown[], i: number): boolean {
  const next = record(items[i + 1])
  const type = string(next.type) || 'message'
  return (
    items[i + 1] !== undefined && type !== 'function_call_output' && (type !== 'message' || next.role === 'assistant')
  )
}

function checkMessage(message: Json, i: number): void {
  if (!ROLES.includes(string(message.role))) throw notAmong(ROLES, message.role, `input[${i}]`)
  for (const [k, given] of list(message.content).entries()) {
    const part = record(given)
    const allowed =
      message.role === 'assistant'
        ? ['output_text', 'refusal']
        : ['input_text', 'input_image', 'input_file', 'input_audio']
    const at = `input[${i}].content[${k}]`
    if (!allowed.includes(string(part.type))) throw notAmong(allowed, part.type, at)
    if (part.image_url !== undefined && typeof part.image_url !== 'string')
      throw notOfType(`${at}.image_url`, 'an image URL, but got an object instead')
  }
}
