// Batches as the console and the operator API show them.
import * as z from 'zod'
import { Fault } from '../../kernel/fault.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { page } from '../../kernel/view.ts'
import { paging, type Resource, resource, test } from '../../operator/resource.ts'
import { BATCH_STATUSES } from './batch-endpoints.ts'
import type { Batches } from './batches.ts'
import { ENDPOINT_URLS } from './lines.ts'
import { batchDetail, batchLine, batchView, fileCheck } from './views.ts'

interface BatchResourceDeps {
  readonly background: () => { readonly batches: Pick<Batches, 'queries' | 'cancel'> }
}

const whose = z.strictObject({ test })
const of = (account: string, query: { readonly test?: z.output<typeof test> }) =>
  query.test === 'true' ? testAccountOf(account) : account

function found<T>(what: T | undefined, name: string): T {
  if (what === undefined) throw new Fault('not_found', { message: `There is no ${name} with this id.` })
  return what
}

export function batchResources({ background }: BatchResourceDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/batches', 'jobs:read', {
      title: 'List the batches of an account',
      query: z.strictObject({
        ...paging,
        test,
        status: z.enum(BATCH_STATUSES).optional().describe('Only with this status'),
      }),
      answer: page(batchView),
      run: ({ params, query }) => background().batches.queries.list(of(params.id, query), query),
    }),
    resource('GET /accounts/{id}/batches/{batch}', 'jobs:read', {
      title: 'Show a batch',
      query: whose,
      answer: batchDetail,
      run: async ({ params, query }) =>
        found(await background().batches.queries.find(of(params.id, query), params.batch), 'batch'),
    }),
    resource('GET /accounts/{id}/batches/{batch}/lines', 'jobs:read', {
      title: 'List the lines of a batch',
      query: z.strictObject({
        ...paging,
        test,
        outcome: z
          .enum(['failed', 'completed'])
          .default('failed')
          .describe('Lines that failed (default), or were answered'),
      }),
      answer: page(batchLine),
      async run({ params, query: { outcome, ...query } }) {
        const wanted = { ...query, ok: outcome === 'completed' }
        return found(await background().batches.queries.lines(of(params.id, query), params.batch, wanted), 'batch')
      },
    }),
    resource('POST /accounts/{id}/batches/{batch}/cancel', 'jobs:write', {
      title: 'Cancel a batch',
      query: whose,
      answer: batchDetail,
      async run({ params, query, by }) {
        const account = of(params.id, query)
        found(await background().batches.cancel(account, params.batch, by), 'batch')
        return found(await background().batches.queries.find(account, params.batch), 'batch')
      },
    }),
    resource('GET /accounts/{id}/files/{file}/check', 'jobs:read', {
      title: 'Check a file before it becomes a batch',
      query: z.strictObject({ test, endpoint: z.enum(ENDPOINT_URLS).default('/v1/chat/completions') }),
      answer: fileCheck,
      run: async ({ params, query }) =>
        found(await background().batches.queries.check(of(params.id, query), params.file, query.endpoint), 'file'),
    }),
  ]
}
