// The Model Context Protocol: every endpoint as a tool. Stateless: each request is answered by a server of its own that is made
// for it, so that any process answers any request, and nothing is lost with a process but the calls that it ran.
import {
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Principal } from '../admission/api-key.ts'
import { readIdempotencyKey } from '../admission/idempotency.ts'
import type { AccountDeps } from '../http/account.ts'
import type { FetchCall } from '../http/fetch-route.ts'
import { logFault } from '../http/server.ts'
import type { JobEngine } from '../jobs/engine.ts'
import { type Credits, parseCredits } from '../kernel/credits.ts'
import { asFault, invalid } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { VERSION } from '../kernel/version.ts'
import { newId } from '../kernel/world.ts'
import { accountTools } from './account-tools.ts'
import { dataTools } from './data-tools.ts'
import { type Choice, discoveryTools, isChosen, listed, SUBSETS } from './listing.ts'
import { mediaTools } from './media-tools.ts'
import type { PaidDeps } from './paid-call.ts'
import { answered, refused } from './result.ts'
import { type Arguments, checkNames, type Tool, type ToolCall, type Visit } from './tool.ts'

export interface McpDeps extends PaidDeps, AccountDeps {
  readonly jobs: Pick<JobEngine, 'jobs' | 'events' | 'results'>
  readonly log: Log
}

const INSTRUCTIONS =
  'Tollgate sells website analytics, search keywords, social profiles and posts, images, videos and answers of other models. Every paid call has a price in credits, which its description tells; quote and get_balance are free. Give max_cost to bound a call. Errors say what to do next, and cost nothing.'
const BATCH_MAX = 20
/** Streams on which nothing is ever said, because the listing changes with the catalogue only. */
const SUBSCRIPTIONS_MAX = 100
const IDEMPOTENCY_KEY = 'tollgate/idempotencyKey'

interface Guest extends Visit {
  readonly choice: Choice
}

export function createMcp(deps: McpDeps): (call: FetchCall) => Promise<Response> {
  const tools: Tool[] = [...dataTools(deps), ...mediaTools(deps), ...accountTools(deps, () => tools)]
  const current = () => deps.catalog.current
  const offered = (principal: Principal) => tools.filter((tool) => tool.offered(principal, current()))
  const discovery = discoveryTools(offered, current, run)
  const byName = new Map([...tools, ...discovery].map((tool) => [tool.name, tool]))
  const guests = new WeakMap<Request, Guest>()

  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const guest = requestInfo && guests.get(requestInfo)
      if (!guest) throw new Error('a request that nobody let in')
      return serverFor(guest)
    },
    { maxSubscriptions: SUBSCRIPTIONS_MAX },
  )

  function serverFor(guest: Guest): Server {
    const server = new Server(
      { name: 'tollgate', title: 'Tollgate', version: VERSION },
      { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
    )
    server.setRequestHandler('tools/list', () => ({ tools: listFor(guest) }))
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const tool = byName.get(params.name)
      if (!tool)
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          `There is no tool ${JSON.stringify(params.name.slice(0, 64))}.`,
        )
      const result = await callTool(tool, params.arguments ?? {}, guest, context)
      return server.projectCallToolResult(result, tool.output)
    })
    return server
  }

  function listFor({ principal, choice }: Guest) {
    const catalog = current()
    const pair = discovery.filter((tool) => choice.subset === 'discover' || choice.names?.includes(tool.name))
    return [...pair, ...offered(principal).filter((tool) => isChosen(tool, choice))].map((tool) =>
      listed(tool, catalog),
    )
  }

  async function callTool(tool: Tool, given: Arguments, guest: Guest, { mcpReq }: ServerContext) {
    const requestId = guest.newRequestId()
    try {
      const { max_cost: costMax, ...args } = given
      const token = mcpReq._meta?.progressToken
      const answer = await run(tool, {
        ...guest,
        requestId,
        args,
        costMax: readCost(costMax),
        idempotencyKey: readIdempotencyKey(keyOf(mcpReq._meta) ?? guest.header('idempotency-key')),
        progress(done, total, message) {
          if (token === undefined) return
          const params = { progressToken: token, progress: done, total, message }
          // Whoever has gone hears nothing more.
          mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
        },
      })
      return answered({ ...answer, structured: asPromised(answer.structured, tool) }, requestId)
    } catch (error) {
      const fault = asFault(error)
      if (!guest.signal.aborted) logFault(fault, requestId, deps.log)
      return refused(fault, requestId)
    }
  }

  return async (call) => {
    const { request, json, principal } = call
    if (Array.isArray(json) && json.length > BATCH_MAX) throw invalid(`A batch has at most ${BATCH_MAX} messages.`)
    const ids = [call.requestId]
    guests.set(request, {
      principal,
      signal: request.signal,
      header: (name) => request.headers.get(name) ?? undefined,
      newRequestId: () => ids.pop() ?? `req_${newId(deps.path.world)}`,
      choice: choiceOf(new URL(request.url)),
    })
    return handler.fetch(request, { parsedBody: json })
  }
}

/** With what the endpoints do not check themselves. */
function run(tool: Tool, call: ToolCall): ReturnType<Tool['run']> {
  // Data endpoints refuse unknown names by themselves, and say which were meant.
  if (tool.group !== 'analytics' && tool.group !== 'social') checkNames(tool, call.args)
  return tool.run(call)
}

/** What a listing promises as an object is one, also when a vendor surprises us, or another tool was called. */
function asPromised(value: unknown, { output }: Tool): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return output.type === 'object' && !isObject ? { result: value } : value
}

function readCost(given: unknown): Credits | undefined {
  if (given === undefined || given === null) return undefined
  const cost = parseCredits(given)
  if (cost === undefined || cost < 0n)
    throw invalid('"max_cost" must be an amount of credits, such as 0.5, with at most six decimals.', 'max_cost')
  return cost
}

function keyOf(meta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const key = meta?.[IDEMPOTENCY_KEY]
  if (key === undefined || typeof key === 'string') return key
  throw invalid(`"${IDEMPOTENCY_KEY}" must be a text.`)
}

function choiceOf(url: URL): Choice {
  const last = url.pathname.split('/').filter(Boolean).at(-1)
  const names = url.searchParams.get('tools')
  return {
    subset: SUBSETS.find((subset) => subset === last),
    names: names?.split(',').map((name) => name.trim()),
  }
}
