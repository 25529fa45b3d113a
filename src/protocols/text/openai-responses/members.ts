// The members that the open specification requires of a response object, and what they are when nobody said.
import { memberSpan } from '../../../kernel/json.ts'
import { isObject, type Json, objects } from '../../check.ts'

const DEFAULTS: Json = {
  background: false,
  completed_at: null,
  error: null,
  frequency_penalty: 0,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: null,
  safety_identifier: null,
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  usage: null,
}

/** What a request says of these, and the rest as it is by default. */
export function echoed(request: Json): Json {
  const members: Json = {}
  for (const name in DEFAULTS) members[name] = request[name] ?? DEFAULTS[name]
  members.tools = objects(members.tools).map((tool) => whole(tool, false))
  return members
}

function whole(tool: Json, strict: boolean | null): Json {
  return tool.type === 'function' ? { description: null, parameters: null, strict, ...tool } : tool
}

/**
 * The response object that starts at `at` of a text, as a vendor sent it, with the public name of the model and with the
 * members that it lacks. The text has one character per byte, and so has what was read of it.
 */
export function mended(text: string, at: number, response: Json, uid: string): string {
  const cuts: { from: number; to: number; put: string }[] = []
  let missing = ''
  for (const name in DEFAULTS)
    if (!Object.hasOwn(response, name)) missing += `${JSON.stringify(name)}:${JSON.stringify(DEFAULTS[name])},`
  if (missing !== '') cuts.push({ from: text.indexOf('{', at) + 1, to: text.indexOf('{', at) + 1, put: missing })
  const replace = (name: string, value: unknown) => {
    const span = memberSpan(text, name, at)
    if (span) cuts.push({ from: span[0], to: span[1], put: JSON.stringify(value) })
  }
  if (typeof response.model === 'string' && response.model !== uid) replace('model', uid)
  const tools: unknown[] = Array.isArray(response.tools) ? response.tools : []
  const complete = tools.map((tool) => (isObject(tool) ? whole(tool, null) : tool))
  if (complete.some((tool, i) => isObject(tool) && Object.keys(tool).length > Object.keys(tools[i] as Json).length))
    replace('tools', complete)
  let out = ''
  let done = 0
  for (const { from, to, put } of cuts.sort((a, b) => a.from - b.from)) {
    out += text.slice(done, from) + put
    done = to
  }
  return out + text.slice(done)
}
