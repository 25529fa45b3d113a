// The protocol's paths, and its answers without its library until somebody first speaks it: that takes 20 MB of memory and a
// moment of every start, which most gateways never need.
import type { FetchCall } from '../http/fetch-route.ts'
import { SUBSETS } from './listing.ts'
import type { McpDeps } from './mcp.ts'

export const MCP_PATHS = ['/mcp', ...SUBSETS.map((subset) => `/mcp/${subset}`)]

type Answer = (call: FetchCall) => Promise<Response>

export function openMcp(
  deps: McpDeps,
  load: () => Promise<Answer> = async () => (await import('./mcp.ts')).createMcp(deps),
): Answer {
  let loading: ReturnType<typeof load> | undefined
  return async (call) => {
    // What failed once (a file that was being replaced, no memory left) may succeed with the next call.
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return (await loading)(call)
  }
}
