// Calls any endpoint with an API key: parameters are options, and the answer is shown as a table, a chart or JSON.
import { readFile } from 'node:fs/promises'
import { type EndpointSpec, exampleBody, isDataEndpoint, type JsonSchema, rulesOf } from '../../catalog/endpoint.ts'
import { allowedText } from '../../catalog/field.ts'
import {
  CliError,
  type Command,
  flag,
  type Invocation,
  type Option,
  type Told,
  takes,
  text,
  told,
} from '../../cli/command.ts'
import { list } from '../../cli/table.ts'
import { ALL_ENDPOINTS } from '../../entries.ts'
import { nearest } from '../../kernel/nearest.ts'
import { type Priced, priceSummary } from '../../meter/price-words.ts'
import { chartOf, saidIn, showAnswer } from './present.ts'

/** The name of an endpoint on the command line: `websites/visits`, `social/users/id/tweets`, `chat`. */
const nameOf = ({ id }: EndpointSpec) => id.replace(/^siteanalytics\//, '').replaceAll(/[{}]/g, '')

/** Endpoints that only stream are left out, because a table needs the whole answer. */
const CALLABLE = ALL_ENDPOINTS.filter((spec) => spec.answer !== undefined || !spec.streams)
const ENDPOINT_NAMES = CALLABLE.map(nameOf)

const OWN: Readonly<Record<string, Option>> = {
  body: takes('json', 'The whole body as JSON, or @file, or - for standard input.'),
  chart: flag('Draws the numbers as a bar chart.'),
  by: takes('column', 'The column to draw.'),
  'api-key': takes('key', 'The API key; TOLLGATE_KEY by default.'),
}

const KEPT = new Set(['stream', ...Object.keys(OWN)])
// A JSON Schema may hold anything; ours hold these.
const bodyMembers = ({ body }: EndpointSpec) => (body?.properties ?? {}) as Record<string, JsonSchema>

function findEndpoint(name: string): EndpointSpec | undefined {
  return CALLABLE.find((spec) => nameOf(spec) === name || spec.id === name || spec.path === name)
}

/** The options of an endpoint: its parameters, and the members of its body. */
function optionsOf(name: string | undefined): Readonly<Record<string, Option>> {
  const spec = name === undefined ? undefined : findEndpoint(name)
  if (!spec) return OWN
  const params = Object.entries(spec.params ?? {}).map(([one, field]): [string, Option] => [
    one,
    {
      type: 'string',
      value: 'allowed' in field ? 'word' : field.kind,
      help: `${field.required ? 'Required. ' : ''}${field.description} Takes ${allowedText(field)}.${field.default === undefined ? '' : ` Default: ${field.default}.`}`,
      ...('allowed' in field ? { allowed: field.allowed } : {}),
    },
  ])
  // As JSON Schema has it.
  const required = (spec.body?.required ?? []) as string[]
  const members = Object.entries(bodyMembers(spec)).map(([one, schema]): [string, Option] => [
    one,
    {
      type: 'string',
      value: [schema.type].flat().some((type) => type === 'array' || type === 'object') ? 'json' : 'value',
      help: `${required.includes(one) ? 'Required. ' : ''}${schema.description ?? ''}`,
      ...(Array.isArray(schema.enum) ? { allowed: schema.enum.filter((value) => value !== null).map(String) } : {}),
    },
  ])
  return { ...Object.fromEntries([...params, ...members].filter(([one]) => !KEPT.has(one))), ...OWN }
}

/**
 * Converts an option's text to the type in the schema. Text stays text if the schema allows it, unless it is a JSON
 * list or object.
 */
function memberValue(name: string, schema: JsonSchema, value: string): unknown {
  // As JSON Schema has it.
  const choices = (schema.oneOf ?? [schema]) as JsonSchema[]
  const types = choices.flatMap(({ type }) => type)
  const takesText = types.includes('string') || types.includes(undefined)
  if (takesText && !/^[[{]/.test(value) && !(types.includes('integer') && /^\d+$/.test(value))) return value
  try {
    return JSON.parse(value)
  } catch {
    if (takesText) return value
    throw new CliError(`--${name} takes JSON: ${value.slice(0, 60)} is none.`, 2)
  }
}

/** Body fields that a plain text argument can stand for, the most likely first. */
const TEXT_MEMBERS = ['messages', 'input', 'prompt', 'query', 'contents'] as const

const takesNoText = (spec: EndpointSpec) =>
  new CliError(`"${nameOf(spec)}" takes no text as an argument. See: tollgate call ${nameOf(spec)} --help`, 2)

/** A body with `said` as its text; other required fields come from the endpoint's example. */
function bodySaying(spec: EndpointSpec, said: string): Record<string, unknown> {
  const member = TEXT_MEMBERS.find((name) => name in bodyMembers(spec))
  if (member === undefined) throw takesNoText(spec)
  const value = {
    messages: [{ role: 'user', content: said }],
    contents: [{ role: 'user', parts: [{ text: said }] }],
    input: said,
    prompt: said,
    query: said,
  }[member]
  // As JSON Schema has it.
  const required = (spec.body?.required ?? []) as string[]
  const demanded = Object.entries(exampleBody(spec)).filter(
    ([name, one]) => required.includes(name) && name !== 'model' && ['string', 'number'].includes(typeof one),
  )
  return { ...Object.fromEntries(demanded), [member]: value }
}

interface ListedModel {
  readonly uid: string
  readonly name: string
  readonly type: string
  readonly pricing: Priced | null
}

/** The default model: that of the example if it is offered, otherwise the first of its kind. */
async function modelFor(spec: EndpointSpec, call: Invocation, key: string): Promise<string | undefined> {
  // The gateway's own answer.
  const { data } = (await call.api.ask('GET', '/v1/models', { key })).value as { data: readonly ListedModel[] }
  const usual = exampleBody(spec).model
  const chosen = data.find(({ uid }) => uid === usual) ?? data.find(({ type }) => type === spec.sells)
  if (chosen) call.note(`Model: ${chosen.uid}. Choose another with --model; "tollgate call models" lists them.\n`)
  return chosen?.uid
}

async function bodyOf(spec: EndpointSpec, call: Invocation): Promise<Record<string, unknown> | undefined> {
  if (!spec.body) return undefined
  const said = call.args[1]
  const given = text(call, 'body')
  const read =
    given === '-' ? await call.input() : given?.startsWith('@') ? await readFile(given.slice(1), 'utf8') : given
  let body: Record<string, unknown> = {}
  try {
    body = read === undefined ? (said === undefined ? {} : bodySaying(spec, said)) : JSON.parse(read)
  } catch {
    throw new CliError('--body is not JSON.', 2)
  }
  for (const [name, schema] of Object.entries(bodyMembers(spec))) {
    const value = KEPT.has(name) ? undefined : text(call, name)
    if (value !== undefined) body[name] = memberValue(name, schema, value)
  }
  return body
}

function addressOf(spec: EndpointSpec, call: Invocation): string {
  const query = new URLSearchParams()
  let { path } = spec
  const first = Object.entries(spec.params ?? {}).find(([, field]) => field.required)?.[0]
  if (call.args[1] !== undefined && spec.body === undefined && first === undefined) throw takesNoText(spec)
  for (const [name, field] of Object.entries(spec.params ?? {})) {
    const value = text(call, name) ?? (spec.body === undefined && name === first ? call.args[1] : undefined)
    if (value === undefined) {
      if (field.required) throw new CliError(`--${name} is required: ${allowedText(field)}.`, 2)
    } else if (field.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value))
    else query.append(name, value)
  }
  const search = query.toString()
  return search ? `${path}?${search}` : path
}

async function run(call: Invocation): Promise<Told> {
  const name = call.args[0] ?? ''
  const spec = findEndpoint(name)
  if (!spec) throw unknown(name)
  const key = text(call, 'api-key') ?? call.settings.apiKey
  if (key === undefined)
    throw new CliError('There is no API key: set TOLLGATE_KEY, or give --api-key. "tollgate keys create" makes one.')
  const body = await bodyOf(spec, call)
  if (body && call.args[1] !== undefined && body.model === undefined && 'model' in bodyMembers(spec))
    body.model = await modelFor(spec, call, key)
  const { value, headers } = await call.api.ask(spec.method, addressOf(spec, call), { key, body })
  const charge = headers['x-tollgate-charge']
  const cost = charge === undefined ? '' : `\n\n${charge} credits.`
  const by = text(call, 'by')
  const isDrawn = call.values.chart === true || by !== undefined
  return told(value, (answer) => `${isDrawn ? chartOf(answer, by) : inWords(spec, answer)}${cost}`)
}

function inWords(spec: EndpointSpec, answer: unknown): string {
  if (spec.id !== 'models') return saidIn(answer) ?? showAnswer(answer)
  // The gateway's own answer.
  const { data } = answer as { data: readonly ListedModel[] }
  const columns = {
    MODEL: 'uid',
    NAME: 'name',
    TYPE: 'type',
    CREDITS: (row: ListedModel) => priceSummary(row.pricing),
  } as const
  return list(data, columns, 'No models: this key may use none, or the catalog has none.').words
}

function unknown(name: string): CliError {
  const near = ENDPOINT_NAMES.filter((one) => one.split('/').some((part) => part === name) || one.includes(name))
  const meant = near.length > 0 ? undefined : nearest(name, ENDPOINT_NAMES)
  if (meant !== undefined) return new CliError(`There is no endpoint "${name}". Did you mean "${meant}"?`, 2)
  const listed = near.length > 0 ? near : ENDPOINT_NAMES
  return new CliError(
    `There is no endpoint "${name}". There ${near.length === 1 ? 'is' : 'are'}: ${listed.join(', ')}.`,
    2,
  )
}

export const CALL_COMMAND: Command = {
  name: 'call',
  summary: 'Calls an endpoint with an API key, and shows its answer as a table, a chart or JSON.',
  args: ['endpoint', '[text]'],
  options: OWN,
  completes: ENDPOINT_NAMES,
  optionsFor: ([endpoint]) => optionsOf(endpoint),
  about:
    'The text is the prompt for a model, or the first parameter of a data endpoint: tollgate call chat "Hi", tollgate call websites/visits example.com. Parameters, and members of a body, are options by their own names: tollgate call websites/visits --keys example.com --chart. With an endpoint, --help lists them.',
  aboutFor([endpoint]) {
    const spec = endpoint === undefined ? undefined : findEndpoint(endpoint)
    if (!spec) return undefined
    return [`${spec.title}: ${spec.description}`, ...(isDataEndpoint(spec) ? rulesOf(spec) : [])].join(' ')
  },
  run,
}
