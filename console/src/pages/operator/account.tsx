import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits, parseCredits } from '../../credits.ts'
import { StatementPanel } from '../../extensions/finance/statement.tsx'
import { refresh, useQuery } from '../../query.ts'
import { randomId } from '../../random.ts'
import { Link, useDialogInAddress } from '../../router.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { Balance, Page } from '../../ui/page.tsx'
import { Loaded, Skeleton } from '../../ui/state.tsx'
import { RouteTabs } from '../../ui/tabs.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Account } from '../../wire.ts'
import { KeysPanel } from '../keys.tsx'
import { LimitsCard } from '../limits.tsx'
import { MembersPanel } from '../members.tsx'
import { UsagePanel } from '../usage.tsx'
import { AccountOverview } from './account-overview.tsx'
import { StatusBadge, StatusCard } from './account-status.tsx'

const TABS = [
  { name: 'overview', label: 'Overview' },
  { name: 'settings', label: 'Settings' },
  { name: 'keys', label: 'Keys' },
  { name: 'members', label: 'Members' },
  { name: 'usage', label: 'Usage' },
  { name: 'statement', label: 'Statement' },
] as const

export function AccountPage({ account: id, tab = 'overview' }: { account: string; tab?: string }) {
  const base = `/operator/accounts/${encodeURIComponent(id)}`
  const account = useQuery(`account/${id}`, (signal) => api.account(id, signal))
  const [crediting, setCrediting] = useDialogInAddress('credits')
  const [adding, setAdding] = useState(false)
  return (
    <Page
      title={account.data?.name ?? 'Account'}
      lead={
        <>
          <code>{id}</code> {account.data ? <StatusBadge of={account.data} /> : null}
        </>
      }
      back={{ to: '/operator/accounts', label: 'Accounts' }}
      actions={
        <>
          <LinkButton to={`/a/${encodeURIComponent(id)}`} icon="swap">
            Act as this account
          </LinkButton>
          <Button right="credits:write" look="primary" icon="plus" onClick={() => setCrediting(true)}>
            Add credits
          </Button>
        </>
      }
    >
      <Loaded query={account} skeleton={<Skeleton lines={2} like="tall" />}>
        {(data) => (
          <>
            <Balance of={data} />
            <RouteTabs
              label="Account"
              current={tab}
              tabs={TABS.map((one) => ({ ...one, to: `${base}/${one.name}` }))}
            />
            {tab === 'overview' ? (
              <>
                <AccountOverview account={data} />
                <StatusCard account={data} />
              </>
            ) : null}
            {tab === 'settings' ? <Settings key={JSON.stringify(data.limits)} account={data} /> : null}
            {tab === 'keys' || tab === 'members' ? (
              <div>
                <Button right="keys:write" icon="plus" onClick={() => setAdding(true)}>
                  {tab === 'keys' ? 'Create key' : 'Invite'}
                </Button>
              </div>
            ) : null}
            {tab === 'keys' ? <KeysPanel account={id} creating={adding} onCreating={setAdding} /> : null}
            {tab === 'members' ? <MembersPanel account={id} inviting={adding} onInviting={setAdding} /> : null}
            {tab === 'usage' ? <UsagePanel account={id} /> : null}
            {tab === 'statement' ? (
              <>
                <StatementPanel account={id} />
                <p>
                  <Link to={`/a/${encodeURIComponent(id)}/statement/movements`}>All movements</Link>
                </p>
              </>
            ) : null}
            {crediting ? <AddCredits account={data} onClose={() => setCrediting(false)} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Settings({ account }: { account: Account }) {
  const [name, setName] = useState(account.name)
  return (
    <LimitsCard
      right="accounts:write"
      title="Name and limits"
      lead="For all keys of the account together. Leave empty for no limit."
      limits={account.limits}
      save={async (limits) => {
        await api.changeAccount(account.id, name.trim() === account.name ? { limits } : { limits, name: name.trim() })
        refresh(`account/${account.id}`, 'accounts/')
      }}
    >
      <div className="half">
        <TextField label="Name" value={name} onText={setName} maxLength={100} required />
      </div>
    </LimitsCard>
  )
}

const randomKey = () => `console-${randomId()}`

function AddCredits({ account, onClose }: { account: Account; onClose: () => void }) {
  const [amount, setAmount] = useState('')
  const [note, setNote] = useState('')
  const [isCorrection, setCorrection] = useState(false)
  /** The idempotency key: sending the same form again adds the credits once, and a changed form gets a new key. */
  const [key, setKey] = useState(randomKey)
  const change = (set: (text: string) => void) => (text: string) => {
    set(text)
    setKey(randomKey())
  }
  const size = parseCredits(amount)
  const taking = size !== undefined && size < 0n
  const available = parseCredits(account.available) ?? 0n
  const tooMuch = taking && available + size < 0n
  const run = async () => {
    try {
      const correction = isCorrection && !taking
      const after = await api.addCredits(account.id, { amount: amount.trim(), note: note.trim(), correction }, key)
      toast(`The balance is now ${formatCredits(after.balance)} credits.`)
    } finally {
      // Also after a refusal: what is available may have changed since the dialog was opened.
      refresh(
        `account/${account.id}`,
        'accounts/',
        `ledger/${account.id}`,
        `overview/${account.id}`,
        `statement/${account.id}`,
      )
    }
  }
  return (
    <FormDialog
      title={`Credits of ${account.name}`}
      action={taking ? 'Take back' : 'Add credits'}
      look={taking ? 'danger' : 'primary'}
      disabled={tooMuch}
      run={run}
      onClose={onClose}
    >
      <TextField
        label="Amount"
        value={amount}
        onText={change(setAmount)}
        inputMode="decimal"
        placeholder="100"
        hint={`A negative amount takes credits back. Available: ${formatCredits(available)}.`}
        fault={amountFault(amount, size, available)}
        required
      />
      <TextField
        label="Note"
        value={note}
        onText={change(setNote)}
        maxLength={200}
        placeholder="Invoice 2026-014"
        required
      />
      {taking ? null : (
        <Checkbox
          label="A correction, not a top-up: statements list it apart"
          checked={isCorrection}
          onCheck={(checked) => {
            setCorrection(checked)
            setKey(randomKey())
          }}
        />
      )}
      {tooMuch && available > 0n ? (
        <div>
          <Button onClick={() => change(setAmount)(`-${account.available}`)}>
            Take back {formatCredits(available)}, all that is available
          </Button>
        </div>
      ) : null}
      {size && !tooMuch ? (
        <p className="muted">
          Balance afterwards: <b>{formatCredits((parseCredits(account.balance) ?? 0n) + size)}</b> credits.
        </p>
      ) : null}
    </FormDialog>
  )
}

function amountFault(amount: string, size: bigint | undefined, available: bigint): string | undefined {
  if (!amount.trim()) return undefined
  if (size === undefined) return 'An amount such as 100, 2.5 or -10.'
  if (available + size >= 0n || size >= 0n) return undefined
  return `Only ${formatCredits(available)} credits are available.`
}
