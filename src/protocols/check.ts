// Checks of single request fields. Every rejection names the field and says what is allowed. Null counts as absent, as
// the formats define it.
import type * as z from 'zod'
import {
  type Body,
  boolean,
  type Described,
  list,
  memberText,
  number as numberMember,
  record,
  text as textMember,
  wholeNumber,
} from '../catalog/described.ts'
import { type Fault, invalid, valueWords } from '../kernel/fault.ts'
import type { Json, JsonText } from '../kernel/json.ts'

/** Rejects a field, with its name and the reason. */
export const wrong = (at: string, why: string) => invalid(`"${at}" ${why}`, at)

/** Rejects a field, with what it must be and what it is. */
export const mustBe = (at: string, what: string, value: unknown) =>
  wrong(at, `must be ${what}, not ${valueWords(value)}.`)

/** Parses the body by the endpoint's rules; throws for the first violation. */
export function readBody<Rules extends z.ZodObject>(rules: Rules, json: JsonText): z.output<Rules> {
  const read = rules.safeParse(json.value, { error: usualWords })
  const fields = new Fields(json)
  const [issue] = read.error?.issues ?? []
  if (!read.success) throw issue ? refusalOf(issue, [], fields) : invalid('The body is not what this endpoint takes.')
  for (const [name, value] of Object.entries(read.data)) if (typeof value === 'number') fields.number(name)
  return read.data
}

type Issue = z.core.$ZodIssue

const TYPE_WORDS: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
}

/** The message of rules without one of their own. Empty for a union: the message comes from one of its alternatives. */
function usualWords(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return TYPE_WORDS[issue.expected] ?? `a ${issue.expected}`
    case 'invalid_value':
      return issue.values.length === 2 ? issue.values.join(' or ') : `one of ${issue.values.join(', ')}`
    case 'too_small':
      return 'must not be empty.'
    case 'too_big':
      return `may have at most ${issue.maximum} characters.`
    default:
      return ''
  }
}

const nameOf = (path: readonly PropertyKey[]) =>
  path.map((step, at) => (typeof step === 'number' ? `[${step}]` : `${at ? '.' : ''}${String(step)}`)).join('')

function refusalOf(issue: Issue, before: readonly PropertyKey[], fields: Fields): Fault {
  const path = [...before, ...issue.path]
  const value = path.reduce<unknown>((inside, step) => Object(inside)[step], fields.json.value)
  const at = nameOf(path)
  const isSentence = /^(?:must|may|is) /.test(issue.message)
  if (path.length === 1 && (value === undefined || value === null) && !isSentence)
    return invalid(`"${at}" is required.`, at)
  const closest = issue.code === 'invalid_union' ? closestOf(issue.errors) : undefined
  if (closest) return refusalOf(closest, path, fields)
  const { message } = issue
  const said = typeof value === 'number' && path.length === 1 ? fields.raw(at) : valueWords(value)
  const words = isSentence ? message : `must be ${message}, not ${said}.`
  // A list of numbers is reported as one field.
  const rule = 'expected' in issue ? issue.expected : 'origin' in issue ? issue.origin : ''
  const isOfNumbers = typeof path.at(-1) === 'number' && /^(?:int|number)$/.test(rule)
  return invalid(`"${at}" ${words}`, isOfNumbers ? nameOf(path.slice(0, -1)) : at)
}

/**
 * The issue of the alternative that the caller most likely meant: the one with the right type that matched furthest.
 */
function closestOf(alternatives: readonly (readonly Issue[])[]): Issue | undefined {
  const followed = ({ code, path: [at, ...inside] }: Issue) =>
    typeof at === 'number' ? 10 * at + 2 * inside.length + (code === 'invalid_type' ? 0 : 1) : Number.POSITIVE_INFINITY
  return alternatives
    .flatMap((issues) => issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0] ?? [])
    .filter(({ code, path }) => path.length > 0 || code !== 'invalid_type')
    .sort((a, b) => followed(b) - followed(a))[0]
}

/** Checks a body by its description; throws for the first problem. */
export function checkBody(body: Body, value: Json, json?: JsonText): void {
  const problem = body.problem(value, json && ((name) => memberText(json, name)))
  if (problem) throw wrong(problem.at, problem.words)
}

/** Checks the fields of one request, where no description has them. */
export class Fields {
  readonly json: JsonText

  constructor(json: JsonText) {
    this.json = json
  }

  get(name: string): unknown {
    const value = this.json.value[name]
    // JSON has no functions, so "constructor" is either what the caller sent or absent.
    return value === null || typeof value === 'function' ? undefined : value
  }

  required(name: string): unknown {
    const value = this.get(name)
    if (value === undefined) throw invalid(`"${name}" is required.`, name)
    return value
  }

  boolean(name: string): boolean | undefined {
    return this.read(name, boolean())
  }

  string(name: string): string | undefined {
    return this.read(name, textMember())
  }

  object(name: string): Json | undefined {
    return this.read(name, record())
  }

  number(name: string): number | undefined {
    return this.read(name, numberMember())
  }

  integer(name: string, min: number): number | undefined {
    return this.read(name, wholeNumber(min))
  }

  /** An array whose elements are objects. */
  list(name: string): Json[] | undefined {
    return this.read(name, list(record()))
  }

  private read<T>(name: string, { check }: Described<T>): T | undefined {
    const value = this.get(name)
    const problem = value === undefined ? undefined : check?.(value, name, (member) => memberText(this.json, member))
    if (problem) throw wrong(name + problem.at, problem.words)
    return value as T | undefined // As was just checked.
  }

  /** The field's text exactly as it was sent. */
  raw(name: string): string {
    return (memberText(this.json, name) ?? 'this').slice(0, 40)
  }
}
