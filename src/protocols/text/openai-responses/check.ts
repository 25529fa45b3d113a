// What the Responses endpoint refuses before any vendor is called.
import { Fault, invalid } from '../../../kernel/fault.ts'
import { type Fields, isObject, type Json, mustBe } from '../../check.ts'
import type { CheckedAsk } from '../format.ts'

const ROLES = ['user', 'assistant', 'system', 'developer']

export function checkResponses(fields: Fields): CheckedAsk {
  const input = fields.required('input')
  if (Array.isArray(input)) checkItems(input)
  else if (typeof input !== 'string') throw mustBe('input', 'a string or an array of items', input)
  for (const name of ['instructions', 'user', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'truncation'])
    fields.string(name)
  for (const name of ['temperature', 'top_p']) fields.number(name)
  fields.integer('top_logprobs', 0)
  fields.integer('max_tool_calls', 1)
  for (const name of ['text', 'reasoning', 'metadata', 'prompt', 'stream_options']) fields.object(name)
  for (const name of ['parallel_tool_calls', 'store']) fields.boolean(name)
  fields.strings('include')
  // Whoever works in the background (deferred/background.ts) has taken this out.
  if (fields.boolean('background') === true)
    throw invalid(
      '"background" must be false here: only POST /v1/responses itself works in the background.',
      'background',
    )
  const previous = fields.string('previous_response_id')
  checkConversation(fields.get('conversation'), previous)
  const tools = fields.list('tools') ?? []
  tools.forEach((tool, i) => {
    checkTool(tool, `tools[${i}]`)
  })
  const choice = fields.get('tool_choice')
  if (choice !== undefined && typeof choice !== 'string' && !isObject(choice))
    throw mustBe('tool_choice', 'a string or an object', choice)
  return {
    stream: fields.boolean('stream') ?? false,
    includeUsage: true,
    n: 1,
    tokensMax: fields.integer('max_output_tokens', 1),
    hasTools: tools.length > 0,
    continues: previous === undefined ? undefined : [{ id: previous, unknown: previousUnknown() }],
  }
}

function checkTool(tool: Json, at: string): void {
  if (typeof tool.type !== 'string') throw invalid(`"${at}.type" must be a string, such as "function".`, `${at}.type`)
  if (tool.type === 'function' && typeof tool.name !== 'string')
    throw invalid(`"${at}.name" must be a string; in this format a function is not nested.`, `${at}.name`)
  if (tool.type !== 'namespace') return
  if (typeof tool.name !== 'string') throw mustBe(`${at}.name`, 'a string', tool.name)
  if (!Array.isArray(tool.tools)) throw mustBe(`${at}.tools`, 'an array of tools', tool.tools)
  for (const [j, inner] of tool.tools.entries()) {
    const place = `${at}.tools[${j}]`
    if (!isObject(inner)) throw mustBe(place, 'an object', inner)
    if (inner.type !== 'namespace') checkTool(inner, place)
  }
}

function checkConversation(given: unknown, previous: string | undefined): void {
  if (given === undefined) return
  if (typeof (isObject(given) ? given.id : given) !== 'string')
    throw mustBe('conversation', 'the id of a conversation, or an object with its id', given)
  if (previous !== undefined)
    throw invalid('"conversation" does not go with "previous_response_id": send one of them.', 'conversation')
}

/** In the vendor's words, because clients know them. */
function previousUnknown(): Fault {
  const message = 'Previous response not found: it is not of this account, was not stored, or is no longer kept.'
  return new Fault('request_invalid', {
    message,
    param: 'previous_response_id',
    vendorCode: 'previous_response_not_found',
  })
}

function checkItems(items: readonly unknown[]): void {
  if (items.length === 0) throw invalid('"input" must hold at least one item.', 'input')
  items.forEach((item, i) => {
    const at = `input[${i}]`
    if (!isObject(item)) throw mustBe(at, 'an object', item)
    checkItem(item, at)
  })
}

function checkItem(item: Json, at: string): void {
  const type = item.type ?? 'message'
  if (typeof type !== 'string') throw mustBe(`${at}.type`, 'a string', type)
  const strings: Readonly<Record<string, readonly string[]>> = {
    function_call: ['call_id', 'name', 'arguments'],
    function_call_output: ['call_id'],
    custom_tool_call: ['call_id', 'name', 'input'],
    custom_tool_call_output: ['call_id'],
  }
  const needed = Object.hasOwn(strings, type) ? (strings[type] ?? []) : []
  for (const name of needed) if (typeof item[name] !== 'string') throw mustBe(`${at}.${name}`, 'a string', item[name])
  if (/_output$/.test(type) && needed.length > 0 && typeof item.output !== 'string' && !Array.isArray(item.output))
    throw mustBe(`${at}.output`, 'a string or an array of parts', item.output)
  if (type !== 'message') return
  if (typeof item.role !== 'string' || !ROLES.includes(item.role))
    throw mustBe(`${at}.role`, `one of ${ROLES.join(', ')}`, item.role)
  if (typeof item.content === 'string') return
  if (!Array.isArray(item.content)) throw mustBe(`${at}.content`, 'a string or an array of parts', item.content)
  item.content.forEach((part, j) => {
    if (!isObject(part) || typeof part.type !== 'string')
      throw invalid(`"${at}.content[${j}]" must be an object with a "type".`, `${at}.content[${j}]`)
    if (/_text$/.test(part.type) && typeof part.text !== 'string')
      throw mustBe(`${at}.content[${j}].text`, 'a string', part.text)
  })
}
