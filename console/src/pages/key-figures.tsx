// What a key did lately: its calls, what it spent, how much of its limits is left, and the last thing that went wrong.
import { api } from '../api.ts'
import { creditsAsNumber } from '../credits.ts'
import { formatWhole, plural } from '../format.ts'
import { callsPath } from '../period.ts'
import { useQuery } from '../query.ts'
import { Link } from '../router.tsx'
import { Ago, Amount, Badges } from '../ui/page.tsx'
import type { TableColumn } from '../ui/table.tsx'
import type { Key, KeyFigures } from '../wire.ts'
import { faultTitle } from './fault-words.ts'
import { FillBar } from './limit-fill.tsx'

const DAYS = 7
type Figures = ReadonlyMap<string, KeyFigures>

export function useKeyFigures(account: string): Figures {
  const figures = useQuery(`keys/${account}/figures`, (signal) => api.keyFigures(account, DAYS, signal))
  return new Map(figures.data?.items.map((one) => [one.keyId, one]))
}

export function figureColumns(
  account: string,
  figures: Figures,
  restrictionsOf: (key: Key) => string[],
): TableColumn<Key>[] {
  const base = `/a/${encodeURIComponent(account)}/usage`
  return [
    {
      head: `Spent in ${DAYS} days`,
      right: true,
      cell: (key) => <Amount value={figures.get(key.id)?.charged ?? '0'} decimals={2} />,
      sort: (key) => creditsAsNumber(figures.get(key.id)?.charged ?? '0'),
    },
    {
      head: 'Calls',
      right: true,
      cell: (key) => {
        const { requests = 0, errors = 0 } = figures.get(key.id) ?? {}
        return (
          <>
            <Link to={callsPath(account, { period: '7d', key: key.id })}>
              {formatWhole(requests)}
              <span className="sr-only"> calls of {key.name}</span>
            </Link>
            {errors ? <span className="cell-sub">{plural(errors, 'error')}</span> : null}
          </>
        )
      },
      sort: (key) => figures.get(key.id)?.requests ?? 0,
    },
    {
      head: 'Restrictions',
      cell: (key) => {
        const limits = figures.get(key.id)?.limits ?? []
        const names = restrictionsOf(key)
        if (limits.length === 0 && names.length === 0) return <span className="muted">None</span>
        return (
          <>
            {names.length ? (
              <Badges names={names} title={[...(key.models ?? []), ...(key.endpoints ?? [])].join(', ')} />
            ) : null}
            {limits.map((fill) => (
              <FillBar key={fill.limit} fill={fill} />
            ))}
          </>
        )
      },
    },
    {
      head: 'Last error',
      cell: (key) => {
        const last = figures.get(key.id)?.lastError
        if (!last) return <span className="muted">–</span>
        return (
          <Link to={`${base}/${encodeURIComponent(last.requestId)}`}>
            {last.fault ? faultTitle(last.fault) : `HTTP ${last.status}`}, <Ago at={last.at} />
          </Link>
        )
      },
    },
  ]
}
