// One purse: its balance, its month, its calls and top-ups, and what may be done with it.
import { useState } from 'react'
import { parseCredits } from '../../credits.ts'
import { plural } from '../../format.ts'
import { BillingDetailsCard } from '../../pages/billing-details.tsx'
import { CsvButton } from '../../pages/csv.tsx'
import { MonthField, monthsSince } from '../../pages/month-field.tsx'
import { refresh, useList, useQuery } from '../../query.ts'

import { Link, useLocation } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Confirm, FormDialog, Notice } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { Ago, Amount, Badge, Balance, Card, Facts, Page, Stat, Stats, When } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/state.tsx'
import { Table, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Purse, PurseMovement, PurseSession } from '../../wire.ts'
import { pursesApi } from './api.ts'
import { PurseInvoices, TopUps } from './payments.tsx'
import { AMOUNT_FAULT, PurseStatus } from './purses.tsx'

interface Of {
  readonly account: string
  readonly purse: Purse
}

export function PursePage({ account, purse: id }: { account: string; purse: string }) {
  const purse = useQuery(`purses/${account}/one/${id}`, (signal) => pursesApi.one(account, id, signal))
  return (
    <Page
      title={purse.data?.name || id}
      lead={<code>{id}</code>}
      back={{ to: `/a/${encodeURIComponent(account)}/purses`, label: 'Purses' }}
      actions={purse.data ? <Actions account={account} purse={purse.data} /> : null}
    >
      <Loaded query={purse}>
        {(data) => (
          <>
            <Balance of={data} />
            <Stats>
              <Stat label="Status" value={<PurseStatus status={data.status} />} />
              <Stat label="Low below" value={data.low === null ? '–' : <Amount value={data.low} />} />
            </Stats>
            <Month account={account} purse={data} />
            <TopUps account={account} purse={id} />
            <Invoiced account={account} purse={data} />
            <Sessions account={account} purse={data} />
            <Movements account={account} purse={data} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** Nothing, while the account issues no invoices and has issued none. */
function Invoiced({ account, purse: { id } }: Of) {
  const may = useMay()
  const settings = useQuery(may('purse-payments:read', account) ? `purse-payments/${account}` : undefined, (signal) =>
    pursesApi.payments(account, signal),
  )
  const name = `purses/${account}/billing/${id}`
  const details = useQuery(settings.data?.issuer ? name : undefined, (signal) => pursesApi.billing(account, id, signal))
  if (!settings.data?.issuer) return null
  const save = async (given: object) => {
    await pursesApi.changeBilling(account, id, given)
    refresh(name)
  }
  return (
    <>
      <PurseInvoices account={account} purse={id} />
      <Loaded query={details}>
        {(data) => (
          <BillingDetailsCard
            key={JSON.stringify(data)}
            details={data}
            lead="The recipient of invoices. Issued invoices do not change."
            mayChange={may('budgets:write', account)}
            save={save}
          />
        )}
      </Loaded>
    </>
  )
}

type Open = 'grant' | 'take' | 'session' | 'page' | 'frozen' | 'open' | 'closed'

function Actions({ account, purse }: Of) {
  const [open, setOpen] = useState<Open>()
  const onClose = () => setOpen(undefined)
  const isClosed = purse.status === 'closed'
  const items: MenuItem[] = [
    { label: 'Take credits back', icon: 'statement', run: () => setOpen('take') },
    ...(isClosed
      ? []
      : [
          { label: 'Link for the customer', icon: 'external', run: () => setOpen('page') } as const,
          purse.status === 'open'
            ? ({ label: 'Session token', icon: 'key', run: () => setOpen('session') } as const)
            : ({ label: 'Unfreeze', icon: 'play', run: () => setOpen('open') } as const),
          ...(purse.status === 'open'
            ? [{ label: 'Freeze', icon: 'sliders', run: () => setOpen('frozen') } as const]
            : []),
          { label: 'Close', icon: 'trash', danger: true, run: () => setOpen('closed') } as const,
        ]),
  ]
  const of = { account, purse, onClose }
  return (
    <>
      <Button
        right="budgets:write"
        account={account}
        look="primary"
        icon="plus"
        disabled={isClosed}
        onClick={() => setOpen('grant')}
      >
        Put credits in
      </Button>
      <Menu right="budgets:write" account={account} label={`Actions for ${purse.id}`} items={items} />
      {open === 'grant' || open === 'take' ? <Granting {...of} takes={open === 'take'} /> : null}
      {open === 'session' ? <NewSession {...of} /> : null}
      {open === 'page' ? <PageLink {...of} /> : null}
      {open === 'frozen' || open === 'open' || open === 'closed' ? <Status {...of} next={open} /> : null}
    </>
  )
}

function Granting({ account, purse, takes, onClose }: Of & { takes: boolean; onClose: () => void }) {
  const [credits, setCredits] = useState('')
  const [kind, setKind] = useState('topup')
  const [reference, setReference] = useState('')
  const [note, setNote] = useState('')
  const run = async () => {
    const amount = credits.trim()
    await pursesApi.grant(account, purse.id, {
      ...(takes ? { credits: `-${amount}` } : { credits: amount, kind }),
      ...(reference.trim() ? { reference: reference.trim() } : {}),
      ...(note.trim() ? { note: note.trim() } : {}),
    })
    toast(takes ? `${amount} credits were taken back.` : `${amount} credits were put in.`)
    refresh(`purses/${account}`)
  }
  return (
    <FormDialog
      title={takes ? 'Take credits back' : 'Put credits in'}
      action={takes ? 'Take back' : 'Put in'}
      run={run}
      onClose={onClose}
    >
      <TextField
        label="Credits"
        value={credits}
        onText={setCredits}
        inputMode="decimal"
        fault={credits.trim() && (parseCredits(credits) ?? 0n) <= 0n ? AMOUNT_FAULT : undefined}
        required
      />
      {takes ? null : (
        <SelectField
          label="Why"
          value={kind}
          onText={setKind}
          options={[
            ['topup', 'The customer paid for them'],
            ['grant', 'A gift'],
          ]}
        />
      )}
      <TextField
        label="Reference"
        value={reference}
        onText={setReference}
        maxLength={100}
        hint="Such as the number of your invoice. The same reference is used once"
      />
      <TextField label="Note" value={note} onText={setNote} maxLength={200} />
    </FormDialog>
  )
}

const WORDS = {
  frozen: ['Freeze this purse?', 'Freeze', 'Its calls and session tokens are rejected from now on. Its credits stay.'],
  open: ['Unfreeze this purse?', 'Unfreeze', 'Its calls are served again.'],
  closed: [
    'Close this purse for good?',
    'Close',
    'What no call holds is taken out of it, and it takes no more credits.',
  ],
} as const

function Status({ account, purse, next, onClose }: Of & { next: keyof typeof WORDS; onClose: () => void }) {
  const [title, action, what] = WORDS[next]
  const run = async () => {
    await pursesApi.change(account, purse.id, { status: next })
    toast(`The purse is ${next}.`)
    refresh(`purses/${account}`)
  }
  return (
    <Confirm title={title} action={action} danger={next === 'closed'} run={run} onClose={onClose}>
      <p>{what}</p>
    </Confirm>
  )
}

function NewSession({ account, purse, onClose }: Of & { onClose: () => void }) {
  const [minutes, setMinutes] = useState('60')
  const [models, setModels] = useState('')
  const [origins, setOrigins] = useState('')
  const [callMax, setCallMax] = useState('')
  const [token, setToken] = useState<string>()
  const listed = (text: string) => {
    const all = text.split(/[\s,]+/).filter(Boolean)
    return all.length === 0 ? null : all
  }
  const run = async () => {
    const bounds = { models: listed(models), origins: listed(origins), callMax: callMax.trim() || null }
    const made = await pursesApi.session(account, purse.id, { seconds: Math.round(Number(minutes) * 60), ...bounds })
    setToken(made.token)
    refresh(`purses/${account}/sessions`)
  }
  if (token !== undefined)
    return (
      <Notice title="Session token" onClose={onClose}>
        <p>It is shown once. Send it like a key; it pays from this purse only.</p>
        <Code label="Session token" text={token} wrap />
      </Notice>
    )
  return (
    <FormDialog title="New session token" action="Create" run={run} onClose={onClose} stay>
      <div className="grid-2">
        <TextField label="Minutes" value={minutes} onText={setMinutes} inputMode="decimal" required />
        <TextField label="Most that one call may cost" value={callMax} onText={setCallMax} inputMode="decimal" />
      </div>
      <TextField label="Only these models" value={models} onText={setModels} mono hint="Leave empty for all." />
      <TextField
        label="Sites whose pages may use it"
        value={origins}
        onText={setOrigins}
        mono
        hint="Leave empty for none."
      />
    </FormDialog>
  )
}

function Sessions({ account, purse: { id } }: Of) {
  const [ending, setEnding] = useState<PurseSession>()
  const name = `purses/${account}/sessions/${id}`
  const list = useList(name, (cursor, signal) =>
    pursesApi.sessions(account, id, { limit: 50, ...(cursor ? { cursor } : {}) }, signal),
  )
  const may = useMay()('budgets:write', account)
  if (!list.data?.length && !list.error) return null
  const end = async () => {
    if (ending) await pursesApi.endSession(account, id, ending.id)
    toast('The token does not work any more.')
    refresh(name)
  }
  return (
    <>
      <TableCard
        title="Session tokens"
        label="Session tokens"
        list={list}
        rowKey={(row) => row.id}
        columns={[
          { head: 'Token', main: true, cell: ({ prefix }) => <code>{prefix}…</code> },
          {
            head: 'Most for one call',
            right: true,
            cell: ({ callMax }) => (callMax ? <Amount value={callMax} /> : '–'),
          },
          { head: 'Expires', tight: true, cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
          {
            head: 'Actions',
            tight: true,
            cell: (row) =>
              row.revokedAt ? (
                <Badge>revoked</Badge>
              ) : may ? (
                <Button small icon="trash" onClick={() => setEnding(row)}>
                  Revoke
                </Button>
              ) : null,
          },
        ]}
      />
      {ending ? (
        <Confirm title="Revoke this token?" action="Revoke" danger run={end} onClose={() => setEnding(undefined)}>
          <p>Calls with it are rejected within two seconds.</p>
        </Confirm>
      ) : null}
    </>
  )
}

function PageLink({ account, purse, onClose }: Of & { onClose: () => void }) {
  const [url, setUrl] = useState<string>()
  const run = async () => setUrl((await pursesApi.page(account, purse.id)).url)
  if (url !== undefined)
    return (
      <Notice title="Link for the customer" onClose={onClose}>
        <p>It is good for an hour, for this purse alone: its balance, its latest changes, and paying into it.</p>
        <Code label="Link for the customer" text={url} wrap />
      </Notice>
    )
  return (
    <Confirm title="Create a link for this customer?" action="Create link" run={run} onClose={onClose} stay>
      <p>It opens a page with your brand, on which the customer sees the balance and tops up.</p>
    </Confirm>
  )
}

function Month({ account, purse }: Of) {
  const months = monthsSince(purse.createdAt)
  const month = useLocation().query.get('month') ?? months[0] ?? ''
  const statement = useQuery(`purses/${account}/month/${purse.id}/${month}`, (signal) =>
    pursesApi.statement(account, purse.id, month, signal),
  )
  return (
    <Card title="Statement" actions={<MonthField months={months} month={month} />}>
      <Loaded query={statement}>
        {(data) => (
          <>
            <Facts
              items={[
                ['Opening balance', <Amount key="o" value={data.opening} exact />],
                ['Put in', <Amount key="g" value={data.granted} exact />],
                ['Taken back', <Amount key="t" value={data.takenBack} exact />],
                ['Spent', <Amount key="s" value={data.spent} exact />],
                ['Closing balance', <Amount key="c" value={data.closing} exact />],
              ]}
            />
            {data.lines.length === 0 ? null : (
              <Table
                label="By model"
                rows={data.lines}
                rowKey={({ product, list }) => `${product} ${list}`}
                columns={[
                  { head: 'Model', main: true, cell: ({ product }) => product },
                  { head: 'Price list', tight: true, cell: ({ list }) => (list === 0 ? 'None' : `Version ${list}`) },
                  { head: 'Calls', right: true, cell: ({ calls }) => plural(calls, 'call') },
                  { head: 'Spent', right: true, cell: ({ spent }) => <Amount value={spent} exact /> },
                ]}
              />
            )}
          </>
        )}
      </Loaded>
    </Card>
  )
}

const KIND_WORDS: Readonly<Record<PurseMovement['kind'], string>> = {
  grant: 'Put in',
  topup: 'Top-up',
  takeback: 'Taken back',
  settled: 'Call',
  released: 'Call, not charged',
  expired: 'Call, ended by a crash',
  empty: 'Too little left',
  frozen: 'Frozen',
  reopened: 'Unfrozen',
  closed: 'Closed',
}

function Movements({ account, purse: { id } }: Of) {
  const list = useList(`purses/${account}/moves/${id}`, (cursor, signal) =>
    pursesApi.movements(account, id, { limit: 50, ...(cursor ? { cursor } : {}) }, signal),
  )
  return (
    <TableCard
      title="Calls and top-ups"
      label="Calls and top-ups"
      actions={<CsvButton fetchIt={() => pursesApi.movementsCsv(account, id)} name={`purse ${id}.csv`} />}
      list={list}
      rowKey={(row) => row.id}
      empty={
        <Empty icon="statement" title="Nothing has moved yet">
          <p>Put credits in, and name this purse in a call.</p>
        </Empty>
      }
      columns={[
        { head: 'When', tight: true, cell: ({ at }) => <When at={at} /> },
        { head: 'What', main: true, cell: (row) => <What account={account} row={row} /> },
        { head: 'Moved', right: true, cell: ({ moved }) => <Amount value={moved} exact sign /> },
        { head: 'You paid', right: true, wideOnly: true, cell: ({ charged }) => <Amount value={charged} exact /> },
        { head: 'Balance', right: true, cell: ({ balanceAfter }) => <Amount value={balanceAfter} exact /> },
      ]}
    />
  )
}

function What({
  account,
  row: { kind, product, requestId, reference, note },
}: {
  account: string
  row: PurseMovement
}) {
  const words = [KIND_WORDS[kind], product, reference, note].filter(Boolean).join(' · ')
  if (requestId === null) return words
  return <Link to={`/a/${encodeURIComponent(account)}/usage/${encodeURIComponent(requestId)}`}>{words}</Link>
}
