// What the vendors behind the chat format refuse, each in its own way. Gateways meet these rules in production, so the
// sandbox keeps them.
import { type FamilyName, versionOf } from './family.ts'
import { isRecord, type Json, list, number, record, string } from './json.ts'
import { checkTokensMost, invalid, missing, notAmong, notOfType, Refusal } from './refusal.ts'

export function checkChat(body: Json, family: FamilyName, model: string): void {
  if (model === '') throw invalid('you must provide a model parameter', 'model', null)
  if (!Array.isArray(body.messages)) throw missing('messages')
  const empty = "Invalid 'messages': empty array. Expected an array with minimum length 1."
  if (body.messages.length === 0) throw invalid(empty, 'messages', 'empty_array')
  for (const [i, message] of body.messages.entries()) checkMessage(message, i)
  checkToolPairs(body.messages)
  const n = body.n
  if (n !== undefined && n !== null && (!Number.isInteger(n) || Number(n) < 1 || Number(n) > 128))
    throw invalid("Invalid 'n': integer between 1 and 128 expected.", 'n')
  RULES[family]?.(body, versionOf(model))
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

function checkMessage(message: unknown, i: number): void {
  if (!isRecord(message)) throw notOfType(`messages[${i}]`, 'an object')
  if (!ROLES.includes(string(message.role))) throw notAmong(ROLES, message.role, `messages[${i}].role`)
  if (message.role === 'tool' && !string(message.tool_call_id)) throw missing(`messages[${i}].tool_call_id`)
}

/** Every tool message answers a call of the assistant's turn before it, and every call is answered. */
function checkToolPairs(messages: readonly unknown[]): void {
  let open = new Set<string>()
  for (const [i, given] of messages.entries()) {
    const message = record(given)
    if (message.role === 'tool') {
      const why = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
      if (!open.delete(string(message.tool_call_id)))
        throw invalid(`Invalid parameter: ${why}`, `messages[${i}].role`, null)
      continue
    }
    if (open.size > 0) break
    open = new Set(list(message.tool_calls).map((call) => string(record(call).id)))
  }
  if (open.size > 0)
    throw invalid(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
      'messages',
      null,
    )
}

type Rule = (body: Json, version: number) => void

const RULES: Partial<Record<FamilyName, Rule>> = {
  alpha(body, version) {
    if (version < 5.4) return
    const instead = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    if (body.max_tokens !== undefined && body.max_tokens !== null)
      throw unsupported('max_tokens', `Unsupported parameter: ${instead}`)
    checkTokensMost('max_completion_tokens', number(body.max_completion_tokens))
    const effort = body.reasoning_effort ?? undefined
    const none = "Unsupported value: 'reasoning_effort' does not support 'none' with this model."
    if (version >= 6 && effort === 'none') throw unsupported('reasoning_effort', none)
    if (list(body.tools).length === 0) return
    const refused = version >= 5.6 ? effort !== 'none' : effort !== undefined && effort !== 'none'
    if (refused)
      throw unsupported(
        'reasoning_effort',
        "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. Use /v1/responses or set reasoning_effort to 'none'.",
      )
  },

  gamma(body) {
    if (record(body.thinking).type === 'disabled') return
    requireReasoning(body, 'The `reasoning_content` in the thinking mode must be passed back to the API.')
  },

  delta(body) {
    for (const [i, given] of list(body.messages).entries()) {
      // Only the first of several parallel calls carries a signature.
      const [first] = list(record(given).tool_calls)
      if (first === undefined) continue
      const google = record(record(record(first).extra_content).google)
      if (string(google.thought_signature) === '')
        throw new Refusal(
          400,
          `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call in message ${i}.`,
        )
    }
  },

  epsilon(body) {
    if (body.n !== undefined && body.n !== null && body.n !== 1)
      throw new Refusal(400, 'invalid n: only 1 is allowed for this model', 'n')
    if (isRecord(body.thinking) && body.reasoning_effort !== undefined)
      throw new Refusal(400, 'thinking and reasoning_effort cannot be set at the same time')
    if (body.temperature !== undefined && body.temperature !== null && body.temperature !== 1)
      throw new Refusal(400, 'invalid temperature: only 1 is allowed for this model', 'temperature')
    const stops = typeof body.stop === 'string' ? [body.stop] : list(body.stop)
    if (stops.length > 5 || stops.some((stop) => Buffer.byteLength(string(stop)) > 32))
      throw new Refusal(400, 'invalid stop: at most 5 sequences of at most 32 bytes', 'stop')
    if (isRecord(body.tool_choice))
      throw new Refusal(400, 'invalid tool_choice: auto, none or required expected', 'tool_choice')
    requireReasoning(body, 'thinking is enabled but reasoning_content is missing in assistant tool call message')
  },

  zeta(body) {
    for (const name of ['temperature', 'top_p']) {
      const value = number(body[name])
      if (value !== undefined && (value <= 0 || value > 1))
        throw new Refusal(400, `invalid params, ${name} must be in (0, 1]`, name)
    }
  },
}

function requireReasoning(body: Json, message: string): void {
  for (const given of list(body.messages)) {
    const turn = record(given)
    // An empty string is accepted; leaving the field out is not.
    if (list(turn.tool_calls).length > 0 && typeof turn.reasoning_content !== 'string') throw new Refusal(400, message)
  }
}

const unsupported = (param: string, message: string) => invalid(message, param, 'unsupported_parameter')
