// The models that a vendor says it has, in the shapes in which vendors list them.
import { isObject } from '../protocols/check.ts'

const MODELS_MAX = 2_000
const NAME_CHARS_MAX = 200
const NEAREST_MAX = 5

/** Undefined when it is no list. */
export function listedModels(body: Buffer): string[] | undefined {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
  const list = Array.isArray(value) ? value : isObject(value) ? (value.data ?? value.models) : undefined
  if (!Array.isArray(list)) return undefined
  const names = list.slice(0, MODELS_MAX).flatMap((entry: unknown) => {
    const name = isObject(entry) ? (entry.id ?? entry.name ?? entry.model) : entry
    // Google lists "models/…", and takes the name without.
    return typeof name === 'string' && name !== '' && name.length <= NAME_CHARS_MAX
      ? [name.replace(/^models\//, '')]
      : []
  })
  return [...new Set(names)]
}

/** Those that look most like a name that is not there. */
export function nearest(sought: string, names: readonly string[]): string[] {
  const wanted = pairsOf(sought)
  return names
    .map((name) => ({ name, likeness: likeness(wanted, pairsOf(name)) }))
    .filter(({ likeness }) => likeness > 0.4)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, NEAREST_MAX)
    .map(({ name }) => name)
}

function pairsOf(text: string): Set<string> {
  const word = text.toLowerCase()
  return new Set(Array.from({ length: Math.max(0, word.length - 1) }, (_, at) => word.slice(at, at + 2)))
}

function likeness(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  const shared = [...left].filter((pair) => right.has(pair)).length
  return (2 * shared) / Math.max(1, left.size + right.size)
}
