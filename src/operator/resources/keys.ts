import * as z from 'zod'
import { type Keys, keyUnknown } from '../../admission/keys.ts'
import { keyView, newKey } from '../../admission/views.ts'
import { page } from '../../kernel/view.ts'
import { limitsInput } from '../../ledger/views.ts'
import { moment, paging, text } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

/** Nobody waits longer than a month to bring a new key everywhere. */
const OVERLAP_SECONDS_MAX = 30 * 86_400
const OVERLAP_SECONDS = 86_400

const fields = {
  name: text(100),
  models: z.array(text(100)).min(1, 'must name at least one model; null allows all').max(500).nullable().optional(),
  expiresAt: moment.nullable().optional(),
  limits: limitsInput.nullable().optional(),
  ipRanges: z.array(text(64)).min(1, 'must name at least one range; null allows all').max(100).nullable().optional(),
  keepsAnswers: z.boolean().nullable().optional(),
}

const creation = z.strictObject({ ...fields, test: z.boolean().optional() }).transform(withMs)
const imported = z
  .strictObject({
    ...fields,
    sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be the SHA-256 of the key in 64 hexadecimal digits'),
    last4: z.string().regex(/^[\x21-\x7e]{1,4}$/, 'must be the last four characters of the key'),
  })
  .transform(withMs)
const change = z.strictObject({ ...fields, name: fields.name.optional() }).transform(withMs)

function withMs<T extends { expiresAt?: number | null | undefined }>({ expiresAt, ...rest }: T) {
  return { ...rest, ...(expiresAt === undefined ? {} : { expiresAtMs: expiresAt }) }
}

export function keyResources({ keys }: { keys: Keys }): Resource[] {
  async function accountOf({ id }: { id: string }): Promise<string> {
    const found = await keys.get(id)
    if (!found) throw keyUnknown()
    return found.account
  }

  return [
    resource('GET /accounts/{id}/keys', 'member', {
      query: z.strictObject(paging),
      answer: page(keyView),
      run: ({ params, query }) => keys.list(params.id, query),
    }),
    resource('POST /accounts/{id}/keys', 'member', {
      body: creation,
      answer: newKey,
      run: ({ params, body, by }) => keys.create(params.id, body, by),
    }),
    resource('POST /accounts/{id}/imported-keys', 'operator', {
      body: imported,
      answer: keyView,
      run: ({ params, body, by }) => keys.import(params.id, body, by),
    }),
    resource('PATCH /keys/{id}', 'member', {
      account: accountOf,
      body: change,
      answer: keyView,
      run: ({ params, body, by }) => keys.change(params.id, body, by),
    }),
    resource('DELETE /keys/{id}', 'member', {
      account: accountOf,
      answer: keyView,
      run: ({ params, by }) => keys.revoke(params.id, by),
    }),
    resource('POST /keys/{id}/rotate', 'member', {
      account: accountOf,
      body: z.strictObject({
        overlapSeconds: z.number().int().min(0).max(OVERLAP_SECONDS_MAX).default(OVERLAP_SECONDS),
      }),
      answer: newKey,
      run: ({ params, body, by }) => keys.rotate(params.id, body.overlapSeconds, by),
    }),
  ]
}
