// Limits on the command line: `--spend-per-day 20`, `--concurrency none`.
import type { LimitName, LimitsInput, LimitsView } from '../ledger/views.ts'
import { CliError, type Invocation, type Option, text } from './command.ts'

const NAMES = {
  'requests-per-minute': ['requestsPerMinute', 'Calls a minute'],
  'tokens-per-minute': ['tokensPerMinute', 'Tokens a minute'],
  concurrency: ['concurrency', 'Calls at the same time'],
  'spend-total': ['spendTotal', 'Credits in all'],
  'spend-per-day': ['spendPerDay', 'Credits a day (UTC)'],
  'spend-per-month': ['spendPerMonth', 'Credits a month (UTC)'],
} as const satisfies Record<string, readonly [LimitName, string]>

export const LIMIT_OPTIONS: Readonly<Record<string, Option>> = Object.fromEntries(
  Object.entries(NAMES).map(([name, [, help]]) => [
    name,
    { type: 'string', value: 'n', help: `${help}; "none" removes the limit.` },
  ]),
)

/** Undefined when no limit was named. */
export function limitsOf(call: Invocation): LimitsInput | undefined {
  const limits: Record<string, number | string | null> = {}
  for (const [option, [name]] of Object.entries(NAMES)) {
    const value = text(call, option)
    if (value === undefined) continue
    if (value === 'none') limits[name] = null
    else if (name.startsWith('spend')) limits[name] = value
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
