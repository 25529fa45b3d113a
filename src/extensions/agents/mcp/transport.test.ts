// What breaks while a list or a tool is looked up is for the log.
import { assert, test } from '../../../../test/kit.ts'
import { createTransport } from './transport.ts'

const broken = (): never => {
  throw new TypeError('no column "secret" in row 7')
}

for (const [method, params] of [
  ['tools/list', {}],
  ['tools/call', { name: 'any', arguments: {} }],
  ['resources/read', { uri: 'tollgate://models' }],
] as const)
  test(`${method} that breaks says so, and no more`, async () => {
    const logged: unknown[] = []
    const answer = createTransport({
      tool: broken,
      list: broken,
      prompts: [],
      instructions: '',
      world: { randomBytes: Buffer.alloc } as never,
      resources: [{ uri: 'tollgate://models', read: broken } as never],
      log: { error: (...line: unknown[]) => logged.push(line) } as never,
    })
    const json = { jsonrpc: '2.0', id: 1, method, params }
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const request = new Request('http://localhost/mcp', { method: 'POST', headers, body: JSON.stringify(json) })
    const said = await (await answer({ request, json, principal: {} as never, requestId: 'req_1' } as never)).text()
    assert.match(said, /-32603/)
    assert.doesNotMatch(said, /secret/)
    assert.match(String((logged as { error: unknown }[][])[0]?.[0]?.error), /secret/)
  })
