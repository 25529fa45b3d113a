// Which tools a client sees. Every word of a listing uses up the model's context, so a client may ask for fewer tools:
// by path, by name, or for the pair of discovery tools that find and call the others.
import type { Tool as Listed } from '@modelcontextprotocol/server'
import type { Principal } from '../../../admission/api-key.ts'
import type { Catalog } from '../../../catalog/store.ts'
import { invalid } from '../../../kernel/fault.ts'
import { type Arguments, type Group, objectSchema, requiredText, runTool, type Tool, type ToolCaller } from './tool.ts'

/** The last segment of the path: /mcp/<subset>. */
export const SUBSETS = ['analytics', 'social', 'media', 'products', 'discover'] as const satisfies readonly (
  | Group
  | 'discover'
)[]

const FOUND_MAX = 5
const WORD = /[a-z0-9]+/g

/** The tools that the client's key may use, filtered by the path and the query of its address. */
export function listFor(
  { path, query }: ToolCaller,
  { pair, offered, catalog }: { pair: readonly Tool[]; offered: readonly Tool[]; catalog: Catalog },
): Listed[] {
  const subset = SUBSETS.find((name) => path.replace(/\/$/, '').endsWith(`/${name}`))
  const names = query
    .get('tools')
    ?.split(',')
    .map((name) => name.trim())
  const isChosen = ({ name, group }: Tool) => names?.includes(name) ?? (subset === undefined || group === subset)
  const isPaired = ({ name }: Tool) => names?.includes(name) ?? subset === 'discover'
  return [...pair.filter(isPaired), ...offered.filter(isChosen)].map((tool) => listed(tool, catalog))
}

/** A tool in the protocol's listing format. */
function listed(tool: Tool, catalog: Catalog): Listed {
  // Schemas are JSON, and objectSchema builds every input.
  const properties = tool.input.properties as NonNullable<Listed['inputSchema']['properties']>
  return {
    name: tool.name,
    title: tool.title,
    description: wordsOf(tool, catalog),
    inputSchema: {
      ...tool.input,
      type: 'object',
      properties: tool.endpoint !== undefined ? { ...properties, max_cost: MAX_COST } : properties,
    },
    ...(tool.output ? { outputSchema: tool.output } : {}),
    annotations: {
      readOnlyHint: tool.readOnly,
      ...(tool.readOnly ? {} : { destructiveHint: false }),
      openWorldHint: tool.openWorld,
    },
  }
}

/**
 * No description: the name and the server's instructions explain it, and a description in every paid tool would cost
 * 500 tokens.
 */
const MAX_COST = { type: 'number' } as const

function wordsOf({ description, price }: Tool, catalog: Catalog): string {
  return [description, price?.(catalog)].filter(Boolean).join(' ')
}

/** The pair of discovery tools (find, call); `offered` returns the tools that the key may use. */
export function discoveryTools(offered: (principal: Principal) => readonly Tool[], current: () => Catalog): Tool[] {
  const shared = { group: 'account', openWorld: true, offered: () => true } as const
  return [
    {
      ...shared,
      name: 'find_tool',
      title: 'Find a tool',
      description:
        'Finds tools for website analytics, search keywords, social profiles and posts, images, videos and other models by what they do; returns the best with description, price and arguments. Call one with call_tool. Free. Example: {"query":"where do visitors of a site come from"}.',
      input: objectSchema({ query: { type: 'string' } }, ['query']),
      output: objectSchema({ tools: { type: 'array' } }, ['tools']),
      readOnly: true,
      async run({ principal, args }) {
        const catalog = current()
        const found = search(requiredText(args, 'query'), offered(principal), catalog)
        const tools = found.map((tool) => listed(tool, catalog))
        const text = tools.map(({ name, description, inputSchema }) =>
          [`## ${name}`, description, `Arguments: ${JSON.stringify(inputSchema)}`].join('\n'),
        )
        return { structured: { tools }, text: text.join('\n\n') || 'No tool fits; use other words.' }
      },
    },
    {
      ...shared,
      name: 'call_tool',
      title: 'Call a tool',
      description:
        'Calls a tool that find_tool found. Example: {"name":"website_visits","arguments":{"keys":"example.com"}}.',
      input: objectSchema({ name: { type: 'string' }, arguments: { type: 'object' } }, ['name']),
      output: { type: 'object' },
      readOnly: false,
      async run(outer) {
        const name = requiredText(outer.args, 'name')
        const tool = offered(outer.principal).find((one) => one.name === name)
        if (!tool) throw invalid(`There is no tool "${name.slice(0, 64)}" for this key; find_tool finds them.`, 'name')
        return runTool(tool, { ...outer, args: objectArgument(outer.args, 'arguments') })
      },
    },
  ]
}

export function objectArgument(args: Arguments, name: string): Arguments {
  const value = args[name] ?? {}
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid(`"${name}" must be an object.`, name)
  return value as Arguments // Parsed JSON that is not an array.
}

/**
 * The tools that match the most words of the query. A word in the name weighs most, and a rare word weighs more than a
 * common one.
 */
function search(query: string, tools: readonly Tool[], catalog: Catalog): Tool[] {
  const stems = (text: string) =>
    (text.toLowerCase().match(WORD) ?? []).map((word) => word.replace(/(?:ies|es|s)$/, ''))
  const texts = tools.map((tool) => ({
    tool,
    name: new Set(stems(tool.name)),
    all: new Set(stems(`${tool.name} ${tool.title} ${wordsOf(tool, catalog)}`)),
  }))
  const weigh = (word: string) => {
    const having = texts.filter(({ all }) => all.has(word)).length
    return having === 0 ? 0 : Math.log(1 + tools.length / having)
  }
  const words = [...new Set(stems(query.slice(0, 500)))].map((word) => ({ word, weight: weigh(word) }))
  return texts
    .map(({ tool, name, all }) => ({
      tool,
      score: words.reduce((sum, { word, weight }) => sum + (name.has(word) ? 3 : all.has(word) ? 1 : 0) * weight, 0),
    }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, FOUND_MAX)
    .map(({ tool }) => tool)
}
