// The parameters of a request that failed, for its story: settings by the names that the formats give them, and how much there was of the
// rest. Nothing of what was said, and nothing under a name of the caller's own.
import { isObject } from '../protocols/check.ts'

/** Numbers, switches and short words. */
const SETTINGS = [
  ...['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens', 'temperature', 'top_p', 'topP'],
  ...['top_k', 'topK', 'n', 'seed', 'presence_penalty', 'frequency_penalty', 'reasoning_effort', 'verbosity', 'store'],
  ...['parallel_tool_calls', 'tool_choice', 'service_tier', 'truncation', 'dimensions', 'encoding_format', 'top_n'],
  ...['voice', 'speed', 'response_format', 'language'],
]
/** Lists of which only the length is told. */
const COUNTED = ['messages', 'contents', 'tools', 'documents']
const WORD_CHARS_MAX = 40
/** Reading a longer one again would cost more than it tells. */
const SENT_CHARS_MAX = 65_536

type Asked = Record<string, string | number | boolean>

export function askedOf(sent: string | undefined): Asked | undefined {
  if (sent === undefined || sent.length > SENT_CHARS_MAX) return undefined
  const body = membersOf(sent)
  const asked: Asked = {}
  for (const members of [body, body.generationConfig]) {
    if (!isObject(members)) continue
    for (const name of SETTINGS) if (isSetting(members[name])) asked[name] = members[name]
  }
  for (const name of COUNTED) {
    const list = body[name]
    if (Array.isArray(list) && list.length > 0) asked[name] = list.length
  }
  return Object.keys(asked).length > 0 ? asked : undefined
}

function isSetting(value: unknown): value is string | number | boolean {
  return typeof value === 'number' || typeof value === 'boolean' || isWord(value)
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= WORD_CHARS_MAX
}

function membersOf(sent: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(sent)
    return isObject(value) ? value : {}
  } catch {
    // A form is no JSON.
    return {}
  }
}
