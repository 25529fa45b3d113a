// Whole requests: a door, its parameters, headers and body, and now and then something that no client would send.
import fc from 'fast-check'
import type { Surface } from '../../src/catalog/endpoint.ts'
import { type EndpointSpec, isDataEndpoint } from '../../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../../src/catalog/index.ts'
import { surfaceOf } from '../../src/http/envelope.ts'
import { bodyOf, text } from './bodies.ts'

export interface FuzzedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Whose words a refusal must use; undefined where the request may not reach any door. */
  readonly surface?: Surface
  /** The door that it was made for. */
  readonly endpoint?: string
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS']
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

const contentType = fc.oneof(
  { weight: 15, arbitrary: fc.constant('application/json') },
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
      query: queryOf(spec),
      method: method(spec.method),
      headers: fewHeaders,
      type: contentType,
      body: bodyOf(spec.id),
    })
    .map(({ path, id, query, type, body, ...rest }) => ({
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
    fc.tuple(fc.constantFrom(...ENDPOINTS), segment).map(([{ path }, rest]) => `/${rest}${path}`),
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

const request = fc.oneof(
  ...ENDPOINTS.map((spec) => ({ weight: (WEIGHTS[spec.id] ?? 1) * 4, arbitrary: requestTo(spec) })),
  { weight: 12, arbitrary: elsewhere },
)

/** Now and then the bytes are damaged after all. */
export const fuzzed: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(request, fc.nat({ max: 30 }), fc.nat())
  .map(([made, damage, at]) => {
    const { body } = made
    if (body === undefined || damage > 2) return made
    const cut = at % (body.length + 1)
    const middle = ['', '\\u0000', '\u0000'][damage]
    return { ...made, body: damage === 0 ? body.slice(0, cut) : `${body.slice(0, cut)}${middle}${body.slice(cut)}` }
  })
