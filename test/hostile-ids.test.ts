// Ids in addresses that are none: whatever a stranger writes where an id belongs, no vendor is asked by it.
import { request as httpRequest } from 'node:http'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { PROTOCOLS } from '../src/meter/kind.ts'
import { vendorCall } from '../src/protocols/vendor-call.ts'
import { assert, OPERATOR_TOKEN, runs, test, testGateway, words } from './gateway.ts'
import { openAllDoors } from './sdk/families.ts'

let key: string
const g = testGateway({ catalog: openAllDoors }, async () => {
  key = (await g.account()).key
})

const CLIMBS = [
  '.',
  '..',
  '../..',
  '../../conv_victim',
  '..\\..\\conv_victim',
  './x',
  'x/../../y',
  '..;/y',
  '/etc',
  'a/b',
]
const OTHERS = [
  ' ',
  '%',
  '%00',
  'a\u0000b',
  'a?b=c',
  'a#b',
  'a:b',
  'a@b',
  'é',
  '\u2025',
  '%c0%ae%c0%ae',
  'x'.repeat(200),
]
const once = (text: string) => encodeURIComponent(text).replaceAll('.', '%2E')
const CORPUS = [
  ...new Set(
    [...CLIMBS, ...OTHERS].flatMap((text) => [encodeURI(text), encodeURIComponent(text), once(text), once(once(text))]),
  ),
]

/** Of them, those for one address; those for the next are others. */
const STRIDE = runs(10, 1)
const corpusFor = (place: number) => CORPUS.filter((_, at) => (at + place) % STRIDE === 0)

/** As it is written: `fetch` would take dot segments away. */
function ask(method: string, path: string, token: string, body: string | undefined): Promise<number> {
  const { hostname, port } = new URL(g.url)
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    }
    const sent = httpRequest({ hostname, port, method, path, headers }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const BODY = JSON.stringify({ metadata: {}, items: [], contents: [{ role: 'user', parts: [{ text: 'Hi.' }] }] })
const paths = ALL_ENDPOINTS.flatMap((spec) => [spec.path, ...spec.aliases].map((path) => ({ spec, path })))
const withIds = paths.filter(({ path }) => path.includes('{'))

test('no id that could be read as a path reaches a vendor, at any address that takes an id', async () => {
  const made = await g.call('/v1/conversations', key, {})
  const { id: own } = (await made.json()) as { id: string }
  assert.ok(withIds.length > 30, 'the list of endpoints has them')
  g.sandbox.seen.clear()
  const wrong: string[] = []
  for (const [place, { spec, path }] of withIds.entries()) {
    for (const [, hostile] of path.matchAll(/\{(\w+)\}/g))
      for (const id of corpusFor(place)) {
        const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === hostile ? id : own))
        const before = g.sandbox.seen.requests
        const status = await ask(spec.method, address, key, spec.method === 'POST' ? BODY : undefined)
        const asked = g.sandbox.seen.calls.slice(before).map(({ url }) => url)
        // What a climbing part leaves may be another address that is there, of this very caller; of it nothing is
        // chosen.
        const foreign = asked.filter((url) => /%|\.\.|victim/.test(url) || !url.includes(own))
        if (status >= 500 || foreign.length > 0) wrong.push(`${spec.method} ${address}: ${status} ${foreign}`)
      }
  }
  assert.deepEqual(wrong, [])
})

test('no id that could be read as a path is more than nothing at the operator’s resources', async () => {
  const resources = (await (await g.call('/openapi.json', undefined)).json()) as { paths: Record<string, object> }
  const routes = Object.entries(resources.paths).filter(([path]) => path.startsWith('/admin/') && path.includes('{'))
  assert.ok(routes.length > 20, 'the document has them')
  g.sandbox.seen.clear()
  const wrong: string[] = []
  for (const [place, [path, methods]] of routes.entries())
    for (const method of Object.keys(methods).map((name) => name.toUpperCase()))
      for (const id of corpusFor(place)) {
        const status = await ask(
          method,
          path.replaceAll(/\{\w+\}/g, id),
          OPERATOR_TOKEN,
          method === 'GET' ? undefined : '{}',
        )
        if (status >= 500) wrong.push(`${method} ${path} ${id}: ${status}`)
      }
  assert.deepEqual(wrong, [])
  assert.equal(g.sandbox.seen.requests, 0)
})

test('an address with a dot segment is made for no vendor, in any format, however it is encoded', () => {
  const wrong: string[] = []
  for (const protocol of PROTOCOLS) {
    const target = { protocol, baseUrl: 'https://vendor.example/v1', secret: 's', model: 'm', headers: {} }
    const to = (part: string) =>
      vendorCall({ method: 'GET', url: `${target.baseUrl}/things/${part}/items?a=../b`, headers: {} }, target as never)
    for (const part of ['msg_1', 'a.b', 'google%2Fgemini-2.5', 'a..b', '...'])
      try {
        to(part)
      } catch {
        wrong.push(`${protocol}: ${part} is refused`)
      }
    for (const part of words('.. . %2e%2e .%2E ..%2f..%2fx %252e%252e x%2f.. x%5c..%5cy %25252e%25252e ..; ..%3B'))
      try {
        to(part)
        wrong.push(`${protocol}: ${part} is let through`)
      } catch {}
  }
  assert.deepEqual(wrong, [])
})
