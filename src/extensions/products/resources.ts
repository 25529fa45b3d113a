// Products: an OpenAPI document is read into operations, and those that the operator chooses become a version of the
// catalog, with vendor, prices and credential.
import * as z from 'zod'
import { auth, type CatalogInput, catalogName, credentialName } from '../../catalog/document.ts'
import { appliedView } from '../../catalog/views.ts'
import type { CoreParts } from '../../extension.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { dryRun, isDryRun, type Resource, requireRight, resource, secret, text } from '../../operator/resource.ts'
import { checkedAddress, mayAllGo } from '../../operator/resources/credential-moves.ts'
import { isInternalUrl } from '../../upstream/address.ts'
import { DOCUMENT_BYTES_MAX, type ImportedDocument, importOpenapi } from './openapi-import.ts'
import { readProductPresets } from './presets.ts'
import { countBounds } from './product.ts'
import { importedView, productCheckView, productPresetView } from './views.ts'

type ProductDeps = Pick<CoreParts, 'catalog' | 'credentials'>

const json = z.record(z.string(), z.unknown())
const documentText = z.string().min(1).max(DOCUMENT_BYTES_MAX).meta({ read: 'file', option: 'file' })
const chosenIds = z.array(text(60)).max(2_000)

const priced = z.strictObject({
  rates: z
    .record(z.string(), z.union([z.string(), z.number()]))
    .meta({
      description: 'Rates by their units, such as call=0.1, call=0,row=0.01 or call=0,byte=5 (a million bytes)',
      option: 'price',
      value: 'rates',
    }),
  rows: z
    .strictObject({ path: text(200), most: z.union([z.number().int().positive(), text(64)]) })
    .optional()
    .meta({
      description: 'The list whose items are rows, and the most: a number, or the parameter that limits them',
      read: 'parts',
      value: 'list:most',
    }),
  metered: text(500)
    .optional()
    .meta({
      description: 'Counts the units, for a price with metered=…, as an expression over `request` and `answer`',
      option: 'expression',
      value: 'cel',
    }),
  bytesMax: z.number().int().positive().optional().describe('The largest answer, for a price with byte=…'),
  timeoutSeconds: z
    .number()
    .int()
    .positive()
    .max(3_600)
    .optional()
    .meta({
      description: 'How long the vendor may take for an answer; absent: as its entry says',
      option: 'timeout',
      value: 'seconds',
    }),
  cacheSeconds: z.number().int().positive().optional(),
})

const productBody = z.strictObject({
  id: text(39).meta({ description: 'Its addresses begin with `/v1/<id>`', option: 'product' }),
  title: text(200).optional(),
  /** Absent: that of the document, or of the product that is replaced. */
  description: text(4_000, 0).optional(),
  /** One of `GET /products/presets`: its operations, address and, unless others are given, list prices. */
  preset: text(40).optional(),
  creditsPerDollar: z
    .number()
    .positive()
    .max(1_000_000)
    .default(100)
    .describe('What a dollar of the list price is in credits, with your margin; 100 by default'),
  /** OpenAPI 3.0 or 3.1, as JSON or YAML. Absent: `entries` alone. */
  document: documentText.optional(),
  trusted: z
    .boolean()
    .default(false)
    .describe('Takes rules of the catalog under `x-tollgate` from it: only for documents that you wrote'),
  operations: chosenIds
    .optional()
    .meta({
      description: 'The operations that are sold, by the ids that reading it gives; by default all that can be',
      option: 'choose',
      value: 'ids',
    }),
  /** Operations in the catalog's form, by id; they override those of the document. */
  entries: z.record(z.string(), json).default({}),
  vendor: z
    .strictObject({
      /** In the catalog; absent: the product's id. */
      name: catalogName.optional(),
      baseUrl: text(2_000)
        .optional()
        .meta({
          description: 'Where the API is; by default the first server of the document',
          option: 'url',
          value: 'address',
        }),
      auth: auth.optional(),
      credential: z
        .strictObject({
          name: credentialName
            .optional()
            .meta({
              description: 'The stored credential. Without its value only test keys are answered, with examples',
              option: 'credential',
              value: 'name',
            }),
          value: secret.optional().meta({ description: 'The value to store', read: 'sealed', option: 'key-env' }),
        })
        .default({}),
    })
    .prefault({}),
  /** The price of operations that are not in `prices`. */
  price: priced.optional(),
  prices: z.record(z.string(), priced).default({}),
  note: text(200, 0).default(''),
})
type ProductBody = z.output<typeof productBody>
type Price = z.output<typeof priced>

export function productResources({ catalog, credentials }: ProductDeps): Resource[] {
  return [
    resource('GET /products/presets', 'catalog:read', {
      title: 'List product presets',
      answer: page(productPresetView),
      async run() {
        const items = (await readProductPresets()).map(({ vendor, operations, usd, ...about }) => ({
          ...about,
          ...vendor,
          tested: false,
          operations: Object.entries(operations).map(([id, entry]) => ({
            id,
            title: String(entry.title),
            route: String(entry.route),
            usd: usd[id] ?? null,
            entry,
          })),
        }))
        return { items, next: null }
      },
    }),
    resource('POST /products/read', 'catalog:read', {
      title: 'Read an OpenAPI document',
      body: z.strictObject({
        document: documentText,
        operations: chosenIds.default([]).describe('Those that are answered in the form of the catalog.'),
        trusted: z.boolean().default(false),
      }),
      bodyBytesMax: 2 * DOCUMENT_BYTES_MAX,
      answer: importedView,
      async run({ body: { document, operations: wanted, trusted } }) {
        const {
          operations,
          server,
          unusable,
          auth: where = null,
          ...about
        } = readDocument(document, { wanted: (id) => wanted.includes(id), isTrusted: trusted })
        return {
          ...about,
          auth: where,
          ...serverOf(server, unusable),
          operations: operations.map(({ operation, problem = null, notes, ...one }) => ({
            ...one,
            problem,
            notes: [...notes],
            entry: operation && wanted.includes(one.id) ? { ...operation } : null,
          })),
        }
      },
    }),
    resource('POST /products', 'catalog:write', {
      title: 'Create a product',
      query: z.strictObject({ dryRun }),
      body: productBody,
      bodyBytesMax: 2 * DOCUMENT_BYTES_MAX,
      answer: z.union([appliedView, productCheckView]),
      async run({ query, body: given, actor, by }) {
        const body = withCredentialName(given.preset === undefined ? given : await withPreset(given, given.preset))
        const { value, name } = body.vendor.credential
        if (value !== undefined) requireRight(actor, 'vendor-credentials:write')
        const read =
          body.document === undefined
            ? undefined
            : readDocument(body.document, {
                wanted: (id) => body.operations?.includes(id) ?? true,
                isTrusted: body.trusted,
              })
        const made = productOf(body, read)
        const { current } = catalog
        const mayGo = async (input: CatalogInput) => {
          const vendor = made.vendor && mergedVendor(input, made)
          if (vendor) await mayAllGo(vendor, { name, value }, { current: input, credentials })
        }
        if (isDryRun(query)) {
          await mayGo(current.input)
          const document = withProduct(current.input, made)
          return { ...catalog.check(document), notes: made.notes, bounds: countBounds(made.product), document }
        }
        const applied = await catalog.amend(
          async (input, tx) => {
            await mayGo(input)
            if (value !== undefined && name !== undefined) await credentials.storeWith(tx, name, value, by)
            return withProduct(input, made)
          },
          by,
          body.note || `product ${body.id}`,
        )
        if (value !== undefined) await credentials.noticed()
        return applied
      },
    }),
    resource('DELETE /products/{id}', 'catalog:write', {
      title: 'Remove a product',
      query: z.strictObject({ dryRun, note: text(200, 0).default('') }),
      answer: z.union([appliedView, productCheckView]),
      async run({ params: { id }, query, by }) {
        if (!isDryRun(query))
          return catalog.amend((input) => withoutProduct(input, id), by, query.note || `product ${id} removed`)
        const document = withoutProduct(catalog.current.input, id)
        return { ...catalog.check(document), notes: [], bounds: {}, document }
      },
    }),
  ]
}

function readDocument(document: string, options: Parameters<typeof importOpenapi>[1]): ImportedDocument {
  try {
    return importOpenapi(document, options)
  } catch (error) {
    throw invalid((error as Error).message, 'document') // Each of its errors is a sentence.
  }
}

/** Fills in fields from the preset that were not given. */
async function withPreset(body: ProductBody, name: string): Promise<ProductBody> {
  const presets = await readProductPresets()
  const found = presets.find((one) => one.name === name)
  if (!found)
    throw invalid(`preset: there is no "${name}"; there are ${presets.map((one) => one.name).join(', ')}.`, 'preset')
  const { vendor, operations, usd, title } = found
  const chosen = Object.entries(operations).filter(([id]) => body.operations?.includes(id) ?? true)
  const credits = (rate: string) => String(Number((Number(rate) * body.creditsPerDollar).toFixed(6)))
  const listed = Object.entries(usd).map(([id, rates]) => [
    id,
    { rates: Object.fromEntries(Object.entries(rates).map(([unit, rate]) => [unit, credits(rate)])) },
  ])
  return {
    ...body,
    title: body.title ?? title,
    operations: undefined,
    entries: { ...Object.fromEntries(chosen), ...body.entries },
    vendor: {
      ...body.vendor,
      baseUrl: body.vendor.baseUrl ?? vendor.baseUrl,
      auth: body.vendor.auth ?? auth.parse(vendor.auth),
      credential: { name: vendor.credential, ...body.vendor.credential },
    },
    prices: { ...(body.price ? {} : Object.fromEntries(listed)), ...body.prices },
  }
}

/** A credential without a name is stored under one made of the product's id. */
function withCredentialName(body: ProductBody): ProductBody {
  const { name, value } = body.vendor.credential
  if (value === undefined || name !== undefined) return body
  const made = `${body.id.toUpperCase().replaceAll(/\W/g, '_')}_API_KEY`
  return { ...body, vendor: { ...body.vendor, credential: { name: made, value } } }
}

interface PricedRoute {
  readonly routes: readonly [{ readonly vendor: string; readonly protocol: string }]
  readonly pricing: unknown
  readonly cache?: unknown
}

interface MadeProduct {
  readonly id: string
  readonly product: { readonly title: string; readonly operations: Readonly<Record<string, unknown>> }
  /** Absent: the existing text stays. */
  readonly description: string | undefined
  readonly endpoints: Readonly<Record<string, PricedRoute>>
  readonly vendorName: string
  /** Whether the request names the vendor, which may then be an existing one. */
  readonly isNamed: boolean
  /** Absent: the vendor is already in the catalog. */
  readonly vendor?: CatalogInput['vendors'][string]
  readonly notes: string[]
}

function productOf(body: ProductBody, read: ImportedDocument | undefined): MadeProduct {
  const { id, entries, price, prices } = body
  const notes: string[] = []
  const chosen = chosenOf(body, read, notes)
  const operations: Record<string, unknown> = {}
  const endpoints: Record<string, PricedRoute> = {}
  const vendorName = body.vendor.name ?? id
  for (const [name, entry] of [...chosen, ...Object.entries(entries)]) {
    const own = prices[name] ?? price
    if (!own) throw invalid(`prices: the operation "${name}" has no price.`, 'prices')
    operations[name] = { ...entry, ...countsOf(own) }
    endpoints[`${id}/${name}`] = {
      routes: [{ vendor: vendorName, protocol: String(entry.protocol ?? 'http-api') }],
      pricing: { unit: 'credits', tiers: [{ call: '0', ...own.rates }] },
      ...(own.cacheSeconds === undefined ? {} : { cache: { ttlSeconds: own.cacheSeconds } }),
    }
  }
  if (Object.keys(operations).length === 0) throw invalid('operations: none was chosen.', 'operations')
  const title = body.title ?? read?.title ?? id
  const vendor = vendorOf(body, read)
  return {
    id,
    product: { title, operations },
    description: body.description ?? read?.description,
    endpoints,
    vendorName,
    isNamed: body.vendor.name !== undefined,
    notes,
    ...(vendor ? { vendor } : {}),
  }
}

function chosenOf({ operations }: ProductBody, read: ImportedDocument | undefined, notes: string[]) {
  const all = read?.operations ?? []
  const unknown = operations?.find((name) => !all.some(({ id }) => id === name))
  if (unknown !== undefined) throw invalid(`operations: the document has no "${unknown}".`, 'operations')
  return all
    .filter(({ id }) => operations?.includes(id) ?? true)
    .flatMap(({ id, route, operation, problem, notes: own }) => {
      if (operation === undefined && operations) throw invalid(`operations: ${route} ${problem}.`, 'operations')
      notes.push(
        ...own.map((note) => `${route}: ${note}`),
        ...(operation === undefined ? [`${route} is left out: it ${problem}.`] : []),
      )
      return operation === undefined ? [] : [[id, operation] as const]
    })
}

/** Converts the path of a list into the expression that counts its items. */
function countsOf({ rows, metered, bytesMax, timeoutSeconds }: Price): object {
  const row = rows && {
    expression: `min(size(${memberPath('answer', rows.path)}), ${typeof rows.most === 'number' ? rows.most : memberPath('request', rows.most)})`,
  }
  const counts = { ...(row ? { row } : {}), ...(metered === undefined ? {} : { metered: { expression: metered } }) }
  return {
    ...(Object.keys(counts).length > 0 ? { counts } : {}),
    ...(bytesMax === undefined ? {} : { bytesMax }),
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
  }
}

/** Converts `next-page.items` into `answer["next-page"].items`; an empty path means the whole answer. */
const memberPath = (root: string, path: string) =>
  path === '.'
    ? root
    : path
        .split('.')
        .reduce((of, name) => (/^[A-Za-z_]\w*$/.test(name) ? `${of}.${name}` : `${of}[${JSON.stringify(name)}]`), root)

/** An operator may enter an address in a private network; an address in a document must be public. */
function serverOf(server: string | undefined, unusable: string | undefined) {
  const why = server === undefined ? 'is not a whole web address' : 'is not a public address'
  const named = server === undefined ? unusable : isInternalUrl(server) ? server : undefined
  if (named === undefined) return { server: server ?? null, serverProblem: null }
  return { server: null, serverProblem: `The document names ${named.slice(0, 100)}, which ${why}.` }
}

function vendorOf(
  { vendor }: ProductBody,
  read: ImportedDocument | undefined,
): CatalogInput['vendors'][string] | undefined {
  const { baseUrl, credential, auth: where = read?.auth } = vendor
  const address = baseUrl ?? read?.server
  if (address === undefined) {
    if (vendor.name !== undefined) return undefined
    throw invalid('vendor.baseUrl: the document names no server; give the address of the API.', 'vendor.baseUrl')
  }
  if (baseUrl === undefined && isInternalUrl(address))
    throw invalid(
      `vendor.baseUrl: the document names ${address.slice(0, 100)}, which is not a public address; give the address of the API.`,
      'vendor.baseUrl',
    )
  const found = auth.safeParse(where)
  return {
    baseUrl: checkedAddress(address),
    ...(credential.name === undefined ? {} : { credential: credential.name }),
    ...(found.success ? { auth: found.data } : {}),
  }
}

/**
 * Replaces an existing product and the prices of its operations. Fields that the request does not have stay: costs,
 * further routes, `enabled`.
 */
function withProduct(current: CatalogInput, made: MadeProduct): Readonly<Record<string, unknown>> {
  const { id, product, endpoints, vendorName, vendor } = made
  const others = Object.entries(current.endpoints).filter(([name]) => !isOwn(current, id, name))
  const priced = Object.entries(endpoints).map(([name, one]) => {
    const { cache: _, routes = [], ...kept } = (isOwn(current, id, name) ? current.endpoints[name] : undefined) ?? {}
    const isSame = routes.some((route) => route.vendor === vendorName && route.protocol === one.routes[0].protocol)
    return [name, { ...kept, ...one, ...(isSame ? { routes } : {}) }] as const
  })
  const { description = current.products?.[id]?.description ?? '' } = made
  return {
    ...current,
    vendors: { ...current.vendors, ...(vendor ? { [vendorName]: mergedVendor(current, made) } : {}) },
    endpoints: Object.fromEntries([...others, ...priced]),
    products: { ...current.products, [id]: { ...product, description } },
  }
}

/** Removes a product with its prices, and its vendor if nothing else uses it. */
function withoutProduct(current: CatalogInput, id: string): CatalogInput {
  if (!Object.hasOwn(current.products ?? {}, id))
    throw new Fault('not_found', { message: `There is no product "${id}".` })
  const { [id]: _, ...products } = current.products ?? {}
  const all = Object.entries(current.endpoints)
  const others = all.filter(([name]) => !isOwn(current, id, name))
  const own = all.filter(([name]) => isOwn(current, id, name)).map(([, one]) => one)
  const vendorsOf = (priced: readonly { readonly routes: readonly { readonly vendor: string }[] }[]) =>
    priced.flatMap(({ routes }) => routes.map(({ vendor }) => vendor))
  const { models, toolServers = {} } = current
  const stay = [...vendorsOf(others.map(([, one]) => one)), ...vendorsOf(Object.values(models))]
  stay.push(...Object.values(toolServers).map(({ vendor }) => vendor))
  const gone = vendorsOf(own).filter((vendor) => !stay.includes(vendor))
  const vendors = Object.entries(current.vendors).filter(([name]) => !gone.includes(name))
  return { ...current, products, endpoints: Object.fromEntries(others), vendors: Object.fromEntries(vendors) }
}

/**
 * Merges the vendor into an existing one of that name, but only if the request names it or the product already uses it.
 * A vendor that has the product's name by chance is not changed.
 */
function mergedVendor(current: CatalogInput, { id, vendorName, isNamed, vendor }: MadeProduct) {
  const known = Object.hasOwn(current.vendors, vendorName) ? current.vendors[vendorName] : undefined
  const isMade = Object.entries(current.endpoints).some(
    ([name, { routes }]) => isOwn(current, id, name) && routes.some((route) => route.vendor === vendorName),
  )
  if (known && !isNamed && !isMade)
    throw new Fault('conflict', {
      message: `The catalog has a vendor "${vendorName}". Give the product another id, or name its vendor as vendor.name.`,
    })
  return { ...known, ...vendor } as CatalogInput['vendors'][string] // Called only where the product brings one.
}

const isOwn = ({ products = {} }: CatalogInput, id: string, name: string) =>
  Object.hasOwn(products, id) && Object.keys(products[id]?.operations ?? {}).some((one) => name === `${id}/${one}`)
