// Checks of single request fields. Every refusal names the field and says what is allowed; null counts as absent, as the
// formats define it.
import { invalid } from '../kernel/fault.ts'
import type { JsonText } from '../kernel/json.ts'

export type Json = Record<string, unknown>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A string member, or undefined. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The object, or one without members. */
export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {}
}

export function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

export function strings(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : undefined
}

export function flag(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined
}

type MaybeAbsent<T> = { [K in keyof T]: null extends T[K] ? K : undefined extends T[K] ? K : never }[keyof T]
type Given<T> = Omit<T, MaybeAbsent<T>> & { [K in MaybeAbsent<T>]?: Exclude<T[K], undefined | null> }

/** Without the members that are absent: null and undefined mean the same in these formats. */
export function given<const T extends object>(members: T): Given<T> {
  const present = Object.entries(members).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(present) as Given<T> // What may have been left out is optional in it.
}

/** What was sent, shortly, for a message. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (value === '') return 'an empty string'
  if (typeof value === 'string')
    return `the string ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`
  return String(value)
}

/** The refusal of a field: what it must be, and what it is. */
export const mustBe = (at: string, what: string, value: unknown) =>
  invalid(`"${at}" must be ${what}, not ${shown(value)}.`, at)

/** The fields of one request, checked one by one. */
export class Fields {
  readonly json: JsonText
  private readonly value: Json

  constructor(json: JsonText) {
    this.json = json
    this.value = json.value
  }

  get(name: string): unknown {
    const value = this.value[name]
    // JSON has no functions: a field called "constructor" is what the caller sent or nothing.
    return value === null || typeof value === 'function' ? undefined : value
  }

  required(name: string): unknown {
    const value = this.get(name)
    if (value === undefined) throw invalid(`"${name}" is required.`, name)
    return value
  }

  boolean(name: string): boolean | undefined {
    const value = this.get(name)
    if (value === undefined || typeof value === 'boolean') return value
    throw mustBe(name, 'true or false', value)
  }

  string(name: string): string | undefined {
    const value = this.get(name)
    if (value === undefined || typeof value === 'string') return value
    throw mustBe(name, 'a string', value)
  }

  object(name: string): Json | undefined {
    const value = this.get(name)
    if (value === undefined || isObject(value)) return value
    throw mustBe(name, 'an object', value)
  }

  /** Any finite number. Ranges differ by model, and the model has the last word on them. */
  number(name: string): number | undefined {
    const value = this.get(name)
    if (value === undefined) return undefined
    if (typeof value !== 'number') throw mustBe(name, 'a number', value)
    if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER || this.vanishes(name, value))
      throw invalid(`"${name}" must be a number that a computer can hold exactly enough, not ${this.raw(name)}.`, name)
    return value
  }

  /** A whole number of at least `min` that is held exactly. */
  integer(name: string, min: number): number | undefined {
    const value = this.get(name)
    if (value === undefined) return undefined
    if (typeof value !== 'number') throw mustBe(name, 'a whole number', value)
    if (!Number.isSafeInteger(value) || value < min || this.vanishes(name, value))
      throw invalid(`"${name}" must be a whole number of at least ${min}, not ${this.raw(name)}.`, name)
    return value
  }

  strings(name: string): string[] | undefined {
    const value = this.get(name)
    if (value === undefined) return undefined
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'string'))
      throw invalid(`"${name}" must be an array of strings.`, name)
    return value
  }

  /** An array whose elements are objects. */
  list(name: string): Json[] | undefined {
    const value = this.get(name)
    if (value === undefined) return undefined
    if (!Array.isArray(value)) throw mustBe(name, 'an array', value)
    value.forEach((entry, index) => {
      if (!isObject(entry)) throw mustBe(`${name}[${index}]`, 'an object', entry)
    })
    return value
  }

  /** True for -0 and for numbers too small to be held: what we read is then not what was written. */
  private vanishes(name: string, value: number): boolean {
    return value === 0 && (Object.is(value, -0) || /^[^eE]*[1-9]/.test(this.raw(name)))
  }

  private raw(name: string): string {
    const span = this.json.member(name)
    return span ? this.json.text.slice(span[0], Math.min(span[1], span[0] + 40)) : 'this'
  }
}
