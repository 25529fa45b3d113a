// Limits on requests, tokens and spend, for keys, accounts and the whole system alike.
import { type ReactNode, useState } from 'react'
import { formatCredits, parseCredits } from '../credits.ts'
import { formatWhole } from '../format.ts'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Card } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import type { LimitName, Limits, LimitsInput, Permission } from '../wire.ts'

const WORDS: Record<LimitName, { label: string; short: (value: string) => string; money: boolean }> = {
  requestsPerMinute: { label: 'Requests per minute', short: (value) => `${value} req/min`, money: false },
  requestsPerDay: { label: 'Requests per day', short: (value) => `${value} req/day`, money: false },
  tokensPerMinute: { label: 'Tokens per minute', short: (value) => `${value} tokens/min`, money: false },
  concurrency: { label: 'Concurrent requests', short: (value) => `${value} concurrent`, money: false },
  spendPerDay: { label: 'Credits per day', short: (value) => `${value} credits/day`, money: true },
  spendPerMonth: { label: 'Credits per month', short: (value) => `${value} credits/month`, money: true },
  spendTotal: { label: 'Credits in total', short: (value) => `${value} credits in total`, money: true },
}

const NAMES = Object.keys(WORDS) as LimitName[]

export const limitLabel = (name: LimitName) => WORDS[name].label
export const isMoney = (name: LimitName) => WORDS[name].money

export type LimitTexts = Partial<Record<LimitName, string>>

export function describeLimits(limits: Limits): string[] {
  return NAMES.flatMap((name) => {
    const value = limits[name]
    if (value === undefined) return []
    return WORDS[name].short(typeof value === 'string' ? formatCredits(value) : formatWhole(value))
  })
}

export function limitsAsTexts(limits: Limits): LimitTexts {
  const texts: LimitTexts = {}
  for (const name of NAMES) if (limits[name] !== undefined) texts[name] = String(limits[name])
  return texts
}

/** An emptied field becomes null, which removes the limit that was there. */
export function textsAsLimits(texts: LimitTexts, before: Limits): LimitsInput {
  const limits: { [name in LimitName]?: string | number | null } = {}
  for (const name of NAMES) {
    const text = texts[name]?.trim() ?? ''
    if (text) limits[name] = WORDS[name].money ? text : Number(text)
    else if (before[name] !== undefined) limits[name] = null
  }
  // Spends are texts and counts are numbers, as WORDS says.
  return limits as LimitsInput
}

function limitFault(name: LimitName, text: string | undefined): string | undefined {
  const value = text?.trim() ?? ''
  if (!value) return undefined
  if (WORDS[name].money) {
    const amount = parseCredits(value)
    return amount !== undefined && amount >= 0n ? undefined : 'An amount such as 25 or 0.5.'
  }
  return /^[1-9]\d{0,11}$/.test(value) ? undefined : 'A whole number of 1 or more.'
}

export const limitsAreValid = (texts: LimitTexts) => NAMES.every((name) => !limitFault(name, texts[name]))

export function LimitFields({ texts, onTexts }: { texts: LimitTexts; onTexts: (texts: LimitTexts) => void }) {
  return (
    <div className="grid-3">
      {NAMES.map((name) => (
        <TextField
          key={name}
          label={WORDS[name].label}
          inputMode="decimal"
          placeholder="No limit"
          value={texts[name] ?? ''}
          fault={limitFault(name, texts[name])}
          onText={(text) => onTexts({ ...texts, [name]: text })}
        />
      ))}
    </div>
  )
}

export function LimitsCard({
  title,
  lead,
  limits,
  save,
  right,
  children,
}: {
  title: string
  lead: string
  limits: Limits
  save: (limits: LimitsInput) => Promise<void>
  right: Permission
  /** Fields that are saved with the limits. */
  children?: ReactNode
}) {
  const [texts, setTexts] = useState(limitsAsTexts(limits))
  const { busy, error, onSubmit } = useSubmit(async () => {
    await save(textsAsLimits(texts, limits))
    toast('Saved.')
  })
  return (
    <Card title={title} lead={lead} right={right}>
      <form className="stack" onSubmit={onSubmit}>
        {children}
        <LimitFields texts={texts} onTexts={setTexts} />
        {error ? <Fault error={error} /> : null}
        <div>
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
        </div>
      </form>
    </Card>
  )
}
