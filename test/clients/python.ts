// The generated part of the client for Python: models, literals and the analytics methods, and the synchronous twin of
// what is written by hand.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonSchema } from '../../src/catalog/endpoint.ts'
import type { Field, LatestField } from '../../src/catalog/field.ts'
import { pythonName as attribute, pascal, snake } from '../../src/extensions/docs/reference.ts'
import {
  COUNTRIES,
  describe,
  explain,
  GROUPS,
  isCountry,
  METHODS,
  type Method,
  NAMED,
  NOTICE,
  PAID_IDS,
  PARAMS,
  PATHS,
  SCHEMAS,
} from './surface.ts'

const PACKAGE = join(import.meta.dirname, '..', '..', 'clients', 'python', 'src', 'tollgate_client')
const HEAD = `# ${NOTICE}\n# ruff: noqa\nfrom __future__ import annotations\n`

const text = (value: string) => JSON.stringify(value)
const literal = (values: readonly unknown[]) =>
  `Literal[${values.map((value) => (typeof value === 'string' ? text(value) : value === true ? 'True' : value === false ? 'False' : String(value))).join(', ')}]`
const union = (types: readonly string[]) => [...new Set(types)].join(' | ')

// ---- Models of answers.

/** Those that an answer is, and not only holds. */
const WHOLE = /(?:Answer|AnswerData|^Job|^Model)$/

class Models {
  readonly lines: string[] = []
  readonly #made = new Set<string>()

  add(name: string, schema: JsonSchema): string {
    if (this.#made.has(name)) return name
    this.#made.add(name)
    const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
    const required = (schema.required ?? []) as string[]
    const fields = properties.map(([one, inner]) => {
      const type = this.typeOf(inner, name + pascal(one))
      const optional = required.includes(one) ? type : union([...type.split(' | '), 'None'])
      const alias = attribute(one) === one ? '' : `alias=${text(one)}`
      const preset = required.includes(one) ? '' : 'default=None'
      const set = [preset, alias].filter(Boolean).join(', ')
      return `    ${attribute(one)}: ${optional}${alias ? ` = Field(${set})` : preset ? ' = None' : ''}\n`
    })
    this.lines.push(`class ${name}(${WHOLE.test(name) ? 'Answer' : 'Part'}):\n${fields.join('') || '    pass\n'}`)
    return name
  }

  typeOf(schema: JsonSchema, name: string): string {
    if (typeof schema.$ref === 'string') return schema.$ref.split('/').at(-1) ?? 'Any'
    if (schema.const !== undefined) return literal([schema.const])
    if (Array.isArray(schema.enum)) return literal(schema.enum)
    const choices = (schema.oneOf ?? schema.anyOf) as JsonSchema[] | undefined
    if (choices) return union(choices.map((one) => this.typeOf(one, name)))
    const types = [schema.type].flat().filter((type) => type !== undefined)
    return types.length === 0 ? 'Any' : union(types.map((type) => this.#plain(String(type), schema, name)))
  }

  #plain(type: string, schema: JsonSchema, name: string): string {
    if (type === 'array') return `list[${this.typeOf((schema.items ?? {}) as JsonSchema, `${name}Item`)}]`
    if (type !== 'object') return SIMPLE[type] ?? 'Any'
    if (schema.properties) return this.add(name, schema)
    const others = schema.additionalProperties
    const values =
      typeof others === 'object' && others !== null ? this.typeOf(others as JsonSchema, `${name}Value`) : 'Any'
    return `dict[str, ${values}]`
  }
}

const SIMPLE: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
}

function models(): string[] {
  const made = new Models()
  for (const name of NAMED.filter((one) => !one.endsWith('Request'))) {
    const schema = SCHEMAS[name]!
    if (name === 'JobStatus') made.lines.push(`JobStatus = ${literal(schema.enum as string[])}\n`)
    else if (name === 'AccountAnswer' || name === 'QuoteAnswer')
      made.add(`${name}Data`, (schema.properties as { data: JsonSchema }).data)
    else if (schema.type !== 'array') made.add(name, schema)
    else made.add(`${name}Item`, schema.items as JsonSchema)
  }
  made.lines.push('class TokenCount(Answer):\n    input_tokens: int\n')
  return made.lines
}

// ---- What is sent.

const REFERENCES = ['first_frame', 'last_frame']

/** What a member of a body takes. Messages and tools are mappings: their members grow every month. */
function sent(name: string, schema: JsonSchema): string {
  if (name === 'image_urls') return 'Sequence[Reference]'
  if (REFERENCES.includes(name)) return 'Reference'
  if (Array.isArray(schema.enum)) return literal(schema.enum.filter((value) => value !== null))
  const choices = (schema.oneOf ?? schema.anyOf) as JsonSchema[] | undefined
  if (choices) return union(choices.map((one) => sent('', one)))
  const types = [schema.type].flat().filter((type) => type !== undefined && type !== 'null')
  if (types.length === 0) return 'Any'
  return union(
    types.map((type) =>
      type === 'array'
        ? `Sequence[${sent('', (schema.items ?? {}) as JsonSchema)}]`
        : type === 'object'
          ? 'Mapping[str, Any]'
          : (SIMPLE[String(type)] ?? 'Any'),
    ),
  )
}

function bodies(): string[] {
  return NAMED.filter((name) => name.endsWith('Request')).map((name) => {
    const schema = SCHEMAS[name]!
    const preset = name === 'ImagesRequest' || name === 'VideoRequest' ? ['model'] : []
    const required = (schema.required as string[]).filter((one) => !preset.includes(one))
    const lines = Object.entries(schema.properties as Record<string, JsonSchema>)
      .filter(([one]) => one !== 'stream')
      .map(([one, inner]) => {
        const type = sent(one, inner)
        const comment = typeof inner.description === 'string' ? `    #: ${inner.description}\n` : ''
        return `${comment}    ${one}: ${required.includes(one) ? `Required[${type}]` : type}\n`
      })
    return `class ${name.replace('Request', 'Params')}(TypedDict, total=False):\n${lines.join('')}`
  })
}

function latestType({ daysMax, months }: LatestField): string {
  return daysMax > 0 ? 'str' : literal(months.map((count) => `${count}m`))
}

function fieldType(name: string, field: Field): string {
  if (isCountry(name, field)) return 'Country'
  switch (field.kind) {
    case 'integer':
      return 'int'
    case 'boolean':
      return field.allowed.length === 1 ? literal([field.allowed[0] === 'true']) : 'bool'
    case 'choice':
      return literal(field.allowed.flatMap((value) => (/^\d+$/.test(value) ? [value, Number(value)] : [value])))
    case 'list':
      return `Sequence[${literal(field.allowed)}]`
    case 'date':
      return 'str | date'
    case 'latest':
      return latestType(field)
    case 'json-array':
      return 'Sequence[Any] | str'
    default:
      return name.endsWith('_time') ? 'str | datetime' : 'str'
  }
}

function queries(): string[] {
  return PARAMS.filter(([name]) => /^(?:Social|Jobs)/.test(name)).map(([name, fields]) => {
    const lines = Object.entries(fields)
      // It is an argument of its own.
      .filter(([one]) => one !== 'username')
      .map(([one, field]) => `    #: ${describe(field)}\n    ${attribute(one)}: ${fieldType(one, field)}\n`)
    return `class ${name}(TypedDict, total=False):\n${lines.join('')}`
  })
}

export function pythonModels(): string {
  return [
    `${HEAD}`,
    'from datetime import date, datetime\nfrom typing import Any, Literal, Mapping, Sequence, Union\n\nfrom pydantic import Field\nfrom typing_extensions import Required, TypedDict\n\nfrom ._answer import Answer, Part\nfrom ._files import Reference\n',
    `PATHS = {\n${Object.entries(PATHS)
      .map(([name, path]) => `    ${text(snake(name))}: ${text(path)},\n`)
      .join('')}}\n`,
    `PaidEndpoint = ${literal(PAID_IDS)}\n`,
    `#: Two letters (ISO 3166), the number of the country, or the world.\nCountry = Union[int, ${literal(['world', ...Object.keys(COUNTRIES)])}]\n`,
    `COUNTRIES = {\n${Object.entries(COUNTRIES)
      .map(([code, number]) => `    ${text(code)}: ${number},\n`)
      .join('')}}\n`,
    ...models().map((model) => `\n${model}`),
    ...[...bodies(), ...queries()].map((one) => `\n${one}`),
  ].join('\n')
}

// ---- Methods.

function method(one: Method): string {
  const { spec, rest, answer } = one
  const fields = Object.entries(spec.params)
  const isList = SCHEMAS[answer]?.type === 'array'
  const model = isList ? `${answer}Item` : answer
  const signature = fields
    .toSorted(([, a], [, b]) => Number(b.required ?? false) - Number(a.required ?? false))
    .map(([name, field]) => {
      const type = fieldType(name, field)
      return `        ${attribute(name)}: ${field.required ? type : `${union([...type.split(' | '), 'None'])} = None`},\n`
    })
  const help = fields.map(([name, field]) => `        :param ${attribute(name)}: ${describe(field)}`)
  return [
    `    async def ${snake(rest)}(\n        self,\n        *,\n${signature.join('')}        options: CallOptions | None = None,\n    ) -> ${isList ? `Answers[${model}]` : model}:\n`,
    `        """${explain(one).replaceAll('\\', '\\\\').split('\n').join('\n\n        ')}\n\n${help.join('\n').replaceAll('\\', '\\\\')}\n        """\n`,
    `        params = {\n${fields.map(([name]) => `            ${text(name)}: ${attribute(name)},\n`).join('')}        }\n`,
    `        ask = Ask("GET", "${spec.path}", query=query_of(params, COUNTRIES), paid=True)\n`,
    `        return await self._transport.${isList ? 'list' : 'model'}(${model}, ask, options)\n`,
  ].join('')
}

function analytics(): string {
  const classes = GROUPS.map(
    (group) =>
      `class Async${pascal(group)}:\n    def __init__(self, transport: AsyncTransport) -> None:\n        self._transport = transport\n\n${METHODS.filter(
        (one) => one.group === group,
      )
        .map(method)
        .join('\n')}`,
  )
  const members = GROUPS.map((group) => `        self.${group} = Async${pascal(group)}(transport)\n`)
  const answers = METHODS.map(({ answer }) => (SCHEMAS[answer]?.type === 'array' ? `${answer}Item` : answer))
  return [
    HEAD,
    `from datetime import date\nfrom typing import Any, Literal, Sequence\n\nfrom ._answer import Answers\nfrom ._generated import (\n    COUNTRIES,\n    Country,\n${answers.map((name) => `    ${name},\n`).join('')})\nfrom ._policy import Ask, CallOptions, query_of\nfrom ._transport_async import AsyncTransport\n`,
    ...classes.map((one) => `\n${one}`),
    `\nclass AsyncAnalytics:\n    """Statistics of websites and search keywords."""\n\n    def __init__(self, transport: AsyncTransport) -> None:\n${members.join('')}`,
  ].join('\n')
}

// ---- The synchronous twin.

const TWIN: readonly (readonly [RegExp, string])[] = [
  [/\basync (def|with|for) /g, '$1 '],
  [/\bawait /g, ''],
  [/\baclosing\b/g, 'closing'],
  [/\baclose\b/g, 'close'],
  [/\baread\b/g, 'read'],
  [/\baiter_text\b/g, 'iter_text'],
  [/__aenter__/g, '__enter__'],
  [/__aexit__/g, '__exit__'],
  [/_async\b/g, '_sync'],
  [/\bAsync(?=[A-Z])/g, ''],
]

function twinOf(source: string): string {
  const text = TWIN.reduce((made, [from, to]) => made.replaceAll(from, to), source)
  return text.startsWith('# ') ? text : `# ${NOTICE}\n# ruff: noqa\n${text}`
}

/** Paths in the package and what each file holds. */
export function pythonClient(): ReadonlyMap<string, string> {
  const asynchronous = analytics()
  const own = (name: string) => readFileSync(join(PACKAGE, name), 'utf8')
  const at = (name: string) => `clients/python/src/tollgate_client/${name}`
  return new Map([
    [at('_generated.py'), pythonModels()],
    [at('_analytics_async.py'), asynchronous],
    [at('_analytics_sync.py'), twinOf(asynchronous)],
    [at('_transport_sync.py'), twinOf(own('_transport_async.py'))],
    [at('_client_sync.py'), twinOf(own('_client_async.py'))],
  ])
}
