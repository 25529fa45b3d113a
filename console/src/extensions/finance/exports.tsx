// Where usage goes: destinations, how far each is, and why one is paused.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatWhole } from '../../format.ts'
import { save } from '../../pages/csv.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { navigate, useDialogInAddress } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Badge, Card, Facts, Note, Page, Stat, Stats, When } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Export } from '../../wire.ts'
import { FIELDS, KINDS, SettingsFields, settingsOf } from './export-settings.tsx'

const LOOK_MS = 5_000
const HOME = '/operator/finance/exports'
const to = ({ id }: Export) => `${HOME}/${encodeURIComponent(id)}`

export function ExportsPage() {
  const mayWrite = useMay()('exports:write')
  const list = useList('exports', (_, signal) => api.exports(signal), { everyMs: LOOK_MS })
  const [adding, setAdding] = useDialogInAddress('new')
  const [downloading, setDownloading] = useState(false)
  return (
    <Page
      title="Exports"
      lead="Every call as an event or a file in your finance systems. Each destination resumes where it stopped."
      actions={
        <>
          <Button icon="download" onClick={() => setDownloading(true)}>
            FOCUS file
          </Button>
          {mayWrite ? (
            <Button look="primary" icon="plus" onClick={() => setAdding(true)}>
              Add a destination
            </Button>
          ) : null}
        </>
      }
    >
      <TableCard
        label="Exports"
        list={list}
        rowKey={(row) => row.id}
        to={to}
        empty={
          <Empty icon="send" title="Usage is not exported yet">
            <p>Send it to a webhook, OpenMeter, Lago, Stripe’s meters or a bucket.</p>
          </Empty>
        }
        columns={[
          { head: 'Name', main: true, cell: (row) => <Named name={row.name} to={to(row)} sub={KINDS[row.kind]} /> },
          { head: 'State', tight: true, cell: (row) => <StateBadge row={row} /> },
          { head: 'Sent', right: true, cell: (row) => formatWhole(row.sent) },
          { head: 'Waiting', right: true, cell: (row) => waitingWords(row) },
          { head: 'Last sent', tight: true, cell: (row) => (row.sentAt ? <When at={row.sentAt} /> : '–') },
          { head: 'Problem', cell: (row) => (row.error ? <span className="clamp">{row.error}</span> : '–') },
        ]}
      />
      {adding ? <ExportForm onClose={() => setAdding(false)} /> : null}
      {downloading ? <FocusDialog onClose={() => setDownloading(false)} /> : null}
    </Page>
  )
}

/** Counted up to this number. */
const WAITING_MAX = 10_000
const waitingWords = ({ waiting }: Export) => (waiting >= WAITING_MAX ? '10,000 or more' : formatWhole(waiting))

function StateBadge({ row }: { row: Export }) {
  if (row.state === 'running') return <Badge tone="good">Running</Badge>
  if (row.credentialPresent === false) return <Badge tone="bad">Credential missing</Badge>
  if (row.state === 'retrying') return <Badge tone="warn">Retrying</Badge>
  return <Badge tone={row.error ? 'bad' : 'calm'}>{row.error ? 'Paused by its receiver' : 'Paused'}</Badge>
}

/** Makes a destination, or changes one; its kind stays. */
function ExportForm({ given, onClose }: { given?: Export; onClose: () => void }) {
  const [kind, setKind] = useState(given?.kind ?? 'webhook')
  return (
    <FormDialog
      right="exports:write"
      wide
      title={given ? `Change ${given.name}` : 'Add a destination'}
      action={given ? 'Save' : 'Add'}
      run={async (form) => {
        const name = String(form.get('name'))
        const settings = settingsOf(kind, form)
        const made = given
          ? await api.changeExport(given.id, { name, settings })
          : await api.createExport({ name, kind, settings })
        const secret = String(form.get('secret') ?? '')
        if (secret) {
          await api.storeExportCredential(made.id, secret)
          await api.resumeExport(made.id)
        }
        refresh('exports', 'export/')
        navigate(to(made))
      }}
      onClose={onClose}
    >
      <div className="grid-2">
        <TextField
          label="Name"
          name="name"
          defaultValue={given?.name ?? ''}
          required
          pattern={'[a-z0-9][a-z0-9\\-]{0,49}'}
          placeholder="books"
          hint="Lower-case letters, digits and “-”."
        />
        <SelectField
          label="Kind"
          value={kind}
          disabled={given !== undefined}
          onText={(text) => setKind(text as Export['kind'])} // one of the options
          options={Object.entries(KINDS)}
        />
      </div>
      <SettingsFields key={kind} kind={kind} settings={given?.settings ?? {}} />
      {'credential' in FIELDS[kind] ? (
        <TextField
          label="Value of the credential"
          name="secret"
          type="password"
          autoComplete="off"
          hint={
            given?.credentialPresent
              ? 'Stored for this address. Leave empty to keep it.'
              : 'Stored encrypted, for this address only.'
          }
        />
      ) : null}
    </FormDialog>
  )
}

function FocusDialog({ onClose }: { onClose: () => void }) {
  const [days, setDays] = useState({ from: '', to: '' })
  return (
    <FormDialog
      title="FOCUS file"
      action="Download"
      run={() => save(() => api.focusCsv(days), `focus-${days.from}-${days.to}.csv`)}
      onClose={onClose}
    >
      <p>Usage and costs in the columns of FOCUS 1.2, as CSV. It needs what a credit is worth: System → Billing.</p>
      <Days days={days} onDays={setDays} />
    </FormDialog>
  )
}

function Days({
  days,
  onDays,
}: {
  days: { from: string; to: string }
  onDays: (days: { from: string; to: string }) => void
}) {
  return (
    <div className="grid-2">
      <TextField
        label="From (UTC)"
        name="from"
        type="date"
        required
        value={days.from}
        onText={(from) => onDays({ ...days, from })}
      />
      <TextField
        label="To (UTC)"
        name="to"
        type="date"
        required
        value={days.to}
        onText={(end) => onDays({ ...days, to: end })}
      />
    </div>
  )
}

export function ExportPage({ export: id }: { export: string }) {
  const one = useQuery(`export/${id}`, (signal) => api.export(id, signal), { everyMs: LOOK_MS })
  return (
    <Page
      title={one.data?.name ?? 'Export'}
      lead={one.data ? KINDS[one.data.kind] : undefined}
      back={{ to: HOME, label: 'Exports' }}
      actions={one.data ? <Actions row={one.data} /> : null}
    >
      <Loaded query={one}>
        {(row) => (
          <>
            <Problem row={row} />
            <Stats>
              <Stat label="State" value={<StateBadge row={row} />} />
              <Stat label="Sent" value={formatWhole(row.sent)} note="events accepted" />
              <Stat label="Waiting" value={waitingWords(row)} note="calls that are not sent yet" />
              <Stat label="Skipped" value={formatWhole(row.skipped)} note="calls of accounts without a customer" />
            </Stats>
            <Details row={row} />
            {row.kind === 's3' ? null : <Customers row={row} />}
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** What the receiver said, and what helps. */
function Problem({ row }: { row: Export }) {
  if (row.credentialPresent === false)
    return (
      <Note tone="warn">
        The credential {String(row.settings.credential)} is not stored for this address: choose Change and give its
        value.
      </Note>
    )
  if (!row.error) return null
  return (
    <Note tone="warn">
      <b>{row.state === 'paused' ? 'Paused: ' : 'It will be tried again: '}</b>
      {row.error}
      {row.state === 'paused' ? ' Nothing is lost. Correct the cause, then resume.' : null}
    </Note>
  )
}

function Actions({ row }: { row: Export }) {
  const mayWrite = useMay()('exports:write')
  const [open, setOpen] = useState<'change' | 'backfill' | 'remove'>()
  const close = () => setOpen(undefined)
  const reload = () => refresh('exports', `export/${row.id}`)
  const deed = useAction(async (_signal, name: 'pause' | 'resume') => {
    await (name === 'pause' ? api.pauseExport(row.id) : api.resumeExport(row.id))
    reload()
  })
  const testing = useAction(async () => {
    const { ok, error } = await api.testExport(row.id)
    toast(ok ? 'The receiver accepts usage.' : (error ?? 'The receiver does not accept usage.'), { bad: !ok })
  })
  if (!mayWrite) return null
  const error = deed.error ?? testing.error
  const other = row.state === 'paused' ? 'resume' : 'pause'
  return (
    <>
      <Button icon="send" busy={testing.busy} onClick={() => void testing.go()}>
        Test
      </Button>
      <Button
        look={other === 'resume' ? 'primary' : 'plain'}
        {...(other === 'pause' ? { icon: 'stop' as const } : {})}
        busy={deed.busy}
        onClick={() => void deed.go(other)}
      >
        {other === 'resume' ? 'Resume' : 'Pause'}
      </Button>
      <Button icon="history" onClick={() => setOpen('backfill')}>
        Backfill
      </Button>
      <Button icon="sliders" onClick={() => setOpen('change')}>
        Change
      </Button>
      <Button icon="trash" onClick={() => setOpen('remove')}>
        Remove
      </Button>
      {error ? <Fault error={error} /> : null}
      {open === 'change' ? <ExportForm given={row} onClose={close} /> : null}
      {open === 'backfill' ? <BackfillForm row={row} onClose={close} /> : null}
      {open === 'remove' ? (
        <Confirm
          title="Remove this destination?"
          action="Remove"
          danger
          run={async () => {
            await api.removeExport(row.id)
            refresh('exports')
            navigate(HOME)
          }}
          onClose={close}
        >
          <p>
            Nothing is sent to <b>{row.name}</b> any more, and its cursor is deleted. The receiver keeps what it has.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

function BackfillForm({ row, onClose }: { row: Export; onClose: () => void }) {
  const [days, setDays] = useState({ from: '', to: '' })
  return (
    <FormDialog
      title={`Backfill ${row.name}`}
      action="Send"
      run={async () => {
        await api.backfillExport(row.id, days)
        refresh('exports', `export/${row.id}`)
        toast('The calls of these days are being sent.')
      }}
      onClose={onClose}
    >
      <p>
        Sends the calls that began on these days, also those from before the destination existed, in addition to new
        calls. A call that the receiver already has is sent with the same id.
      </p>
      <Days days={days} onDays={setDays} />
    </FormDialog>
  )
}

function Details({ row }: { row: Export }) {
  const { backfill, settings, nextAttemptAt } = row
  return (
    <Card title="Details">
      <Facts
        items={[
          ...Object.entries(settings).map(
            ([name, value]) => [FIELDS[row.kind][name]?.label ?? name, String(value)] as const,
          ),
          ...(row.status === null ? [] : [['Last status', String(row.status)] as const]),
          ...(nextAttemptAt ? [['Next attempt', <When key="next" at={nextAttemptAt} />] as const] : []),
          ...(row.pausedAt ? [['Paused', <When key="paused" at={row.pausedAt} />] as const] : []),
          ['Last sent', row.sentAt ? <When key="sent" at={row.sentAt} /> : 'nothing yet'] as const,
          ['Created', <When key="created" at={row.createdAt} />] as const,
          ...(backfill
            ? [
                [
                  'Backfill',
                  `${backfill.from.slice(0, 10)} to ${backfill.to.slice(0, 10)}: ${formatWhole(backfill.sent)} sent`,
                ] as const,
              ]
            : []),
        ]}
      />
    </Card>
  )
}

/** By which names the destination knows accounts. */
function Customers({ row }: { row: Export }) {
  const mayWrite = useMay()('exports:write')
  const [naming, setNaming] = useState(false)
  const key = `export/${row.id}/customers`
  const list = useList(key, (cursor, signal) => api.exportCustomers(row.id, { cursor, limit: 50 }, signal))
  const taking = useAction(async (_signal, account: string) => {
    await api.nameExportCustomer(row.id, account, null)
    refresh(key)
  })
  return (
    <>
      <TableCard
        title="Customers"
        lead={
          row.kind === 'stripe'
            ? 'Stripe gets the calls of these accounts only.'
            : 'The destination gets the ids of accounts, unless you give them other names.'
        }
        label="Customers"
        list={list}
        rowKey={({ account }) => account}
        empty={<Empty icon="accounts" title="No account has another name" />}
        columns={[
          {
            head: 'Account',
            main: true,
            cell: ({ account }) => <Named name={account} to={`/operator/accounts/${encodeURIComponent(account)}`} />,
          },
          { head: 'Name there', cell: ({ customer }) => <code>{customer}</code> },
          mayWrite && {
            head: 'Actions',
            tight: true,
            cell: ({ account }) => (
              <Button small icon="trash" onClick={() => void taking.go(account)}>
                Take away
              </Button>
            ),
          },
        ]}
      />
      {taking.error ? <Fault error={taking.error} /> : null}
      {mayWrite ? (
        <div>
          <Button icon="plus" onClick={() => setNaming(true)}>
            Name a customer
          </Button>
        </div>
      ) : null}
      {naming ? (
        <FormDialog
          title="Name a customer"
          action="Save"
          run={async (form) => {
            await api.nameExportCustomer(row.id, String(form.get('account')), String(form.get('customer')))
            refresh(key)
          }}
          onClose={() => setNaming(false)}
        >
          <TextField label="Account" name="account" required placeholder="acc_…" />
          <TextField label="Name there" name="customer" required placeholder={row.kind === 'stripe' ? 'cus_…' : ''} />
        </FormDialog>
      ) : null}
    </>
  )
}
