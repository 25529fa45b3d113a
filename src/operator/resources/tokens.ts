// Tokens of the operator API, for the whole gateway and for one account.
import * as z from 'zod'
import type { Tokens } from '../../identity/tokens.ts'
import { newToken, tokenView } from '../../identity/views.ts'
import { page } from '../../kernel/view.ts'
import { type Actor, may, moment, type Resource, resource, text } from '../resource.ts'

export interface TokenDeps {
  readonly tokens: Tokens
}

const creation = z
  .strictObject({
    name: text(100),
    scopes: z.array(text(100)).min(1, 'must name at least one right; * is everything').max(200),
    expiresAt: moment.nullable().optional(),
    ipRanges: z.array(text(64)).min(1, 'must name at least one range; null allows all').max(100).nullable().optional(),
  })
  .transform(({ expiresAt, ...rest }) => ({ ...rest, ...(expiresAt === undefined ? {} : { expiresAtMs: expiresAt }) }))

const makerOf = (actor: Actor, account?: string) => ({
  may: (permission: Parameters<typeof may>[1]) => may(actor, permission, account),
  person: actor.session?.person.id ?? actor.token?.person?.id ?? null,
  token: actor.token ?? undefined,
})

export function tokenResources({ tokens }: TokenDeps): Resource[] {
  return [
    resource('GET /tokens', 'tokens:read', {
      answer: page(tokenView),
      run: async () => ({ items: await tokens.list(null), next: null }),
    }),
    resource('POST /tokens', 'tokens:write', {
      body: creation,
      answer: newToken,
      run: ({ body, actor, by }) => tokens.create(null, body, makerOf(actor), by),
    }),
    resource('DELETE /tokens/{tokenId}', 'tokens:write', {
      answer: tokenView,
      run: ({ params, by }) => tokens.revoke(null, params.tokenId, by),
    }),
    resource('GET /accounts/{id}/tokens', 'tokens:read', {
      answer: page(tokenView),
      run: async ({ params }) => ({ items: await tokens.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/tokens', 'tokens:write', {
      body: creation,
      answer: newToken,
      run: ({ params, body, actor, by }) => tokens.create(params.id, body, makerOf(actor, params.id), by),
    }),
    resource('DELETE /accounts/{id}/tokens/{tokenId}', 'tokens:write', {
      answer: tokenView,
      run: ({ params, by }) => tokens.revoke(params.id, params.tokenId, by),
    }),
  ]
}
