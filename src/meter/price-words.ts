// Prices as text, the same in the console, on the command line and in the documentation. This file is bundled into the
// console, so it imports only files that are bundled as well.
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { UNIT_NAMES, type Unit, unitRow } from './kind.ts'

/** A price in the catalog's form; its rates may be numbers. */
export interface Priced {
  readonly unit?: string
  readonly tiers: readonly { readonly [unit in Unit]?: string | number | undefined }[]
}

/** Units in order of importance: the piece, the output, the input; then units that are not part of every call. */
const IN_ORDER: readonly Unit[] = [
  ...UNIT_NAMES.filter((unit) => unit === 'image' || !(unitRow(unit).side || unitRow(unit).use)),
  ...(['output', 'input'] as const),
  ...UNIT_NAMES,
]

/** The cheapest rates, in two short pieces: "250 in · 1,500 out" and "per million tokens". */
export function priceWords(pricing: Priced | null): { amount: string; per: string } {
  const tier = pricing?.tiers.at(-1)
  if (!pricing || !tier) return { amount: 'No price', per: '' }
  const from = pricing.tiers.length > 1 ? 'from ' : ''
  // Tiers are in matching order, so the cheapest may be anywhere.
  const least = (unit: Unit) => {
    const rates = pricing.tiers.flatMap((one) => (one[unit] === undefined ? [] : [parseCredits(one[unit]) ?? 0n]))
    return rates.sort((one, other) => (one < other ? -1 : 1))[0]
  }
  const rates = IN_ORDER.flatMap((unit) => {
    const rate = least(unit)
    return rate === undefined ? [] : [{ unit, amount: groupedCredits(rate) }]
  })
  const of = (unit: Unit) => rates.find((one) => one.unit === unit)?.amount
  const [input, output] = [of('input'), of('output')]
  if (input !== undefined && output !== undefined)
    return { amount: `${from}${input} in · ${output} out`, per: 'per million tokens' }
  const [first] = rates
  if (!first) return { amount: 'No price', per: '' }
  const { per, one, many } = unitRow(first.unit)
  const beside = (['row', 'metered', 'byte'] as const).flatMap((unit) => {
    const rate = first.unit === 'call' ? of(unit) : undefined
    return rate === undefined ? [] : [`, ${rate} per ${unit === 'byte' ? 'million bytes' : unitRow(unit).one}`]
  })
  const more = beside.join('')
  return { amount: `${from}${first.amount}`, per: per === 1 ? `per ${one}${more}` : `per million ${many}` }
}

export function priceSummary(pricing: Priced | null): string {
  const { amount, per } = priceWords(pricing)
  return `${amount} ${per}`.trim()
}

/** With thousands separators: "12,345.5". */
export function groupedCredits(amount: bigint): string {
  const [whole = '', fraction] = formatCredits(amount).split('.')
  const grouped = BigInt(whole).toLocaleString('en')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}
