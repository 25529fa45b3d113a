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

// Money of the outside world: an amount is an integer of the currency's smallest unit (cents, yen, fils), never a
// float.

/** By ISO 4217. Every other currency has two decimals. */
const DECIMALS: Readonly<Record<string, 0 | 3>> = {
  ...Object.fromEntries(
    'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF'.split(' ').map((code) => [code, 0 as const]),
  ),
  ...Object.fromEntries(['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'].map((code) => [code, 3 as const])),
}

export function currencyDecimals(currency: string): 0 | 2 | 3 {
  return DECIMALS[currency] ?? 2
}

/**
 * Reads "20", "20.00" or "0.5" as the currency's smallest units; undefined when it is no amount with at most the
 * currency's decimals.
 */
export function parseMoney(text: string, currency: string): bigint | undefined {
  const match = /^(\d{1,12})(?:\.(\d{1,3}))?$/.exec(text)
  const decimals = currencyDecimals(currency)
  const [, whole, fraction = ''] = match ?? []
  if (whole === undefined || fraction.length > decimals) return undefined
  return BigInt(whole + fraction.padEnd(decimals, '0'))
}

/** "20.00", "500" or "1.250": with all of the currency's decimals. */
export function formatMoney(minor: bigint, currency: string): string {
  const decimals = currencyDecimals(currency)
  const digits = (minor < 0n ? -minor : minor).toString().padStart(decimals + 1, '0')
  const point = digits.length - decimals
  return `${minor < 0n ? '-' : ''}${digits.slice(0, point)}${decimals === 0 ? '' : `.${digits.slice(point)}`}`
}
