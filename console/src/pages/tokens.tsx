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
import { SearchField, SelectField, TextArea, TextField } from '../ui/field.tsx'
import { Ago, Badge, Note, Page } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { Table, TableCard } from '../ui/table.tsx'
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
      wide
      action="Create token"
      disabled={scopes.length === 0}
      run={async () => {
        const ranges = addresses.split(/[\s,]+/).filter(Boolean)
        const made = await api.createToken(account, {
          name,
          scopes,
          ipRanges: ranges.length > 0 ? ranges : null,
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
        hint="Addresses or ranges such as 10.0.0.0/8, one per line. Leave empty for anywhere."
        rows={2}
        value={addresses}
        onText={setAddresses}
      />
      <Rights offered={offered} scopes={scopes} onScopes={setScopes} />
    </FormDialog>
  )
}

type Right = (typeof RIGHTS)[number]

const resourceOf = ({ permission }: Pick<Right, 'permission'>) => permission.split(':')[0] ?? ''
const isRead = ({ permission }: Pick<Right, 'permission'>) => permission.endsWith(':read')

const BILLING = /^(billing|billing-details|invoices|payments|purchases|plans?|statements|margins|usage|ledger|exports)$/
const DEPLOY = /^(catalog|vendors|vendor-credentials|limits)$/

/** What a program usually needs: a choice to begin with. */
const PRESETS: readonly { label: string; takes: (right: Right) => boolean }[] = [
  { label: 'Read only', takes: isRead },
  { label: 'Billing', takes: (right) => isRead(right) && BILLING.test(resourceOf(right)) },
  { label: 'Deploy', takes: (right) => DEPLOY.test(resourceOf(right)) },
  { label: 'None', takes: () => false },
]

interface RightsProps {
  offered: readonly Right[]
  scopes: readonly Permission[]
  onScopes: (scopes: readonly Permission[]) => void
}

/** None, read, or write for each resource; who writes may read as well. */
function Rights({ offered, scopes, onScopes }: RightsProps) {
  const [text, setText] = useState('')
  const sought = text.trim().toLowerCase()
  const resources = [...Map.groupBy(offered, resourceOf)].filter(([name, [one]]) =>
    `${name} ${one?.about}`.toLowerCase().includes(sought),
  )
  const choices = PRESETS.map(({ label, takes }) => ({ label, of: offered.filter(takes) })).filter(
    ({ label, of }) => label === 'None' || of.length > 0,
  )
  return (
    <fieldset className="stack">
      <legend className="field-label">Rights</legend>
      <div className="row">
        {choices.map(({ label, of }) => (
          <Button key={label} small onClick={() => onScopes(of.map(({ permission }) => permission))}>
            {label}
          </Button>
        ))}
      </div>
      <SearchField label="Search rights" text={text} onText={setText} />
      <Table
        label="Rights"
        rows={resources}
        rowKey={([name]) => name}
        columns={[
          {
            head: 'Resource',
            main: true,
            cell: ([name, [one]]) => (
              <>
                <b>{name}</b>
                <span className="cell-sub">{one?.about}</span>
              </>
            ),
          },
          ...(['None', 'Read', 'Write'] as const).map((level) => ({
            head: level,
            tight: true,
            cell: ([name, rights]: (typeof resources)[number]) => (
              <Level name={name} rights={rights} level={level} scopes={scopes} onScopes={onScopes} />
            ),
          })),
        ]}
      />
    </fieldset>
  )
}

function Level(props: Omit<RightsProps, 'offered'> & { name: string; rights: readonly Right[]; level: string }) {
  const { name, rights, level, scopes, onScopes } = props
  const [read, write] = [rights.filter(isRead), rights.filter((right) => !isRead(right))]
  if ((level === 'Read' && read.length === 0) || (level === 'Write' && write.length === 0)) return null
  const wanted = level === 'None' ? [] : level === 'Read' ? read : rights
  const has = (right: Right) => scopes.includes(right.permission)
  const now = write.some(has) ? 'Write' : read.some(has) ? 'Read' : 'None'
  return (
    <input
      type="radio"
      aria-label={`${level}: ${name}`}
      name={`right-${name}`}
      checked={now === level}
      onChange={() =>
        onScopes([
          ...scopes.filter((one) => !rights.some(({ permission }) => permission === one)),
          ...wanted.map(({ permission }) => permission),
        ])
      }
    />
  )
}
