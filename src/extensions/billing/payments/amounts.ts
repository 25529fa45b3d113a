// Free amounts of money: what they buy, and which are sold.
import { CREDITS_MAX, type Credits, parseCredits } from '../../../kernel/credits.ts'
import { invalid } from '../../../kernel/fault.ts'
import { currencyDecimals, formatMoney, parseMoney } from '../money.ts'
import type { Provider } from './provider.ts'

export interface Amounts {
  /** Millionths of the currency for one credit. */
  readonly pricePerCredit: bigint
  readonly minimumMinor: bigint
  readonly maximumMinor: bigint
}

type Minor = (text: string, path: (string | number)[], least: bigint) => bigint

/** Null: no free amounts are sold. */
export function amountsOf(
  given: {
    currency: string
    pricePerCredit?: string | null | undefined
    minimum?: string | null | undefined
    maximum?: string | null | undefined
  },
  minor: Minor,
  problem: (path: (string | number)[], message: string) => bigint,
): Amounts | null {
  const { currency } = given
  const [price, minimum, maximum] = [given.pricePerCredit, given.minimum, given.maximum].map((one) => one ?? undefined)
  if (price === undefined) {
    if (minimum !== undefined || maximum !== undefined)
      problem(['pricePerCredit'], 'is missing: without it no free amounts are sold')
    return null
  }
  // Six decimals, as credits have, because one credit may cost far less than the currency's smallest unit.
  const pricePerCredit = parseCredits(price) ?? 0n
  if (pricePerCredit <= 0n) problem(['pricePerCredit'], 'must be an amount of money above 0 with at most six decimals')
  if (minimum === undefined) problem(['minimum'], 'is missing')
  if (maximum === undefined) problem(['maximum'], 'is missing')
  const minimumMinor = minor(minimum ?? '1', ['minimum'], 1n)
  const maximumMinor = minor(maximum ?? '1', ['maximum'], 1n)
  if (maximumMinor < minimumMinor && maximum !== undefined)
    problem(['maximum'], `is less than the minimum, ${formatMoney(minimumMinor, currency)}`)
  if (pricePerCredit > 0n && creditsFor({ currency, pricePerCredit }, maximumMinor) > CREDITS_MAX)
    problem(['maximum'], 'buys more credits than an account can have')
  return { pricePerCredit, minimumMinor, maximumMinor }
}

/** The credits that a free amount buys: never more than was paid for. */
export function creditsFor(
  { currency, pricePerCredit }: { readonly currency: string; readonly pricePerCredit: bigint },
  amountMinor: bigint,
): Credits {
  return (amountMinor * 1_000_000_000_000n) / (10n ** BigInt(currencyDecimals(currency)) * pricePerCredit)
}

/** What is charged for an amount that somebody asks for, and what it buys. */
export function orderOfAmount(amounts: Amounts, currency: string, amount: string): { minor: bigint; credits: Credits } {
  const minor = parseMoney(amount, currency)
  if (minor === undefined || minor < amounts.minimumMinor || minor > amounts.maximumMinor) {
    const [least, most] = [amounts.minimumMinor, amounts.maximumMinor].map((one) => formatMoney(one, currency))
    throw invalid(`amount: must be between ${least} and ${most} ${currency}.`, 'amount')
  }
  return { minor, credits: creditsFor({ currency, ...amounts }, minor) }
}

/** Providers have rules about amounts, such as multiples of a unit. */
export function checkStep(at: Pick<Provider, 'name' | 'step'>, currency: string, minor: bigint): void {
  const step = at.step(currency)
  if (minor % step !== 0n)
    throw invalid(`amount: ${at.name} takes only multiples of ${formatMoney(step, currency)} ${currency}.`, 'amount')
}
