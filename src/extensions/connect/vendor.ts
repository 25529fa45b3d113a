// One vendor: changing, renaming and removing it.

import * as z from 'zod'
import { type CatalogInput, catalogName, credentialsOf } from '../../catalog/document.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { addressesOf, namedBy, originOf, originsOf } from '../../catalog/vendor-edit.ts'
import { appliedView, vendorCheckView } from '../../catalog/views.ts'
import type { By } from '../../database/audit.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import type { JobEngine } from '../../jobs/engine.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { TEXT_PROTOCOLS } from '../../meter/kind.ts'
import { dryRun, isDryRun, type Resource, requireRight, resource, secret, text } from '../../operator/resource.ts'
import { checkedAddress, isFreeToGo, mayGoTo } from '../../operator/resources/credential-moves.ts'
import { renameUnbilled } from '../../reports/unbilled.ts'
import { renameVendorHours } from '../../routing/vendor-hours.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { withoutVendor, withVendorChanged } from './vendor-change.ts'

export interface VendorEditDeps {
  readonly catalog: CatalogStore
  readonly credentials: Credentials
  readonly database: Database
  readonly jobs: Pick<JobEngine, 'jobs'>
}

const change = z.strictObject({
  name: catalogName.optional().describe('A new name. Routes, figures and stored responses follow.'),
  format: z.enum(TEXT_PROTOCOLS).optional().describe('The format in which all of its text models are called.'),
  entry: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Members of its entry in the catalog, such as `baseUrl` or `timeouts`, merged with those that are there; null takes one out.',
    )
    .meta({ read: 'tree', option: 'set' }),
  credential: z
    .strictObject({ value: secret.meta({ description: 'Its credential', read: 'input', option: 'key-stdin' }) })
    .optional()
    .describe('Its key again: needed where `baseUrl` or a token address leads to another host, and taken only there.'),
  note: text(200, 0).default(''),
})
type Change = z.output<typeof change>

export function vendorEditResources(deps: VendorEditDeps): Resource[] {
  const { catalog, credentials, database } = deps
  return [
    resource('PATCH /vendors/{name}', 'vendors:write', {
      title: 'Change a vendor',
      query: z.strictObject({ dryRun }),
      body: change,
      answer: z.union([appliedView, vendorCheckView]),
      async run({ params: { name }, query, body, actor, by }) {
        if (body.credential !== undefined) requireRight(actor, 'vendor-credentials:write')
        if (isDryRun(query)) {
          const present = { current: catalog.current.input, queryable: database, credentials }
          const { document } = await checkedChange(name, body, present)
          return { ...catalog.check(document), unservedProducts: [], document }
        }
        return changeVendor(name, body, by, deps)
      },
    }),
    resource('DELETE /vendors/{name}', 'vendors:write', {
      title: 'Remove a vendor',
      query: z.strictObject({
        dryRun,
        force: z.enum(['true', 'false']).optional().describe('Also if models are then no longer offered'),
        note: text(200, 0).default(''),
      }),
      answer: z.union([appliedView, vendorCheckView]),
      async run({ params: { name }, query, by }) {
        if (isDryRun(query)) {
          const { document, unservedProducts } = withoutVendor(catalog.current.input, name)
          return { ...catalog.check(document), unservedProducts: [...unservedProducts], document }
        }
        return removeVendor(name, { force: query.force === 'true', note: query.note }, by, deps)
      },
    }),
  ]
}

async function changeVendor(name: string, body: Change, by: By, deps: VendorEditDeps) {
  const { catalog, credentials } = deps
  const applied = await catalog.amend(
    async (current, tx) => {
      const { document, store } = await checkedChange(name, body, { current, queryable: tx, credentials })
      if (store) await credentials.storeWith(tx, store.name, store.value, by)
      if (body.name !== undefined && body.name !== name) await rename(tx, name, body.name)
      return document
    },
    by,
    body.note || (body.name && body.name !== name ? `${name}: renamed ${body.name}` : `${name}: changed`),
  )
  await credentials.noticed()
  return applied
}

interface Present {
  readonly current: CatalogInput
  readonly queryable: Queryable
  readonly credentials: Credentials
}
interface Stored {
  readonly name: string
  readonly value: string
}

/** Checks a change without writing anything; used for dry runs too. */
async function checkedChange(
  name: string,
  body: Change,
  present: Present,
): Promise<{ document: CatalogInput; store: Stored | undefined }> {
  const document = withVendorChanged(present.current, name, body)
  const next = body.name ?? name
  if (next !== name) await requireNoByokKeys(present.queryable, name)
  const [before, after] = [present.current.vendors[name], document.vendors[next]]
  const isMoved = before && after && originsOf(before) !== originsOf(after)
  if (isMoved) return { document, store: await movedCredential(name, after, body.credential?.value, present) }
  if (body.credential !== undefined) throw notStored(name, before ? namedBy(before).map((one) => one.name) : [])
  return { document, store: undefined }
}

/** If the address moves to another host, the request must contain the credential. Returns the credential to store. */
async function movedCredential(
  name: string,
  after: CatalogInput['vendors'][string],
  value: string | undefined,
  { current, credentials }: Present,
): Promise<Stored | undefined> {
  const home = originsOf(current.vendors[name] ?? after).split(' ')
  const addresses = addressesOf(after)
    .filter((address) => !home.includes(originOf(address) ?? ''))
    .map((address) => checkedAddress(String(address)))
  const names = namedBy(after).map((one) => one.name)
  const [only] = names
  if (only === undefined) {
    if (value !== undefined) throw notStored(name, names)
    return undefined
  }
  if (names.length > 1) {
    const free = await Promise.all(
      names.flatMap((one) =>
        addresses.map((address) => isFreeToGo(one, { value: undefined, address }, { current, credentials })),
      ),
    )
    if (value !== undefined || free.includes(false)) throw severalMove(name, names)
    return undefined
  }
  for (const address of addresses) await mayGoTo(only, { value, address }, { current, credentials })
  if (value === undefined || credentials.source(only) === 'env') return undefined
  const others = Object.entries(current.vendors).filter(([other]) => other !== name)
  const [sharing] = others.find(([, vendor]) => namedBy(vendor).some((one) => one.name === only)) ?? []
  if (sharing !== undefined && credentials.get(only) !== value)
    throw new Fault('conflict', {
      message: `The vendor "${sharing}" uses ${only} too and would get this value as well. Give "${name}" a credential of its own first: PUT /vendors/${name}/credentials/{credential}, then DELETE /vendors/${name}/credentials/${only}.`,
    })
  return { name: only, value }
}

/** The error for a credential value that the change does not need. */
function notStored(name: string, names: readonly string[]): Fault {
  const [first = 'NAME'] = names
  return invalid(
    `A value is accepted here only if "baseUrl" moves a vendor with one credential to another host. To store it: PUT /vendors/${name}/credentials/${first}, or tollgate vendors credentials ${name} --set ${first} --key-stdin.`,
    'credential.value',
  )
}

function severalMove(name: string, names: readonly string[]): Fault {
  return invalid(
    `"${name}" has several credentials (${names.join(' and ')}), and one value cannot replace all of them at another host. Remove all but one (DELETE /vendors/${name}/credentials/{credential}, or tollgate vendors credentials ${name} --remove NAME), change the address with the value of the one that is left, then add the others again with theirs.`,
    'credential.value',
  )
}

async function requireNoByokKeys(queryable: Queryable, name: string): Promise<void> {
  const [own] = await queryable.query<{ count: number }>(BYOK_KEYS, [name])
  if (own && own.count > 0)
    throw new Fault('conflict', {
      message: `${own.count} accounts have stored a BYOK key for "${name}", which is encrypted under that name, so the vendor cannot be renamed.`,
    })
}

/** Renames the vendor in tables that store its name. */
async function rename(tx: Queryable, from: string, to: string): Promise<void> {
  await renameVendorHours(tx, from, to)
  await renameUnbilled(tx, from, to)
  for (const statement of RENAME) await tx.query(statement, [from, to])
}

const BYOK_KEYS = sql('vendor_byok_keys')`select count(*)::int as count from byok_key where vendor = $1`
const RENAME = [
  sql('vendor_rename_objects')`update vendor_object set vendor = $2 where vendor = $1`,
  sql('vendor_rename_test')`update setting set name = 'vendor test ' || $2 where name = 'vendor test ' || $1
     and not exists (select 1 from setting where name = 'vendor test ' || $2)`,
]

async function removeVendor(
  name: string,
  { force, note }: { force: boolean; note: string },
  by: By,
  { catalog, credentials, jobs: { jobs } }: VendorEditDeps,
) {
  const vendor = catalog.current.document.vendors[name]
  const applied = await catalog.amend(
    (current) => {
      const { document, unservedProducts } = withoutVendor(current, name)
      if (unservedProducts.length > 0 && !force)
        throw new Fault('conflict', {
          message: `No other vendor serves ${unservedProducts.slice(0, 50).join(', ')}${unservedProducts.length > 50 ? ` and ${unservedProducts.length - 50} more` : ''}. Use force=true: they are then no longer offered.`,
        })
      return document
    },
    by,
    note || `${name}: removed`,
  )
  // Running jobs use the catalog version with which they started, and need the vendor's credential until they end.
  const { vendors } = catalog.current.document
  const isElsewhere = (one: string) =>
    Object.values(vendors).some((other) => credentialsOf(other).some((named) => named.name === one))
  for (const { name: one } of vendor ? credentialsOf(vendor) : [])
    if (credentials.source(one) === 'stored' && !isElsewhere(one) && (await jobs.openAt(name, one)) === 0)
      await credentials.remove(one, by)
  return applied
}
