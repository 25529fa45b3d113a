// Written pages: links lead somewhere, and pages are complete.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { createServer } from '../src/api/server/server.ts'
import { COMMANDS } from '../src/cli/run.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { sectionsOf } from '../src/extensions/docs/page.ts'
import { mountDocs } from '../src/extensions/docs/routes.ts'
import { silentLog } from '../src/kernel/log.ts'
import { realWorld } from '../src/kernel/world.ts'
import { assert, none, test } from './kit.ts'
import { rawGet } from './raw-get.ts'

const ROOT = resolve(import.meta.dirname, '..')
const pages = globSync(['*.md', 'docs/**/*.md', 'bench/**/*.md', 'examples/**/*.md', 'deploy/**/*.md'], {
  cwd: ROOT,
}).sort()
const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8')
/** Code may contain what looks like a link. */
const proseOf = (page: string) =>
  textOf(page)
    .replaceAll(/```[\s\S]*?```/g, '')
    .replaceAll(/`[^`\n]*`/g, '')
const linksOf = (page: string) => [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)
/** A marked place, or a heading. */
const hasPlace = (text: string, place: string) =>
  text.includes(`<a id="${place}"></a>`) || sectionsOf(text, '', '').some(({ href }) => href === `#${place}`)

test('links between pages lead to files that exist, and to places in them', () => {
  const broken: string[] = []
  for (const page of pages)
    for (const link of linksOf(page)) {
      if (/^https?:/.test(link)) continue
      const [path = '', place] = link.split('#')
      const target = path === '' ? page : join(dirname(page), path)
      if (!existsSync(join(ROOT, target))) broken.push(`${page}: ${link}`)
      else if (place && !hasPlace(textOf(target), place)) broken.push(`${page}: ${link}`)
    }
  assert.deepEqual(broken, [])
})

test('the README is short, and its table compares the same six in every row', () => {
  const text = textOf('README.md')
  const lines = text.trimEnd().split('\n')
  assert.ok(lines.length <= 150, `${lines.length} lines`)
  const rows = (text.split('## Compared\n')[1] ?? '')
    .split('\n## ')[0]!
    .split('\n')
    .filter((line) => line.startsWith('|'))
  assert.ok(rows.length > 10 && rows.every((row) => row.split('|').length === 9), 'every row has its cells')
  const [, tests = ''] = /^(npm ci && npm test)\b/m.exec(text) ?? []
  const ci = readFileSync(join(ROOT, '.ci', 'run'), 'utf8')
  assert.ok(
    tests &&
      ci.includes(
        `\n${tests} || npm test -- --failed || failed=1\nnpm run test:full || npm test -- --failed || failed=1\n`,
      ),
    'CI runs what the README says',
  )
  for (const [, picture = ''] of text.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g))
    assert.ok(existsSync(join(ROOT, picture)), picture)
})

test('every guide begins with its title', () => {
  none(pages, (page) => page.startsWith('docs/guides/') && !/^# .+\n\n/.test(textOf(page)))
})

test('a command of a page can be pasted where the program is not on the path', () => {
  const bare = pages.flatMap((page) =>
    [...textOf(page).matchAll(/^tollgate .*$/gm)].map(([line]) => `${page}: ${line}`),
  )
  assert.deepEqual(bare, [])
})

test('the decisions are all in their list, numbered without gaps', () => {
  const list = textOf('docs/decisions/README.md')
  const files = pages
    .filter((page) => /^docs\/decisions\/\d/.test(page))
    .map((page) => page.slice('docs/decisions/'.length))
  assert.deepEqual(
    files.filter((file) => !list.includes(`](${file})`)),
    [],
  )
  assert.deepEqual(
    files.map((file) => Number(file.slice(0, 4))),
    files.map((_, index) => index + 1),
  )
})

test('no page names this machine, or promises what is not there', () => {
  const found = pages.filter((page) => /\/work\/|\/root\/|\bTODO\b|\bTBD\b|lorem ipsum/i.test(textOf(page)))
  assert.deepEqual(found, [])
})

test('every page that the gateway serves links only to what it serves', async () => {
  const app = createServer({ world: realWorld, log: silentLog, strictErrors: false })
  mountDocs(app, { version: '0.0.0', serverUrl: 'http://127.0.0.1', endpoints: () => ALL_ENDPOINTS })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const seen = new Set<string>()
  const waiting = ['/docs']
  const broken: string[] = []
  for (let address = waiting.pop(); address !== undefined; address = waiting.pop()) {
    if (seen.has(address)) continue
    seen.add(address)
    const answer = await rawGet(url + address)
    if (answer.status !== 200) broken.push(address)
    if (!String(answer.headers['content-type']).startsWith('text/html')) continue
    for (const [, href = ''] of answer.text.matchAll(/<a [^>]*href="([^"]*)"/g)) {
      const path = href.split('#')[0]!
      if (path.startsWith('/docs')) waiting.push(path)
      else if (path !== '' && !/^\/(console|openapi\.json|llms\.txt)/.test(path) && !/^https:/.test(path))
        broken.push(`${address} → ${href}`)
    }
  }
  assert.deepEqual(broken, [])
  assert.ok(seen.size > 20, `only ${seen.size} pages were found`)
  await app.close()
})

/** Verbs that are not clients of a running gateway; src/main.ts has them. */
const OTHER_VERBS = new Set(['serve', 'sandbox', 'version', 'backup', 'restore', 'migrate', 'help'])

test('every command that a page shows exists, with its options', () => {
  const wrong: string[] = []
  for (const page of pages)
    for (const [, line = ''] of textOf(page).matchAll(/(?:npx |`)tollgate ([a-z][^`)\n]*)/g)) {
      const words = line.split(' ')
      if (OTHER_VERBS.has(words[0]!)) continue
      const command =
        COMMANDS.find(({ name }) => name === words.slice(0, 2).join(' ')) ??
        COMMANDS.find(({ name }) => name === words[0])
      const given = words.slice(command?.name.split(' ').length)
      const known = new Set([...Object.keys(command?.optionsFor?.(given) ?? command?.options ?? {}), 'json', 'help'])
      const options = [...line.matchAll(/--([a-zA-Z_-]+)/g)].map(([, option]) => option!)
      if (!command || options.some((option) => !known.has(option))) wrong.push(`${page}: tollgate ${line}`)
    }
  assert.deepEqual(wrong, [])
})

test('every address that a page calls exists', () => {
  const served = textOf('test/routes.txt')
    .split('\n')
    .flatMap((line) => /^\S+ +\S+ +(\/\S*)/.exec(line)?.[1] ?? [])
  const paths = [...ALL_ENDPOINTS.flatMap(({ path, aliases }) => [path, ...aliases]), ...served].map(
    (path) => new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}|:\w+/g, '[^/]+')}$`),
  )
  const wrong: string[] = []
  for (const page of pages)
    for (const [, path = ''] of textOf(page).matchAll(
      /curl[^\n]*?(?:\$TOLLGATE(?:_URL)?|127\.0\.0\.1:8080)(\/[^\s"'?]+)/g,
    ))
      if (!paths.some((known) => known.test(path))) wrong.push(`${page}: ${path}`)
  assert.deepEqual(wrong, [])
})

test('every fault that outside testers found names tests that exist', () => {
  const page = readFileSync(join(ROOT, 'docs', 'reliability.md'), 'utf8')
  const rows = page.slice(page.indexOf('## Faults that outside testers found')).match(/^\| \d+ \|.*$/gm) ?? []
  assert.deepEqual(
    rows.map((row) => Number(/\d+/.exec(row)?.[0])),
    rows.map((_, index) => index + 1),
  )
  for (const row of rows) {
    const [, seen = '', shown = ''] = row.split(' | ')
    assert.ok(seen.length > 20, row.slice(0, 40))
    let text = ''
    let named = 0
    for (const [, file, name] of shown.matchAll(/`([^`]+\.(?:test|long)\.ts)`|"([^"]+)"/g)) {
      if (file) text = readFileSync(join(ROOT, file), 'utf8')
      // Names are put together from cases: four words in a row that stand in the file will do.
      else if (name) {
        const words = name.split(' ')
        const found = words.some((_, at) => at + 4 <= words.length && text.includes(words.slice(at, at + 4).join(' ')))
        assert.ok(found, `${row.slice(0, 6)} ${name}`)
        named += 1
      }
    }
    assert.ok(named > 0, row.slice(0, 40))
  }
})

test('every sentence of SECURITY.md names a test that keeps it, or says that it promises nothing', () => {
  const page = textOf('SECURITY.md')
  const promises = page.slice(page.indexOf('\n- **'))
  const wrong: string[] = []
  const end = promises.replaceAll(/([\s\S]*?)<!-- (.+?) -->/g, (_, said: string, shown: string) => {
    const sentence = said.replaceAll(/^##.*$/gm, '').trim()
    if (/[.?!]\)?\s+(?:- )?[A-Z`*[]/.test(sentence)) wrong.push(`no test stands behind the first of: ${sentence}`)
    const [, file = '', name = ''] = /^(\S+\.(?:test|long)\.ts): (.+)$/.exec(shown) ?? []
    const tests =
      existsSync(join(ROOT, file)) && file ? textOf(file).matchAll(/\b(?:test|row)\(\s*(['"`])(.+?)\1,/g) : []
    if (shown !== 'no promise' && ![...tests].some(([, , title]) => title?.includes(name)))
      wrong.push(`no such test: ${shown}`)
    return ''
  })
  assert.deepEqual([...wrong, end.trim()], [''])
})
