// Suspends, closes and reopens an account.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { refresh } from '../../query.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Badge, Card, When } from '../../ui/page.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Account } from '../../wire.ts'

const TONES = { open: 'good', suspended: 'warn', closed: 'bad' } as const
const WORDS = { open: 'Open', suspended: 'Suspended', closed: 'Closed' } as const

export function StatusBadge({ of }: { of: Pick<Account, 'status'> }) {
  return <Badge tone={TONES[of.status]}>{WORDS[of.status]}</Badge>
}

/** What ended is reopened; what only stands still is resumed. */
const wordOf = (status: Account['status']) => (status === 'suspended' ? 'Resume' : 'Reopen')

type Change = 'suspend' | 'close' | 'reopen'

export function StatusCard({ account }: { account: Account }) {
  const [change, setChange] = useState<Change>()
  const { status, statusReason, statusAt } = account
  return (
    <Card title="Status">
      <p>
        <StatusBadge of={account} />{' '}
        {status === 'open' ? (
          'Calls are served.'
        ) : (
          <>
            {statusReason} {statusAt ? <When at={statusAt} /> : null}
          </>
        )}
      </p>
      <div className="row">
        {status === 'open' ? (
          <Button right="accounts:write" onClick={() => setChange('suspend')}>
            Suspend
          </Button>
        ) : null}
        {status === 'open' ? null : (
          <Button right="accounts:write" onClick={() => setChange('reopen')}>
            {wordOf(status)}
          </Button>
        )}
        {status === 'closed' ? null : (
          <Button right="accounts:write" look="danger" onClick={() => setChange('close')}>
            Close account
          </Button>
        )}
      </div>
      {change ? <ChangeStatus account={account} change={change} onClose={() => setChange(undefined)} /> : null}
    </Card>
  )
}

const BALANCES = [
  ['payout', 'Pay out to the customer'],
  ['writeoff', 'Write off'],
] as const

function ChangeStatus({ account, change, onClose }: { account: Account; change: Change; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const [balance, setBalance] = useState<string>('payout')
  const { id, name } = account
  const run = async () => {
    try {
      const said = { reason: reason.trim() }
      if (change === 'suspend') await api.suspendAccount(id, said)
      else if (change === 'reopen') await api.reopenAccount(id)
      else await api.closeAccount(id, { ...said, balance: balance === 'payout' ? 'payout' : 'writeoff' })
      toast(`“${name}” is ${{ suspend: 'suspended', close: 'closed', reopen: 'open again' }[change]}.`)
    } finally {
      // Also after a refusal: an account that could not be closed yet is suspended.
      refresh(`account/${id}`, 'accounts/', `ledger/${id}`, `keys/${id}`, `overview/${id}`)
    }
  }
  const title = { suspend: `Suspend ${name}`, close: `Close ${name}`, reopen: `${wordOf(account.status)} ${name}` }[
    change
  ]
  return (
    <FormDialog
      title={title}
      action={{ suspend: 'Suspend', close: 'Close account', reopen: wordOf(account.status) }[change]}
      look={change === 'close' ? 'danger' : 'primary'}
      run={run}
      onClose={onClose}
    >
      <p>{EFFECTS[change]}</p>
      {change === 'reopen' ? null : (
        <TextField
          label="Reason"
          value={reason}
          onText={setReason}
          maxLength={200}
          placeholder="Invoice 2026-014 is overdue"
          hint="Shown to API callers."
          required
        />
      )}
      {change === 'close' ? (
        <SelectField
          label={`Balance of ${formatCredits(account.balance, 4)} credits`}
          value={balance}
          onText={setBalance}
          options={BALANCES}
        />
      ) : null}
    </FormDialog>
  )
}

const EFFECTS: Record<Change, string> = {
  suspend:
    'Calls of all its keys get 403 with the reason, in all processes within two seconds. Running calls end and are charged. Its credits stay, and its members can still sign in.',
  close:
    'All its keys end for good. It is suspended first, so that running calls end and are charged; if one still runs, nothing is moved, and you can close it again later. Its statements stay.',
  reopen: 'Calls are served again. Keys that ended when it was closed stay ended; create new ones.',
}
