// Tool servers (MCP servers of others): registering them, listing their tools, choosing, pricing and approving tools.
// Everything except the listed tools is stored in the catalog.
import * as z from 'zod'
import { auth, type CatalogInput, credentialName, credentialsOf } from '../../../catalog/document.ts'
import type { Catalog } from '../../../catalog/store.ts'
import type { By } from '../../../database/audit.ts'
import type { CoreParts } from '../../../extension.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { page } from '../../../kernel/view.ts'
import { type Resource, requireRight, resource, secret, text } from '../../../operator/resource.ts'
import { checkedAddress, mayAllGo } from '../../../operator/resources/credential-moves.ts'
import type { VendorHealth } from '../../../routing/vendor.ts'
import { type ForeignTool, type ToolServerView, toolServerView } from '../views.ts'
import type { SeenTool, ToolServers } from './lists.ts'
import { definitionChanges, serverName, slugOf, toolId } from './section.ts'

export interface ToolServerDeps extends Pick<CoreParts, 'catalog' | 'credentials'> {
  readonly toolServers: ToolServers
  readonly vendorHealth: () => readonly VendorHealth[]
}

const registration = z.strictObject({
  url: z
    .string()
    .max(2000)
    .optional()
    .meta({ description: 'Its address (MCP over Streamable HTTP)', value: 'address' }),
  title: text(100, 0).optional().describe('The name of the server that agents read in its tools'),
  auth: z
    .union([auth, z.literal('person')])
    .optional()
    .describe('`person`: each person signs in there (OAuth).'),
  credential: z
    .strictObject({
      name: credentialName
        .optional()
        .meta({
          description: 'A stored credential, or a variable of the environment',
          option: 'credential',
          value: 'NAME',
        }),
      value: secret
        .optional()
        .meta({ description: 'Its credential, stored encrypted', read: 'input', option: 'key-stdin' }),
    })
    .optional(),
  timeoutMs: z
    .number()
    .int()
    .min(100)
    .max(600_000)
    .optional()
    .meta({ description: 'A call that takes longer is an error; 60000 by default', option: 'timeout', value: 'ms' }),
  concurrencyMax: z
    .number()
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .meta({ description: 'Calls at once; 20 by default', option: 'concurrency' }),
  resultBytesMax: z
    .number()
    .int()
    .optional()
    .meta({ description: 'The largest result; 1048576 by default', option: 'bytes' }),
})
type Registration = z.output<typeof registration>

const choice = z.strictObject({
  tool: text(128),
  digest: z.string().max(64).optional().describe('Agrees to the definition that the server lists now, by its digest.'),
  pricing: z
    .record(z.string(), z.unknown())
    .nullable()
    .optional()
    .describe('In the form of the catalog; null: it is not listed.'),
  cost: z.record(z.string(), z.unknown()).optional().describe('What the server takes, in the form of the catalog.'),
  resultsMax: z.number().int().optional().describe('Results beyond these are not charged; the hold covers so many.'),
  enabled: z.boolean().optional(),
  remove: z.literal(true).optional(),
})
type Choice = z.output<typeof choice>

export function toolServerResources(deps: ToolServerDeps): Resource[] {
  const { catalog, credentials, toolServers } = deps
  const viewServer = (name: string) => viewOf(name, deps)
  return [
    resource('GET /tool-servers', 'vendors:read', {
      title: 'List tool servers',
      answer: page(toolServerView),
      run: () => ({ items: Object.keys(catalog.current.document.toolServers).map(viewServer), next: null }),
    }),
    resource('GET /tool-servers/{name}', 'vendors:read', {
      title: 'Show a tool server and its tools',
      answer: toolServerView,
      run: ({ params: { name } }) => viewServer(name),
    }),
    resource('PUT /tool-servers/{name}', 'vendors:write', {
      title: 'Register a tool server',
      body: registration,
      answer: toolServerView,
      async run({ params: { name }, body, actor, by }) {
        if (body.credential?.value !== undefined) requireRight(actor, 'vendor-credentials:write')
        const checked = serverName.safeParse(name)
        if (!checked.success) throw invalid(`name: ${checked.error.issues[0]?.message}.`, 'name')
        await register(name, body, by, deps)
        await credentials.noticed()
        await toolServers.look(name)
        return viewServer(name)
      },
    }),
    resource('POST /tool-servers/{name}/refresh', 'vendors:write', {
      title: 'Read a tool server’s tools again',
      answer: toolServerView,
      async run({ params: { name } }) {
        await toolServers.look(name)
        return viewServer(name)
      },
    }),
    resource('PUT /tool-servers/{name}/tools', 'catalog:write', {
      title: 'Choose the tools of a server and their prices',
      body: choice,
      answer: toolServerView,
      async run({ params: { name }, body, by }) {
        const seen = toolServers.listings.get(name)?.tools.find(({ tool }) => tool === body.tool)
        const note = `${name}: ${body.tool} ${body.remove ? 'removed' : body.digest ? 'agreed to' : 'changed'}`
        await catalog.amend((current) => withChoice(current, name, body, seen), by, note.slice(0, 200))
        return viewServer(name)
      },
    }),
    resource('DELETE /tool-servers/{name}', 'vendors:write', {
      title: 'Remove a tool server',
      answer: z.object({ removed: z.literal(true) }),
      async run({ params: { name }, by }) {
        await catalog.amend((current) => withoutServer(current, name), by, `tool server ${name} removed`)
        return { removed: true as const }
      },
    }),
  ]
}

type ServerInput = NonNullable<CatalogInput['toolServers']>[string]

function serverIn({ toolServers = {} }: CatalogInput, name: string): ServerInput {
  const server = Object.hasOwn(toolServers, name) ? toolServers[name] : undefined
  if (!server) throw new Fault('not_found', { message: `There is no tool server "${name}".` })
  return server
}

/** Changes server, vendor and credential in one transaction. Fields that are not given stay as they are. */
async function register(
  name: string,
  body: Registration,
  by: By,
  { catalog, credentials }: ToolServerDeps,
): Promise<void> {
  await catalog.amend(
    async (current, tx) => {
      const server = Object.hasOwn(current.toolServers ?? {}, name) ? serverIn(current, name) : undefined
      if (!server && Object.hasOwn(current.vendors, name))
        throw new Fault('conflict', { message: `The catalog has a vendor "${name}"; give the server another name.` })
      const vendorName = server?.vendor ?? name
      const known = current.vendors[vendorName]
      if (!known && body.url === undefined) throw invalid('url: is missing.', 'url')
      const baseUrl = body.url === undefined ? (known?.baseUrl ?? '') : checkedAddress(body.url)
      const { value } = body.credential ?? {}
      const made = value === undefined ? undefined : `MCP_${name.toUpperCase().replaceAll('-', '_')}_TOKEN`
      const credential = body.credential?.name ?? known?.credential ?? made
      const totalMs = body.timeoutMs ?? known?.timeouts?.totalMs ?? 60_000
      const vendor = {
        ...known,
        baseUrl,
        ...(credential === undefined ? {} : { credential }),
        ...(body.auth === undefined || body.auth === 'person' ? {} : { auth: body.auth }),
        timeouts: { connectMs: Math.min(5_000, totalMs), firstByteMs: totalMs, idleMs: totalMs, totalMs },
        concurrencyMax: body.concurrencyMax ?? known?.concurrencyMax ?? 20,
        // Bounds the calls that wait for a server that does not answer.
        pendingMax: known?.pendingMax ?? 100,
      }
      await mayAllGo(vendor, { name: credential, value }, { current, credentials })
      if (credential !== undefined && value !== undefined && credentials.source(credential) !== 'env')
        await credentials.storeWith(tx, credential, value, by)
      const { title, resultBytesMax } = body
      const { auth: knownAuth, ...kept } = server ?? {}
      const isPersonal = body.auth === undefined ? knownAuth === 'person' : body.auth === 'person'
      return {
        ...current,
        vendors: { ...current.vendors, [vendorName]: vendor },
        toolServers: {
          ...current.toolServers,
          [name]: {
            ...kept,
            ...(isPersonal ? { auth: 'person' as const } : {}),
            vendor: vendorName,
            ...(title ? { title } : {}),
            ...(resultBytesMax === undefined ? {} : { resultBytesMax }),
          },
        },
      }
    },
    by,
    `tool server ${name}`,
  )
}

function withoutServer(current: CatalogInput, name: string): CatalogInput {
  const { vendor } = serverIn(current, name)
  const { [name]: _, ...toolServers } = current.toolServers ?? {}
  const endpoints = Object.entries(current.endpoints).filter(([id]) => !id.startsWith(toolId(name, '')))
  const isUsed = endpoints.some(([, { routes }]) => routes.some((route) => route.vendor === vendor))
  const vendors = Object.entries(current.vendors).filter(([one]) => one !== vendor || isUsed)
  return { ...current, toolServers, endpoints: Object.fromEntries(endpoints), vendors: Object.fromEntries(vendors) }
}

function withChoice(current: CatalogInput, name: string, body: Choice, seen: SeenTool | undefined): CatalogInput {
  const server = serverIn(current, name)
  const tools = server.tools ?? {}
  const known = Object.entries(tools).find(([, { tool }]) => tool === body.tool)
  const slug = known?.[0] ?? slugOf(body.tool, new Set(Object.keys(tools)))
  const id = toolId(name, slug)
  const { [id]: price, ...endpoints } = current.endpoints
  if (body.remove) {
    const { [slug]: _, ...rest } = tools
    return { ...current, endpoints, toolServers: { ...current.toolServers, [name]: { ...server, tools: rest } } }
  }
  if (!known && body.digest === undefined)
    throw invalid('digest: is missing. It says to which definition of the tool you agree.', 'digest')
  if (body.digest !== undefined && (!seen?.definition || seen.digest !== body.digest))
    throw new Fault('conflict', {
      message: `The server does not list this definition of "${body.tool}" now. Nothing was changed; look at it again.`,
    })
  const agreed = body.digest === undefined ? known?.[1] : { ...known?.[1], ...ABSENT, ...seen?.definition }
  const sold = { ...agreed, tool: body.tool, ...(body.resultsMax === undefined ? {} : { resultsMax: body.resultsMax }) }
  const pricing = body.pricing === undefined ? price?.pricing : body.pricing
  const entry = {
    ...price,
    pricing,
    ...(body.enabled === undefined ? {} : { enabled: body.enabled }),
    routes: [{ vendor: server.vendor, protocol: 'mcp', model: body.tool, ...costOf(body, price) }],
  }
  // Prices and fields are checked with the whole catalog document.
  return {
    ...current,
    endpoints: pricing ? { ...endpoints, [id]: entry } : endpoints,
    toolServers: { ...current.toolServers, [name]: { ...server, tools: { ...tools, [slug]: sold } } },
  } as CatalogInput
}

/** Of a definition that is replaced nothing stays. */
const ABSENT = { title: undefined, outputSchema: undefined }

function costOf({ cost }: Choice, price: CatalogInput['endpoints'][string] | undefined) {
  const kept = cost ?? price?.routes[0]?.cost
  return kept === undefined ? {} : { cost: kept }
}

function viewOf(name: string, { catalog, credentials, toolServers, vendorHealth }: ToolServerDeps): ToolServerView {
  const { document } = catalog.current
  const server = Object.hasOwn(document.toolServers, name) ? document.toolServers[name] : undefined
  const vendor = server && document.vendors[server.vendor]
  if (!server || !vendor) throw new Fault('not_found', { message: `There is no tool server "${name}".` })
  const listing = toolServers.listings.get(name)
  const [credential] = credentialsOf(vendor)
  const health = vendorHealth().find((one) => one.name === server.vendor)
  const chosen = Object.values(server.tools).map(({ tool }) => tool)
  const all = [...new Set([...chosen, ...(listing?.tools ?? []).map(({ tool }) => tool)])]
  return {
    name,
    title: server.title ?? null,
    url: vendor.baseUrl,
    vendor: server.vendor,
    credential: credential ? { name: credential.name, present: credentials.source(credential.name) !== 'none' } : null,
    perUserSignIn: server.auth === 'person',
    timeoutMs: vendor.timeouts.totalMs,
    concurrencyMax: vendor.concurrencyMax,
    resultBytesMax: server.resultBytesMax,
    lastRequestedAt: listing?.lastRequestedAt.toISOString() ?? null,
    lastAnsweredAt: listing?.lastAnsweredAt?.toISOString() ?? null,
    error: listing?.error ?? null,
    calls: { requests: health?.requests ?? 0, errors: health?.errors ?? 0, lastError: health?.lastError ?? null },
    tools: all.map((tool) => toolView(name, tool, catalog.current, toolServers)),
  }
}

function toolView(server: string, tool: string, { document, input }: Catalog, toolServers: ToolServers): ForeignTool {
  const [slug, sold] =
    Object.entries(document.toolServers[server]?.tools ?? {}).find(([, one]) => one.tool === tool) ?? []
  const seen = toolServers.listings.get(server)?.tools.find((one) => one.tool === tool)
  const id = slug === undefined ? null : toolId(server, slug)
  const price = id === null ? undefined : document.endpoints[id]
  const held = sold && toolServers.heldBack({ server, sold })
  const offer = !price ? 'unpriced' : price.enabled ? 'listed' : 'off'
  const defined = sold ?? seen?.definition
  return {
    tool,
    id,
    state: sold ? (held ?? offer) : seen?.definition ? 'not-chosen' : 'unusable',
    title: defined?.title ?? null,
    description: defined?.description ?? '',
    inputSchema: { ...defined?.inputSchema },
    outputSchema: defined?.outputSchema ? { ...defined.outputSchema } : null,
    readOnly: defined?.readOnly ?? false,
    pricing: (id === null ? undefined : input.endpoints[id]?.pricing) ?? null,
    resultsMax: sold?.resultsMax ?? null,
    digest: seen?.digest ?? null,
    changes: sold && seen?.definition ? definitionChanges(sold, seen.definition) : [],
    problem: seen?.problem ?? null,
  }
}
