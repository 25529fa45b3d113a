// Exports of usage: destinations, their customers and credentials, and FOCUS files.
import * as z from 'zod'
import type { CoreParts } from '../../extension.ts'
import { invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { id, paging, type Resource, range, resource, secret, text } from '../../operator/resource.ts'
import { csvLine } from '../../reports/csv.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { boundTo, type Exports } from './exports.ts'
import { focusCsv } from './files.ts'
import { joinLines, type VendorReports } from './reconcile.ts'
import * as views from './views.ts'

export interface ExportDeps extends Pick<CoreParts, 'credentials' | 'database' | 'billing' | 'branding' | 'catalog'> {
  readonly exports: Exports
}

/** A range of days, or of times; both ends are needed. */
const days = z.strictObject(range)

function wholeRange({ from, to }: z.output<typeof days>): { fromMs: number; toMs: number } {
  if (from === undefined) throw invalid('from: is missing.', 'from')
  if (to === undefined) throw invalid('to: is missing.', 'to')
  return { fromMs: from, toMs: to }
}

/** What its receiver knows: customers, and the credential. */
function receiverResources({ exports, credentials }: ExportDeps): Resource[] {
  return [
    resource('GET /exports/{id}/customers', 'exports:read', {
      title: 'List the receiver’s customers of an export',
      query: z.strictObject(paging),
      answer: page(views.exportCustomer),
      run: ({ params, query }) => exports.customers(params.id, query),
    }),
    resource('PUT /exports/{id}/customers', 'exports:write', {
      title: 'Set the receiver’s customers of an export',
      body: z.strictObject({ account: id, customer: views.customerName.nullable() }),
      answer: page(views.exportCustomer),
      run: async ({ params, body, by }) => ({
        items: await exports.nameCustomer(params.id, body.account, body.customer, by),
        next: null,
      }),
    }),
    resource('PUT /exports/{id}/credential', 'exports:write', {
      title: 'Store the credential of an export',
      body: z.strictObject({
        value: secret.meta({ description: 'The credential', read: 'sealed', option: 'credential-env' }),
      }),
      answer: views.namedCredential,
      async run({ params, body, by }) {
        const { settings } = await exports.read(params.id)
        const { credential: name, url } = settings
        if (typeof name !== 'string') throw invalid('This export needs no credential.')
        await credentials.store(boundTo(name, String(url)), body.value, by)
        return { name, present: true }
      },
    }),
  ]
}

export function exportResources(deps: ExportDeps): Resource[] {
  const { exports } = deps
  return [
    resource('GET /exports', 'exports:read', {
      title: 'List exports',
      answer: views.exportPage,
      run: async () => ({ items: await exports.list(), next: null }),
    }),
    resource('POST /exports', 'exports:write', {
      title: 'Create an export',
      body: views.exportInput,
      answer: views.exportView,
      run: ({ body, by }) => exports.create(body, by),
    }),
    resource('GET /exports/{id}', 'exports:read', {
      title: 'Show an export',
      answer: views.exportView,
      run: ({ params }) => exports.read(params.id),
    }),
    resource('PATCH /exports/{id}', 'exports:write', {
      title: 'Change an export',
      body: views.exportPatch,
      answer: views.exportView,
      run: ({ params, body, by }) => exports.change(params.id, body, by),
    }),
    resource('DELETE /exports/{id}', 'exports:write', {
      title: 'Remove an export',
      answer: views.exportView,
      run: ({ params, by }) => exports.remove(params.id, by),
    }),
    resource('POST /exports/{id}/test', 'exports:write', {
      title: 'Send a test event of an export',
      answer: views.exportTest,
      run: ({ params }) => exports.test(params.id),
    }),
    resource('POST /exports/{id}/pause', 'exports:write', {
      title: 'Pause an export',
      answer: views.exportView,
      run: ({ params, by }) => exports.pause(params.id, by),
    }),
    resource('POST /exports/{id}/resume', 'exports:write', {
      title: 'Resume an export',
      answer: views.exportView,
      run: ({ params, by }) => exports.resume(params.id, by),
    }),
    resource('POST /exports/{id}/backfill', 'exports:write', {
      title: 'Send past days of an export again',
      body: days,
      answer: views.exportView,
      run: ({ params, body, by }) => exports.backfill(params.id, wholeRange(body), by),
    }),
    ...receiverResources(deps),
    resource('GET /focus', 'exports:read', {
      title: 'Download a FOCUS file',
      query: days,
      answer: views.focusSummary,
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

interface VendorReportDeps {
  readonly vendorReports: VendorReports
  readonly credentials: Credentials
}

const compareQuery = z.strictObject({
  verdict: z
    .enum(views.VERDICTS)
    .optional()
    .describe(`One of ${views.VERDICTS.join(', ')}`),
  tolerance: z.coerce
    .number()
    .min(0)
    .max(100)
    .default(1)
    .meta({ description: 'How far figures may be apart and still match; 1 by default', value: 'percent' }),
  limit: paging.limit,
  cursor: z
    .string()
    .regex(/^\d{1,9}$/, 'is not a cursor that a page gave as next')
    .optional(),
})

async function* comparedCsv(read: () => Promise<readonly views.ComparedLine[]>): AsyncGenerator<string> {
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
      day,
      model,
      credential,
      verdict,
      differing.join(' '),
      theirs?.calls ?? null,
      ours?.calls ?? null,
      theirs?.inputTokens ?? null,
      ours?.inputTokens ?? null,
      theirs?.outputTokens ?? null,
      ours?.outputTokens ?? null,
      theirs?.cost ?? null,
      ours?.cost ?? null,
      difference,
    ])
}

type CompareQuery = z.output<typeof compareQuery>

function comparedPageOf(all: readonly views.ComparedLine[], query: CompareQuery): views.ComparedPage {
  const counts = { matched: 0, differs: 0, only_theirs: 0, only_ours: 0 }
  for (const { verdict } of all) counts[verdict] += 1
  const some = query.verdict === undefined ? all : all.filter(({ verdict }) => verdict === query.verdict)
  const start = Number(query.cursor ?? 0)
  const end = start + query.limit
  return { items: some.slice(start, end), next: some.length > end ? String(end) : null, counts }
}

export function vendorReportResources({ vendorReports, credentials }: VendorReportDeps): Resource[] {
  return [
    resource('GET /vendor-reports', 'vendor-reports:read', {
      title: 'List vendor reports',
      answer: page(views.reportView),
      run: async () => ({ items: await vendorReports.list(), next: null }),
    }),
    resource('POST /vendor-reports', 'vendor-reports:write', {
      title: 'Fetch or upload a vendor report',
      body: views.reportInput,
      bodyBytesMax: views.REPORT_BYTES_MAX,
      answer: views.reportView,
      run: ({ body, by }) => vendorReports.create(body, by),
    }),
    resource('PUT /vendor-reports/credential', 'vendor-reports:write', {
      title: 'Store the credential for vendor reports',
      body: views.reportCredentialInput,
      answer: views.namedCredential,
      async run({
        body: { source, name = views.REPORT_SOURCES[source].credential, url = views.REPORT_SOURCES[source].url, value },
        by,
      }) {
        await credentials.store(boundTo(name, url), value, by)
        return { name, present: true }
      },
    }),
    resource('GET /vendor-reports/{id}', 'vendor-reports:read', {
      title: 'Show a vendor report',
      answer: views.reportView,
      run: ({ params }) => vendorReports.read(params.id),
    }),
    resource('DELETE /vendor-reports/{id}', 'vendor-reports:write', {
      title: 'Remove a vendor report',
      answer: views.reportView,
      run: ({ params, by }) => vendorReports.remove(params.id, by),
    }),
    resource('GET /vendor-reports/{id}/lines', 'vendor-reports:read', {
      title: 'List the lines of a vendor report',
      query: compareQuery,
      answer: views.comparedPage,
      run: async ({ params, query }) =>
        comparedPageOf(await vendorReports.compare(params.id, { tolerancePercent: query.tolerance }), query),
      across: {
        ask: ({ tolerance }: CompareQuery) => ({ tolerance, limit: Infinity }),
        merge: (parts: readonly views.ComparedPage[], { query }: { readonly query: CompareQuery }) =>
          comparedPageOf(
            joinLines(
              parts.flatMap(({ items }) => items),
              query.tolerance,
            ),
            query,
          ),
        csv: (
          read: (query: CompareQuery) => Promise<views.ComparedPage>,
          { query }: { readonly query: CompareQuery },
        ) => comparedCsv(async () => (await read({ ...query, cursor: undefined, limit: Infinity })).items),
      },
      csv: ({ params, query }) =>
        comparedCsv(() =>
          vendorReports.compare(params.id, { verdict: query.verdict, tolerancePercent: query.tolerance }),
        ),
    }),
    resource('GET /vendor-reports/{id}/calls', 'vendor-reports:read', {
      title: 'List the calls behind a line of a vendor report',
      query: z.strictObject({ day: text(10), model: text(200), credential: text(200).optional(), ...paging }),
      answer: page(views.comparedCall),
      run: ({ params, query: { day, model, credential, ...rest } }) =>
        vendorReports.calls(params.id, { day, model, credential }, rest),
    }),
  ]
}
