// Trying a redaction rule on a sample text, and content logging. The rules themselves are part of the catalog.
import * as z from 'zod'
import { CONTENT_BYTES, CONTENT_DAYS, contentRules, contentView } from '../../admission/views.ts'
import { Fault } from '../../kernel/fault.ts'
import { id, type Resource, resource, test } from '../../operator/resource.ts'
import type { Statements } from '../../reports/statement.ts'
import type { RecordingPolicies, Recordings } from './recordings.ts'
import { redaction } from './rules.ts'
import { redactSample } from './sample.ts'
import { sampleView } from './views.ts'

/** Long enough to see what a rule does, short enough for fifty patterns at once. */
const SAMPLE_CHARS_MAX = 2_000

export function guardrailResources(): Resource[] {
  return [
    resource('POST /guardrails/try', 'catalog:write', {
      title: 'Try guardrails on a text',
      body: z.strictObject({ redact: redaction.omit({ on: true }), text: z.string().max(SAMPLE_CHARS_MAX) }),
      answer: sampleView,
      run: ({ body: { redact, text } }) => redactSample(redact, text),
    }),
  ]
}

interface ContentDeps {
  readonly contents: Recordings
  readonly contentRules: RecordingPolicies
  readonly statements: Statements
}

const done = z.object({ ok: z.literal(true) })
const ofKey = id
  .optional()
  .meta({ description: 'Only this key instead of the whole account', value: 'key', refersTo: 'key' })

export function contentResources({ contents, contentRules: rules, statements }: ContentDeps): Resource[] {
  async function accountOf({ requestId }: { requestId: string }): Promise<string> {
    // A rejected call may not be in the list yet, or may be one of many that are counted in one row.
    const account = (await statements.usageOf(requestId))?.account ?? (await contents.accountOf(requestId))
    if (account === undefined) throw nothingKept()
    return account
  }

  return [
    resource('GET /accounts/{id}/content', 'content-logging:read', {
      title: 'Show the content logging of an account',
      answer: contentRules,
      run: ({ params }) => rules.get(params.id),
    }),
    resource('PUT /accounts/{id}/content', 'content-logging:write', {
      title: 'Turn content logging on or change it',
      body: z.strictObject({
        key: ofKey,
        days: z
          .number()
          .int()
          .min(CONTENT_DAYS.min)
          .max(CONTENT_DAYS.max)
          .default(CONTENT_DAYS.usual)
          .describe(`For how many days; ${CONTENT_DAYS.usual} by default`),
        maxBytes: z
          .number()
          .int()
          .min(CONTENT_BYTES.min)
          .max(CONTENT_BYTES.max)
          .default(CONTENT_BYTES.usual)
          .describe(`Maximum size of each body; ${CONTENT_BYTES.usual} by default`),
      }),
      answer: contentRules,
      run: ({ params, body: { key, ...rule }, by }) => rules.set(params.id, key, rule, by),
    }),
    resource('DELETE /accounts/{id}/content', 'content-logging:write', {
      title: 'Turn content logging off',
      query: z.strictObject({ key: ofKey, keep: test.describe('Logged contents stay until they expire') }),
      answer: contentRules,
      run: ({ params, query, by }) => rules.unset(params.id, query.key, query.keep !== 'true', by),
    }),
    resource('GET /usage/{requestId}/content', 'recordings:read', {
      title: 'Read the logged content of a call',
      account: accountOf,
      answer: contentView,
      async run({ params, by }) {
        const found = await contents.read(await accountOf(params), params.requestId, by)
        if (!found) throw nothingKept()
        return found
      },
    }),
    resource('DELETE /usage/{requestId}/content', 'recordings:write', {
      title: 'Delete the logged content of a call',
      account: accountOf,
      answer: done,
      async run({ params, by }) {
        if (!(await contents.remove(await accountOf(params), params.requestId, by))) throw nothingKept()
        return { ok: true as const }
      },
    }),
  ]
}

function nothingKept(): Fault {
  return new Fault('not_found', { message: 'No content is stored for this call.' })
}
