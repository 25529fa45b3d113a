// What became of a payment, for somebody who comes back from the page on which they paid.
import { useEffect, useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { refresh, useQuery } from '../../query.ts'
import { Link, useLocation } from '../../router.tsx'
import { Note } from '../../ui/page.tsx'

/** What changes when credits come or go. */
export const refreshMoney = (account: string) =>
  refresh(`account/${account}`, `balance/${account}`, `plan/${account}`, `sales/${account}`, `payments/${account}`)

/** Back from the provider's page: asked until it is known what became of the payment. */
export function Returned({ account }: { account: string }) {
  const { path, query } = useLocation()
  const payment = query.get('payment')
  const billing = `/a/${encodeURIComponent(account)}/billing`
  const [done, setDone] = useState(false)
  const read = useQuery(
    payment === null ? undefined : `returned/${payment}`,
    () => api.checkPayment(account, payment ?? ''),
    done ? {} : { everyMs: 2_000 },
  )
  const state = read.data?.state
  // A payment of nobody, or of somebody else, does not become known by asking again.
  const isRefused = read.error !== undefined && !read.retrying
  useEffect(() => {
    if (isRefused) setDone(true)
  }, [isRefused])
  useEffect(() => {
    if (state === undefined || state === 'pending') return
    setDone(true)
    refreshMoney(account)
  }, [state, account])
  if (payment === null || !read.data) return null
  if (state === 'paid')
    return (
      <Note>
        {`${formatCredits(read.data.credits)} credits were added.`}{' '}
        {path === billing ? null : <Link to={billing}>Show the balance</Link>}
      </Note>
    )
  if (state === 'pending') return <Note>The payment has not arrived yet. This page shows it when it has.</Note>
  return <Note tone="warn">{read.data.reason ?? 'The payment was not completed.'}</Note>
}
