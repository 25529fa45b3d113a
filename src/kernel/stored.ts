// Stored documents are read tolerantly: another version may have written what this one does not know. The smallest part
// of the document that may be missing is set aside, with a sentence that names it; the rest is used. Only editing is
// strict.
import type * as z from 'zod'

const TURNS_MAX = 100

type Path = readonly PropertyKey[]

interface Stored<T> {
  readonly value: T
  /** What was left out, each with the reason. */
  readonly setAside: readonly string[]
}

interface Reading<S extends z.ZodType> {
  readonly schema: S
  /** The parts that may be missing: `models.*`, `models.*.routes.*`. */
  readonly parts: readonly string[]
  readonly inWords: (issue: z.core.$ZodIssue) => string
}

/** Returns undefined if something is wrong that no such part contains. */
export function readStored<S extends z.ZodType>(input: unknown, reading: Reading<S>): Stored<z.output<S>> | undefined {
  const setAside: string[] = []
  const patterns = reading.parts.map((part) => part.split('.')).sort((a, b) => b.length - a.length)
  // Each turn removes at least one part, and parts that refer to it may follow.
  for (let document = input, left = TURNS_MAX; left > 0; left--) {
    const result = reading.schema.safeParse(document)
    if (result.success) return { value: result.data, setAside }
    const copy: unknown = structuredClone(document)
    const removed = new Map<string, string[]>()
    for (const issue of result.error.issues)
      for (const path of pathsOf(issue)) {
        const part = innermost(copy, path, patterns)
        if (!part) return undefined
        const name = part.join('.')
        if (removed.has(name)) continue
        removed.set(name, part)
        setAside.push(`${name}: ${path.slice(part.length).join('.')} ${reading.inWords(issue)}`.replaceAll('  ', ' '))
      }
    for (const [, part] of [...removed].sort(([a], [b]) => lastFirst(a, b))) remove(copy, part)
    document = copy
  }
  return undefined
}

/** A member that is unknown is itself the part; zod names the object that has it. */
function pathsOf(issue: z.core.$ZodIssue): Path[] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path]
}

/** The smallest part that contains the path. */
function innermost(document: unknown, path: Path, patterns: readonly string[][]): string[] | undefined {
  for (const pattern of patterns) {
    if (path.length < pattern.length || !pattern.every((step, at) => step === '*' || step === path[at])) continue
    const part = path.slice(0, pattern.length).map(String)
    const holder = at(document, part.slice(0, -1))
    // The last item of a list that must have one takes what holds the list with it.
    if (Array.isArray(holder) && holder.length === 1 && pattern.length > 2) continue
    return part
  }
  return undefined
}

function at(document: unknown, path: readonly string[]): unknown {
  let value = document
  for (const step of path) value = isObject(value) ? value[step] : undefined
  return value
}

function remove(document: unknown, path: readonly string[]): void {
  const holder = at(document, path.slice(0, -1))
  const last = path.at(-1) ?? ''
  if (Array.isArray(holder)) holder.splice(Number(last), 1)
  else if (isObject(holder)) delete holder[last]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Later items of a list go first, so that the places of the others stay. */
function lastFirst(a: string, b: string): number {
  return b.localeCompare(a, 'en', { numeric: true })
}
