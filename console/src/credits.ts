// Credits as the server counts them: integers of millionths. Amounts that people read are never floats; only the height
// of a chart's bar is.

import { storedChoice } from './choice.ts'

const MICRO = 1_000_000n
/** Decimals of amounts outside statements, whose every digit counts. */
export const FEW = 4

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

/**
 * "12,345.67": exact unless told how many decimals are enough; of small amounts four are shown, and less than that is
 * said to be less.
 */
export function formatCredits(amount: bigint | string | number, decimals?: number): string {
  const micro = typeof amount === 'bigint' ? amount : parseCredits(amount)
  if (micro === undefined) return String(amount)
  let size = micro < 0n ? -micro : micro
  if (decimals !== undefined && size > 0n) {
    const step = 10n ** BigInt(6 - (size < MICRO / 100n ? Math.max(decimals, FEW) : decimals))
    size = ((size + step / 2n) / step) * step
    if (size === 0n) return `${micro < 0n ? '−' : ''}<0.0001`
  }
  const whole = (size / MICRO).toLocaleString('en')
  const fraction = (size % MICRO)
    .toString()
    .padStart(6, '0')
    .replace(/(?<!0)0+$/, '')
  const shown = decimals === undefined ? fraction : fraction.padEnd(size === 0n ? 0 : decimals, '0')
  return `${micro < 0n ? '−' : ''}${whole}${shown ? `.${shown}` : ''}`
}

/** For estimates: four decimals at most, and none that say nothing. */
export function briefCredits(amount: bigint | string): string {
  const shown = formatCredits(amount, 4)
  return shown.includes('.') ? shown.replace(/(?<!0)0+$/, '').replace(/\.$/, '') : shown
}

interface Worth {
  readonly currency: string
  readonly rate: string
}

/** What one credit is worth, as the session says; null: nobody has said. */
let present: Worth | null = null
const forms = new Map<string, Intl.NumberFormat>()

export function setWorth(worth: Worth | null): void {
  present = worth
}

/** Whether people read amounts as credits or as the money that they are worth. */
export const amountsIn = storedChoice('amounts', ['credits', 'money'])

/** The currency in which amounts are shown; undefined: as credits. */
export const shownCurrency = () => (amountsIn.get() === 'money' ? present?.currency : undefined)

/** For a choice between the two; null: there is none. */
export const worthCurrency = () => present?.currency ?? null

/** What a column or a chart of amounts is called. */
export const amountsName = () => shownCurrency() ?? 'Credits'

/** With the currency's own decimals; of less than one, with four. */
function formOf(currency: string, isFine: boolean): Intl.NumberFormat {
  const name = `${currency} ${isFine}`
  const known = forms.get(name)
  if (known) return known
  const usual = new Intl.NumberFormat('en', { style: 'currency', currency })
  const decimals = Math.max(usual.resolvedOptions().maximumFractionDigits ?? 0, FEW)
  const form = isFine
    ? new Intl.NumberFormat('en', { style: 'currency', currency, maximumFractionDigits: decimals })
    : usual
  forms.set(name, form)
  return form
}

/**
 * "€12.34": credits as money. `of`: what a credit was worth then; of a statement, without small change. Undefined where
 * nobody has said.
 */
export function inMoney(amount: bigint | string, of?: Worth | null): string | undefined {
  const micro = typeof amount === 'bigint' ? amount : parseCredits(amount)
  const worth = of === undefined ? present : of
  const rate = worth && parseCredits(worth.rate)
  if (!worth || !rate || micro === undefined) return undefined
  const money = (micro * rate) / MICRO
  const size = money < 0n ? -money : money
  const decimal = `${money < 0n ? '-' : ''}${size / MICRO}.${(size % MICRO).toString().padStart(6, '0')}`
  const form = formOf(worth.currency, of === undefined && size < MICRO)
  // It takes decimal texts too, and keeps their digits, which a number would lose.
  return form.format(decimal as unknown as number).replace('-', '−')
}

/** "€1,000.00": the price of an offer. */
export const priceText = (price: string, currency: string) => formOf(currency, false).format(price as unknown as number)

/** "0.1643 credits (€0.0016)", in a sentence. */
export function creditsText(amount: bigint | string): string {
  const shown = briefCredits(amount)
  const money = inMoney(amount)
  if (shownCurrency() !== undefined && money !== undefined) return money
  return `${shown} ${creditWord(shown)}${money === undefined ? '' : ` (${money})`}`
}

const creditWord = (shown: string) => (shown === '1' ? 'credit' : 'credits')

/** "12.30 credits", or "€0.12": whichever amounts are shown in. */
export function amountText(amount: bigint | string): string {
  const money = shownCurrency() === undefined ? undefined : inMoney(amount)
  return money ?? `${formatCredits(amount, 2)} credits`
}

/** For the height of a bar and the order of rows, in what amounts are shown in. */
export function creditsAsNumber(amount: string): number {
  return Number(amount) * (shownCurrency() === undefined ? 1 : Number(present?.rate))
}
