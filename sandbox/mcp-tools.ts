// Tools of foreign servers, simulated: the gateway knows a tool's schema and sends the result that fits it, which is
// given back.
import { isRecord, parseJson } from './json.ts'
import type { Room } from './room.ts'

export const toolsRoom: Room = {
  name: 'tools',
  match: (method, path) => method === 'POST' && path === '/tools/call',
  async serve(_req, _res, ctx) {
    const body = parseJson((await ctx.body()).toString('utf8'))
    if (isRecord(body) && isRecord(body.result)) ctx.json(200, { result: body.result })
    else ctx.json(400, { error: { message: 'There is no result to simulate.' } })
  },
}
