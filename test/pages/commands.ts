// Derives the commands from the table of resources: what src/cli/derived.ts runs.
import * as z from 'zod'
import type { DerivedCommand, DerivedField } from '../../src/cli/derived.ts'
import type { Collection } from '../../src/cli/names.ts'
import type { Commands } from '../../src/operator/command.ts'
import type { Resource } from '../../src/operator/resource.ts'
import { listResources } from './operator-api.ts'

interface Schema {
  type?: string | string[]
  enum?: string[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: unknown
  default?: unknown
  const?: unknown
  description?: string
  // `meta` of the field.
  option?: string
  value?: string
  none?: string
  off?: string
  refersTo?: string
  read?: 'sealed' | 'input' | 'json' | 'base64' | 'file' | 'tree' | 'parts'
}

const schemaOf = (schema: z.ZodType | undefined): Schema =>
  schema ? (z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema) : {}

/** Without null, and with what its outermost wrapper says. */
function plain(schema: Schema): { schema: Schema; isNullable: boolean } {
  if (Array.isArray(schema.type) && schema.type.includes('null')) {
    const types = schema.type.filter((type) => type !== 'null')
    return { schema: { ...schema, type: types.length === 1 ? types.join() : types }, isNullable: true }
  }
  const some = schema.anyOf?.filter(({ type }) => type !== 'null')
  if (!schema.anyOf || !some) return { schema, isNullable: false }
  const { anyOf: _, ...outer } = schema
  const inner = some.length === 1 ? (some[0] ?? {}) : { anyOf: some, ...some.find(({ description }) => description) }
  return { schema: { ...inner, ...outer }, isNullable: some.length < schema.anyOf.length }
}

const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
const isTruth = ({ enum: words }: Schema) => words?.includes('true') && words.includes('false')

function kindOf(schema: Schema, isFlag: boolean): DerivedField['kind'] | undefined {
  if (schema.read) return schema.read
  if (isTruth(schema)) return 'flag'
  if (schema.enum || schema.type === 'string') return 'text'
  if (schema.type === 'boolean') return isFlag || schema.const !== undefined ? 'flag' : 'switch'
  if (schema.type === 'integer') return 'whole'
  if (schema.type === 'number') return 'number'
  if (schema.type === 'array' && schema.items?.type === 'integer') return 'numbers'
  if (schema.type === 'array') return schema.items?.type === 'string' || schema.items?.enum ? 'list' : undefined
  const types = schema.anyOf?.map(({ type }) => type) ?? schema.type
  if (schema.anyOf && types && [types].flat().every((type) => type === 'string')) return 'text'
  if (Array.isArray(types) && types.join() === 'string,number') return 'amount'
  const isTexts = (schema.additionalProperties as Schema | undefined)?.type === 'string'
  if (schema.type === 'object' && !schema.properties) return isTexts ? 'texts' : 'pairs'
  return undefined
}

const PLACEHOLDERS: Partial<Record<DerivedField['kind'], string>> = {
  amount: 'amount',
  whole: 'n',
  number: 'n',
  switch: 'on|off',
  list: 'a,b',
  numbers: 'n,n',
  pairs: 'name=value,…',
  texts: 'name=value,…',
  tree: 'name=value,…',
  sealed: 'NAME',
  json: 'file',
  base64: 'file',
  file: 'file',
}

interface Place {
  readonly at: readonly string[]
  readonly in: 'query' | 'body'
  /** The nearest that can be null around it. */
  readonly noneAt?: number
  readonly isRequired: boolean
  readonly isChange: boolean
  readonly without: readonly string[]
}

/** What is said of a secret behind what it is. */
const SECRETS: Partial<Record<DerivedField['kind'], string>> = {
  sealed: ': the environment variable with it; - reads standard input',
  input: ': read from standard input',
}

/** Every field that a command can set. An object's fields are fields of their own. */
function fieldsOf(given: Schema, place: Place, of: string): DerivedField[] {
  if (place.without.includes(place.at.join('.'))) return []
  const { schema, isNullable } = plain(given)
  // Where null is the default, leaving it out says the same.
  const noneAt = isNullable && (place.isChange || given.default !== null) ? place.at.length : place.noneAt
  if (schema.properties && !schema.read && schema.type === 'object')
    return Object.entries(schema.properties).flatMap(([name, one]) => {
      const isRequired = (place.at.length === 0 || place.isRequired) && schema.required?.includes(name) === true
      const inner = { ...place, at: [...place.at, name], isRequired }
      return fieldsOf(one, noneAt === undefined ? inner : { ...inner, noneAt }, of)
    })
  const name = place.at.at(-1) ?? ''
  const kind = kindOf(schema, !place.isChange && !isNullable && schema.default !== true)
  if (!kind) throw new Error(`${of}: ${place.at.join('.')} cannot be an option. Name it in "without".`)
  const none = noneAt === undefined ? schema.none : (schema.none ?? 'none')
  const dot = (text: string) => text.replace(/\.?$/, '.')
  const secret = SECRETS[kind] ?? ''
  const standard = kind === 'sealed' && place.isRequired ? ', which is also read without this option' : ''
  const help = `${dot((schema.description ?? '') + secret + standard)}${none && kind !== 'flag' ? ` "${none}" removes it.` : ''}`
  const from = schema.refersTo?.startsWith('/') ? collectionAt(schema.refersTo) : undefined
  const field: DerivedField = {
    name: schema.option ?? kebab(name) + (kind === 'sealed' ? '-env' : kind === 'input' ? '-stdin' : ''),
    in: place.in,
    at: place.at,
    kind,
    help,
    ...(kind === 'flag' ? { sends: isTruth(schema) ? 'true' : schema.const !== false } : {}),
    ...(kind === 'parts' ? { parts: Object.keys(schema.properties ?? {}) } : {}),
    ...(kind === 'flag' || kind === 'input'
      ? {}
      : { value: schema.value ?? PLACEHOLDERS[kind] ?? (schema.enum ? 'word' : 'text') }),
    ...(place.isRequired ? { required: true } : {}),
    ...(none === undefined ? {} : { none }),
    ...(noneAt === undefined ? {} : { noneAt }),
    ...(kind === 'text' && schema.enum && !none ? { allowed: schema.enum } : {}),
    ...(schema.refersTo && REFERENCES.includes(schema.refersTo) ? { refersTo: schema.refersTo as never } : {}),
    ...(from ? { from } : {}),
  }
  if (schema.type !== 'boolean' || schema.off === undefined) return [field]
  // Two flags, or only the one that differs from the default.
  const { value: _, ...flag } = { ...field, kind: 'flag' as const }
  const [on = '', off = on] = schema.off.split('|')
  const flags = [
    { ...flag, help: dot(schema.description ?? ''), sends: true },
    { ...flag, name: on, help: dot(off), sends: false },
  ]
  return schema.default === true ? flags.slice(1) : flags
}

/** Names that are resolved by a search or by the catalog. */
const REFERENCES = ['account', 'key', 'uid', 'vendor']

/** The list in which a parameter of a path is found by name. */
function collectionAt(path: string): Collection | undefined {
  const found = listResources().find((one) => one.method === 'GET' && one.path === path)
  const row = found && plain(schemaOf(found.answer)).schema.properties?.items?.items?.properties
  if (!row) return undefined
  const id = ['id', 'userId', 'name'].find((name) => row[name])
  const name = ['name', 'email', 'title'].find((one) => row[one])
  return id && name ? { path, id, name, isPaged: Boolean(schemaOf(found.query).properties?.cursor) } : undefined
}

function argsOf(resource: Resource, usage: readonly string[], fields: readonly DerivedField[]): DerivedField[] {
  const params = [...resource.path.matchAll(/\{(\w+)\}/g)]
  return usage.map((word, index) => {
    const name = word.slice(1, -1)
    const required = word.startsWith('<') ? { required: true } : {}
    const param = params[index]
    if (!param) {
      const field = fields.find((one) => one.name === name || one.at.at(-1) === name) ?? wholeBody(name)
      if (!field) throw new Error(`${resource.method} ${resource.path}: there is no field <${name}>.`)
      const { required: _, help: __, value: ___, ...rest } = field
      return { ...rest, name, ...required }
    }
    // PUT may make what it names.
    const isNew = resource.method === 'PUT' && resource.path.endsWith(param[0])
    const from = isNew || REFERENCES.includes(name) ? undefined : collectionAt(resource.path.slice(0, param.index - 1))
    return { name, in: 'path', at: [param[1] ?? ''], kind: 'text', ...required, ...(from ? { from } : {}) }
  })
}

/** The whole body is in a file. */
const wholeBody = (name: string): DerivedField | undefined =>
  name === 'file' ? { name, in: 'body', at: [], kind: 'json' } : undefined

/** "Shows a key." */
const sentenceOf = (title = '') => `${title.replace(/^\w+/, (verb) => verb + (verb.endsWith('s') ? 'es' : 's'))}.`

/** Headings, and what stands below them. */
const columnsOf = (columns: string): Record<string, string> =>
  Object.fromEntries(
    columns.split(', ').map((one) => {
      const [, heading = one.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toUpperCase(), spec = one] =
        /^([^=]+)=(.*)$/.exec(one) ?? []
      return [heading, spec]
    }),
  )

function commandOf(resource: Resource, command: Exclude<Commands[string], readonly unknown[]>): DerivedCommand {
  const {
    usage: said,
    set = {},
    without = [],
    merge,
    columns,
    tables,
    also = {},
    ...more
  } = typeof command === 'string' ? { usage: command } : command
  const [usage = '', ...behind] = said.split(': ')
  const summary = behind.length > 0 ? behind.join(': ') : sentenceOf(resource.title)
  const texts = {
    summary,
    ...more,
    ...(columns === undefined ? {} : { columns: columnsOf(columns) }),
    ...(tables ? { tables: Object.fromEntries(Object.entries(tables).map(([at, one]) => [at, columnsOf(one)])) } : {}),
  }
  const [plainUsage = '', chosen] = usage.split(' --')
  const [when, value = ''] = chosen?.split(' ') ?? []
  const words = plainUsage.split(' ')
  const name = words.filter((word) => !/^[<[]/.test(word)).join(' ')
  const isChange = resource.method === 'PATCH' || merge === true
  const hidden = ['cursor', ...without, ...Object.keys(set)]
  const shapes = [
    ['query', schemaOf(resource.query)],
    ['body', schemaOf(resource.body)],
  ] as const
  const isPaged = Boolean(shapes[0][1].properties?.cursor)
  const all = shapes.flatMap(([where, shape]) => {
    const { schema: whole } = plain(shape)
    // Of several shapes, the one with the fixed values.
    const isMeant = ({ properties = {} }: Schema) => Object.keys(set).some((one) => properties[one]?.const === set[one])
    const element = plain(whole.properties?.[more.list ?? ''] ?? {}).schema.items
    const schema = element ?? (whole.oneOf ?? whole.anyOf)?.find(isMeant) ?? whole
    const properties = Object.entries(schema.properties ?? {}).filter(
      ([one]) => !without.includes(one) && one !== 'cursor' && !(isPaged && one === 'limit'),
    )
    const place = { at: [], in: where, isRequired: true, isChange, without }
    return fieldsOf({ ...schema, type: 'object', properties: Object.fromEntries(properties) }, place, name)
  })
  const usageArgs = words.filter((word) => /^[<[]/.test(word))
  const args = argsOf(resource, usageArgs, all)
  const isArg = (field: DerivedField) => args.some((one) => one.in !== 'path' && one.at.join() === field.at.join())
  const isWhole = args.some((one) => one.in === 'body' && one.at.length === 0)
  const options = all.filter((one) => !isArg(one) && !hidden.includes(one.at[0] ?? ''))
  const silent = options.find(({ help = '' }) => /^\.?$|^\. /.test(help))
  if (silent) throw new Error(`${name}: the option --${silent.name} has no description.`)
  const further = Object.entries(also).map(([text, at]): DerivedField => {
    const [, option = '', placeholder = '', help = ''] = /^(\S+) <(.*)>: (.*)$/.exec(text) ?? []
    return { name: option, in: 'body', at: at.split('.'), kind: 'text', help, value: placeholder }
  })
  const param = /\{(\w+)\}$/.exec(resource.path)?.[1] ?? ''
  if (when)
    further.push({ name: when, in: 'path', at: [param], kind: 'text', help: summary, value: value.slice(1, -1) })
  options.push(...further)
  const given = options.map(({ required, ...one }) => (required && !isWhole && !merge ? { ...one, required } : one))
  const answer = plain(schemaOf(resource.answer)).schema
  const canFind = ({ path }: Collection) => !path.includes('{') || resource.path.startsWith('/accounts/{id}')
  const formats = [
    ...(resource.csv ? ['rows'] : []),
    ...Object.keys(resource.files ?? {}).map((one) => one.split('/')[1] ?? ''),
  ]
  return {
    name,
    ...(when ? { when } : {}),
    ...texts,
    method: resource.method,
    path: resource.path,
    ...(args.length > 0 ? { args } : {}),
    ...(given.length > 0
      ? { options: given.map(({ from, ...one }) => (from && canFind(from) ? { ...one, from } : one)) }
      : {}),
    ...(Object.keys(set).length > 0 ? { set } : {}),
    ...(merge || more.list ? { merge: Object.keys(plain(shapes[1][1]).schema.properties ?? {}) } : {}),
    ...(answer.properties?.items && !texts.words && (resource.method === 'GET' || columns) ? { isList: true } : {}),
    ...(isPaged && !texts.file && !texts.words ? { isPaged } : {}),
    ...(resource.repeatable ? { isRepeatable: true } : {}),
    ...(formats.length > 0 && !texts.file ? { formats } : {}),
  }
}

/** src/cli/commands.json, a command on a line. */
export function commandsFile(): string {
  const commands = listResources().flatMap((resource) =>
    [resource.command ?? []].flat().map((command) => commandOf(resource, command)),
  )
  return `[\n${commands.map((one) => JSON.stringify(one)).join(',\n')}\n]\n`
}
