import { useState } from 'react'
import { api } from '../api.ts'
import { type List, refresh, useList, useQuery } from '../query.ts'
import { setQuery, useLocation } from '../router.tsx'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Menu } from '../ui/menu.tsx'
import { Ago, Amount, Badge, Page, useNow } from '../ui/page.tsx'
import { Empty, Fault } from '../ui/state.tsx'
import { Named, TableCard } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { Key, NewKey } from '../wire.ts'
import { AgentKeyForm } from './agent-key.tsx'
import { ByokKeysCard } from './byok-keys.tsx'
import { figureColumns, useKeyFigures } from './key-figures.tsx'
import { KeyForm } from './key-form.tsx'
import { NewKeyDialog } from './new-key.tsx'

export function KeysPage({ account }: { account: string }) {
  const { query } = useLocation()
  const creating = query.get('new')
  return (
    <Page
      title="Keys"
      lead="A key lets a program spend this account’s credits. Its value is shown once, when it is created."
      actions={
        <>
          <Button right="keys:write" account={account} icon="plus" onClick={() => setQuery({ new: 'agent' })}>
            Key for an agent
          </Button>
          <Button
            right="keys:write"
            account={account}
            look="primary"
            icon="plus"
            onClick={() => setQuery({ new: '1' })}
          >
            Create key
          </Button>
        </>
      }
    >
      <KeysPanel
        account={account}
        creating={creating !== null}
        agent={creating === 'agent'}
        onCreating={(on) => setQuery({ new: on ? '1' : undefined })}
      />
    </Page>
  )
}

export type Ask = { about: 'revoke' | 'rotate' | 'edit'; key: Key }

export function KeysPanel({
  account,
  creating,
  agent = false,
  onCreating,
}: {
  account: string
  creating: boolean
  agent?: boolean
  onCreating: (on: boolean) => void
}) {
  const keys = useList(`keys/${account}`, (cursor, signal) => api.keys(account, { cursor }, signal))
  const [made, setMade] = useState<NewKey>()
  const [ask, setAsk] = useState<Ask>()
  const reload = () => refresh(`keys/${account}`)
  const Form = agent ? AgentKeyForm : KeyForm
  const onMade = (key: NewKey) => {
    setMade(key)
    onCreating(false)
    setAsk(undefined)
    reload()
  }
  return (
    <>
      {keys.data?.some((key) => key.test) ? <TestBalance account={account} /> : null}
      <KeyTable account={account} list={keys} onAsk={setAsk} onCreate={() => onCreating(true)} />
      <ByokKeysCard account={account} />
      {creating ? <Form account={account} onClose={() => onCreating(false)} onMade={onMade} /> : null}
      {made ? <NewKeyDialog made={made} onClose={() => setMade(undefined)} /> : null}
      <KeyAsked account={account} ask={ask} onMade={onMade} onDone={() => setAsk(undefined)} />
    </>
  )
}

/** The dialog of an action. */
export function KeyAsked(props: {
  account: string
  ask: Ask | undefined
  onMade: (made: NewKey) => void
  onDone: () => void
}) {
  const { account, ask, onMade, onDone } = props
  const reload = () => refresh(`keys/${account}`)
  if (ask === undefined) return null
  return (
    <>
      {ask.about === 'edit' || ask.about === 'rotate' ? (
        <KeyForm
          account={account}
          edit={ask.key}
          rotate={ask.about === 'rotate'}
          onClose={onDone}
          onMade={onMade}
          onSaved={() => {
            onDone()
            toast('The key was changed.')
            reload()
          }}
        />
      ) : null}
      {ask.about === 'revoke' ? (
        <Confirm
          title={ask.key.revokedAt ? 'End this key now?' : 'Revoke this key?'}
          action={ask.key.revokedAt ? 'End now' : 'Revoke'}
          danger
          run={async () => {
            await api.revokeKey(ask.key.id)
            toast(`“${ask.key.name}” is revoked.`)
            reload()
          }}
          onClose={onDone}
        >
          <p>
            Programs that use <b>{ask.key.name}</b>{' '}
            <code>
              {ask.key.prefix}…{ask.key.last4}
            </code>{' '}
            are refused at once. This cannot be undone.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

export function KeyActions({ account, row, onAsk }: { account: string; row: Key; onAsk: (ask: Ask) => void }) {
  const needs = { right: 'keys:write', account } as const
  const item = (about: Ask['about'], label: string, icon: 'edit' | 'refresh' | 'trash') => ({
    label,
    icon,
    danger: about === 'revoke',
    run: () => onAsk({ about, key: row }),
  })
  if (isPast(row.revokedAt, Date.now())) return null
  if (row.revokedAt)
    return (
      <Button {...needs} small icon="stop" onClick={() => onAsk({ about: 'revoke', key: row })}>
        End now
      </Button>
    )
  return (
    <Menu
      {...needs}
      label={`Actions for ${row.name}`}
      items={[
        item('edit', 'Edit', 'edit'),
        // The tokens of a connection renew themselves.
        ...(row.client === null ? [item('rotate', 'Rotate', 'refresh')] : []),
        item('revoke', 'Revoke', 'trash'),
      ]}
    />
  )
}

/** What the account's test keys have left: credits that nobody pays for. */
function TestBalance({ account }: { account: string }) {
  const name = `test-balance/${account}`
  const balance = useQuery(name, (signal) => api.testBalance(account, signal))
  const { busy, error, go } = useAction(async () => {
    const { available } = await api.refillTest(account)
    refresh(name)
    toast(`The test keys have ${available} credits.`)
  })
  return (
    <div className="filters" data-testid="test-balance">
      <span>Test balance: {balance.data ? <Amount value={balance.data.available} unit /> : '…'}</span>
      <Button right="test-balance:write" account={account} icon="refresh" small busy={busy} onClick={() => void go()}>
        Refill
      </Button>
      {error ? <Fault error={error} /> : null}
    </div>
  )
}

function KeyTable(props: { account: string; list: List<Key>; onAsk: (ask: Ask) => void; onCreate: () => void }) {
  const { account, list, onAsk, onCreate } = props
  const figures = useKeyFigures(account)
  const now = Math.max(useNow(), Date.now())
  const over = (key: Key) => isPast(key.revokedAt, now) || isPast(key.expiresAt, now)
  return (
    <TableCard
      label="Keys"
      list={list}
      rowKey={(key) => key.id}
      dim={over}
      empty={
        <Empty
          icon="key"
          title="No keys yet"
          action={
            <Button right="keys:write" account={account} look="primary" icon="plus" onClick={onCreate}>
              Create the first key
            </Button>
          }
        >
          <p>Programs send a key with every request. One key per program makes it easy to revoke just that one.</p>
        </Empty>
      }
      columns={[
        {
          head: 'Name',
          main: true,
          cell: (key) => (
            <Named
              name={key.name}
              to={`/a/${encodeURIComponent(account)}/keys/${encodeURIComponent(key.id)}`}
              sub={key.client === null ? `${key.prefix}…${key.last4}` : 'connected by OAuth'}
            />
          ),
        },
        {
          head: 'State',
          cell: (key) => (
            <span className="badges">
              {key.test ? <Badge>Test</Badge> : null}
              <KeyState row={key} now={now} />
            </span>
          ),
          tight: true,
        },
        ...figureColumns(account, figures, restrictionsOf),
        {
          head: 'Last used',
          cell: (key) => (
            <>
              <Ago at={key.lastUsedAt} none="Never" />
              <span className="cell-sub">
                created <Ago at={key.createdAt} />
              </span>
            </>
          ),
          tight: true,
        },
        { head: 'Actions', cell: (key) => <KeyActions account={account} row={key} onAsk={onAsk} /> },
      ]}
    />
  )
}

/** The server's clock may be ahead of the browser's: what it has just ended is over. */
const CLOCKS_DIFFER_MS = 5000
const isPast = (at: string | null, now: number) => at !== null && Date.parse(at) <= now + CLOCKS_DIFFER_MS

export function KeyState({ row, now }: { row: Key; now: number }) {
  if (isPast(row.revokedAt, now)) return <Badge tone="bad">{row.replacedBy ? 'Replaced' : 'Revoked'}</Badge>
  if (isPast(row.expiresAt, now)) return <Badge tone="warn">Expired</Badge>
  // A replaced key answers until the overlap is over.
  const end = row.revokedAt ?? row.expiresAt
  return (
    <span className="badges">
      {row.revokedAt ? <Badge tone="warn">Being replaced</Badge> : <Badge tone="good">Active</Badge>}
      {end ? (
        <Badge>
          ends <Ago at={end} />
        </Badge>
      ) : null}
    </span>
  )
}

/** Beside its limits, which are shown with how much of them is used. */
export function restrictionsOf(row: Key): string[] {
  return [
    row.models ? (row.models.length === 1 ? row.models[0] : `${row.models.length} models`) : '',
    row.endpoints
      ? row.endpoints.length === 1
        ? `${row.endpoints[0]} endpoint`
        : `${row.endpoints.length} endpoints`
      : '',
    row.ipRanges?.length ? `${row.ipRanges.length === 1 ? row.ipRanges[0] : `${row.ipRanges.length} IP ranges`}` : '',
    row.responseCache === null ? '' : `response cache ${row.responseCache ? 'on' : 'off'}`,
  ].flatMap((part) => part || [])
}
