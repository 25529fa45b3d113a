// The catalog's versions: immutable, numbered, in the database; the current one in memory, in every process.
import { createHash } from 'node:crypto'
import type { Audit, By } from '../database/audit.ts'
import type { Changes } from '../database/changes.ts'
import { type Database, type Queryable, sql } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { KINDS } from '../meter/kind.ts'
import { describeChanges, firstSentences } from './change-sentences.ts'
import {
  type CatalogDocument,
  type CatalogInput,
  checkDocument,
  type DataEndpoint,
  isGuarded,
  type Model,
  type ModelOf,
  type Route,
  readDocument,
  type Vendor,
} from './document.ts'
import type { EndpointSpec } from './endpoint.ts'
import { sectionReviews } from './section.ts'
import type { Applied, CheckView, VersionView } from './views.ts'

export interface Catalog {
  readonly version: number
  readonly document: CatalogDocument
  /** Parts of it that this version of Tollgate does not know, and that nobody can call here. */
  readonly setAside: readonly string[]
  /** The document as it was given, for editing. */
  readonly input: CatalogInput
  /** Every vendor of it is a simulated one: simulated.ts. */
  readonly simulated: boolean
  /** It has a section that checks calls. */
  readonly isGuarded: boolean
  /** Endpoints of extensions. */
  readonly added: readonly EndpointSpec[]
  /** Addresses of extensions that take WebSockets, and nothing else. */
  readonly sockets: readonly EndpointSpec[]
}

/** A product with price and routes: a model or a data endpoint. */
export type Product = Model | DataEndpoint
export type DataProduct = ModelOf<'data'> | DataEndpoint

export type CatalogStore = Awaited<ReturnType<typeof openCatalog>>

/** Makes the next document from the current one. Its writes through `tx` are committed with the document. */
type Amendment = (current: CatalogInput, tx: Queryable, version: number) => unknown | Promise<unknown>

/** Throws if the document may not be applied. Its writes through `tx` are committed with the document. */
type RollbackCheck = (document: CatalogInput, current: CatalogInput, tx: Queryable) => Promise<void>

const LOCK = sql('catalog_lock')`select pg_advisory_xact_lock(7046029259)`
const LATEST = sql('catalog_latest')`select version, document from catalog_version order by version desc limit 1`
const AT = sql('catalog_at')`select version, document from catalog_version where version = $1`
const LIST = sql('catalog_list')`select version, at, actor, note from catalog_version order by version desc limit 200`
const NAMED = sql('catalog_named')`select 1 from catalog_version where strpos(document, $1) > 0 limit 1`
const INSERT = sql('catalog_insert')`insert into catalog_version (version, document, note, actor)
   select coalesce(max(version), 0) + 1, $1, $2, $3 from catalog_version returning version`

/** The audit row has only the first sentences; both versions are stored in full. */
const AUDITED_SENTENCES_MAX = 50

type VersionRow = { version: number; document: string }

export async function openCatalog(options: {
  database: Database
  changes: Changes
  audit: Pick<Audit, 'write'>
  /** Becomes the first version of an empty database. */
  initial: unknown
  /** Sections and text formats of extensions that are switched off. */
  off?: readonly string[]
  /** Of those that are switched on. */
  added?: Catalog['added']
  sockets?: Catalog['sockets']
}) {
  const { database, changes, audit, off } = options
  /** The problems of a document, and what it would change. */
  const compare = (before: unknown, input: unknown): CheckView => {
    const checked = checkDocument(input, { off, kept: before })
    return { problems: checked.ok ? [] : checked.problems, changes: describeChanges(before, input, sectionReviews()) }
  }
  const older = new Map<number, Catalog>()
  await replace(() => options.initial, { note: 'first start', onlyFirst: true })
  const store = { current: await latest() }
  changes.watch('catalog', async () => {
    const next = await latest(store.current)
    // Credentials may have been stored with the new version, so they are read before it is used. Otherwise an old
    // secret could be sent to a new address.
    await changes.notice('credentials')
    if (next.version > store.current.version) store.current = next
  })

  /** Versions are immutable, so a `known` one is not parsed again: that takes 40 ms. */
  async function latest(known?: Catalog): Promise<Catalog> {
    const [row] = await database.query<VersionRow>(LATEST)
    if (!row) throw new Error('The database has no version of the catalog.')
    return row.version === known?.version ? known : read(row, options)
  }

  /** Changes are serialized across processes, and each starts from the latest version. */
  async function replace(
    make: (current: CatalogInput | undefined, tx: Queryable, version: number) => unknown | Promise<unknown>,
    options: {
      note: string
      onlyFirst?: true
      by?: By
      action?: 'catalog.apply' | 'catalog.model' | 'catalog.rollback'
    },
  ): Promise<Applied> {
    const applied = await database.transaction(async (tx) => {
      await tx.query(LOCK)
      const [row] = await tx.query<VersionRow>(LATEST)
      if (row && options.onlyFirst) return { version: row.version, changes: [] }
      const before = row && (JSON.parse(row.document) as CatalogInput)
      const input = await make(before, tx, row?.version ?? 0)
      const text = JSON.stringify(input)
      // At a start, the file is nearly always the same as last time.
      if (row && text === row.document) return { version: row.version, changes: [] }
      const { problems, changes: differences } = compare(before, input)
      if (problems.length > 0)
        throw new Fault('request_invalid', { message: `The catalog is not valid. ${problems.join('; ')}` })
      if (row && differences.length === 0) return { version: row.version, changes: [] }
      const { by, action, note } = options
      const [made] = await tx.query<{ version: number }>(INSERT, [text, note, by?.actor ?? 'system'])
      await changes.bump(tx, 'catalog')
      if (by && action)
        await audit.write(tx, by, {
          action,
          object: `catalog/${made!.version}`,
          detail: { changes: firstSentences(differences, AUDITED_SENTENCES_MAX), digest: digestOf(text) },
        })
      return { version: made!.version, changes: differences }
    })
    await changes.notice('catalog')
    return applied
  }

  return Object.assign(store, {
    /** A certain version, for example the one of a hold. */
    async at(version: number): Promise<Catalog> {
      if (version === store.current.version) return store.current
      const known = older.get(version)
      if (known) return known
      const catalog = read(await rowAt(database, version), options)
      older.set(version, catalog)
      if (older.size > 50) older.delete(older.keys().next().value!)
      return catalog
    },
    check: (input: unknown) => compare(store.current.input, input),
    apply: (input: unknown, by: By, note: string) => replace(() => input, { by, note, action: 'catalog.apply' }),
    /** Makes a document from the current one, within the transaction that applies it. */
    amend: (make: Amendment, by: By, note: string) =>
      replace((current, tx, version) => make(current!, tx, version), { by, note, action: 'catalog.apply' }), // there is a first version
    async versions(): Promise<VersionView[]> {
      const rows = await database.query<Omit<VersionView, 'appliedAt'> & { at: Date }>(LIST)
      return rows.map(({ at, ...row }) => ({ ...row, appliedAt: at.toISOString() }))
    },
    /** Whether any version, current or old, uses this credential at a vendor. */
    hasNamed: async (credential: string) => (await database.query(NAMED, [JSON.stringify(credential)])).length > 0,
    /** `check` is called within the transaction that applies it. */
    rollback: (version: number, by: By, check?: RollbackCheck) =>
      replace(
        async (current, tx) => {
          const document = JSON.parse((await rowAt(tx, version)).document) as CatalogInput // It was checked when it was applied.
          await check?.(document, current!, tx) // there is a first version
          return document
        },
        { by, note: `back to version ${version}`, action: 'catalog.rollback' },
      ),
    /** Changes fields of one model or endpoint. */
    change: (uid: string, fields: Readonly<Record<string, unknown>>, by: By, note?: string) =>
      replace((current) => withFields(current!, uid, fields), {
        by,
        note: note || `${uid}: ${noteOf(fields)}`,
        action: 'catalog.model',
      }),
  })
}

/** Read from the database, not from memory: for checks of what is stored. */
export function storedCatalogs(database: Queryable): Pick<CatalogStore, 'at'> {
  const known = new Map<number, Promise<Catalog>>()
  return {
    at(version) {
      let catalog = known.get(version)
      if (!catalog) {
        catalog = rowAt(database, version).then((row) => read(row))
        known.set(version, catalog)
      }
      return catalog
    },
  }
}

/** The digest of a version's text, which the audit log stores. */
export function digestOf(document: string): string {
  return createHash('sha256').update(document).digest('hex')
}

async function rowAt(database: Queryable, version: number): Promise<VersionRow> {
  const [row] = await database.query<VersionRow>(AT, [version])
  if (!row) throw new Fault('not_found', { message: `There is no catalog version ${version}.` })
  return row
}

/** The document is checked as a whole when it is applied, so what was sent may go in as it is. */
function withFields(input: CatalogInput, uid: string, fields: Readonly<Record<string, unknown>>): unknown {
  const shelf = (['models', 'endpoints'] as const).find((name) => Object.hasOwn(input[name], uid))
  if (!shelf) throw new Fault('not_found', { message: `The catalog has no model or endpoint "${uid}".` })
  return { ...input, [shelf]: { ...input[shelf], [uid]: { ...input[shelf][uid], ...fields } } }
}

function read(
  row: VersionRow,
  { off, added = [], sockets = [] }: { off?: readonly string[] } & Partial<Pick<Catalog, 'added' | 'sockets'>> = {},
): Catalog {
  const input = JSON.parse(row.document) as CatalogInput
  const stored = readDocument(input, { off })
  const offered = { simulated: false, isGuarded: isGuarded(input), added, sockets }
  if (stored) return { version: row.version, ...stored, input, ...offered }
  const checked = checkDocument(input, { off })
  const problems = checked.ok ? [] : checked.problems
  throw new Error(`Catalog version ${row.version} cannot be read: ${problems.join('; ')}`)
}

export function findProduct({ document }: Catalog, name: string): Product | undefined {
  const { models, endpoints } = document
  if (Object.hasOwn(models, name)) return models[name]
  return Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
}

export function findDataProduct(catalog: Catalog, name: string): DataProduct | undefined {
  const product = findProduct(catalog, name)
  return product && (!('type' in product) || product.type === 'data') ? product : undefined
}

/** A version's note says what was done, and not only to which field. */
function noteOf(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (name === 'enabled' ? `switched ${value === true ? 'on' : 'off'}` : `${name} changed`))
    .join(', ')
}

// The catalog of test accounts: the same models, prices and routes, but every vendor is simulated. Nothing of the real
// vendor is used: no credential, and none of its headers.

/** By the format that it speaks. */
const VENDORS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...Object.values(KINDS).map((kind) => kind.protocols),
)

const copies = new WeakMap<Catalog, Catalog>()

export function catalogFor(account: string, catalog: Catalog): Catalog {
  if (!isTestAccount(account) || catalog.simulated) return catalog
  let copy = copies.get(catalog)
  if (!copy) {
    copy = { ...catalog, document: simulate(catalog.document), simulated: true }
    copies.set(catalog, copy)
  }
  return copy
}

function simulate(document: CatalogDocument): CatalogDocument {
  const vendors: Record<string, Vendor> = {}

  function simulated<P extends { readonly routes: Route[] }>(products: Record<string, P>): Record<string, P> {
    const entries = Object.entries(products).map(([uid, product]) => [
      uid,
      { ...product, routes: product.routes.map(to) },
    ])
    return Object.fromEntries(entries)
  }

  // The check of the document has seen that there is one.
  const vendorOf = (route: Route): Vendor => document.vendors[route.vendor]!

  function to(route: Route): Route {
    // No vendor of a catalog can have such a name, so breakers and figures stay separate.
    const name = `test:${route.vendor}/${VENDORS[route.protocol]}`
    const { credential: _, credentials: __, auth: ___, byokFee: ____, bridge: _____, ...rest } = vendorOf(route)
    vendors[name] ??= { ...rest, baseUrl: `sandbox/${VENDORS[route.protocol]}`, headers: {} }
    return { ...route, vendor: name }
  }

  return { ...document, models: simulated(document.models), endpoints: simulated(document.endpoints), vendors }
}
