// Traits: how a product differs from its format. A schema for each kind of product, with the
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
  /** Chat: the only output limit that the model accepts; `either`: the one that the caller sent. */
  tokensField: z.enum(['either', 'max_tokens', 'max_completion_tokens']).default('either'),
  /**
   * Chat: whether the vendor's output tokens include reasoning. `total`: decided by its total, which is more than
   * prompt plus output if reasoning is counted separately; `outside`: separately, although the total does not show it;
   * `inside`: included, whatever the total is.
   */
  reasoningTokens: z.enum(['total', 'inside', 'outside']).default('total'),
  /** Chat: the largest `n`. Absent: the gateway sets no limit. */
  nMax: count.optional(),
  /** Chat: a request with tools needs a route that serves this, e.g. `tools`. */
  toolsNeed: z.string().optional(),
  /** Chat: false if `tool_choice` cannot name tools; then only the named tools are sent, with `required`. */
  namedToolChoice: z.boolean().default(true),
  /** Chat: false if the model has no `developer` role; such messages are sent as `system`. */
  developerRole: z.boolean().default(true),
  /** Request fields that the model rejects although the contract allows them; they are left out. */
  dropParams: words.default([]),
  /**
   * Parameters that are left out of converted requests: clients of other formats send them by default, and the model
   * rejects them.
   */
  dropConverted: words.default([]),
  /**
   * Replaces `temperature: 0`, which agents send for deterministic answers, for a model that rejects 0. Other values
   * outside its range are left to the vendor.
   */
  zeroTemperature: z.number().positive().optional(),
  /** Fields of chat messages, their parts and tool calls that the model rejects; they are left out. */
  stripKeys: words.default([]),
  /** Chat: fields that are added to every request, as name and JSON value: `["reasoning_split=true"]`. */
  addParams: words.default([]),
  quirks: z.array(z.enum(Object.keys(QUIRKS) as [Quirk, ...Quirk[]])).default([]),
  /**
   * Chat: the model rejects an earlier message with tool calls but without `reasoning_content`. If a client dropped it,
   * an empty one is sent, which the model accepts; converted requests send what they have.
   */
  reasoningReplay: z.boolean().default(false),
  /**
   * Chat: the model rejects an earlier message with tool calls but without the `extra_content` of its first call. This
   * JSON text is sent if a client dropped it.
   */
  callExtra: z.string().optional(),
  /** Chat, for converted requests: the model accepts `thinking: {type}`. */
  thinkingObject: z.boolean().default(false),
  /** Messages and Gemini, for converted requests: how a reasoning effort is sent. `none`: not at all. */
  effort: z.enum(['config', 'budget', 'none']).default('config'),
  /** Messages, for converted requests: false if the model always thinks, so that `disabled` must not be sent. */
  thinkingOptional: z.boolean().default(true),
  /** Responses, for converted requests: requests encrypted reasoning, so that callers can send it again. */
  encryptedReasoning: z.boolean().default(false),
  /**
   * Whether the vendor can stream: `never` gets only requests without streaming, `always` only with it. Callers get
   * what they requested in either case. An answer of the other kind is converted even without this trait.
   */
  streams: z.enum(['asked', 'never', 'always']).default('asked'),
  /** The most tokens that the vendor counts for one image of a prompt, if that is more than 5,000. */
  imageTokens: count.optional(),
  /**
   * The model's tokenizer. A prompt is held at one token a byte. Where the balance or a limit does not allow that, a
   * text of a model with a tokenizer is counted instead.
   */
  tokenizer: z.enum(['o200k', 'cl100k']).optional(),
  /** What happens to an offered web search without a price (`webSearch`); some clients offer it in every request. */
  webSearch: z.enum(['drop', 'refuse']).default('drop'),
  /** Tools that run at the vendor and are allowed although only their tokens are charged: `["web_search"]`. */
  hostedTools: words.default([]),
  /**
   * Lets callers continue objects that the vendor stores (`previous_response_id`, threads, item references), as SDKs do
   * by default. They can be used only by the account that created them.
   * `false` rejects such requests, and tells the vendor to store nothing.
   */
  vendorState: z.boolean().default(true),
  /**
   * Chat: the vendor chooses among others by the caller's `provider` object, as OpenRouter does; it is passed on and
   * not read here. The caller can then choose a dearer one than the price assumes.
   */
  vendorRouting: z.boolean().default(false),
  /**
   * Ids at the vendor that every account may use, such as a vector store or prompt of the operator. All other ids are
   * rejected unless they belong to the account.
   */
  sharedIds: words.default([]),
})

const transcriptionTraits = z.strictObject({
  /** The longest audio that it accepts; the hold covers no more. */
  secondsMax: count.default(14_400),
  /** The fewest seconds that the vendor bills for a call, such as 10. */
  secondsMin: count.default(1),
})

/** The inputs that a video model accepts. */
const videoTraits = z.strictObject({
  secondsMin: count.default(4),
  secondsMax: count.default(15),
  resolutions: z.array(z.enum(['480p', '720p', '1080p', '2k', '4k'])).default(['480p', '720p', '1080p']),
  imagesMax: z.number().int().min(0).default(9),
  videosMax: z.number().int().min(0).default(3),
  audiosMax: z.number().int().min(0).default(3),
})

export const dataTraits = z.strictObject({
  /** Social data: `post` if the vendor uses the word post instead of tweet. */
  names: z.enum(['tweet', 'post']).default('tweet'),
})

const TRAITS = { text: textTraits, transcription: transcriptionTraits, video: videoTraits, data: dataTraits }
const none = z.strictObject({})
/** The traits of each kind; most have none. */
export type TraitsOf<K extends KindName> = z.output<K extends keyof typeof TRAITS ? (typeof TRAITS)[K] : typeof none>
const schemas: Partial<Record<KindName, z.ZodType>> = TRAITS
export const traitsOf = (kind: KindName): z.ZodType => schemas[kind] ?? none

export type TextTraits = z.output<typeof textTraits>
export type VideoTraits = z.output<typeof videoTraits>
export type DataTraits = z.output<typeof dataTraits>

/** With their defaults. */
export const readTextTraits = (given: TextTraitsGiven = {}): TextTraits => textTraits.parse(given)
export type TextTraitsGiven = z.input<typeof textTraits>
