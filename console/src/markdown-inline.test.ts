import assert from 'node:assert/strict'
import { test } from 'node:test'
import { spansOf } from './markdown-inline.ts'

const text = (words: string) => ({ kind: 'text', text: words })

test('emphasis, code and links are found, and the rest stays text', () => {
  assert.deepEqual(spansOf('a **b *c* d** [e](https://f.example) g'), [
    text('a '),
    { kind: 'strong', spans: [text('b '), { kind: 'slanted', spans: [text('c')] }, text(' d')] },
    text(' '),
    { kind: 'link', address: 'https://f.example', text: 'e' },
    text(' g'),
  ])
  assert.deepEqual(spansOf('**bold** and ``a ` b``'), [
    { kind: 'strong', spans: [text('bold')] },
    text(' and '),
    { kind: 'code', text: 'a ` b' },
  ])
})

test('no text of a model becomes markup or a dangerous link', () => {
  for (const hostile of [
    '<img src=x onerror=alert(1)>',
    '[x](javascript:alert(1))',
    '[x](data:text/html,<script>alert(1)</script>)',
    '2 * 3 * 4 = 24',
    'snake_case_name',
  ])
    assert.deepEqual(spansOf(hostile), [text(hostile)])
})

test('a page of marks is read in time', () => {
  const started = performance.now()
  for (const mark of ['`', '*', '**', '_', '[', '[a](', '``a', '*a', 'h', 'http://'])
    for (const words of [mark.repeat(30_000), `${mark} `.repeat(30_000)]) spansOf(words)
  assert.ok(performance.now() - started < 3000)
})
