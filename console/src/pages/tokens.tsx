// Tokens of the operator API: of one account, or of the whole gateway. A token is shown once.
import { useState } from 'react'
import { RIGHTS } from '../../../src/identity/roles.ts'
import { api } from '../api.ts'
import { refresh, useList } from '../query.ts'
import { useDialogInAddress } from '../router.tsx'
import { useMay } from '../session.tsx'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Confirm, FormDialog, Notice } from '../ui/dialog.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../ui/field.tsx'
import { Ago, Badge, Note, Page } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { Permission, Token } from '../wire.ts'

const DAY_MS = 86_400_000
const EXPIRIES = [
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
  ['', 'Never'],
] as const

export function TokensPage({ account }: { account: string }) {
  return (
    <Tokens
      account={account}
      lead="For programs that manage this account with the operator API. Calls to models need keys."
    />
  )
}

export function OperatorTokensPage() {
  return <Tokens lead="For programs that manage the gateway with the operator API, and for the command line." />
}

function Tokens({ account, lead }: { account?: string; lead: string }) {
  const may = useMay()('tokens:write', account)
  const [making, setMaking] = useDialogInAddress('create')
  const [ending, setEnding] = useState<Token>()
  const name = `tokens/${account ?? ''}`
  const tokens = useList(name, (_, signal) => api.tokens(account, signal))
  const newOne = (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New token
    </Button>
  )
  return (
    <Page title="Tokens" lead={lead} actions={may ? newOne : null}>
      <TableCard
        label="Tokens"
        list={tokens}
        rowKey={({ id }) => id}
        empty={
          <Empty icon="key" title="No tokens yet" action={may ? newOne : null}>
            <p>A token has the rights that you choose, and never more than you have yourself.</p>
          </Empty>
        }
        columns={[
          {
            head: 'Name',
            main: true,
            cell: (row) => (
              <>
                <b>{row.name}</b> <span className="muted">…{row.last4}</span>{' '}
                {row.revokedAt ? <Badge>revoked</Badge> : isOver(row) ? <Badge tone="warn">expired</Badge> : null}
              </>
            ),
          },
          { head: 'Rights', cell: ({ scopes }) => (scopes.includes('*') ? 'Everything' : scopes.join(', ')) },
          { head: 'Addresses', cell: ({ ipRanges }) => ipRanges?.join(', ') ?? 'Any' },
          { head: 'Expires', cell: ({ expiresAt }) => <Ago at={expiresAt} none="Never" /> },
          { head: 'Last used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} none="Never" /> },
          { head: 'Made by', cell: ({ createdBy }) => createdBy },
          {
            head: 'Actions',
            cell: (row) =>
              may && !row.revokedAt ? (
                <Button small icon="trash" onClick={() => setEnding(row)}>
                  Revoke
                </Button>
              ) : null,
          },
        ]}
      />
      {making ? (
        <TokenForm {...(account === undefined ? {} : { account })} list={name} onClose={() => setMaking(false)} />
      ) : null}
      {ending ? (
        <Confirm
          title="Revoke this token?"
          action="Revoke"
          danger
          run={async () => {
            await api.revokeToken(account, ending.id)
            toast(`The token ${ending.name} does not work any more.`)
            refresh(name)
          }}
          onClose={() => setEnding(undefined)}
        >
          <p>
            Calls with <b>{ending.name}</b> are rejected at once.
            {ending.isFirst
              ? ' The gateway was started with it: the command line on that machine needs another token then.'
              : ''}
          </p>
        </Confirm>
      ) : null}
    </Page>
  )
}

const isOver = ({ expiresAt }: Token) => expiresAt !== null && Date.parse(expiresAt) <= Date.now()

function TokenForm({ account, list, onClose }: { account?: string; list: string; onClose: () => void }) {
  const may = useMay()
  const [name, setName] = useState('')
  const [days, setDays] = useState('90')
  const [addresses, setAddresses] = useState('')
  const [scopes, setScopes] = useState<readonly Permission[]>([])
  const [token, setToken] = useState<string>()
  const offered = RIGHTS.filter(
    ({ permission, roles }) => may(permission, account) && (account === undefined || roles.has('owner')),
  )
  if (token)
    return (
      <Notice title="Copy this token" once onClose={onClose}>
        <Note tone="warn">It is shown once. Anyone who has it has its rights.</Note>
        <Code label="Token" text={token} wrap />
      </Notice>
    )
  return (
    <FormDialog
      title="New token"
      action="Create token"
      run={async () => {
        const ranges = addresses.split(/[\s,]+/).filter(Boolean)
        const made = await api.createToken(account, {
          ...{ name, scopes, ipRanges: ranges.length > 0 ? ranges : null },
          expiresAt: days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
        })
        setToken(made.token)
        refresh(list)
      }}
      onClose={onClose}
      stay
    >
      <TextField label="Name" value={name} onText={setName} required />
      <SelectField label="Expires" value={days} onText={setDays} options={EXPIRIES} />
      <TextArea
        label="Addresses"
        hint="Addresses or ranges such as 10.0.0.0/8, one in a line. Empty: from anywhere."
        rows={2}
        value={addresses}
        onText={setAddresses}
      />
      <fieldset className="stack">
        <legend className="field-label">Rights</legend>
        {offered.map(({ permission, about }) => (
          <Checkbox
            key={permission}
            label={permission}
            hint={about}
            checked={scopes.includes(permission)}
            onCheck={(on) => setScopes(on ? [...scopes, permission] : scopes.filter((one) => one !== permission))}
          />
        ))}
      </fieldset>
    </FormDialog>
  )
}
