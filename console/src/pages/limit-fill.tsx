// How much of a limit is used right now.
import { api } from '../api.ts'
import { formatCredits } from '../credits.ts'
import { formatPercent, formatWhole } from '../format.ts'
import { useQuery } from '../query.ts'
import { Card } from '../ui/page.tsx'
import type { Fill } from '../wire.ts'
import { isMoney, limitLabel } from './limits.tsx'

const NEARLY = 0.8

export function FillBar({ fill }: { fill: Fill }) {
  const amountText = (value: string) => (isMoney(fill.limit) ? formatCredits(value, 2) : formatWhole(Number(value)))
  const tone = fill.share >= 1 ? 'bad' : fill.share >= NEARLY ? 'warn' : 'good'
  return (
    <div className="fill">
      <span className="fill-name">{limitLabel(fill.limit)}</span>
      <span className="fill-value">
        {amountText(fill.used)} of {amountText(fill.max)}, {formatPercent(fill.share)}
      </span>
      <span className="fill-track" aria-hidden="true">
        <span className={`tone-${tone}`} style={{ width: `${Math.min(100, Math.max(1, fill.share * 100))}%` }} />
      </span>
    </div>
  )
}

/** The account's own limits, for those who cannot change them but meet them. */
export function AccountFills({ account }: { account: string }) {
  const fills = useQuery(`fills/${account}`, (signal) => api.limitFills(account, signal), { everyMs: 30_000 })
  if (!fills.data?.items.length) return null
  return (
    <Card title="Limits of this account" lead="For all its keys together. An operator can change them.">
      <div className="stack-tight">
        {fills.data.items.map((fill) => (
          <FillBar key={fill.limit} fill={fill} />
        ))}
      </div>
    </Card>
  )
}
