// Round numbers for an axis, and as many labels as fit.

export function niceTicks(top: number, wanted: number): number[] {
  if (!(top > 0) || !Number.isFinite(top)) return [0, 1]
  const raw = top / wanted
  const size = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((candidate) => candidate >= raw) ?? raw
  const count = Math.ceil(top / step - 1e-9)
  // Multiplying and rounding keeps 0.30000000000000004 off the axis.
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}

interface AxisLabel {
  index: number
  label: string
  anchor: 'start' | 'middle' | 'end'
}

export function pickLabels(labels: readonly string[], room: number): AxisLabel[] {
  const every = Math.max(1, Math.ceil(labels.length / Math.max(1, room)))
  return labels.flatMap((label, index) =>
    index % every === 0 && index + every / 3 <= labels.length
      ? [{ index, label, anchor: index === 0 && labels.length > 12 ? ('start' as const) : ('middle' as const) }]
      : [],
  )
}
