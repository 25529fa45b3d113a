// Tries a redaction rule on a sample text. The rules themselves are part of the catalog.
import * as z from 'zod'
import { redaction } from '../../catalog/guardrails.ts'
import { redactSample } from '../../guardrails/sample.ts'
import { sampleView } from '../../guardrails/views.ts'
import { type Resource, resource } from '../resource.ts'

/** Long enough to see what a rule does, short enough for fifty patterns at once. */
const SAMPLE_CHARS_MAX = 2_000

export function guardrailResources(): Resource[] {
  return [
    resource('POST /guardrails/try', 'catalog:write', {
      body: z.strictObject({ redact: redaction.omit({ on: true }), text: z.string().max(SAMPLE_CHARS_MAX) }),
      answer: sampleView,
      run: ({ body: { redact, text } }) => redactSample(redact, text),
    }),
  ]
}
