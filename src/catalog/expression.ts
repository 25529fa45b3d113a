// Counts the units of an answer by an expression in the syntax of CEL over request and answer:
// `min(size(answer.results), request.limit)`. There are no loops and no macros, and numbers are JSON's. One evaluator
// answers three questions: the maximum for any answer (the check of the catalog), the maximum for this request (the
// hold), and the count of this answer (the charge).
import { createRequire } from 'node:module'
import type { JsonSchema } from './endpoint.ts'
import type { Field } from './field.ts'

/**
 * The part of the syntax tree that is used here. The package's own types are not imported, so that the type check does
 * not load it.
 */
interface Node {
  readonly op: string
  readonly args: unknown
  readonly start: number
  readonly end: number
}

const LIMITS = { maxAstNodes: 200, maxDepth: 24, maxListElements: 0, maxMapEntries: 0, maxCallArguments: 8 }
const CHARS_MAX = 500
/** The maximum count. */
const COUNT_MAX = 1e12

/** The value of `request` or `answer`: a known value, or its schema. */
export interface Known {
  readonly json?: unknown
  readonly schema?: JsonSchema | undefined
  /** The root schema, for `$ref`. */
  readonly root?: JsonSchema | undefined
  /** The parent value is known and does not have this member. */
  readonly absent?: true | undefined
  /** It comes from the vendor: a number there is not below 0 unless its schema says so. */
  readonly answered?: true | undefined
}

type Scope = Readonly<Record<'request' | 'answer', Known>>

export interface Expression {
  readonly text: string
  readonly root: Node
}

class ExpressionError extends Error {}

interface Environment {
  parse(text: string): { readonly ast: Node }
}

let environment: Environment | undefined

/** Loaded with the first expression, because most catalogs have none. */
function parser(): Environment {
  if (!environment) {
    const { Environment: Made } = createRequire(import.meta.url)('@marcbachmann/cel-js') as {
      Environment: new (options: object) => Environment
    } // The package's own class.
    environment = new Made({ unlistedVariablesAreDyn: true, limits: LIMITS })
  }
  return environment
}

/** Parses an expression, or returns a sentence that says what is wrong. */
export function readExpression(text: string): Expression | string {
  if (text.length > CHARS_MAX) return `is longer than ${CHARS_MAX} characters`
  try {
    return { text, root: parser().parse(text).ast }
  } catch (error) {
    const said = error instanceof Error ? error.message.split('\n')[0] : ''
    const at = (error as { range?: { start: number } }).range?.start // As the parser's errors have it.
    return `cannot be read: ${said}${at === undefined ? '' : ` (character ${at + 1})`}`
  }
}

/** The maximum value in this scope, as a whole number; or why there is no maximum, with the position. */
export function boundOf({ text, root }: Expression, scope: Scope): number | string {
  try {
    const value = numberOf(walk(root, scope), root, text)
    if (value.lo === Number.NEGATIVE_INFINITY && value.below) {
      const { start, end } = value.below
      return `has no lower bound: ${quoted(text, start, end)} (character ${start + 1}) may be any number below 0, and the call free; write max(…, the least), or give it a minimum in the schema`
    }
    if (value.hi <= COUNT_MAX) return Math.max(0, Math.ceil(value.hi))
    const { start, end } = value.loose ?? root
    return `has no upper bound: ${quoted(text, start, end)} (character ${start + 1}) may be any number; write min(…, the most), or give it a maximum in the schema`
  } catch (error) {
    if (error instanceof ExpressionError) return error.message
    throw error
  }
}

/**
 * The value for this request and answer, rounded up; undefined: a counted value is missing or not a number. A parameter
 * that the caller did not send counts as its maximum, as in the hold.
 */
export function countOf({ text, root }: Expression, scope: Scope): number | undefined {
  try {
    const { hi } = numberOf(walk(root, scope), root, text)
    return Number.isFinite(hi) ? Math.min(Math.max(0, Math.ceil(hi)), COUNT_MAX) : undefined
  } catch (error) {
    if (error instanceof ExpressionError) return undefined
    throw error
  }
}

const quoted = (text: string, start: number, end: number) => `"${text.slice(start, end)}"`

// The evaluator. A number is a range; a known number is a range of one point.

interface Range {
  readonly lo: number
  readonly hi: number
  /** The part of the expression that makes the range infinite. */
  readonly loose?: Node | undefined
  /** A number of the caller's without a minimum, which can lower it without end. */
  readonly below?: Node | undefined
}
type Value = Range | { readonly known: Known } | { readonly truth: boolean | undefined }

const point = (value: number): Range => ({ lo: value, hi: value })

function numberOf(value: Value, node: Node, text = ''): Range {
  if ('lo' in value) return value
  const { json, schema, root, answered } = 'known' in value ? value.known : {}
  const least = minimumOf(schema ? resolve(schema, root) : {}, answered)
  if (typeof json === 'number') return point(Math.max(json, least))
  // A value from the caller that is not a number counts like a missing one: as its maximum, in the hold and in the
  // charge.
  const found = schema ? resolve(schema, root) : undefined
  if (!found)
    throw new ExpressionError(`needs a number at ${quoted(text, node.start, node.end)} (character ${node.start + 1})`)
  const hi = typeof found.maximum === 'number' ? found.maximum : Number.POSITIVE_INFINITY
  return { lo: least, hi, loose: node, below: answered ? undefined : node }
}

function minimumOf({ minimum }: JsonSchema, answered: true | undefined): number {
  return typeof minimum === 'number' ? minimum : answered ? 0 : Number.NEGATIVE_INFINITY
}

const belowOf = (all: readonly Range[]) => all.find(({ below }) => below)?.below

/** Follows one reference; a chain of references is treated as a schema without limits. */
function resolve(schema: JsonSchema, root: JsonSchema | undefined): JsonSchema {
  const name = /^#\/\$defs\/(.+)$/.exec(String(schema.$ref ?? ''))?.[1]
  const defs = (root?.$defs ?? {}) as Readonly<Record<string, JsonSchema>> // Checked with the catalog.
  return name !== undefined && Object.hasOwn(defs, name) ? (defs[name] ?? schema) : schema
}

type Walker = (node: Node, scope: Scope) => Value

const argsOf = <Args>(node: Node): Args => node.args as Args // As the parser builds them for each operator.

function rangesOf(node: Node, scope: Scope): readonly [Range, Range] {
  const [left, right] = argsOf<readonly [Node, Node]>(node)
  return [numberOf(walk(left, scope), left), numberOf(walk(right, scope), right)]
}

function truthsOf(node: Node, scope: Scope): readonly (boolean | undefined)[] {
  return argsOf<readonly [Node, Node]>(node).map((one) => truthOf(one, scope))
}

/** The result of an undefined operation with infinite bounds: any number. */
const ANY_NUMBER: readonly number[] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
/** Zero times anything is zero. */
const NOTHING: readonly number[] = [0]

const arithmetic =
  (of: (a: Range, b: Range) => readonly number[], open = ANY_NUMBER): Walker =>
  (node, scope) => {
    const [left, right] = rangesOf(node, scope)
    const ends = of(left, right).flatMap((end) => (Number.isNaN(end) ? open : [end]))
    const loose = [left, right].find(({ lo, hi }) => !Number.isFinite(lo) || !Number.isFinite(hi))?.loose
    return { lo: Math.min(...ends), hi: Math.max(...ends), loose, below: belowOf([left, right]) }
  }

const comparison =
  (of: (a: Range, b: Range) => boolean | undefined): Walker =>
  (node, scope) => {
    const [left, right] = rangesOf(node, scope)
    return { truth: of(left, right) }
  }

const isPoint = ({ lo, hi }: Range) => lo === hi

const WALKERS: Readonly<Record<string, Walker>> = {
  value(node) {
    const { args } = node
    if (typeof args === 'number' || typeof args === 'bigint') return point(Number(args))
    return typeof args === 'boolean' ? { truth: args } : { known: { json: args } }
  },
  id(node, scope) {
    const name = String(node.args)
    if (name !== 'request' && name !== 'answer')
      throw new ExpressionError(`knows no "${name}" (character ${node.start + 1}); there are request and answer`)
    return { known: name === 'answer' ? { ...scope.answer, answered: true } : scope.request }
  },
  '.': (node, scope) => memberOf(node, scope),
  '[]': (node, scope) => memberOf(node, scope),
  '+': arithmetic((a, b) => [a.lo + b.lo, a.hi + b.hi]),
  '-': arithmetic((a, b) => [a.lo - b.hi, a.hi - b.lo]),
  '*': arithmetic((a, b) => [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi], NOTHING),
  '/': arithmetic((a, b) =>
    b.lo > 0 || b.hi < 0 ? [a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi] : [-Infinity, Infinity],
  ),
  '-_': (node, scope) => {
    const inner = argsOf<Node>(node)
    const { lo, hi, loose, below } = numberOf(walk(inner, scope), inner)
    return { lo: -hi, hi: -lo, loose, below }
  },
  '<': comparison((a, b) => (a.hi < b.lo ? true : a.lo >= b.hi ? false : undefined)),
  '<=': comparison((a, b) => (a.hi <= b.lo ? true : a.lo > b.hi ? false : undefined)),
  '>': comparison((a, b) => (a.lo > b.hi ? true : a.hi <= b.lo ? false : undefined)),
  '>=': comparison((a, b) => (a.lo >= b.hi ? true : a.hi < b.lo ? false : undefined)),
  '==': (node, scope) => ({ truth: isEqual(node, scope) }),
  '!=': (node, scope) => {
    const equal = isEqual(node, scope)
    return { truth: equal === undefined ? undefined : !equal }
  },
  '!_': (node, scope) => {
    const truth = truthOf(argsOf<Node>(node), scope)
    return { truth: truth === undefined ? undefined : !truth }
  },
  '&&': (node, scope) => {
    const [a, b] = truthsOf(node, scope)
    return { truth: a === false || b === false ? false : a && b }
  },
  '||': (node, scope) => {
    const [a, b] = truthsOf(node, scope)
    return { truth: a === true || b === true ? true : a === undefined || b === undefined ? undefined : false }
  },
  '?:': (node, scope) => {
    const [asked, yes, no] = argsOf<readonly [Node, Node, Node]>(node)
    const truth = truthOf(asked, scope)
    if (truth !== undefined) return walk(truth ? yes : no, scope)
    const [a, b] = rangesOf({ ...node, args: [yes, no] }, scope)
    const loose = a.hi >= b.hi ? a.loose : b.loose
    return { lo: Math.min(a.lo, b.lo), hi: Math.max(a.hi, b.hi), loose, below: belowOf([a, b]) }
  },
  call: (node, scope) => callOf(node, scope),
  rcall: (node, scope) => {
    const [name, of, args] = argsOf<readonly [string, Node, readonly Node[]]>(node)
    return callOf({ ...node, args: [name, [of, ...args]] }, scope)
  },
}

function walk(node: Node, scope: Scope): Value {
  const walker = Object.hasOwn(WALKERS, node.op) ? WALKERS[node.op] : undefined
  if (!walker) throw new ExpressionError(`may not have "${node.op}" (character ${node.start + 1})`)
  return walker(node, scope)
}

function truthOf(node: Node, scope: Scope): boolean | undefined {
  const value = walk(node, scope)
  if ('truth' in value) return value.truth
  if ('known' in value && typeof value.known.json === 'boolean') return value.known.json
  if ('known' in value && value.known.json === undefined && value.known.schema) return undefined
  throw new ExpressionError(`needs true or false at character ${node.start + 1}`)
}

function isEqual(node: Node, scope: Scope): boolean | undefined {
  const [left, right] = argsOf<readonly [Node, Node]>(node)
  const plain = (value: Value): unknown =>
    'lo' in value ? (isPoint(value) ? value.lo : undefined) : 'truth' in value ? value.truth : value.known.json
  const [a, b] = [plain(walk(left, scope)), plain(walk(right, scope))]
  return a === undefined || b === undefined ? undefined : a === b
}

/** A member of the known value, or of the schema. */
function memberOf(node: Node, scope: Scope): Value {
  const [of, named] = argsOf<readonly [Node, string | Node]>(node)
  const value = walk(of, scope)
  if (!('known' in value)) throw new ExpressionError(`has a member of a number at character ${node.start + 1}`)
  const name = typeof named === 'string' ? named : named.op === 'value' ? named.args : undefined
  if (typeof name !== 'string' && typeof name !== 'bigint')
    throw new ExpressionError(`may only have a constant in brackets (character ${node.start + 1})`)
  const { json, schema, root, answered } = value.known
  const inner = schema && schemaOf(resolve(schema, root), name)
  if (json === undefined) return { known: { schema: inner ?? ANYTHING, root, answered } }
  const isThere = typeof json === 'object' && json !== null && Object.hasOwn(json, String(name))
  // A missing value is bounded by its schema: by its default, otherwise by its maximum.
  const found = isThere ? Reflect.get(json, String(name)) : undefined
  return {
    known: isThere ? { json: found, schema: inner, root, answered } : { schema: inner, root, absent: true, answered },
  }
}

const ANYTHING: JsonSchema = {}

function schemaOf(schema: JsonSchema, name: string | bigint): JsonSchema | undefined {
  const { properties, items } = schema as { properties?: Readonly<Record<string, JsonSchema>>; items?: JsonSchema } // Checked with the catalog.
  if (typeof name === 'bigint') return items
  return properties && Object.hasOwn(properties, name) ? properties[name] : undefined
}

const FUNCTIONS = 'min, max, size, int, double, ceil and has'

function callOf(node: Node, scope: Scope): Value {
  const [name, args] = argsOf<readonly [string, readonly Node[]]>(node)
  const place = `(character ${node.start + 1})`
  const [first] = args
  if (!first) throw new ExpressionError(`needs something in the brackets of ${name} ${place}`)
  const numbers = () => args.map((one) => numberOf(walk(one, scope), one))
  switch (name) {
    case 'min': {
      const all = numbers()
      return {
        lo: Math.min(...all.map(({ lo }) => lo)),
        hi: Math.min(...all.map(({ hi }) => hi)),
        loose: all[0]?.loose,
        below: belowOf(all),
      }
    }
    case 'max': {
      const all = numbers()
      const hi = Math.max(...all.map((one) => one.hi))
      const loose = all.find((one) => one.hi === hi)?.loose
      return { lo: Math.max(...all.map(({ lo }) => lo)), hi, loose, below: belowOf(all) }
    }
    case 'int':
    case 'double':
    case 'ceil': {
      const { lo, hi, loose, below } = numberOf(walk(first, scope), first)
      const round = name === 'int' ? Math.trunc : name === 'ceil' ? Math.ceil : (one: number) => one
      return { lo: round(lo), hi: round(hi), loose, below }
    }
    case 'size':
      return sizeOf(walk(first, scope), first, place)
    case 'has': {
      const value = walk(first, scope)
      if (!('known' in value)) return { truth: true }
      const { json, absent } = value.known
      return { truth: json !== undefined ? true : absent ? false : undefined }
    }
    default:
      throw new ExpressionError(`knows no function "${name}" ${place}; there are ${FUNCTIONS}`)
  }
}

function sizeOf(value: Value, node: Node, place: string): Range {
  if (!('known' in value)) throw new ExpressionError(`has the size of a number ${place}`)
  const { json, schema, root } = value.known
  if (Array.isArray(json) || typeof json === 'string') return point(json.length)
  if (typeof json === 'object' && json !== null) return point(Object.keys(json).length)
  if (json !== undefined || !schema) throw new ExpressionError(`needs a list in size ${place}`)
  const { maxItems, maxLength, maxProperties } = resolve(schema, root)
  const most = [maxItems, maxLength, maxProperties].find((one) => typeof one === 'number')
  return { lo: 0, hi: typeof most === 'number' ? most : Number.POSITIVE_INFINITY, loose: node }
}

/** From the year 1 to the year 9999. */
const DAYS: JsonSchema = { minimum: 1, maximum: 3_652_059 }

/** The parameters by their names, the days and complete months from `from` to `to`, and the body as `request.body`. */
export function requestSchema(params: Readonly<Record<string, Field>>, body: JsonSchema | undefined): Known {
  const properties = Object.fromEntries(
    Object.entries(params).map(([name, one]) => [
      name,
      one.kind === 'integer' || one.kind === 'number' ? { minimum: one.min, maximum: one.max } : {},
    ]),
  )
  const period = params.from?.kind === 'date' && params.to?.kind === 'date' ? { days: DAYS, months: DAYS } : {}
  return { schema: { properties: { ...properties, ...period, ...(body ? { body } : {}) } }, root: body }
}
