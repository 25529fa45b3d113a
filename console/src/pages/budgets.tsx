// Budgets of an account: how much each user, tag, session, key, member, team and project may use, and how much of that
// is used.
import { useState } from 'react'
import { api } from '../api.ts'
import { formatCredits } from '../credits.ts'
import { Proposals } from '../extensions/agents/proposals.tsx'
import { formatPercent, formatWhole, plural } from '../format.ts'
import { refresh, useList, useQuery } from '../query.ts'
import { useDialogInAddress } from '../router.tsx'
import { useMay } from '../session.tsx'
import { Button } from '../ui/button.tsx'
import { Confirm, FormDialog, Notice } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Menu, type MenuItem } from '../ui/menu.tsx'
import { Badge, Page, When } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { Table, TableCard } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { Budget, BudgetInput, BudgetValue } from '../wire.ts'

const SCOPES = [
  ['user', 'End users'],
  ['session', 'Sessions of agents'],
  ['session:', 'Sessions of one team'],
  ['tag', 'Values of a tag'],
  ['key', 'Keys'],
  ['team', 'Teams'],
  ['project', 'Projects'],
  ['member', 'Members'],
] as const
const UNITS = [
  ['credits', 'Credits'],
  ['requests', 'Calls'],
  ['tokens', 'Tokens'],
] as const
const SPANS = [
  ['day', 'A day (UTC)'],
  ['week', 'A week (Monday, UTC)'],
  ['month', 'A month (UTC)'],
  ['rolling', 'A rolling window'],
  ['total', 'In total'],
] as const
const WINDOWS = [
  ['3600', 'Any hour'],
  ['18000', 'Any 5 hours'],
  ['86400', 'Any 24 hours'],
  ['604800', 'Any 7 days'],
  ['2592000', 'Any 30 days'],
] as const
const NEARLY = 0.8
/** Each session of that team. */
const OF_TEAM = 'session:'

type Names = readonly (readonly [id: string, name: string])[]

/**
 * What the values of a scope are called, where they are ids of something. Undefined: they are text, or the reader may
 * not see them.
 */
function useNames(account: string, scopes: readonly string[]): (scope: string) => Names | undefined {
  const may = useMay()
  const key = (what: string, right: Parameters<typeof may>[0], ...of: string[]) =>
    of.some((scope) => scopes.includes(scope)) && may(right, account) ? `${what}/${account}` : undefined
  const teams = useQuery(key('teams', 'teams:read', 'team', 'project'), (signal) => api.teams(account, signal))
  const keys = useQuery(key('keys', 'keys:read', 'key'), (signal) => api.keys(account, { limit: 200 }, signal))
  const members = useQuery(key('members', 'members:read', 'member'), (signal) => api.members(account, signal))
  return (scope) => {
    if (scope === 'member') return members.data?.items.map(({ userId, email }) => [userId, email])
    if (scope === 'key')
      return keys.data?.items.filter(({ test }) => !test).map(({ id, name, last4 }) => [id, `${name} (…${last4})`])
    const all = teams.data?.items
    if (scope === 'team') return all?.filter(({ parentId }) => parentId === null).map(({ id, name }) => [id, name])
    if (scope !== 'project') return undefined
    return all?.flatMap(({ id, name, parentId }) =>
      parentId === null ? [] : [[id, `${all.find((one) => one.id === parentId)?.name}/${name}`] as const],
    )
  }
}

export function BudgetsPage({ account }: { account: string }) {
  const may = useMay()('budgets:write', account)
  const [making, setMaking] = useDialogInAddress('create')
  const [changing, setChanging] = useState<Budget>()
  const [excepting, setExcepting] = useState<Budget>()
  const [ending, setEnding] = useState<Budget>()
  const [looking, setLooking] = useState<Budget>()
  const budgets = useList(`budgets/${account}`, (_, signal) => api.budgets(account, signal))
  const names = useNames(
    account,
    (budgets.data ?? []).flatMap(({ scope, value }) =>
      scope.startsWith(OF_TEAM) ? ['team'] : value === null ? [] : [scope],
    ),
  )
  const newOne = (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New budget
    </Button>
  )
  const actions = (budget: Budget): MenuItem[] => [
    { label: 'Top values', icon: 'usage', run: () => setLooking(budget) },
    ...(may
      ? [
          { label: 'Change', icon: 'edit', run: () => setChanging(budget) } as const,
          ...(budget.value === null
            ? [{ label: 'Limit for one value', icon: 'sliders', run: () => setExcepting(budget) } as const]
            : []),
          { label: 'End', icon: 'trash', danger: true, run: () => setEnding(budget) } as const,
        ]
      : []),
  ]
  return (
    <Page
      title="Budgets"
      lead="How much an end user, a tag, a key or a team may use. A hard budget rejects calls that would exceed it."
      actions={may ? newOne : null}
    >
      <Proposals account={account} budgets={budgets.data ?? []} may={may} />
      <TableCard
        label="Budgets"
        list={budgets}
        rowKey={({ id }) => id}
        empty={
          <Empty icon="statement" title="No budgets yet" action={may ? newOne : null}>
            <p>Set a limit for a team or key, or one limit that every end user gets.</p>
          </Empty>
        }
        columns={[
          {
            head: 'Name',
            main: true,
            cell: (row) => (
              <>
                <b>{row.name}</b> {row.hard ? null : <Badge>soft</Badge>}
              </>
            ),
          },
          {
            head: 'Applies to',
            cell: (row) => forWhom(row, names(row.scope.startsWith(OF_TEAM) ? 'team' : row.scope)),
          },
          { head: 'Limit', cell: (row) => `${amountOf(row.unit, row.max)} ${spanOf(row)}` },
          {
            head: 'Used',
            cell: (row) =>
              row.value === null ? (
                `${plural(row.values, row.scope === 'user' ? 'user' : 'value')} so far`
              ) : (
                <Used budget={row} of={row} />
              ),
          },
          { head: 'Renews', cell: ({ resetsAt }) => (resetsAt ? <When at={resetsAt} /> : '–') },
          { head: 'Actions', cell: (row) => <Menu label={`Actions for ${row.name}`} items={actions(row)} /> },
        ]}
      />
      {making ? <BudgetForm account={account} onClose={() => setMaking(false)} /> : null}
      {changing ? <ChangeForm account={account} budget={changing} onClose={() => setChanging(undefined)} /> : null}
      {excepting ? <ValueForm account={account} budget={excepting} onClose={() => setExcepting(undefined)} /> : null}
      {looking ? <Values account={account} budget={looking} onClose={() => setLooking(undefined)} /> : null}
      {ending ? <EndBudget account={account} budget={ending} onClose={() => setEnding(undefined)} /> : null}
    </Page>
  )
}

function forWhom({ scope, value }: Budget, names?: Names): string {
  if (scope.startsWith(OF_TEAM)) {
    const team = scope.slice(OF_TEAM.length)
    return `every session of ${names?.find(([id]) => id === team)?.[1] ?? team}`
  }
  const name = scope.startsWith('tag:') ? `tag ${scope.slice('tag:'.length)}` : scope
  if (value === null) return `every ${scope === 'user' ? 'end user' : name}`
  return `${name} ${names?.find(([id]) => id === value)?.[1] ?? value}`
}

function amountOf(unit: Budget['unit'], amount: string): string {
  if (unit === 'credits') return `${formatCredits(amount)} credits`
  return plural(Number(amount), unit === 'requests' ? 'call' : 'token')
}

function spanOf({ span, windowSeconds }: Budget): string {
  if (span === 'total') return 'in total'
  if (span !== 'rolling') return `a ${span}`
  const known = WINDOWS.find(([seconds]) => Number(seconds) === windowSeconds)?.[1]
  return `in ${(known ?? `Any ${formatWhole(windowSeconds ?? 0)} seconds`).toLowerCase()}`
}

function Used({ budget, of }: { budget: Budget; of: Pick<BudgetValue, 'used' | 'max' | 'share'> }) {
  const tone = of.share >= 1 ? 'bad' : of.share >= NEARLY ? 'warn' : 'good'
  return (
    <Badge tone={tone}>
      {amountOf(budget.unit, of.used)} of {amountOf(budget.unit, of.max)}, {formatPercent(of.share)}
    </Badge>
  )
}

function BudgetForm({ account, onClose }: { account: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const [scope, setScope] = useState<string>('user')
  const [tag, setTag] = useState('')
  const [value, setValue] = useState('')
  const [unit, setUnit] = useState<string>('credits')
  const [span, setSpan] = useState<string>('month')
  const [window, setWindow] = useState('86400')
  const [max, setMax] = useState('')
  const [hard, setHard] = useState('hard')
  const [percent, setPercent] = useState('')
  const run = async () => {
    const input = {
      name: name.trim(),
      ...scoped(scope, scope === 'tag' ? tag.trim() : value.trim(), value.trim()),
      unit,
      span,
      max: max.trim(),
      hard: hard === 'hard',
      alertPercent: percent ? Number(percent) : null,
      windowSeconds: span === 'rolling' ? Number(window) : null,
    } as BudgetInput // the options are those of the fields
    await api.createBudget(account, input)
    toast(`Budget ${input.name} created.`)
    refresh(`budgets/${account}`)
  }
  return (
    <FormDialog title="New budget" wide action="Create budget" run={run} onClose={onClose}>
      <TextField label="Name" value={name} onText={setName} maxLength={100} placeholder="Trial users" required />
      <div className="grid-2">
        <SelectField
          label="Applies to"
          value={scope}
          onText={(text) => {
            setScope(text)
            setValue('')
          }}
          options={SCOPES}
        />
        {scope === 'tag' ? (
          <TextField
            label="Name of the tag"
            value={tag}
            onText={setTag}
            maxLength={64}
            placeholder="feature"
            mono
            required
          />
        ) : null}
        {scope === OF_TEAM ? (
          <ValueField account={account} scope="team" value={value} onText={setValue} label="Team" required />
        ) : (
          <ValueField account={account} scope={scope} value={value} onText={setValue} label="Only for" />
        )}
      </div>
      <div className="grid-3">
        <TextField label="Limit" value={max} onText={setMax} inputMode="decimal" placeholder="5" required />
        <SelectField label="Unit" value={unit} onText={setUnit} options={UNITS} />
        <SelectField label="Period" value={span} onText={setSpan} options={SPANS} />
        {span === 'rolling' ? <SelectField label="Window" value={window} onText={setWindow} options={WINDOWS} /> : null}
      </div>
      <div className="grid-2">
        <Kind hard={hard} onHard={setHard} />
        <Percent percent={percent} onPercent={setPercent} />
      </div>
    </FormDialog>
  )
}

/** A tag and a team are a part of the scope. */
function scoped(scope: string, part: string, value: string): Pick<BudgetInput, 'scope' | 'value'> {
  if (scope === OF_TEAM) return { scope: OF_TEAM + part, value: null }
  return { scope: scope === 'tag' ? `tag:${part}` : scope, value: value || null }
}

/** Chosen by its name where it has one. */
function ValueField(props: {
  account: string
  scope: string
  value: string
  onText: (text: string) => void
  label: string
  required?: boolean
}) {
  const { account, scope, value, onText, label, required = false } = props
  const names = useNames(account, [scope])(scope)
  if (names)
    return (
      <SelectField
        label={label}
        value={value}
        onText={onText}
        required={required}
        options={[['', required ? 'Choose' : 'Every one has its own'] as const, ...names]}
      />
    )
  return (
    <TextField
      label={label}
      value={value}
      onText={onText}
      required={required}
      maxLength={64}
      placeholder={required ? 'alice' : 'Leave empty for one limit each'}
    />
  )
}

function Kind({ hard, onHard }: { hard: string; onHard: (text: string) => void }) {
  return (
    <SelectField
      label="When exceeded"
      value={hard}
      onText={onHard}
      options={[
        ['hard', 'Calls are rejected (429)'],
        ['soft', 'Calls continue; alerts only'],
      ]}
    />
  )
}

function Percent({ percent, onPercent }: { percent: string; onPercent: (text: string) => void }) {
  return (
    <TextField
      label="Alert at (%)"
      value={percent}
      onText={onPercent}
      inputMode="numeric"
      placeholder="As in the alert rule for limits"
    />
  )
}

function ChangeForm({ account, budget, onClose }: { account: string; budget: Budget; onClose: () => void }) {
  const [name, setName] = useState(budget.name)
  const [max, setMax] = useState(budget.max)
  const [hard, setHard] = useState(budget.hard ? 'hard' : 'soft')
  const [percent, setPercent] = useState(budget.alertPercent === null ? '' : String(budget.alertPercent))
  const run = async () => {
    const alertPercent = percent ? Number(percent) : null
    await api.changeBudget(account, budget.id, {
      name: name.trim(),
      max: max.trim(),
      hard: hard === 'hard',
      alertPercent,
    })
    toast(`The budget ${name} was changed.`)
    refresh(`budgets/${account}`)
  }
  return (
    <FormDialog title="Change budget" action="Save" run={run} onClose={onClose}>
      <TextField label="Name" value={name} onText={setName} maxLength={100} required />
      <TextField label="Limit" value={max} onText={setMax} inputMode="decimal" required />
      <div className="grid-2">
        <Kind hard={hard} onHard={setHard} />
        <Percent percent={percent} onPercent={setPercent} />
      </div>
    </FormDialog>
  )
}

/** Of a default budget: more or less for one user, key or tag than for the others. */
function ValueForm({ account, budget, onClose }: { account: string; budget: Budget; onClose: () => void }) {
  const [value, setValue] = useState('')
  const [max, setMax] = useState('')
  return (
    <FormDialog
      title="Limit for one value"
      action="Save"
      run={async () => {
        await api.setBudgetValue(account, budget.id, { value: value.trim(), max: max.trim() || null })
        toast(`The limit of ${value.trim()} was saved.`)
        refresh(`budgets/${account}`)
      }}
      onClose={onClose}
    >
      <p>
        <b>{budget.name}</b> allows {amountOf(budget.unit, budget.max)} {spanOf(budget)}, {forWhom(budget)}.
      </p>
      <ValueField account={account} scope={budget.scope} value={value} onText={setValue} label="Value" required />
      <TextField
        label="Limit"
        value={max}
        onText={setMax}
        inputMode="decimal"
        placeholder={budget.max}
        hint="Leave empty to use the limit of all others"
      />
    </FormDialog>
  )
}

function Values({ account, budget, onClose }: { account: string; budget: Budget; onClose: () => void }) {
  const names = useNames(account, [budget.scope])(budget.scope)
  const values = useQuery(`budgets/${account}/${budget.id}`, (signal) => api.budgetValues(account, budget.id, signal))
  return (
    <Notice title={`Top values of ${budget.name}`} wide onClose={onClose}>
      <Loaded query={values}>
        {({ items }) =>
          items.length === 0 ? (
            <p>Nothing has been counted yet.</p>
          ) : (
            <Table
              label="Values"
              rows={items}
              rowKey={({ value }) => value}
              columns={[
                {
                  head: 'Value',
                  main: true,
                  cell: ({ value }) => <b>{names?.find(([id]) => id === value)?.[1] ?? value}</b>,
                },
                { head: 'Used', cell: (row) => <Used budget={budget} of={row} /> },
                { head: 'Left', cell: ({ left }) => amountOf(budget.unit, left) },
                { head: 'Renews', cell: ({ resetsAt }) => (resetsAt ? <When at={resetsAt} /> : '–') },
              ]}
            />
          )
        }
      </Loaded>
    </Notice>
  )
}

function EndBudget({ account, budget, onClose }: { account: string; budget: Budget; onClose: () => void }) {
  return (
    <Confirm
      title="End this budget?"
      action="End"
      danger
      run={async () => {
        await api.endBudget(account, budget.id)
        toast(`The budget ${budget.name} has ended.`)
        refresh(`budgets/${account}`)
      }}
      onClose={onClose}
    >
      <p>
        <b>{budget.name}</b> stops counting, and its counts are deleted.
      </p>
    </Confirm>
  )
}
