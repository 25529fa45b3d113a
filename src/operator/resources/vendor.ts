// One vendor: changed, renamed or taken out of the catalog, and why calls failed there.

import * as z from 'zod'
import { type CatalogInput, catalogName, credentialsOf } from '../../catalog/document.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { namedBy, originOf } from '../../catalog/vendor-credentials.ts'
import { withoutVendor, withVendorChanged } from '../../catalog/vendor-edit.ts'
import { appliedView, vendorCheckView } from '../../catalog/views.ts'
import type { Credentials } from '../../credentials/credentials.ts'
import type { By } from '../../database/audit.ts'
import { type Database, type Queryable, statement } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import { TEXT_PROTOCOLS } from '../../meter/kind.ts'
import { readVendorErrors } from '../../reports/vendor-errors.ts'
import { vendorError } from '../../reports/views.ts'
import { dryRun, isDryRun, type Resource, resource, secret, text } from '../resource.ts'
import { checkedAddress, mayGoTo } from './connect.ts'

interface VendorEditDeps {
  readonly catalog: CatalogStore
  readonly credentials: Credentials
  readonly database: Database
  readonly world: World
  /** Jobs that only this credential can look after. */
  readonly openJobs: (vendor: string, credential: string) => Promise<number>
}

const HOUR_MS = 3_600_000

const change = z.strictObject({
  name: catalogName.optional().describe('A new name. Routes, figures and stored responses follow.'),
  format: z.enum(TEXT_PROTOCOLS).optional().describe('The format in which all of its text models are called.'),
  entry: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Members of its entry in the catalog, such as `baseUrl` or `timeouts`, merged with those that are there; null takes one out.',
    ),
  credential: z
    .strictObject({ value: secret })
    .optional()
    .describe('Its key again: needed where `baseUrl` leads to another host.'),
  note: text(200, 0).default(''),
})
type Change = z.output<typeof change>

export function vendorEditResources(deps: VendorEditDeps): Resource[] {
  const { catalog, database, world } = deps
  return [
    resource('PATCH /vendors/{name}', 'operator', {
      query: z.strictObject({ dryRun }),
      body: change,
      answer: z.union([appliedView, vendorCheckView]),
      async run({ params: { name }, query, body, by }) {
        if (isDryRun(query)) {
          const document = withVendorChanged(catalog.current.input, name, body)
          return { ...catalog.check(document), losing: [], document }
        }
        return changeVendor(name, body, by, deps)
      },
    }),
    resource('DELETE /vendors/{name}', 'operator', {
      query: z.strictObject({ dryRun, force: z.enum(['true', 'false']).optional(), note: text(200, 0).default('') }),
      answer: z.union([appliedView, vendorCheckView]),
      async run({ params: { name }, query, by }) {
        if (isDryRun(query)) {
          const { document, losing } = withoutVendor(catalog.current.input, name)
          return { ...catalog.check(document), losing: [...losing], document }
        }
        return removeVendor(name, { force: query.force === 'true', note: query.note }, by, deps)
      },
    }),
    resource('GET /vendors/{name}/errors', 'operator', {
      query: z.strictObject({ hours: z.coerce.number().int().min(1).max(168).default(24) }),
      answer: page(vendorError),
      run: async ({ params: { name }, query }) => ({
        items: await readVendorErrors(database, name, world.nowMs() - query.hours * HOUR_MS),
        next: null,
      }),
    }),
  ]
}

async function changeVendor(name: string, body: Change, by: By, { catalog, credentials }: VendorEditDeps) {
  const applied = await catalog.amend(
    async (current, tx) => {
      const document = withVendorChanged(current, name, body)
      const next = body.name ?? name
      await moveTo(document, { name, next }, body, { tx, current, by, credentials })
      if (next !== name) await rename(tx, name, next)
      return document
    },
    by,
    body.note || (body.name && body.name !== name ? `${name}: renamed ${body.name}` : `${name}: changed`),
  )
  await credentials.noticed()
  return applied
}

interface Moving {
  readonly tx: Queryable
  readonly current: CatalogInput
  readonly by: By
  readonly credentials: Credentials
}

/** Where it leads to another host, its credential goes along only if whoever moves it has it. */
async function moveTo(
  { vendors }: CatalogInput,
  { name, next }: { name: string; next: string },
  { entry, credential }: Change,
  { tx, current, by, credentials }: Moving,
): Promise<void> {
  const [before, after] = [current.vendors[name], vendors[next]]
  if (entry?.baseUrl === undefined || !before || !after || originOf(before.baseUrl) === originOf(after.baseUrl)) return
  checkedAddress(String(after.baseUrl))
  const names = namedBy(after)
  for (const { name: one } of names) {
    const value = names.length === 1 ? credential?.value : undefined
    await mayGoTo(one, { value, address: after.baseUrl }, { current, credentials })
    if (value !== undefined && credentials.source(one) !== 'env') await credentials.storeWith(tx, one, value, by)
  }
}

/** What is known of it under its name. */
async function rename(tx: Queryable, from: string, to: string): Promise<void> {
  const [own] = await tx.query<{ count: number }>(BYOK_KEYS, [from])
  if (own && own.count > 0)
    throw new Fault('conflict', {
      message: `${own.count} accounts have stored a key of their own for "${from}", which is sealed under that name: it keeps its name while they do.`,
    })
  for (const statement of RENAME) await tx.query(statement, [from, to])
}

const BYOK_KEYS = statement('vendor_byok_keys', 'select count(*)::int as count from byok_key where vendor = $1')
const RENAME = [
  statement('vendor_rename_hours', 'update vendor_hour set vendor = $2 where vendor = $1'),
  statement('vendor_rename_objects', 'update vendor_object set vendor = $2 where vendor = $1'),
  statement(
    'vendor_rename_test',
    `update setting set name = 'vendor test ' || $2 where name = 'vendor test ' || $1
     and not exists (select 1 from setting where name = 'vendor test ' || $2)`,
  ),
]

async function removeVendor(
  name: string,
  { force, note }: { force: boolean; note: string },
  by: By,
  { catalog, credentials, openJobs }: VendorEditDeps,
) {
  const vendor = catalog.current.document.vendors[name]
  const applied = await catalog.amend(
    (current) => {
      const { document, losing } = withoutVendor(current, name)
      if (losing.length > 0 && !force)
        throw new Fault('conflict', {
          message: `No other vendor serves ${losing.slice(0, 50).join(', ')}${losing.length > 50 ? ` and ${losing.length - 50} more` : ''}. Use force=true: they are then no longer offered.`,
        })
      return document
    },
    by,
    note || `${name}: removed`,
  )
  // Jobs that run on know the vendor by the catalog that they began with, and need its credential to their end.
  const { vendors } = catalog.current.document
  const isElsewhere = (one: string) =>
    Object.values(vendors).some((other) => credentialsOf(other).some((named) => named.name === one))
  for (const { name: one } of vendor ? credentialsOf(vendor) : [])
    if (credentials.source(one) === 'stored' && !isElsewhere(one) && (await openJobs(name, one)) === 0)
      await credentials.remove(one, by)
  return applied
}
