// Whether the requests and answers of an account, or of single keys, are kept.
import { useState } from 'react'
import { api } from '../api.ts'
import { plural } from '../format.ts'
import { refresh, useQuery } from '../query.ts'
import { useMayManage } from '../session.tsx'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Card } from '../ui/page.tsx'
import { Fault, Loaded } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import type { ContentRules } from '../wire.ts'
import { keyLabels } from './key-label.ts'

const EVERYTHING = 'All keys and the playground'

type Labels = ReadonlyMap<string, string>

export function ContentCard({ account }: { account: string }) {
  const rules = useQuery(`content/${account}`, (signal) => api.contentRules(account, signal))
  const keys = useQuery(`keys/${account}/choice`, (signal) => api.keys(account, { limit: 200 }, signal))
  const labels = keyLabels(keys.data?.items ?? [])
  return (
    <Card
      title="Content logging"
      lead="Stores requests and answers, encrypted, without secrets and pictures. Off by default. They can be read on a call’s page and opened in the playground."
    >
      <Loaded query={rules}>{(data) => <Rules account={account} rules={data} labels={labels} />}</Loaded>
    </Card>
  )
}

function Rules({ account, rules, labels }: { account: string; rules: ContentRules; labels: Labels }) {
  const [ending, setEnding] = useState<{ key?: string }>()
  const may = useMayManage(account)
  const all = [...(rules.account ? [{ ...rules.account, key: undefined }] : []), ...rules.keys]
  const nameOf = (key: string | undefined) => (key === undefined ? EVERYTHING : (labels.get(key) ?? key))
  const end = async () => {
    await api.unsetContentRule(account, ending?.key)
    toast('Content logging is off, and logged content is deleted.')
    refresh(`content/${account}`)
  }
  return (
    <div className="stack">
      {all.length === 0 ? <p className="muted">Content logging is off.</p> : null}
      {all.map(({ key, days, maxBytes }) => (
        <p key={key ?? ''} className="row">
          <span>
            <b>{nameOf(key)}</b>: kept for {plural(days, 'day')}, up to {Math.round(maxBytes / 1024)} KB per message
          </span>
          {may ? (
            <Button
              small
              onClick={() => setEnding(key === undefined ? {} : { key })}
              aria-label={`Switch off: ${nameOf(key)}`}
            >
              Switch off
            </Button>
          ) : null}
        </p>
      ))}
      {rules.kept > 0 ? <p className="muted">{plural(rules.kept, 'call')} can be read now.</p> : null}
      {may ? <RuleForm account={account} labels={labels} /> : <p className="muted">Owners can turn it on.</p>}
      {ending ? (
        <Confirm
          title="Turn off content logging?"
          action="Turn off and delete"
          danger
          run={end}
          onClose={() => setEnding(undefined)}
        >
          <p>Requests and answers are no longer stored, and stored ones are deleted at once.</p>
        </Confirm>
      ) : null}
    </div>
  )
}

const SIZES = [
  ['16384', '16 KB'],
  ['65536', '64 KB'],
  ['262144', '256 KB'],
] as const

function RuleForm({ account, labels }: { account: string; labels: Labels }) {
  const [key, setKey] = useState('')
  const [days, setDays] = useState('7')
  const [size, setSize] = useState('65536')
  const { busy, error, onSubmit } = useSubmit(async () => {
    await api.setContentRule(account, { ...(key ? { key } : {}), days: Number(days), maxBytes: Number(size) })
    toast('Content logging is on.')
    refresh(`content/${account}`)
  })
  return (
    <form className="filters" onSubmit={onSubmit}>
      <SelectField label="Keys" value={key} onText={setKey} options={[['', EVERYTHING], ...labels]} />
      <TextField label="Keep for (days)" type="number" min={1} max={90} required value={days} onText={setDays} />
      <SelectField label="Max size per message" value={size} onText={setSize} options={SIZES} />
      <Button type="submit" busy={busy}>
        Turn on logging
      </Button>
      {error ? <Fault error={error} /> : null}
    </form>
  )
}
