// The protocol's paths, and its answers without its library until somebody first speaks it: that takes 20 MB of memory and a
// moment of every start, which most gateways never need.
import type { FetchCall } from '../http/fetch-route.ts'
import { SUBSETS } from './listing.ts'
import type { McpDeps } from './mcp.ts'

export const MCP_PATHS = ['/mcp', ...SUBSETS.map((subset) => `/mcp/${subset}`)]

export function openMcp(deps: McpDeps): (call: FetchCall) => Promise<Response> {
  const load = async () => (await import('./mcp.ts')).createMcp(deps)
  let loading: ReturnType<typeof load> | undefined
  return async (call) => {
    loading ??= load()
    return (await loading)(call)
  }
}
