import * as z from 'zod'
import { CONTENT_BYTES, CONTENT_DAYS, contentRules, contentView } from '../../admission/views.ts'
import { Fault } from '../../kernel/fault.ts'
import type { ContentRuleStore } from '../../recordings/content-rules.ts'
import type { Contents } from '../../recordings/contents.ts'
import type { Statements } from '../../reports/statement.ts'
import { id, test } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

export interface ContentDeps {
  readonly contents: Contents
  readonly contentRules: ContentRuleStore
  readonly statements: Statements
}

const done = z.object({ ok: z.literal(true) })

export function contentResources({ contents, contentRules: rules, statements }: ContentDeps): Resource[] {
  async function accountOf({ requestId }: { requestId: string }): Promise<string> {
    // A refused call is not in the list yet, or of many like it is not listed one by one.
    const account = (await statements.usageOf(requestId))?.account ?? (await contents.accountOf(requestId))
    if (account === undefined) throw nothingKept()
    return account
  }

  return [
    resource('GET /accounts/{id}/content', 'member', {
      answer: contentRules,
      run: ({ params }) => rules.get(params.id),
    }),
    resource('PUT /accounts/{id}/content', 'owner', {
      body: z.strictObject({
        key: id.optional(),
        days: z.number().int().min(CONTENT_DAYS.min).max(CONTENT_DAYS.max).default(CONTENT_DAYS.usual),
        maxBytes: z.number().int().min(CONTENT_BYTES.min).max(CONTENT_BYTES.max).default(CONTENT_BYTES.usual),
      }),
      answer: contentRules,
      run: ({ params, body: { key, ...rule }, by }) => rules.set(params.id, key, rule, by),
    }),
    resource('DELETE /accounts/{id}/content', 'owner', {
      query: z.strictObject({ key: id.optional(), keep: test }),
      answer: contentRules,
      run: ({ params, query, by }) => rules.unset(params.id, query.key, query.keep !== 'true', by),
    }),
    resource('GET /usage/{requestId}/content', 'member', {
      account: accountOf,
      answer: contentView,
      async run({ params, by }) {
        const found = await contents.read(await accountOf(params), params.requestId, by)
        if (!found) throw nothingKept()
        return found
      },
    }),
    resource('DELETE /usage/{requestId}/content', 'member', {
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
  return new Fault('not_found', { message: 'Nothing was kept of what this call sent and was sent.' })
}
