// Usage of an account: its calls and their logged content.

import * as z from 'zod'
import { accountUnknown } from '../../admission/accounts.ts'
import { JOB_STATUSES } from '../../catalog/generation-answers.ts'
import type { Database } from '../../database/database.ts'
import { type ListedJobView, listedJob } from '../../jobs/views.ts'
import { Fault } from '../../kernel/fault.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { type Page, type Paging, page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import {
  clientSum,
  ledgerView,
  movement,
  overview,
  routeFigures,
  type UsageDetail,
  usageDetail,
} from '../../ledger/views.ts'
import type { Recorder } from '../../pipeline/hooks.ts'
import { ledgerCsv } from '../../reports/csv.ts'
import { readClients, readMargin, readOverview, readRouteFigures } from '../../reports/figures.ts'
import type { Statements } from '../../reports/statement.ts'
import { may, paging, type Resource, range, resource, test } from '../resource.ts'
import { withoutVendor } from './calls.ts'

const DAYS_MAX = 366
const HOUR_MS = 3_600_000
const HOURS_MAX = 24 * 7

interface JobFilter extends Paging {
  readonly status?: string | undefined
}

export interface UsageDeps {
  readonly database: Database
  readonly statements: Statements
  /** Absent: no content is logged. */
  readonly contents: Pick<Recorder, 'has'> | undefined
  readonly world: World
  /** An address with the placeholder {request_id}. */
  readonly traceUrl?: string | undefined
  /** The account's jobs as the contract shows them, with `product` and `charged`. */
  readonly listJobs: (account: string, filter: JobFilter) => Promise<Page<ListedJobView>>
}

const ledgerQuery = z.strictObject({
  ...paging,
  ...range,
  test,
  kind: movement.optional().describe('Only this kind of movement'),
  zero: test.describe('Rows that moved no credits instead: released holds, calls without a charge'),
})

type Test = z.output<typeof test>

/** The account, or its test account. */
const chosen = (account: string, query: { readonly test?: Test }) =>
  query.test === 'true' ? testAccountOf(account) : account

/** Removes vendors and their error texts, which only operators see. */
function withoutVendors(known: UsageDetail): UsageDetail {
  const detail = withoutVendor(known)
  if (detail.attemptLog === null) return detail
  const attempts = detail.attemptLog.attempts.map(
    ({ vendor: _, vendorError: __, fix: ___, credential: ____, cost: _____, ...attempt }) => attempt,
  )
  return { ...detail, attemptLog: { ...detail.attemptLog, attempts } }
}

/** The filter of a query: the account or its test account, and times in milliseconds. */
const filterOf = <T extends { from?: number | undefined; to?: number | undefined; test?: Test }>(
  account: string,
  { from, to, test: isTest, ...rest }: T,
) => ({ account: chosen(account, { test: isTest }), fromMs: from, toMs: to, ...rest })

/** Rows that moved no credits are listed only with `zero=true`. */
const movementsOf = (account: string, { zero, ...query }: z.output<typeof ledgerQuery>) => ({
  ...filterOf(account, query),
  zero: zero === 'true',
})

export function usageResources(deps: UsageDeps): Resource[] {
  const { database, statements, contents, listJobs, world } = deps
  async function usageOf(requestId: string) {
    const found = await statements.usageOf(requestId)
    if (!found) throw new Fault('not_found', { message: 'There is no usage of a call with this id.' })
    return found
  }

  return [
    resource('GET /accounts/{id}/overview', 'usage:read', {
      title: 'Show the overview of an account',
      query: z.strictObject({ test, days: z.coerce.number().int().min(1).max(DAYS_MAX).default(30) }),
      answer: overview,
      async run({ params, query, actor }) {
        const account = chosen(params.id, query)
        const found = await readOverview(database, account, query.days)
        if (!found) throw accountUnknown()
        return may(actor, 'margins:read')
          ? { ...found, margin: await readMargin(database, account, query.days) }
          : found
      },
    }),
    resource('GET /models/{uid}/routes', 'catalog:read', {
      title: 'Show the routes of a model and their state',
      query: z.strictObject({ hours: z.coerce.number().int().min(1).max(HOURS_MAX).default(24) }),
      answer: page(routeFigures),
      async run({ params, query }) {
        return {
          items: await readRouteFigures(database, params.uid, world.nowMs() - query.hours * HOUR_MS),
          next: null,
        }
      },
    }),
    resource('GET /accounts/{id}/usage-by-client', 'usage:read', {
      title: 'Sum up an account’s usage by program',
      query: z.strictObject({ ...range, test }),
      answer: page(clientSum),
      run: async ({ params, query }) => ({
        items: await readClients(database, filterOf(params.id, query)),
        next: null,
      }),
    }),
    resource('GET /usage/{requestId}', 'usage:read', {
      title: 'Show a call',
      account: async ({ requestId }) => (await usageOf(requestId)).account,
      answer: usageDetail,
      run: async ({ params, actor }) => {
        const { account, detail } = await usageOf(params.requestId)
        const whole = { ...detail, content: (await contents?.has(account, params.requestId)) ?? false }
        if (!may(actor, 'vendors:read')) return withoutVendors(whole)
        const trace = deps.traceUrl?.replaceAll('{request_id}', encodeURIComponent(params.requestId))
        return { ...whole, ...(trace === undefined ? {} : { trace }) }
      },
    }),
    resource('GET /accounts/{id}/ledger', 'statements:read', {
      title: 'List the credit movements of an account',
      query: ledgerQuery,
      answer: page(ledgerView),
      run: ({ params, query }) => statements.ledger(movementsOf(params.id, query)),
      csv: ({ params, query }) => ledgerCsv(statements, movementsOf(params.id, query)),
    }),
    resource('GET /accounts/{id}/jobs', 'jobs:read', {
      title: 'List the jobs of an account',
      query: z.strictObject({ ...paging, test, status: z.enum(JOB_STATUSES).optional() }),
      answer: page(listedJob),
      run: ({ params, query: { test: isTest, ...filter } }) => listJobs(chosen(params.id, { test: isTest }), filter),
    }),
  ]
}
