// A model that its vendor no longer has: the next route answers, and without one the caller hears nothing of the
// vendor's.
import type { CatalogInput } from '../src/catalog/document.ts'
import { assert, listen, started, test, testGateway, textOf } from './gateway.ts'

const google = (code: number, message: string, status: string) => ({ error: { code, message, status } })
const VERTEX =
  'Publisher Model `projects/secret-project/locations/us-east5/publishers/google/models/old-model` was not found or your project does not have access to it. Please ensure you are using a valid model version.'
/** Their own words, by vendor. */
const GONE = {
  google: {
    protocol: 'gemini',
    status: 404,
    body: google(404, 'models/old-model is not found for API version v1beta, or is not supported.', 'NOT_FOUND'),
  },
  vertex: { protocol: 'gemini', status: 404, body: google(404, VERTEX, 'NOT_FOUND') },
  vertex400: { protocol: 'gemini', status: 400, body: google(400, VERTEX, 'FAILED_PRECONDITION') },
  azure: {
    protocol: 'openai-chat',
    status: 404,
    body: { error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' } },
  },
  // A wrong base address: a web server answers, and no API has read the request.
  page: { protocol: 'openai-chat', status: 404, body: '<html><h1>404 Not Found</h1></html>' },
  fastapi: { protocol: 'openai-chat', status: 404, body: { detail: 'Not Found' } },
} as const

let asked = 0
const vendor = started(() =>
  listen((request, response) => {
    request.resume()
    asked += 1
    const { status, body } = GONE[(request.url ?? '').split('/')[1] as keyof typeof GONE] // Each has a path of its own.
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }),
)
const g = testGateway(() => ({
  catalog(document: CatalogInput) {
    const base = document.models['gamma-v4-pro']!
    for (const [name, { protocol }] of Object.entries(GONE)) {
      document.vendors[name] = { baseUrl: `${vendor.url}/${name}` }
      const gone = { vendor: name, protocol, model: 'old-model' } as const
      document.models[`${name}-alone`] = { ...base, routes: [gone] }
      document.models[`${name}-two`] = {
        ...base,
        routes: [gone, ...base.routes.map((route) => ({ ...route, order: 2 }))],
      }
    }
  },
}))

for (const name of Object.keys(GONE))
  test(`${name}: the next route answers for a model that is gone, and alone it is the gateway’s fault in its own words`, async () => {
    const { id, key } = await g.account()
    for (const stream of [false, true]) {
      const body = { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20, stream }
      const before = asked
      await textOf(g.call('/v1/chat/completions', key, { ...body, model: `${name}-two` }))
      // Later the gateway may know that this vendor fails.
      if (!stream) assert.equal(asked, before + 1)
      const alone = await g.call('/v1/chat/completions', key, { ...body, model: `${name}-alone` })
      const said = await alone.text()
      assert.ok(alone.status >= 500, said)
      assert.doesNotMatch(said, /secret-project|old-model|deployment|publisher/i)
    }
    await g.settled()
    assert.equal((await g.balance(id)).held, 0n)
  })
