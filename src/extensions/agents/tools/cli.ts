// Tool servers on the command line: registering them, listing their tools, choosing, pricing and approving tools.

import { at, CliError, type Command, flag, type Invocation, takes, told } from '../../../cli/command.ts'
import { table } from '../../../cli/table.ts'
import { priced } from '../../../cli/vendors.ts'
import type { Page } from '../../../kernel/view.ts'
import type { ForeignTool, ToolServerView } from '../views.ts'

/** The differences from the approved definition, before and after. */
function changesOf({ tool, changes }: ForeignTool): string[] {
  return changes.flatMap(({ field, before, after }) => [
    `${tool}: ${field}`,
    ...(before === null ? [] : [`  - ${before}`]),
    ...(after === null ? [] : [`  + ${after}`]),
  ])
}

function showServer({ tools, ...server }: ToolServerView): string {
  const seen = server.lastAnsweredAt === null ? 'It never answered.' : `It last answered at ${server.lastAnsweredAt}.`
  return [
    `${server.name} at ${server.url}. ${seen}${server.error === null ? '' : ` Its tools could not be read the last time: ${server.error}.`}`,
    table(tools, { TOOL: 'tool', STATE: 'state', ID: ({ id }) => id ?? '', DIGEST: ({ digest }) => digest ?? '' }),
    ...tools.flatMap((one) => (one.state === 'changed' ? changesOf(one) : [])),
  ].join('\n')
}

const show = (server: Promise<ToolServerView>) => told(server, showServer)
const numbered = ({ values }: Invocation, names: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(names).flatMap(([option, field]) =>
      values[option] === undefined ? [] : [[field, Number(values[option])]],
    ),
  )

async function register(call: Invocation): Promise<ToolServerView> {
  const { url, title, credential } = call.values
  const value = call.values['key-stdin'] ? (await call.input()).trim() : undefined
  if (value === '') throw new CliError('There was no credential on standard input.', 2)
  const named = { ...(credential ? { name: credential } : {}), ...(value ? { value } : {}) }
  return call.api.call('PUT', at`/tool-servers/${call.args[0]}`, {
    ...(url ? { url } : {}),
    ...(title ? { title } : {}),
    ...(credential || value ? { credential: named } : {}),
    ...numbered(call, { timeout: 'timeoutMs', concurrency: 'concurrencyMax', bytes: 'resultBytesMax' }),
  })
}

/** Approves the definition that the server lists now, and shows it; an approved tool keeps its definition. */
async function choose(call: Invocation): Promise<ToolServerView> {
  const [name, tool] = call.args
  const server = await call.api.call<ToolServerView>('GET', at`/tool-servers/${name}`)
  const found = server.tools.find((one) => one.tool === tool)
  const { agree, remove, off, on } = call.values
  if (found?.state === 'changed' && !agree && !remove)
    throw new CliError(
      `"${tool}" has changed:\n${changesOf(found).join('\n')}\nNothing was changed. Give --agree to sell it so.`,
    )
  const isAgreed = agree || found?.state === 'not-chosen'
  return call.api.call('PUT', at`/tool-servers/${name}/tools`, {
    tool,
    ...(isAgreed && found?.digest ? { digest: found.digest } : {}),
    ...priced(call, 'price', 'pricing'),
    ...priced(call, 'cost', 'cost'),
    ...numbered(call, { results: 'resultsMax' }),
    ...(off || on ? { enabled: on === true } : {}),
    ...(remove ? { remove: true } : {}),
  })
}

export const TOOL_SERVER_COMMANDS: readonly Command[] = [
  {
    name: 'tool-servers list',
    summary: 'Lists registered MCP servers, and how many of their tools are sold or held back.',
    run: (call) =>
      told(call.api.call<Page<ToolServerView>>('GET', '/tool-servers'), ({ items }) =>
        table(items, {
          SERVER: 'name',
          ADDRESS: 'url',
          LISTED: ({ tools }) => tools.filter(({ state }) => state === 'listed').length,
          'HELD BACK': ({ tools }) => tools.filter(({ state }) => state === 'changed' || state === 'gone').length,
          'LAST SEEN': ({ lastAnsweredAt }) => lastAnsweredAt ?? 'never',
          ERROR: ({ error }) => error ?? '',
        }),
      ),
  },
  {
    name: 'tool-servers show',
    summary: 'Shows an MCP server: its tools, and what changed since you agreed to them.',
    args: ['server'],
    run: (call) => show(call.api.call('GET', at`/tool-servers/${call.args[0]}`)),
  },
  {
    name: 'tool-servers register',
    summary: 'Registers an MCP server, or changes its address, credential or limits.',
    args: ['server'],
    options: {
      url: takes('address', 'Its address (MCP over Streamable HTTP).'),
      title: takes('text', 'The name of the server that agents read in its tools.'),
      credential: takes('NAME', 'A stored credential, or a variable of the environment.'),
      'key-stdin': flag('Reads its credential from standard input and stores it encrypted.'),
      timeout: takes('ms', 'A call that takes longer is an error; 60000 by default.'),
      concurrency: takes('number', 'Calls at once; 20 by default.'),
      bytes: takes('number', 'The largest result; 1048576 by default.'),
    },
    run: (call) => show(register(call)),
  },
  {
    name: 'tool-servers refresh',
    summary: 'Reads the list of tools of an MCP server again.',
    args: ['server'],
    run: (call) => show(call.api.call('POST', at`/tool-servers/${call.args[0]}/refresh`)),
  },
  {
    name: 'tool-servers choose',
    summary: 'Sells a tool of an MCP server, changes its price, or agrees to its changed definition.',
    args: ['server', 'tool'],
    options: {
      price: takes('call=credits,row=credits', 'By call, and by result if "row" is given.'),
      cost: takes('call=credits,…', 'What the server charges you, for margins.'),
      results: takes('number', 'Results beyond these are not charged; 100 by default.'),
      agree: flag('Agrees to the description and schemas that the server lists now.'),
      off: flag('Stops offering it.'),
      on: flag('Offers it again.'),
      remove: flag('Takes it out of the catalog.'),
    },
    run: (call) => show(choose(call)),
  },
  {
    name: 'tool-servers remove',
    summary: 'Removes an MCP server and its tools from the catalog.',
    args: ['server'],
    run: (call) => told(call.api.call('DELETE', at`/tool-servers/${call.args[0]}`), () => 'Removed.'),
  },
]
