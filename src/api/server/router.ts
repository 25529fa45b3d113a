// Every path of this server with its methods. A request is looked up here once.
import type { Surface } from '../../catalog/endpoint.ts'
import { PATH_PART_CHARS_MAX } from '../../catalog/field.ts'

interface Entry<Route> {
  /** Undefined: preflight requests, whose answer is always the same. */
  readonly route: Route | undefined
  /** The names of the path's parameters, in order. */
  readonly names: readonly string[]
}

export interface Place<Route> {
  readonly methods: Map<string, Entry<Route>>
  /** The surface that decides the shape of error bodies. */
  surface: Surface | undefined
}

interface Branch<Route> {
  readonly parts: Map<string, Branch<Route>>
  /** `{model}:generateContent`, by the text after the colon. */
  readonly actions: Map<string, Branch<Route>>
  parameter: Branch<Route> | undefined
  /** A star at the end of a path matches the whole rest. */
  rest: Branch<Route> | undefined
  /** The whole rest is a model id, which may contain slashes: SDKs put it into the path unescaped. */
  isModel: boolean
  place: Place<Route> | undefined
}

interface MatchedRoute<Route> {
  readonly place: Place<Route>
  /** The values of the parameters; undefined: one is too long, or has a NUL, which no database takes. */
  readonly values: readonly string[] | undefined
}

const PARAMETER = /^\{(\w+)\}(?::(\w+))?$/
const NAMES = /\{(\w+)\}|(\*)/g
const REST = '*'
const MODELS = 'models'
/** Some clients escape the colon. */
const COLON = /:|%3A/i
const ABSOLUTE = /^https?:\/\/[^/?#]*/i

export class Router<Route> {
  readonly #root = branch<Route>()
  /** Paths without parameters, as callers usually write them. */
  readonly #exact = new Map<string, MatchedRoute<Route>>()
  /** Routes that may change while the server runs, looked up after all others. */
  further: (() => Router<Route>) | undefined
  /** All routes, such as `GET /v1/jobs/{id}`. */
  readonly routes: Array<readonly [method: string, path: string, route: Route]> = []

  /** Without `route`, the path only allows cross-origin requests. `surface`: of an endpoint of the API. */
  add(path: string, methods: readonly string[], route?: Route, surface?: Surface): void {
    let at = this.#root
    let above = ''
    for (const part of partsOf(path)) {
      if (surface && above === MODELS && PARAMETER.test(part)) at.isModel = true
      at = below(at, part)
      above = part
    }
    at.place ??= { methods: new Map(), surface: undefined }
    at.place.surface ??= surface
    const names = [...path.matchAll(NAMES)].map(([, name, star = '']) => name ?? star)
    for (const method of methods) {
      if (!at.place.methods.has(method)) at.place.methods.set(method, { route, names })
      if (route) this.routes.push([method, path, route])
    }
    if (names.length === 0) this.#exact.set(path, { place: at.place, values: NONE })
  }

  /**
   * A path that accepts the method, else one that accepts another, else undefined. Throws a URIError if the path cannot
   * be decoded.
   */
  find(method: string, url: string): MatchedRoute<Route> | undefined {
    const whole = this.#exact.get(url)
    if (whole?.place.methods.has(method)) return whole // The usual case.
    const end = url.search(/[?#]/)
    const path = end < 0 ? url : url.slice(0, end)
    const exact = this.#exact.get(path)
    if (exact?.place.methods.has(method)) return exact
    const found = this.#search(method, path)
    return found?.place.methods.has(method) ? found : (this.further?.().find(method, url) ?? found)
  }

  #search(method: string, path: string): MatchedRoute<Route> | undefined {
    const plain = path.replace(ABSOLUTE, '')
    // Escaped reserved characters and the escaped percent sign stay escaped.
    const decoded = plain.includes('%') ? decodeURI(plain.replaceAll('%25', '%2525')) : plain
    const parts = partsOf(decoded)
    const taken: Walk = { parts, values: [], method }
    const place = match(this.#root, taken, 0)
    if (place) return { place, values: readValues(taken) }
    const known: Walk = { parts, values: [] }
    const other = match(this.#root, known, 0)
    return other && { place: other, values: readValues(known) }
  }
}

const NONE: readonly string[] = []

function branch<Route>(): Branch<Route> {
  return {
    parts: new Map(),
    actions: new Map(),
    parameter: undefined,
    rest: undefined,
    isModel: false,
    place: undefined,
  }
}

function below<Route>(at: Branch<Route>, part: string): Branch<Route> {
  const [, parameter, action] = PARAMETER.exec(part) ?? []
  if (part === REST) {
    at.rest ??= branch()
    return at.rest
  }
  if (parameter !== undefined && action === undefined) {
    at.parameter ??= branch()
    return at.parameter
  }
  const among = action === undefined ? at.parts : at.actions
  const made = among.get(action ?? part) ?? branch<Route>()
  among.set(action ?? part, made)
  return made
}

interface Walk {
  readonly parts: readonly string[]
  /** The values of the parameters so far. */
  readonly values: string[]
  /** What a star matched. */
  rest?: string
  /** Undefined: any method matches. */
  readonly method?: string
}

/** A literal part takes precedence over a parameter. */
function match<Route>(at: Branch<Route>, walk: Walk, index: number): Place<Route> | undefined {
  const { parts, method } = walk
  const part = parts[index]
  if (part === undefined) return placeOf(at, walk)
  const named = at.parts.get(part)
  const found = named && match(named, walk, index + 1)
  // The allowed methods come from the matching literal path, not from a star above it.
  if (found || (named && method === undefined)) return found
  const value = at.isModel ? parts.slice(index).join('%2F') : part
  const next = at.isModel ? parts.length : index + 1
  const [model = '', ...actions] = at.actions.size > 0 ? value.split(COLON) : []
  const action = model === '' ? undefined : at.actions.get(actions.join(':'))
  const acting = action && taking(model, walk, () => match(action, walk, next))
  if (acting) return acting
  const { parameter, rest } = at
  // A model id may contain a colon, so it may match as a whole. In a search for any method, an unknown action does not
  // match as an id.
  const isPossible = parameter && (actions.length === 0 || method !== undefined)
  const whole = isPossible && taking(value, walk, () => match(parameter, walk, next))
  if (whole) return whole
  const below = rest && placeOf(rest, walk)
  if (below) walk.rest = parts.slice(index).join('/')
  return below
}

function placeOf<Route>({ place }: Branch<Route>, { method }: Walk): Place<Route> | undefined {
  return method === undefined || place?.methods.has(method) ? place : undefined
}

function taking<MatchedRoute>(
  value: string,
  { values }: Walk,
  search: () => MatchedRoute | undefined,
): MatchedRoute | undefined {
  values.push(value)
  const found = search()
  if (!found) values.pop()
  return found
}

function readValues({ values, rest }: Walk): readonly string[] | undefined {
  const read = values.map(decode)
  if (read.some((part) => part.length > PATH_PART_CHARS_MAX || part.includes('\0'))) return undefined
  return rest === undefined ? read : [...read, decode(rest)]
}

function decode(value: string): string {
  return value.includes('%') ? decodeURIComponent(value) : value
}

/** Empty parts are ignored. */
function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}
