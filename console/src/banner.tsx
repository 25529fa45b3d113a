// What stops an account from working, said on each of its pages with what to do about it; and what a page lacks.
import { useEffect, useState } from 'react'
import { api, whenAnswered } from './api.ts'
import { parseCredits } from './credits.ts'
import { useQuery } from './query.ts'
import { Link, useLocation } from './router.tsx'
import { useMay, useSession } from './session.tsx'
import { Note } from './ui/page.tsx'

/** Below this most calls are rejected for their hold, though something is left. */
const NEARLY_NOTHING = 1_000_000n

export function BalanceBanner({ account }: { account: string }) {
  const may = useMay()
  const { salesEnabled } = useSession()
  const money = useQuery(`account/${account}`, (signal) => api.account(account, signal), { everyMs: 60_000 })
  const available = money.data && parseCredits(money.data.available)
  const id = encodeURIComponent(account)
  if (money.data && money.data.status !== 'open')
    return (
      <div className="banner" role="status">
        <Note tone="warn">
          This account is {money.data.status}: {money.data.statusReason} Its calls are rejected with HTTP 403.{' '}
          {may('accounts:write') ? (
            <Link to={`/operator/accounts/${id}`}>Account settings</Link>
          ) : (
            'Ask the operator of this gateway.'
          )}
        </Note>
      </div>
    )
  if (available === undefined || available >= NEARLY_NOTHING) return null
  return (
    <div className="banner" role="status">
      <Note tone="warn">
        {available <= 0n
          ? 'No credits are left: calls are rejected with HTTP 402.'
          : 'Less than one credit is left: calls that may cost more are rejected with HTTP 402.'}{' '}
        {may('credits:write') ? (
          <Link to={`/operator/accounts/${id}`}>Add credits</Link>
        ) : salesEnabled && may('purchases:write', account) ? (
          <Link to={`/a/${id}/buy`}>Buy credits</Link>
        ) : (
          'Ask the operator of this gateway to add credits, or send a smaller max_tokens, which reserves less.'
        )}{' '}
        <Link to={`/a/${id}/usage?outcome=rejected`}>See rejected calls</Link>
      </Note>
    </div>
  )
}

/** Of the answers on this page. */
export function MissingBanner() {
  const { path } = useLocation()
  const [shown, setShown] = useState<Readonly<Record<string, readonly string[]>>>({})
  useEffect(() => {
    setShown({})
    whenAnswered((of, missing) =>
      setShown((before) => (missing.length > 0 || before[of] ? { ...before, [of]: missing } : before)),
    )
  }, [path])
  const missing = [...new Set(Object.values(shown).flat())]
  if (missing.length === 0) return null
  return (
    <div className="banner" role="status">
      <Note tone="warn">
        The accounts of ledgers that do not answer are missing on this page: {missing.join(', ')}.
      </Note>
    </div>
  )
}
