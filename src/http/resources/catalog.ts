import * as z from 'zod'
import type { CatalogStore } from '../../catalog/store.ts'
import { text } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024

const json = z.unknown().refine((value) => typeof value === 'object' && value !== null, 'must be a catalogue document')

export function catalogResources({ catalog }: { readonly catalog: CatalogStore }): Resource[] {
  return [
    resource({
      method: 'GET',
      path: '/catalog',
      access: 'operator',
      async run() {
        const { version, input } = catalog.current
        const info = (await catalog.versions()).find((entry) => entry.version === version)
        return {
          version,
          appliedAt: info?.at.toISOString() ?? null,
          actor: info?.actor ?? null,
          note: info?.note ?? null,
          document: input,
        }
      },
    }),
    resource({
      method: 'PUT',
      path: '/catalog',
      access: 'operator',
      query: z.strictObject({ dryRun: z.enum(['0', '1', 'true', 'false']).optional() }),
      body: z.strictObject({ document: json, note: text(200, 0).default('') }),
      bodyBytesMax: DOCUMENT_BYTES_MAX,
      async run({ query, body, by }) {
        if (query.dryRun === '1' || query.dryRun === 'true') return catalog.check(body.document)
        return catalog.apply(body.document, by, body.note)
      },
    }),
    resource({
      method: 'GET',
      path: '/catalog/versions',
      access: 'operator',
      query: z.strictObject({ limit: z.string().optional(), cursor: z.string().optional() }),
      async run() {
        const versions = await catalog.versions()
        const items = versions.map(({ version, at, actor, note }) => ({
          version,
          appliedAt: at.toISOString(),
          actor,
          note,
        }))
        return { items, next: null }
      },
    }),
    resource({
      method: 'POST',
      path: '/catalog/rollback',
      access: 'operator',
      body: z.strictObject({ version: z.number().int().min(1).max(2_147_483_647) }),
      run: ({ body, by }) => catalog.rollback(body.version, by),
    }),
    resource({
      method: 'PATCH',
      path: '/models/{uid}',
      access: 'operator',
      params: z.strictObject({ uid: text(100) }),
      body: z
        .strictObject({ enabled: z.boolean().optional(), pricing: z.record(z.string(), z.unknown()).optional() })
        .refine((body) => body.enabled !== undefined || body.pricing !== undefined, 'give "enabled" or "pricing"'),
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
