// Which colour a name has in charts: its place in the palette follows from its letters, so it is the same on every page
// and in every browser.

const PALETTE = 12
export type SeriesColor = number | 'bad' | 'good' | 'warn' | 'rest'

/** What a colour says by itself. */
const MEANT: Readonly<Record<string, SeriesColor>> = {
  Failed: 'bad',
  Rejected: 'warn',
  Succeeded: 'good',
  Answered: 'good',
  Input: 1,
  Output: 3,
}
/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0
  return hash
}

/**
 * Names of one chart never share a colour while there are enough: where two would, the later by the alphabet takes the
 * next that is free.
 */
export function colorsOf(names: readonly string[]): SeriesColor[] {
  const colors = new Map<string, SeriesColor>()
  const taken = new Set<SeriesColor>()
  for (const name of names.toSorted()) {
    const first = hashOf(name) % PALETTE
    const places = Array.from({ length: PALETTE }, (_, step) => ((first + step) % PALETTE) + 1)
    const color = MEANT[name] ?? places.find((place) => !taken.has(place)) ?? first + 1
    taken.add(color)
    colors.set(name, color)
  }
  return names.map((name) => colors.get(name) ?? 1)
}
