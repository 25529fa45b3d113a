// The catalogue's versions: immutable, numbered, in the database; the current one in memory, in every process.
import type { Changes } from '../database/changes.ts'
import { type Database, statement } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Pricing } from '../meter/price.ts'
import { type CatalogDocument, type CatalogInput, checkDocument, type Route } from './document.ts'

export interface Catalog {
  readonly version: number
  readonly document: CatalogDocument
  /** As it was given: what an operator sees and edits. */
  readonly input: CatalogInput
}

/** What has a price and routes: a model or a data endpoint. */
export interface Product {
  readonly enabled: boolean
  readonly routes: readonly Route[]
  readonly pricing: Pricing
}

export interface VersionInfo {
  readonly version: number
  readonly at: Date
  readonly actor: string
  readonly note: string
}

export interface CatalogStore {
  readonly current: Catalog
  /** The version that priced a hold, whatever is current now. */
  at(version: number): Promise<Catalog>
  apply(input: unknown, by: { actor: string; note: string }): Promise<{ version: number; changes: string[] }>
  versions(): Promise<VersionInfo[]>
  rollback(version: number, actor: string): Promise<{ version: number; changes: string[] }>
}

const LATEST = statement(
  'catalog_latest',
  'select version, document from catalog_version order by version desc limit 1',
)
const AT = statement('catalog_at', 'select version, document from catalog_version where version = $1')
const LIST = statement(
  'catalog_list',
  'select version, at, actor, note from catalog_version order by version desc limit 200',
)
const INSERT = statement(
  'catalog_insert',
  `insert into catalog_version (version, document, note, actor)
   select coalesce(max(version), 0) + 1, $1, $2, $3 from catalog_version returning version`,
)

type VersionRow = { version: number; document: string }

export async function openCatalog(options: {
  database: Database
  changes: Changes
  /** Applied when the database has no version yet. */
  initial: unknown
  /** What is wrong with a valid document besides: whoever reads a part of it knows best. */
  inspect?: (document: CatalogDocument) => string[]
}): Promise<CatalogStore> {
  const { database, changes } = options
  const older = new Map<number, Catalog>()
  let current = await latest()
  if (!current) {
    // Two processes may start at once on an empty database: whoever comes second finds the first one's version.
    await apply(options.initial, { actor: 'system', note: 'first start' }).catch(() => undefined)
    current = await latest()
  }
  if (!current) throw new Error('The catalogue could not be stored at the first start.')
  let now: Catalog = current
  changes.watch('catalog', async () => {
    now = (await latest()) ?? now
  })

  async function latest(): Promise<Catalog | undefined> {
    const [row] = await database.query<VersionRow>(LATEST)
    return row && read(row)
  }

  async function apply(
    input: unknown,
    by: { actor: string; note: string },
  ): Promise<{ version: number; changes: string[] }> {
    const checked = checkDocument(input)
    const problems = checked.ok ? (options.inspect?.(checked.document) ?? []) : checked.problems
    if (problems.length > 0)
      throw new Fault('request_invalid', { message: `The catalogue is not valid. ${problems.join('; ')}` })
    const version = await database.transaction(async (tx) => {
      const [row] = await tx.query<{ version: number }>(INSERT, [JSON.stringify(input), by.note, by.actor])
      await changes.bump(tx, 'catalog')
      return row!.version
    })
    const before: unknown = now?.input
    await changes.notice('catalog')
    return { version, changes: listChanges(before, input) }
  }

  return {
    get current() {
      return now
    },
    async at(version) {
      if (version === now.version) return now
      const known = older.get(version)
      if (known) return known
      const [row] = await database.query<VersionRow>(AT, [version])
      if (!row) throw new Fault('not_found', { message: `There is no catalogue version ${version}.` })
      const catalog = read(row)
      older.set(version, catalog)
      if (older.size > 50) older.delete(older.keys().next().value!)
      return catalog
    },
    apply,
    versions: () => database.query<VersionInfo>(LIST),
    async rollback(version, actor) {
      const [row] = await database.query<VersionRow>(AT, [version])
      if (!row) throw new Fault('not_found', { message: `There is no catalogue version ${version}.` })
      return apply(JSON.parse(row.document), { actor, note: `back to version ${version}` })
    },
  }
}

function read(row: VersionRow): Catalog {
  const input = JSON.parse(row.document) as CatalogInput
  const checked = checkDocument(input)
  if (!checked.ok) throw new Error(`Catalogue version ${row.version} cannot be read: ${checked.problems.join('; ')}`)
  return { version: row.version, document: checked.document, input }
}

export function findProduct(catalog: Catalog, name: string): Product | undefined {
  const { models, endpoints } = catalog.document
  if (Object.hasOwn(models, name)) return models[name]
  return Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
}

const CHANGES_MAX = 500

/** What differs between two documents, a line each: `models.alpha-5.4.enabled: true → false`. */
export function listChanges(before: unknown, after: unknown, path = ''): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  const isTree = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
  if (!isTree(before) || !isTree(after)) return [`${path || 'document'}: ${show(before)} → ${show(after)}`]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .flatMap((name) => listChanges(before[name], after[name], path ? `${path}.${name}` : name))
    .slice(0, CHANGES_MAX)
}

function show(value: unknown): string {
  const text = value === undefined ? 'none' : JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}
