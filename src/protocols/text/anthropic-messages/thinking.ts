// How hard a Messages model shall think, and in which shape it shall answer, said in the words that its family takes.

import type { TextTraits } from '../../../catalog/traits.ts'
import type { Json } from '../../check.ts'
import type { Dialogue } from '../dialogue.ts'

/** Thinking tokens for families that know no effort. The vendor takes 1,024 at least. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
  max: 32_768,
}
const BUDGET_MIN = 1_024
const EFFORTS: Readonly<Record<string, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
}

export function writeThinking(dialogue: Dialogue, traits: TextTraits): { thinking?: Json; output_config?: Json } {
  const thinking = thinkingOf(dialogue, traits)
  const effort = traits.effort === 'config' && dialogue.effort !== undefined ? EFFORTS[dialogue.effort] : undefined
  const format =
    dialogue.format?.kind === 'schema' ? { type: 'json_schema', schema: dialogue.format.schema } : undefined
  return {
    ...(thinking ? { thinking } : {}),
    ...(effort || format ? { output_config: { ...(effort ? { effort } : {}), ...(format ? { format } : {}) } } : {}),
  }
}

function thinkingOf(dialogue: Dialogue, traits: TextTraits): Json | undefined {
  // Every call has one, its caller's or that of its hold; a request that is only tried for its words has none.
  const { thinking, effort, tokensMax = Number.MAX_SAFE_INTEGER } = dialogue
  if (thinking?.type === 'disabled' || (thinking === undefined && effort === 'none'))
    return traits.thinkingOptional ? { type: 'disabled' } : undefined
  if (thinking !== undefined)
    return mayThink(dialogue) ? knownThinking(thinking, effort, { traits, tokensMax }) : undefined
  if (traits.effort !== 'budget' || effort === undefined || !mayThink(dialogue)) return undefined
  // With thinking on, this family takes no sampling parameters: what the caller said outright goes first.
  if (dialogue.temperature !== undefined || dialogue.topP !== undefined) return undefined
  return withBudget(BUDGETS[effort] ?? 0, tokensMax)
}

function withBudget(wanted: number, tokensMax: number): Json | undefined {
  const budget = Math.min(wanted, tokensMax - 1)
  return budget < BUDGET_MIN ? undefined : { type: 'enabled', budget_tokens: budget }
}

/** As the model knows it: agents ask every model for adaptive thinking, and those that know budgets only refuse that. */
export function knownThinking(
  thinking: Json,
  effort: string | undefined,
  { traits, tokensMax }: { readonly traits: TextTraits; readonly tokensMax: number },
): Json | undefined {
  if (traits.effort !== 'budget' || thinking.type !== 'adaptive') return thinking
  return withBudget(BUDGETS[effort ?? 'medium'] ?? BUDGET_MIN, tokensMax)
}

/**
 * Thinking is not switched on where the vendor would refuse it: with a forced tool, or when a turn that called tools has
 * come back without its signed thought.
 */
function mayThink({ turns, toolChoice }: Dialogue): boolean {
  const forced =
    toolChoice === 'required' ||
    (typeof toolChoice === 'object' && ('name' in toolChoice || toolChoice.mode === 'required'))
  if (forced) return false
  return turns.every(
    (turn) =>
      turn.role !== 'assistant' ||
      !turn.parts.some((part) => part.kind === 'call') ||
      turn.parts.some(
        (part) => part.kind === 'thought' && (part.proof.signature !== undefined || part.proof.redacted !== undefined),
      ),
  )
}
