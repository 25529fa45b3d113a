// Which colour a name has in charts: the same on every page and at every visit. A name's place in the palette follows from its letters; one whose
// place another name has already takes the next that is free, and keeps it in this browser.

const PALETTE = 12
export type SeriesColor = number | 'bad' | 'good' | 'warn' | 'rest'

/** What a colour says by itself. */
const MEANT: Readonly<Record<string, SeriesColor>> = {
  Failed: 'bad',
  Rejected: 'warn',
  Succeeded: 'good',
  Answered: 'good',
}
const STORED = 'series-colors'
const REMEMBERED_MAX = 500

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0
  return hash
}

/** Names of one chart never share a colour while there are enough. `known` is what names have already, and is added to. */
export function colorsOf(names: readonly string[], known = ownMemory()): SeriesColor[] {
  const before = known.size
  const colors = choose(names, known)
  if (known === remembered && known.size !== before) keep(known)
  return colors
}

function choose(names: readonly string[], known: Map<string, number>): SeriesColor[] {
  const here = new Set<SeriesColor>()
  const colors = new Map<string, SeriesColor>()
  const take = (name: string, color: SeriesColor) => {
    here.add(color)
    colors.set(name, color)
  }
  for (const name of names) {
    const meant = MEANT[name] ?? known.get(name)
    if (meant !== undefined && !here.has(meant)) take(name, meant)
  }
  for (const name of names) {
    if (colors.has(name)) continue
    const first = hashOf(name) % PALETTE
    const places = Array.from({ length: PALETTE }, (_, step) => ((first + step) % PALETTE) + 1)
    const taken = new Set(known.values())
    const color =
      places.find((place) => !taken.has(place) && !here.has(place)) ?? places.find((place) => !here.has(place))
    if (!known.has(name) && known.size < REMEMBERED_MAX) known.set(name, color ?? first + 1)
    take(name, color ?? first + 1)
  }
  return names.map((name) => colors.get(name) ?? 1)
}

let remembered: Map<string, number> | undefined

function ownMemory(): Map<string, number> {
  remembered ??= recall()
  return remembered
}

function recall(): Map<string, number> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? '[]')
    const pairs = Array.isArray(stored) ? stored : []
    return new Map(pairs.filter(([name, color]) => typeof name === 'string' && color >= 1 && color <= PALETTE))
  } catch {
    return new Map()
  }
}

function keep(known: ReadonlyMap<string, number>): void {
  try {
    localStorage.setItem(STORED, JSON.stringify([...known]))
  } catch {
    // Without storage the colours last until the reload.
  }
}
