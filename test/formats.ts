// What the tests know of each text format, in one place: where its callers ask, what they send at least, and what its vendors answer.
import { CLIENT_FORMATS, type ClientFormatName } from '../src/meter/kind.ts'

type Json = Record<string, any>

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
  readonly answer: (usage: object, text?: string, before?: readonly object[]) => Json
  /** The text of a whole answer. */
  readonly textOf: (answer: Json) => string
}

const said = (content: string) => [{ role: 'user', content }]
const most = (name: string, tokens: number | undefined) => (tokens === undefined ? {} : { [name]: tokens })
const schema = { type: 'object' }

export const FORMATS: Record<ClientFormatName, Format> = {
  'openai-chat': {
    path: () => '/v1/chat/completions',
    oldPath: () => '/v1/chat-completions',
    body: (prompt, tokens) => ({ messages: said(prompt), ...most('max_tokens', tokens) }),
    tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    usage: (input, output) => ({
      ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    }),
    answer: (usage, content = 'Yes.') => ({
      ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage,
    }),
    textOf: ({ choices }) => choices[0].message.content,
  },
  'openai-responses': {
    path: () => '/v1/responses',
    oldPath: () => '/alpha/responses',
    body: (input, tokens) => ({ input, ...most('max_output_tokens', tokens) }),
    tools: [{ type: 'function', name: 'f', parameters: schema }],
    usage: (input, output) => ({ input_tokens: input, output_tokens: output, total_tokens: input + output }),
    answer: (usage, text = 'Yes.', before = []) => ({
      ...{ id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed' },
      output: [
        ...before,
        {
          ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
          content: [{ type: 'output_text', text, annotations: [] }],
        },
      ],
      usage,
    }),
    textOf: ({ output }) => output.find(({ type }: Json) => type === 'message').content[0].text,
  },
  'anthropic-messages': {
    path: () => '/v1/messages',
    oldPath: () => '/beta/v1/messages',
    body: (prompt, tokens = 1_000) => ({ messages: said(prompt), max_tokens: tokens }),
    tools: [{ name: 'f', input_schema: schema }],
    usage: (input, output) => ({ input_tokens: input, output_tokens: output }),
    answer: (usage, text = 'Yes.') => ({
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text }] },
      ...{ stop_reason: 'end_turn', stop_sequence: null, usage },
    }),
    textOf: ({ content }) => content.find(({ type }: Json) => type === 'text').text,
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
          ...{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 },
          ...(found ? { groundingMetadata: found } : {}),
        },
      ],
      ...{ modelVersion: 'm', usageMetadata: usage },
    }),
    textOf: ({ candidates }) => candidates[0].content.parts.find((part: Json) => part.text && !part.thought).text,
  },
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
