// Filters (RFC 7644, 3.4.2.2) and patches (3.5.2) of SCIM. A patch changes the JSON of a resource, which is then
// checked and stored like any other. Both are untrusted input, so their size and depth have limits.
import { isObject, type Json } from '../../kernel/json.ts'

/** An error in the form of SCIM. */
export class ScimError extends Error {
  readonly status: number
  readonly scimType: string | undefined

  constructor(status: number, message: string, scimType?: string) {
    super(message)
    this.status = status
    this.scimType = scimType
  }
}

type Test = (resource: Json) => boolean

const FILTER_CHARS_MAX = 1_000
const DEPTH_MAX = 8
const TOKENS_MAX = 60
/** Entries that one patch may compare. */
const WORK_MAX = 200_000
const TOKEN = /\s*(?:([()[\]])|("(?:[^"\\]|\\.)*")|([^\s()[\]"]+))/y

const badFilter = (why: string) => new ScimError(400, `The filter is not valid: ${why}.`, 'invalidFilter')

function tokensOf(text: string): string[] {
  if (text.length > FILTER_CHARS_MAX) throw badFilter(`it has more than ${FILTER_CHARS_MAX} characters`)
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const found = TOKEN.exec(text)
    if (!found) throw badFilter('it cannot be read')
    tokens.push(found[1] ?? found[2] ?? found[3] ?? '')
    if (tokens.length > TOKENS_MAX) throw badFilter('it has too many parts')
  }
  return tokens
}

/** Parses a filter; throws a SCIM error if it is invalid. */
export function readFilter(text: string): Test {
  const tokens = tokensOf(text)
  let at = 0
  const next = () => tokens[at++] ?? ''
  const peek = () => (tokens[at] ?? '').toLowerCase()

  function either(depth: number): Test {
    const tests = [both(depth)]
    while (peek() === 'or') {
      at++
      tests.push(both(depth))
    }
    return tests.length === 1 ? tests[0]! : (resource) => tests.some((one) => one(resource)) // There is one at least.
  }

  function both(depth: number): Test {
    const tests = [one(depth)]
    while (peek() === 'and') {
      at++
      tests.push(one(depth))
    }
    return tests.length === 1 ? tests[0]! : (resource) => tests.every((each) => each(resource)) // There is one at least.
  }

  function inside(depth: number, close: string): Test {
    const found = either(depth + 1)
    if (next() !== close) throw badFilter(`a "${close}" is missing`)
    return found
  }

  function one(depth: number): Test {
    if (depth > DEPTH_MAX) throw badFilter('it is nested too deeply')
    if (peek() === '(') {
      at++
      return inside(depth, ')')
    }
    if (peek() === 'not') {
      at++
      if (next() !== '(') throw badFilter('"not" needs a parenthesis')
      const found = inside(depth, ')')
      return (resource) => !found(resource)
    }
    const path = next()
    if (!/^[A-Za-z$][\w.:$-]*$/.test(path)) throw badFilter(`"${path.slice(0, 60)}" is no attribute`)
    if (peek() === '[') {
      at++
      const found = inside(depth, ']')
      return (resource) => entriesAt(resource, path).some((entry) => isObject(entry) && found(entry))
    }
    return comparison(path, next().toLowerCase(), next)
  }

  const found = either(0)
  if (at < tokens.length) throw badFilter(`"${tokens[at]?.slice(0, 60)}" was not expected`)
  return found
}

type Compare = (value: unknown, wanted: unknown) => boolean
const words = (compare: (a: string, b: string) => boolean): Compare => {
  return (a, b) => typeof a === 'string' && typeof b === 'string' && compare(a.toLowerCase(), b.toLowerCase())
}
const same: Compare = (a, b) =>
  typeof a === 'string' && typeof b === 'string' ? a.toLowerCase() === b.toLowerCase() : a === b
const COMPARE: Readonly<Record<string, Compare>> = {
  eq: same,
  ne: (a, b) => !same(a, b),
  co: words((a, b) => a.includes(b)),
  sw: words((a, b) => a.startsWith(b)),
  ew: words((a, b) => a.endsWith(b)),
  gt: words((a, b) => a > b),
  ge: words((a, b) => a >= b),
  lt: words((a, b) => a < b),
  le: words((a, b) => a <= b),
}

function comparison(path: string, operator: string, next: () => string): Test {
  if (operator === 'pr') return (resource) => valuesAt(resource, path).length > 0
  const compare = Object.hasOwn(COMPARE, operator) ? COMPARE[operator] : undefined
  if (!compare) throw badFilter(`there is no operator "${operator.slice(0, 20)}"`)
  const literal = next()
  let wanted: unknown
  try {
    wanted = JSON.parse(literal)
  } catch {
    throw badFilter(`"${literal.slice(0, 60)}" is no value`)
  }
  return (resource) => {
    const values = valuesAt(resource, path)
    return operator === 'ne'
      ? values.every((value) => compare(value, wanted))
      : values.some((value) => compare(value, wanted))
  }
}

const CORE = /^urn:ietf:params:scim:schemas:core:2\.0:(?:User|Group):/i

/** The values of an attribute; a list yields each of its entries. */
function entriesAt(resource: Json, path: string): unknown[] {
  let found: unknown[] = [resource]
  for (const name of path.replace(CORE, '').split('.'))
    found = found.flatMap((value) => (isObject(value) ? memberOf(value, name) : []))
  return found
}

/** An entry that is an object stands for its `value`, if no sub-attribute is named. */
function valuesAt(resource: Json, path: string): unknown[] {
  return entriesAt(resource, path).map((entry) => (isObject(entry) && 'value' in entry ? entry.value : entry))
}

function memberOf(object: Json, name: string): unknown[] {
  const key = keyOf(object, name)
  const value = key === undefined ? undefined : object[key]
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value]
}

/** Attribute names are case-insensitive. */
const keyOf = (object: Json, name: string) =>
  Object.keys(object).find((key) => key.toLowerCase() === name.toLowerCase())

const OPERATIONS_MAX = 100
const PATH = /^(?:urn:ietf:params:scim:schemas:core:2\.0:(?:User|Group):)?(\w+)(?:\[(.*)\])?(?:\.(\w+))?$/i

/** Applies a patch. Attributes that are not in `names` are ignored, because clients send attributes of their own. */
export function patched(resource: Json, body: unknown, names: readonly string[]): Json {
  const operations = isObject(body) ? body.Operations : undefined
  if (!Array.isArray(operations) || operations.length === 0 || operations.length > OPERATIONS_MAX)
    throw new ScimError(400, `"Operations" must be a list of 1 to ${OPERATIONS_MAX} operations.`, 'invalidSyntax')
  const result = structuredClone(resource)
  const budget = { changes: 0, compared: 0 }
  for (const operation of operations) {
    if (!isObject(operation)) throw new ScimError(400, 'An operation must be an object.', 'invalidSyntax')
    const kind = String(operation.op).toLowerCase()
    if (kind !== 'add' && kind !== 'replace' && kind !== 'remove')
      throw new ScimError(400, `There is no operation "${kind.slice(0, 20)}".`, 'invalidSyntax')
    const { path, value } = operation
    if (path === undefined || path === '') {
      if (kind === 'remove') throw new ScimError(400, 'A removal needs a path.', 'noTarget')
      if (!isObject(value)) throw new ScimError(400, 'Without a path the value must be an object.', 'invalidValue')
      for (const [name, each] of Object.entries(value)) change(result, { kind, path: name, value: each }, names, budget)
    } else change(result, { kind, path: String(path), value }, names, budget)
  }
  return result
}

interface Change {
  readonly kind: 'add' | 'replace' | 'remove'
  readonly path: string
  readonly value: unknown
}

interface Budget {
  changes: number
  compared: number
}

function change(resource: Json, { kind, path, value }: Change, names: readonly string[], budget: Budget): void {
  budget.changes += 1
  if (budget.changes > OPERATIONS_MAX)
    throw new ScimError(413, `At most ${OPERATIONS_MAX} changes are made at once.`, 'tooMany')
  if (path.length > FILTER_CHARS_MAX) throw new ScimError(400, 'The path is too long.', 'invalidPath')
  const [, given = '', filter, sub] = PATH.exec(path) ?? []
  if (given === '') throw new ScimError(400, `"${path.slice(0, 60)}" is no path.`, 'invalidPath')
  const name = names.find((one) => one.toLowerCase() === given.toLowerCase())
  if (name === undefined) return
  if (filter !== undefined) {
    budget.compared += listOf(resource[name] ?? []).length
    if (budget.compared > WORK_MAX) throw new ScimError(413, 'The patch compares too many entries.', 'tooMany')
    changeSome(resource, name, { kind, filter, sub, value })
    return
  }
  if (sub !== undefined) {
    const object = isObject(resource[name]) ? resource[name] : {}
    const { [sub]: _, ...others } = object
    resource[name] = kind === 'remove' ? others : { ...object, [sub]: value }
    return
  }
  const before = resource[name]
  if (kind === 'remove') {
    // Some clients put the entries to remove into the value instead of the path.
    if (Array.isArray(before) && Array.isArray(value)) resource[name] = without(before, value)
    else delete resource[name]
  } else if (kind === 'add' && Array.isArray(before))
    resource[name] = [...without(before, listOf(value)), ...listOf(value)]
  else if (isObject(before) && isObject(value)) resource[name] = { ...before, ...value }
  else resource[name] = Array.isArray(before) ? listOf(value) : value
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])

/** Two entries are equal if their values are. */
function without(list: readonly unknown[], gone: readonly unknown[]): unknown[] {
  const idOf = (entry: unknown) => (isObject(entry) ? entry.value : entry)
  const values = new Set(gone.map(idOf))
  return list.filter((entry) => !values.has(idOf(entry)))
}

function changeSome(
  resource: Json,
  name: string,
  { kind, filter, sub, value }: Omit<Change, 'path'> & { filter: string; sub: string | undefined },
): void {
  const test = readFilter(filter)
  const list = listOf(resource[name] ?? [])
  const isMeant = (entry: unknown) => isObject(entry) && test(entry)
  if (!list.some(isMeant)) {
    if (kind === 'remove') return
    // `emails[type eq "work"].value` for a person without such an entry: it is added.
    const [, key = '', wanted = ''] = /^(\w+) eq "([^"]*)"$/i.exec(filter) ?? []
    if (key === '' || sub === undefined) throw new ScimError(400, 'Nothing fits the path.', 'noTarget')
    resource[name] = [...list, { [key]: wanted, [sub]: value }]
    return
  }
  resource[name] =
    kind === 'remove' && sub === undefined
      ? list.filter((entry) => !isMeant(entry))
      : list.map((entry) => {
          if (!isObject(entry) || !test(entry)) return entry
          if (sub === undefined) return isObject(value) ? { ...entry, ...value } : entry
          const { [sub]: _, ...others } = entry
          return kind === 'remove' ? others : { ...entry, [sub]: value }
        })
}
