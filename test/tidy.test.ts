// The rules of the house that a reader would otherwise have to remember.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'

const ROOT = resolve(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'src')

/** A folder may import only from those above it. */
const FOLDERS = [
  'kernel',
  'database',
  'meter',
  'catalog',
  'ledger',
  'upstream',
  'protocols',
  'assets',
  'admission',
  'identity',
  'routing',
  'jobs',
  'pipeline',
  'http',
  'sandbox',
  'cli',
]

const sources = readdirSync(SOURCE, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => relative(SOURCE, join(entry.parentPath, entry.name)))
  .filter((path) => !path.endsWith('.test.ts'))
const textOf = (path: string) => readFileSync(join(SOURCE, path), 'utf8')
/** Comments and strings may name what code may not use. */
const codeOf = (path: string) =>
  textOf(path)
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/(^|\s)\/\/.*$/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
const offenders = (pattern: RegExp, allowed: (path: string) => boolean) =>
  sources.filter((path) => !allowed(path) && pattern.test(codeOf(path)))

test('a folder imports only from folders above it', () => {
  const wrong: string[] = []
  for (const path of sources) {
    const folder = path.split('/')[0] ?? ''
    const rank = FOLDERS.indexOf(folder)
    if (!path.includes('/')) continue
    assert.notEqual(rank, -1, `${folder}/ has no place in the order of folders`)
    for (const [, , from] of textOf(path).matchAll(/^import (type )?[\s\S]*?from '(\.[^']+)'/gm)) {
      const target = relative(SOURCE, resolve(SOURCE, dirname(path), from ?? ''))
      const targetRank = FOLDERS.indexOf(target.split('/')[0] ?? '')
      if (target === '../package.json') continue
      if (targetRank === -1 || targetRank > rank) wrong.push(`${path} imports ${target}`)
      if (folder === 'sandbox' && !['kernel', 'sandbox'].includes(target.split('/')[0] ?? ''))
        wrong.push(`${path} imports ${target}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('the console takes types from the server, and nothing that would be built into it', () => {
  const folder = join(ROOT, 'console', 'src')
  const wrong = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .filter((path) =>
      /^(?:import|export) (?!type )[^']*from '(?:\.\.\/)+src\//m.test(readFileSync(join(folder, path), 'utf8')),
    )
  assert.deepEqual(wrong, [])
})

test('the environment is read in config.ts only', () => {
  assert.deepEqual(
    offenders(/\bprocess\.env\b/, (path) => path === 'config.ts'),
    [],
  )
})

test('HTTP clients live in upstream/ only', () => {
  const clients = /(?<![.\w])fetch\(|\bhttps?\.(request|get)\(|from ''\s*$/
  assert.deepEqual(
    sources.filter(
      (path) =>
        !path.startsWith('upstream/') &&
        (clients.test(codeOf(path)) || /from '(undici|axios|got|node-fetch)'/.test(textOf(path))),
    ),
    [],
  )
})

test('clocks and randomness come from kernel/world.ts only', () => {
  const clocks =
    /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bperformance\.now\(|\brandomBytes\(|\brandomUUID\(|\bgetRandomValues\(/
  assert.deepEqual(
    offenders(clocks, (path) => path === 'kernel/world.ts'),
    [],
  )
})

test('SQL is never built from input', () => {
  // Constants may be put together. Only retention.ts and backup.ts make statements from names: of months, and of our tables.
  const built = /`[^`]*\b(select|insert|update|delete|drop|create)\b[^`]*\$\{(?![^}]*\b[A-Z][A-Z_]+\b)/
  assert.deepEqual(
    offenders(
      built,
      (path) =>
        ['ledger/retention.ts', 'database/backup.ts'].includes(path) ||
        !path.match(/^(database|ledger|admission|identity|jobs|http|catalog)\//),
    ),
    [],
  )
})

test('paths name things', () => {
  const empty = /(^|[/.-])(utils?|helpers?|services?|managers?|common|misc|lib|handlers?)([/.-]|$)/
  assert.deepEqual(
    sources.filter((path) => empty.test(path)),
    [],
  )
})

test('no source file is two things', () => {
  const long = sources
    .map((path) => [path, textOf(path).split('\n').length] as const)
    .filter(([, lines]) => lines > 420)
  assert.deepEqual(long, [])
})

test('nothing is left over: no marks, no silenced types', () => {
  assert.deepEqual(
    sources.filter((path) => /\bTODO\b|\bFIXME\b|\bXXX\b|@ts-ignore|@ts-nocheck|\bas any\b/.test(textOf(path))),
    [],
  )
})
