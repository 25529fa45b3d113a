// What programs that act for people use: OAuth, the endpoints as tools (MCP), and tools of other servers.

import type { Teams } from '../../admission/teams.ts'
import type { Api } from '../../api/api.ts'
import type { WebServer } from '../../api/server/server.ts'
import { defineExtension } from '../../extension.ts'
import { withCommands } from '../../operator/command.ts'
import type { RouteSources } from '../../routing/route.ts'
import type { Vendors } from '../../routing/vendor.ts'
import { AGENT_COMMANDS } from './commands.ts'
import { mountFetch } from './fetch-route.ts'
import type { McpDeps } from './mcp/mcp.ts'
import { MCP_PATHS, mountOwnTools, type OwnToolDeps, openMcp } from './mcp/open.ts'
import { consentResources } from './oauth/consent.ts'
import { createOauth, type OauthDeps, pruneTokens } from './oauth/open.ts'
import { proposalResources, pruneProposals } from './proposals.ts'
import { runResources } from './runs.ts'
import { mountSettings, type SettingsDeps, settingsResources, setupResource } from './settings.ts'
import { openToolConnections } from './tools/connections.ts'
import { openToolServers } from './tools/lists.ts'
import { toolServerSection } from './tools/section.ts'
import { type ToolServerDeps, toolServerResources } from './tools/servers.ts'
import { type ToolConnectionDeps, toolConnectionResources } from './tools/sign-ins.ts'

type Core = OauthDeps &
  SettingsDeps &
  OwnToolDeps &
  Pick<McpDeps, 'catalog' | 'ledger' | 'budget' | 'jobs'> &
  Omit<ToolServerDeps, 'vendorHealth' | 'toolServers'> &
  Omit<ToolConnectionDeps, 'toolConnections'> &
  Parameters<typeof openToolConnections>[0] &
  Omit<Parameters<typeof openToolServers>[0], 'sources' | 'connections'> & {
    readonly teams: Pick<Teams, 'placeOf'>
    readonly vendors: Pick<Vendors, 'health'>
    readonly sandboxUrl: RouteSources['sandboxUrl']
  }

interface AgentPlace extends Omit<McpDeps, keyof Core | 'toolServers'> {
  readonly app: WebServer
  readonly api: Api
}

const TIDY_EVERY_MS = 60_000

export const agents = defineExtension({
  name: 'agents',
  catalog: toolServerSection,
  async open(core: Core) {
    const toolConnections = await openToolConnections(core)
    const sources = { sandboxUrl: core.sandboxUrl, credential: core.credentials.get }
    const toolServers = await openToolServers({ ...core, sources, connections: toolConnections })
    return { ...createOauth(core, MCP_PATHS), toolConnections, toolServers, vendorHealth: () => core.vendors.health() }
  },
  resources: (all) => [
    ...runResources(all),
    ...withCommands(
      [...settingsResources(all), ...proposalResources(all), ...toolServerResources(all)],
      AGENT_COMMANDS,
    ),
    ...toolConnectionResources(all),
  ],
  personal: (all) => [...consentResources(all), setupResource(all)],
  endpoints({ mount, challenge, ...core }, { app, api, ...place }: AgentPlace) {
    mount(app)
    mountSettings(api, core)
    mountOwnTools(app, core)
    mountFetch(api, MCP_PATHS, { answer: openMcp({ ...core, ...place }), publicUrl: core.publicUrl, challenge })
  },
  leave: ({ toolConnections }, ...of) => toolConnections.leave(...of),
  work: ({ database, toolServers }) => [
    { everyMs: TIDY_EVERY_MS, run: () => pruneTokens(database) },
    { everyMs: TIDY_EVERY_MS, run: () => pruneProposals(database) },
    { everyMs: TIDY_EVERY_MS, run: () => toolServers.lookAround() },
  ],
})
