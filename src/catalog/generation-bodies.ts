// What the POST endpoints take, as JSON Schema for OpenAPI. The text formats grow every month and pass unknown members on,
// so these schemas describe what is checked and what is commonly sent; they are no fence.
import type { JsonSchema } from './endpoint.ts'

const string = (description: string): JsonSchema => ({ type: 'string', description })
const number = (description: string): JsonSchema => ({ type: ['number', 'null'], description })
const count = (description: string): JsonSchema => ({ type: ['integer', 'null'], minimum: 1, description })
const boolean = (description: string): JsonSchema => ({ type: ['boolean', 'null'], description })
const oneOf = (values: readonly string[], description: string): JsonSchema => ({ enum: values, description })
const strings = (description: string): JsonSchema => ({ type: 'array', items: { type: 'string' }, description })
const objects = (description: string): JsonSchema => ({ type: 'array', items: { type: 'object' }, description })
const anything = (description: string): JsonSchema => ({ description })

function object(required: readonly string[], properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', required, properties, additionalProperties: true }
}

const stream = boolean('true answers with server-sent events.')
const tools = objects('Functions that the model may call.')
const temperature = number('Commonly 0 to 2; the model has the last word.')
const topP = number('Commonly 0 to 1; some models refuse it.')

export const chatBody = object(['model', 'messages'], {
  model: string('A chat-capable id from GET /v1/models.'),
  messages: {
    type: 'array',
    minItems: 1,
    description: 'The conversation so far.',
    items: object(['role'], {
      role: oneOf(['system', 'developer', 'user', 'assistant', 'tool', 'function'], 'Who speaks.'),
      content: {
        type: ['string', 'array', 'null'],
        items: { type: 'object' },
        description: 'Text, or parts: text, image_url, input_audio, file.',
      },
      tool_calls: objects('Of an assistant turn.'),
      tool_call_id: string('Of a tool turn: which call it answers.'),
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
  n: count('How many answers. Some models give only 1.'),
  max_tokens: count('Most tokens of output; may cover reasoning as well as text.'),
  max_completion_tokens: count('Alternative to max_tokens; a model may take only one of the two.'),
  stream,
  stream_options: {
    type: ['object', 'null'],
    properties: { include_usage: boolean('Adds a last chunk with the usage.') },
  },
  tools,
  tool_choice: anything('none, auto, required, or one function.'),
  parallel_tool_calls: boolean('Whether several tools may be called at once.'),
  response_format: {
    type: 'object',
    properties: { type: oneOf(['text', 'json_object', 'json_schema'], 'The form of the answer.') },
  },
  reasoning_effort: {
    type: ['string', 'null'],
    description: 'none, minimal, low, medium, high, xhigh or max; models take different ones.',
  },
  thinking: {
    type: 'object',
    description: '{"type":"disabled"} turns hidden reasoning off, where the model allows it.',
  },
  seed: { type: ['integer', 'null'], description: 'For repeatable sampling, where the model has it.' },
  user: string('Your own name for the end user.'),
})

export const responsesBody = object(['model', 'input'], {
  model: string('An id from GET /v1/models that offers the Responses protocol.'),
  input: { type: ['string', 'array'], items: { type: 'object' }, description: 'Text, or items of the conversation.' },
  instructions: { type: ['string', 'null'], description: 'What a system turn would say.' },
  max_output_tokens: count('Most tokens of output, reasoning included.'),
  tools,
  tool_choice: anything('none, auto, required, or one tool.'),
  parallel_tool_calls: boolean('Whether several tools may be called at once.'),
  text: { type: 'object', description: 'Form of the answer: format and verbosity.' },
  reasoning: { type: 'object', description: 'effort and summary.' },
  temperature,
  top_p: topP,
  stream,
})

const messages: JsonSchema = {
  type: 'array',
  minItems: 1,
  description: 'The conversation so far.',
  items: object(['role', 'content'], {
    role: oneOf(['user', 'assistant', 'system'], 'Who speaks.'),
    content: { type: ['string', 'array'], items: { type: 'object' }, description: 'Text, or content blocks.' },
  }),
}

const messagesMembers = {
  model: string('An id from GET /v1/models that offers the Messages protocol.'),
  messages,
  system: {
    type: ['string', 'array'],
    items: { type: 'object' },
    description: 'Instructions before the conversation.',
  },
  tools,
  tool_choice: { type: 'object', description: 'auto, any, none, or one tool.' },
  thinking: { type: 'object', description: 'enabled with a budget, adaptive, or disabled.' },
}

export const messagesBody = object(['model', 'messages', 'max_tokens'], {
  ...messagesMembers,
  max_tokens: { type: 'integer', minimum: 0, description: 'Most tokens of output.' },
  stop_sequences: strings('Where to stop.'),
  temperature,
  top_p: topP,
  stream,
  metadata: { type: 'object', description: 'user_id: your own name for the end user.' },
})

export const countTokensBody = object(['model', 'messages'], messagesMembers)

const SIZES =
  'auto 1:1 3:2 2:3 4:3 3:4 16:9 9:16 21:9 9:21 1024x1024 1536x1024 1024x1536 1024x768 768x1024 1536x864 864x1536 2016x864 864x2016 2048x2048 2048x1360 1360x2048 2048x1536 1536x2048 2048x1152 1152x2048 2688x1152 1152x2688 3840x2160 2160x3840 3840x1648 1648x3840'

export const imagesBody = object(['model', 'prompt'], {
  model: string('An image model from GET /v1/models, such as alpha-image-2.'),
  prompt: string('Subject, scene, composition, style, material, lighting, colours, and whether text appears.'),
  n: { const: 1, default: 1, description: 'Only 1.' },
  size: { enum: SIZES.split(' '), default: 'auto', description: 'A ratio, or pixels.' },
  quality: { enum: ['low', 'medium', 'high', 'auto'], default: 'auto' },
  resolution: { enum: ['1k', '2k', '4k'], default: '1k', description: 'The tier that goes with a ratio.' },
  image_urls: {
    ...strings('Reference images: public addresses or data URIs; each up to 20 MB, together up to 256 MB.'),
    maxItems: 16,
  },
  output_format: { enum: ['png', 'jpeg', 'webp'], default: 'png' },
  stream,
})

export const videoBody = object(['model'], {
  model: oneOf(['videogen-2.0', 'videogen-2.5'], 'The video model.'),
  prompt: string('What the video shows: at most 32,000 characters, together with the texts of content.'),
  first_frame: string('Address or data URI of the first frame. Also: image, image_url, first_frame_url.'),
  last_frame: string('Address or data URI of the last frame. Also: last_frame_url, end_image.'),
  image_urls: strings('Reference images: addresses or data URIs. Also: images, reference_images.'),
  video_urls: strings('Addresses of reference videos. Also: videos, reference_videos.'),
  audio_urls: strings('Addresses of reference sounds. Also: audios, reference_audios.'),
  content: objects(
    "The vendor's own parts, instead of the fields above: text, image_url, video_url, audio_url; at most 64.",
  ),
  ratio: {
    enum: ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9', 'adaptive'],
    description: 'Also: aspect_ratio.',
  },
  duration: {
    type: ['integer', 'string'],
    default: 5,
    description: 'Seconds: 4 to 15 for videogen-2.0, 4 to 30 for videogen-2.5. Also: seconds, duration_seconds.',
  },
  resolution: {
    enum: ['480p', '720p', '1080p'],
    default: '720p',
    description: '1080p only for videogen-2.0.',
  },
  seed: { type: 'integer', minimum: -1, maximum: 4_294_967_295, description: 'For repeatable results; -1 for any.' },
  generate_audio: boolean('Whether the video has sound. Also: with_audio, audio.'),
  watermark: boolean('Whether the vendor marks the video.'),
  return_last_frame: boolean('Whether the last frame is stored as a picture as well.'),
  callback_url: string('A public address to which a signed notice is sent when the job has ended.'),
})

export const quoteBody: JsonSchema = {
  type: 'object',
  additionalProperties: true,
  description:
    'The body of a paid request, exactly as it would be sent; of a data endpoint its parameters, by their names, with `endpoint` in the query.',
}
