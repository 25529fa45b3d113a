// The request bodies of the text endpoints. Each member is described once: what OpenAPI says of it, what is checked,
// and that it goes to vendors. The formats grow every month, so what is not described is not checked; `forwarded` names
// what of it vendors get.
import { isObject, type Json } from '../kernel/json.ts'
import {
  Body,
  boolean,
  choice,
  type Described,
  isAbsent,
  isTexts,
  list,
  listCheck,
  type Members,
  mustBe,
  nullable,
  number,
  object,
  oneOf,
  open,
  type Problem,
  record,
  required,
  strings,
  text,
  textOr,
  under,
  wholeNumber,
  word,
  wrong,
} from './described.ts'
import { object as describe, free, having, type JsonSchema, loose } from './endpoint.ts'

/** The body of a text format. */
export class TextBody extends Body {
  /** Every member that vendors get. */
  readonly forwarded: readonly string[]
  /** The format's own names of the output limit, the one with precedence first; the last one is sent. */
  readonly limits: readonly string[]

  /** `forwarded`: members besides those that are described. */
  constructor(
    example: object,
    members: Members,
    { forwarded, limits = [] }: { readonly forwarded: string; readonly limits?: readonly string[] },
  ) {
    super(example, members)
    this.forwarded = [...Object.keys(members), ...forwarded.trim().split(/\s+/)]
    this.limits = limits
  }
}

/** The maximum of answers per request in this format; the hold is multiplied by it. */
export const CHAT_ANSWERS_MAX = 128

const HELLO = 'Say hello in three languages.'
const saying = [{ role: 'user', content: HELLO }]

const said = (description: string): JsonSchema => ({ type: 'string', description })
const isText = (value: unknown): value is string => typeof value === 'string'

/** A part of a message, an item of an input, or a tool: its other members depend on its type. */
const typed = describe({ type: { type: 'string' } })
/** Members of parts of one type; which of them are needed depends on the type, so none is required here. */
const part = (types: string, members: Readonly<Record<string, JsonSchema>>): JsonSchema =>
  having('type', { type: said(types), ...members })

/** What OpenAPI says, and a check of its own. */
const checked = (schema: JsonSchema | undefined, check: (value: Json) => Problem | undefined): Described => ({
  schema,
  check: (value) => (isObject(value) ? check(value) : mustBe('an object', value)),
})
/** A part, of which `check` checks what depends on its type. */
const typedPart = (schema: JsonSchema, check: (value: Json) => Problem | undefined): Described => ({
  schema,
  check: (value) => (isObject(value) && isText(value.type) ? check(value) : wrong('must be an object with a "type".')),
})
/** The first of the members that is no text. */
const textsOf = (value: Json, names: readonly string[]): Problem | undefined => {
  const name = names.find((one) => !isText(value[one]))
  return name === undefined ? undefined : mustBe('a string', value[name], name)
}
const within = (name: string, problem: Problem | undefined) => problem && under(name, problem)

const conversation = (item: Described, least: string, description: string): Described => ({
  schema: { type: 'array', minItems: 1, description, items: item.schema },
  check: listCheck(item, { what: 'an array of objects', least }),
})

const temperature = number('Commonly 0 to 2; the model has the last word.')
const topP = number('Commonly 0 to 1; some models reject it.')
const stream = boolean('true answers with server-sent events.')
/** What several formats have and OpenAPI does not. */
const undocumented = {
  metadata: record(),
  service_tier: word(),
  store: boolean(),
  safety_identifier: text(),
  prompt_cache_key: text(),
  top_logprobs: wholeNumber(0),
}

// Chat.

const chatPart: Described = checked(
  part('text, image_url, input_audio or file.', {
    text: said('Of text: what is said.'),
    image_url: {
      ...having('url', {
        url: said('An https address, or data:image/png;base64,…'),
        detail: said('low, high or auto, where the model knows it.'),
      }),
      type: ['object', 'string'],
      description: 'Of image_url: the picture, or its address alone.',
    },
    input_audio: {
      ...describe({ data: said('The recording, as base64.'), format: said('wav or mp3.') }),
      description: 'Of input_audio: the recording.',
    },
    file: {
      ...loose({ filename: said('Its name, with its ending.'), file_data: said('data:application/pdf;base64,…') }),
      description: 'Of file: a document, such as a PDF.',
    },
  }),
  (value) => {
    const { type, image_url: image } = value
    if (!isText(type)) return wrong('must be a string, such as "text".', 'type')
    if (type === 'image_url' && !(isObject(image) && isText(image.url)))
      return wrong('must be a string: an address or a data URI.', 'image_url.url')
    return type === 'text' ? textsOf(value, ['text']) : undefined
  },
)

const toolCall = checked(
  describe({
    id: said('To be named by the tool turn that answers it.'),
    type: said('function.'),
    function: describe({ name: said('Which function.'), arguments: said('Its arguments, as JSON in a text.') }),
  }),
  ({ id, type, function: called }) => {
    if (!isText(id)) return wrong('must be a string.', 'id')
    if (type === 'custom') return undefined
    if (!isObject(called) || !isText(called.name)) return wrong('must be a string.', 'function.name')
    return isText(called.arguments) ? undefined : wrong('must be a string of JSON.', 'function.arguments')
  },
)

const toolCalls = list(toolCall, 'Of an assistant turn: the calls that it made.')
const chatParts = listCheck(chatPart, { what: 'a string or an array of parts' })

const CHAT_ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

const message = checked(
  having('role', {
    role: oneOf(CHAT_ROLES, 'Who speaks.').schema,
    content: {
      type: ['string', 'array', 'null'],
      items: chatPart.schema,
      description: 'Text, or parts: text, image_url, input_audio, file. Only an assistant turn may do without.',
    },
    name: text('Your own name for who speaks.').schema,
    tool_calls: toolCalls.schema,
    tool_call_id: text('Of a tool turn: which call it answers.').schema,
  }),
  (turn) => {
    const { role, content } = turn
    const other = role === 'user' || role === 'system' ? undefined : roleProblem(turn)
    if (other || isText(content)) return other
    if (!isAbsent(content)) return within('content', chatParts(content, ''))
    if ((role === 'function' && content === null) || (role === 'assistant' && speaksOtherwise(turn))) return undefined
    return wrong(content === null ? 'must not be null here.' : 'is required.', 'content')
  },
)

/** What is wrong with the role, or with what a turn of this role must have. */
function roleProblem({ role, name, tool_call_id: id, tool_calls: calls }: Json): Problem | undefined {
  if (!isText(role) || !CHAT_ROLES.includes(role)) return mustBe(`one of ${CHAT_ROLES.join(', ')}`, role, 'role')
  if (role === 'tool' && !(isText(id) && id !== ''))
    return wrong('is required in a message with role "tool".', 'tool_call_id')
  if (role === 'function' && !isText(name)) return wrong('is required in a message with role "function".', 'name')
  return role === 'assistant' && !isAbsent(calls) ? within('tool_calls', toolCalls.check?.(calls, '')) : undefined
}

/** Whether an assistant turn without content has another kind: a tool call, a refusal or audio. */
function speaksOtherwise({ tool_calls: calls, refusal, audio, function_call: called }: Json): boolean {
  return (Array.isArray(calls) && calls.length > 0) || isText(refusal) || isObject(audio) || isObject(called)
}

const chatTool = checked(
  loose({ type: { type: ['string', 'null'], description: 'function, if absent.' }, function: free }),
  ({ type, function: named }) => {
    if (!isText(type)) return wrong('must be a string, such as "function".', 'type')
    if (type !== 'function') return undefined
    if (!isObject(named) || !isText(named.name)) return wrong('must be a string.', 'function.name')
    return isAbsent(named.parameters) || isObject(named.parameters)
      ? undefined
      : wrong('must be an object (a JSON schema).', 'function.parameters')
  },
)

const responseFormat = checked(
  {
    ...describe({ type: { type: 'string', examples: ['text', 'json_object', 'json_schema'] } }),
    type: ['object', 'null'],
    description: 'The form of the answer.',
  },
  ({ type, json_schema: named }) => {
    if (!isText(type)) return wrong('must be a string.', 'type')
    if (type !== 'json_schema') return undefined
    if (!isObject(named) || !isText(named.name)) return wrong('must be a string.', 'json_schema.name')
    return isAbsent(named.schema) || isObject(named.schema)
      ? undefined
      : wrong('must be an object.', 'json_schema.schema')
  },
)

export const chatBody = new TextBody(
  { model: 'alpha-5.4', messages: saying },
  {
    model: required(text('A chat-capable id from GET /v1/models.')),
    messages: required(conversation(message, 'message', 'The conversation so far.')),
    temperature,
    top_p: topP,
    frequency_penalty: number('Commonly -2 to 2.'),
    presence_penalty: number('Commonly -2 to 2.'),
    stop: {
      schema: {
        type: ['string', 'array', 'null'],
        items: { type: 'string' },
        description: 'Where to stop; depends on the model.',
      },
      check: (value) =>
        isText(value) || isTexts(value) ? undefined : wrong('must be a string or an array of strings.'),
    },
    n: wholeNumber(1, 'How many answers. Some models give only 1.', CHAT_ANSWERS_MAX),
    max_tokens: wholeNumber(1, 'Most tokens of output; may cover reasoning as well as text.'),
    max_completion_tokens: wholeNumber(1, 'Alternative to max_tokens; a model may take only one of the two.'),
    stream,
    stream_options: nullable(object({ include_usage: boolean('Adds a last chunk with the usage.') })),
    tools: list(chatTool, 'Functions that the model may call.'),
    tool_choice: choice('none, auto, required, or one function.'),
    parallel_tool_calls: boolean('Whether several tools may be called at once.'),
    response_format: responseFormat,
    reasoning_effort: word('none, minimal, low, medium, high, xhigh or max; models take different ones.'),
    thinking: record('{"type":"disabled"} turns hidden reasoning off, where the model allows it.'),
    seed: wholeNumber(Number.MIN_SAFE_INTEGER, 'For repeatable sampling, where the model has it.'),
    user: text('Your own name for the end user.'),
    ...undocumented,
    logprobs: boolean(),
    reasoning_split: boolean(),
    verbosity: word(),
    functions: list(record()),
    logit_bias: record(),
    audio: record(),
    prediction: record(),
  },
  {
    limits: ['max_completion_tokens', 'max_tokens'],
    forwarded: `
      function_call modalities moderation prompt_cache_options prompt_cache_retention web_search_options reasoning reasoning_format
      include_reasoning enable_thinking thinking_budget chat_template_kwargs documents speed inference_geo serviceTier top_k top_a min_p
      typical_p repetition_penalty repeat_penalty repeat_last_n length_penalty min_tokens ignore_eos stop_token_ids
      include_stop_str_in_output skip_special_tokens random_seed prompt_mode safe_prompt grammar json_schema guided_json guided_regex
      guided_choice guided_grammar structured_outputs mirostat mirostat_tau mirostat_eta cache_prompt add_generation_prompt
      continue_final_message echo partial cache_control
    `,
  },
)

// Responses.

const tools = 'Functions that the model may call.'
const modelId = required(text('An id from GET /v1/models that offers the Responses protocol.'))

/** The members of an item that must be texts. */
const ITEM_TEXTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['function_call', ['call_id', 'name', 'arguments']],
  ['function_call_output', ['call_id']],
  ['custom_tool_call', ['call_id', 'name', 'input']],
  ['custom_tool_call_output', ['call_id']],
])

const role = oneOf(['user', 'assistant', 'system', 'developer'], 'Who speaks.')
const responsePart = typedPart(typed, (value) =>
  /_text$/.test(String(value.type)) ? textsOf(value, ['text']) : undefined,
)
const responseParts = listCheck(responsePart, { what: 'a string or an array of parts' })

const item = checked(free, (value) => {
  const type = value.type ?? 'message'
  if (!isText(type)) return mustBe('a string', type, 'type')
  const texts = ITEM_TEXTS.get(type)
  if (texts) {
    const { output } = value
    const isOutput = texts.length > 1 || isText(output) || Array.isArray(output)
    return textsOf(value, texts) ?? (isOutput ? undefined : mustBe('a string or an array of parts', output, 'output'))
  }
  if (type !== 'message') return undefined
  const unknown = role.check?.(value.role, 'role')
  if (unknown) return under('role', unknown)
  return isText(value.content) ? undefined : within('content', responseParts(value.content, ''))
})

const responseTool = checked(typed, ({ type, name, tools: grouped }) => {
  if (!isText(type)) return wrong('must be a string, such as "function".', 'type')
  if (type === 'function' && !isText(name))
    return wrong('must be a string; in this format a function is not nested.', 'name')
  if (type !== 'namespace') return undefined
  return isText(name) ? within('tools', groupedTools(grouped, '')) : mustBe('a string', name, 'name')
})
const groupedTools = listCheck(
  checked(undefined, (tool) => (tool.type === 'namespace' ? undefined : responseTool.check?.(tool, ''))),
  { what: 'an array of tools' },
)

const responsesMembers = {
  instructions: text('What a system turn would say.'),
  previous_response_id: text('A stored response of this account that the conversation ends with.'),
}
const inputItems = { check: listCheck(item, { what: 'an array', least: 'item' }) }
const input = (description: string, type: readonly string[], more = {}) =>
  textOr(inputItems, 'a string or an array of items', { type, ...more, items: free, description })

export const responsesBody = new TextBody(
  { model: 'alpha-5.4', input: HELLO },
  {
    model: modelId,
    input: required(
      input(
        'Text, or items of the conversation: messages, calls of functions and their outputs.',
        ['string', 'array'],
        { minItems: 1 },
      ),
      // A prompt that the vendor keeps may be all of the input.
      ({ prompt }) => !isObject(prompt),
    ),
    instructions: responsesMembers.instructions,
    max_output_tokens: wholeNumber(1, 'Most tokens of output, reasoning included.'),
    tools: list(responseTool, tools),
    tool_choice: choice('none, auto, required, or one tool.'),
    parallel_tool_calls: boolean('Whether several tools may be called at once.'),
    text: record('Form of the answer: format and verbosity.'),
    reasoning: record('effort and summary.'),
    temperature,
    top_p: topP,
    stream,
    background: boolean(
      'true answers at once with a response that is `queued`; ask for it by its id until it has ended.',
    ),
    ...undocumented,
    user: text(),
    truncation: word(),
    max_tool_calls: wholeNumber(1),
    prompt: record(),
    stream_options: record(),
    include: strings(),
    previous_response_id: text(),
    conversation: {
      check: (value) =>
        isText(isObject(value) ? value.id : value)
          ? undefined
          : mustBe('the id of a conversation, or an object with its id', value),
    },
  },
  {
    limits: ['max_output_tokens'],
    forwarded: `
      access_programs context_management image moderation prompt_cache_options prompt_cache_retention client_metadata frequency_penalty
      presence_penalty top_k speed inference_geo serviceTier
    `,
  },
)

export const compactBody = new Body(
  { model: 'alpha-5.4', input: HELLO },
  {
    model: required(text('An id from GET /v1/models whose vendor compacts.')),
    input: input('The conversation: text, or items. May be left out with `previous_response_id`.', [
      'string',
      'array',
      'null',
    ]),
    ...responsesMembers,
  },
)

// Messages.

const block = typedPart(
  part('text, image, document, tool_use or tool_result.', {
    text: said('Of text: what is said.'),
    source: {
      ...free,
      description:
        'Of image and document: {"type":"base64","media_type":"image/png","data":"…"} or {"type":"url","url":"…"}.',
    },
    id: said('Of tool_use: its id.'),
    name: said('Of tool_use: which tool.'),
    input: { ...free, description: 'Of tool_use: the arguments.' },
    tool_use_id: said('Of tool_result: which call it answers.'),
    content: { type: ['string', 'array'], items: typed, description: 'Of tool_result: what the tool said.' },
  }),
  (value) =>
    value.type === 'text' || value.type === 'tool_result'
      ? textsOf(value, [value.type === 'text' ? 'text' : 'tool_use_id'])
      : undefined,
)
const blocks = { check: listCheck(block, { what: 'an array' }) }
const content = (schema: JsonSchema) => textOr(blocks, 'a string or an array of blocks', schema)

const messagesMembers = {
  model: required(text('An id from GET /v1/models that offers the Messages protocol.')),
  messages: required(
    conversation(
      object({
        role: required(oneOf(['user', 'assistant', 'system'], 'Who speaks.')),
        content: required(
          content({ type: ['string', 'array'], items: block.schema, description: 'Text, or content blocks.' }),
        ),
      }),
      'message',
      'The conversation so far.',
    ),
  ),
  system: content({
    type: ['string', 'array', 'null'],
    items: typed,
    description: 'Instructions before the conversation.',
  }),
  tools: list(
    checked(undefined, ({ name, type }) =>
      isText(name) || isText(type) ? undefined : wrong('must be a string.', 'name'),
    ),
    'Functions that the model may call, each with a `name`, and tools of the vendor, with a `type`.',
  ),
  tool_choice: record('auto, any, none, or one tool.'),
  thinking: open('enabled with a budget, adaptive, or disabled.', { budget_tokens: wholeNumber(1) }),
}

export const messagesBody = new TextBody(
  { model: 'beta-sonnet-4-6', max_tokens: 512, messages: saying },
  {
    ...messagesMembers,
    // Zero is valid: such a request only warms the cache.
    max_tokens: required(wholeNumber(0, 'Most tokens of output.')),
    stop_sequences: strings('Where to stop.'),
    temperature,
    top_p: topP,
    stream,
    metadata: record('user_id: your own name for the end user.'),
    output_config: record(),
    output_format: record(),
    context_management: record(),
    cache_control: record(),
    // Vendors other than the format's own take -1 for no limit.
    thread: record(),
    service_tier: word(),
    top_k: wholeNumber(-1),
  },
  {
    limits: ['max_tokens'],
    forwarded: `
      compaction container diagnostics inference_geo mcp_servers speed user_profile_id workspace_id fallback_credit_token serviceTier
      reasoning_effort
    `,
  },
)

export const countTokensBody = new Body({ model: 'beta-sonnet-4-6', messages: saying }, messagesMembers)

export const quoteBody: JsonSchema = {
  ...free,
  description:
    'The body of a paid request, exactly as it would be sent; of a data endpoint its parameters, by their names, with `endpoint` in the query.',
  examples: [{ model: 'alpha-5.4', max_tokens: 200, messages: saying }],
}
