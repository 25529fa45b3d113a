// Documents by the page: what a vendor is told, what is held, and what a call costs.

import { json } from 'node:stream/consumers'
import { deflateSync } from 'node:zlib'
import { assert, atOnce, listen, needs, pluck, started, test, testGateway, until } from '../../../test/gateway.ts'
import { connect } from '../../../test/mcp/client.ts'
import type { CatalogInput } from '../../catalog/document.ts'

/**
 * A vendor that reads what it is told to (else its three pages), or says what a test wants; with `pagesEnd`, no page
 * beyond it may be named.
 */
let pagesEnd = Number.POSITIVE_INFINITY
let answer: object | undefined
let gate = Promise.resolve()
let told: { pages?: number[]; model: string; provider?: unknown }
const vendor = started(() =>
  listen(async (request, response) => {
    told = (await json(request)) as typeof told
    await gate
    const asked = told.pages ?? [0, 1, 2]
    if (asked.some((index) => index >= pagesEnd)) {
      const error = { object: 'error', message: 'No such page.', type: 'invalid_request_error', param: 'pages' }
      response.writeHead(422, { 'content-type': 'application/json' }).end(JSON.stringify(error))
      return
    }
    const pages = asked.map((index) => ({ index, markdown: `Page ${index}`, images: [], dimensions: null }))
    const said = answer ?? { pages, model: told.model, usage_info: { pages_processed: pages.length } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said))
  }),
)
const g = testGateway(() => ({
  catalog(document: CatalogInput) {
    document.vendors.reader = { baseUrl: vendor.url }
    document.models.reader = {
      ...document.models['alpha-ocr-1']!,
      limits: { pagesMax: 50 },
      routes: [{ vendor: 'reader', protocol: 'mistral-ocr', model: 'their-ocr' }],
      pricing: { unit: 'credits', tiers: [{ when: { annotations: 'on' }, page: '2' }, { page: '1' }] },
    }
    document.models['long-reader'] = { ...document.models.reader, limits: { pagesMax: 1000 } }
  },
}))

const CREDIT = 1_000_000n
const pdf = (body: string | Buffer) =>
  `data:application/pdf;base64,${Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.from(body)]).toString('base64')}`
const tree = (count: number) => `1 0 obj\n<< /Type /Pages /Kids [2 0 R] /Count ${count} >>\nendobj\n`
/** As newer files keep it: packed among other objects. */
function packed(count: number): Buffer {
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', `<</Type/Pages/Count ${count}/Kids[3 0 R]>>`]
  const places = `1 0 2 ${objects[0]!.length + 1} `
  const stream = deflateSync(`${places}${objects.join(' ')}`)
  const head = `9 0 obj\n<< /Type /ObjStm /N 2 /First ${places.length} /Filter /FlateDecode >>\nstream\r\n`
  return Buffer.concat([Buffer.from(head), stream, Buffer.from('\nendstream\nendobj\n')])
}
const of = (document_url: string) => ({ type: 'document_url', document_url })
const HERE = of('https://example.com/a.pdf')

async function read(body: object, key: string) {
  const response = await g.call('/v1/ocr', key, { model: 'reader', ...body })
  return { status: response.status, body: (await response.json()) as any }
}

test('the vendor is told every page that is held for, and read pages are paid', async () => {
  const { id, key } = await g.account({ credits: 10_000n * CREDIT })
  const cases: Array<[body: object, pages: number]> = [
    [{ document: HERE, pages: [4, 2, 4] }, 2],
    [{ document: HERE, pages: '0-3, 7,2' }, 5],
    [{ document: HERE }, 50],
    [{ document: HERE, pages: [1], provider: { only: ['reader'] } }, 1],
    [{ document: { type: 'image_url', image_url: 'https://example.com/a.png' } }, 1],
    [{ document: { image_url: { url: 'https://example.com/a.png' } } }, 1],
    [{ document: of('data:image/png;base64,aaaa') }, 1],
    [{ document: of(pdf(tree(7))) }, 7],
    [{ document: of(pdf(packed(9))) }, 9],
    [{ document: of(pdf('1 0 obj << /Type /Page >> endobj')) }, 1],
    // Nothing that can be counted: as many as the model reads.
    [{ document: of(pdf('1 0 obj << /Type /ObjStm >>\nstream\nnot packed\nendstream endobj')) }, 50],
    [{ document: of('data:application/pdf;base64,aaaa') }, 50],
  ]
  for (const [body, pages] of cases) {
    const { status, body: got } = await read(body, key)
    assert.equal(status, 200, JSON.stringify(got))
    assert.deepEqual(
      [told.model, told.pages?.length, told.provider, got.model, got.pages.length],
      ['their-ocr', pages, undefined, 'reader', pages],
    )
    const { charged, held, endpoint } = await g.lastCall(id)
    assert.deepEqual([charged, held, endpoint], [BigInt(pages) * CREDIT, BigInt(pages) * CREDIT, 'ocr'])
  }
  await read({ document: HERE, pages: [0], document_annotation_format: { type: 'json_object' } }, key)
  assert.equal((await g.lastCall(id)).charged, 2n * CREDIT)
})

test('a document of unknown length is read whole also by a vendor that rejects pages beyond the end', async () => {
  const { id, key } = await g.account({ credits: 10_000n * CREDIT })
  pagesEnd = 3
  for (const body of [{ document: HERE }, { document: HERE, pages: null }]) {
    const { status, body: got } = await read({ ...body, model: 'long-reader' }, key)
    assert.equal(status, 200, JSON.stringify(got))
    assert.ok(!('pages' in told))
    const { charged, held } = await g.lastCall(id)
    assert.deepEqual([charged, held], [3n * CREDIT, 1_000n * CREDIT])
  }
  const before = await g.balance(id)
  const { status, body } = await read({ document: HERE, pages: '2-3' }, key)
  assert.equal(status, 422, JSON.stringify(body))
  pagesEnd = Number.POSITIVE_INFINITY
  await g.settled()
  assert.deepEqual(await g.balance(id), before)
})

test('a call costs the pages that its vendor reports, never above its hold; without a report those that came', async () => {
  const { id, key } = await g.account({ credits: 1_000n * CREDIT })
  const pages = [{ index: 0, markdown: 'A', images: [], dimensions: null }]
  const cost = async (said: object) => {
    answer = { pages, model: 'their-ocr', ...said }
    assert.equal((await read({ document: HERE, pages: '0-4' }, key)).status, 200)
    const { charged, loss } = await g.lastCall(id)
    return [charged / CREDIT, loss]
  }
  assert.deepEqual(await cost({ usage_info: { pages_processed: 3 } }), [3n, 0n])
  assert.deepEqual(await cost({ usage_info: { pages_processed: 0 } }), [0n, 0n])
  assert.deepEqual(await cost({ usage_info: { pages_processed: 900 } }), [5n, 0n])
  assert.deepEqual(await cost({ usage_info: { pages_processed: -1 } }), [1n, 0n])
  assert.deepEqual(await cost({}), [1n, 0n])
  const before = await g.balance(id)
  answer = { model: 'their-ocr' }
  assert.equal((await read({ document: HERE, pages: '0-4' }, key)).status, 502)
  answer = undefined
  await g.settled()
  assert.deepEqual(await g.balance(id), before)
})

test('fifty calls at once on the credits of a few spend no more than there is', async () => {
  const { id, key } = await g.account({ credits: 25n * CREDIT })
  const calls = await atOnce(50, () => read({ document: HERE, pages: '0-9' }, key))
  const served = calls.filter(({ status }) => status === 200).length
  assert.ok(served >= 1 && served <= 2, String(served))
  assert.ok(calls.every(({ status }) => [200, 402, 503].includes(status)))
  await g.settled()
  assert.equal((await g.balance(id)).posted, (25n - BigInt(served) * 10n) * CREDIT)
  assert.equal((await read({ document: HERE }, key)).status, 402)
})

test('a caller who leaves pays for the pages that the vendor reads all the same', async () => {
  const { id, key } = await g.account({ credits: 100n * CREDIT })
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  const leaving = new AbortController()
  const seen = told
  const left = g
    .call('/v1/ocr', key, { model: 'reader', document: HERE, pages: '0-2' }, { signal: leaving.signal })
    .catch(() => 'left')
  await until(() => told !== seen)
  leaving.abort()
  assert.equal(await left, 'left')
  resolve()
  await until(async () => (await g.balance(id)).held === 0n)
  assert.equal((await g.lastCall(id)).charged, 3n * CREDIT)
})

test('what is wrong with a request is said by the field, and nothing is held', async () => {
  const { id, key } = await g.account()
  const cases: Array<[body: object, param: string]> = [
    [{}, 'document'],
    [{ document: 7 }, 'document'],
    [{ document: { type: 'file', file_id: 'f-1' } }, 'document.file_id'],
    [{ document: { type: 'document_url' } }, 'document'],
    [{ document: HERE, pages: '3-1' }, 'pages'],
    [{ document: HERE, pages: 'all' }, 'pages'],
    [{ document: HERE, pages: [] }, 'pages'],
    [{ document: HERE, pages: [-1] }, 'pages'],
    [{ document: HERE, pages: '0-50' }, 'pages'],
    [{ document: HERE, pages: '0-999999,1000000' }, 'pages'],
    [{ document: of(pdf(tree(51))) }, 'document'],
    [{ document: HERE, table_format: 'csv' }, 'table_format'],
    [{ document: HERE, provider: { only: ['nobody'] } }, 'provider'],
  ]
  for (const [body, param] of cases) {
    const { status, body: got } = await read(body, key)
    assert.equal(status, 400, JSON.stringify(body).slice(0, 80))
    assert.ok(String(got.error.param).startsWith(param), `${JSON.stringify(body)}: ${JSON.stringify(got.error)}`)
  }
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n, held: 0n })
})

test('an agent reads a document by the tool, and the sandbox reads what it is told', needs('agents'), async () => {
  const { key } = await g.account()
  const client = await connect(g.url, key)
  const found = (await client.callTool({
    name: 'read_document',
    arguments: { model: 'alpha-ocr-1', url: 'https://example.com/a.pdf', pages: '1' },
  })) as { content: { text: string }[]; structuredContent: { pages: { index: number }[] } }
  await client.close()
  assert.match(found.content[0]!.text, /# Page 2/)
  assert.deepEqual(pluck(found.structuredContent.pages, 'index'), [1])
})
