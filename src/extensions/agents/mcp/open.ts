// The protocol's paths. The MCP library is loaded at the first request only: loading it takes 20 MB of memory and slows each start, and most
// gateways never use it.
import type { FetchCall } from '../../../api/fetch-route.ts'
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
