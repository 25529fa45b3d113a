import * as z from 'zod'
import { accountUnknown } from '../../admission/accounts.ts'
import { belowCostNotes } from '../../catalog/margin.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import type { Database } from '../../database/database.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { page } from '../../kernel/view.ts'
import { readFills, readKeyFigures, readLowBalances, search } from '../../reports/figures.ts'
import { readMargin } from '../../reports/margins.ts'
import type { Statements } from '../../reports/statement.ts'
import { fillView, found, homeFigures, keyFigures } from '../../reports/views.ts'
import type { VendorHealth } from '../../routing/vendor.ts'
import type { Reports } from '../../telemetry/reports.ts'
import { accountsOf, may, type Resource, resource, test, text } from '../resource.ts'

export interface FiguresDeps {
  readonly database: Database
  readonly catalog: CatalogStore
  readonly statements: Statements
  readonly reports: Reports
}

const DAYS = 30
const DAYS_MAX = 366
const MODELS_FOUND = 8
const NOTES_MAX = 20

const days = z.strictObject({ days: z.coerce.number().int().min(1).max(DAYS_MAX).default(DAYS) })

export function figureResources({ database, catalog, statements, reports }: FiguresDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/limits', 'accounts:read', {
      title: 'Show the limits of an account and what is used',
      answer: page(fillView),
      async run({ params }) {
        if (!(await statements.account(params.id))) throw accountUnknown()
        return { items: (await readFills(database, params.id)).get('account') ?? [], next: null }
      },
    }),
    resource('GET /accounts/{id}/keys/figures', 'usage:read', {
      title: 'Show what each key of an account used',
      query: days.extend({ test }),
      answer: page(keyFigures),
      run: async ({ params, query }) => ({
        items: await readKeyFigures(database, query.test === 'true' ? testAccountOf(params.id) : params.id, query.days),
        next: null,
      }),
    }),
    resource('GET /home', 'home:read', {
      title: 'Show the operator’s overview',
      query: days,
      answer: homeFigures,
      async run({ query }) {
        const [{ vendors }, lowBalances, margin] = await Promise.all([
          reports.read(),
          readLowBalances(database),
          readMargin(database, query),
        ])
        const unhealthy = vendors.filter(({ breaker, errors }) => breaker !== 'closed' || errors > 0)
        return {
          lowBalances,
          ...margin,
          belowCostNotes: belowCostNotes(catalog.current.document).slice(0, NOTES_MAX),
          unhealthyVendors: unhealthy
            .map(({ name, breaker, requests, errors, lastError }) => ({ name, breaker, requests, errors, lastError }))
            .sort((a, b) => severity(b) - severity(a)),
        }
      },
    }),
    resource('GET /search', 'accounts:read', {
      title: 'Find accounts, keys, calls and pages',
      own: true,
      query: z.strictObject({ q: text(100, 0).default('') }),
      answer: page(found),
      async run({ query: { q }, actor }) {
        if (q === '') return { items: [], next: null }
        const sought = q.toLowerCase()
        const { models, endpoints } = catalog.current.document
        const offered = [
          ...Object.entries(models).map(([uid, { name, enabled }]) => ({ uid, name, enabled })),
          ...Object.entries(endpoints).map(([uid, { enabled }]) => ({ uid, name: uid, enabled })),
        ]
          // Only operators find disabled products.
          .filter(({ enabled }) => enabled || may(actor, 'catalog:read'))
          .filter(({ uid, name }) => uid.includes(sought) || name.toLowerCase().includes(sought))
          .slice(0, MODELS_FOUND)
          .map(({ uid, name }) => ({ kind: 'model' as const, id: uid, label: name, account: null }))
        const connected = may(actor, 'vendors:read') ? Object.keys(catalog.current.document.vendors) : []
        const vendors = connected
          .filter((name) => name.toLowerCase().includes(sought))
          .map((name) => ({ kind: 'vendor' as const, id: name, label: name, account: null }))
        const rows = await search(database, q, {
          calls: accountsOf(actor, 'usage:read'),
          jobs: accountsOf(actor, 'jobs:read'),
          keys: accountsOf(actor, 'keys:read'),
          accounts: accountsOf(actor, 'accounts:read'),
          members: accountsOf(actor, 'members:read'),
        })
        return { items: [...rows, ...vendors, ...offered], next: null }
      },
    }),
  ]
}

/** Vendors with an open breaker come first, then those with the most errors. */
function severity({ breaker, requests, errors }: Pick<VendorHealth, 'breaker' | 'requests' | 'errors'>): number {
  return (breaker === 'closed' ? 0 : breaker === 'open' ? 2 : 1) + errors / Math.max(1, requests)
}
