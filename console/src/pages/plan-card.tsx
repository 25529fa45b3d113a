// The plan of an account: what it is, what becomes of it at the end of its period, and what else could be chosen.
import { type ReactNode, useState } from 'react'
import { api } from '../api.ts'
import { formatCredits } from '../credits.ts'
import { formatDay, plural } from '../format.ts'
import { refresh } from '../query.ts'
import { useMay } from '../session.tsx'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Badge, Card, Facts, Note } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import type { AccountPlan, PlanOffer } from '../wire.ts'
import { describeLimits } from './limits.tsx'

type Plan = NonNullable<AccountPlan['plan']>

const isFree = ({ price }: PlanOffer) => Number(price) === 0
export const priceOf = (offer: PlanOffer) => (isFree(offer) ? 'Free' : `${offer.price} ${offer.currency} a month`)

export function PlanCard({ account, of: { plan, plans } }: { account: string; of: AccountPlan }) {
  const may = useMay()('plan:write', account)
  const [asking, setAsking] = useState<PlanOffer | 'cancel'>()
  const choosing = useAction((_signal, id: string | null) => choose(account, id))
  if (!plan && plans.length === 0) return null
  const now = plan && plans.find(({ id }) => id === plan.id)
  return (
    <Card
      title="Plan"
      lead={plan ? undefined : 'A plan brings credits every month. What is left of them ends with the month.'}
    >
      {plan ? (
        <CurrentPlan plan={plan} plans={plans}>
          {may && plan.next !== null ? <Button onClick={() => setAsking('cancel')}>Cancel the plan</Button> : null}
          {may && plan.next !== plan.id && now ? (
            <Button busy={choosing.busy} onClick={() => choosing.go(plan.id)}>
              {`Keep ${plan.name}`}
            </Button>
          ) : null}
        </CurrentPlan>
      ) : null}
      <div className="offers">
        {plans.map((offer) => (
          <Offer
            key={offer.id}
            offer={offer}
            current={offer.id === plan?.id}
            next={plan?.next === offer.id && plan.next !== plan.id}
          >
            {may && offer.id !== plan?.id && offer.id !== plan?.next ? (
              <Button look={plan ? 'plain' : 'primary'} onClick={() => setAsking(offer)}>
                {plan ? `Change to ${offer.name}` : `Choose ${offer.name}`}
              </Button>
            ) : null}
          </Offer>
        ))}
      </div>
      {may || plan ? null : <Note>An owner of the account, or somebody with the billing role, can choose a plan.</Note>}
      {choosing.error ? <Fault error={choosing.error} /> : null}
      {asking ? <Ask account={account} plan={plan} wanted={asking} onClose={() => setAsking(undefined)} /> : null}
    </Card>
  )
}

async function choose(account: string, id: string | null): Promise<void> {
  await api.choosePlan(account, id)
  refresh(`plan/${account}`, `balance/${account}`, `account/${account}`)
}

function CurrentPlan({ plan, plans, children }: { plan: Plan; plans: readonly PlanOffer[]; children: ReactNode }) {
  const next = plans.find(({ id }) => id === plan.next)
  const day = formatDay(plan.endsAt)
  const price = next && !isFree(next) ? `, for ${next.price} ${next.currency}` : ''
  return (
    <>
      <Facts
        items={[
          [
            'Now',
            <>
              {plan.name} {plan.trial ? <Badge tone="busy">trial</Badge> : null}
            </>,
          ],
          plan.next === null
            ? ['Ends', `${day}. Credits that are left of it end then.`]
            : plan.next === plan.id
              ? [plan.trial ? 'Trial ends' : 'Renews', `${day}${price}`]
              : ['Changes', `${day}, to ${next?.name ?? plan.next}${price}`],
        ]}
      />
      {plan.due ? <Note tone="warn">This month is not paid yet. Its credits come with the payment.</Note> : null}
      <div className="row">{children}</div>
    </>
  )
}

function Offer(props: { offer: PlanOffer; current: boolean; next: boolean; children: ReactNode }) {
  const { offer, current, next, children } = props
  const limits = describeLimits(offer.limits)
  return (
    <section className="offer" aria-label={offer.name}>
      <h3>
        {offer.name} {current ? <Badge tone="good">now</Badge> : next ? <Badge tone="busy">next</Badge> : null}
      </h3>
      <p className="offer-price">{priceOf(offer)}</p>
      <ul>
        <li>{formatCredits(offer.credits)} credits a month</li>
        {offer.trialDays === null ? null : <li>{plural(offer.trialDays, 'day')} of trial, once</li>}
        {limits.map((limit) => (
          <li key={limit}>{limit}</li>
        ))}
        {offer.products === null ? null : <li>only for {offer.products.join(', ')}</li>}
      </ul>
      {children}
    </section>
  )
}

function Ask(props: { account: string; plan: Plan | null; wanted: PlanOffer | 'cancel'; onClose: () => void }) {
  const { account, plan, wanted, onClose } = props
  const day = plan ? formatDay(plan.endsAt) : ''
  if (wanted === 'cancel')
    return (
      <Confirm
        title={`Cancel ${plan?.name}`}
        action="Cancel the plan"
        cancel="Keep it"
        danger
        onClose={onClose}
        run={async () => {
          await choose(account, null)
          toast('The plan was cancelled.')
        }}
      >
        {`It stays until ${day} and is not renewed. Credits of the plan that are left then end with it; others stay.`}
      </Confirm>
    )
  return (
    <Confirm
      title={plan ? `Change to ${wanted.name}` : `Choose ${wanted.name}`}
      action={plan ? 'Change' : 'Choose'}
      onClose={onClose}
      run={async () => {
        await choose(account, wanted.id)
        toast(plan ? `The plan changes to ${wanted.name} on ${day}.` : `${wanted.name} was chosen.`)
      }}
    >
      {plan
        ? `${plan.name} stays until ${day}. From then on it is ${wanted.name}: ${priceOf(wanted)}.`
        : `${priceOf(wanted)}. It can be cancelled at any time, to the end of its month.`}
    </Confirm>
  )
}
