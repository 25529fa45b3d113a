// The balance and what it is made of, the plan, codes, the saved card and automatic top-up.
import { balanceSentence } from '../../../../src/reports/balance-sentence.ts'
import { api } from '../../api.ts'
import { formatCredits, parseCredits } from '../../credits.ts'
import { useQuery } from '../../query.ts'
import { useDialogInAddress } from '../../router.tsx'
import { useMay, useSession } from '../../session.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Amount, Badges, Balance, Card, Page, When } from '../../ui/page.tsx'
import { Loaded, Skeleton } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Balance as BalanceOf, Lot } from '../../wire.ts'
import { PlanCard } from './plan-card.tsx'
import { Returned, refreshMoney } from './returned.tsx'
import { SavedCard } from './saved-card.tsx'

export function BillingPage({ account }: { account: string }) {
  const may = useMay()
  const { salesEnabled, codesEnabled } = useSession()
  const [redeeming, setRedeeming] = useDialogInAddress('redeem')
  const balance = useQuery(`balance/${account}`, (signal) => api.balance(account, signal))
  const plan = useQuery(`plan/${account}`, (signal) => api.plan(account, signal))
  const sales = useQuery(`sales/${account}`, (signal) => api.sales(account, signal))
  const mayRedeem = codesEnabled && may('plan:write', account)
  return (
    <Page
      title="Balance & plan"
      lead={balance.data ? `${balanceSentence(balance.data, formatCredits)}.` : undefined}
      actions={
        <>
          {mayRedeem ? <Button onClick={() => setRedeeming(true)}>Redeem a code</Button> : null}
          {salesEnabled && may('purchases:write', account) ? (
            <LinkButton look="primary" to={`/a/${encodeURIComponent(account)}/buy`}>
              Buy credits
            </LinkButton>
          ) : null}
        </>
      }
    >
      <Returned account={account} />
      <Loaded query={balance} skeleton={<Skeleton lines={1} like="tall" />}>
        {(data) => (
          <>
            <Balance of={data} />
            {data.lots.length ? <Lots of={data} /> : null}
          </>
        )}
      </Loaded>
      <Loaded query={plan}>{(data) => <PlanCard account={account} of={data} card={sales.data?.card ?? null} />}</Loaded>
      <Loaded query={sales}>{(data) => <SavedCard account={account} sales={data} />}</Loaded>
      {redeeming && mayRedeem ? <Redeem account={account} onClose={() => setRedeeming(false)} /> : null}
    </Page>
  )
}

const SOURCES: Readonly<Record<Lot['source'], string>> = {
  bought: 'Bought',
  given: 'Given',
  plan: 'Plan',
  code: 'Code',
}
/** Plain credits are spent after lots of this priority, and before those of a higher number. */
const PLAIN_PRIORITY = 50

interface LotRow extends Pick<Lot, 'id' | 'remaining' | 'held' | 'endsAt' | 'products'> {
  readonly from: string
  readonly amount?: string
}

/** In the order in which they are spent. */
function rowsOf({ lots, plain }: BalanceOf): LotRow[] {
  const rows: LotRow[] = lots.map((lot) => ({ ...lot, from: SOURCES[lot.source] }))
  const at = lots.findIndex(({ priority }) => priority > PLAIN_PRIORITY)
  const rest = { id: 'plain', from: 'Other credits', remaining: plain, held: '0', endsAt: null, products: null }
  return plain === '0' ? rows : rows.toSpliced(at < 0 ? rows.length : at, 0, rest)
}

function Lots({ of }: { of: BalanceOf }) {
  return (
    <Card flush title="Credit breakdown" lead="In the order in which it is spent.">
      <Table
        label="Lots"
        rows={rowsOf(of)}
        rowKey={({ id }) => id}
        columns={[
          { head: 'From', main: true, cell: ({ from }) => from },
          {
            head: 'Left',
            right: true,
            cell: ({ remaining, amount }) => (
              <>
                <Amount value={remaining} decimals={2} />
                {amount && amount !== remaining ? (
                  <span className="cell-sub">of {formatCredits(amount, 2)}</span>
                ) : null}
              </>
            ),
          },
          {
            head: 'Ends',
            tight: true,
            cell: ({ endsAt }) => (endsAt === null ? <span className="muted">never</span> : <When at={endsAt} />),
          },
          {
            head: 'For',
            cell: ({ products }) =>
              products === null ? <span className="muted">everything</span> : <Badges names={products} />,
          },
        ]}
      />
    </Card>
  )
}

function Redeem({ account, onClose }: { account: string; onClose: () => void }) {
  return (
    <FormDialog
      title="Redeem a code"
      action="Redeem"
      onClose={onClose}
      run={async (form) => {
        const { credits, endsAt } = await api.redeemCode(account, String(form.get('code')).trim())
        const isOne = parseCredits(credits) === 1_000_000n
        toast(
          `${formatCredits(credits)} ${isOne ? 'credit was' : 'credits were'} added${endsAt ? `, valid until ${endsAt.slice(0, 10)}` : ''}.`,
        )
        refreshMoney(account)
      }}
    >
      <TextField
        name="code"
        label="Code"
        mono
        required
        maxLength={100}
        placeholder="K7QH-2MXA-9DFT-3WNB"
        hint="Not case-sensitive; dashes are optional."
      />
    </FormDialog>
  )
}
