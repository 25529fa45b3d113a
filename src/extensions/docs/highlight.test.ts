import { assert, none, test } from '../../../test/kit.ts'
import { highlighted } from './highlight.ts'
import { htmlOf, searchSections } from './page.ts'

const textOf = (html: string) => html.replaceAll(/<[^>]*>/g, '')
const partsOf = (html: string, kind: string) =>
  [...html.matchAll(new RegExp(`<span class="hl-${kind}">(.*?)</span>`, 'g'))].map(([, text]) => text)

test('code has colours for its parts and keeps every letter; in a language that is not known it has none', () => {
  const shell = highlighted("curl https://a.example/v1 --header 'A: 1' # why", 'sh')
  assert.equal(textOf(shell), "curl https://a.example/v1 --header 'A: 1' # why")
  assert.deepEqual([partsOf(shell, 'comment'), partsOf(shell, 'name')], [['# why'], ['--header']])
  const json = highlighted('{"a": 1.5, "b": [true, "x"]}', 'json')
  assert.deepEqual(partsOf(json, 'name'), ['&quot;a&quot;', '&quot;b&quot;'])
  assert.deepEqual([partsOf(json, 'number'), partsOf(json, 'value')], [['1.5'], ['true']])
  assert.equal(highlighted('const <b>', ''), 'const &lt;b&gt;')
})

test('blocks of several languages stay tabs of each other when they have colours', () => {
  const html = htmlOf('```sh tab=curl\ncurl x\n```\n```python tab=Python\nimport os\n```\n', 'guides')
  assert.equal(html.match(/<div class="panel">/g)?.length, 2)
  assert.ok(html.includes('<span class="hl-word">import</span> os'))
})

test('what is found is shown in whole words, also by another word for it', () => {
  const text = `${'Something else stands here before it. '.repeat(5)}The latency of each call is measured. ${'And more follows. '.repeat(20)}`
  const [hit] = searchSections([{ href: '/docs', title: 'Calls', text }], 'p95').found
  assert.ok(hit)
  const words = new Set(text.split(/\s+/))
  none(hit.excerpt.split(' '), (word) => word !== '…' && !words.has(word))
})
