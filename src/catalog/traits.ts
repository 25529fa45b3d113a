// What distinguishes one product from the format that it is served in, as data: a schema for each kind of product, with the
// meaning and the default of every trait.
import * as z from 'zod'
import type { KindName } from '../meter/kind.ts'

/** Repairs that a family's chat answers need before a caller may see them. */
const QUIRKS = {
  'tool-index':
    'streamed tool calls come without `index`; the gateway numbers them (only asks with tools are affected)',
  'think-tags': 'reasoning comes as <think>…</think> inside `content`; it moves to `reasoning_content`',
  'reasoning-details':
    'reasoning comes as `reasoning_details: [{text}]`, possibly as growing snapshots; it moves to `reasoning_content`',
  role: 'the first streamed delta may lack `role`',
} as const
export type Quirk = keyof typeof QUIRKS

const count = z.number().int().positive()
const words = z.array(z.string())

export const textTraits = z.strictObject({
  /** Chat: the one output limit that the model takes; `either`: whatever the caller sent. */
  tokensField: z.enum(['either', 'max_tokens', 'max_completion_tokens']).default('either'),
  /**
   * Chat: whether the vendor counts reasoning within the output tokens. `total`: as its total shows, which is more than prompt and output
   * where it counts reasoning beside them; `outside`: beside them, although no total says so; `inside`: within, whatever the total says.
   */
  reasoningTokens: z.enum(['total', 'inside', 'outside']).default('total'),
  /** Chat: the largest `n`. Absent: no bound of ours. */
  nMax: count.optional(),
  /** Chat: an ask with tools needs a route that serves this, e.g. `tools`. */
  toolsNeed: z.string().optional(),
  /** Chat: false when `tool_choice` may not name tools; only those named are then sent, with `required`. */
  namedToolChoice: z.boolean().default(true),
  /** Chat: false when the model knows no `developer` role; such turns are sent as `system`. */
  developerRole: z.boolean().default(true),
  /** Request members that the model refuses although the contract allows them: left out. */
  dropParams: words.default([]),
  /** Parameters that are left out where another format is converted: its clients send them by themselves, and the model refuses them. */
  dropConverted: words.default([]),
  /**
   * What is sent in place of `temperature: 0`, with which agents ask for the likeliest answer, to a model that refuses 0. Values
   * out of its range otherwise stay the vendor's to refuse.
   */
  zeroTemperature: z.number().positive().optional(),
  /** Keys of chat messages, of their parts and of their tool calls that the model refuses: left out. */
  stripKeys: words.default([]),
  /** Chat: members to add to every request, as JSON texts by name: `["reasoning_split=true"]`. */
  addParams: words.default([]),
  quirks: z.array(z.enum(Object.keys(QUIRKS) as [Quirk, ...Quirk[]])).default([]),
  /**
   * Chat: the model refuses a turn that called tools and comes back without `reasoning_content`. Clients that dropped it
   * get an empty one sent, which is accepted; converted asks send what they have.
   */
  reasoningReplay: z.boolean().default(false),
  /**
   * Chat: the model refuses a turn that called tools and comes back without the `extra_content` of its first call. This
   * JSON text is sent where a client dropped it.
   */
  callExtra: z.string().optional(),
  /** Chat, for converted asks: the model takes `thinking: {type}`. */
  thinkingObject: z.boolean().default(false),
  /** Messages and Google's format, for converted asks: how an effort is said. `none`: not at all. */
  effort: z.enum(['config', 'budget', 'none']).default('config'),
  /** Messages, for converted asks: false when the model always thinks, so that `disabled` must not be sent. */
  thinkingOptional: z.boolean().default(true),
  /** Responses, for converted asks: asks for encrypted reasoning, so that callers can replay it. */
  encryptedReasoning: z.boolean().default(false),
  /**
   * What the vendor can do: `never` is asked for whole answers only, `always` for streams only, and callers get what they
   * asked for all the same. An answer that is of the other kind is understood without this too; only then the vendor was asked in vain.
   */
  streams: z.enum(['asked', 'never', 'always']).default('asked'),
  /** What becomes of an offer of web search that has no price (`webSearch`): clients send it with every request. */
  webSearch: z.enum(['drop', 'refuse']).default('drop'),
  /** Tools that run at the vendor and are let through although only their tokens are charged: `["web_search"]`. */
  hostedTools: words.default([]),
  /**
   * Lets callers continue what the vendor keeps (`previous_response_id`, threads, item references), as the SDKs do by default.
   * They are bound to the account that made them.
   * `false` refuses such requests, and tells the vendor to keep nothing.
   */
  vendorState: z.boolean().default(true),
  /** Ids at the vendor that every account may use, such as a vector store or a prompt of the operator's. All others are refused to those for whom they were not made. */
  sharedIds: words.default([]),
})

const transcriptionTraits = z.strictObject({
  /** The longest recording that it takes: nothing is held for more. */
  secondsMax: count.default(14_400),
})

/** What a video model takes. */
const videoTraits = z.strictObject({
  secondsMin: count.default(4),
  secondsMax: count.default(15),
  resolutions: z.array(z.enum(['480p', '720p', '1080p', '2k', '4k'])).default(['480p', '720p', '1080p']),
  imagesMax: z.number().int().min(0).default(9),
  videosMax: z.number().int().min(0).default(3),
  audiosMax: z.number().int().min(0).default(3),
})

export const dataTraits = z.strictObject({
  /** Social data: `post` where the vendor speaks of posts and no longer of tweets. */
  names: z.enum(['tweet', 'post']).default('tweet'),
})

const TRAITS = { text: textTraits, transcription: transcriptionTraits, video: videoTraits, data: dataTraits }
const none = z.strictObject({})
/** Of each kind; most have none. */
export type TraitsOf<K extends KindName> = z.output<K extends keyof typeof TRAITS ? (typeof TRAITS)[K] : typeof none>
const schemas: Partial<Record<KindName, z.ZodType>> = TRAITS
export const traitsOf = (kind: KindName): z.ZodType => schemas[kind] ?? none

export type TextTraits = z.output<typeof textTraits>
export type VideoTraits = z.output<typeof videoTraits>
export type DataTraits = z.output<typeof dataTraits>

/** With their defaults. */
export const readTextTraits = (given: TextTraitsGiven = {}): TextTraits => textTraits.parse(given)
export type TextTraitsGiven = z.input<typeof textTraits>
