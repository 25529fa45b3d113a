// Generates the reference pages of the data endpoints.
import { type DataEndpointSpec, exampleBody, isDataEndpoint, rulesOf } from '../../catalog/endpoint.ts'
import { allowedText, type Field } from '../../catalog/field.ts'
import { ALL_ENDPOINTS } from '../../entries.ts'
import type { ClientCall, Tables } from './snippet.ts'

const ERRORS = [
  '| Status | Code | When |',
  '|---|---|---|',
  '| 400 | 10000 | a parameter is unknown, repeated, missing or invalid; the message names it and what is allowed |',
  '| 401 | 20000 | the key is missing or not valid |',
  '| 402 | 40000 | the credits do not cover the call |',
  '| 403 | 20001 | the key may not use this data, or the user is protected or suspended |',
  '| 404 | 30000 | there is no such user, or no such path |',
  '| 429 | 40001 | a limit is reached; `retry-after` says when to try again |',
  '| 502 | 50000 | the data source failed or sent something unreadable |',
  '| 503 | 50001 | the data source is not available |',
  '| 504 | 50002 | the data source was too slow |',
].join('\n')

export function analyticsReference(specs: readonly DataEndpointSpec[]): string {
  return page(
    'Fields of site analytics',
    [
      `${specs.length} GET endpoints with statistics of websites and search keywords. A successful answer is the native JSON of the data source, byte for byte: there is no common schema, and a listed field may be absent. Errors use the native envelope.`,
      'Query names are case-sensitive. Unknown and repeated names, CR, LF, NUL, malformed percent-encoding and invalid values are rejected. Text is trimmed and has 1 to 2048 UTF-8 bytes; domains are used exactly as written.',
      'Days are UTC days. `28d` means 28 days that end three days ago; `3m` means the three complete months before the present one. `from` and `to` go together, and not with `latest`. The days are always sent to the source as `from` and `to`. `isWindow` is true for rolling days and false otherwise unless it is given; `timeGranularity` is Daily for rolling days and Monthly for months where the endpoint allows it.',
    ],
    specs,
  )
}

export function socialReference(specs: readonly DataEndpointSpec[]): string {
  return page(
    'Fields of social data',
    [
      'Profiles and timelines in a v2-style `data` / `includes` / `meta` structure. Success has no envelope, errors have the native one; the request id of a success is in the header `x-request-id`.',
      'Lists are comma-separated. `max_results` may be smaller than the source allows: `meta.next_token` then continues after the last tweet you got, so that none is skipped or repeated. Send it back as `pagination_token` with the other parameters unchanged.',
    ],
    specs,
  )
}

/** Where `client` in the examples comes from. */
const CLIENTS = 'In the examples `client` is one of the [typed clients](../guides/03-typed-clients.md).'

function page(title: string, paragraphs: readonly string[], specs: readonly DataEndpointSpec[]): string {
  const contents = specs.map((spec) => `- [\`${spec.path}\`](#${anchor(spec)}) ${spec.title}`).join('\n')
  const parts = [
    `# ${title}`,
    '<!-- Generated from the catalog. Change the catalog, not this page. -->',
    ...paragraphs,
    CLIENTS,
    contents,
    '## Errors',
    ERRORS,
    ...specs.map(section),
  ]
  return `${parts.join('\n\n')}\n`
}

const anchor = (spec: DataEndpointSpec) =>
  spec.id
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/-$/, '')

function section(spec: DataEndpointSpec): string {
  const rows = Object.entries(spec.params).map(([name, field]) => row(name, field))
  return [
    `<a id="${anchor(spec)}"></a>`,
    `## ${spec.title}`,
    `\`GET ${spec.path}\``,
    spec.description,
    ...rulesOf(spec),
    ['| Parameter | Required | Default | Takes | Meaning |', '|---|---|---|---|---|', ...rows].join('\n'),
    `Answer: ${spec.returns}`,
    `\`\`\`sh\ncurl -H "Authorization: Bearer $TOLLGATE_KEY" '${exampleAddress(spec)}'\n\`\`\``,
    `\`\`\`ts\n${exampleCalls(spec).typescript}\n\`\`\``,
    `\`\`\`py\n${exampleCalls(spec).python}\n\`\`\``,
  ].join('\n\n')
}

function row(name: string, field: Field): string {
  const place = field.in === 'path' ? ' (in the path)' : ''
  const cells = [
    `\`${name}\`${place}`,
    field.required ? 'yes' : '',
    field.default === undefined ? '' : `\`${field.default}\``,
    allowedText(field),
    field.description,
  ]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function exampleAddress(spec: DataEndpointSpec): string {
  const required = Object.entries(spec.params).filter(([, field]) => field.required)
  const path = required.reduce((text, [name, field]) => text.replace(`{${name}}`, field.example), spec.path)
  const query = required
    .filter(([, field]) => field.in !== 'path')
    .map(([name, field]) => `${name}=${encodeURIComponent(field.example)}`)
    .join('&')
  return `http://127.0.0.1:8080${path}${query ? `?${query}` : ''}`
}

// Names of endpoints in the clients for TypeScript and Python. The clients are generated from them, and
// the reference and the console use them in examples.

const words = (path: string) => path.split(/[^A-Za-z0-9]+/).filter(Boolean)

export const pascal = (path: string) =>
  words(path)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

export const camel = (path: string) => pascal(path).replace(/^./, (letter) => letter.toLowerCase())

export const snake = (name: string) =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase()

const RESERVED = ['from', 'global', 'class', 'import', 'in', 'is', 'not']

/** A Python keyword gets an underscore. */
export const pythonName = (name: string) => (RESERVED.includes(snake(name)) ? `${snake(name)}_` : snake(name))

/** Written by hand in the clients. */
const SOCIAL: Readonly<Record<string, Omit<ClientCall, 'names'>>> = {
  'social/users': { typescript: 'social.users.byUsername', python: 'social.users.by_username', first: 'username' },
  'social/users/{id}': { typescript: 'social.users.byId', python: 'social.users.by_id', first: 'id' },
  'social/users/{id}/tweets': { typescript: 'social.page', python: 'social.page', first: 'id' },
}

function clientCall({ id, vendorPath, params }: DataEndpointSpec): ClientCall {
  const [group = '', ...rest] = vendorPath.split('/')
  const names = Object.fromEntries(Object.keys(params).map((name) => [name, pythonName(name)]))
  const analytics = {
    typescript: `analytics.${group}.${camel(rest.join('/'))}`,
    python: `analytics.${group}.${snake(rest.join('/'))}`,
  }
  return { ...(SOCIAL[id] ?? analytics), names }
}

/** A call with what is required, in both languages. */
function exampleCalls(spec: DataEndpointSpec): { typescript: string; python: string } {
  const { typescript, python, first, names } = clientCall(spec)
  const required = Object.entries(spec.params).filter(([, field]) => field.required)
  const others = required.filter(([name]) => name !== first)
  const given = ([, field]: [string, Field]) => JSON.stringify(field.example)
  const alone = required.filter(([name]) => name === first).map(given)
  const members = others.map((one) => `${one[0]}: ${given(one).replaceAll('"', "'")}`).join(', ')
  return {
    typescript: `await client.${typescript}(${[...alone.map((value) => value.replaceAll('"', "'")), ...(members ? [`{ ${members} }`] : [])].join(', ')})`,
    python: `client.${python}(${[...alone, ...others.map((one) => `${names[one[0]]}=${given(one)}`)].join(', ')})`,
  }
}

// Data for examples, from the table of endpoints.

/** By the id of a text endpoint, or by the kind of product; if several endpoints sell a kind, the first. */
export function snippetTables(): Pick<Tables, 'posts' | 'calls'> {
  const posts = ALL_ENDPOINTS.flatMap((spec) => {
    const { id, sells, format, method, path } = spec
    if (!sells || method !== 'POST') return []
    const { model: _, file: __, ...example } = exampleBody(spec)
    return [[format ? id : sells, { id, path, example }] as const]
  })
  const calls = ALL_ENDPOINTS.filter(isDataEndpoint).map((spec) => [spec.id, clientCall(spec)] as const)
  return { posts: Object.fromEntries(posts.toReversed()), calls: Object.fromEntries(calls) }
}
