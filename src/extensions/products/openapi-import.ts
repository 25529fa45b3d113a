// Reads an OpenAPI document (3.1 or 3.0) as a product: each operation as the catalog has it, or why it is not sold. The
// document is untrusted: its size, depth and references are bounded, and nothing is fetched.
import { createRequire } from 'node:module'
import type { JsonSchema } from '../../catalog/endpoint.ts'
import { isShort, SHORT_CHARS_MAX, sampleOf } from '../../catalog/json-schema.ts'
import { isQuickPattern } from '../../catalog/pattern.ts'

export const DOCUMENT_BYTES_MAX = 5 * 1024 * 1024
/** Parsing YAML takes ten times as long as JSON, and blocks the event loop. */
const YAML_BYTES_MAX = 1024 * 1024
const OPERATIONS_MAX = 2_000
const NODES_MAX = 4_000
/** Of all schemas of a document: about a second. */
const ALL_NODES_MAX = 200_000
const SCHEMA_CHARS_MAX = 150_000
const ENUM_MAX = 500
/** Characters of the text, in looking for lines: about a second. */
const SEARCHED_MAX = 5_000_000_000
const HOPS_MAX = 20
const DEPTH_MAX = 60

type Tree = Readonly<Record<string, unknown>>

interface ImportedOperation {
  /** Of the operation below its product. */
  readonly id: string
  /** As the document has it: `GET /pets/{petId}`. */
  readonly route: string
  readonly title: string
  /** An entry of `operations`; absent: it cannot be sold, as `problem` says. */
  readonly operation?: Tree
  readonly problem?: string
  /** What was left out. */
  readonly notes: readonly string[]
}

export interface ImportedDocument {
  readonly title: string
  readonly description: string
  /** The address of the API, or what it names that is no whole address; absent: it names none. */
  readonly server?: string
  readonly unusable?: string
  /** How the credential is sent, in the form of the catalog. */
  readonly auth?: unknown
  readonly operations: readonly ImportedOperation[]
}

/** A problem of the document or of an operation. */
class DocumentError extends Error {}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
const treeOf = (value: unknown): Tree => (isTree(value) ? value : {})
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** One line without markup, as titles are. */
const plain = (value: unknown, most: number) =>
  textOf(value)
    .slice(0, 2 * most)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .replaceAll(/[<>]/g, '')
    .trim()
    .slice(0, most)
    .toWellFormed()

interface ImportOptions {
  /** Schemas are read for these operations only, because a large document may have thousands. */
  readonly wanted?: (id: string) => boolean
  /** The operator wrote the document, so its rules under `x-tollgate` are applied. */
  readonly isTrusted?: boolean
}

/** Throws an Error with a sentence. */
export function importOpenapi(text: string, options: ImportOptions = {}): ImportedDocument {
  const root = parseText(text)
  const version = textOf(root.openapi)
  if (!/^3\.[01]\.\d+/.test(version))
    throw new Error(
      version === ''
        ? 'This is no OpenAPI document of version 3.0 or 3.1: "openapi" is missing.'
        : `OpenAPI ${version.slice(0, 20)} is not read; 3.0 and 3.1 are.`,
    )
  const reader = new Reader(text, root, options)
  const operations = reader.operations()
  if (operations.length === 0) throw new Error('The document has no operations.')
  const info = treeOf(root.info)
  const auth = reader.auth()
  return {
    title: plain(info.title, 100) || 'API',
    description: plain(info.description, 1_000),
    ...reader.server(root.servers),
    ...(auth === undefined ? {} : { auth }),
    operations,
  }
}

function parseText(text: string): Tree {
  const bytes = Buffer.byteLength(text)
  if (bytes > DOCUMENT_BYTES_MAX) throw new Error(`The document is larger than ${DOCUMENT_BYTES_MAX / 1_048_576} MB.`)
  const isJson = /^\s*\{/.test(text)
  if (!isJson && bytes > YAML_BYTES_MAX)
    throw new Error(`The document is YAML of more than ${YAML_BYTES_MAX / 1_048_576} MB; as JSON it may be larger.`)
  const value = isJson ? parseJson(text, bytes) : parseYaml(text)
  if (!isTree(value)) throw new Error('The document is not an object.')
  return value
}

const unreadable = (error: unknown) =>
  new Error(`The document cannot be read: ${textOf((error as Error).message).split('\n')[0]}`) // Both parsers throw errors.

/** JSON is also YAML, and only that parser always reports the line of an error. */
function parseJson(text: string, bytes: number): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (bytes <= YAML_BYTES_MAX) parseYaml(text)
    throw unreadable(error)
  }
}

function parseYaml(text: string): unknown {
  const { parse } = createRequire(import.meta.url)('yaml') as { parse(text: string, options: object): unknown } // The package's own function.
  try {
    return parse(text, { maxAliasCount: 50, merge: true })
  } catch (error) {
    throw unreadable(error)
  }
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

class Reader {
  readonly #text: string
  readonly #root: Tree
  readonly #wanted: (id: string) => boolean
  readonly #isTrusted: boolean
  readonly #ids = new Set<string>()
  readonly #routes = new Set<string>()
  /** By the reference; null: it is too large. */
  readonly #bundled = new Map<string, JsonSchema | null>()
  #nodes = 0
  /** Where the lines end; found when the first is asked for. */
  readonly #ends: number[] = []
  #searched = 0
  #pathAt = 0
  /** The operation that is read now is wanted. */
  #isWanted = true

  constructor(text: string, root: Tree, { wanted = () => true, isTrusted = false }: ImportOptions) {
    this.#text = text
    this.#root = root
    this.#wanted = wanted
    this.#isTrusted = isTrusted
  }

  operations(): ImportedOperation[] {
    const found: ImportedOperation[] = []
    for (const [path, item] of Object.entries(treeOf(this.#root.paths))) {
      const shared = treeOf(item)
      for (const method of METHODS) {
        const given = shared[method]
        if (!isTree(given)) continue
        if (found.length >= OPERATIONS_MAX) throw new Error(`The document has more than ${OPERATIONS_MAX} operations.`)
        found.push(this.#operation(path, method, given, shared))
      }
    }
    return found
  }

  #find(needle: string, from: number): number {
    if (this.#searched > SEARCHED_MAX) return -1
    const at = this.#text.indexOf(needle, from)
    this.#searched += (at < 0 ? this.#text.length : at) - from
    return at
  }

  #lineAt(at: number): string {
    if (this.#searched > SEARCHED_MAX) return 'line not looked for'
    if (this.#ends.length === 0)
      for (let end = this.#text.indexOf('\n'); end >= 0; end = this.#text.indexOf('\n', end + 1)) this.#ends.push(end)
    let [low, high] = [0, this.#ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#ends[middle] ?? 0) < at) low = middle + 1
      else high = middle
    }
    return `line ${low + 1}`
  }

  /** The line of an operation. Paths are read in order, so each is searched after the previous one. */
  #operationLine(path: string, method: string): string {
    this.#pathAt = Math.max(this.#find(path, this.#pathAt), this.#pathAt)
    return this.#lineAt(Math.max(this.#find(method, this.#pathAt), this.#pathAt))
  }

  #id(method: string, path: string, given: unknown): string {
    const named = textOf(given) || `${method} ${path}`
    const id = named
      .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replace(/^-+/, '')
      .slice(0, 50)
      .replace(/(?<!-)-+$/, '')
    const base = id || method
    let free = base
    for (let count = 2; this.#ids.has(free); count++) free = `${base}-${count}`
    this.#ids.add(free)
    return free
  }

  #operation(path: string, method: string, given: Tree, shared: Tree): ImportedOperation {
    const id = this.#id(method, path, given.operationId)
    const route = `${method.toUpperCase()} ${path}`
    const title = plain(given.summary, 150) || plain(given.operationId, 150) || route.replaceAll(/[<>]/g, '')
    const notes: string[] = []
    const about = { id, route, title, notes }
    this.#isWanted = this.#wanted(id)
    try {
      const made = this.#read({ path, method }, given, shared, notes)
      return { ...about, operation: { title, ...made } }
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error
      return { ...about, problem: `${error.message} (${this.#operationLine(path, method)})` }
    }
  }

  #read({ path, method }: { path: string; method: string }, given: Tree, shared: Tree, notes: string[]): Tree {
    // Where a call goes is never said twice.
    const { route: _, vendorPath: __, method: ___, ...own } = this.#own(given['x-tollgate'], notes)
    const params = this.#params([...listOf(shared.parameters), ...listOf(given.parameters)], notes)
    // Names of path parameters are converted to our form; the vendor gets the same values in the same positions.
    const renamed = path.replace(/^\//, '').replaceAll(/\{([^{}]+)\}/g, (_, name: string) => `{${wordOf(name)}}`)
    const address = `${method.toUpperCase()} /${routeOf(renamed)}`
    const shape = address.replaceAll(/\{\w+\}/g, '{}')
    if (/[^\w.~:@!$'()*,;=+{}/-]/.test(renamed))
      throw new DocumentError('has characters in its path that are not offered')
    if (this.#routes.has(shape)) throw new DocumentError('has the address of another operation')
    this.#routes.add(shape)
    const description = plain(given.description, 2_000)
    return {
      ...(description === '' ? {} : { description }),
      route: address,
      vendorPath: renamed,
      params,
      ...this.#body(given.requestBody, method, notes),
      ...this.#answers(given.responses, notes),
      ...own,
    }
  }

  /** Rules that OpenAPI cannot express. Those of an untrusted document would bypass the checks here. */
  #own(given: unknown, notes: string[]): Tree {
    if (given === undefined || this.#isTrusted) return treeOf(given)
    const note = 'What stands under "x-tollgate" is left out: the document is not said to be trusted.'
    if (!notes.includes(note)) notes.push(note)
    return {}
  }

  /** Resolves a reference within the document. */
  #resolve(given: unknown): Tree {
    let found = treeOf(given)
    for (let hops = 0; found.$ref !== undefined; hops++) {
      if (hops > HOPS_MAX) throw new DocumentError('has references that lead in a circle')
      found = treeOf(this.#at(textOf(found.$ref)))
    }
    return found
  }

  #at(ref: string): unknown {
    if (!ref.startsWith('#/'))
      throw new DocumentError(
        `refers to "${ref.slice(0, 100)}", which is not in the document: ${this.#lineAt(Math.max(this.#find(ref, 0), 0))}`,
      )
    let found: unknown = this.#root
    for (const part of ref.slice(2).split('/')) {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
      found = isTree(found) || Array.isArray(found) ? Reflect.get(found, decoded(name)) : undefined
    }
    if (found === undefined)
      throw new DocumentError(
        `refers to "${ref.slice(0, 100)}", which is not there: ${this.#lineAt(Math.max(this.#find(ref, 0), 0))}`,
      )
    return found
  }

  #params(given: readonly unknown[], notes: string[]): Tree {
    const params: Record<string, Tree> = {}
    for (const one of given) {
      const {
        name: named,
        in: place,
        required,
        schema,
        content,
        description,
        example,
        style,
        explode,
        'x-tollgate': rules,
      } = this.#resolve(one)
      const name = place === 'path' ? wordOf(textOf(named)) : textOf(named)
      const isRequired = required === true || place === 'path'
      const leave = (why: string) => {
        if (isRequired) throw new DocumentError(`needs the parameter "${name.slice(0, 60)}", which ${why}`)
        notes.push(`The parameter "${name.slice(0, 60)}" is left out: it ${why}.`)
      }
      if (!/^[A-Za-z_$][\w.$[\]-]{0,63}$/.test(name)) leave('has a name that is not offered')
      else if (place === 'cookie') leave('is a cookie')
      else if (place === 'header' && /^(?:accept|content-type|authorization)$/i.test(name)) continue
      else if (content !== undefined || style === 'deepObject') leave('is no plain value')
      else if (place !== 'path' && place !== 'query' && place !== 'header') leave('stands nowhere')
      else {
        const own = this.#own(rules, notes)
        const field =
          isTree(rules) && this.#isTrusted
            ? own
            : this.#field(this.#resolve(schema), { style, explode: explode !== false && style !== 'pipeDelimited' })
        if (!field) leave('is no plain value')
        else
          params[name] = {
            description: plain(description, 500),
            ...(isRequired ? { required: true } : {}),
            ...(place === 'query' ? {} : { in: place }),
            ...field,
            example: exampleText(example ?? field.example ?? field.default),
          }
      }
    }
    return params
  }

  /** A parameter in the form of the catalog; undefined: it is an object, or a list of objects. */
  #field(given: Tree, { explode }: { style: unknown; explode: boolean }): Tree | undefined {
    const schema = this.#first(given)
    const types = [schema.type].flat().filter((one) => one !== 'null')
    const type = types[0] ?? (Array.isArray(schema.enum) ? 'string' : undefined)
    const preset =
      schema.default === undefined || typeof schema.default === 'object' ? {} : { default: String(schema.default) }
    const number = (value: unknown) => (typeof value === 'number' ? value : undefined)
    const [min, max] = [number(schema.minimum), number(schema.maximum)]
    const values = enumOf(schema)
      .filter((one) => one !== null && typeof one !== 'object')
      .map(String)
    if (type === 'array') {
      const items = this.#first(this.#resolve(schema.items))
      if (items.type === 'object' || items.type === 'array') return undefined
      const allowed = enumOf(items).map(String)
      const repeat = explode ? { repeat: true } : {}
      if (allowed.length > 0 && allowed.every((one) => !one.includes(',')))
        return { kind: 'list', allowed, ...repeat, example: allowed[0] }
      return { kind: 'values', itemsMax: Math.min(number(schema.maxItems) ?? 100, 1_000), ...repeat, example: 'a' }
    }
    if (type === 'object') return undefined
    if (type === 'boolean') return { kind: 'boolean', allowed: ['true', 'false'], ...preset, example: 'true' }
    if (values.length > 0) return { kind: 'choice', allowed: values, ...preset, example: values[0] }
    if (type === 'integer' && (min ?? 0) >= 0)
      return {
        kind: 'integer',
        min: min ?? 0,
        ...(max === undefined ? {} : { max }),
        ...preset,
        example: String(min ?? 1),
      }
    if (type === 'integer' || type === 'number')
      return {
        kind: 'number',
        ...(min === undefined ? {} : { min }),
        ...(max === undefined ? {} : { max }),
        ...preset,
        example: String(min ?? 1),
      }
    const pattern = textOf(schema.pattern)
    return {
      kind: 'text',
      ...(pattern !== '' && isQuickPattern(pattern) ? { pattern } : {}),
      ...preset,
      example: exampleText(
        schema.example ?? listOf(schema.examples)[0] ?? sampleOf({ type: 'string', format: schema.format ?? '' }),
      ),
    }
  }

  /** Of alternatives the first that is a plain value. */
  #first(schema: Tree): Tree {
    const [one] = [...listOf(schema.allOf), ...listOf(schema.oneOf), ...listOf(schema.anyOf)]
    return schema.type === undefined && one !== undefined ? { ...this.#resolve(one), ...schema } : schema
  }

  #body(given: unknown, method: string, notes: string[]): Tree {
    if (given === undefined) return {}
    const { content, required } = this.#resolve(given)
    if (method === 'get' || method === 'delete') {
      if (required === true) throw new DocumentError('takes a body, which does not go with its method')
      notes.push('The body is left out: it does not go with the method.')
      return {}
    }
    const types = treeOf(content)
    const json = Object.keys(types).find((type) => /^application\/(?:[\w.-]+\+)?json/.test(type))
    const form = Object.keys(types).find((type) => type.startsWith('application/x-www-form-urlencoded'))
    const type = json ?? form
    if (type === undefined) {
      if (required !== true && Object.keys(types).length === 0) return {}
      throw new DocumentError(
        `takes a body of ${Object.keys(types).join(', ').slice(0, 100) || 'no type'}, which is not offered`,
      )
    }
    const { schema: named, example } = treeOf(types[type])
    const schema = this.#bundle(named, notes, 'body')
    const isList = this.#resolve(named).type === 'array'
    const of = isList ? itemsOf(schema) : schema
    const body = {
      ...(of.type === undefined && of.properties === undefined ? { type: 'object' } : {}),
      ...of,
      ...(example === undefined || isList ? {} : { examples: [example] }),
    }
    return { body, ...(isList ? { bodyAs: 'list' } : json === undefined ? { bodyAs: 'form' } : {}) }
  }

  #answers(given: unknown, notes: string[]): Tree {
    const responses = treeOf(given)
    const status = ['200', '201', '202', '203', '206', '2XX', 'default'].find((one) => responses[one] !== undefined)
    const { content, description } = this.#resolve(status === undefined ? {} : responses[status])
    const types = Object.keys(treeOf(content)).map((type) => (type.split(';')[0] ?? '').trim().toLowerCase())
    const known = types.filter((type) => /^[a-z]+\/(?:\*|[\w.+-]+)$/.test(type))
    const json = Object.entries(treeOf(content)).find(([type]) => /json/.test(type))?.[1]
    const { schema, example, examples } = treeOf(json)
    const answer = schema === undefined ? undefined : this.#bundle(schema, notes, 'answer')
    const [first] = Object.values(treeOf(examples))
    const { value } = this.#resolve(first)
    const shown = this.#isWanted ? (example ?? value ?? (answer && sampleOf(answer))) : undefined
    const isSmall = shown !== undefined && isShort(shown) && JSON.stringify(shown).length <= SHORT_CHARS_MAX
    const returns = plain(description, 300)
    return {
      ...(returns === '' ? {} : { returns }),
      ...(known.length === 0 ? {} : { answers: known.slice(0, 20) }),
      ...(answer === undefined ? {} : { answer }),
      ...(isSmall ? { example: shown } : {}),
    }
  }

  /** The schema with its references under `$defs`. A part that is too large is left out, and then accepts anything. */
  #bundle(given: unknown, notes: string[], what: string): JsonSchema {
    if (!this.#isWanted) return {}
    const name = textOf(treeOf(given).$ref)
    const known = this.#bundled.get(name)
    const schema = name !== '' && known !== undefined ? known : this.#bundleAnew(given)
    if (name !== '') this.#bundled.set(name, schema)
    if (schema) return schema
    notes.push(`The schema of the ${what} is too large, and is left out: the vendor checks it.`)
    return {}
  }

  #bundleAnew(given: unknown): JsonSchema | null {
    if (this.#nodes > ALL_NODES_MAX) return null
    const bundle = new Bundle((ref) => this.#at(ref))
    const schema = bundle.whole(given)
    this.#nodes += bundle.nodes
    return schema ?? null
  }

  /** Where it says that its API is; only with a host it can be called. */
  server(given: unknown): Pick<ImportedDocument, 'server' | 'unusable'> {
    const [first] = listOf(given)
    const { url, variables } = treeOf(first)
    const filled = textOf(url).replaceAll(/\{([^{}]+)\}/g, (_, name: string) =>
      textOf(treeOf(treeOf(variables)[name]).default),
    )
    const parsed = URL.parse(filled)
    const isGood = parsed && /^https?:$/.test(parsed.protocol) && !parsed.username && !parsed.search && !parsed.hash
    return isGood ? { server: filled.replace(/(?<!\/)\/+$/, '') } : { ...(filled && { unusable: filled }) }
  }

  /** The first security scheme that the catalog supports. */
  auth(): unknown {
    const schemes = Object.values(treeOf(treeOf(this.#root.components).securitySchemes)).map((one) =>
      this.#resolve(one),
    )
    for (const { type, scheme, in: place, name } of schemes) {
      if (type === 'http' && textOf(scheme).toLowerCase() === 'bearer') return 'bearer'
      if (type === 'http' && textOf(scheme).toLowerCase() === 'basic') return 'basic'
      if (type === 'apiKey' && place === 'header' && /^[\w-]{1,64}$/.test(textOf(name)))
        return { header: textOf(name).toLowerCase() }
      if (type === 'apiKey' && place === 'query' && /^[\w.-]{1,64}$/.test(textOf(name))) return { query: textOf(name) }
    }
    return undefined
  }
}

/** An item of a list as the body: callers send one, the vendor gets a list of one. */
function itemsOf({ items, $defs }: JsonSchema): JsonSchema {
  return { ...treeOf(items), ...($defs === undefined ? {} : { $defs }) }
}

/** `{id}.json` becomes `{id}`, and `{from}-{to}` becomes two segments, because the router matches whole segments. */
const routeOf = (path: string) =>
  path
    .split('/')
    .flatMap((part) => (/^\{\w+\}(?::[a-z]\w{0,30})?$/.test(part) ? [part] : (part.match(/\{\w+\}/g) ?? [part])))
    .filter((part) => part !== '')
    .join('/')

/** Converts the name of a path parameter to allowed characters. */
const wordOf = (name: string) =>
  name
    .replaceAll(/\W+/g, '_')
    .replace(/^(?=\d)/, '_')
    .slice(0, 64)

/** A longer list is checked by the vendor only. */
const enumOf = ({ enum: values }: Tree) => (Array.isArray(values) && values.length <= ENUM_MAX ? values : [])

const exampleText = (value: unknown) =>
  (Array.isArray(value)
    ? value.slice(0, 100).join(',')
    : typeof value === 'object' || value === undefined
      ? 'text'
      : String(value)
  ).slice(0, 500) || 'text'

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** What is kept of a schema. */
const NUMBERS = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'maxProperties', 'multipleOf']
const KEPT = ['enum', 'const', 'default', 'required', 'format', 'type', 'example', 'examples']

class Bundle {
  readonly #at: (ref: string) => unknown
  readonly #defs: Record<string, JsonSchema> = {}
  readonly #names = new Map<string, string>()
  #nodes = 0

  constructor(at: (ref: string) => unknown) {
    this.#at = at
  }

  get nodes(): number {
    return this.#nodes
  }

  /** Undefined: it is too large. */
  whole(given: unknown): JsonSchema | undefined {
    const schema = this.#part(given, 0)
    const made = { ...schema, ...(this.#names.size > 0 ? { $defs: this.#defs } : {}) }
    return this.#nodes > NODES_MAX || JSON.stringify(made).length > SCHEMA_CHARS_MAX ? undefined : made
  }

  #part(given: unknown, depth: number): JsonSchema {
    this.#nodes += 1
    // The depth is limited like the size.
    if (depth > DEPTH_MAX) this.#nodes = NODES_MAX + 1
    if (!isTree(given) || this.#nodes > NODES_MAX) return {}
    if (typeof given.$ref === 'string') return { $ref: `#/$defs/${this.#name(given.$ref, depth)}` }
    const inner = (value: unknown) => (typeof value === 'boolean' ? value : this.#part(value, depth + 1))
    const made: Record<string, unknown> = {}
    for (const word of [...KEPT, ...NUMBERS])
      if (given[word] !== undefined && isShort(given[word])) made[word] = given[word]
    const description = plain(given.description, 300)
    if (description !== '') made.description = description
    // A pattern that could be slow is checked by the vendor only.
    if (typeof given.pattern === 'string' && isQuickPattern(given.pattern)) made.pattern = given.pattern
    for (const word of ['exclusiveMinimum', 'exclusiveMaximum'])
      if (typeof given[word] === 'number') made[word] = given[word]
    // `nullable` in OpenAPI 3.0 is a list of types in 3.1.
    if (given.nullable === true && typeof given.type === 'string') {
      made.type = [given.type, 'null']
      if (Array.isArray(made.enum)) made.enum = [...listOf(made.enum), null]
    }
    if (isTree(given.properties))
      made.properties = Object.fromEntries(Object.entries(given.properties).map(([name, one]) => [name, inner(one)]))
    if (given.items !== undefined && !Array.isArray(given.items)) made.items = inner(given.items)
    if (given.additionalProperties !== undefined) made.additionalProperties = inner(given.additionalProperties)
    for (const word of ['allOf', 'anyOf', 'oneOf']) if (Array.isArray(given[word])) made[word] = given[word].map(inner)
    return made
  }

  /** A recursive schema becomes a definition, so it is read once. */
  #name(ref: string, depth: number): string {
    const known = this.#names.get(ref)
    if (known !== undefined) return known
    const base = (ref.split('/').at(-1) ?? '').replaceAll(/\W/g, '_').slice(0, 80) || 'Schema'
    let name = base
    for (let count = 2; Object.hasOwn(this.#defs, name); count++) name = `${base}_${count}`
    this.#names.set(ref, name)
    this.#defs[name] = {}
    this.#defs[name] = this.#part(this.#at(ref), depth + 1)
    return name
  }
}
