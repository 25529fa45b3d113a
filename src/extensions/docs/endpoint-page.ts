// The pages of the API as Markdown: an index, and one page an operation. Agents read the Markdown, people what is made
// of it.
import { type EndpointSpec, isDataEndpoint, type JsonSchema, TAGS } from '../../catalog/endpoint.ts'
import type { Catalog } from '../../catalog/store.ts'
import { priceSummary, priceWords } from '../../meter/price-words.ts'
import recorded from './answers.json' with { type: 'json' }
import { examplesOf } from './examples.ts'
import { bodyOf, exampleOf, type Listed, schemaIn } from './operation.ts'

// Answers to the examples of the endpoints, as they were recorded: see test/pages/answers.ts.

export interface RecordedAnswer {
  readonly status: number
  readonly type: string
  /** What the call cost, in credits. */
  readonly charge?: string
  readonly body?: unknown
  readonly text?: string
  /** Of sound: its size. */
  readonly bytes?: number
}

/** By the id of the endpoint. */
const RECORDED: Readonly<Record<string, RecordedAnswer>> = recorded

/** Deeper members are named by the descriptions of those above. */
const FIELD_DEPTH_MAX = 4

/** Where people get a form that sends the request. */
export const TRY_IT = '<!-- try it -->'

const oneLine = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .join(' ')

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => oneLine(cell).replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}

/** Text, for Markdown: what stands in angle brackets is a word. */
const plain = (text: string) => text.replaceAll('<', '&lt;')

export function indexPage(all: readonly Listed[], document: JsonSchema): string {
  const tags = document.tags as Array<{ name: string; description: string }> // The document is our own.
  const sections = tags.map(({ name, description }) => {
    const rows = all
      .filter(({ operation }) => operation.tags.includes(name))
      .map(({ method, path, href, operation }) => [
        `<a id="${operation.operationId}"></a>[${method} ${path}](${href})`,
        operation.summary,
      ])
    return `## ${name}\n\n${description}\n\n${table(['Endpoint', 'What it does'], rows)}`
  })
  return [
    '# API reference',
    'Send `Authorization: Bearer <key>` with every request; a key looks like `tg_live_…`. Every answer has an `x-request-id` header, and every paid answer an `x-tollgate-charge` header with its cost in credits. In bodies, null counts as absent. The same as OpenAPI 3.1: [/openapi.json](/openapi.json).',
    ...sections,
  ].join('\n\n')
}

export function endpointPage(listed: Listed, document: JsonSchema, catalog: Catalog | undefined): string {
  const { method, path, operation, spec } = listed
  return [
    `# ${operation.summary}`,
    code(`${method} ${path}`),
    plain(operation.description),
    ...(spec && isDataEndpoint(spec) ? priceSection(spec, catalog) : []),
    '## Request',
    ...examplesOf(listed, document).map(
      ({ label, language, code: text }) => `\`\`\`${language} tab=${label.replaceAll(' ', '_')}\n${text}\n\`\`\``,
    ),
    TRY_IT,
    ...answerSection(listed, document),
    ...parameterSection(listed),
    ...bodySection(listed, document),
    ...(spec && isDataEndpoint(spec) ? [] : priceSection(spec, catalog)),
    ...errorSection(listed),
  ].join('\n\n')
}

function parameterSection({ operation: { parameters } }: Listed): string[] {
  if (parameters.length === 0) return []
  const rows = parameters.map((field) => [
    `${code(field.name)}${field.required ? ' **required**' : ''}`,
    field.in,
    typeWords(field.schema),
    plain(field.description ?? ''),
  ])
  return ['## Parameters', table(['Name', 'In', 'Type', 'Meaning'], rows)]
}

/** `messages[].content[].text`: members of members, as they are reached. */
function fieldsOf(schema: JsonSchema, prefix = '', depth = 0): string[][] {
  const required = new Set((schema.required ?? []) as string[]) // As JSON Schema has it.
  return Object.entries(schemaIn(schema.properties ?? {})).flatMap(([name, given]) => {
    const field = schemaIn(given)
    const at = `${prefix}${name}`
    const row = [
      `${code(at)}${required.has(name) ? ' **required**' : ''}`,
      typeWords(field),
      plain(String(field.description ?? '')),
    ]
    if (depth + 1 >= FIELD_DEPTH_MAX) return [row]
    const items = field.items === undefined ? [] : fieldsOf(schemaIn(field.items), `${at}[].`, depth + 1)
    return [row, ...fieldsOf(field, `${at}.`, depth + 1), ...items]
  })
}

function bodySection(listed: Listed, document: JsonSchema): string[] {
  const body = bodyOf(listed, document)
  if (!body) return []
  const rows = fieldsOf(body)
  const said =
    rows.length > 0 ? table(['Field', 'Type', 'Meaning'], rows) : plain(String(body.description ?? 'A JSON object.'))
  return ['## Body', said]
}

const json = (value: unknown) => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``

function answerSection({ operation, spec }: Listed, document: JsonSchema): string[] {
  const recorded = spec && RECORDED[spec.id]
  if (!recorded) {
    const success = Object.entries(operation.responses).find(([status]) => status.startsWith('2'))?.[1]
    const schema = success?.content?.['application/json']?.schema
    return schema ? ['## Answer', 'An answer has this shape:', json(exampleOf(schema, document))] : []
  }
  const cost = recorded.charge === undefined ? '' : ` This call cost ${recorded.charge} credits.`
  const intro = `${spec.returns ?? 'The answer.'} Recorded from the simulated vendors; lists are cut to two rows.${cost}`
  if (recorded.body !== undefined) return ['## Answer', intro, json(recorded.body)]
  if (recorded.text !== undefined) return ['## Answer', intro, `\`\`\`text\n${recorded.text}\n\`\`\``]
  return ['## Answer', `${spec.returns ?? ''} ${recorded.bytes} bytes of ${code(recorded.type)}.${cost}`.trim()]
}

/** What the current catalog sells by this endpoint. */
function priceSection(spec: EndpointSpec | undefined, catalog: Catalog | undefined): string[] {
  if (!spec) return []
  if (!spec.sells) return spec.tag === 'Account and models' ? ['Free of charge.'] : []
  if (!catalog) return []
  const { models, endpoints } = catalog.input
  if (isDataEndpoint(spec)) {
    const pricing = (endpoints[spec.product] ?? models[spec.product])?.pricing
    const { amount, per } = priceWords(pricing ?? null)
    return pricing ? [`**Price:** ${amount} credits ${per}.`] : []
  }
  const offered = Object.entries(catalog.document.models).filter(
    ([, model]) =>
      model.enabled && model.type === spec.sells && (!spec.format || model.clientFormats.includes(spec.format)),
  )
  if (offered.length === 0) return ['No model of the current catalog is offered here.']
  const rows = offered.map(([uid, { name }]) => [code(uid), name, priceSummary(models[uid]?.pricing ?? null)])
  return ['## Models and prices', table(['Model', 'Name', 'Price in credits'], rows)]
}

function errorSection({ operation: { responses } }: Listed): string[] {
  const rows = Object.entries(responses)
    .filter(([status]) => !status.startsWith('2'))
    .flatMap(([status, { description }]) =>
      description.split('\n\n').map((line) => {
        const [, number = '', text = ''] = /^`(\d+)` (.*)$/s.exec(line) ?? ['', '', line]
        return [status, number === '' ? '' : code(number), plain(text)]
      }),
    )
  return [
    '## Errors',
    'What each means and what to do: [error codes](/docs/reference/errors).',
    table(['Status', 'Code', 'Meaning'], rows),
  ]
}

/** The group of an operation, for the menu. */
export const tagOf = ({ operation }: Listed) => operation.tags[0] ?? Object.keys(TAGS)[0] ?? ''

// Types as people read them: "whole number, 1 or more" and not "integer from 1 to 9007199254740991".

/** Bounds that stand for "as large as a number can be". */
const UNBOUNDED = 999_999_999_999_999

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  object: 'object',
  array: 'list',
  null: 'null',
}
const PLURALS: Readonly<Record<string, string>> = {
  string: 'texts',
  integer: 'whole numbers',
  number: 'numbers',
  object: 'objects',
}

const code = (value: unknown) => `\`${String(value)}\``

/** In Markdown. That something may be null is left out: null counts as absent everywhere. */
function typeWords(schema: JsonSchema): string {
  if (schema.const !== undefined) return `only ${code(schema.const)}`
  if (Array.isArray(schema.enum)) {
    const words = schema.enum.filter((value) => value !== null).map(code)
    return words.length === 1 ? `only ${words[0]}` : words.join(', ')
  }
  const choices = [schema.oneOf ?? schema.anyOf ?? []].flat().map((one) => typeWords(schemaIn(one)))
  if (choices.length > 0) return [...new Set(choices)].filter((one) => one !== 'null').join(' or ')
  const types = [schema.type ?? []].flat().map(String)
  const named = types.filter((type) => type !== 'null').map((type) => typeWord(type, schema))
  return [named.length > 0 ? named.join(' or ') : 'anything', boundsOf(schema, types)].filter(Boolean).join(', ')
}

function typeWord(type: string, { items, format, contentMediaType }: JsonSchema): string {
  if (type === 'string' && format === 'date-time') return 'time'
  if (type === 'string' && format === 'binary') return 'file'
  if (type === 'string' && contentMediaType === 'application/json') return 'JSON as text'
  if (type !== 'array' || !items) return WORDS[type] ?? type
  const inner = [schemaIn(items).type ?? []].flat().map(String)
  const [only] = inner.filter((one) => one !== 'null')
  return inner.length > 0 && only !== undefined ? `list of ${PLURALS[only] ?? 'values'}` : 'list'
}

function boundsOf(schema: JsonSchema, types: readonly string[]): string {
  const bound = (value: unknown) => (typeof value === 'number' && Math.abs(value) < UNBOUNDED ? value : undefined)
  const grouped = (value: number) => value.toLocaleString('en')
  const range = (least: number | undefined, most: number | undefined, unit = '') => {
    if (least !== undefined && most !== undefined)
      return least === most ? `exactly ${grouped(least)}${unit}` : `${grouped(least)} to ${grouped(most)}${unit}`
    if (least !== undefined) return `${grouped(least)} or more${unit}`
    return most === undefined ? '' : `at most ${grouped(most)}${unit}`
  }
  const parts = [
    types.some((type) => type === 'integer' || type === 'number')
      ? range(bound(schema.minimum), bound(schema.maximum))
      : '',
    types.includes('array')
      ? range(bound(schema.minItems), bound(schema.maxItems), ' items').replace(/^1 or more items$/, 'at least one')
      : '',
    // That a text is not empty goes without saying.
    types.includes('string') && bound(schema.maxLength) !== undefined
      ? range(undefined, bound(schema.maxLength), ' characters')
      : '',
    schema.default === undefined ? '' : `${code(schema.default)} by default`,
  ]
  return parts.filter(Boolean).join(', ')
}
