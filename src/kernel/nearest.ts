// The name that somebody probably meant.

/** Longer names are not compared: the comparison would cost too much. */
const COMPARED_CHARS_MAX = 60

/** Of these names the one most like `asked`; undefined if none is near. */
export function nearest(asked: string, names: Iterable<string>): string | undefined {
  return nearestId(
    asked,
    [...names].map((name) => [name, [name]]),
  )
}

/** The same for things that have an id and several names, whatever the case and the signs between words. */
export function nearestId(
  asked: string,
  candidates: readonly (readonly [id: string, names: readonly string[]])[],
): string | undefined {
  const wanted = plain(asked)
  if (wanted === '' || asked.length > COMPARED_CHARS_MAX) return undefined
  let best: string | undefined
  // A third may be wrong; beyond that it is another name.
  let bound = Math.floor(wanted.length / 3)
  for (const [id, names] of candidates)
    for (const name of names) {
      const far = distance(wanted, plain(name), bound)
      if (far > bound || (best !== undefined && far === bound)) continue
      best = id
      bound = far
    }
  return best
}

const plain = (name: string) => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '')

/**
 * How many letters must be put in, left out, replaced or swapped with their neighbour; more than the bound as soon as
 * that is certain.
 */
function distance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) > bound) return bound + 1
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? bound) + 1 : changed
      next.push(Math.min(changed, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    if (Math.min(...next) > bound) return bound + 1
    before = row
    row = next
  }
  return row.at(-1) ?? bound + 1
}
