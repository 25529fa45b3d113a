// Everything that agents are offered: the endpoints as tools, the models and prices as resources, common questions as prompts.
import type { Principal } from '../admission/api-key.ts'
import type { AccountDeps } from '../api/account.ts'
import type { FetchCall } from '../api/fetch-route.ts'
import { createModelLists } from '../api/models.ts'
import type { JobEngine } from '../jobs/engine.ts'
import type { Log } from '../kernel/log.ts'
import { accountTools } from './account-tools.ts'
import { dataTools } from './data-tools.ts'
import { discoveryTools, listFor } from './listing.ts'
import { mediaTools } from './media-tools.ts'
import type { PaidDeps } from './paid-call.ts'
import { OWN_PROMPTS } from './prompts.ts'
import { ownResources } from './resources.ts'
import type { Tool } from './tool.ts'
import { createDoor } from './transport.ts'

export interface McpDeps extends PaidDeps, AccountDeps {
  readonly jobs: Pick<JobEngine, 'jobs' | 'events' | 'results'>
  readonly log: Log
}

const INSTRUCTIONS =
  'Tollgate sells website analytics, search keywords, social profiles and posts, images, videos and answers of other models. Every paid call has a price in credits, which its description tells; quote and get_balance are free. Give max_cost to bound a call. Errors say what to do next, and cost nothing.'

export function createMcp(deps: McpDeps): (call: FetchCall) => Promise<Response> {
  const current = () => deps.catalog.current
  const models = createModelLists(current)
  const tools: Tool[] = [
    ...dataTools(deps),
    ...mediaTools(deps),
    ...accountTools(deps, models, (principal) => offered(principal)),
  ]
  const offered = (principal: Principal) => tools.filter((tool) => tool.offered(principal, current()))
  const pair = discoveryTools(offered, current)
  return createDoor({
    tool({ principal }, name) {
      const tool = [...tools, ...pair].find((one) => one.name === name)
      // What is paid is refused by its endpoint, in the endpoint's words.
      return tool?.endpoint !== undefined || tool?.offered(principal, current()) ? tool : undefined
    },
    list: (guest) => listFor(guest, { pair, offered: offered(guest.principal), catalog: current() }),
    resources: ownResources({ current, models, offered: ({ principal }) => offered(principal) }),
    prompts: OWN_PROMPTS,
    instructions: INSTRUCTIONS,
    world: deps.path.world,
    log: deps.log,
  })
}
