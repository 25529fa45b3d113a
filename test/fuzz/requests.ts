// Requests from the contract's grammar: mostly right, here and there wrong in one place, now and then absurd.
import fc from 'fast-check'
import { isDataEndpoint } from '../../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../../src/catalog/index.ts'

export interface FuzzedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: string
}

const MODELS = [
  'alpha-5.4',
  'alpha-image-2',
  'videogen-2.0',
  'epsilon-k3',
  'gamma-v4.1-flash',
  'nothing',
  '',
  'socialapi',
]
const odd = fc.constantFrom<unknown>(
  null,
  true,
  false,
  0,
  -1,
  1,
  0.5,
  1e9,
  1e308,
  '',
  ' ',
  'text',
  '\u0000',
  '\ud800',
  [],
  {},
  [[]],
  [null],
  2 ** 53,
  '9'.repeat(50),
  { a: { b: {} } },
)
const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('hello', '漢字', '🎉', "' or 1=1 --", '<script>', '%00'),
)
const wrongNow = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 12, arbitrary }, { weight: 1, arbitrary: odd })

const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text: wrongNow(text) }),
  fc.record({
    type: fc.constant('image_url'),
    image_url: wrongNow(fc.record({ url: fc.constantFrom('data:image/png;base64,iVBORw0KGgo=', 'x', '') })),
  }),
  fc.record({ type: wrongNow(text) }),
)
const content = wrongNow(fc.oneof(text, fc.array(part, { maxLength: 3 })))
const toolCall = fc.record({
  id: wrongNow(text),
  type: wrongNow(fc.constant('function')),
  function: wrongNow(fc.record({ name: wrongNow(text), arguments: wrongNow(fc.constant('{}')) })),
})
const message = fc.record(
  {
    role: wrongNow(fc.constantFrom('system', 'user', 'assistant', 'tool', 'developer', 'function')),
    content,
    tool_call_id: wrongNow(text),
    tool_calls: wrongNow(fc.array(toolCall, { maxLength: 2 })),
    name: wrongNow(text),
  },
  { requiredKeys: ['role', 'content'] },
)
const tool = fc.record({
  type: wrongNow(fc.constant('function')),
  function: wrongNow(
    fc.record({ name: wrongNow(text), parameters: wrongNow(fc.constant({ type: 'object', properties: {} })) }),
  ),
})
const shared = {
  model: wrongNow(fc.constantFrom(...MODELS, 'alpha-5.4', 'alpha-5.4', 'alpha-5.4')),
  stream: wrongNow(fc.boolean()),
  temperature: wrongNow(fc.double({ min: 0, max: 2, noNaN: true })),
  top_p: wrongNow(fc.double({ min: 0, max: 1, noNaN: true })),
  max_tokens: wrongNow(fc.integer({ min: 1, max: 50 })),
  metadata: wrongNow(fc.constant({ a: 'b' })),
}
const bodies: Record<string, fc.Arbitrary<unknown>> = {
  chat: fc.record(
    {
      ...shared,
      messages: wrongNow(fc.array(message, { minLength: 1, maxLength: 4 })),
      n: wrongNow(fc.integer({ min: 1, max: 3 })),
      stop: wrongNow(fc.oneof(text, fc.array(text, { maxLength: 3 }))),
      tools: wrongNow(fc.array(tool, { maxLength: 2 })),
      tool_choice: wrongNow(fc.constantFrom('auto', 'none')),
      response_format: wrongNow(fc.constant({ type: 'json_object' })),
      stream_options: wrongNow(fc.record({ include_usage: wrongNow(fc.boolean()) })),
      reasoning_effort: wrongNow(fc.constantFrom('low', 'high')),
    },
    { requiredKeys: ['model', 'messages'] },
  ),
  messages: fc.record(
    {
      ...shared,
      messages: wrongNow(
        fc.array(fc.record({ role: wrongNow(fc.constantFrom('user', 'assistant')), content }), {
          minLength: 1,
          maxLength: 4,
        }),
      ),
      system: wrongNow(text),
      stop_sequences: wrongNow(fc.array(text, { maxLength: 2 })),
      thinking: wrongNow(fc.constant({ type: 'enabled', budget_tokens: 1024 })),
    },
    { requiredKeys: ['model', 'messages', 'max_tokens'] },
  ),
  responses: fc.record(
    {
      ...shared,
      input: wrongNow(
        fc.oneof(
          text,
          fc.array(fc.record({ role: wrongNow(fc.constantFrom('user', 'assistant')), content }), { maxLength: 3 }),
        ),
      ),
      instructions: wrongNow(text),
      max_output_tokens: wrongNow(fc.integer({ min: 1, max: 50 })),
      previous_response_id: wrongNow(text),
      store: wrongNow(fc.boolean()),
    },
    { requiredKeys: ['model', 'input'] },
  ),
  images: fc.record(
    {
      model: wrongNow(fc.constantFrom('alpha-image-2', ...MODELS)),
      prompt: wrongNow(text),
      n: wrongNow(fc.integer({ min: 1, max: 2 })),
      size: wrongNow(fc.constantFrom('1024x1024', 'auto', '1x1')),
      quality: wrongNow(fc.constantFrom('low', 'high')),
      response_format: wrongNow(fc.constantFrom('url', 'b64_json')),
      image_urls: wrongNow(
        fc.array(fc.constantFrom('data:image/png;base64,AAAA', 'http://127.0.0.1/x', 'ftp://x'), { maxLength: 2 }),
      ),
    },
    { requiredKeys: ['model', 'prompt'] },
  ),
}
const anyBody = fc.oneof(
  { weight: 3, arbitrary: fc.dictionary(text, odd, { maxKeys: 6 }) },
  { weight: 1, arbitrary: odd },
)

/** Text that may stand in a request line. */
const segment = text.map((value) => encodeURIComponent(value.toWellFormed()).slice(0, 200) || 'x')

const request: fc.Arbitrary<FuzzedRequest> = fc.constantFrom(...ENDPOINTS).chain((spec) => {
  const fields = isDataEndpoint(spec) ? Object.entries(spec.params) : []
  const pair = fc.oneof(
    ...fields.map(([name, field]) =>
      fc.tuple(
        fc.constant(name),
        fc.oneof({ weight: 4, arbitrary: fc.constant(field.example ?? 'example.com') }, { weight: 1, arbitrary: text }),
      ),
    ),
    fc.tuple(text, text),
  )
  const required = fields
    .filter(([, field]) => field.required)
    .map(([name, field]): [string, string] => [name, field.example ?? 'example.com'])
  const query = fc
    .tuple(fc.array(pair, { maxLength: 3 }), fc.boolean())
    .map(([pairs, complete]) =>
      [...(complete ? required : []), ...pairs]
        .map(
          ([name, value]) => `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`,
        )
        .join('&'),
    )
  return fc.record({
    path: fc
      .tuple(fc.constantFrom(spec.path, ...spec.aliases), segment, query)
      .map(([path, id, asked]) => path.replaceAll(/\{\w+\}/g, id) + (asked === '' ? '' : `?${asked}`)),
    method: fc.oneof(
      { weight: 20, arbitrary: fc.constant(spec.method as string) },
      { weight: 1, arbitrary: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH') },
    ),
    headers: fc.record(
      {
        'idempotency-key': fc.string({ maxLength: 20 }).map((value) => value.replaceAll(/[^\x20-\x7e]/g, '')),
        'x-stainless-lang': fc.constant('js'),
        accept: fc.constantFrom('*/*', 'text/event-stream', 'nonsense'),
        'anthropic-version': fc.constantFrom('2023-06-01', 'x'),
      },
      { requiredKeys: [] },
    ),
    body: fc
      .oneof({ weight: 10, arbitrary: bodies[spec.id] ?? anyBody }, { weight: 1, arbitrary: anyBody })
      .map((body) => JSON.stringify(body) ?? 'undefined'),
  })
})

/** Now and then the bytes are damaged after all. */
export const fuzzed: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(request, fc.nat({ max: 30 }), fc.nat())
  .map(([made, damage, at]) => {
    const { body, ...rest } = made
    if (made.method === 'GET' || made.method === 'DELETE') return rest
    if (damage > 1 || body === undefined) return made
    const cut = at % (body.length + 1)
    return { ...made, body: damage === 0 ? body.slice(0, cut) : `${body.slice(0, cut)}\\u0000${body.slice(cut)}` }
  })
