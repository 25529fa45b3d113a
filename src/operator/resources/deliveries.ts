// Messages to receivers, with all their attempts.
import * as z from 'zod'
import type { Deliveries } from '../../jobs/deliveries.ts'
import { DELIVERY_KINDS, DELIVERY_STATUSES, deliveryDetail, deliveryPage, deliveryView } from '../../jobs/views.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { id, paging, type Resource, resource, test } from '../resource.ts'

const of = z.enum(['all', 'gateway']).default('all').describe('Only the gateway’s own')

export interface DeliveryDeps {
  readonly deliveries: Pick<Deliveries, 'list' | 'find' | 'repeat'>
}

const filter = {
  ...paging,
  status: z.enum(DELIVERY_STATUSES).optional().describe('Only with this status'),
  kind: z.enum(DELIVERY_KINDS).optional().describe('Only of this kind'),
}
/** Members of an account are members of its test account too. */
const bothOf = (account: string) => [account, testAccountOf(account)]

export function deliveryResources({ deliveries }: DeliveryDeps): Resource[] {
  return [
    resource('GET /deliveries', 'deliveries:read', {
      title: 'List all deliveries',
      query: z.strictObject({ ...filter, account: id.optional(), of }),
      answer: deliveryPage,
      run: ({ query: { of, account, ...query } }) =>
        deliveries.list({ ...query, account: of === 'gateway' ? '' : account }),
    }),
    resource('GET /deliveries/{delivery}', 'deliveries:read', {
      title: 'Show a delivery',
      answer: deliveryDetail,
      run: ({ params }) => deliveries.find(params.delivery),
    }),
    resource('POST /deliveries/{delivery}/repeat', 'deliveries:write', {
      title: 'Repeat a delivery',
      answer: deliveryView,
      run: ({ params, by }) => deliveries.repeat(params.delivery, by),
    }),
    resource('GET /accounts/{id}/deliveries', 'deliveries:read', {
      title: 'List the deliveries of an account',
      query: z.strictObject({ ...filter, test }),
      answer: deliveryPage,
      run: ({ params, query: { test: isTest, ...query } }) =>
        deliveries.list({ ...query, account: isTest === 'true' ? testAccountOf(params.id) : params.id }),
    }),
    resource('GET /accounts/{id}/deliveries/{delivery}', 'deliveries:read', {
      title: 'Show a delivery of an account',
      answer: deliveryDetail,
      run: ({ params }) => deliveries.find(params.delivery, bothOf(params.id)),
    }),
    resource('POST /accounts/{id}/deliveries/{delivery}/repeat', 'deliveries:write', {
      title: 'Repeat a delivery of an account',
      answer: deliveryView,
      run: ({ params, by }) => deliveries.repeat(params.delivery, by, bothOf(params.id)),
    }),
  ]
}
