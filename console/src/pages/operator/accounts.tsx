import { useDeferredValue, useState } from 'react'
import { api } from '../../api.ts'
import { parseCredits } from '../../credits.ts'
import { refresh, useList } from '../../query.ts'
import { navigate, useDialogInAddress } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { SearchField, TextField } from '../../ui/field.tsx'
import { Ago, Amount, Badges, Page } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Account } from '../../wire.ts'
import { describeLimits } from '../limits.tsx'
import { StatusBadge } from './account-status.tsx'

const to = (account: Account) => `/operator/accounts/${encodeURIComponent(account.id)}`

export function AccountsPage() {
  const [text, setText] = useState('')
  const sought = useDeferredValue(text.trim())
  const [creating, setCreating] = useDialogInAddress('create')
  const list = useList(`accounts/list/${sought}`, (cursor, signal) =>
    api.accounts({ q: sought, limit: 50, ...(cursor ? { cursor } : {}) }, signal),
  )
  return (
    <Page
      title="Accounts"
      lead="Each account has one balance of credits, API keys and members."
      actions={
        <Button right="accounts:write" look="primary" icon="plus" onClick={() => setCreating(true)}>
          Create account
        </Button>
      }
    >
      <SearchField label="Search accounts" text={text} onText={setText} />
      <TableCard
        label="Accounts"
        list={list}
        rowKey={(account) => account.id}
        to={to}
        empty={
          <Empty icon="accounts" title={sought ? 'No account found' : 'No accounts yet'}>
            <p>{sought ? 'Try another word.' : 'Create one, give it credits, and invite its owner.'}</p>
          </Empty>
        }
        columns={[
          {
            head: 'Name',
            main: true,
            cell: (account) => <Named to={to(account)} name={account.name} sub={account.id} />,
          },
          { head: 'Status', tight: true, cell: (account) => <StatusBadge of={account} /> },
          { head: 'Available', right: true, cell: (account) => <Amount value={account.available} decimals={2} /> },
          { head: 'Held', right: true, cell: (account) => <Amount value={account.held} decimals={2} /> },
          {
            head: 'Limits',
            wideOnly: true,
            cell: ({ limits }) => {
              const names = describeLimits(limits)
              return names.length ? <Badges names={names} /> : <span className="muted">None</span>
            },
          },
          { head: 'Created', tight: true, cell: (account) => <Ago at={account.createdAt} /> },
        ]}
      />
      {creating ? <CreateAccount onClose={() => setCreating(false)} /> : null}
    </Page>
  )
}

function CreateAccount({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [credits, setCredits] = useState('')
  const amount = credits.trim() ? parseCredits(credits) : 0n
  const fault = amount === undefined || amount < 0n ? 'An amount such as 100 or 2.5.' : undefined
  const run = async () => {
    const account = await api.createAccount({
      name: name.trim(),
      ...(credits.trim() ? { credits: credits.trim() } : {}),
    })
    toast(`“${account.name}” is ready.`)
    refresh('accounts/')
    navigate(to(account))
  }
  return (
    <FormDialog right="accounts:write" title="Create an account" action="Create account" run={run} onClose={onClose}>
      <TextField label="Name" value={name} onText={setName} maxLength={100} required />
      <TextField
        label="Credits to start with"
        value={credits}
        onText={setCredits}
        inputMode="decimal"
        placeholder="0"
        fault={fault}
      />
    </FormDialog>
  )
}
