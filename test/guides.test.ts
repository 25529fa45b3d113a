// What the guides show is so: their requests are answered, their figures are the gateway's, and readers find them.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readPresets } from '../src/catalog/preset.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { assert, BY, test, testGateway } from './gateway.ts'
import { rawGet } from './raw-get.ts'

const ROOT = resolve(import.meta.dirname, '..')
const guide = (name: string) => readFileSync(join(ROOT, 'docs/guides', `${name}.md`), 'utf8')

let key = ''
const g = testGateway({ isShared: true }, async () => {
  key = (await g.account({ credits: 1_000_000_000n })).key
})

const read = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(g.url + path, { headers })
  return { status: response.status, text: await response.text(), headers: response.headers }
}

test('the answers to the requests of the guides are what the guides say', async () => {
  const requests = guide('05-text').matchAll(/^curl \$TOLLGATE(\/\S+) [^\n]*-d '([^']*)'$/gm)
  let [tools, shaped] = [0, 0]
  for (const [, path = '', body = ''] of requests) {
    const answer = await (await g.call(path, key, JSON.parse(body))).text()
    if (body.includes('"tools"') && !body.includes('"role": "tool"') && ++tools)
      assert.match(answer, /"finish_reason":"tool_calls"/)
    if (body.includes('json_schema') && ++shaped)
      assert.deepEqual(Object.keys(JSON.parse(JSON.parse(answer).choices[0].message.content)), ['city', 'facts'])
  }
  assert.ok(tools > 0 && shaped > 0)
})

test('the figures of the guide on billing are those of the shipped prices', async () => {
  const text = guide('12-billing')
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello!' }] }
  const shown = JSON.parse(/```json\n(\{"product"[^`]*)```/.exec(text)![1]!)
  const { data } = (await (await g.call('/v1/quote', key, body)).json()) as { data: Record<string, unknown> }
  for (const name of ['product', 'unit', 'hold', 'costAtMost', 'holdAtLeast', 'worstCase', 'catalogVersion'])
    assert.deepEqual(data[name], shown[name], name)
  const charge = (await g.call('/v1/chat-completions', key, body)).headers.get('x-tollgate-charge')
  const [, hold, cost] = /holds\s+([\d.]+) credits and costs ([\d.]+)\./.exec(text)!
  assert.deepEqual([hold, cost], [data.hold, charge])
})

test('the figures of the README are what a call costs and how many presets there are', async () => {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [, body = ''] = /^ {2}-d '([^']*)'$/m.exec(text) ?? []
  const charge = (await g.call('/v1/chat/completions', key, JSON.parse(body))).headers.get('x-tollgate-charge')
  assert.equal(/`x-tollgate-charge: ([\d.]+)`/.exec(text)?.[1], charge)
  assert.equal(/preconfigured \| (\d+)/.exec(text)?.[1], String((await readPresets()).length))
})

test('guides count the endpoints that there are', () => {
  const count = ALL_ENDPOINTS.filter(({ id }) => id.startsWith('siteanalytics/')).length
  for (const name of ['10-data', '04-sandbox', '11-agents', '03-typed-clients'])
    assert.equal(
      Number(/(\d+) (?:GET |analytics )?(?:endpoints|paths of the analytics)/.exec(guide(name))?.[1]),
      count,
      name,
    )
})

test('the documentation names the address that it is read at, and no header gets into it otherwise', async () => {
  const page = await read('/docs/guides/sdks')
  assert.ok(page.text.includes(`${g.url}/v1`) && !page.text.includes('127.0.0.1:8080'))
  const asked = (host: string) => rawGet(`${g.url}/docs/guides/sdks`, { host })
  const named = await asked('gate.example.com:8443')
  assert.ok(named.text.includes('http://gate.example.com:8443/v1'))
  assert.match(String(named.headers['cache-control']), /^private/, 'a shared cache would show it to others')
  assert.ok(!(await asked('evil"><script>')).text.includes('evil'))
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
  assert.match(text, /href="\/docs\/guides\/errors-and-limits[^"]*"/)
  const [, anchor = ''] = /href="\/docs\/guides\/errors-and-limits(#[^"]+)"/.exec(text) ?? []
  assert.ok((await read('/docs/guides/errors-and-limits')).text.includes(`id="${anchor.slice(1)}"`))
  assert.match((await read('/docs/search?q=backlinks')).text, /href="\/docs\/api\/siteanalytics-websites-backlinks"/)
  const hostile = await read(`/docs/search?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
  assert.ok(!hostile.text.includes('<script>alert'))
  assert.equal((await read(`/docs/search?q=${'a'.repeat(5000)}`)).status, 200)
})

test('search knows words: one inside another is not found, the beginning of one is', async () => {
  const titles = async (q: string) =>
    [...(await read(`/docs/search?q=${q}`)).text.matchAll(/<li><a href="([^"]*)">[^<]*<\/a><p>/g)].map(
      ([, href]) => href!,
    )
  const vision = (await titles('vision')).filter((href) => href.startsWith('/docs/guides/'))
  assert.ok(vision[0]?.startsWith('/docs/guides/media#vision'), vision.join(' '))
  for (const href of await titles('vision')) {
    const page = (await read(`${href.split('#')[0]}.md`)).text
    assert.match(page, /(?<![\p{L}\p{N}])vision/iu, `${href} does not hold the word`)
  }
  assert.ok((await titles('idempot')).some((href) => href.includes('idempotency')))
  assert.deepEqual(await titles('dempotenc'), [])
  // People have other words for some things.
  const meant = { '2fa': 'people', 'rate+limit': 'errors-and-limits', gpt: 'sdks', rbac: 'roles' }
  for (const [asked, page] of Object.entries(meant))
    assert.ok(
      (await titles(asked)).some((href) => href.includes(page)),
      asked,
    )
})

test('every endpoint has a page: runnable requests by tab, a recorded answer, readable types, and a way to try it', async () => {
  for (const spec of ALL_ENDPOINTS) {
    const at = `/docs/api/${spec.id.replaceAll(/[^a-zA-Z0-9]+/g, '-').replaceAll(/^-|-$/g, '')}`
    const { text, status } = await read(at)
    assert.equal(status, 200, at)
    assert.match(text, /<label for="tabs-1-0">curl<\/label>/, spec.id)
    assert.match(text, /<label for="tabs-1-1">Python · \w/, spec.id)
    assert.match(text, /<label for="tabs-1-2">TypeScript/, spec.id)
    assert.match(text, /<h2 id="answer">/, spec.id)
    if (!spec.gives)
      assert.doesNotMatch(text.split('<h2 id="answer">')[1]?.split('</pre>')[0] ?? '', /&quot;…&quot;/, spec.id)
    assert.doesNotMatch(text, /9,?007,?199|999,?999,?999,?999/, spec.id)
    if (spec.sells) assert.match(text, /href="\/console\/try\//, spec.id)
    if (!spec.form) assert.match(text, /<form class="try-form"/, spec.id)
    // No key can get into an address: its field has no name.
    assert.doesNotMatch(text, /<input data-key[^>]* name=/)
  }
  const chat = (await read('/docs/api/chat')).text
  for (const field of ['messages[].role', 'messages[].content[].image_url.url', 'messages[].tool_calls[].function'])
    assert.ok(chat.includes(`<code>${field}</code>`), field)
  assert.match(chat, /whole number, 1 or more/)
  for (const tab of [
    'Python · openai',
    'TypeScript · openai',
    'Python · tollgate-client',
    'TypeScript · tollgate-client',
  ])
    assert.ok(chat.includes(`>${tab}</label>`), tab)
})

test('prices on a page are those of the catalog in force', async () => {
  assert.match((await read('/docs/api/embeddings')).text, /alpha-embed-3-small[\s\S]*?2 per million input tokens/)
  await g.gateway.catalog.amend(
    (now) => ({
      ...now,
      models: {
        ...now.models,
        'alpha-embed-3-small': {
          ...now.models['alpha-embed-3-small']!,
          pricing: { unit: 'credits', tiers: [{ input: '3.5' }] },
        },
      },
    }),
    BY,
    'dearer',
  )
  for (const at of ['/docs/api/embeddings', '/docs/api/embeddings.md'])
    assert.match((await read(at)).text, /alpha-embed-3-small[^\n]*[\s\S]{0,120}?3\.5 per million input tokens/)
  await g.gateway.catalog.rollback(1, BY)
})

test('agents read every page as Markdown, by its address or by what they accept, and find them in llms.txt', async () => {
  const list = await read('/llms.txt')
  assert.match(list.headers.get('content-type') ?? '', /^text\/plain/)
  const links = [...list.text.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gm)].map(([, link]) => link!)
  assert.ok(links.length > 150 && links.every((link) => link.startsWith(`${g.url}/docs/`)), String(links.length))
  for (const link of links.filter((_, index) => index % 9 === 0)) {
    const path = link.slice(g.url.length)
    const page = await read(path)
    assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/markdown; charset=utf-8'], path)
    const accepted = await read(path.replace(/\.md$/, ''), { accept: 'text/markdown' })
    assert.equal(accepted.text, page.text)
  }
  assert.match((await read('/docs', { accept: 'text/html, text/markdown;q=0.5' })).text, /^<!doctype html>/)
  const chat = (await read('/docs/api/chat.md')).text
  assert.match(chat, /^# Chat completion\n[\s\S]*```sh tab=curl\ncurl [\s\S]*## Answer/)
  assert.doesNotMatch(chat, /try-form|<!--/)
  assert.equal((await read('/docs/api/nothing.md')).status, 404)
})

test('the menu has no two entries of one name', async () => {
  const { text } = await read('/docs')
  const menu = /<nav aria-label="Documentation">(.*?)<\/nav>/s.exec(text)![1]!
  const names = [...menu.matchAll(/<a [^>]*>([^<]*)<\/a>/g)].map(([, name]) => name)
  assert.deepEqual([...new Set(names)], names)
  assert.ok(names.length > 20)
  const groups = menu.split('<p class="nav-title">').slice(1)
  const titles = groups.map((group) => group.split('<')[0])
  assert.deepEqual(titles.slice(0, 3), ['Start', 'Call models', 'Data'])
  assert.deepEqual(titles.slice(-3), ['Move here', 'API', 'Reference'])
  // By the numbers of their files, each once.
  const listed = [...menu.matchAll(/href="\/docs\/guides\/([^"]+)"/g)].map(([, name]) => name)
  const files = readdirSync('docs/guides').sort()
  assert.deepEqual(
    listed,
    files.map((file) => file.slice(3, -3)),
  )
  assert.ok(files.length <= 26, `${files.length} guides`)
})
