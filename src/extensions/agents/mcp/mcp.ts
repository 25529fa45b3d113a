// Everything that the MCP server offers to agents: endpoints as tools, models and prices as resources, common questions
// as prompts.
import type { PromptMessage, ServerContext, UriTemplate } from '@modelcontextprotocol/server'
import type { Principal } from '../../../admission/api-key.ts'
import type { AccountDeps } from '../../../api/account.ts'
import { createModelLists } from '../../../api/models.ts'
import { endpointsOf } from '../../../catalog/index.ts'
import type { Catalog } from '../../../catalog/store.ts'
import type { JobEngine } from '../../../jobs/engine.ts'
import type { Log } from '../../../kernel/log.ts'
import type { FetchCall } from '../fetch-route.ts'
import type { ToolServers } from '../tools/lists.ts'
import { accountTools, dataTools } from './data-tools.ts'
import { discoveryTools, listFor } from './listing.ts'
import { mediaTools } from './media-tools.ts'
import type { PaidDeps } from './paid-call.ts'
import { serverTools, withoutClashes } from './server-tools.ts'
import type { Tool, ToolCaller } from './tool.ts'
import { createTransport } from './transport.ts'

export interface McpDeps extends PaidDeps, AccountDeps {
  readonly jobs: Pick<JobEngine, 'jobs' | 'events' | 'results'>
  readonly log: Log
  readonly toolServers: Pick<ToolServers, 'client' | 'heldBack' | 'signInsOf' | 'tokenFor' | 'listings'>
}

const INSTRUCTIONS =
  'Tollgate sells website analytics, search keywords, social profiles and posts, images, videos and answers of other models. Every paid call has a price in credits, which its description tells; quote and get_balance are free. Give max_cost to bound a call. Errors say what to do next, and cost nothing.'

export function createMcp(deps: McpDeps): (call: FetchCall) => Promise<Response> {
  const current = () => deps.catalog.current
  const models = createModelLists(current)
  const fixed: Tool[] = [...mediaTools(deps), ...accountTools(deps, models, (principal) => offered(principal))]
  // The endpoints change with the catalog, and their tools with them. Ours come first, so that no product's or foreign
  // tool takes the name of one.
  const inCatalog = madeOnce(current, (catalog) => {
    const data = dataTools(endpointsOf(catalog), deps)
    const [ours, sold] = [data.filter((tool) => !tool.prefix), data.filter((tool) => tool.prefix)]
    const own = [...pair, ...ours, ...fixed, ...sold]
    // Which foreign tools are held back changes without the catalog.
    return madeOnce(
      () => deps.toolServers.listings,
      () => withoutClashes([...own, ...serverTools(catalog, deps)]).slice(pair.length),
    )
  })
  const tools = () => inCatalog()()
  const offered = (principal: Principal) => tools().filter((tool) => tool.offered(principal, current()))
  const pair = discoveryTools(offered, current)
  return createTransport({
    tool({ principal }, name) {
      const tool = [...tools(), ...pair].find((one) => one.name === name)
      // A paid tool is found even if it is not offered: its endpoint then rejects the call with its own error.
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

/** Made anew only when what it is made of is another. */
function madeOnce<From, Made>(from: () => From, make: (from: From) => Made): () => Made {
  let known: { readonly from: From; readonly made: Made } | undefined
  return () => {
    const now = from()
    if (known?.from !== now) known = { from: now, made: make(now) }
    return known.made
  }
}

// Prompts: common questions, worded so that an agent uses the right tools in the right order.

type Given = Readonly<Record<string, string>>

export interface Prompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: { name: string; description: string; required: boolean }[]
  readonly write: (given: Given, request: ServerContext['mcpReq']) => PromptMessage[]
}

const say = (text: string): PromptMessage[] => [{ role: 'user', content: { type: 'text', text } }]
const required = (name: string, description: string) => ({ name, description, required: true })

const OWN_PROMPTS: readonly Prompt[] = [
  {
    name: 'compare_websites',
    title: 'Compare two websites',
    description: 'Visits, ranks, channels and engagement of two websites side by side.',
    arguments: [required('first', 'A domain, such as example.com.'), required('second', 'The other domain.')],
    write: ({ first, second }) =>
      say(
        `Compare the websites ${first} and ${second}. For both use website_visits, website_ranks, website_engagement and website_channels with the same period, then website_history_visits for the trend. Answer with one table of the figures and three sentences on what differs most. Say what the calls cost together.`,
      ),
  },
  {
    name: 'brief_handle',
    title: 'Brief me on a handle',
    description: 'Who is behind a social handle, and what they write about.',
    arguments: [required('handle', 'The user name, with or without @.')],
    write: ({ handle }) =>
      say(
        `Brief me on the social account ${handle}. Look it up with social_user_by_name and user.fields created_at,description,public_metrics,verified; then read its newest 50 posts with social_timeline and tweet.fields created_at,public_metrics, without retweets. Tell who it is, what it writes about, which posts were read most, and how often it posts.`,
      ),
  },
  {
    name: 'research_keyword',
    title: 'Research a keyword',
    description: 'Volume, difficulty and competitors of a search keyword.',
    arguments: [required('keyword', 'The keyword.')],
    write: ({ keyword }) =>
      say(
        `Research the search keyword "${keyword}". Use keyword_suggestions for related keywords with volume and difficulty, and keyword_websites for the websites that rank for it. Recommend five keywords to go for, with a reason each.`,
      ),
  },
]

// Resources that a client reads without a tool call: the models and the price list of its key.

export interface Resource {
  /** If `template` is set, this is the template's text. */
  readonly uri: string
  readonly template?: UriTemplate
  readonly name: string
  readonly title: string
  readonly description: string
  readonly mimeType: string
  readonly read: (guest: ToolCaller, uri: string) => Promise<{ text: string } | { blob: string }>
}

interface ResourceDeps {
  readonly current: () => Catalog
  readonly offered: (guest: ToolCaller) => readonly Tool[]
  readonly models: ReturnType<typeof createModelLists>
}

function ownResources({ current, offered, models }: ResourceDeps): Resource[] {
  return [
    {
      uri: 'tollgate://models',
      name: 'models',
      title: 'Models',
      description: 'The models of this key with their prices, as GET /v1/models lists them.',
      mimeType: 'application/json',
      read: async ({ principal, newRequestId }) => ({ text: models.list(principal, newRequestId(), 'native') }),
    },
    {
      uri: 'tollgate://tools',
      name: 'price list',
      title: 'Tools and prices',
      description: 'The tools of this key, a line each, with what they cost.',
      mimeType: 'text/markdown',
      read: async (guest) => ({
        text: offered(guest)
          .map((tool) => `- \`${tool.name}\`: ${tool.title}. ${tool.price?.(current()) || 'Free.'}`)
          .join('\n'),
      }),
    },
  ]
}
