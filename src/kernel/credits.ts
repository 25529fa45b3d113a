// Money. One credit is a million micro-credits; every amount inside is a bigint of those, and no float ever touches it.

export type Credits = bigint

const MICRO = 1_000_000n
const ZERO = 0x30
/** Far below what BIGINT holds, so that sums over an account cannot overflow. */
export const CREDITS_MAX: Credits = 1_000_000_000_000n * MICRO

/** Reads "12.5", "-3" or 12.5; undefined when it is not an amount with at most six decimals. */
export function parseCredits(input: unknown): Credits | undefined {
  const text = typeof input === 'number' && Number.isFinite(input) ? String(input) : input
  if (typeof text !== 'string') return undefined
  const match = /^(-?)(\d{1,13})(?:\.(\d{1,6}))?$/.exec(text)
  if (!match) return undefined
  const amount = BigInt(match[2]!) * MICRO + BigInt((match[3] ?? '').padEnd(6, '0'))
  if (amount > CREDITS_MAX) return undefined
  return match[1] ? -amount : amount
}

/** "12.5": the shortest decimal that says it exactly. */
export function formatCredits(amount: Credits): string {
  const sign = amount < 0n ? '-' : ''
  const digits = (amount < 0n ? -amount : amount).toString().padStart(7, '0')
  const point = digits.length - 6
  let end = digits.length
  while (end > point && digits.charCodeAt(end - 1) === ZERO) end--
  return end === point ? sign + digits.slice(0, point) : `${sign}${digits.slice(0, point)}.${digits.slice(point, end)}`
}
