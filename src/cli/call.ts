// Any endpoint from the terminal, as a caller: its parameters are the options, and its answer a table, a chart or JSON.
import { readFile } from 'node:fs/promises'
import { type EndpointSpec, isDataEndpoint, type JsonSchema } from '../catalog/endpoint.ts'
import { allowedText } from '../catalog/field.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { rulesOf } from '../catalog/reference.ts'
import { CliError, type Command, type Invocation, type Option, type Told, text, told } from './command.ts'
import { chartOf, showAnswer } from './present.ts'

/** What stands for an endpoint on the command line: `websites/visits`, `social/users/id/tweets`, `chat`. */
const nameOf = ({ id }: EndpointSpec) => id.replace(/^siteanalytics\//, '').replaceAll(/[{}]/g, '')

/** A stream has no end that a table could wait for. */
const CALLABLE = ENDPOINTS.filter((spec) => spec.answer !== undefined || !spec.streams)
export const ENDPOINT_NAMES = CALLABLE.map(nameOf)

const OWN: Readonly<Record<string, Option>> = {
  body: { type: 'string', value: 'json', help: 'The whole body as JSON, or @file, or - for standard input.' },
  chart: { type: 'boolean', help: 'Draws the numbers as a bar chart.' },
  by: { type: 'string', value: 'column', help: 'The column to draw.' },
  'api-key': { type: 'string', value: 'key', help: 'The API key; TOLLGATE_KEY by default.' },
}

const KEPT = new Set(['stream', ...Object.keys(OWN)])
// A JSON Schema may hold anything; ours hold these.
const bodyMembers = ({ body }: EndpointSpec) => (body?.properties ?? {}) as Record<string, JsonSchema>

function findEndpoint(name: string): EndpointSpec | undefined {
  return CALLABLE.find((spec) => nameOf(spec) === name || spec.id === name || spec.path === name)
}

/** The options of an endpoint: its parameters, and the members of its body. */
export function optionsOf(name: string | undefined): Readonly<Record<string, Option>> {
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

/** What was written, as the schema wants it: text stays text where text is taken, unless it is a list or an object. */
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

async function bodyOf(spec: EndpointSpec, call: Invocation): Promise<Record<string, unknown> | undefined> {
  if (!spec.body) return undefined
  const given = text(call, 'body')
  const read =
    given === '-' ? await call.input() : given?.startsWith('@') ? await readFile(given.slice(1), 'utf8') : given
  let body: Record<string, unknown> = {}
  try {
    body = read === undefined ? {} : JSON.parse(read)
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
  for (const [name, field] of Object.entries(spec.params ?? {})) {
    const value = text(call, name)
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
  const { value, headers } = await call.api.ask(spec.method, addressOf(spec, call), { key, body })
  const charge = headers['x-tollgate-charge']
  const cost = charge === undefined ? '' : `\n\n${charge} credits.`
  const by = text(call, 'by')
  const isDrawn = call.values.chart === true || by !== undefined
  return told(value, (answer) => `${isDrawn ? chartOf(answer, by) : showAnswer(answer)}${cost}`)
}

function unknown(name: string): CliError {
  const near = ENDPOINT_NAMES.filter((one) => one.split('/').some((part) => part === name) || one.includes(name))
  const listed = near.length > 0 ? near : ENDPOINT_NAMES
  return new CliError(
    `There is no endpoint "${name}". There ${near.length === 1 ? 'is' : 'are'}: ${listed.join(', ')}.`,
    2,
  )
}

export const CALL_COMMAND: Command = {
  name: 'call',
  summary: 'Calls an endpoint with an API key, and shows its answer as a table, a chart or JSON.',
  args: ['endpoint'],
  options: OWN,
  optionsFor: ([endpoint]) => optionsOf(endpoint),
  about:
    'Parameters, and members of a body, are options by their own names: tollgate call websites/visits --keys example.com --chart. With an endpoint, --help lists them.',
  aboutFor([endpoint]) {
    const spec = endpoint === undefined ? undefined : findEndpoint(endpoint)
    if (!spec) return undefined
    return [`${spec.title}: ${spec.description}`, ...(isDataEndpoint(spec) ? rulesOf(spec) : [])].join(' ')
  },
  run,
}
