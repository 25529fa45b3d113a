// Reads the tool lists of other MCP servers and compares them with the definitions that the operator agreed to. A tool
// that changed or is gone is held back in every process until the operator agrees. One process reads the lists, the
// others use its results.

import type { CatalogStore } from '../../../catalog/store.ts'
import { sql } from '../../../database/database.ts'
import type { CoreParts } from '../../../extension.ts'
import { asFault, Fault } from '../../../kernel/fault.ts'
import { NEVER } from '../../../kernel/timers.ts'
import type { Target } from '../../../protocols/protocol.ts'
import { loggedIn, vendorCall } from '../../../protocols/vendor-call.ts'
import { withoutSecrets } from '../../../protocols/vendor-words.ts'
import { type RouteSources, targetOf } from '../../../routing/route.ts'
import { loginProblem } from '../../../upstream/login.ts'
import { createToolClient, statusOf, type ToolClient } from './client.ts'
import { type ConnectionOwner, needed, type SignIns, type ToolConnections } from './connections.ts'
import {
  definitionDigest,
  readDefinition,
  type ServerToolSpec,
  TOOLS_MAX,
  type ToolDefinition,
  visible,
} from './section.ts'

export interface SeenTool {
  readonly tool: string
  /** Absent: it cannot be sold. */
  readonly definition?: ToolDefinition
  readonly digest?: string
  readonly problem?: string
}

interface Listing {
  readonly lastRequestedAt: Date
  /** The last time that it answered; null: never. */
  readonly lastAnsweredAt: Date | null
  readonly error: string | null
  readonly tools: readonly SeenTool[]
}

type HeldBack = 'changed' | 'gone'

interface Caller extends ConnectionOwner {
  /**
   * The person created the key of this call. Others may know the value of a key that somebody else created or assigned.
   */
  readonly isOwn?: boolean | undefined
}

export type ToolServers = Awaited<ReturnType<typeof openToolServers>>

const LOOK = {
  deadlines: { connectMs: 5_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 30_000 },
  signal: NEVER,
  bytesMax: 4 * 1024 * 1024,
  toolsMax: TOOLS_MAX,
} as const
const ERROR_CHARS_MAX = 300

const ALL = sql('tool_listing_all')`select server, looked_at, seen_at, error, tools from tool_listing`
const CLAIM = sql('tool_listing_claim')`
  insert into tool_listing (server) values ($1) on conflict (server) do update set looked_at = now()
   where tool_listing.looked_at < now() - interval '5 minutes' returning server`
const SEEN = sql('tool_listing_seen')`insert into tool_listing (server, seen_at, tools) values ($1, now(), $2)
   on conflict (server) do update set looked_at = now(), seen_at = now(), error = null, tools = excluded.tools`
const FAILED = sql('tool_listing_failed')`insert into tool_listing (server, error) values ($1, $2)
   on conflict (server) do update set looked_at = now(), error = excluded.error`
const FORGET = sql('tool_listing_forget')`delete from tool_listing where not server = any($1)`

interface ToolListingRow {
  server: string
  looked_at: Date
  seen_at: Date | null
  error: string | null
  tools: SeenTool[]
}

interface Deps
  extends Pick<CoreParts, 'database' | 'changes' | 'audit' | 'log' | 'upstream' | 'logins' | 'world' | 'publicUrl'> {
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly connections: Pick<ToolConnections, 'of'>
  readonly sources: Pick<RouteSources, 'sandboxUrl' | 'credential'>
}

export async function openToolServers(deps: Deps) {
  const { database, changes, audit, log, catalog, sources } = deps
  const client = createToolClient(deps)
  let listings = new Map<string, Listing>()

  async function read(): Promise<void> {
    const rows = await database.query<ToolListingRow>(ALL)
    listings = new Map(
      rows.map(({ server, looked_at: lastRequestedAt, seen_at: lastAnsweredAt, error, tools }) => [
        server,
        { lastRequestedAt, lastAnsweredAt, error, tools },
      ]),
    )
  }
  changes.watch('tool-servers', read)
  await read()

  /** Why a tool is not sold now; undefined: it is. */
  function heldBack({ server, sold }: Pick<ServerToolSpec, 'server' | 'sold'>): HeldBack | undefined {
    const listing = listings.get(server)
    if (!listing?.lastAnsweredAt) return undefined
    const seen = listing.tools.find(({ tool }) => tool === sold.tool)
    if (!seen) return 'gone'
    return seen.digest === definitionDigest(sold) ? undefined : 'changed'
  }

  /** Those of the server that are not sold now, each with why. */
  function allHeld(server: string): Record<string, HeldBack> {
    const { tools = {} } = catalog.current.document.toolServers[server] ?? {}
    return Object.fromEntries(
      Object.values(tools).flatMap((sold) => {
        const why = heldBack({ server, sold })
        return why === undefined ? [] : [[sold.tool, why] as const]
      }),
    )
  }

  /**
   * If each person signs in, the operator's own sign-in is used to read the list; without one, the vendor's credential
   * if it has one.
   */
  async function listed(
    server: string,
    target: Target,
    isAgain = false,
  ): Promise<Awaited<ReturnType<ToolClient['list']>>> {
    const at = await loggedIn(target, deps)
    const isPersonal = catalog.current.document.toolServers[server]?.auth === 'person'
    const signIns = isPersonal ? await deps.connections.of(null) : undefined
    const token = signIns?.find(null, { name: server, url: at.baseUrl })
    const headers = token ? { authorization: `Bearer ${await token()}` } : {}
    return client.list(vendorCall({ method: 'POST', url: at.baseUrl, headers }, at), LOOK).catch((error: unknown) => {
      // A token that the server revoked early is renewed once, as for calls.
      if (!isAgain && statusOf(error) === 401 && at.dropToken?.()) return listed(server, target, true)
      throw new Failure(lookError(error, { ...at, headers: { ...at.headers, ...headers } }))
    })
  }

  /**
   * The caller's token for a server at which each person signs in. Throws if they have not signed in, before anything
   * is held.
   */
  function tokenFor({ isOwn, account, person }: Caller, name: string, signIns: SignIns | undefined) {
    const { toolServers, vendors } = catalog.current.document
    const server = toolServers[name]
    if (server?.auth !== 'person') return undefined
    const isTheirs = person === null || isOwn === true
    const at = { name, url: vendors[server.vendor]?.baseUrl ?? '' }
    const token = isTheirs ? signIns?.find(person, at) : undefined
    if (token) return token
    const how = isTheirs ? '' : ', and use a key that you made yourself; this one is from somebody else'
    throw needed(name, `open ${deps.publicUrl()}/console/a/${account}/sign-ins${how}`)
  }

  async function look(server: string): Promise<void> {
    const target = targetAt(server)
    const before = allHeld(server)
    const seen = await listed(server, target).then(
      (tools) => JSON.stringify(tools.map(seenTool)),
      (error: unknown) => (error instanceof Failure ? error : new Failure(lookError(error, target))),
    )
    if (seen instanceof Failure) await database.query(FAILED, [server, seen.message])
    else await database.query(SEEN, [server, seen])
    await database.transaction((tx) => changes.bump(tx, 'tool-servers'))
    await changes.notice('tool-servers')
    const after = allHeld(server)
    if (JSON.stringify(before) === JSON.stringify(after)) return
    log.warn(
      { server, held: after, alert: Object.keys(after).length > 0 },
      'tools of a tool server changed; those in "held" are not listed',
    )
    await database.transaction((tx) =>
      audit.write(
        tx,
        { actor: 'system', ip: null, requestId: null },
        { action: 'tool-server.look', object: server, before, after },
      ),
    )
  }

  function targetAt(server: string): Target {
    const { toolServers, vendors } = catalog.current.document
    const vendor = vendors[toolServers[server]?.vendor ?? '']
    if (!vendor) throw new Fault('not_found', { message: `There is no tool server "${server}".` })
    const [several] = vendor.credentials ?? []
    const route = { vendor: '', protocol: 'mcp', order: 0, weight: 1, enabled: true } as const
    return targetOf(route, several ? { ...vendor, credential: several.name } : vendor, '', sources)
  }

  return {
    client,
    heldBack,
    /** Those of an account, from which its callers' tokens come. */
    signInsOf: (account: string) => deps.connections.of(account),
    tokenFor,
    look,
    /** By server; another map whenever one may have changed. */
    get listings(): ReadonlyMap<string, Listing> {
      return listings
    },
    /** Reads the lists that are due. */
    async lookAround(): Promise<void> {
      const names = Object.keys(catalog.current.document.toolServers)
      if (names.length === 0 && listings.size === 0) return
      await database.query(FORGET, [names])
      // A server that is slow to answer does not keep the others waiting.
      await Promise.allSettled(
        names.map(async (server) => {
          const [claimed] = await database.query(CLAIM, [server])
          if (claimed) await look(server)
        }),
      )
    },
  }
}

class Failure extends Error {}

function seenTool(given: Parameters<typeof readDefinition>[0]): SeenTool {
  const read = readDefinition(given)
  const tool = visible(given.name).slice(0, 128).toWellFormed()
  return typeof read === 'string' ? { tool, problem: read } : { tool, definition: read, digest: definitionDigest(read) }
}

/** For operators: without the credential. */
function lookError(error: unknown, target: Target): string {
  const fault = error instanceof Fault ? error : undefined
  const status = statusOf(error)
  const { message } = error as Error // Errors only are thrown.
  const said =
    status !== undefined
      ? `HTTP ${status}`
      : ((fault && loginProblem(fault)) ??
        String(fault?.details.internal?.why ?? (fault ? asFault(fault).message : message)))
  return visible(withoutSecrets(said, target)).slice(0, ERROR_CHARS_MAX).toWellFormed()
}
