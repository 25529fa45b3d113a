// Moving along a row of things by the usual keys: arrows, Home and End.

const ARROWS = { x: ['ArrowLeft', 'ArrowRight'], y: ['ArrowUp', 'ArrowDown'] } as const

/** Where a key leads from a place among `count`; beyond an end it goes on at the other. */
export function stepTo(key: string, axis: 'x' | 'y', from: number, count: number): number | undefined {
  const [back, on] = ARROWS[axis]
  if (key === on) return (from + 1) % count
  if (key === back) return (from - 1 + count) % count
  return key === 'Home' ? 0 : key === 'End' ? count - 1 : undefined
}
