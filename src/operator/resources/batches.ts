import * as z from 'zod'
import { BATCH_STATUSES } from '../../catalog/batches.ts'
import type { Batches } from '../../deferred/batches.ts'
import { ENDPOINT_URLS } from '../../deferred/lines.ts'
import { batchDetail, batchLine, batchView, fileCheck } from '../../deferred/views.ts'
import { Fault } from '../../kernel/fault.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { page } from '../../kernel/view.ts'
import { paging, test } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

export interface BatchResourceDeps {
  readonly batches: Pick<Batches, 'desk' | 'cancel'>
}

const whose = z.strictObject({ test })
const of = (account: string, query: { readonly test?: z.output<typeof test> }) =>
  query.test === 'true' ? testAccountOf(account) : account

function found<T>(what: T | undefined, name: string): T {
  if (what === undefined) throw new Fault('not_found', { message: `There is no ${name} with this id.` })
  return what
}

export function batchResources({ batches }: BatchResourceDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/batches', 'member', {
      query: z.strictObject({ ...paging, test, status: z.enum(BATCH_STATUSES).optional() }),
      answer: page(batchView),
      run: ({ params, query }) => batches.desk.list(of(params.id, query), query),
    }),
    resource('GET /accounts/{id}/batches/{batch}', 'member', {
      query: whose,
      answer: batchDetail,
      run: async ({ params, query }) => found(await batches.desk.find(of(params.id, query), params.batch), 'batch'),
    }),
    resource('GET /accounts/{id}/batches/{batch}/lines', 'member', {
      query: z.strictObject({ ...paging, test, outcome: z.enum(['failed', 'completed']).default('failed') }),
      answer: page(batchLine),
      async run({ params, query: { outcome, ...query } }) {
        const wanted = { ...query, ok: outcome === 'completed' }
        return found(await batches.desk.lines(of(params.id, query), params.batch, wanted), 'batch')
      },
    }),
    resource('POST /accounts/{id}/batches/{batch}/cancel', 'member', {
      query: whose,
      answer: batchDetail,
      async run({ params, query, by }) {
        const account = of(params.id, query)
        found(await batches.cancel(account, params.batch, by), 'batch')
        return found(await batches.desk.find(account, params.batch), 'batch')
      },
    }),
    resource('GET /accounts/{id}/files/{file}/check', 'member', {
      query: z.strictObject({ test, endpoint: z.enum(ENDPOINT_URLS).default('/v1/chat/completions') }),
      answer: fileCheck,
      run: async ({ params, query }) =>
        found(await batches.desk.check(of(params.id, query), params.file, query.endpoint), 'file'),
    }),
  ]
}
