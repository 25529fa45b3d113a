// What distinguishes one model family from the format it speaks, as data. The catalogue gives a model's traits as a flat
// record; this file names every trait that the text formats read, its meaning and its default.
import type { Traits } from './protocol.ts'

/** Repairs that a family's chat answers need before a caller may see them. */
export const QUIRKS = {
  'tool-index':
    'streamed tool calls come without `index`; the gateway numbers them (only asks with tools are affected)',
  'think-tags': 'reasoning comes as <think>…</think> inside `content`; it moves to `reasoning_content`',
  'reasoning-details':
    'reasoning comes as `reasoning_details: [{text}]`, possibly as growing snapshots; it moves to `reasoning_content`',
  role: 'the first streamed delta may lack `role`',
} as const
export type Quirk = keyof typeof QUIRKS

export interface TextTraits {
  /** Chat: the one output limit that the model takes; `either`: whatever the caller sent. */
  readonly tokensField: 'either' | 'max_tokens' | 'max_completion_tokens'
  /** Chat: the largest `n`. Absent: no bound of ours. */
  readonly nMax: number | undefined
  /** Chat: an ask with tools needs a route that serves this, e.g. `tools`. */
  readonly toolsNeed: string | undefined
  /** Chat: false when `tool_choice` may not name tools; only those named are then sent, with `required`. */
  readonly namedToolChoice: boolean
  /** Chat: false when the model knows no `developer` role; such turns are sent as `system`. */
  readonly developerRole: boolean
  /** Request members that the model refuses although the contract allows them: left out. */
  readonly dropParams: readonly string[]
  /** Keys of chat messages, of their parts and of their tool calls that the model refuses: left out. */
  readonly stripKeys: readonly string[]
  /** Chat: members to add to every request, as JSON texts by name: `["reasoning_split=true"]`. */
  readonly addParams: readonly string[]
  readonly quirks: readonly Quirk[]
  /**
   * Chat: the model refuses a turn that called tools and comes back without `reasoning_content`. Clients that dropped it
   * get an empty one sent, which is accepted; converted asks send what they have.
   */
  readonly reasoningReplay: boolean
  /**
   * Chat: the model refuses a turn that called tools and comes back without the `extra_content` of its first call. This
   * JSON text is sent where a client dropped it.
   */
  readonly callExtra: string | undefined
  /** Chat, for converted asks: the model takes `thinking: {type}`. */
  readonly thinkingObject: boolean
  /** Messages, for converted asks: how an effort is said. `none`: not at all. */
  readonly effort: 'config' | 'budget' | 'none'
  /** Messages, for converted asks: false when the model always thinks, so that `disabled` must not be sent. */
  readonly thinkingOptional: boolean
  /** Messages, for converted asks without an output limit: what to send, since the format requires one. */
  readonly maxTokensDefault: number
  /** Responses, for converted asks: asks for encrypted reasoning, so that callers can replay it. */
  readonly encryptedReasoning: boolean
  /** Tools that run at the vendor and are let through although only their tokens are charged: `["web_search"]`. */
  readonly hostedTools: readonly string[]
  /**
   * Lets callers continue what the vendor keeps (`previous_response_id`, item references), as the SDKs do by default. All
   * accounts share the vendor's credential, so only the unguessable ids keep them apart; `false` refuses such requests.
   */
  readonly vendorState: boolean
}

const DEFAULTS: TextTraits = {
  tokensField: 'either',
  nMax: undefined,
  toolsNeed: undefined,
  namedToolChoice: true,
  developerRole: true,
  dropParams: [],
  stripKeys: [],
  addParams: [],
  quirks: [],
  reasoningReplay: false,
  callExtra: undefined,
  thinkingObject: false,
  effort: 'config',
  thinkingOptional: true,
  maxTokensDefault: 64_000,
  encryptedReasoning: false,
  hostedTools: [],
  vendorState: true,
}

const ONE_OF: Partial<Record<keyof TextTraits, readonly string[]>> = {
  tokensField: ['either', 'max_tokens', 'max_completion_tokens'],
  effort: ['config', 'budget', 'none'],
}
const NUMBERS: readonly string[] = ['nMax', 'maxTokensDefault']
const WORDS: readonly string[] = ['toolsNeed', 'callExtra']

const known = new WeakMap<Traits, TextTraits>()

/** The traits with their defaults. Catalogue records are frozen data, so each is read once. */
export function readTraits(traits: Traits): TextTraits {
  const found = known.get(traits)
  if (found) return found
  const read = { ...DEFAULTS, ...pick(traits) }
  known.set(traits, read)
  return read
}

function pick(traits: Traits): Partial<TextTraits> {
  return Object.fromEntries(Object.entries(traits).filter(([name]) => Object.hasOwn(DEFAULTS, name)))
}

/** What is wrong with a record of traits, in the words of the catalogue's check; empty when nothing is. */
export function traitProblems(traits: Traits): string[] {
  const problems: string[] = []
  for (const [name, value] of Object.entries(traits)) {
    if (!Object.hasOwn(DEFAULTS, name)) {
      problems.push(`"${name}" is not a trait`)
      continue
    }
    const key = name as keyof TextTraits
    const allowed = ONE_OF[key]
    if (allowed && !allowed.includes(value as string)) problems.push(`"${name}" must be one of ${allowed.join(', ')}`)
    else if (NUMBERS.includes(name) && !(Number.isSafeInteger(value) && (value as number) > 0))
      problems.push(`"${name}" must be a positive integer`)
    else if (WORDS.includes(name) && typeof value !== 'string') problems.push(`"${name}" must be a word`)
    else if (typeof DEFAULTS[key] === 'boolean' && typeof value !== 'boolean')
      problems.push(`"${name}" must be true or false`)
    else if (Array.isArray(DEFAULTS[key]) && !Array.isArray(value)) problems.push(`"${name}" must be a list of words`)
    if (name === 'quirks' && Array.isArray(value))
      for (const quirk of value)
        if (!Object.hasOwn(QUIRKS, quirk))
          problems.push(`"${quirk}" is not a quirk; known are ${Object.keys(QUIRKS).join(', ')}`)
  }
  return problems
}
