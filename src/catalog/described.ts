// Descriptions of the values in a request body: what OpenAPI says of each, and what is checked. A check returns the
// first problem instead of throwing it, so that its path is put together only for a value that is wrong: conversations
// have thousands of values that are right.
import { valueWords } from '../kernel/fault.ts'
import { isObject, type Json, type JsonText, memberSpan } from '../kernel/json.ts'
import { free, type JsonSchema, object as objectSchema } from './endpoint.ts'

export interface Problem {
  /** Where in the value; empty: the value itself. */
  readonly at: string
  /** The sentence after the name. */
  readonly words: string
}

/** The text of a member as it was sent: numbers that a computer cannot hold are shown as the caller wrote them. */
type Sent = (name: string) => string | undefined

export interface Described<T = unknown> {
  /** Absent: OpenAPI does not have it. */
  readonly schema?: JsonSchema | undefined
  /** `null` and what is absent are only checked if the value is required. */
  readonly check?: ((value: unknown, name: string, sent?: Sent) => Problem | undefined) | undefined
  /** Of the body itself it may depend on the other members. */
  readonly isRequired?: true | ((body: Json) => boolean)
  /** It has a number, a flag or a short word that is recorded for failed calls. */
  readonly isSetting?: true
  readonly members?: Members
  /** Only for types. */
  readonly value?: T
}

export type Members = Readonly<Record<string, Described>>

export const wrong = (words: string, at = ''): Problem => ({ at, words })
export const mustBe = (what: string, value: unknown, at = '') => wrong(`must be ${what}, not ${valueWords(value)}.`, at)
export const under = (step: string, { at, words }: Problem) =>
  wrong(words, step + (at === '' || at[0] === '[' ? at : `.${at}`))
export const isAbsent = (value: unknown) => value === undefined || value === null

/** Null counts as absent, as the formats define it. */
function plain<T>(type: string, what: string, isRight: (value: unknown) => boolean, more: Partial<Described> = {}) {
  return (description?: string): Described<T> => ({
    schema: description === undefined ? undefined : { ...more.schema, type: [type, 'null'], description },
    check: (value) => (isRight(value) ? undefined : mustBe(what, value)),
    ...(more.isSetting && { isSetting: true }),
  })
}

const isText = (value: unknown) => typeof value === 'string'
export const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText)

export const text = plain<string>('string', 'a string', isText)
/** One of few, which differ by model, so that the vendor checks them. */
export const word = plain<string>('string', 'a string', isText, { isSetting: true })
export const boolean = plain<boolean>('boolean', 'true or false', (value) => typeof value === 'boolean', {
  isSetting: true,
})
/** An object of which nothing more is checked. */
export const record = plain<Json>('object', 'an object', isObject, { schema: free })

/** Any finite number. Ranges differ by model, so the vendor checks them. */
export function number(description?: string): Described<number> {
  const isRight = (value: number) => Math.abs(value) <= Number.MAX_SAFE_INTEGER
  return numeric({ type: 'number' }, description, {
    is: 'a number',
    rule: 'a number that a computer can hold exactly enough',
    isRight,
  })
}

/** A whole number that JavaScript represents exactly. `max` is documented; what checks it knows the model. */
export function wholeNumber(min: number, description?: string, max = Number.MAX_SAFE_INTEGER): Described<number> {
  const isRight = (value: number) => Number.isSafeInteger(value) && value >= min
  const schema = min > Number.MIN_SAFE_INTEGER ? { type: 'integer', minimum: min, maximum: max } : { type: 'integer' }
  return numeric(schema, description, { is: 'a whole number', rule: `a whole number of at least ${min}`, isRight })
}

function numeric(
  schema: JsonSchema,
  description: string | undefined,
  { is, rule, isRight }: { is: string; rule: string; isRight(value: number): boolean },
): Described<number> {
  return {
    isSetting: true,
    schema: description === undefined ? undefined : { ...schema, type: [schema.type, 'null'], description },
    check(value, name, sent) {
      if (typeof value !== 'number') return mustBe(is, value)
      if (isRight(value) && (value !== 0 || !vanishes(value, sent?.(name)))) return undefined
      return wrong(`must be ${rule}, not ${(sent?.(name) ?? String(value)).slice(0, 40)}.`)
    },
  }
}

/** True for -0 and for numbers too small to represent: the parsed value then differs from what was sent. */
const vanishes = (value: number, sent = '') => Object.is(value, -0) || /^[^eE]*[1-9]/.test(sent)

export const strings = (description?: string): Described<string[]> => ({
  schema: description === undefined ? undefined : { type: ['array', 'null'], items: { type: 'string' }, description },
  check: (value) => (isTexts(value) ? undefined : wrong('must be an array of strings.')),
})

export const oneOf = (values: readonly string[], description: string): Described<string> => ({
  schema: { type: 'string', enum: values, description },
  check: (value) =>
    typeof value === 'string' && values.includes(value) ? undefined : mustBe(`one of ${values.join(', ')}`, value),
})

/** A word, or an object that names more. */
export const choice = (description: string): Described => ({
  isSetting: true,
  schema: { ...free, type: ['string', 'object', 'null'], description },
  check: (value) => (isText(value) || isObject(value) ? undefined : mustBe('a string or an object', value)),
})

/** What OpenAPI has of a value that other values decide: `also` of the object checks it. */
export const noted = (schema: JsonSchema): Described => ({ schema })

/** `when`: which bodies need it; all by default. */
export const required = (described: Described, when: Described['isRequired'] = true): Described => {
  const { schema } = described
  const types: unknown[] = [schema?.type].flat()
  const [type, none, ...more] = types
  const isNullable = none === 'null' && more.length === 0
  return { ...described, isRequired: when, schema: isNullable ? { ...schema, type } : schema }
}

/** Documented as `null` or the same. */
export const nullable = ({ schema, ...described }: Described, description?: string): Described => ({
  ...described,
  schema: schema && { ...schema, type: [schema.type, 'null'], ...(description !== undefined && { description }) },
})

/** Documented without its members, of which some are checked. */
export const open = (description: string | undefined, members: Members): Described => {
  const { check } = object(members)
  return { ...record(description), members, check }
}

/** An object with further members that are not checked. `also`: what is decided by several of its members. */
export function object(members: Members, also?: (value: Json) => Problem | undefined): Described<Json> {
  const checked = Object.entries(members).flatMap(([name, { check, isRequired }]) =>
    check ? [{ name, check, isRequired }] : [],
  )
  return {
    members,
    schema: schemaOf(members),
    check(value, own, sent) {
      if (!isObject(value)) return mustBe('an object', value)
      const inside = sent && ((name: string) => textIn(sent(own), name))
      for (const { name, check, isRequired } of checked) {
        const member = value[name]
        if (!isRequired && (member === undefined || member === null)) continue
        const problem = check(member, name, inside)
        if (problem) return under(name, problem)
      }
      return also?.(value)
    },
  }
}

function schemaOf(members: Members): JsonSchema {
  const entries = Object.entries(members)
  const shownMembers = entries.flatMap(([name, { schema }]) => (schema ? [[name, schema] as const] : []))
  const names = entries.filter(([, { isRequired }]) => isRequired).map(([name]) => name)
  return objectSchema(Object.fromEntries(shownMembers), names)
}

/** The names of the members with numbers, flags and short words. */
export function settingsOf(members: Members): string[] {
  return Object.entries(members).flatMap(([name, { isSetting, members: inner }]) => [
    ...(isSetting ? [name] : []),
    ...settingsOf(inner ?? {}),
  ])
}

/** The text of a member exactly as it was sent. */
export function memberText(json: JsonText, name: string): string | undefined {
  const span = json.member(name)
  return span && json.text.slice(...span)
}

function textIn(text: string | undefined, name: string): string | undefined {
  const span = text === undefined ? undefined : memberSpan(text, name)
  return span && text?.slice(...span)
}

/** An array of objects. */
export function list(item: Described, description?: string): Described<Json[]> {
  const schema =
    description === undefined ? undefined : { type: ['array', 'null'], items: item.schema ?? free, description }
  return { schema, check: listCheck(item, { what: 'an array' }) }
}

interface ListRules {
  /** What the value must be. */
  readonly what: string
  /** What it has one of at least. */
  readonly least?: string
}

export function listCheck({ check }: Described, { what, least }: ListRules): NonNullable<Described<Json[]>['check']> {
  return (value) => {
    if (!Array.isArray(value)) return mustBe(what, value)
    if (least !== undefined && value.length === 0) return wrong(`must hold at least one ${least}.`)
    for (let i = 0; i < value.length; i++) {
      const problem = check?.(value[i], '')
      if (problem) return under(`[${i}]`, problem)
    }
    return undefined
  }
}

/** A text, or a list. */
export function textOr(
  { check }: { readonly check: NonNullable<Described['check']> },
  what: string,
  schema: JsonSchema,
): Described {
  return {
    schema,
    check: (value) => (isText(value) ? undefined : Array.isArray(value) ? check(value, '') : mustBe(what, value)),
  }
}

/** The whole body of an endpoint. */
export class Body {
  readonly members: Members
  readonly schema: JsonSchema
  private readonly needed: readonly (readonly [name: string, isRequired: Described['isRequired']])[]
  private readonly checks: ReadonlyMap<string, NonNullable<Described['check']>>

  /** `example`: a request that works as it is. */
  constructor(example: object, members: Members) {
    const entries = Object.entries(members)
    this.members = members
    this.schema = { ...schemaOf(members), examples: [example] }
    this.needed = entries.flatMap(([name, { isRequired }]) => (isRequired ? [[name, isRequired] as const] : []))
    this.checks = new Map(entries.flatMap(([name, { check }]) => (check ? [[name, check] as const] : [])))
  }

  /** The first member that is missing, or the first of those that came that is wrong. */
  problem(value: Json, sent?: Sent): Problem | undefined {
    for (const [name, isRequired] of this.needed)
      if (isAbsent(value[name]) && (isRequired === true || isRequired?.(value))) return wrong('is required.', name)
    for (const name in value) {
      const inside = value[name]
      if (inside === undefined || inside === null) continue
      const problem = this.checks.get(name)?.(inside, name, sent)
      if (problem) return under(name, problem)
    }
    return undefined
  }
}
