// Faults on demand. A caller writes `[[429 retry-after=3]]` into a prompt, a model name, the `x-sandbox-trigger` header
// or the `trigger` query parameter, and the sandbox misbehaves in just that way. docs/guides/04-sandbox.md lists them
// all.
import type { IncomingHttpHeaders } from 'node:http'
import type { Memory } from './memory.ts'

export interface Trigger {
  /** `slow` of `[[slow=50]]`, `429` of `[[429 retry-after=3]]`. */
  readonly name: string
  /** `50` of `[[slow=50]]`. */
  readonly value: string
  /** What follows the first word. */
  readonly rest: string
}

const PATTERN = /\[\[([^[\]]{1,2000})\]\]/g
/** Triggers are short; a prompt of megabytes is searched at both ends only. */
const SEARCHED_CHARS = 100_000

export class Triggers {
  readonly all: readonly Trigger[]

  constructor(all: readonly Trigger[]) {
    this.all = all
  }

  find(name: string): Trigger | undefined {
    return this.all.find((trigger) => trigger.name === name)
  }

  has(name: string): boolean {
    return this.find(name) !== undefined
  }

  /** The number given to a trigger; undefined when the trigger is absent or names none. */
  number(name: string): number | undefined {
    const value = Number.parseFloat(this.find(name)?.value ?? '')
    return Number.isFinite(value) ? value : undefined
  }

  /** The HTTP status to answer with, such as 429 of `[[429]]`. */
  get status(): Trigger | undefined {
    return this.all.find((trigger) => /^[45]\d\d$/.test(trigger.name))
  }
}

interface TriggerSources {
  readonly texts: readonly string[]
  readonly headers: IncomingHttpHeaders
  readonly query: URLSearchParams
  readonly memory: Memory
}

export function readTriggers({ texts, headers, query, memory }: TriggerSources): Triggers {
  const found: Trigger[] = []
  for (const text of [...texts, String(headers['x-sandbox-trigger'] ?? '')]) {
    if (!text.includes('[[')) continue
    const searched =
      text.length > 2 * SEARCHED_CHARS ? text.slice(0, SEARCHED_CHARS) + text.slice(-SEARCHED_CHARS) : text
    for (const match of searched.matchAll(PATTERN)) found.push(parseTrigger(match[1] ?? ''))
  }
  for (const text of query.getAll('trigger')) found.push(parseTrigger(text.replace(/^\[\[|\]\]$/g, '')))
  return new Triggers(found.flatMap((trigger) => (trigger.name === 'once' ? onlyOnce(trigger, memory) : [trigger])))
}

/** `[[once=500 my-id]]`: the sandbox fails the first time that it sees this id, and then never again. */
function onlyOnce(trigger: Trigger, memory: Memory): Trigger[] {
  return memory.firstTime(`once ${trigger.value} ${trigger.rest}`) ? [parseTrigger(trigger.value)] : []
}

function parseTrigger(text: string): Trigger {
  const [head = '', ...words] = text.trim().split(/\s+/)
  const equals = head.indexOf('=')
  return {
    name: (equals < 0 ? head : head.slice(0, equals)).toLowerCase(),
    value: equals < 0 ? '' : head.slice(equals + 1),
    rest: words.join(' '),
  }
}

/** The prompt as a reader would like to see it quoted. */
export function withoutTriggers(text: string): string {
  return text.includes('[[') ? text.replace(PATTERN, '').replace(/ {2,}/g, ' ').trim() : text
}
