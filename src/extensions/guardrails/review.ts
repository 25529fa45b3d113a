// What changes of guardrails say in a review. The console bundles this file.
import { each, leafSentences, type Review, type Tree, treeOf } from '../../catalog/change-sentences.ts'

export const reviewGuardrails: Review = (before, after) => each(before, after, guardrailSentences)

function guardrailSentences(name: string, before: Tree | undefined, after: Tree | undefined): string[] {
  if (!after) return [`Guardrail ${name} is removed.`]
  if (before) return leafSentences(`Guardrail ${name}`, before, after)
  const { redact, hook, moderate } = after
  if (redact) return [`Guardrail ${name} is added: it redacts what its patterns find.`]
  if (hook) return [`Guardrail ${name} is added: it asks ${URL.parse(String(treeOf(hook).url))?.host}.`]
  return [`Guardrail ${name} is added: it asks the model ${String(treeOf(moderate).model)}.`]
}
