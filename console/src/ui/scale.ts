// Round numbers for an axis, and as many labels as fit.

/** `whole`: of counts, between which there is nothing. */
export function niceTicks(top: number, wanted: number, whole = false): number[] {
  if (!(top > 0) || !Number.isFinite(top)) return [0, 1]
  const raw = whole ? Math.max(1, top / wanted) : top / wanted
  const size = 10 ** Math.floor(Math.log10(raw))
  const fits = (candidate: number) => candidate >= raw && (!whole || Number.isInteger(candidate))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find(fits) ?? raw
  const count = Math.ceil(top / step - 1e-9)
  // Multiplying and rounding keeps 0.30000000000000004 off the axis.
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}

interface AxisLabel {
  index: number
  label: string
  anchor: 'start' | 'middle' | 'end'
}

/** As many as fit; points without a label of their own have none. */
export function pickLabels(labels: readonly string[], room: number): AxisLabel[] {
  const named = labels.flatMap((label, index) => (label === '' ? [] : [{ index, label }]))
  const every = Math.max(1, Math.ceil(named.length / Math.max(1, room)))
  return named
    .filter((_, place) => place % every === 0 && place + every / 3 <= named.length)
    .map(({ index, label }) => ({
      index,
      label,
      anchor: index === 0 && labels.length > 12 ? ('start' as const) : ('middle' as const),
    }))
}
