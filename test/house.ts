// Reads every source of the repository once, for the rules that test/tidy.test.ts keeps.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseAst } from 'vite'

const ROOT = resolve(import.meta.dirname, '..')
const FOLDERS = ['src', 'sandbox', 'console', 'clients', 'test', 'bench', 'bin', 'examples']
export const CASTS_FILE = 'test/casts.json'

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  // The shapes of a syntax tree are too many to list; what is read of a node depends on its type.
  readonly [member: string]: any
}

type LongFunction = { readonly name: string; readonly lines: number; readonly parameters: number }

export interface SourceFile {
  readonly path: string
  readonly lines: number
  /** What the product is made of: neither tests nor their tools. */
  readonly product: boolean
  readonly functions: readonly LongFunction[]
  /** Casts and non-null assertions with no comment on their line or the one before. */
  readonly casts: number
  readonly exports: readonly string[]
  /** As 'path#name', with '*' for a whole module. */
  readonly imports: readonly string[]
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
const isFunction = (node: Node) => /Function/.test(node.type) && isNode(node.body) && Array.isArray(node.params)
const isCast = ({ type, typeAnnotation }: Node) =>
  type === 'TSNonNullExpression' || (type === 'TSAsExpression' && typeAnnotation.typeName?.name !== 'const')

function exportedBy(node: Node): string[] {
  if (node.type === 'ExportDefaultDeclaration') return ['default']
  if (node.type !== 'ExportNamedDeclaration') return []
  const named = node.specifiers.map((one: Node) => one.exported.name)
  if (!node.declaration) return named
  return (node.declaration.declarations ?? [node.declaration]).map((one: Node) => one.id.name)
}

function importedBy(node: Node): [from: string, names: string[]] | undefined {
  const from = node.source?.value
  if (typeof from !== 'string' || !from.startsWith('.')) return undefined
  if (node.type === 'ImportDeclaration')
    return [from, node.specifiers.map((one: Node) => (one.type === 'ImportSpecifier' ? one.imported.name : '*'))]
  if (node.type === 'ExportNamedDeclaration') return [from, node.specifiers.map((one: Node) => one.local.name)]
  return [from, [node.type === 'TSImportType' && node.qualifier?.name ? node.qualifier.name : '*']]
}

function read(path: string): SourceFile {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const lines = text.split('\n')
  let length = 0
  const ends = lines.map((line) => (length += line.length + 1))
  const lineAt = (offset: number) => ends.findIndex((end) => offset < end)
  const explained = ({ start, end }: Node) =>
    lines.slice(Math.max(0, lineAt(start) - 1), lineAt(end) + 1).some((line) => /(^|\s)\/\/|\*\//.test(line))
  const functions: LongFunction[] = []
  const exports: string[] = []
  const imports: string[] = []
  let casts = 0

  /** Gives how many lines the functions within take, since a function is measured without those. */
  const visit = (node: Node, name: string): number => {
    if (isCast(node) && !explained(node)) casts += 1
    if (node.type.startsWith('Export')) exports.push(...exportedBy(node))
    const imported = importedBy(node)
    const target = imported && relative(ROOT, resolve(ROOT, dirname(path), imported[0]))
    for (const one of imported?.[1] ?? []) imports.push(`${target}#${one}`)
    const own = node.id?.name ?? (node.type === 'Property' && node.key.name) ?? name
    let within = 0
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) within += visit(child, own || name)
    if (!isFunction(node)) return within
    const all = lineAt(node.end) - lineAt(node.start) + 1
    functions.push({ name: own || name, lines: all - within, parameters: node.params.length })
    return all > 1 ? all : 0
  }
  // The parser's own types say less about a node than is needed here.
  visit(parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }, path) as unknown as Node, '')
  const product = /^(src|sandbox|console\/src)\//.test(path) && !/\.test\.tsx?$/.test(path)
  return { path, lines: lines.length - 1, product, functions, casts, exports, imports }
}

export function readHouse(): SourceFile[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
    .filter((path) => /\.(tsx?|js)$/.test(path) && !/node_modules|\bdist\b|\bgenerated\.ts$/.test(path))
    .map(read)
}

export const castsOf = (house: readonly SourceFile[]): Record<string, number> =>
  Object.fromEntries(house.filter(({ product, casts }) => product && casts > 0).map(({ path, casts }) => [path, casts]))

const total = (casts: Record<string, number>) => Object.values(casts).reduce((sum, count) => sum + count, 0)

/** The record follows the sources only down: files may move, but the sum may not grow. */
export function castsFile(): string {
  const recorded = readFileSync(join(ROOT, CASTS_FILE), 'utf8')
  const now = castsOf(readHouse())
  return total(now) > total(JSON.parse(recorded)) ? recorded : `${JSON.stringify(now, null, 2)}\n`
}
