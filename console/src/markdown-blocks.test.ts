import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blocksOf } from './markdown-blocks.ts'

const SAMPLE = `# Title

Some *text* with <b>tags</b>.
Second line.

- one
- two
  more of two

3. three
4. four

\`\`\`ts
const a = "\`\`"
\`\`\`

> quoted

| a | b |
|---|---|
| 1 | 2 |

---
end`

test('an answer falls into paragraphs, lists, code, quotes and tables', () => {
  assert.deepEqual(blocksOf(SAMPLE), [
    { kind: 'heading', level: 1, text: 'Title' },
    { kind: 'text', text: 'Some *text* with <b>tags</b>.\nSecond line.' },
    { kind: 'list', ordered: false, start: 1, items: ['one', 'two\nmore of two'] },
    { kind: 'list', ordered: true, start: 3, items: ['three', 'four'] },
    { kind: 'code', language: 'ts', text: 'const a = "``"' },
    { kind: 'quote', text: 'quoted' },
    {
      kind: 'table',
      rows: [
        ['a', 'b'],
        ['1', '2'],
      ],
    },
    { kind: 'rule' },
    { kind: 'text', text: 'end' },
  ])
})

test('an answer that is still streaming in can be shown at every character', () => {
  for (let end = 0; end <= SAMPLE.length; end++) assert.doesNotThrow(() => blocksOf(SAMPLE.slice(0, end)))
  assert.deepEqual(blocksOf('```\nopen'), [{ kind: 'code', language: '', text: 'open' }])
})

test('hostile lengths are read in time', () => {
  const started = performance.now()
  for (const text of [
    '*'.repeat(50_000),
    '`'.repeat(50_000),
    '> '.repeat(50_000),
    '| '.repeat(50_000),
    '- \n'.repeat(20_000),
  ])
    blocksOf(text)
  assert.ok(performance.now() - started < 2000)
})
