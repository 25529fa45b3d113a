// A valid instance of a JSON schema, filled with what the prompt mentions where that fits: for tool arguments and for
// structured answers.
import { isRecord, type Json, list, number, record, string } from './json.ts'

export interface Mentions {
  /** Names written with a capital: cities, people. */
  readonly names: readonly string[]
  readonly numbers: readonly number[]
  readonly quoted: readonly string[]
  /** The whole prompt, for fields such as `query`. */
  readonly text: string
}

const NOT_NAMES =
  /^(I|I'm|What|Whats|What's|Who|Where|When|Why|How|Is|Are|Do|Does|Can|Could|Would|Please|The|A|An|In|On|At|For|And|Or|Use|Call|Get|Tell|Give|Find|Show|Check|Compare|Look|Search|Return|Then|Also|Both|My|Me|Write|Extract|Make|Create|List|Say|Reply|Answer|Translate|Explain|Describe|Hello|Hi|Celsius|Fahrenheit|JSON|Today|Tomorrow)$/

export function readMentions(text: string): Mentions {
  const searched = text.slice(0, 4000)
  const names = { inside: new Set<string>(), first: new Set<string>() }
  for (const match of searched.matchAll(/\p{Lu}[\p{L}'’-]+(?: \p{Lu}[\p{L}'’-]+)*/gu)) {
    const words = match[0].split(' ').filter((word) => !NOT_NAMES.test(word))
    // The first word of a sentence has its capital for another reason.
    const starts = words[0] === match[0].split(' ')[0] && /$(?<=^|[.?!:\n]\s*)/.test(searched.slice(0, match.index))
    if (words.length > 0) (starts && words.length === 1 ? names.first : names.inside).add(words.join(' '))
  }
  return {
    names: [...(names.inside.size > 0 ? names.inside : names.first)],
    numbers: (searched.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number),
    quoted: [...searched.matchAll(/["“]([^"“”]{1,200})["”]/g)].map((match) => match[1] ?? ''),
    text: searched.slice(0, 300),
  }
}

interface Frame {
  readonly root: Json
  readonly mentions: Mentions
  readonly depth: number
}

/** Always an instance of the schema's main keywords; ends on recursive schemas by leaving out what is optional. */
export function instanceOf(schema: Json, mentions: Mentions): unknown {
  return build(schema, '', { root: schema, mentions, depth: 0 })
}

const DEPTH_MAX = 12

function build(given: unknown, name: string, frame: Frame): unknown {
  const schema = resolve(record(given), frame.root)
  if ('const' in schema) return schema.const
  const choices = list(schema.enum)
  if (choices.length > 0) return mentionedChoice(choices, frame.mentions)
  if ('default' in schema) return schema.default
  for (const word of ['anyOf', 'oneOf']) {
    const options = list(schema[word])
    // Past the depth, null or a plain value ends the recursion.
    const option =
      frame.depth > DEPTH_MAX ? (options.find((o) => !isRecord(record(o).properties)) ?? options[0]) : options[0]
    if (option !== undefined) return build(option, name, { ...frame, depth: frame.depth + 1 })
  }
  const parts = list(schema.allOf).map((part) => resolve(record(part), frame.root))
  if (parts.length > 0) return build(mergeParts(schema, parts), name, frame)

  switch (typeOf(schema)) {
    case 'object':
      return buildObject(schema, frame)
    case 'array':
      return buildArray(schema, name, frame)
    case 'integer':
      return bounded(schema, Math.round(frame.mentions.numbers[0] ?? 1), 1)
    case 'number':
      return bounded(schema, frame.mentions.numbers[0] ?? 1, 0.5)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return buildString(schema, name, frame.mentions)
  }
}

function typeOf(schema: Json): string {
  const type = Array.isArray(schema.type) ? schema.type.find((option) => option !== 'null') : schema.type
  if (typeof type === 'string') return type
  if (isRecord(schema.properties)) return 'object'
  return schema.items === undefined ? 'string' : 'array'
}

function resolve(schema: Json, root: Json): Json {
  let current = schema
  for (let hops = 0; typeof current.$ref === 'string' && hops < 8; hops++) {
    let target: unknown = root
    for (const step of current.$ref.replace(/^#\/?/, '').split('/').filter(Boolean)) {
      target = record(target)[decodeURIComponent(step).replace(/~1/g, '/').replace(/~0/g, '~')]
    }
    current = record(target)
  }
  return current
}

function mergeParts(schema: Json, parts: readonly Json[]): Json {
  const { allOf: _, ...own } = schema
  const whole = [own, ...parts]
  return {
    ...Object.assign({}, ...whole),
    properties: Object.assign({}, ...whole.map((part) => record(part.properties))),
    required: whole.flatMap((part) => list(part.required)),
  }
}

function buildObject(schema: Json, frame: Frame): Json {
  const required = new Set(list(schema.required))
  const made: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(record(schema.properties))) {
    // Optional fields of a deep schema are left out, so that a recursive one ends.
    if (!required.has(name) && (frame.depth > 4 || required.size > 0)) continue
    if (frame.depth > DEPTH_MAX && !required.has(name)) continue
    made[name] = build(property, name, { ...frame, depth: frame.depth + 1 })
  }
  return made
}

function buildArray(schema: Json, name: string, frame: Frame): unknown[] {
  const least = number(schema.minItems) ?? 0
  const most = number(schema.maxItems) ?? Number.POSITIVE_INFINITY
  const { names } = frame.mentions
  const wanted = frame.depth > 6 ? least : Math.max(least, Math.min(most, Math.max(1, Math.min(names.length, 3))))
  const prefix = list(schema.prefixItems)
  return Array.from({ length: Math.max(wanted, prefix.length) }, (_, i) => {
    const own = names[i] === undefined ? frame.mentions : { ...frame.mentions, names: [names[i], ...names] }
    return build(prefix[i] ?? schema.items ?? { type: 'string' }, name, {
      ...frame,
      mentions: own,
      depth: frame.depth + 1,
    })
  })
}

function bounded(schema: Json, wanted: number, step: number): number {
  const above = number(schema.exclusiveMinimum)
  const below = number(schema.exclusiveMaximum)
  const least = number(schema.minimum) ?? (above === undefined ? Number.NEGATIVE_INFINITY : above + step)
  const most = number(schema.maximum) ?? (below === undefined ? Number.POSITIVE_INFINITY : below - step)
  const inside = Math.min(Math.max(wanted, least), most)
  const multiple = number(schema.multipleOf)
  return multiple ? Math.ceil(inside / multiple) * multiple : inside
}

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-11-15',
  'date-time': '2026-11-15T12:00:00Z',
  time: '12:00:00Z',
  email: 'someone@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '7f8a2c1e-4b5d-4c6e-8f90-1a2b3c4d5e6f',
  ipv4: '192.0.2.1',
  hostname: 'example.com',
}

function buildString(schema: Json, name: string, mentions: Mentions): string {
  const least = number(schema.minLength) ?? 0
  const most = number(schema.maxLength) ?? Number.POSITIVE_INFINITY
  const made = FORMATS[string(schema.format)] ?? wordFor(name, mentions)
  return (made.length < least ? made.padEnd(least, '.') : made).slice(0, most)
}

function wordFor(name: string, { names, quoted, numbers, text }: Mentions): string {
  if (/query|question|prompt|text|message|content|input|expression|summary|description|answer/i.test(name)) {
    return quoted[0] ?? text
  }
  if (/unit/i.test(name)) return 'celsius'
  if (/^(id|.*_id|.*Id)$/.test(name)) return numbers[0] === undefined ? 'simulated-1' : String(numbers[0])
  return names[0] ?? quoted[0] ?? `simulated ${name || 'value'}`
}

function mentionedChoice(choices: readonly unknown[], mentions: Mentions): unknown {
  const text = mentions.text.toLowerCase()
  return choices.find((choice) => typeof choice === 'string' && text.includes(choice.toLowerCase())) ?? choices[0]
}
