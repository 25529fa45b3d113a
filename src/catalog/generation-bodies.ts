// Request bodies of POST endpoints as JSON Schema for OpenAPI. The text formats grow every month, and unknown members may be passed on,
// so these schemas describe what is checked and what is common; they do not restrict requests.
import { object as describe, free, type JsonSchema } from './endpoint.ts'

// null counts as absent, as the formats define it.
const string = (description: string): JsonSchema => ({ type: 'string', description })
const text = (description: string): JsonSchema => ({ type: ['string', 'null'], description })
const number = (description: string): JsonSchema => ({ type: ['number', 'null'], description })
const count = (description: string): JsonSchema => ({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description,
})
const boolean = (description: string): JsonSchema => ({ type: ['boolean', 'null'], description })
const anyObject = (description: string): JsonSchema => ({ ...free, type: ['object', 'null'], description })
const oneOf = (values: readonly string[], description: string): JsonSchema => ({
  type: 'string',
  enum: values,
  description,
})
const strings = (description: string): JsonSchema => ({
  type: ['array', 'null'],
  items: { type: 'string' },
  description,
})
const objects = (description: string, items: JsonSchema = free): JsonSchema => ({
  type: ['array', 'null'],
  items,
  description,
})

const object = (required: readonly string[], properties: Readonly<Record<string, JsonSchema>>): JsonSchema =>
  describe(properties, required)

/** Adds an example request that works as it is. */
const body = (example: object, properties: Readonly<Record<string, JsonSchema>>, required: string[]): JsonSchema => ({
  ...object(required, properties),
  examples: [example],
})

/** The maximum of answers per request in this format; the hold is multiplied by it. */
export const CHAT_ANSWERS_MAX = 128

const HELLO = 'Say hello in three languages.'

/** A part of a message, an item of an input, or a tool: its other members depend on its type. */
const typed = describe({ type: { type: 'string' } })
const choice = (description: string): JsonSchema => ({ ...free, type: ['string', 'object', 'null'], description })

/** Members of parts of one type; which of them are needed depends on the type, so none is required here. */
const part = (types: string, members: Readonly<Record<string, JsonSchema>>): JsonSchema =>
  describe({ type: string(types), ...members }, ['type'])
const sound = object(['data', 'format'], { data: string('The recording, as base64.'), format: string('wav or mp3.') })
const chatPart = part('text, image_url, input_audio or file.', {
  text: string('Of text: what is said.'),
  image_url: {
    ...object(['url'], {
      url: string('An https address, or data:image/png;base64,…'),
      detail: string('low, high or auto, where the model knows it.'),
    }),
    type: ['object', 'string'],
    description: 'Of image_url: the picture, or its address alone.',
  },
  input_audio: { ...sound, description: 'Of input_audio: the recording.' },
  file: {
    ...object([], {
      filename: string('Its name, with its ending.'),
      file_data: string('data:application/pdf;base64,…'),
    }),
    description: 'Of file: a document, such as a PDF.',
  },
})
const toolCall = object(['id', 'type', 'function'], {
  id: string('To be named by the tool turn that answers it.'),
  type: string('function.'),
  function: object(['name', 'arguments'], {
    name: string('Which function.'),
    arguments: string('Its arguments, as JSON in a text.'),
  }),
})
const block = part('text, image, document, tool_use or tool_result.', {
  text: string('Of text: what is said.'),
  source: {
    ...free,
    description:
      'Of image and document: {"type":"base64","media_type":"image/png","data":"…"} or {"type":"url","url":"…"}.',
  },
  id: string('Of tool_use: its id.'),
  name: string('Of tool_use: which tool.'),
  input: { ...free, description: 'Of tool_use: the arguments.' },
  tool_use_id: string('Of tool_result: which call it answers.'),
  content: { type: ['string', 'array'], items: typed, description: 'Of tool_result: what the tool said.' },
})

const stream = boolean('true answers with server-sent events.')
const tools = objects('Functions that the model may call.', typed)
const chatTool = describe(
  { type: { type: ['string', 'null'], description: 'function, if absent.' }, function: free },
  [],
)
const temperature = number('Commonly 0 to 2; the model has the last word.')
const topP = number('Commonly 0 to 1; some models reject it.')

export const chatBody = body(
  { model: 'alpha-5.4', messages: [{ role: 'user', content: HELLO }] },
  {
    model: string('A chat-capable id from GET /v1/models.'),
    messages: {
      type: 'array',
      minItems: 1,
      description: 'The conversation so far.',
      items: object(['role'], {
        role: oneOf(['system', 'developer', 'user', 'assistant', 'tool', 'function'], 'Who speaks.'),
        content: {
          type: ['string', 'array', 'null'],
          items: chatPart,
          description: 'Text, or parts: text, image_url, input_audio, file. Only an assistant turn may do without.',
        },
        name: text('Your own name for who speaks.'),
        tool_calls: objects('Of an assistant turn: the calls that it made.', toolCall),
        tool_call_id: text('Of a tool turn: which call it answers.'),
      }),
    },
    temperature,
    top_p: topP,
    frequency_penalty: number('Commonly -2 to 2.'),
    presence_penalty: number('Commonly -2 to 2.'),
    stop: {
      type: ['string', 'array', 'null'],
      items: { type: 'string' },
      description: 'Where to stop; depends on the model.',
    },
    n: { ...count('How many answers. Some models give only 1.'), maximum: CHAT_ANSWERS_MAX },
    max_tokens: count('Most tokens of output; may cover reasoning as well as text.'),
    max_completion_tokens: count('Alternative to max_tokens; a model may take only one of the two.'),
    stream,
    stream_options: {
      ...describe({ include_usage: boolean('Adds a last chunk with the usage.') }, []),
      type: ['object', 'null'],
    },
    tools: objects('Functions that the model may call.', chatTool),
    tool_choice: choice('none, auto, required, or one function.'),
    parallel_tool_calls: boolean('Whether several tools may be called at once.'),
    response_format: {
      ...describe({ type: { type: 'string', examples: ['text', 'json_object', 'json_schema'] } }),
      type: ['object', 'null'],
      description: 'The form of the answer.',
    },
    reasoning_effort: {
      type: ['string', 'null'],
      description: 'none, minimal, low, medium, high, xhigh or max; models take different ones.',
    },
    thinking: anyObject('{"type":"disabled"} turns hidden reasoning off, where the model allows it.'),
    seed: { type: ['integer', 'null'], description: 'For repeatable sampling, where the model has it.' },
    user: text('Your own name for the end user.'),
  },
  ['model', 'messages'],
)

export const responsesBody = body(
  { model: 'alpha-5.4', input: HELLO },
  {
    model: string('An id from GET /v1/models that offers the Responses protocol.'),
    input: {
      type: ['string', 'array'],
      minItems: 1,
      items: free,
      description: 'Text, or items of the conversation: messages, calls of functions and their outputs.',
    },
    instructions: { type: ['string', 'null'], description: 'What a system turn would say.' },
    max_output_tokens: count('Most tokens of output, reasoning included.'),
    tools,
    tool_choice: choice('none, auto, required, or one tool.'),
    parallel_tool_calls: boolean('Whether several tools may be called at once.'),
    text: anyObject('Form of the answer: format and verbosity.'),
    reasoning: anyObject('effort and summary.'),
    temperature,
    top_p: topP,
    stream,
    background: boolean(
      'true answers at once with a response that is `queued`; ask for it by its id until it has ended.',
    ),
  },
  ['model', 'input'],
)

export const compactBody = body(
  { model: 'alpha-5.4', input: HELLO },
  {
    model: string('An id from GET /v1/models whose vendor compacts.'),
    input: {
      type: ['string', 'array', 'null'],
      items: free,
      description: 'The conversation: text, or items. May be left out with `previous_response_id`.',
    },
    instructions: { type: ['string', 'null'], description: 'What a system turn would say.' },
    previous_response_id: text('A stored response of this account that the conversation ends with.'),
  },
  ['model'],
)

const messages: JsonSchema = {
  type: 'array',
  minItems: 1,
  description: 'The conversation so far.',
  items: object(['role', 'content'], {
    role: oneOf(['user', 'assistant', 'system'], 'Who speaks.'),
    content: { type: ['string', 'array'], items: block, description: 'Text, or content blocks.' },
  }),
}

const messagesMembers = {
  model: string('An id from GET /v1/models that offers the Messages protocol.'),
  messages,
  system: { type: ['string', 'array', 'null'], items: typed, description: 'Instructions before the conversation.' },
  tools: objects('Functions that the model may call, each with a `name`, and tools of the vendor, with a `type`.'),
  tool_choice: anyObject('auto, any, none, or one tool.'),
  thinking: anyObject('enabled with a budget, adaptive, or disabled.'),
}

export const messagesBody = body(
  { model: 'beta-sonnet-4-6', max_tokens: 512, messages: [{ role: 'user', content: HELLO }] },
  {
    ...messagesMembers,
    max_tokens: {
      type: 'integer',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Most tokens of output.',
    },
    stop_sequences: strings('Where to stop.'),
    temperature,
    top_p: topP,
    stream,
    metadata: anyObject('user_id: your own name for the end user.'),
  },
  ['model', 'messages', 'max_tokens'],
)

export const countTokensBody = body(
  { model: 'beta-sonnet-4-6', messages: [{ role: 'user', content: HELLO }] },
  messagesMembers,
  ['model', 'messages'],
)

const address = (description: string): JsonSchema => ({
  ...describe({ url: { type: 'string' } }),
  type: ['string', 'object', 'null'],
  description,
})
const addresses = (description: string): JsonSchema => ({
  ...describe({ url: { type: 'string' } }),
  type: ['string', 'object', 'array', 'null'],
  items: { ...describe({ url: { type: 'string' } }), type: ['string', 'object'] },
  description,
})

/** The maximum for one video request; the texts of the prompt and of `content` count together. */
export const VIDEO_LIMITS = { textChars: 32_000, parts: 64, seed: 2 ** 32 - 1, callbackChars: 2_048 } as const
export const VIDEO_RATIOS = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9', 'adaptive'] as const

/** The sizes of the shape, as the resolution and ratio that a job has. */
export const VIDEO_SIZES: Readonly<Record<string, { readonly resolution: string; readonly ratio: string }>> = {
  '1280x720': { resolution: '720p', ratio: '16:9' },
  '720x1280': { resolution: '720p', ratio: '9:16' },
  '720x720': { resolution: '720p', ratio: '1:1' },
  '1920x1080': { resolution: '1080p', ratio: '16:9' },
  '1080x1920': { resolution: '1080p', ratio: '9:16' },
  '1080x1080': { resolution: '1080p', ratio: '1:1' },
  '854x480': { resolution: '480p', ratio: '16:9' },
  '480x854': { resolution: '480p', ratio: '9:16' },
}
export const VIDEO_SIZE_DEFAULT = '720x1280'

/** As `videos.create()` of the openai SDK sends it. */
export const openaiVideoBody = body(
  { model: 'videogen-2.0', prompt: 'A paper boat drifts down a stream', seconds: '4' },
  {
    model: string('A video model from GET /v1/models: videogen-2.0 or videogen-2.5.'),
    prompt: { ...text('What the video shows: at most 32,000 characters.'), maxLength: VIDEO_LIMITS.textChars },
    seconds: { type: ['string', 'integer'], default: '4', description: 'How long it is: from 4 on.' },
    size: { type: 'string', enum: Object.keys(VIDEO_SIZES), default: VIDEO_SIZE_DEFAULT },
    input_reference: {
      type: ['string', 'object'],
      properties: { image_url: { type: 'string' } },
      additionalProperties: true,
      description: 'The first frame: a picture of up to 20 MB as a file, or its address or data URI as `image_url`.',
    },
  },
  ['prompt', 'model'],
)

export const videoBody = body(
  { model: 'videogen-2.0', prompt: 'A paper boat drifts down a stream', duration: 5 },
  {
    model: string('A video model from GET /v1/models: videogen-2.0 or videogen-2.5.'),
    prompt: {
      ...text('What the video shows: at most 32,000 characters, together with the texts of content.'),
      maxLength: VIDEO_LIMITS.textChars,
    },
    first_frame: address('Address or data URI of the first frame. Also: image, image_url, first_frame_url.'),
    last_frame: address('Address or data URI of the last frame. Needs a first one. Also: last_frame_url, end_image.'),
    image_urls: addresses('Reference images: addresses or data URIs. Also: images, reference_images.'),
    video_urls: addresses('Addresses of reference videos. Also: videos, reference_videos.'),
    audio_urls: addresses(
      'Addresses of reference sounds, beside at least one image or video. Also: audios, reference_audios.',
    ),
    content: {
      ...objects("The vendor's own parts, instead of the fields above: text, image_url, video_url, audio_url.", typed),
      maxItems: VIDEO_LIMITS.parts,
    },
    ratio: { type: ['string', 'null'], enum: [...VIDEO_RATIOS, null], description: 'Also: aspect_ratio.' },
    duration: {
      type: ['integer', 'string', 'null'],
      default: 5,
      minimum: 1,
      pattern: '^[0-9]{1,4}$',
      description: 'Seconds: 4 to 15 for videogen-2.0, 4 to 30 for videogen-2.5. Also: seconds, duration_seconds.',
    },
    resolution: {
      type: ['string', 'null'],
      pattern: '^(480|720|1080)[pP]$',
      default: '720p',
      examples: ['480p', '720p', '1080p'],
      description: '480p, 720p or 1080p, which is only for videogen-2.0.',
    },
    seed: {
      type: ['integer', 'null'],
      minimum: -1,
      maximum: VIDEO_LIMITS.seed,
      description: 'For repeatable results; -1 for any.',
    },
    generate_audio: boolean('Whether the video has sound. Also: with_audio, audio.'),
    watermark: boolean('Whether the vendor marks the video.'),
    return_last_frame: boolean('Whether the last frame is stored as a picture as well.'),
    callback_url: {
      ...text('A public address to which a signed notice is sent when the job has ended.'),
      maxLength: VIDEO_LIMITS.callbackChars,
    },
  },
  ['model'],
)

export const quoteBody: JsonSchema = {
  ...free,
  description:
    'The body of a paid request, exactly as it would be sent; of a data endpoint its parameters, by their names, with `endpoint` in the query.',
  examples: [{ model: 'alpha-5.4', max_tokens: 200, messages: [{ role: 'user', content: HELLO }] }],
}
