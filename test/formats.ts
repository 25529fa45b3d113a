// What the tests know of each format, in one place: where its callers ask, what they send at least, and what its
// vendors answer.
import type { CatalogInput } from '../src/catalog/document.ts'
import { gemini } from '../src/extensions/gemini/extension.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { CLIENT_FORMATS as ALL } from '../src/meter/kind.ts'
import { addFormats } from '../src/protocols/text/formats.ts'
import { PICTURE } from './picture.ts'
import { isOff } from './runs.ts'

// As compose.ts does for gateways.
addFormats(gemini.formats)
/** What callers of the gateways of this run can speak. */
export const CLIENT_FORMATS = ALL.filter((name) => name !== 'gemini' || !isOff(name))

type Json = Record<string, any>

type Counts = readonly [input: number, output: number]
const FIVE: Counts = [5, 5]

interface Format {
  readonly path: (model: string, stream?: boolean) => string
  /** Where the addresses of before lead. */
  readonly oldPath: (model: string) => string
  /** The least that can be asked, of so many tokens at most. */
  readonly body: (prompt: string, most?: number) => Json
  /** Offers the tool `f`. */
  readonly tools: readonly object[]
  readonly usage: (input: number, output: number) => Json
  /** A whole answer of a vendor; `before`: items in front of the text, or what a search found. */
  readonly answer: (usage: unknown, text?: string, before?: readonly object[]) => Json
  /** The text of a whole answer. */
  readonly textOf: (answer: Json) => string
  /**
   * What a vendor streams: each of the texts an event, of what is written or of a tool's arguments; and what it counts.
   */
  readonly stream: (texts: readonly string[], tool?: boolean, counts?: Counts) => string[]
  /** Such an event. */
  readonly delta: (text: string, tool?: boolean) => string
  /** What a client reads of an event: a piece of text or of arguments. */
  readonly heard: (data: Json) => string
  /** What must not be missing at the end. */
  readonly end: RegExp
}

const said = (content: string) => [{ role: 'user', content }]
const most = (name: string, tokens: number | undefined) => (tokens === undefined ? {} : { [name]: tokens })
const schema = { type: 'object' }

/** An event of a stream; with its name, where the format has names. */
export const event = (data: object, name?: string) =>
  `${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(name ? { type: name, ...data } : data)}\n\n`
/** A piece of a chat. */
export const chatChunk = (more: object) =>
  event({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', ...more })
const chatDelta = (delta: object, finish_reason: string | null = null) =>
  chatChunk({ choices: [{ index: 0, delta, finish_reason }] })
const toolDelta = (more: object) => ({ tool_calls: [{ index: 0, ...more }] })
const AT = { output_index: 0, item_id: 'i1' }
/** Arguments come whole in this format. */
const geminiDelta = (text: string, tool: boolean, more: object = {}) => {
  const part = tool ? { functionCall: { name: 'f', args: JSON.parse(text) } } : { text }
  return { candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...more }], modelVersion: 'm' }
}

export const FORMATS: Record<ClientFormatName, Format> = {
  'openai-chat': {
    path: () => '/v1/chat/completions',
    oldPath: () => '/v1/chat-completions',
    body: (prompt, tokens) => ({ messages: said(prompt), ...most('max_tokens', tokens) }),
    tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    usage: (input, output) => ({ prompt_tokens: input, completion_tokens: output, total_tokens: input + output }),
    answer: (usage, content = 'Yes.') => ({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage,
    }),
    textOf: ({ choices }) => choices[0].message.content,
    stream: (texts, tool, counts = FIVE) => [
      chatDelta({
        role: 'assistant',
        ...(tool
          ? toolDelta({ id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } })
          : { content: '' }),
      }),
      ...texts.map((text) => FORMATS['openai-chat'].delta(text, tool)),
      chatDelta({}, tool ? 'tool_calls' : 'stop'),
      chatChunk({ choices: [], usage: FORMATS['openai-chat'].usage(...counts) }),
      'data: [DONE]\n\n',
    ],
    delta: (text, tool) => chatDelta(tool ? toolDelta({ function: { arguments: text } }) : { content: text }),
    heard({ choices }) {
      const delta = choices?.[0]?.delta
      return delta?.content ?? delta?.tool_calls?.[0]?.function?.arguments ?? ''
    },
    end: /^\[DONE\]$/,
  },
  'openai-responses': {
    path: () => '/v1/responses',
    oldPath: () => '/alpha/responses',
    body: (input, tokens) => ({ input, ...most('max_output_tokens', tokens) }),
    tools: [{ type: 'function', name: 'f', parameters: schema }],
    usage: (input, output) => ({ input_tokens: input, output_tokens: output, total_tokens: input + output }),
    answer: (usage, text = 'Yes.', before = []) => ({
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      model: 'm',
      status: 'completed',
      output: [
        ...before,
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text, annotations: [] }],
        },
      ],
      usage,
    }),
    textOf: ({ output }) => output.find(({ type }: Json) => type === 'message').content[0].text,
    stream(texts, tool, counts = FIVE) {
      const all = texts.join('')
      const { usage, answer, delta } = FORMATS['openai-responses']
      const whole = answer(usage(...counts), all)
      const item = tool
        ? { type: 'function_call', id: 'i1', call_id: 'call_1', name: 'f', status: 'completed', arguments: all }
        : { ...whole.output[0], id: 'i1' }
      const begun = { ...item, status: 'in_progress', ...(tool ? { arguments: '' } : { content: [] }) }
      const part = (text: string) => ({ ...AT, content_index: 0, part: { type: 'output_text', text, annotations: [] } })
      const events = [
        event({ response: { ...whole, status: 'in_progress', output: [], usage: undefined } }, 'response.created'),
        event({ output_index: 0, item: begun }, 'response.output_item.added'),
        ...(tool ? [] : [event(part(''), 'response.content_part.added')]),
        ...texts.map((text) => delta(text, tool)),
        ...(tool
          ? [event({ ...AT, arguments: all }, 'response.function_call_arguments.done')]
          : [
              event({ ...AT, content_index: 0, text: all }, 'response.output_text.done'),
              event(part(all), 'response.content_part.done'),
            ]),
        event({ output_index: 0, item }, 'response.output_item.done'),
        event({ response: { ...whole, output: [item] } }, 'response.completed'),
      ]
      return events.map((one, at) => one.replace('"type":', `"sequence_number":${at},"type":`))
    },
    delta: (text, tool) =>
      tool
        ? event({ ...AT, delta: text }, 'response.function_call_arguments.delta')
        : event({ ...AT, content_index: 0, delta: text, logprobs: [] }, 'response.output_text.delta'),
    heard: ({ type, delta }) => (/\.(?:output_text|function_call_arguments)\.delta$/.test(type) ? delta : ''),
    end: /^\[DONE\]$|"type":"response\.completed"/,
  },
  'anthropic-messages': {
    path: () => '/v1/messages',
    oldPath: () => '/beta/v1/messages',
    body: (prompt, tokens = 1_000) => ({ messages: said(prompt), max_tokens: tokens }),
    tools: [{ name: 'f', input_schema: schema }],
    usage: (input, output) => ({ input_tokens: input, output_tokens: output }),
    answer: (usage, text = 'Yes.') => ({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage,
    }),
    textOf: ({ content }) => content.find(({ type }: Json) => type === 'text').text,
    stream(texts, tool, [input, output] = FIVE) {
      const { answer, usage, delta } = FORMATS['anthropic-messages']
      const message = { ...answer(usage(input, 1)), content: [], stop_reason: null }
      const block = tool ? { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} } : { type: 'text', text: '' }
      const stop = { delta: { stop_reason: tool ? 'tool_use' : 'end_turn' }, usage: { output_tokens: output } }
      return [
        event({ message }, 'message_start'),
        event({ index: 0, content_block: block }, 'content_block_start'),
        ...texts.map((text) => delta(text, tool)),
        event({ index: 0 }, 'content_block_stop'),
        event(stop, 'message_delta') + event({}, 'message_stop'),
      ]
    },
    delta: (text, tool) => {
      const delta = tool ? { type: 'input_json_delta', partial_json: text } : { type: 'text_delta', text }
      return event({ index: 0, delta }, 'content_block_delta')
    },
    heard: ({ delta }) => delta?.text ?? delta?.partial_json ?? '',
    end: /^\{"type":"message_stop"\}$/,
  },
  gemini: {
    path: (model, stream) =>
      `/gemini/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    oldPath: (model) => FORMATS.gemini.path(model),
    body: (text, tokens) => ({
      contents: [{ role: 'user', parts: [{ text }] }],
      ...(tokens === undefined ? {} : { generationConfig: { maxOutputTokens: tokens } }),
    }),
    tools: [{ functionDeclarations: [{ name: 'f' }] }],
    usage: (input, output) => ({ promptTokenCount: input, candidatesTokenCount: output }),
    answer: (usage, text = 'Yes.', [found] = []) => ({
      candidates: [
        {
          content: { role: 'model', parts: [{ text }] },
          finishReason: 'STOP',
          index: 0,
          ...(found ? { groundingMetadata: found } : {}),
        },
      ],
      modelVersion: 'm',
      usageMetadata: usage,
    }),
    textOf: ({ candidates }) => candidates[0].content.parts.find((part: Json) => part.text && !part.thought).text,
    stream: (texts, tool = false, [input, output] = FIVE) => [
      ...(tool ? [texts.join('')] : texts).map((text) => event(geminiDelta(text, tool))),
      event({
        ...geminiDelta('', false, { finishReason: 'STOP' }),
        responseId: 'r1',
        usageMetadata: { ...FORMATS.gemini.usage(input, output), totalTokenCount: input + output },
      }),
    ],
    delta: (text, tool = false) => event(geminiDelta(text, tool)),
    heard: ({ candidates }) =>
      (candidates?.[0]?.content?.parts ?? [])
        .map((part: Json) => part.text ?? (part.functionCall ? JSON.stringify(part.functionCall.args) : ''))
        .join(''),
    end: /"finishReason":"STOP"/,
  },
}

/** What a vendor streams of two texts: until it has said the first, and from then on. */
export function parted(format: ClientFormatName, texts: readonly [string, string], counts: Counts) {
  const events = FORMATS[format].stream(texts, false, counts)
  const said = 1 + events.findIndex((one) => one.includes(texts[0]))
  return { begin: events.slice(0, said).join(''), end: events.slice(said).join('') }
}

/** A model for each format of its vendor, which is at this address, called `from-` and the format. */
export function addScripted({ vendors, models }: CatalogInput, baseUrl: string): void {
  vendors.scripted = { baseUrl }
  for (const protocol of CLIENT_FORMATS)
    models[`from-${protocol}`] = {
      ...models['epsilon-k3']!, // Of the shipped catalog.
      family: 'scripted',
      clientFormats: [...CLIENT_FORMATS],
      routes: [{ vendor: 'scripted', protocol }],
    }
}

/** Each door before each vendor. */
export const PAIRS = CLIENT_FORMATS.flatMap((front) => CLIENT_FORMATS.map((back) => ({ front, back })))

/** Where a caller of this format asks a model, and with which body. */
export function requestTo(front: ClientFormatName, model: string, body: object, stream = false) {
  const named = front === 'gemini' ? body : { model, ...(stream ? { stream } : {}), ...body }
  return { path: FORMATS[front].path(model, stream), body: named as Json }
}

/** The format in which a vendor is asked. */
export function formatOf(path = ''): ClientFormatName {
  if (path.includes('/chat/completions')) return 'openai-chat'
  if (path.includes('/responses')) return 'openai-responses'
  return path.includes('/messages') ? 'anthropic-messages' : 'gemini'
}

export interface MediaFormat {
  /** As quotes and keys name it. */
  readonly endpoint: string
  readonly path: string
  /** Of the shipped catalog. */
  readonly model: string
  /** The least that can be asked; what is asked about a recording is a form around it. */
  readonly body: (text: string) => Json
  /** A whole answer of a vendor, where it is JSON. */
  readonly answer?: (usage: object) => Json
}

/** Of the formats that are no text. */
export const MEDIA = {
  'openai-embeddings': {
    endpoint: 'embeddings',
    path: '/v1/embeddings',
    model: 'alpha-embed-3-small',
    body: (input) => ({ input }),
    answer: (usage) => ({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [0.6, 0.8] }],
      model: 'm',
      usage,
    }),
  },
  'openai-images': {
    endpoint: 'images',
    path: '/v1/images/generations',
    model: 'alpha-image-2',
    body: (prompt) => ({ prompt, quality: 'low' }),
    answer: (usage) => ({ created: 1, data: [{ b64_json: PICTURE.toString('base64') }], usage }),
  },
  'openai-audio': {
    endpoint: 'transcriptions',
    path: '/v1/audio/transcriptions',
    model: 'alpha-transcribe-1',
    body: (prompt) => ({ prompt }),
    answer: (usage) => ({ text: 'Yes.', usage }),
  },
  'openai-speech': {
    endpoint: 'speech',
    path: '/v1/audio/speech',
    model: 'alpha-speech-1',
    body: (input) => ({ input, voice: 'alloy' }),
  },
  rerank: {
    endpoint: 'rerank',
    path: '/v1/rerank',
    model: 'alpha-rerank-1',
    body: (query) => ({ query, documents: ['a gate', 'a toll'] }),
    answer: (usage) => ({ results: [1, 0].map((index) => ({ index, relevance_score: index })), ...usage }),
  },
  'openai-moderations': {
    endpoint: 'moderations',
    path: '/v1/moderations',
    model: 'alpha-moderation-1',
    body: (input) => ({ input }),
    answer: () => ({ id: 'modr_1', model: 'm', results: [{ flagged: false, categories: {} }] }),
  },
  'mistral-ocr': {
    endpoint: 'ocr',
    path: '/v1/ocr',
    model: 'alpha-ocr-1',
    body: (name) => ({
      document: { type: 'document_url', document_url: `https://a.example/${name.replaceAll(' ', '')}` },
      pages: '0-4',
    }),
    answer: (usage) => ({ pages: ['a', 'b'].map((markdown, index) => ({ index, markdown })), model: 'm', ...usage }),
  },
  'video-task': {
    endpoint: 'video',
    path: '/v1/video/seedance',
    model: 'videogen-2.0',
    body: (prompt) => ({ prompt, duration: 5, resolution: '720p' }),
  },
} satisfies Record<string, MediaFormat>
export type MediaName = keyof typeof MEDIA
export const mediaOf = (format: string): MediaFormat | undefined => MEDIA[format as MediaName] // Undefined where it is none.
