import { type FormEvent, useDeferredValue, useState } from 'react'
import { api } from '../../api.ts'
import { parseCredits } from '../../credits.ts'
import { refresh, useList } from '../../query.ts'
import { Link, navigate } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogBody, DialogFoot } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Ago, Amount, Badge, Card, Page } from '../../ui/page.tsx'
import { Empty, Fault, Loaded, LoadMore } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Account } from '../../wire.ts'
import { describeLimits } from '../limits.tsx'

const to = (account: Account) => `/operator/accounts/${encodeURIComponent(account.id)}`

export function AccountsPage() {
  const [text, setText] = useState('')
  const sought = useDeferredValue(text.trim())
  const [creating, setCreating] = useState(false)
  const list = useList(`accounts/list/${sought}`, (cursor, signal) =>
    api.accounts({ q: sought, limit: 50, ...(cursor ? { cursor } : {}) }, signal),
  )
  return (
    <Page
      title="Accounts"
      lead="Each account has one balance of credits, its own keys and its own members."
      actions={
        <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
          Create account
        </Button>
      }
    >
      <div className="search">
        <Icon name="search" size={16} />
        <input
          className="input"
          type="search"
          aria-label="Search accounts"
          placeholder="Search by name or id"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      <Card flush>
        <Loaded query={list}>
          {(accounts) =>
            accounts.length === 0 ? (
              <Empty icon="accounts" title={sought ? 'No account found' : 'No accounts yet'}>
                <p>{sought ? 'Try another word.' : 'Create one, give it credits, and invite its owner.'}</p>
              </Empty>
            ) : (
              <Table
                label="Accounts"
                rows={accounts}
                rowKey={(account) => account.id}
                to={to}
                columns={[
                  {
                    head: 'Name',
                    main: true,
                    cell: (account) => (
                      <>
                        <Link to={to(account)} className="cell-link">
                          {account.name}
                        </Link>
                        <code className="cell-sub">{account.id}</code>
                      </>
                    ),
                  },
                  {
                    head: 'Available',
                    right: true,
                    cell: (account) => <Amount value={account.available} decimals={2} />,
                  },
                  { head: 'Held', right: true, cell: (account) => <Amount value={account.held} decimals={2} /> },
                  {
                    head: 'Limits',
                    wideOnly: true,
                    cell: (account) => {
                      const limits = describeLimits(account.limits)
                      return limits.length ? (
                        <span className="badges">
                          {limits.map((limit) => (
                            <Badge key={limit}>{limit}</Badge>
                          ))}
                        </span>
                      ) : (
                        <span className="muted">None</span>
                      )
                    },
                  },
                  { head: 'Created', tight: true, cell: (account) => <Ago at={account.createdAt} /> },
                ]}
              />
            )
          }
        </Loaded>
        <LoadMore list={list} />
      </Card>
      {creating ? <CreateAccount onClose={() => setCreating(false)} /> : null}
    </Page>
  )
}

function CreateAccount({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [credits, setCredits] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const amount = credits.trim() ? parseCredits(credits) : 0n
  const fault = amount === undefined || amount < 0n ? 'An amount such as 100 or 2.5.' : undefined
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const account = await api.createAccount({
        name: name.trim(),
        ...(credits.trim() ? { credits: credits.trim() } : {}),
      })
      toast(`“${account.name}” is ready.`)
      refresh('accounts/')
      navigate(to(account))
    } catch (problem) {
      setError(problem as Error)
      setBusy(false)
    }
  }
  return (
    <Dialog title="Create an account" onClose={onClose}>
      <form onSubmit={submit}>
        <DialogBody>
          <TextField label="Name" value={name} onText={setName} maxLength={100} required />
          <TextField
            label="Credits to start with"
            value={credits}
            onText={setCredits}
            inputMode="decimal"
            placeholder="0"
            fault={fault}
          />
          {error ? <Fault error={error} /> : null}
        </DialogBody>
        <DialogFoot>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={busy} disabled={!name.trim() || Boolean(fault)}>
            Create account
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  )
}
