// What somebody who helps a customer looks for first.
import { api } from '../../api.ts'
import { useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { Card, Facts, When } from '../../ui/page.tsx'
import type { Account } from '../../wire.ts'
import { faultTitle } from '../fault-words.ts'
import { describeLimits } from '../limits.tsx'

export function AccountOverview({ account }: { account: Account }) {
  const { id, limits } = account
  const may = useMay()
  const when = (right: Parameters<typeof may>[0], key: string) => (may(right) ? `${key}/overview` : undefined)
  const plan = useQuery(when('plan:read', `plan/${id}`), (signal) => api.plan(id, signal)).data?.plan
  const members = useQuery(when('members:read', `members/${id}`), (signal) => api.members(id, signal)).data?.items
  const failed = useQuery(when('usage:read', `usage/${id}`), (signal) =>
    api.usage(id, { outcome: 'failed', limit: 1 }, signal),
  ).data?.items
  const payments = useQuery(when('payments:read', `payments/${id}`), (signal) =>
    api.accountPayments(id, undefined, signal),
  ).data?.items
  const owners = members?.filter(({ role }) => role === 'owner').map(({ email }) => email)
  const [error, paid] = [failed?.[0], payments?.[0]]
  return (
    <Card title="Overview">
      <Facts
        items={[
          ['Plan', plan ? `${plan.name}${plan.trial ? ', trial' : ''}` : 'None'],
          members !== undefined && ['Owner', owners?.join(', ') || 'None'],
          failed !== undefined && [
            'Last error',
            error ? (
              <span key="e">
                <Link to={`/operator/calls/${encodeURIComponent(error.id)}`}>
                  {error.fault ? faultTitle(error.fault) : `HTTP ${error.status}`}
                </Link>{' '}
                <When at={error.at} />
              </span>
            ) : (
              'None in 30 days'
            ),
          ],
          payments !== undefined && [
            'Last payment',
            paid ? (
              <span key="p">
                {paid.amount} {paid.currency}, {paid.state} <When at={paid.createdAt} />
              </span>
            ) : (
              'None'
            ),
          ],
          ['Limits', describeLimits(limits).join(', ') || 'None'],
        ]}
      />
    </Card>
  )
}
