// The pages of the API as Markdown: an index, and one page an operation. Agents read the Markdown, people what is made of it.
import { type EndpointSpec, isDataEndpoint, type JsonSchema, TAGS } from '../catalog/endpoint.ts'
import type { Catalog } from '../catalog/store.ts'
import { priceSummary, priceWords } from '../meter/price-words.ts'
import { RECORDED } from './answers.ts'
import { examplesOf } from './examples.ts'
import { bodyOf, exampleOf, type Listed, schemaIn } from './operation.ts'
import { typeWords } from './type-words.ts'

/** Deeper members are named by the descriptions of those above. */
const FIELD_DEPTH_MAX = 4

/** Where people get a form that sends the request. */
export const TRY_IT = '<!-- try it -->'

const code = (text: string) => `\`${text}\``

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
