// `npm run size`: how large the house is, and how its rooms hang together.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const filesIn = (folder: string, pattern: RegExp) =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !/node_modules|\bdist\b/.test(path))
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const linesOf = (paths: readonly string[]) =>
  paths.reduce((sum, path) => sum + (textOf(path).match(/\n/g)?.length ?? 0), 0)

const isTest = (path: string) => /\.(?:test|long)\.tsx?$/.test(path)
const sources = filesIn('src', /\.(?:ts|sql)$/).filter((path) => !isTest(path))
const isExtension = (path: string) => path.startsWith('src/extensions/')
const core = sources.filter((path) => !isExtension(path))
const tests = [
  ...filesIn('test', /\.tsx?$/),
  ...['src', 'sandbox', 'console', 'clients', 'bench'].flatMap((folder) => filesIn(folder, /\.tsx?$/).filter(isTest)),
]
const roomOf = (path: string) => (path.split('/').length > 2 ? path.split('/')[1] : undefined)
const rooms = new Set(core.flatMap((path) => roomOf(path) ?? []))
const arrows = new Set(
  core.flatMap((path) =>
    [...textOf(path).matchAll(/^(?:import|export) [^'"]*?from '(\.[^']+)'/gm)].flatMap(([, from = '']) => {
      const target = roomOf(relative(ROOT, resolve(ROOT, dirname(path), from)))
      const own = roomOf(path)
      return own && target && own !== target && rooms.has(target) ? [`${own} ${target}`] : []
    }),
  ),
)
const extensions = Map.groupBy(sources.filter(isExtension), (path) => path.split('/')[2] ?? '')

const rows: readonly (readonly [what: string, count: number, aim?: number])[] = [
  ['core, lines of TypeScript and SQL', linesOf(core), 62_000],
  ...[...extensions].sort().map(([name, paths]) => [`extension ${name}`, linesOf(paths)] as const),
  ['src, all lines', linesOf(sources), 90_000],
  ['tests, lines', linesOf(tests), 64_000],
  ['console, lines', linesOf(filesIn('console/src', /\.(?:tsx?|css)$/).filter((path) => !isTest(path)))],
  ['rooms of the core', rooms.size, 20],
  ['arrows among rooms of the core', arrows.size, 150],
  ['decisions, pages', filesIn('docs/decisions', /^\d+.*\.md$/).length, 15],
  ['guides', filesIn('docs/guides', /\.md$/).length, 26],
]
const width = Math.max(...rows.map(([what]) => what.length))
for (const [what, count, aim] of rows)
  console.info(`${what.padEnd(width)}  ${String(count).padStart(7)}${aim === undefined ? '' : `   at most ${aim}`}`)
