// Choosing a tool of a server on the command line, which agrees to the definition that the server lists now.

import { priced } from '../../../cli/catalog.ts'
import { at, CliError, type Command, flag, type Invocation, takes, told } from '../../../cli/command.ts'
import { wordsLike } from '../../../cli/derived.ts'
import type { ToolServerView } from '../views.ts'

async function choose(call: Invocation): Promise<ToolServerView> {
  const [name, tool] = call.args
  const server = await call.api.call<ToolServerView>('GET', at`/tool-servers/${name}`)
  const found = server.tools.find((one) => one.tool === tool)
  const { agree, remove, off, on, results } = call.values
  if (found?.state === 'changed' && !agree && !remove)
    throw new CliError(
      `"${tool}" has changed: see tollgate tool-servers show ${name}. Nothing was changed. Give --agree to sell it so.`,
    )
  const isAgreed = agree || found?.state === 'not-chosen'
  return call.api.call('PUT', at`/tool-servers/${name}/tools`, {
    tool,
    ...(isAgreed && found?.digest ? { digest: found.digest } : {}),
    ...priced(call, 'price', 'pricing'),
    ...priced(call, 'cost', 'cost'),
    ...(results === undefined ? {} : { resultsMax: Number(results) }),
    ...(off || on ? { enabled: on === true } : {}),
    ...(remove ? { remove: true } : {}),
  })
}

export const TOOL_SERVER_COMMANDS: readonly Command[] = [
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
    run: (call) => told(choose(call), (server) => wordsLike('tool-servers show', server)),
  },
]
