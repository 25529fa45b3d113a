// Limits on the command line: `--spend-per-day 20`, `--concurrency none`.
import { LIMIT_NAMES, LIMITS, type LimitName, type LimitsInput, type LimitsView } from '../ledger/views.ts'
import { CliError, type Invocation, type Option, text } from './command.ts'

/** `spend-per-day` for `spendPerDay`. */
const optionOf = (name: LimitName) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

export const LIMIT_OPTIONS: Readonly<Record<string, Option>> = Object.fromEntries(
  LIMIT_NAMES.map((name) => [
    optionOf(name),
    { type: 'string', value: 'n', help: `${LIMITS[name].option}; "none" removes the limit.` },
  ]),
)

/** Undefined when no limit was named. */
export function limitsOf(call: Invocation): LimitsInput | undefined {
  const limits: Record<string, number | string | null> = {}
  for (const name of LIMIT_NAMES) {
    const option = optionOf(name)
    const value = text(call, option)
    if (value === undefined) continue
    if (value === 'none') limits[name] = null
    else if (LIMITS[name].unit === 'credits') limits[name] = value
    else if (/^\d{1,12}$/.test(value)) limits[name] = Number(value)
    else throw new CliError(`--${option} takes a whole number or "none", not "${value}".`, 2)
  }
  return Object.keys(limits).length > 0 ? limits : undefined
}

export function showLimits(limits: LimitsView): string {
  return Object.entries(limits)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}
