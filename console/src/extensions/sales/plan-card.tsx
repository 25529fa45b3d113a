// The plan of an account: what it is, what becomes of it at the end of its period, and what else could be chosen.
import { type ReactNode, useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { formatDay, plural } from '../../format.ts'
import { describeLimits } from '../../pages/limits.tsx'
import { useMay } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { Badge, Card, Facts, Note } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { AccountPlan, PlanOffer, Sales } from '../../wire.ts'
import { refreshMoney } from './returned.tsx'

type Plan = NonNullable<AccountPlan['plan']>
type SavedCard = Sales['card']

const isFree = ({ price }: Pick<PlanOffer, 'price'>) => Number(price) === 0
export const priceOf = (offer: PlanOffer) => (isFree(offer) ? 'Free' : `${offer.price} ${offer.currency} a month`)

interface Part {
  readonly account: string
  readonly card: SavedCard
}

export function PlanCard({ account, of: { plan, plans }, card }: Part & { of: AccountPlan }) {
  const may = useMay()('plan:write', account)
  const [asking, setAsking] = useState<PlanOffer | 'cancel'>()
  if (!plan && plans.length === 0) return null
  return (
    <Card
      title="Plan"
      lead={plan ? undefined : 'A plan brings credits every month. Unused credits end with the month.'}
    >
      {plan ? <CurrentPlan plan={plan} plans={plans} /> : null}
      {plan && may ? (
        <PlanButtons account={account} card={card} plan={plan} plans={plans} onCancel={() => setAsking('cancel')} />
      ) : null}
      <div className="offers">
        {plans.map((offer) => (
          <Offer key={offer.id} offer={offer} plan={plan}>
            {may && offer.id !== plan?.id && offer.id !== plan?.next ? (
              <Button look={plan ? 'plain' : 'primary'} onClick={() => setAsking(offer)}>
                {plan ? `Change to ${offer.name}` : `Choose ${offer.name}`}
              </Button>
            ) : null}
          </Offer>
        ))}
      </div>
      {may || plan ? null : <Note>Owners of the account, and those with the billing role, can choose a plan.</Note>}
      {asking === 'cancel' && plan ? (
        <Cancel account={account} plan={plan} onClose={() => setAsking(undefined)} />
      ) : asking && asking !== 'cancel' ? (
        <Choose account={account} card={card} plan={plan} wanted={asking} onClose={() => setAsking(undefined)} />
      ) : null}
    </Card>
  )
}

/** Goes to the payment page where there is something to pay. Answers whether it stays here. */
async function choose(account: string, plan: string | null, checkout = false): Promise<boolean> {
  const chosen = await api.choosePlan(account, { plan, ...(checkout ? { checkout } : {}) })
  if (chosen.checkout) window.location.assign(chosen.checkout.url)
  else refreshMoney(account)
  return chosen.checkout === null
}

function CurrentPlan({ plan, plans }: { plan: Plan; plans: readonly PlanOffer[] }) {
  const next = plans.find(({ id }) => id === plan.next)
  const day = formatDay(plan.endsAt)
  const price = next && !isFree(next) ? `, for ${next.price} ${next.currency}` : ''
  const name = plan.trial ? `${plan.name}, trial` : plan.name
  return (
    <>
      <Facts
        items={[
          ['Now', name],
          plan.due
            ? ['Paid until', day]
            : plan.next === null
              ? ['Ends', `${day}. Its unused credits end then.`]
              : plan.next === plan.id
                ? [plan.trial ? 'Trial ends' : 'Renews', `${day}${price}`]
                : ['Changes', `${day}, to ${next?.name ?? plan.next}${price}`],
        ]}
      />
      {plan.due ? (
        <Note tone="warn">
          {`The new month is not paid, so it has brought no credits yet. ${plan.problem ?? ''} `}
          {plan.retryAt ? `The saved card is charged again on ${formatDay(plan.retryAt)}.` : ''}
        </Note>
      ) : null}
    </>
  )
}

function PlanButtons({
  account,
  card,
  plan,
  plans,
  onCancel,
}: Part & { plan: Plan; plans: readonly PlanOffer[]; onCancel: () => void }) {
  const choosing = useAction((_signal, checkout: boolean) => choose(account, plan.id, checkout))
  const isOffered = plans.some(({ id }) => id === plan.id)
  return (
    <>
      <div className="row">
        {plan.due ? (
          <>
            <Button look="primary" busy={choosing.busy} onClick={() => choosing.go(false)}>
              Pay now
            </Button>
            {card ? (
              <Button busy={choosing.busy} onClick={() => choosing.go(true)}>
                Pay by another card
              </Button>
            ) : null}
          </>
        ) : plan.next !== plan.id && isOffered ? (
          <Button busy={choosing.busy} onClick={() => choosing.go(false)}>
            {`Keep ${plan.name}`}
          </Button>
        ) : null}
        {plan.next === null ? null : <Button onClick={onCancel}>Cancel the plan</Button>}
      </div>
      {choosing.error ? <Fault error={choosing.error} /> : null}
    </>
  )
}

function Offer({ offer, plan, children }: { offer: PlanOffer; plan: Plan | null; children: ReactNode }) {
  const limits = describeLimits(offer.limits)
  return (
    <section className="offer" aria-label={offer.name}>
      <h3>
        {offer.name}{' '}
        {plan?.id === offer.id ? (
          <Badge tone="good">now</Badge>
        ) : plan?.next === offer.id ? (
          <Badge tone="busy">next</Badge>
        ) : null}
      </h3>
      <p className="offer-price">{priceOf(offer)}</p>
      <ul>
        <li>{formatCredits(offer.credits)} credits a month</li>
        {offer.trialDays === null ? null : <li>the first {plural(offer.trialDays, 'day')} free</li>}
        {limits.map((limit) => (
          <li key={limit}>{limit}</li>
        ))}
        {offer.products === null ? null : <li>only for {offer.products.join(', ')}</li>}
      </ul>
      {children}
    </section>
  )
}

function Cancel({ account, plan, onClose }: { account: string; plan: Plan; onClose: () => void }) {
  return (
    <Confirm
      title={`Cancel ${plan.name}`}
      action="Cancel the plan"
      cancel="Keep it"
      danger
      onClose={onClose}
      run={async () => {
        await choose(account, null)
        toast('The plan was cancelled.')
      }}
    >
      {plan.due
        ? 'It ends now, because its new month is not paid.'
        : `It stays until ${formatDay(plan.endsAt)} and is not renewed. Unused credits of the plan end with it; other credits stay.`}
    </Confirm>
  )
}

/** When it begins, and what is paid for it now. */
function termsOf(wanted: PlanOffer, plan: Plan | null, card: SavedCard): string {
  const isDown = plan !== null && Number(wanted.price) <= Number(plan.price)
  if (isDown)
    return `${plan.name} stays until ${formatDay(plan.endsAt)}. Then it is ${wanted.name}: ${priceOf(wanted)}.`
  if (isFree(wanted)) return `It begins now and costs nothing.`
  if (wanted.trialDays !== null)
    return `It begins now with ${plural(wanted.trialDays, 'free day')}. Then it costs ${priceOf(wanted)}${card ? ', charged to the saved card' : ''}, unless it is cancelled before.`
  const begins = plan ? `It begins now. Unused credits of ${plan.name} stay until their own end.` : 'It begins now.'
  return card
    ? `${begins} ${wanted.price} ${wanted.currency} are charged now, and every month, to ${card.brand} •••• ${card.last4}.`
    : `${priceOf(wanted)}. The payment page opens next; the plan begins when it is paid.`
}

function Choose(props: Part & { plan: Plan | null; wanted: PlanOffer; onClose: () => void }) {
  const { account, card, plan, wanted, onClose } = props
  const [isOther, setOther] = useState(false)
  const paysNow = !isFree(wanted) && wanted.trialDays === null && (!plan || Number(wanted.price) > Number(plan.price))
  return (
    <Confirm
      title={plan ? `Change to ${wanted.name}` : `Choose ${wanted.name}`}
      action={
        !paysNow
          ? plan
            ? 'Change'
            : 'Choose'
          : card && !isOther
            ? `Pay ${wanted.price} ${wanted.currency}`
            : 'Go to payment'
      }
      onClose={onClose}
      run={async () => {
        if (await choose(account, wanted.id, isOther)) toast(`${wanted.name} was chosen.`)
      }}
    >
      <p>{termsOf(wanted, plan, isOther ? null : card)}</p>
      {paysNow && card ? <Checkbox label="Pay by another card" checked={isOther} onCheck={setOther} /> : null}
    </Confirm>
  )
}
