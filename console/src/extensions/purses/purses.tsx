// Purses of an account's customers: who they are, what they have, and where the account is told of them.
import { useDeferredValue, useState } from 'react'
import { parseCredits } from '../../credits.ts'
import { CsvButton, csvName } from '../../pages/csv.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { navigate, useDialogInAddress } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { Checkbox, SearchField, TextField } from '../../ui/field.tsx'
import { Ago, Amount, Badge, Page } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Purse, PurseEvents } from '../../wire.ts'
import { pursesApi } from './api.ts'

const TONES = { open: 'good', frozen: 'warn', closed: 'calm' } as const

export const PurseStatus = ({ status }: Pick<Purse, 'status'>) => <Badge tone={TONES[status]}>{status}</Badge>

export const purseAt = (account: string, purse: string) =>
  `/a/${encodeURIComponent(account)}/purses/${encodeURIComponent(purse)}`

export function PursesPage({ account }: { account: string }) {
  const [text, setText] = useState('')
  const search = useDeferredValue(text.trim())
  const [creating, setCreating] = useDialogInAddress('create')
  const [telling, setTelling] = useState(false)
  const list = useList(`purses/${account}/${search}`, (cursor, signal) =>
    pursesApi.list(account, { limit: 50, ...(search ? { search } : {}), ...(cursor ? { cursor } : {}) }, signal),
  )
  return (
    <Page
      title="Purses"
      lead="Credits of your own customers. A call that names a purse is charged to it at your prices, and to this account."
      actions={
        <>
          <Button right="budgets:write" account={account} icon="bell" onClick={() => setTelling(true)}>
            Events
          </Button>
          <CsvButton fetchIt={() => pursesApi.listCsv(account)} name={() => csvName('purses', account)} />
          <Button right="budgets:write" account={account} look="primary" icon="plus" onClick={() => setCreating(true)}>
            New purse
          </Button>
        </>
      }
    >
      <SearchField label="Search purses" text={text} onText={setText} />
      <TableCard
        label="Purses"
        list={list}
        rowKey={({ id }) => id}
        to={({ id }) => purseAt(account, id)}
        empty={
          <Empty icon="accounts" title={search ? 'No purse found' : 'No purses yet'}>
            <p>
              {search ? 'Try another word.' : 'Create one for each of your customers, here or with POST /v1/purses.'}
            </p>
          </Empty>
        }
        columns={[
          {
            head: 'Customer',
            main: true,
            cell: ({ id, name }) => <Named to={purseAt(account, id)} name={name || id} sub={name ? id : null} />,
          },
          { head: 'Status', tight: true, cell: PurseStatus },
          { head: 'Available', right: true, cell: ({ available }) => <Amount value={available} /> },
          { head: 'Held', right: true, cell: ({ held }) => <Amount value={held} /> },
          { head: 'Last change', tight: true, cell: ({ movedAt }) => <Ago at={movedAt} none="Never" /> },
        ]}
      />
      {creating ? <NewPurse account={account} onClose={() => setCreating(false)} /> : null}
      {telling ? <Events account={account} onClose={() => setTelling(false)} /> : null}
    </Page>
  )
}

interface DialogProps {
  readonly account: string
  readonly onClose: () => void
}

const isWrong = (text: string) => text.trim() !== '' && (parseCredits(text) ?? -1n) < 0n
export const AMOUNT_FAULT = 'An amount such as 100 or 2.5.'

function NewPurse({ account, onClose }: DialogProps) {
  const [id, setId] = useState('')
  const [name, setName] = useState('')
  const [credits, setCredits] = useState('')
  const [low, setLow] = useState('')
  const run = async () => {
    const amounts = { ...(credits.trim() ? { credits: credits.trim() } : {}), low: low.trim() || null }
    const made = await pursesApi.create(account, { id: id.trim(), name: name.trim(), ...amounts })
    toast(`The purse of ${made.name || made.id} is ready.`)
    refresh(`purses/${account}`)
    navigate(purseAt(account, made.id))
  }
  return (
    <FormDialog title="Create a purse" action="Create purse" run={run} onClose={onClose}>
      <TextField
        label="Your name of the customer"
        value={id}
        onText={setId}
        maxLength={64}
        mono
        required
        hint="Letters, digits and _ + -. Calls name it in x-tollgate-purse"
      />
      <TextField label="For people" value={name} onText={setName} maxLength={100} />
      <div className="grid-2">
        <TextField
          label="Credits to start with"
          value={credits}
          onText={setCredits}
          inputMode="decimal"
          placeholder="0"
          fault={isWrong(credits) ? AMOUNT_FAULT : undefined}
        />
        <TextField
          label="Low below"
          value={low}
          onText={setLow}
          inputMode="decimal"
          hint="You are told then"
          fault={isWrong(low) ? AMOUNT_FAULT : undefined}
        />
      </div>
    </FormDialog>
  )
}

function Events({ account, onClose }: DialogProps) {
  const key = `purse-events/${account}`
  const { data } = useQuery(key, (signal) => pursesApi.events(account, signal))
  return data ? <EventsForm key={data.url ?? ''} account={account} given={data} onClose={onClose} /> : null
}

function EventsForm({ account, given, onClose }: DialogProps & { given: PurseEvents }) {
  const [url, setUrl] = useState(given.url ?? '')
  const [settled, setSettled] = useState(given.settled)
  const run = async () => {
    await pursesApi.setEvents(account, { url: url.trim() || null, settled })
    toast(url.trim() ? 'Events are sent there from now on.' : 'Nobody is told any more.')
    refresh(`purse-events/${account}`)
  }
  return (
    <FormDialog title="Events of purses" action="Save" run={run} onClose={onClose}>
      <TextField
        label="Address"
        value={url}
        onText={setUrl}
        mono
        hint="Gets signed webhooks when a purse is low, empty or topped up. Leave empty to tell nobody"
      />
      <Checkbox label="Also each call that was settled" checked={settled} onCheck={setSettled} />
    </FormDialog>
  )
}
