// Which lines two texts share, by Myers' greedy algorithm; the equal beginning and end are cut off first, so that a
// small change in a long document is found at once.

interface DiffLine {
  kind: 'same' | 'gone' | 'new'
  text: string
}

const WORK_MAX = 4000

export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let end = 0
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end++
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ]
}

function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const most = a.length + b.length
  if (most === 0) return []
  const trace: Map<number, number>[] = []
  const reach = new Map<number, number>([[1, 0]])
  for (let d = 0; d <= Math.min(most, WORK_MAX); d++) {
    trace.push(new Map(reach))
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? 0) < (reach.get(k + 1) ?? 0))
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      reach.set(k, x)
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace)
    }
  }
  // Two documents with nothing in common: say so, rather than search for long.
  return [...a.map((text): DiffLine => ({ kind: 'gone', text })), ...b.map((text): DiffLine => ({ kind: 'new', text }))]
}

function walkBack(a: readonly string[], b: readonly string[], trace: readonly Map<number, number>[]): DiffLine[] {
  const lines: DiffLine[] = []
  let x = a.length
  let y = b.length
  for (let d = trace.length - 1; d >= 0; d--) {
    const reach = trace[d] ?? new Map<number, number>()
    const k = x - y
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? 0) < (reach.get(k + 1) ?? 0))
    const fromK = down ? k + 1 : k - 1
    const fromX = d === 0 ? 0 : (reach.get(fromK) ?? 0)
    const fromY = d === 0 ? 0 : fromX - fromK
    while (x > fromX && y > fromY && a[x - 1] === b[y - 1]) {
      x--
      y--
      lines.push({ kind: 'same', text: a[x] ?? '' })
    }
    if (d === 0) break
    if (down) lines.push({ kind: 'new', text: b[--y] ?? '' })
    else lines.push({ kind: 'gone', text: a[--x] ?? '' })
  }
  return lines.reverse()
}

interface Hunk {
  /** The line number in the old text at which it begins. */
  line: number
  lines: DiffLine[]
}

/** Changes with a few lines around them; nothing for what stayed the same. */
export function hunksOf(lines: readonly DiffLine[], around = 3): Hunk[] {
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - around), index + around + 1).some((line) => line.kind !== 'same'),
  )
  const hunks: Hunk[] = []
  let line = 1
  let open: Hunk | undefined
  for (const [index, entry] of lines.entries()) {
    if (near[index]) {
      if (!open) {
        open = { line, lines: [] }
        hunks.push(open)
      }
      open.lines.push(entry)
    } else open = undefined
    if (entry.kind !== 'new') line++
  }
  return hunks
}
