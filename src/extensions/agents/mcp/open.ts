// The protocol's paths. The MCP library is loaded at the first request only: loading it takes 20 MB of memory and slows
// each start, and most gateways never use it.

import { jsonBody } from '../../../api/server/body.ts'
import type { WebServer } from '../../../api/server/server.ts'
import type { Tokens } from '../../../identity/tokens.ts'
import type { Log } from '../../../kernel/log.ts'
import { ADMIN_PREFIX, tokenActor } from '../../../operator/admin.ts'
import { type FetchCall, messageOf } from '../fetch-route.ts'
import { SUBSETS } from './listing.ts'
import type { McpDeps } from './mcp.ts'

export const MCP_PATHS: readonly [string, ...string[]] = ['/mcp', ...SUBSETS.map((subset) => `/mcp/${subset}`)]

type Answer = (call: FetchCall) => Promise<Response>

export function openMcp(
  deps: McpDeps,
  load: () => Promise<Answer> = async () => (await import('./mcp.ts')).createMcp(deps),
): Answer {
  let loading: ReturnType<typeof load> | undefined
  return async (call) => {
    // A failed load (a file that was being replaced, no memory left) is retried by the next call.
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return (await loading)(call)
  }
}

export interface OwnToolDeps {
  readonly tokens: Pick<Tokens, 'use'>
  readonly log: Log
}

const BODY_BYTES_MAX = 65_536

/**
 * The tools of an owner's or operator's agent, by an access token. Each asks a resource of the operator API, which
 * checks that token itself.
 */
export function mountOwnTools(app: WebServer, { tokens, log }: OwnToolDeps): void {
  const authenticate = tokenActor(tokens)
  let loading: Promise<ReturnType<typeof import('./own-tools.ts').createOwnTools>> | undefined
  app.add('POST', `${ADMIN_PREFIX}/mcp`, async (request) => {
    await authenticate(request)
    const message = messageOf(jsonBody({ headers: request.headers, body: await request.body(BODY_BYTES_MAX) }))
    loading ??= import('./own-tools.ts').then(({ createOwnTools }) => createOwnTools())
    const answer = await loading.catch((error: unknown) => {
      loading = undefined
      throw error
    })
    const asked = new Request('http://localhost/mcp', { method: 'POST', headers: protocolHeaders(request.headers) })
    const response = await answer(asked, message, {
      requestId: request.id,
      log,
      ask: async (method, path, body) => {
        const { body: text = '{}' } = (await app.within(request, method, ADMIN_PREFIX + path, body)) ?? {}
        return (JSON.parse(String(text)) as { data: unknown }).data // As every resource answers.
      },
    })
    const type = response.headers.get('content-type') ?? 'application/json'
    const body = Buffer.from(await response.arrayBuffer())
    return { status: response.status, headers: { 'content-type': type, 'cache-control': 'no-store' }, body }
  })
}

/** What the protocol reads; the token stays here. */
function protocolHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): [string, string][] {
  const names = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name']
  return names.flatMap((name): [string, string][] => (typeof headers[name] === 'string' ? [[name, headers[name]]] : []))
}
