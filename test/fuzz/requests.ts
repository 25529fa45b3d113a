// Whole requests: a door, its parameters, headers and body, and now and then something that no client would send.
import { METHODS as PARSED } from 'node:http'
import fc from 'fast-check'
import { surfaceOf } from '../../src/api/server/envelope.ts'
import type { Surface } from '../../src/catalog/endpoint.ts'
import { type EndpointSpec, isDataEndpoint } from '../../src/catalog/endpoint.ts'
import { ALL_ENDPOINTS } from '../../src/entries.ts'
import { CLIENT_FORMATS } from '../formats.ts'
import { BOUNDARY, bodyOf, text } from './bodies.ts'
import { bodyFor, pathFor, RECORDINGS, type Script } from './vendor.ts'
import type { Wire } from './wire.ts'

export interface FuzzedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Whose words a refusal must use; undefined where the request may not reach any door. */
  readonly surface?: Surface
  /** The door that it was made for. */
  readonly endpoint?: string
  /** Sent without a key. */
  readonly anonymous?: boolean
  /** How its bytes travel; absent: as an ordinary client sends them. */
  readonly wire?: Wire
  /** What the vendor behind it is to do. */
  readonly script?: Script
}

/** Whatever Node's parser lets through; CONNECT asks for a tunnel, of which there are none, and has no answer. */
export const METHODS = PARSED.filter((name) => name !== 'CONNECT')
const USUAL = new Set(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'])
/** Weights: the doors with bodies are few and take the most. */
const WEIGHTS: Readonly<Record<string, number>> = { chat: 8, messages: 8, responses: 8, images: 4, video: 6, quote: 4 }
/** Not of the public contract; nothing but a refusal comes back. */
const OTHER_PATHS = ['/admin/v1/accounts', '/admin/v1/', '/console/api/session', '/assets/', '/v2/', '/v1/images/edits']

const quote = (value: string) => encodeURIComponent(value.toWellFormed())
/** Text that may stand in a request line. */
const segment = text.map((value) => quote(value).slice(0, 200) || 'x')
const ascii = fc.string({ maxLength: 20 }).map((value) => value.replaceAll(/[^\x20-\x7e]/g, ''))

const headers = fc.record(
  {
    'idempotency-key': fc.oneof(ascii, fc.constantFrom('', 'a', 'k'.repeat(256), 'a b')),
    'x-stainless-lang': fc.constant('js'),
    accept: fc.constantFrom('*/*', 'text/event-stream', 'nonsense'),
    'accept-encoding': fc.constantFrom('gzip', 'identity', '*;q=0'),
    'anthropic-version': fc.constantFrom('2023-06-01', 'x'),
    'anthropic-beta': ascii,
    'user-agent': fc.constantFrom('OpenAI/JS 7', 'curl', ''),
    'x-request-id': ascii,
    traceparent: fc.constantFrom('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '00', 'x'),
    'x-forwarded-for': fc.constantFrom('127.0.0.1', '::1', '1.2.3.4, 5.6.7.8', 'unknown'),
    'content-encoding': fc.constantFrom('gzip', 'identity'),
    range: fc.constantFrom('bytes=0-1', 'bytes=-'),
    cookie: ascii,
  },
  { requiredKeys: [] },
)
/** Each header alone is enough of a trick; all of them at once would hide one behind another. */
const fewHeaders = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: fc.tuple(headers, fc.nat()).map(([all, at]) => oneOf(all, at)) },
)

function oneOf(all: Record<string, string>, at: number): Record<string, string> {
  const entries = Object.entries(all)
  return Object.fromEntries(entries.length === 0 ? [] : [entries[at % entries.length]!])
}

const contentTypeOf = (right: string) =>
  fc.oneof(
    { weight: 15, arbitrary: fc.constant(right) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        'application/json; charset=utf-16',
        'text/plain',
        'multipart/form-data; boundary=x',
        'application/x-www-form-urlencoded',
        'application/vnd.api+json',
        'x',
        '',
      ),
    },
  )
const method = (right: string) =>
  fc.oneof({ weight: 25, arbitrary: fc.constant(right) }, { weight: 1, arbitrary: fc.constantFrom(...METHODS) })

function queryOf(spec: EndpointSpec): fc.Arbitrary<string> {
  const fields = isDataEndpoint(spec) ? Object.entries(spec.params) : Object.entries(spec.params ?? {})
  const example = (field: { readonly example?: string }) => field.example ?? 'example.com'
  const pair = fc.oneof(
    ...fields.map(([name, field]) =>
      fc.tuple(
        fc.constant(name),
        fc.oneof(
          { weight: 4, arbitrary: fc.constant(example(field)) },
          { weight: 1, arbitrary: text },
          { weight: 1, arbitrary: fc.constantFrom('', '0', '-1', 'true', '2026-13-01', '7d', '99m', '[]', 'a,b') },
        ),
      ),
    ),
    fc.tuple(text, text),
  )
  const required = fields
    .filter(([, field]) => field.required && field.in !== 'path')
    .map(([name, field]): [string, string] => [name, example(field)])
  const whole = fc
    .tuple(fc.array(pair, { maxLength: 3 }), fc.nat({ max: 3 }))
    .map(([pairs, complete]) =>
      [...(complete === 0 ? required : []), ...pairs]
        .map(([name, value]) => `${quote(name)}=${quote(value)}`)
        .join('&'),
    )
  const trick = fc.constantFrom('&&', '=', '%', '%zz', '+', 'a[b]=c', 'a=1&a=2', '__proto__=x', '?', ';', '%00=%00')
  return fc.oneof({ weight: 12, arbitrary: whole }, { weight: 1, arbitrary: trick })
}

/** A quote for each endpoint that is paid for, with what that endpoint takes. */
const quotes = fc.oneof(
  ...ALL_ENDPOINTS.filter(({ sells }) => sells !== undefined).map((spec) =>
    fc.record({
      query: fc.constant(`endpoint=${quote(spec.id)}`),
      body: isDataEndpoint(spec)
        ? fc.constant(
            JSON.stringify(
              Object.fromEntries(Object.entries(spec.params).map(([name, { example }]) => [name, example])),
            ),
          )
        : bodyOf(spec.id),
    }),
  ),
)
const queryAndBody = (spec: EndpointSpec) => {
  const any = fc.record({ query: queryOf(spec), body: bodyOf(spec.id, spec.form) })
  return spec.id === 'quote' ? fc.oneof(any, quotes) : any
}

/** What stands in the path where the endpoint has a parameter there. */
function idOf(spec: EndpointSpec): fc.Arbitrary<string> {
  const example = Object.values(spec.params ?? {}).find((field) => field.in === 'path')?.example
  return example === undefined ? segment : fc.oneof(segment, fc.constant(example))
}

function requestTo(spec: EndpointSpec): fc.Arbitrary<FuzzedRequest> {
  return fc
    .record({
      path: fc.constantFrom(spec.path, ...spec.aliases),
      id: idOf(spec),
      asked: queryAndBody(spec),
      method: method(spec.method),
      headers: fewHeaders,
      type: contentTypeOf(spec.form ? `multipart/form-data; boundary=${BOUNDARY}` : 'application/json'),
    })
    .map(({ path, id, asked: { query, body }, type, ...rest }) => ({
      method: rest.method,
      path: path.replaceAll(/\{\w+\}/g, id) + (query === '' ? '' : `?${query}`),
      headers:
        rest.method === 'GET' || rest.method === 'HEAD' ? rest.headers : { 'content-type': type, ...rest.headers },
      ...(rest.method === 'GET' || rest.method === 'HEAD' ? {} : { body }),
      ...(rest.method === spec.method ? { surface: surfaceOf(path, spec.surface), endpoint: spec.id } : {}),
    }))
}

const elsewhere: fc.Arbitrary<FuzzedRequest> = fc.record({
  path: fc.oneof(
    fc.tuple(fc.constantFrom(...OTHER_PATHS), segment).map(([path, rest]) => path + rest),
    fc.tuple(fc.constantFrom(...ALL_ENDPOINTS), segment).map(([{ path }, rest]) => `/${rest}${path}`),
    fc.constantFrom(
      '/v1/../admin/v1/accounts',
      '/v1//jobs',
      '/v1/jobs/',
      '/V1/JOBS',
      '/%76%31/jobs',
      '/v1/jobs%00',
      '//',
    ),
  ),
  method: fc.constantFrom(...METHODS),
  headers: fewHeaders,
})

const scripted: fc.Arbitrary<FuzzedRequest> = fc
  .record({
    // Without a bias to small ones: each tells one request from all others.
    act: fc.noBias(fc.integer({ min: RECORDINGS.length, max: 1e12 - 1 })),
    front: fc.constantFrom(...CLIENT_FORMATS),
    back: fc.constantFrom(...CLIENT_FORMATS),
    stream: fc.boolean(),
  })
  .map(scriptedBy)

export function scriptedBy(script: Script): FuzzedRequest {
  const { id, path, surface } = ALL_ENDPOINTS.find(({ format }) => format === script.front)!
  return {
    method: 'POST',
    path: pathFor(script, path),
    // The mark of an SDK, for which codes are spelt out at every door.
    headers: { 'content-type': 'application/json', 'x-stainless-lang': 'js' },
    body: JSON.stringify(bodyFor(script)),
    surface: surfaceOf(path, surface),
    script,
    endpoint: `${id} by a script`,
  }
}

const request = fc.oneof(
  ...ALL_ENDPOINTS.map((spec) => ({ weight: (WEIGHTS[spec.id] ?? 1) * 4, arbitrary: requestTo(spec) })),
  { weight: 12, arbitrary: elsewhere },
  { weight: 40, arbitrary: scripted },
)

/** Now and then the bytes are damaged after all. */
const damaged: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(request, fc.nat({ max: 30 }), fc.nat())
  .map(([made, damage, at]) => {
    const { body } = made
    if (body === undefined || made.script || damage > 2) return made
    const cut = at % (body.length + 1)
    const middle = ['', '\\u0000', '\u0000'][damage]
    return { ...made, body: damage === 0 ? body.slice(0, cut) : `${body.slice(0, cut)}${middle}${body.slice(cut)}` }
  })

// ---- How it travels.

/** More than any endpoint takes. */
const BYTES_TOO_MANY = 10_000_000_000
const SIZES = [0, 1, 65_535, 65_536, 65_537, 131_072, 131_072, 1_000_000]
const UNSENT = [1, 65_535, 65_536, 65_537, 1_000_000, BYTES_TOO_MANY]

const oneIn = (count: number) => fc.nat({ max: count - 1 }).map((value) => value === 0)
const travel = fc.record({
  isRaw: oneIn(5),
  chunked: fc.boolean(),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
  pipelined: oneIn(8),
  leaves: oneIn(12),
  anonymous: oneIn(8),
  expects: oneIn(20),
  size: fc.option(fc.constantFrom(...SIZES), { freq: 6 }),
  unsent: fc.option(fc.constantFrom(...UNSENT), { freq: 6 }),
})

/** Blanks behind JSON are JSON. */
const sized = (body: string, size: number) => (size < 2 ? '{'.repeat(size) : body.padEnd(size))

/** Who is known and has a body that is read is waited for; everybody else is answered before it is there. */
function unsentOf({ method, path, endpoint }: FuzzedRequest, isKnown: boolean, wanted: number): number {
  const isRead = ['POST', 'PUT', 'PATCH', 'DELETE'].includes(method)
  const isElsewhere = endpoint === undefined && /^\/(?:v2|admin)\//.test(path)
  return !isRead || !isKnown || isElsewhere ? wanted : BYTES_TOO_MANY
}

export const fuzzed: fc.Arbitrary<FuzzedRequest> = fc.tuple(damaged, travel).map(([made, how]) => {
  const { isRaw, size, unsent: wanted, expects, ...rest } = how
  if (!isRaw && USUAL.has(made.method)) return made
  const anonymous = rest.anonymous && !made.script
  const isSized = size !== null && !made.script
  const unsent = wanted === null || made.script || rest.leaves ? 0 : unsentOf(made, !anonymous, wanted)
  const wire: Wire = {
    chunked: rest.chunked && unsent === 0,
    cuts: rest.cuts,
    unsent,
    pipelined: rest.pipelined && unsent === 0,
    leaves: rest.leaves,
  }
  return {
    ...made,
    ...(isSized ? { body: sized(made.body ?? '{}', size) } : {}),
    ...(expects ? { headers: { ...made.headers, expect: '100-continue' } } : {}),
    ...(anonymous ? { anonymous } : {}),
    wire,
  }
})
