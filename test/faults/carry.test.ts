// A vendor's fault reaches the caller as such, also where the next route speaks a format that cannot carry the request.
import { recordVendorObjects } from '../../src/admission/vendor-objects.ts'
import type { CatalogInput } from '../../src/catalog/document.ts'
import type { ClientFormatName } from '../../src/meter/kind.ts'
import { CLIENT_FORMATS, FORMATS, PAIRS } from '../formats.ts'
import { afterEach, assert, beforeEach, started, startGateway, test, textOf } from '../gateway.ts'
import { fixture } from '../text-replay.ts'
import { type ChatVendor, faultModel, startVendor } from './chat-vendor.ts'

/** Requests that only a format of its own can say. */
const OWN: Record<ClientFormatName, readonly object[]> = {
  'openai-chat': [{ n: 2 }],
  'openai-responses': [
    { previous_response_id: 'resp_1' },
    { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] },
  ],
  'anthropic-messages': [{ tools: [{ type: 'bash_20250124', name: 'bash' }] }],
  gemini: [{ generationConfig: { candidateCount: 2 } }],
}
const requestsOf = (own: ClientFormatName) => OWN[own].map((more) => ({ ...FORMATS[own].body('Hi'), ...more }))

const FAULTS: ReadonlyArray<readonly [name: string, status: number, answer: ChatVendor['answer']]> = [
  ['429', 429, ({ response }) => response.writeHead(429, { 'retry-after': '7' }).end()],
  ['500', 502, ({ response }) => response.writeHead(500).end()],
  ['503', 503, ({ response }) => response.writeHead(503).end()],
  ['hang-up', 502, ({ response }) => response.socket?.destroy()],
]

const OTHERS = PAIRS.flatMap(({ front: own, back: other }) => (own === other ? [] : [{ own, other }]))
/** A vendor of their own for each case: what one does must not open the breaker of another. */
const CASES = OTHERS.flatMap(({ own, other }) =>
  requestsOf(own).flatMap((request) =>
    [...FAULTS.map(([name]) => name), 'none'].flatMap((fault) =>
      [true, false].map((ownFirst) => ({ own, other, request, fault, ownFirst })),
    ),
  ),
)

const able = started(startVendor)
const unable = started(startVendor)
const g = started(() =>
  startGateway({
    catalog(document: CatalogInput) {
      document.vendors.unable = { baseUrl: unable.url }
      for (const [index, { own, other, ownFirst }] of CASES.entries()) {
        document.vendors[`able-${index}`] = { baseUrl: able.url }
        document.models[`carry-${index}`] = {
          ...faultModel([]),
          clientFormats: [own],
          routes: [
            { vendor: `able-${index}`, protocol: own, order: ownFirst ? 0 : 2 },
            { vendor: 'unable', protocol: other, order: 1 },
          ],
        }
      }
      for (const { own, other } of OTHERS.filter((pair) => pair.own === 'openai-responses')) {
        document.vendors[`fails-${other}`] = { baseUrl: able.url }
        const routes = [
          { vendor: `fails-${other}`, protocol: own, order: 0 },
          { vendor: 'unable', protocol: other, order: 1 },
        ]
        document.models[`namespace-${other}`] = { ...faultModel([]), clientFormats: [own], routes }
      }
      for (const { own, other } of OTHERS) {
        const routes = [{ vendor: 'unable', protocol: other }]
        document.models[`${own}-by-${other}`] = { ...faultModel([]), clientFormats: [own], routes }
      }
    },
  }),
)
beforeEach(() => {
  able.calls.length = 0
  unable.calls.length = 0
})
afterEach(() => g.settled())

async function ask(index: number): Promise<Response> {
  const { own, request } = CASES[index]!
  const { id: accountId, key, keyId } = await g.account()
  const product = `carry-${index}`
  const whose = { accountId, keyId }
  await recordVendorObjects(g.gateway.database, whose, ['resp_1', 'file_1'], { vendor: `able-${index}`, product })
  return g.call(FORMATS[own].oldPath(product), key, { model: product, ...request })
}

for (const { own, other } of OTHERS)
  test(`${own}: a vendor’s fault stays its fault when the other route, ${other}, cannot carry the request`, async () => {
    for (const [fault, status, answer] of FAULTS) {
      able.answer = answer
      const cases = [...CASES.entries()].filter(
        ([, one]) => one.own === own && one.other === other && one.fault === fault,
      )
      for (const reply of await Promise.all(cases.map(([index]) => ask(index)))) {
        assert.equal(reply.status, status, `${fault}: ${await reply.text()}`)
        if (status === 429) assert.equal(reply.headers.get('retry-after'), '7')
      }
    }
    assert.equal(unable.calls.length, 0)
  })

test('a request goes to the route that can carry it, wherever that stands', async () => {
  for (const [index, { own, fault, request }] of CASES.entries()) {
    if (fault !== 'none') continue
    able.answer = ({ response }) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(fixture(own, 'text.json'))
    const reply = await ask(index)
    assert.equal(reply.status, 200, `${own} ${JSON.stringify(request)}: ${await reply.text()}`)
  }
  assert.equal(unable.calls.length, 0)
})

test('tools in a namespace are carried in every other format, flat, when the own route fails', async () => {
  const weather = { type: 'function', name: 'weather', description: 'Today.', parameters: { type: 'object' } }
  const tools = [{ type: 'namespace', name: 'town', description: 'Of a town.', tools: [weather] }]
  able.answer = ({ response }) => response.writeHead(500).end()
  const { key } = await g.account()
  for (const other of CLIENT_FORMATS) {
    if (other === 'openai-responses') continue
    unable.answer = ({ response }) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(fixture(other, 'text.json'))
    const model = `namespace-${other}`
    const reply = await g.call(FORMATS['openai-responses'].oldPath(model), key, { model, input: 'Hi', tools })
    assert.equal(reply.status, 200, `${other}: ${await reply.text()}`)
    const sent = unable.calls.at(-1)?.body ?? ''
    assert.match(sent, /weather/, other)
    assert.doesNotMatch(sent, /"namespace"/, other)
  }
  assert.equal(unable.calls.length, CLIENT_FORMATS.length - 1)
})

test('a request that no route can carry is refused before anything is held', async () => {
  const { id, key } = await g.account()
  for (const { own, other } of OTHERS)
    for (const request of requestsOf(own)) {
      const model = `${own}-by-${other}`
      assert.match(
        await textOf(g.call(FORMATS[own].oldPath(model), key, { model, ...request }), 400),
        /cannot be used with this model/,
      )
    }
  assert.equal(unable.calls.length, 0)
  const rows = await g.sql('select 1 from usage where account_id = $1 and held > 0', [id])
  assert.equal(rows.length, 0)
})
