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
