// Whether the requests and answers of an account, or of single keys, are stored, and who can read them.
import { type FormEvent, useState } from 'react'
import { api } from '../../api.ts'
import { plural } from '../../format.ts'
import { keyLabels } from '../../pages/key-label.ts'
import { refresh, useQuery } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { ContentRules } from '../../wire.ts'

const EVERYTHING = 'All keys and the playground'

type Labels = ReadonlyMap<string, string>

/** What is to be stored of whose calls; without a key: of all. */
interface Rule {
  readonly key?: string
  readonly days: number
  readonly maxBytes: number
}

export function ContentLoggingPage({ account }: { account: string }) {
  const rules = useQuery(`content/${account}`, (signal) => api.contentRules(account, signal))
  const keys = useQuery(`keys/${account}/choice`, (signal) => api.keys(account, { limit: 200 }, signal))
  const labels = keyLabels(keys.data?.items ?? [])
  const may = useMay()('content-logging:write', account)
  return (
    <Page
      title="Content logging"
      lead="Stores the requests and answers of calls, so that they can be read on a call’s page and opened in the playground. Off unless it is turned on here."
      back={{ to: `/a/${encodeURIComponent(account)}/keys`, label: 'Keys' }}
    >
      <Loaded query={rules}>{(data) => <Current account={account} rules={data} labels={labels} may={may} />}</Loaded>
      <Card title="Turn on">
        {may ? (
          <RuleForm account={account} labels={labels} />
        ) : (
          <p className="muted">Owners and admins of the account and operators can turn it on.</p>
        )}
      </Card>
      <Card title="What is stored, and who can read it">
        <Facts
          items={[
            ['Stored', 'Prompts, messages, tool arguments and answers of all paid calls, also of rejected ones'],
            ['Left out', 'Pictures and other files, vendor credentials, and whatever looks like a key or a password'],
            ['Read by', 'Members of this account and operators of the gateway; every reading is in the audit log'],
            ['At rest', 'Encrypted; deleted when the time is over, or at once when logging is turned off'],
          ]}
        />
      </Card>
    </Page>
  )
}

function Current({
  account,
  rules,
  labels,
  may,
}: {
  account: string
  rules: ContentRules
  labels: Labels
  may: boolean
}) {
  const [ending, setEnding] = useState<Partial<Rule>>()
  const all: Rule[] = [...(rules.account ? [rules.account] : []), ...rules.keys]
  const nameOf = ({ key }: Partial<Rule>) => whoseOf(key, labels)
  return (
    <Card
      flush={all.length > 0}
      title={all.length > 0 ? 'Content logging is on' : 'Content logging is off'}
      lead={
        all.length > 0 || rules.storedCalls > 0
          ? `${plural(rules.storedCalls, 'call')} can be read now.`
          : 'Nothing is stored.'
      }
    >
      {all.length === 0 ? null : (
        <Table
          label="Content logging"
          rows={all}
          rowKey={({ key }) => key ?? ''}
          columns={[
            { head: 'Keys', main: true, cell: (rule) => <b>{nameOf(rule)}</b> },
            { head: 'Kept for', cell: ({ days }) => plural(days, 'day') },
            { head: 'Max size per message', cell: ({ maxBytes }) => sizeOf(maxBytes) },
            {
              head: 'Actions',
              cell: (rule) =>
                may ? (
                  <Button small onClick={() => setEnding(rule)} aria-label={`Turn off: ${nameOf(rule)}`}>
                    Turn off
                  </Button>
                ) : null,
            },
          ]}
        />
      )}
      {ending ? (
        <Confirm
          title="Turn off content logging?"
          action="Turn off and delete"
          danger
          run={async () => {
            await api.unsetContentRule(account, ending.key)
            toast('Content logging is off, and stored content is deleted.')
            refresh(`content/${account}`)
          }}
          onClose={() => setEnding(undefined)}
        >
          <p>
            Requests and answers of <b>{nameOf(ending)}</b> are no longer stored, and stored ones are deleted at once.
            This cannot be undone.
          </p>
        </Confirm>
      ) : null}
    </Card>
  )
}

const whoseOf = (key: string | undefined, labels: Labels) => (key === undefined ? EVERYTHING : (labels.get(key) ?? key))
const sizeOf = (bytes: number) => `${Math.round(bytes / 1024)} KB`

const SIZES = [
  ['16384', '16 KB'],
  ['65536', '64 KB'],
  ['262144', '256 KB'],
] as const

function RuleForm({ account, labels }: { account: string; labels: Labels }) {
  const [key, setKey] = useState('')
  const [days, setDays] = useState('7')
  const [size, setSize] = useState('65536')
  const [asking, setAsking] = useState<Rule>()
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    setAsking({ ...(key ? { key } : {}), days: Number(days), maxBytes: Number(size) })
  }
  return (
    <>
      <form className="filters" onSubmit={onSubmit}>
        <SelectField label="Keys" value={key} onText={setKey} options={[['', EVERYTHING], ...labels]} />
        <TextField label="Keep for (days)" type="number" min={1} max={90} required value={days} onText={setDays} />
        <SelectField label="Max size per message" value={size} onText={setSize} options={SIZES} />
        <Button type="submit">Turn on logging</Button>
      </form>
      {asking ? <TurnOn account={account} rule={asking} labels={labels} onClose={() => setAsking(undefined)} /> : null}
    </>
  )
}

/** Says what will be stored of whom, and who will be able to read it, before any of it is stored. */
function TurnOn({
  account,
  rule,
  labels,
  onClose,
}: {
  account: string
  rule: Rule
  labels: Labels
  onClose: () => void
}) {
  const { data } = useQuery(`account/${account}`, (signal) => api.account(account, signal))
  const name = data?.name ?? 'this account'
  return (
    <Confirm
      title="Turn on content logging?"
      action="Turn on logging"
      run={async () => {
        await api.setContentRule(account, rule)
        toast('Content logging is on.')
        refresh(`content/${account}`)
      }}
      onClose={onClose}
    >
      <p>
        From now on the requests and answers of <b>{whoseOf(rule.key, labels)}</b> are stored, up to{' '}
        {sizeOf(rule.maxBytes)} of each, for {plural(rule.days, 'day')}: prompts, messages, tool arguments and what the
        models answered. They may contain personal data of the people who use your programs.
      </p>
      <p>
        Members of <b>{name}</b> and operators of the gateway can read them. Every reading is in the audit log.
        Pictures, files, and whatever looks like a key or a password are left out; a password in the middle of a
        sentence is not recognized.
      </p>
      <p>Earlier calls are not affected. You can delete single calls, or everything by turning logging off.</p>
    </Confirm>
  )
}
