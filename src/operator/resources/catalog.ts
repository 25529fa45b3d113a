import * as z from 'zod'
import { lossNotes } from '../../catalog/margin.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { appliedView, checkView, currentView, versionView } from '../../catalog/views.ts'
import { page } from '../../kernel/view.ts'
import { text } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024

const json = z
  .unknown()
  .refine((value) => typeof value === 'object' && value !== null, 'must be a catalog document')
  .describe('A whole catalog, as GET /catalog answers it.')

export function catalogResources({ catalog }: { readonly catalog: CatalogStore }): Resource[] {
  return [
    resource('GET /catalog', 'operator', {
      answer: currentView,
      async run() {
        const { version, input, document } = catalog.current
        const info = (await catalog.versions()).find((entry) => entry.version === version)
        // The version in force is among the newest.
        return { ...info!, document: input, notes: lossNotes(document) }
      },
    }),
    resource('PUT /catalog', 'operator', {
      query: z.strictObject({ dryRun: z.enum(['0', '1', 'true', 'false']).optional() }),
      body: z.strictObject({ document: json, note: text(200, 0).default('') }),
      bodyBytesMax: DOCUMENT_BYTES_MAX,
      answer: z.union([appliedView, checkView]),
      async run({ query, body, by }) {
        if (query.dryRun === '1' || query.dryRun === 'true') return catalog.check(body.document)
        return catalog.apply(body.document, by, body.note)
      },
    }),
    resource('PATCH /catalog', 'operator', {
      body: z.strictObject({
        allClientFormats: z.boolean().describe('Whether every text model is offered in every client format.'),
      }),
      answer: appliedView,
      run: ({ body, by }) =>
        catalog.amend(
          (current) => ({ ...current, ...body }),
          by,
          body.allClientFormats ? 'every client format' : 'client formats as each model lists them',
        ),
    }),
    resource('GET /catalog/versions', 'operator', {
      query: z.strictObject({ limit: z.string().optional(), cursor: z.string().optional() }),
      answer: page(versionView),
      run: async () => ({ items: await catalog.versions(), next: null }),
    }),
    resource('POST /catalog/rollback', 'operator', {
      body: z.strictObject({ version: z.number().int().min(1).max(2_147_483_647) }),
      answer: appliedView,
      run: ({ body, by }) => catalog.rollback(body.version, by),
    }),
    resource('PATCH /models/{uid}', 'operator', {
      body: z
        .strictObject({
          enabled: z.boolean().optional(),
          pricing: z.record(z.string(), z.unknown()).optional(),
          batchFactor: z.union([z.string(), z.number()]).optional(),
          routes: z.array(z.record(z.string(), z.unknown())).max(100).optional(),
          routing: z.record(z.string(), z.unknown()).optional(),
        })
        .refine(
          (body) => Object.values(body).some((value) => value !== undefined),
          'give "enabled", "pricing", "batchFactor", "routes" or "routing"',
        ),
      answer: appliedView.extend({ uid: z.string() }),
      run: async ({ params: { uid }, body, by }) => ({
        uid,
        ...(await catalog.change(uid, withoutUndefined(body), by)),
      }),
    }),
  ]
}

function withoutUndefined(body: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}
