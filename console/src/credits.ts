// Credits as the server counts them: integers of millionths. Amounts that people read are never floats; only the height
// of a chart's bar is.

const MICRO = 1_000_000n

/** A catalog may give its rates as numbers. */
export function parseCredits(text: string | number): bigint | undefined {
  const found = /^(-?)(\d{1,13})(?:\.(\d{1,6}))?$/.exec(String(text).trim())
  if (!found) return undefined
  const amount = BigInt(found[2] ?? '0') * MICRO + BigInt((found[3] ?? '').padEnd(6, '0'))
  return found[1] ? -amount : amount
}

export function sumCredits(amounts: Iterable<string>): bigint {
  let sum = 0n
  for (const amount of amounts) sum += parseCredits(amount) ?? 0n
  return sum
}

/** "12,345.67": exact unless told how many decimals are enough; small amounts keep the digits that matter. */
export function formatCredits(amount: bigint | string | number, decimals?: number): string {
  const micro = typeof amount === 'bigint' ? amount : parseCredits(amount)
  if (micro === undefined) return String(amount)
  let size = micro < 0n ? -micro : micro
  if (decimals !== undefined && size >= MICRO / 100n) {
    const step = 10n ** BigInt(6 - decimals)
    size = ((size + step / 2n) / step) * step
  }
  const whole = (size / MICRO).toLocaleString('en')
  const fraction = (size % MICRO)
    .toString()
    .padStart(6, '0')
    .replace(/(?<!0)0+$/, '')
  const shown =
    decimals === undefined || size < MICRO / 100n ? fraction : fraction.padEnd(size === 0n ? 0 : decimals, '0')
  return `${micro < 0n ? '−' : ''}${whole}${shown ? `.${shown}` : ''}`
}

/** For estimates: four decimals at most, and none that say nothing. */
export function briefCredits(amount: bigint | string): string {
  const shown = formatCredits(amount, 4)
  return shown.includes('.') ? shown.replace(/(?<!0)0+$/, '').replace(/\.$/, '') : shown
}

export const creditWord = (shown: string) => (shown === '1' ? 'credit' : 'credits')

export function creditsAsNumber(amount: string): number {
  return Number(amount)
}
