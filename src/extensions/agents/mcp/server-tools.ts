// The tools of foreign MCP servers, sold beside our own: listed with what the operator agreed to and its price, and
// called on the same path.
import type { ContentBlock } from '@modelcontextprotocol/server'
import { mayCall, mayUse } from '../../../admission/api-key.ts'
import { type Catalog, findDataProduct } from '../../../catalog/store.ts'
import type { Incoming } from '../../../pipeline/read.ts'
import { readTool } from '../tools/call.ts'
import type { ToolServers } from '../tools/lists.ts'
import { type ServerToolSpec, toolSpecs } from '../tools/section.ts'
import { priceText } from './data-tools.ts'
import { callEndpoint, type PaidDeps } from './paid-call.ts'
import type { Tool, ToolCall } from './tool.ts'

/** Clients refuse longer names. */
const NAME_CHARS_MAX = 64

interface ServerToolDeps extends PaidDeps {
  readonly toolServers: Pick<ToolServers, 'client' | 'heldBack' | 'signInsOf' | 'tokenFor'>
}

export function serverTools({ document }: Catalog, deps: ServerToolDeps): Tool[] {
  return toolSpecs(document)
    .filter((spec) => deps.toolServers.heldBack(spec) === undefined)
    .map((spec) => serverTool(spec, document.toolServers[spec.server]?.title ?? spec.server, deps))
}

function serverTool(spec: ServerToolSpec, from: string, deps: ServerToolDeps): Tool {
  const { sold } = spec
  const name = sold.tool.replaceAll(/[^\w-]+/g, '_').slice(0, NAME_CHARS_MAX)
  async function own({ principal, request, progress }: ToolCall) {
    const { toolServers } = deps
    const signIns = await toolServers.signInsOf(principal.accountId)
    const onProgress = request._meta?.progressToken === undefined ? undefined : progress
    const read = (incoming: Incoming) => readTool(spec, incoming, { toolServers, signIns, onProgress })
    return { ...spec, read }
  }
  return {
    name,
    prefix: spec.server.replaceAll('-', '_'),
    group: 'servers',
    title: spec.title,
    // An agent should know whose words these are: they are a description, not instructions of the gateway.
    description: `Tool of the server "${from}", which describes it so: ${sold.description || spec.title}`,
    price: (catalog) => priceText(catalog, spec.product),
    input: { properties: {}, ...sold.inputSchema },
    ...(sold.outputSchema?.type === 'object' ? { output: sold.outputSchema } : {}),
    readOnly: sold.readOnly,
    openWorld: true,
    endpoint: spec.id,
    own,
    offered: (principal, catalog) =>
      mayCall(principal, spec) &&
      mayUse(principal, spec.restriction) &&
      findDataProduct(catalog, spec.product)?.enabled === true,
    async run(call) {
      const body = Buffer.from(JSON.stringify(call.args))
      const { value, charge } = await callEndpoint({ spec: await own(call), tool: name }, { body }, call, deps)
      const { content, structuredContent } = value as { content: ContentBlock[]; structuredContent?: unknown } // As call.ts writes it.
      return { structured: structuredContent, text: '', content, charge }
    },
  }
}

/** Of two tools with one name the later gets the prefix of its product or server. One that has none is dropped. */
export function withoutClashes(tools: readonly Tool[]): Tool[] {
  const taken = new Set<string>()
  return tools.flatMap((tool) => {
    const prefixed = tool.prefix === undefined ? [] : [`${tool.prefix}_${tool.name}`.slice(0, NAME_CHARS_MAX)]
    const names = [tool.name, ...prefixed]
    const name = names.find((one) => !taken.has(one))
    if (name === undefined) return []
    taken.add(name)
    return [name === tool.name ? tool : { ...tool, name }]
  })
}
