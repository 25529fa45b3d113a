// The kinds of products: which formats serve each, what each must have a price for, and which traits it has.
import * as z from 'zod'
import { dataTraits, textTraits, transcriptionTraits, videoTraits } from '../catalog/traits.ts'
import type { Unit } from '../meter/usage.ts'

export interface Kind {
  readonly protocols: readonly [string, ...string[]]
  /** Of each group one unit needs a rate in every tier. */
  readonly priced: readonly (readonly Unit[])[]
  readonly traits: z.ZodType
}

const none = z.strictObject({}).prefault({})

export const KINDS = {
  text: {
    protocols: ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'],
    priced: [['input'], ['output']],
    traits: textTraits.prefault({}),
  },
  image: { protocols: ['openai-images'], priced: [['image', 'output']], traits: none },
  embedding: { protocols: ['openai-embeddings'], priced: [['input']], traits: none },
  rerank: { protocols: ['rerank'], priced: [['input', 'call']], traits: none },
  moderation: { protocols: ['openai-moderations'], priced: [['call']], traits: none },
  transcription: {
    protocols: ['openai-audio'],
    priced: [['second']],
    traits: transcriptionTraits.prefault({}),
  },
  speech: { protocols: ['openai-speech'], priced: [['character']], traits: none },
  video: { protocols: ['video-task'], priced: [['second', 'output']], traits: videoTraits.prefault({}) },
  data: { protocols: ['social-v2', 'site-analytics'], priced: [['call']], traits: dataTraits.prefault({}) },
} as const satisfies Record<string, Kind>

export type KindName = keyof typeof KINDS
export type ProtocolName = (typeof KINDS)[KindName]['protocols'][number]
export type TextProtocolName = (typeof KINDS)['text']['protocols'][number]
export const TEXT_PROTOCOLS = KINDS.text.protocols
export const PROTOCOLS = Object.values(KINDS).flatMap(({ protocols }): ProtocolName[] => [...protocols])
