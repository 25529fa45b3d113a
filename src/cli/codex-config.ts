// Codex's configuration with this gateway in it. What else stands there stays as it is, and what has to give way stays as a comment.
import { CliError } from './command.ts'

interface Section {
  /** Undefined: what stands before the first table. */
  readonly table: string | undefined
  lines: string[]
}

const KEY = /^\s*([\w-]+|"[^"]*")\s*=/
const ONE_LINE = /^\s*[\w-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w.+-]+)\s*(?:#.*)?$/
/** Tables written in another way than by a heading could hold ours a second time, which Codex would refuse. */
const INLINE = /^\s*(?:model_providers|mcp_servers)\s*[.=]/

export function mergeCodexConfig(there: string, ours: string): string {
  const wanted = sectionsOf(ours)
  const sections = sectionsOf(there).filter(({ table }) => !wanted.some((own) => table && own.table === table))
  const [top = { table: undefined, lines: [] }, ...tables] = sections
  const [ownTop, ...ownTables] = wanted
  return [
    ...(ownTop ? [...ownTop.lines.filter((line) => line !== ''), ...yielding(top.lines, ownTop.lines)] : top.lines),
    ...tables.flatMap(({ lines }) => lines),
    ...separated(tables.at(-1)?.lines ?? top.lines),
    ...ownTables.flatMap(({ lines }) => lines),
  ].join('\n')
}

const separated = (before: readonly string[]): string[] => (before.at(-1) === '' || before.length === 0 ? [] : [''])

/** The lines, with those commented out whose key we set. */
function yielding(lines: readonly string[], ours: readonly string[]): string[] {
  const set = new Map(ours.map((line) => [KEY.exec(line)?.[1], line]))
  return lines.flatMap((line) => {
    if (INLINE.test(line)) throw unreadable(line)
    const key = KEY.exec(line)?.[1]
    const own = key === undefined ? undefined : set.get(key)
    if (own === undefined) return [line]
    if (!ONE_LINE.test(line)) throw unreadable(line)
    return line.trim() === own ? [] : [`# before Tollgate: ${line.trim()}`]
  })
}

function unreadable(line: string): CliError {
  return new CliError(
    `The line "${line.trim().slice(0, 60)}" of the configuration of Codex cannot be changed safely. Run the command without --write and copy what is missing.`,
  )
}

/** By headings; a line within a string of several lines is none. */
function sectionsOf(text: string): Section[] {
  const sections: Section[] = [{ table: undefined, lines: [] }]
  let quote: string | undefined
  for (const line of text.split(/\r?\n/)) {
    const heading = quote === undefined ? /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/.exec(line)?.[1] : undefined
    const isList = quote === undefined && /^\s*\[\[/.test(line)
    if (heading !== undefined || isList) sections.push({ table: heading?.replaceAll(/[\s"']/g, '') ?? line, lines: [] })
    for (const [found] of line.matchAll(/"""|'''/g))
      quote = quote === undefined ? found : quote === found ? undefined : quote
    sections.at(-1)?.lines.push(line)
  }
  return sections
}
