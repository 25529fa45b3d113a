// The MCP server, for both the older and the current protocol revisions. It is stateless: a new server object answers
// each request, so any process can answer any request, and a crash loses only the calls in flight.
import {
  createMcpHandler,
  isInputRequiredResult,
  type Tool as Listed,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
  type ServerOptions,
} from '@modelcontextprotocol/server'
import { readIdempotencyKey } from '../../../admission/idempotency.ts'
import { logFault } from '../../../api/server/envelope.ts'
import type { CoreParts } from '../../../extension.ts'
import { type Credits, parseCredits } from '../../../kernel/credits.ts'
import { asFault, Fault, invalid } from '../../../kernel/fault.ts'
import { VERSION } from '../../../kernel/version.ts'
import { newId } from '../../../kernel/world.ts'
import type { FetchCall } from '../fetch-route.ts'
import type { Prompt, Resource } from './mcp.ts'
import { type Arguments, answered, InputNeeded, refused, runTool, type Tool, type ToolCaller } from './tool.ts'

interface Offer extends Pick<CoreParts, 'world' | 'log'> {
  /** Undefined: this client's key has no tool of that name. */
  readonly tool: (guest: ToolCaller, name: string) => Tool | undefined
  /** The tools that this client sees. */
  readonly list: (guest: ToolCaller) => Listed[]
  readonly resources: readonly Resource[]
  readonly prompts: readonly Prompt[]
  readonly instructions: string
  readonly options?: Pick<ServerOptions, 'requestState'>
}

const BATCH_MAX = 20
/** Limit on open subscription streams. They stay silent, because the listing changes only with the catalog. */
const SUBSCRIPTIONS_MAX = 100
const IDEMPOTENCY_KEY = 'tollgate/idempotencyKey'
const CHARS_SHOWN = 64
const CLIENT_CHARS_MAX = 80

export function createTransport(offer: Offer): (call: FetchCall) => Promise<Response> {
  const guests = new WeakMap<Request, ToolCaller>()
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const guest = requestInfo && guests.get(requestInfo)
      if (!guest) throw new Error('a request that nobody let in')
      return serverFor(guest, offer)
    },
    { maxSubscriptions: SUBSCRIPTIONS_MAX },
  )
  return async ({ request, json, principal, requestId }) => {
    if (Array.isArray(json) && json.length > BATCH_MAX) throw invalid(`A batch has at most ${BATCH_MAX} messages.`)
    const ids = [requestId]
    const url = new URL(request.url)
    guests.set(request, {
      principal,
      signal: request.signal,
      headers: Object.fromEntries(request.headers),
      newRequestId: () => ids.pop() ?? `req_${newId(offer.world)}`,
      path: url.pathname,
      query: url.searchParams,
    })
    return handler.fetch(request, { parsedBody: json })
  }
}

function serverFor(guest: ToolCaller, offer: Offer): Server {
  const server = new Server(
    { name: 'tollgate', title: 'Tollgate', version: VERSION },
    { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions: offer.instructions, ...offer.options },
  )
  /** The client is told that something broke, and the log what. */
  async function discreet<Made>(make: () => Made | Promise<Made>): Promise<Made> {
    try {
      return await make()
    } catch (error) {
      const fault = asFault(error)
      logFault(fault, guest.newRequestId(), offer.log)
      throw new ProtocolError(ProtocolErrorCode.InternalError, fault.message)
    }
  }
  server.setRequestHandler('tools/list', async () => ({ tools: await discreet(() => offer.list(guest)) }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = await discreet(() => offer.tool(guest, params.name))
    if (!tool) throw unknown('tool', params.name)
    // In older protocol revisions a request does not carry the client's capabilities.
    const canAsk = server.getClientCapabilities()?.elicitation !== undefined
    const client = clientOf(guest, server.getClientVersion()?.name)
    const result = await callTool(tool, params.arguments ?? {}, { guest, context, offer, canAsk, client })
    return isInputRequiredResult(result) ? result : server.projectCallToolResult(result, tool.output)
  })
  server.setRequestHandler('resources/list', () => ({
    resources: offer.resources.filter(({ template }) => !template).map(({ read: _, template: __, ...facts }) => facts),
  }))
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: offer.resources
      .filter(({ template }) => template)
      .map(({ read: _, template: __, uri, ...facts }) => ({ ...facts, uriTemplate: uri })),
  }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const resource = offer.resources.find((one) => (one.template ? one.template.match(uri) : one.uri === uri))
    if (!resource) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, mimeType: resource.mimeType, ...(await discreet(() => resource.read(guest, uri))) }] }
  })
  server.setRequestHandler('prompts/list', () => ({ prompts: offer.prompts.map(({ write: _, ...facts }) => facts) }))
  server.setRequestHandler('prompts/get', ({ params }, context) => {
    const prompt = offer.prompts.find(({ name }) => name === params.name)
    if (!prompt) throw unknown('prompt', params.name)
    const given = params.arguments ?? {}
    const missing = prompt.arguments.find(({ name, required }) => required && !given[name])
    if (missing) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `"${missing.name}" is required.`)
    try {
      return { description: prompt.description, messages: prompt.write(given, context.mcpReq) }
    } catch (error) {
      if (error instanceof InputNeeded) return error.result
      throw error
    }
  })
  return server
}

function unknown(what: string, name: string): ProtocolError {
  const shown = JSON.stringify(name.slice(0, CHARS_SHOWN))
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no ${what} ${shown}.`)
}

interface Calling {
  readonly guest: ToolCaller
  readonly context: ServerContext
  readonly offer: Offer
  readonly canAsk: boolean
  readonly client: string
}

async function callTool(tool: Tool, given: Arguments, { guest, context: { mcpReq }, offer, canAsk, client }: Calling) {
  const requestId = guest.newRequestId()
  try {
    const { max_cost: costMax, ...args } = given
    const token = mcpReq._meta?.progressToken
    const answer = await runTool(tool, {
      ...guest,
      requestId,
      args,
      canAsk,
      client,
      request: mcpReq,
      // A client may take a request back without leaving.
      signal: AbortSignal.any([guest.signal, mcpReq.signal]),
      costMax: readCost(costMax),
      idempotencyKey: readIdempotencyKey(keyOf(mcpReq._meta) ?? guest.headers['idempotency-key']),
      progress(done, total, message) {
        if (token === undefined) return
        const about = { ...(total === undefined ? {} : { total }), ...(message === undefined ? {} : { message }) }
        const params = { progressToken: token, progress: done, ...about }
        // A failure is ignored: the client has disconnected.
        mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
      },
    })
    return answered({ ...answer, structured: asPromised(answer.structured, tool) }, requestId)
  } catch (error) {
    if (error instanceof InputNeeded) return error.result
    // Only protocol errors are thrown; a tool's own failure is returned as an answer.
    if (error instanceof ProtocolError) throw error
    const fault = asFault(error)
    if (!guest.signal.aborted) logFault(fault, requestId, offer.log)
    return refused(fault, requestId)
  }
}

/** In older protocol revisions a request does not name its program, so the session id or the user agent stands in. */
function clientOf({ headers }: ToolCaller, name: string | undefined): string {
  const said = headers['mcp-session-id'] || name || headers['user-agent']?.split(' ')[0] || ''
  return said
    .replaceAll(/[\p{Cc}\p{Cf}]/gu, '')
    .trim()
    .slice(0, CLIENT_CHARS_MAX)
    .toWellFormed()
}

/**
 * Wraps a value that is not an object if the listing promises one, e.g. after an unexpected vendor answer or a call
 * through the discovery tool.
 */
function asPromised(value: unknown, { output }: Tool): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return output?.type === 'object' && !isObject ? { result: value } : value
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
  throw new Fault('request_invalid', { message: `"${IDEMPOTENCY_KEY}" must be a text.`, param: IDEMPOTENCY_KEY })
}
