// Changes single fields of a model or data endpoint.
import * as z from 'zod'
import type { CatalogStore } from '../../catalog/store.ts'
import { appliedView } from '../../catalog/views.ts'
import { type Resource, resource, text } from '../resource.ts'

export function changeModel(catalog: Pick<CatalogStore, 'change'>): Resource {
  return resource('PATCH /models/{uid}', 'catalog:write', {
    title: 'Change a model',
    body: z
      .strictObject({
        enabled: z.boolean().optional(),
        pricing: z.record(z.string(), z.unknown()).optional(),
        batchFactor: z.union([z.string(), z.number()]).optional(),
        routes: z.array(z.record(z.string(), z.unknown())).max(100).optional(),
        routing: z.record(z.string(), z.unknown()).optional(),
        note: text(200, 0).optional(),
      })
      .refine(
        ({ note: _, ...fields }) => Object.values(fields).some((value) => value !== undefined),
        'give "enabled", "pricing", "batchFactor", "routes" or "routing"',
      ),
    answer: appliedView.extend({ uid: z.string() }),
    run: async ({ params: { uid }, body: { note, ...fields }, by }) => ({
      uid,
      ...(await catalog.change(uid, withoutUndefined(fields), by, note)),
    }),
  })
}

function withoutUndefined(body: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}
