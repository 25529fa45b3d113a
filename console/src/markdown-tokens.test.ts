import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Token } from 'marked'
import { blocksOf, inlineOf, safeAddress, sectionsOf } from './markdown-tokens.ts'

const SAMPLE = `# Title

Some *text* with <b>tags</b>.
Second line.

- one
- two
  more of two

3. three
   - nested

\`\`\`ts
const a = "\`\`"

const b = 2
\`\`\`
> quoted

| a | b |
|---|--:|
| 1 | 2 |

---
end`

const read = (text: string) => sectionsOf(text).flatMap(blocksOf)
const kinds = (text: string) =>
  read(text)
    .map(({ type }) => type)
    .filter((type) => type !== 'space')

test('an answer falls into paragraphs, lists, code, quotes and tables', () => {
  const expected = ['heading', 'paragraph', 'list', 'list', 'code', 'blockquote', 'table', 'hr', 'paragraph']
  assert.deepEqual(kinds(SAMPLE), expected)
  const code = read(SAMPLE).find((token) => token.type === 'code')
  assert.deepEqual([code?.lang, code?.text], ['ts', 'const a = "``"\n\nconst b = 2'])
  assert.deepEqual(kinds(SAMPLE.replaceAll('\n', '\r\n')), expected)
})

test('an answer that is still streaming in can be shown at every character, and only its last section changes', () => {
  const whole = sectionsOf(SAMPLE)
  for (let end = 0; end <= SAMPLE.length; end++) {
    const sections = sectionsOf(SAMPLE.slice(0, end))
    assert.doesNotThrow(() => sections.map(blocksOf))
    // Within a line it is not yet known whether it goes on with the list above it.
    if (SAMPLE[end - 1] === '\n') assert.deepEqual(sections.slice(0, -1), whole.slice(0, sections.length - 1))
  }
  assert.deepEqual(kinds('```\nopen'), ['code'])
})

test('no part of an answer is lost, however long it is', () => {
  const line = `${'word '.repeat(5_000)}end`
  for (const text of [line, `\`\`\`\n${line}\n\n${line}\n\`\`\``, `- ${line}\n- ${line}`])
    assert.equal(sectionsOf(text).join('').replaceAll('\n', ''), text.replaceAll('\n', ''))
  assert.equal(sectionsOf(`\`\`\`\n${line}\n\n${line}\n\`\`\``).length, 1, 'code stays in one piece')
})

test('only addresses of the web and of mail become links', () => {
  const addresses = (tokens: Token[]): string[] =>
    tokens.flatMap((token) => [
      ...('href' in token ? [safeAddress(String(token.href)) ?? 'none'] : []),
      ...('tokens' in token ? addresses(token.tokens ?? []) : []),
    ])
  const links = (text: string) => addresses(inlineOf(text))
  assert.deepEqual(links('[e](https://f.example) http://g.example <mailto:h@i.example>'), [
    'https://f.example',
    'http://g.example',
    'mailto:h@i.example',
  ])
  for (const hostile of [
    '[x](javascript:alert(1))',
    '[x](JaVaScRiPt:alert(1))',
    '[x](javascript&#58;alert(1))',
    '[x](<java\tscript:alert(1)>)',
    '[x](data:text/html,<script>alert(1)</script>)',
    '[x](vbscript:x)',
    '[x](//evil.example)',
    '[x](/console/api)',
    '![x](data:image/svg+xml,<svg/onload=alert(1)>)',
    '<javascript:alert(1)>',
  ])
    assert.deepEqual([...new Set(links(hostile))], ['none'], hostile)
})

test('one hundred kilobytes of marks are read in time', () => {
  const marks = [
    '*a_',
    '**a* ',
    '_',
    '`',
    '``a',
    '> ',
    '>>',
    '- > ',
    '1. ',
    '| ',
    '- \n',
    '[a](',
    '![',
    'http://',
    '<a',
  ]
  const shapes = [
    '|a|\n',
    '"|a|\n',
    '===',
    '- [ ] ---\n',
    '\n\n_',
    '/*a\n\n',
    '  - a\n',
    'a|b\n-|-\n',
    '[a]: b\n[a]',
    '😀',
  ]
  for (const mark of [...marks, ...shapes])
    for (const text of [
      mark.repeat(100_000 / mark.length),
      `- [ ] )===#x@ <div>${mark.repeat(100_000 / mark.length)}`,
    ]) {
      const { user, system } = process.cpuUsage()
      sectionsOf(text).map(blocksOf)
      const used = process.cpuUsage()
      const ms = (used.user - user + used.system - system) / 1000
      assert.ok(ms < 2000, `${JSON.stringify(mark)} took ${ms} ms`)
    }
})
