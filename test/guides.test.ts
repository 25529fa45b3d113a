// What the guides show is so: their requests are answered, their figures are the gateway's, and readers find them.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { testGateway } from './gateway.ts'

const ROOT = resolve(import.meta.dirname, '..')
const guide = (name: string) => readFileSync(join(ROOT, 'docs/guides', `${name}.md`), 'utf8')

let key = ''
const g = testGateway({}, async () => {
  key = (await g.account({ credits: 1_000_000_000n })).key
})

const read = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(g.url + path, { headers })
  return { status: response.status, text: await response.text(), headers: response.headers }
}

test('the answers to the requests of the guides are what the guides say', async () => {
  for (const name of ['27-tool-calling', '28-structured-output'])
    for (const [, path = '', body = ''] of guide(name).matchAll(/^curl \$TOLLGATE(\/\S+) [^\n]*-d '([^']*)'$/gm)) {
      const answer = await (await g.call(path, key, JSON.parse(body))).text()
      if (name === '27-tool-calling' && !body.includes('"tool"')) assert.match(answer, /"finish_reason":"tool_calls"/)
      if (name === '28-structured-output')
        assert.deepEqual(Object.keys(JSON.parse(JSON.parse(answer).choices[0].message.content)), ['city', 'facts'])
    }
})

test('the figures of the guide on billing are those of the shipped prices', async () => {
  const text = guide('04-billing')
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello!' }] }
  const shown = JSON.parse(/```json\n(\{"product"[^`]*)```/.exec(text)![1]!)
  const { data } = (await (await g.call('/v1/quote', key, body)).json()) as { data: Record<string, unknown> }
  for (const name of ['product', 'unit', 'hold', 'costAtMost', 'holdAtLeast', 'worstCase', 'catalogVersion'])
    assert.deepEqual(data[name], shown[name], name)
  const charge = (await g.call('/v1/chat-completions', key, body)).headers.get('x-tollgate-charge')
  const [, hold, cost] = /holds\s+([\d.]+) credits and costs ([\d.]+)\./.exec(text)!
  assert.deepEqual([hold, cost], [data.hold, charge])
})

test('guides count the endpoints that there are', () => {
  const count = ENDPOINTS.filter(({ id }) => id.startsWith('siteanalytics/')).length
  for (const name of ['09-site-analytics', '11-sandbox', '18-agents', '19-typescript-client', '20-python-client'])
    assert.equal(
      Number(/(\d+) (?:GET |analytics )?(?:endpoints|paths of the analytics)/.exec(guide(name))?.[1]),
      count,
      name,
    )
})

test('the documentation names the address that it is read at, and no header gets into it otherwise', async () => {
  const page = await read('/docs/guides/sdks')
  assert.ok(page.text.includes(`${g.url}/v1`) && !page.text.includes('127.0.0.1:8080'))
  const { app } = g.gateway
  const asked = (host: string) => app.inject({ url: '/docs/guides/sdks', headers: { host } })
  assert.ok((await asked('gate.example.com:8443')).body.includes('http://gate.example.com:8443/v1'))
  assert.ok(!(await asked('evil"><script>')).body.includes('evil'))
})

test('what stands in angle brackets on a page is shown to its reader', async () => {
  const { text } = await read('/docs/reference/errors')
  assert.ok((text.match(/Authorization: Bearer &lt;key&gt;/g)?.length ?? 0) >= 2)
  assert.match((await read('/docs/guides/sdks')).text, /&lt;gateway&gt;\/v1/)
  // Anchors stay what they are.
  assert.match(text, /<a id="key_missing"><\/a>/)
  for (const page of ['errors', 'configuration', 'command-line', 'operator-api'])
    assert.doesNotMatch((await read(`/docs/reference/${page}`)).text, /<(?:key|account|token|name|uid)>/, page)
})

test('the documentation is searched by words, and what is searched for stays text', async () => {
  const { text } = await read('/docs/search?q=idempotency+key')
  assert.match(text, /href="\/docs\/guides\/limits-and-idempotency[^"]*"/)
  const [, anchor = ''] = /href="\/docs\/guides\/limits-and-idempotency(#[^"]+)"/.exec(text) ?? []
  assert.ok((await read('/docs/guides/limits-and-idempotency')).text.includes(`id="${anchor.slice(1)}"`))
  assert.match((await read('/docs/search?q=backlinks')).text, /href="\/docs\/api#siteanalytics_websites_backlinks"/)
  const hostile = await read(`/docs/search?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
  assert.ok(!hostile.text.includes('<script>alert'))
  assert.equal((await read(`/docs/search?q=${'a'.repeat(5000)}`)).status, 200)
})

test('every paid operation shows a request that can be sent, an answer, and leads into the playground', async () => {
  const { text } = await read('/docs/api')
  for (const spec of ENDPOINTS.filter(({ sells }) => sells !== undefined)) {
    const id = spec.id.replaceAll(/[^a-zA-Z0-9]+/g, '_').replaceAll(/^_|_$/g, '')
    const part = text.slice(text.indexOf(`id="${id}"`)).split('</details>')[0]!
    assert.match(part, /<pre[^>]*><code>curl /, spec.id)
    // Sound has no shape that could be shown.
    if (!spec.gives) assert.match(part, /Its answer has this shape/, spec.id)
    assert.match(part, /href="\/console\/try\//, spec.id)
  }
})

test('the menu has no two entries of one name', async () => {
  const { text } = await read('/docs')
  const menu = /<nav aria-label="Documentation">(.*?)<\/nav>/s.exec(text)![1]!
  const names = [...menu.matchAll(/<a [^>]*>([^<]*)<\/a>/g)].map(([, name]) => name)
  assert.deepEqual([...new Set(names)], names)
  assert.ok(names.length > 20)
  const [forPrograms = '', forOperators = ''] = menu.split('For operators')
  for (const guide of ['connect-a-vendor', 'import', 'vendor-credentials', 'production']) {
    assert.ok(forOperators.includes(`/docs/guides/${guide}"`) && !forPrograms.includes(`/docs/guides/${guide}"`), guide)
  }
})
