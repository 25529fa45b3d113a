// Exports of usage: destinations, their customers and credentials, and FOCUS files.
import * as z from 'zod'
import type { Branding } from '../../branding/branding.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import type { Credentials } from '../../credentials/credentials.ts'
import type { Database } from '../../database/database.ts'
import { boundTo, type Exports } from '../../exports/exports.ts'
import { focusCsv } from '../../exports/files.ts'
import type { VendorReports } from '../../exports/reconcile.ts'
import {
  type ComparedLine,
  comparedCall,
  comparedPage,
  customerName,
  exportCustomer,
  exportInput,
  exportPage,
  exportPatch,
  exportTest,
  exportView,
  focusSummary,
  namedCredential,
  REPORT_BYTES_MAX,
  REPORT_SOURCES,
  reportCredentialInput,
  reportInput,
  reportView,
  VERDICTS,
} from '../../exports/views.ts'
import { invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { webhookSecretView } from '../../ledger/views.ts'
import type { Billing } from '../../reports/billing.ts'
import { csvLine } from '../../reports/csv.ts'
import { id, paging, type Resource, range, resource, secret, text } from '../resource.ts'

export interface ExportDeps {
  readonly exports: Exports
  readonly credentials: Credentials
  readonly database: Database
  readonly billing: Billing
  readonly branding: Branding
  readonly catalog: CatalogStore
  readonly webhookSecret: (account: string) => string
}

/** A range of days, or of times; both ends are needed. */
const days = z.strictObject(range)

function wholeRange({ from, to }: z.output<typeof days>): { fromMs: number; toMs: number } {
  if (from === undefined) throw invalid('from: is missing.', 'from')
  if (to === undefined) throw invalid('to: is missing.', 'to')
  return { fromMs: from, toMs: to }
}

export function exportResources(deps: ExportDeps): Resource[] {
  const { exports, credentials, webhookSecret } = deps
  return [
    resource('GET /exports', 'exports:read', {
      answer: exportPage,
      run: async () => ({ items: await exports.list(), next: null }),
    }),
    resource('POST /exports', 'exports:write', {
      body: exportInput,
      answer: exportView,
      run: ({ body, by }) => exports.create(body, by),
    }),
    // The secret with which receivers verify webhooks of the gateway itself, such as alerts.
    resource('GET /webhook-secret', 'exports:write', {
      answer: webhookSecretView,
      run: () => ({ secret: webhookSecret('') }),
    }),
    resource('GET /exports/{id}', 'exports:read', { answer: exportView, run: ({ params }) => exports.read(params.id) }),
    resource('PATCH /exports/{id}', 'exports:write', {
      body: exportPatch,
      answer: exportView,
      run: ({ params, body, by }) => exports.change(params.id, body, by),
    }),
    resource('DELETE /exports/{id}', 'exports:write', {
      answer: exportView,
      run: ({ params, by }) => exports.remove(params.id, by),
    }),
    resource('POST /exports/{id}/test', 'exports:write', {
      answer: exportTest,
      run: ({ params }) => exports.test(params.id),
    }),
    resource('POST /exports/{id}/pause', 'exports:write', {
      answer: exportView,
      run: ({ params, by }) => exports.pause(params.id, by),
    }),
    resource('POST /exports/{id}/resume', 'exports:write', {
      answer: exportView,
      run: ({ params, by }) => exports.resume(params.id, by),
    }),
    resource('POST /exports/{id}/backfill', 'exports:write', {
      body: days,
      answer: exportView,
      run: ({ params, body, by }) => exports.backfill(params.id, wholeRange(body), by),
    }),
    resource('GET /exports/{id}/customers', 'exports:read', {
      query: z.strictObject(paging),
      answer: page(exportCustomer),
      run: ({ params, query }) => exports.customers(params.id, query),
    }),
    resource('PUT /exports/{id}/customers', 'exports:write', {
      body: z.strictObject({ account: id, customer: customerName.nullable() }),
      answer: page(exportCustomer),
      run: async ({ params, body, by }) => ({
        items: await exports.nameCustomer(params.id, body.account, body.customer, by),
        next: null,
      }),
    }),
    resource('PUT /exports/{id}/credential', 'exports:write', {
      body: z.strictObject({ value: secret }),
      answer: namedCredential,
      async run({ params, body, by }) {
        const { settings } = await exports.read(params.id)
        const { credential: name, url } = settings
        if (typeof name !== 'string') throw invalid('This export needs no credential.')
        await credentials.store(boundTo(name, String(url)), body.value, by)
        return { name, present: true }
      },
    }),
    resource('GET /focus', 'exports:read', {
      query: days,
      answer: focusSummary,
      async run({ query }) {
        const { fromMs, toMs } = wholeRange(query)
        const { worth } = await deps.billing.get()
        const at = (ms: number) => new Date(ms).toISOString()
        return { from: at(fromMs), to: at(toMs), currency: worth?.currency ?? null }
      },
      csv: ({ query }) => focusCsv(deps, wholeRange(query)),
    }),
  ]
}

// Vendors' reports, compared with what was recorded.

export interface VendorReportDeps {
  readonly vendorReports: VendorReports
  readonly credentials: Credentials
}

const compareQuery = z.strictObject({
  verdict: z.enum(VERDICTS).optional(),
  /** How far figures may differ and still match. */
  tolerance: z.coerce.number().min(0).max(100).default(1),
  limit: paging.limit,
  cursor: z
    .string()
    .regex(/^\d{1,9}$/, 'is not a cursor that a page gave as next')
    .optional(),
})

async function* comparedCsv(read: () => Promise<readonly ComparedLine[]>): AsyncGenerator<string> {
  yield csvLine([
    'day',
    'model',
    'credential',
    'verdict',
    'differing',
    'their_calls',
    'our_calls',
    'their_input_tokens',
    'our_input_tokens',
    'their_output_tokens',
    'our_output_tokens',
    'their_cost',
    'our_cost',
    'difference',
  ])
  for (const { day, model, credential, verdict, differing, theirs, ours, difference } of await read())
    yield csvLine([
      ...[day, model, credential, verdict, differing.join(' ')],
      ...[theirs?.calls ?? null, ours?.calls ?? null, theirs?.inputTokens ?? null, ours?.inputTokens ?? null],
      ...[
        theirs?.outputTokens ?? null,
        ours?.outputTokens ?? null,
        theirs?.cost ?? null,
        ours?.cost ?? null,
        difference,
      ],
    ])
}

export function vendorReportResources({ vendorReports, credentials }: VendorReportDeps): Resource[] {
  return [
    resource('GET /vendor-reports', 'vendor-reports:read', {
      answer: page(reportView),
      run: async () => ({ items: await vendorReports.list(), next: null }),
    }),
    resource('POST /vendor-reports', 'vendor-reports:write', {
      body: reportInput,
      bodyBytesMax: REPORT_BYTES_MAX,
      answer: reportView,
      run: ({ body, by }) => vendorReports.create(body, by),
    }),
    resource('PUT /vendor-reports/credential', 'vendor-reports:write', {
      body: reportCredentialInput,
      answer: namedCredential,
      async run({
        body: { source, name = REPORT_SOURCES[source].credential, url = REPORT_SOURCES[source].url, value },
        by,
      }) {
        await credentials.store(boundTo(name, url), value, by)
        return { name, present: true }
      },
    }),
    resource('GET /vendor-reports/{id}', 'vendor-reports:read', {
      answer: reportView,
      run: ({ params }) => vendorReports.read(params.id),
    }),
    resource('DELETE /vendor-reports/{id}', 'vendor-reports:write', {
      answer: reportView,
      run: ({ params, by }) => vendorReports.remove(params.id, by),
    }),
    resource('GET /vendor-reports/{id}/lines', 'vendor-reports:read', {
      query: compareQuery,
      answer: comparedPage,
      async run({ params, query }) {
        const all = await vendorReports.compare(params.id, { tolerancePercent: query.tolerance })
        const counts = { matched: 0, differs: 0, only_theirs: 0, only_ours: 0 }
        for (const { verdict } of all) counts[verdict] += 1
        const some = query.verdict === undefined ? all : all.filter(({ verdict }) => verdict === query.verdict)
        const start = Number(query.cursor ?? 0)
        const end = start + query.limit
        return { items: some.slice(start, end), next: some.length > end ? String(end) : null, counts }
      },
      csv: ({ params, query }) =>
        comparedCsv(() =>
          vendorReports.compare(params.id, { verdict: query.verdict, tolerancePercent: query.tolerance }),
        ),
    }),
    resource('GET /vendor-reports/{id}/calls', 'vendor-reports:read', {
      query: z.strictObject({ day: text(10), model: text(200), credential: text(200).optional(), ...paging }),
      answer: page(comparedCall),
      run: ({ params, query: { day, model, credential, ...rest } }) =>
        vendorReports.calls(params.id, { day, model, credential }, rest),
    }),
  ]
}
