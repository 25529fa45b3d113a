// The card that may be charged while nobody is there, and when it is.
import { api } from '../../api.ts'
import { refresh } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { useAction, useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card, Facts, Note } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Sales } from '../../wire.ts'

interface Part {
  readonly account: string
  readonly sales: Sales
}

export function SavedCard({ account, sales }: Part) {
  const may = useMay()('purchases:write', account)
  const { card, topUp } = sales
  const open = useAction(async (_signal, which: 'card' | 'portal') => {
    const { url } = await (which === 'card' ? api.saveCard(account) : api.portal(account))
    window.location.assign(url)
  })
  if (!sales.supportsSavedCards && !card && !topUp) return null
  return (
    <Card title="Saved card and automatic top-up">
      <Facts
        items={[
          ['Card', card ? `${card.brand} •••• ${card.last4}, until ${card.expires}` : 'none'],
          [
            'Automatic top-up',
            topUp
              ? `${topUp.amount} ${topUp.currency} when fewer than ${topUp.below} credits are left; ${topUp.used} of at most ${topUp.ceiling} ${topUp.currency} this month`
              : 'off',
          ],
        ]}
      />
      {topUp?.problem ? <Note tone="warn">{topUp.problem}</Note> : null}
      {may && sales.supportsSavedCards ? (
        <div className="row">
          <Button busy={open.busy} onClick={() => open.go('card')}>
            {card ? 'Replace the card' : 'Save a card'}
          </Button>
          {card ? (
            <Button busy={open.busy} onClick={() => open.go('portal')}>
              Receipts and cards at Stripe
            </Button>
          ) : null}
        </div>
      ) : null}
      {open.error ? <Fault error={open.error} /> : null}
      {may && card && sales.amounts ? <TopUpForm account={account} sales={sales} amounts={sales.amounts} /> : null}
      {may && !card && sales.supportsSavedCards ? (
        <p className="muted">Automatic top-up needs a saved card. Nothing is charged when a card is saved.</p>
      ) : null}
    </Card>
  )
}

function TopUpForm({ account, sales, amounts }: Part & { amounts: NonNullable<Sales['amounts']> }) {
  const { topUp, currency } = sales
  const off = useAction(async () => {
    await api.endTopUp(account)
    toast('Automatic top-up is off.')
    refresh(`sales/${account}`)
  })
  const set = useSubmit(async (form) => {
    const field = (name: string) => String(form.get(name)).trim()
    await api.setTopUp(account, { below: field('below'), amount: field('amount'), ceiling: field('ceiling') })
    toast('Automatic top-up is on.')
    refresh(`sales/${account}`)
  })
  const error = set.error ?? off.error
  return (
    <form className="stack" onSubmit={set.onSubmit}>
      <div className="grid-3">
        <TextField
          name="below"
          label="When fewer credits are left than"
          defaultValue={topUp?.below ?? '100'}
          inputMode="decimal"
          required
        />
        <TextField
          name="amount"
          label={`Charge (${currency})`}
          defaultValue={topUp?.amount ?? amounts.minimum}
          hint={`From ${amounts.minimum} to ${amounts.maximum}.`}
          inputMode="decimal"
          required
        />
        <TextField
          name="ceiling"
          label={`At most in a month (${currency})`}
          defaultValue={topUp?.ceiling ?? amounts.maximum}
          hint="A calendar month in UTC."
          inputMode="decimal"
          required
        />
      </div>
      {error ? <Fault error={error} /> : null}
      <div className="row">
        <Button type="submit" look="primary" busy={set.busy}>
          {topUp ? 'Change automatic top-up' : 'Turn on automatic top-up'}
        </Button>
        {topUp ? (
          <Button busy={off.busy} onClick={() => off.go()}>
            Turn off
          </Button>
        ) : null}
      </div>
    </form>
  )
}
