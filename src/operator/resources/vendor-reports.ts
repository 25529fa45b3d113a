// Vendors' reports, compared with what was recorded.
import * as z from 'zod'
import type { Credentials } from '../../credentials/credentials.ts'
import { boundTo } from '../../exports/exports.ts'
import type { VendorReports } from '../../exports/reconcile.ts'
import {
  type ComparedLine,
  comparedCall,
  comparedPage,
  namedCredential,
  REPORT_BYTES_MAX,
  REPORT_SOURCES,
  reportCredentialInput,
  reportInput,
  reportView,
  VERDICTS,
} from '../../exports/views.ts'
import { page } from '../../kernel/view.ts'
import { csvLine } from '../../reports/csv.ts'
import { paging, type Resource, resource, text } from '../resource.ts'

export interface VendorReportDeps {
  readonly vendorReports: VendorReports
  readonly credentials: Credentials
}

const compareQuery = z.strictObject({
  verdict: z.enum(VERDICTS).optional(),
  /** How far figures may be apart and still match. */
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
