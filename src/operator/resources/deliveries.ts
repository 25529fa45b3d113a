import * as z from 'zod'
import type { Deliveries } from '../../jobs/deliveries.ts'
import {
  DELIVERY_KINDS,
  DELIVERY_STATUSES,
  deliveryDetail,
  deliveryPage,
  deliveryView,
} from '../../jobs/delivery-views.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { id, paging, test } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

export interface DeliveryDeps {
  readonly deliveries: Pick<Deliveries, 'list' | 'find' | 'repeat'>
}

const filter = { ...paging, status: z.enum(DELIVERY_STATUSES).optional(), kind: z.enum(DELIVERY_KINDS).optional() }
/** Whoever belongs to an account belongs to its test account. */
const bothOf = (account: string) => [account, testAccountOf(account)]

export function deliveryResources({ deliveries }: DeliveryDeps): Resource[] {
  return [
    resource('GET /deliveries', 'operator', {
      query: z.strictObject({ ...filter, account: id.optional(), of: z.enum(['all', 'gateway']).default('all') }),
      answer: deliveryPage,
      run: ({ query: { of, account, ...query } }) =>
        deliveries.list({ ...query, account: of === 'gateway' ? '' : account }),
    }),
    resource('GET /deliveries/{delivery}', 'operator', {
      answer: deliveryDetail,
      run: ({ params }) => deliveries.find(params.delivery),
    }),
    resource('POST /deliveries/{delivery}/repeat', 'operator', {
      answer: deliveryView,
      run: ({ params, by }) => deliveries.repeat(params.delivery, by),
    }),
    resource('GET /accounts/{id}/deliveries', 'member', {
      query: z.strictObject({ ...filter, test }),
      answer: deliveryPage,
      run: ({ params, query: { test: isTest, ...query } }) =>
        deliveries.list({ ...query, account: isTest === 'true' ? testAccountOf(params.id) : params.id }),
    }),
    resource('GET /accounts/{id}/deliveries/{delivery}', 'member', {
      answer: deliveryDetail,
      run: ({ params }) => deliveries.find(params.delivery, bothOf(params.id)),
    }),
    resource('POST /accounts/{id}/deliveries/{delivery}/repeat', 'member', {
      answer: deliveryView,
      run: ({ params, by }) => deliveries.repeat(params.delivery, by, bothOf(params.id)),
    }),
  ]
}
