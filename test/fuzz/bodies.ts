// Bodies of every POST endpoint, from the contract's grammar: mostly right, here and there wrong in one place.
import fc from 'fast-check'

const MODELS = ['alpha-image-2', 'videogen-2.0', 'epsilon-k3', 'gamma-v4.1-flash', 'nothing', '', 'socialapi', '../x']

/** What no field expects: other types, limits and beyond, text that is none. */
export const odd = fc.constantFrom<unknown>(
  null,
  true,
  false,
  0,
  -1,
  1,
  0.5,
  1e9,
  1e308,
  -(2 ** 63),
  2 ** 53,
  '',
  ' ',
  'text',
  '\u0000',
  '\ud800',
  '\u202e\ufeff',
  '9'.repeat(50),
  'x'.repeat(3_000),
  [],
  {},
  [[]],
  [null],
  { a: { b: {} } },
  JSON.parse('{"__proto__":{"a":1},"constructor":{"prototype":1}}'),
  Array.from({ length: 200 }, () => ({})),
)
export const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('hello', '漢字', '🎉', "' or 1=1 --", '<script>', '%00', '{{7*7}}', '../../etc/passwd'),
)

/** Usually right. With a dozen of these in a body, every second body or so has something wrong in it. */
const mostly = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 9, arbitrary }, { weight: 1, arbitrary: odd })

const model = (...right: string[]) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...right) },
    { weight: 3, arbitrary: fc.constantFrom(...MODELS) },
    { weight: 1, arbitrary: odd },
  )
const url = fc.constantFrom(
  'data:image/png;base64,iVBORw0KGgo=',
  'data:image/png;base64,AAAA',
  'data:,',
  'http://127.0.0.1/x',
  'http://[::1]:5432/',
  'file:///etc/passwd',
  'ftp://x',
  'x',
  '',
)
const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text: mostly(text) }),
  fc.record({ type: fc.constant('image_url'), image_url: mostly(fc.record({ url })) }),
  fc.record({ type: fc.constantFrom('input_text', 'output_text'), text: mostly(text) }),
  fc.record({ type: fc.constant('tool_result'), tool_use_id: mostly(text), content: mostly(text) }),
  fc.record({ type: mostly(text) }),
)
const content = mostly(fc.oneof(text, fc.array(part, { maxLength: 3 })))
const toolCall = fc.record({
  id: mostly(text),
  type: mostly(fc.constant('function')),
  function: mostly(fc.record({ name: mostly(text), arguments: mostly(fc.constantFrom('{}', '{', '{"a":1}')) })),
})
const message = fc.record(
  {
    role: mostly(fc.constantFrom('system', 'user', 'assistant', 'tool', 'developer', 'function')),
    content,
    tool_call_id: mostly(text),
    tool_calls: mostly(fc.array(toolCall, { maxLength: 2 })),
    name: mostly(text),
  },
  { requiredKeys: ['role', 'content'] },
)
const turn = fc.record({ role: mostly(fc.constantFrom('user', 'assistant')), content })
const tool = fc.record({
  type: mostly(fc.constant('function')),
  name: mostly(text),
  input_schema: mostly(fc.constant({ type: 'object' })),
  function: mostly(
    fc.record({ name: mostly(text), parameters: mostly(fc.constant({ type: 'object', properties: {} })) }),
  ),
})
const count = (max: number) => mostly(fc.integer({ min: 1, max }))
const flag = mostly(fc.boolean())
const shared = {
  model: model('alpha-5.4'),
  stream: flag,
  temperature: mostly(fc.double({ min: 0, max: 2, noNaN: true })),
  top_p: mostly(fc.double({ min: 0, max: 1, noNaN: true })),
  max_tokens: count(50),
  metadata: mostly(fc.constant({ a: 'b' })),
  tools: mostly(fc.array(tool, { maxLength: 2 })),
}
const thinking = mostly(
  fc.record({ type: mostly(fc.constantFrom('enabled', 'disabled', 'adaptive')), budget_tokens: count(2_000) }),
)

const chat = fc.record(
  {
    ...shared,
    messages: mostly(fc.array(message, { minLength: 1, maxLength: 4 })),
    n: count(3),
    max_completion_tokens: count(50),
    stop: mostly(fc.oneof(text, fc.array(text, { maxLength: 5 }))),
    tool_choice: mostly(fc.constantFrom('auto', 'none', 'required')),
    parallel_tool_calls: flag,
    response_format: mostly(fc.record({ type: mostly(fc.constantFrom('text', 'json_object', 'json_schema')) })),
    stream_options: mostly(fc.record({ include_usage: flag })),
    reasoning_effort: mostly(fc.constantFrom('low', 'high', 'none')),
    thinking,
    seed: mostly(fc.integer()),
    user: mostly(text),
    frequency_penalty: mostly(fc.double({ min: -2, max: 2, noNaN: true })),
  },
  { requiredKeys: ['model', 'messages'] },
)
const messages = fc.record(
  {
    ...shared,
    messages: mostly(fc.array(turn, { minLength: 1, maxLength: 4 })),
    system: content,
    stop_sequences: mostly(fc.array(text, { maxLength: 2 })),
    tool_choice: mostly(fc.record({ type: mostly(fc.constantFrom('auto', 'any', 'none')) })),
    thinking,
  },
  { requiredKeys: ['model', 'messages', 'max_tokens'] },
)
const responses = fc.record(
  {
    ...shared,
    input: mostly(fc.oneof(text, fc.array(turn, { maxLength: 3 }))),
    instructions: mostly(text),
    max_output_tokens: count(50),
    previous_response_id: mostly(text),
    store: flag,
    text: mostly(fc.record({ format: mostly(fc.constant({ type: 'text' })), verbosity: mostly(text) })),
    reasoning: mostly(fc.record({ effort: mostly(fc.constantFrom('low', 'high')), summary: mostly(text) })),
  },
  { requiredKeys: ['model', 'input'] },
)
const embeddings = fc.record(
  {
    model: model('alpha-embed-3-small'),
    input: mostly(
      fc.oneof(
        text,
        fc.array(text, { maxLength: 3 }),
        fc.array(fc.nat(), { maxLength: 3 }),
        fc.array(fc.array(fc.nat())),
      ),
    ),
    dimensions: mostly(fc.integer({ min: 1, max: 2_000 })),
    encoding_format: mostly(fc.constantFrom('float', 'base64')),
    user: mostly(text),
  },
  { requiredKeys: ['model', 'input'] },
)
// A picture and a video that are right cost the simulated vendors much more than the gateway, so most of these are not.
const images = fc.record(
  {
    model: model('alpha-image-2', 'alpha-5.4', 'nothing'),
    prompt: mostly(text),
    n: mostly(fc.integer({ min: 0, max: 3 })),
    size: mostly(fc.constantFrom('1024x1024', 'auto', '1x1', '16:9', '3840x2160', '0x0')),
    quality: mostly(fc.constantFrom('low', 'high', 'best')),
    resolution: mostly(fc.constantFrom('1k', '2k', '8k')),
    response_format: mostly(fc.constantFrom('url', 'b64_json', 'file')),
    output_format: mostly(fc.constantFrom('png', 'jpeg', 'webp', 'bmp')),
    image_urls: mostly(fc.array(url, { maxLength: 2 })),
    stream: flag,
  },
  { requiredKeys: ['model', 'prompt', 'n', 'size', 'quality', 'image_urls'] },
)
const video = fc.record(
  {
    model: model('videogen-2.0', 'videogen-2.5', 'alpha-5.4', 'nothing'),
    prompt: mostly(text),
    duration: mostly(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom('5', '5s', '0x5'))),
    seconds: mostly(fc.integer({ min: 3, max: 16 })),
    resolution: mostly(fc.constantFrom('480p', '720P', '1080p', '9000p')),
    ratio: mostly(fc.constantFrom('16:9', '1:1', 'adaptive', '0:0')),
    seed: mostly(fc.integer({ min: -2, max: 2 ** 32 })),
    first_frame: mostly(url),
    last_frame: mostly(url),
    image_urls: mostly(fc.array(url, { maxLength: 3 })),
    content: mostly(fc.array(part, { maxLength: 3 })),
    generate_audio: flag,
    watermark: flag,
    return_last_frame: flag,
    callback_url: mostly(url),
  },
  { requiredKeys: ['model', 'duration', 'resolution', 'seed', 'first_frame'] },
)
const nonsense = fc.oneof(
  { weight: 3, arbitrary: fc.dictionary(text, odd, { maxKeys: 6 }) },
  { weight: 1, arbitrary: odd },
)

/** What every door takes, spelt simply. */
const said = fc.constantFrom('hello', '漢字', '🎉', "' or 1=1 --", 'a\nb\tc')
const simple = {
  chat: fc.record(
    {
      model: fc.constantFrom(
        'alpha-5.4',
        'beta-haiku-4-5',
        'gamma-v4-flash',
        'delta-3.8-flash',
        'epsilon-k3',
        'zeta-m3',
      ),
      messages: said.map((content) => [{ role: 'user', content }]),
      stream: fc.boolean(),
    },
    { requiredKeys: ['model', 'messages'] },
  ),
  messages: fc.record(
    {
      model: fc.constantFrom('beta-haiku-4-5', 'beta-sonnet-5'),
      messages: said.map((content) => [{ role: 'user', content }]),
      max_tokens: fc.integer({ min: 1, max: 30 }),
      system: said,
      stream: fc.boolean(),
    },
    { requiredKeys: ['model', 'messages', 'max_tokens'] },
  ),
  responses: fc.record(
    { model: fc.constantFrom('alpha-5.4', 'alpha-5.5'), input: said, stream: fc.boolean() },
    { requiredKeys: ['model', 'input'] },
  ),
  embeddings: fc.record({ model: fc.constant('alpha-embed-3-small'), input: said, dimensions: fc.constant(8) }),
  embedContent: fc.record({
    content: fc.record({ parts: fc.array(fc.record({ text: said }), { maxLength: 3 }) }),
    outputDimensionality: fc.constant(8),
    task_type: said,
  }),
  rerank: fc.record({ model: fc.constant('alpha-rerank-1'), query: said, documents: fc.array(said, { maxLength: 3 }) }),
  moderations: fc.record({ model: fc.constant('alpha-moderation-1'), input: fc.array(said, { maxLength: 3 }) }),
  ocr: fc.record({
    model: fc.constant('alpha-ocr-1'),
    document: fc.oneof(
      said.map((document_url) => ({ document_url })),
      said.map((image_url) => ({ image_url })),
    ),
    pages: fc.oneof(fc.constantFrom('0', '0-2', '1,2'), fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 3 })),
  }),
  speech: fc.record({ model: fc.constant('alpha-speech-1'), input: said, voice: said }),
  images: fc.record({ model: fc.constant('alpha-image-2'), prompt: said, size: fc.constant('1024x1024') }),
  video: fc.record({
    model: fc.constantFrom('videogen-2.0', 'videogen-2.5'),
    prompt: said,
    duration: fc.integer({ min: 4, max: 15 }),
    resolution: fc.constant('480p'),
  }),
}

/** Right in all places, or wrong in exactly one. */
const nearlyRight = (arbitrary: fc.Arbitrary<object>): fc.Arbitrary<unknown> =>
  fc.tuple(arbitrary, fc.nat({ max: 12 }), odd).map(([body, at, value]) => {
    const name = Object.keys(body)[at]
    return name === undefined ? body : { ...body, [name]: value }
  })

const conversation = {
  items: fc.array(
    fc.record({
      type: fc.constantFrom('message', 'item_reference', 'reasoning'),
      id: said,
      role: fc.constant('user'),
      content,
    }),
    { maxLength: 3 },
  ),
  metadata: fc.dictionary(said, said, { maxKeys: 3 }),
}

const byEndpoint: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  chat: fc.oneof({ weight: 3, arbitrary: chat }, { weight: 1, arbitrary: nearlyRight(simple.chat) }),
  messages: fc.oneof({ weight: 3, arbitrary: messages }, { weight: 1, arbitrary: nearlyRight(simple.messages) }),
  responses: fc.oneof({ weight: 3, arbitrary: responses }, { weight: 1, arbitrary: nearlyRight(simple.responses) }),
  embeddings: fc.oneof(embeddings, nearlyRight(simple.embeddings)),
  'gemini/embed': nearlyRight(simple.embedContent),
  'gemini/embed_batch': fc.record({ requests: fc.array(nearlyRight(simple.embedContent), { maxLength: 3 }) }),
  rerank: nearlyRight(simple.rerank),
  'rerank/v2': nearlyRight(simple.rerank),
  moderations: nearlyRight(simple.moderations),
  ocr: nearlyRight(simple.ocr),
  speech: nearlyRight(simple.speech),
  images: fc.oneof({ weight: 30, arbitrary: images }, { weight: 1, arbitrary: nearlyRight(simple.images) }),
  video: fc.oneof({ weight: 30, arbitrary: video }, { weight: 1, arbitrary: nearlyRight(simple.video) }),
  'responses/input_tokens': nearlyRight(simple.responses),
  'responses/compact': nearlyRight(
    fc.record(
      { model: fc.constantFrom('alpha-5.4', 'beta-haiku-4-5'), input: said, previous_response_id: said },
      { requiredKeys: ['model'] },
    ),
  ),
  'conversations/create': nearlyRight(fc.record(conversation, { requiredKeys: [] })),
  'conversations/{id}/update': nearlyRight(fc.record({ metadata: conversation.metadata })),
  'conversations/{id}/items/create': nearlyRight(fc.record({ items: conversation.items })),
  'realtime/client_secrets': nearlyRight(
    fc.record(
      {
        session: fc.record({
          type: fc.constant('realtime'),
          model: fc.constant('alpha-realtime-1'),
          instructions: said,
        }),
        expires_after: fc.record({ anchor: fc.constant('created_at'), seconds: fc.integer({ min: 10, max: 60 }) }),
      },
      { requiredKeys: ['session'] },
    ),
  ),
  count_tokens: fc.oneof(messages, nearlyRight(simple.messages)),
  quote: fc.oneof(chat, messages, responses, video, ...Object.values(simple).map(nearlyRight)),
}

/** What stands between the parts of a form. */
export const BOUNDARY = 'x'

/** A recording of 64 samples, of bytes that are the same in every encoding. */
const WAV = [
  'RIFF\x64\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\0\0\0',
  '@'.repeat(64),
].join('')
/** The head of a picture of one pixel, of such bytes too. */
const WEBP = `RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0${'\0'.repeat(10)}`
const LINE = JSON.stringify({
  custom_id: 'a',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'alpha-5.4-mini', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 },
})
const recording = { file: fc.constant(WAV), model: fc.constant('alpha-transcribe-1') }

const forms: Readonly<Record<string, fc.Arbitrary<object>>> = {
  transcriptions: fc.record({ ...recording, response_format: fc.constantFrom('json', 'text', 'srt', 'verbose_json') }),
  translations: fc.record(recording),
  'images/edits': fc.record({
    image: fc.constant(WEBP),
    prompt: text,
    model: fc.constant('alpha-image-2'),
    n: fc.constantFrom('1', '2', ''),
    stream: fc.constantFrom('true', 'false', 'x'),
  }),
  'video/create': fc.record({
    prompt: text,
    model: fc.constant('videogen-2.0'),
    seconds: fc.constantFrom('4', '5', 'x'),
    size: fc.constantFrom('1280x720', '720x1280', 'large'),
  }),
  'files/create': fc.record({ file: fc.constant(LINE), purpose: fc.constant('batch') }),
}

/** Whole, with one part that is odd, or cut off. */
function formOf(endpoint: string): fc.Arbitrary<string> {
  const parts = nearlyRight(forms[endpoint] ?? fc.constant({ file: 'x' })) as fc.Arbitrary<object> // it changes a field
  return fc.tuple(parts, fc.nat({ max: 9 }), fc.double({ min: 0, max: 1, noNaN: true })).map(([fields, how, at]) => {
    const text = Object.entries(fields)
      .map(([name, value]) => {
        const filename = name === 'file' || name === 'image' ? '; filename="a.wav"' : ''
        const said = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
        return `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${filename}\r\n\r\n${said}\r\n`
      })
      .join('')
    return how === 0 ? text.slice(0, Math.floor(text.length * at)) : `${text}--${BOUNDARY}--\r\n`
  })
}

/** A body for an endpoint, or for none. */
export function bodyOf(endpoint: string, form = false): fc.Arbitrary<string> {
  if (form) return formOf(endpoint)
  return fc
    .oneof({ weight: 12, arbitrary: byEndpoint[endpoint] ?? nonsense }, { weight: 1, arbitrary: nonsense })
    .map((body) => JSON.stringify(body) ?? 'undefined')
}
