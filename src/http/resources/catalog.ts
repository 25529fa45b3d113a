import * as z from 'zod'
import type { Audit, By } from '../../admission/audit.ts'
import { checkDocument } from '../../catalog/document.ts'
import { type CatalogStore, listChanges } from '../../catalog/store.ts'
import type { Changes } from '../../database/changes.ts'
import { type Database, statement } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import { text } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'

export interface CatalogDeps {
  readonly database: Database
  readonly changes: Changes
  readonly catalog: CatalogStore
  readonly audit: Audit
}

interface Applied {
  readonly version: number
  readonly changes: string[]
}

const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024
const LOCK = statement('catalog_lock', 'select pg_advisory_xact_lock(7046029259)')

const json = z.unknown().refine((value) => typeof value === 'object' && value !== null, 'must be a catalogue document')

export function catalogResources({ database, changes, catalog, audit }: CatalogDeps): Resource[] {
  let turn: Promise<unknown> = Promise.resolve()

  /** One change at a time, in any process, and each begins from the version that the one before made. */
  function changing(by: By, action: string, run: () => Promise<Applied>): Promise<Applied> {
    const change = () =>
      database.transaction(async (tx) => {
        await tx.query(LOCK)
        await changes.notice('catalog')
        const applied = await run()
        const detail = { changes: applied.changes.slice(0, 50) }
        await audit.write(tx, by, { action, object: `catalog/${applied.version}`, detail })
        return applied
      })
    // Changes of this process wait here and not at the database: whoever has the lock needs a second connection.
    const mine = turn.then(change, change)
    turn = mine
    return mine
  }

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
        if (query.dryRun === '1' || query.dryRun === 'true') {
          const checked = checkDocument(body.document)
          return {
            problems: checked.ok ? [] : checked.problems,
            changes: listChanges(catalog.current.input, body.document),
          }
        }
        return changing(by, 'catalog.apply', () => catalog.apply(body.document, { actor: by.actor, note: body.note }))
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
      run: ({ body, by }) => changing(by, 'catalog.rollback', () => catalog.rollback(body.version, by.actor)),
    }),
    resource({
      method: 'PATCH',
      path: '/models/{uid}',
      access: 'operator',
      params: z.strictObject({ uid: text(100) }),
      body: z
        .strictObject({ enabled: z.boolean().optional(), pricing: z.record(z.string(), z.unknown()).optional() })
        .refine((body) => body.enabled !== undefined || body.pricing !== undefined, 'give "enabled" or "pricing"'),
      async run({ params, body, by }) {
        const { uid } = params
        const applied = await changing(by, 'catalog.model', () => {
          // The document is checked as a whole when it is applied, so what was sent may go in as it is.
          const document = structuredClone(catalog.current.input) as unknown as Record<string, Record<string, object>>
          const shelf = ['models', 'endpoints'].find((name) => Object.hasOwn(document[name] ?? {}, uid))
          if (!shelf) throw new Fault('not_found', { message: `The catalogue has no model or endpoint "${uid}".` })
          document[shelf]![uid] = { ...document[shelf]![uid], ...withoutUndefined(body) }
          return catalog.apply(document, {
            actor: by.actor,
            note: `${uid}: ${Object.keys(withoutUndefined(body)).join(', ')}`,
          })
        })
        return { uid, ...applied }
      },
    }),
  ]
}

function withoutUndefined(body: object): object {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}
