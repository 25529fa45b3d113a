// Whole numbers that add up: a total split by weights, so that parts and sums of simulated figures always agree.

/** Largest remainder: integers in proportion to the weights whose sum is exactly `total`. */
export function apportion(total: number, weights: readonly number[]): number[] {
  const sum = weights.reduce((a, b) => a + b, 0)
  if (sum <= 0) return weights.map(() => 0)
  const exact = weights.map((weight) => (total * weight) / sum)
  const parts = exact.map(Math.floor)
  let rest = total - parts.reduce((a, b) => a + b, 0)
  const order = exact.map((value, index) => ({ index, remainder: value - Math.floor(value) }))
  order.sort((a, b) => b.remainder - a.remainder || a.index - b.index)
  for (const { index } of order) {
    if (rest <= 0) break
    parts[index] = (parts[index] ?? 0) + 1
    rest--
  }
  return parts
}

const SHARE_STEPS = 1_000_000

/** Shares with six decimals that add up to 1, or all 0. */
export function shares(weights: readonly number[]): number[] {
  return apportion(SHARE_STEPS, weights).map((part) => part / SHARE_STEPS)
}
