import { type ComponentProps, type ReactNode, useState } from 'react'
import { api } from '../api.ts'
import { useQuery } from '../query.ts'
import { useMay } from '../session.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { Checkbox, Section, SelectField, TextArea, TextField } from '../ui/field.tsx'
import { Picker } from '../ui/picker.tsx'
import type { Key, KeyInput, NewKey } from '../wire.ts'
import { dayOf, dayStart, zoneName } from '../zone.ts'
import { Permissions } from './key-permissions.tsx'
import { RoutingFields, type RoutingTexts, routingTexts, textsAsRouting } from './key-routing.tsx'
import { LimitFields, type LimitTexts, limitsAsTexts, textsAsLimits } from './limits.tsx'

const EXPIRIES = [
  ['', 'Never'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
  ['date', 'On a date…'],
] as const

const RESPONSE_CACHE = [
  ['', 'Model default'],
  ['on', 'On, for all text models'],
  ['off', 'Off: always call the vendor'],
] as const

/** Those that the gateway knows by itself. */
const LABELS = ['user', 'session'].map((value) => ({ value, label: value }))

export interface KeyPreset {
  readonly name: string
  readonly models: readonly string[]
  readonly limits: LimitTexts
  readonly test?: boolean
}

/** How long the key that is replaced goes on working. */
const OVERLAPS = [
  ['0', 'Stops at once'],
  ['3600', 'Works for one more hour'],
  ['86400', 'Works for one more day'],
  ['604800', 'Works for one more week'],
] as const

interface Props {
  account: string
  edit?: Key
  /** The key of `edit` is replaced by a new one. */
  rotate?: boolean
  /** What a new key begins with. */
  preset?: KeyPreset | undefined
  /** Stands above the fields. */
  children?: ReactNode
  onClose: () => void
  onMade?: (made: NewKey) => void
  onSaved?: () => void
}

export function KeyForm({ account, edit, rotate = false, preset, children, onClose, onMade, onSaved }: Props) {
  const [name, setName] = useState(edit?.name ?? preset?.name ?? '')
  const [models, setModels] = useState<readonly string[] | null>(edit?.models ?? preset?.models ?? null)
  const [endpoints, setEndpoints] = useState<readonly string[] | null>(edit?.endpoints ?? null)
  const [overlap, setOverlap] = useState('86400')
  const [expires, setExpires] = useState(edit?.expiresAt ? 'date' : '')
  const [date, setDate] = useState(edit?.expiresAt ? dayOf(edit.expiresAt) : '')
  const [ranges, setRanges] = useState(edit?.ipRanges?.join('\n') ?? '')
  const [labels, setLabels] = useState(edit?.requiredLabels?.join(', ') ?? '')
  const [routing, setRouting] = useState<RoutingTexts>(routingTexts(edit?.routing))
  const [keeps, setKeeps] = useState(cacheWord(edit?.responseCache))
  const [team, setTeam] = useState(edit?.teamId ?? '')
  const [member, setMember] = useState(edit?.memberId ?? '')
  const [test, setTest] = useState(preset?.test ?? false)
  const [limits, setLimits] = useState<LimitTexts>(preset?.limits ?? limitsAsTexts(edit?.limits ?? {}))

  const run = async () => {
    const ipRanges = ranges.split(/[\s,]+/).filter(Boolean)
    const required = labels.split(/[\s,]+/).filter(Boolean)
    const input: KeyInput = {
      name: name.trim(),
      models: models ? [...models] : null,
      endpoints: endpoints ? [...endpoints] : null,
      requiredLabels: required.length ? required : null,
      teamId: team || null,
      memberId: member || null,
      expiresAt: expiryOf(expires, date),
      ipRanges: ipRanges.length ? ipRanges : null,
      responseCache: keeps === '' ? null : keeps === 'on',
      routing: textsAsRouting(routing),
      limits: textsAsLimits(limits, edit?.limits ?? {}),
    }
    if (edit && rotate) onMade?.(await api.rotateKey(edit.id, { ...input, overlapSeconds: Number(overlap) }))
    else if (edit) {
      await api.changeKey(edit.id, input)
      onSaved?.()
    } else onMade?.(await api.createKey(account, { ...onlyGiven(input), ...(test ? { test } : {}) }))
  }

  const open = Boolean(
    models || endpoints || labels || ranges || keeps || textsAsRouting(routing) || Object.keys(limits).length,
  )
  return (
    <FormDialog
      right="keys:write"
      account={account}
      title={rotate ? 'Rotate this key' : edit ? 'Edit key' : 'Create a key'}
      wide
      action={rotate ? 'Rotate' : edit ? 'Save' : 'Create key'}
      disabled={models?.length === 0 || endpoints?.length === 0}
      run={run}
      onClose={onClose}
    >
      {children}
      {edit && rotate ? <Replaces replaced={edit} /> : null}
      <div className={rotate ? 'grid-3' : 'grid-2'}>
        <TextField
          label="Name"
          name="name"
          value={name}
          onText={setName}
          maxLength={100}
          placeholder="Where it is used, e.g. website"
          required
        />
        <Expiry expires={expires} onExpires={setExpires} date={date} onDate={setDate} />
        <TeamField account={account} team={team} onTeam={setTeam} />
        <MemberField account={account} member={member} onMember={setMember} />
        {rotate ? <SelectField label="The old key" value={overlap} onText={setOverlap} options={OVERLAPS} /> : null}
      </div>
      {edit ? null : <Checkbox label={TEST_KEY} checked={test} onCheck={setTest} />}
      <Restrictions
        open={open}
        models={models}
        onModels={setModels}
        endpoints={endpoints}
        onEndpoints={setEndpoints}
        limits={limits}
        onLimits={setLimits}
        routing={routing}
        onRouting={setRouting}
        ranges={ranges}
        onRanges={setRanges}
        labels={labels}
        onLabels={setLabels}
        keeps={keeps}
        onKeeps={setKeeps}
      />
    </FormDialog>
  )
}

const TEST_KEY = 'Test key: vendors are simulated, and nothing is charged to this account'

/** Only where there are teams. */
function TeamField({ account, team, onTeam }: { account: string; team: string; onTeam: (id: string) => void }) {
  const teams = useQuery(`teams/${account}`, (signal) => api.teams(account, signal))
  if (!teams.data?.items.length) return null
  const options = teams.data.items.map(
    ({ id, name, parentId }) => [id, parentId === null ? name : `└ ${name}`] as const,
  )
  return <SelectField label="Team or project" value={team} onText={onTeam} options={[['', 'None'], ...options]} />
}

/** Only for whoever may see the members of the account, and where it has some. */
function MemberField(props: { account: string; member: string; onMember: (id: string) => void }) {
  const { account, member, onMember } = props
  const may = useMay()('members:read', account)
  const members = useQuery(may ? `members/${account}` : undefined, (signal) => api.members(account, signal))
  if (!members.data?.items.length) return null
  const options = members.data.items.map(({ userId, email }) => [userId, email] as const)
  return <SelectField label="Member" value={member} onText={onMember} options={[['', 'No member'], ...options]} />
}

interface RulesProps {
  ranges: string
  onRanges: (text: string) => void
  labels: string
  onLabels: (text: string) => void
  keeps: string
  onKeeps: (text: string) => void
}

interface RestrictionsProps extends ComponentProps<typeof Permissions>, RulesProps {
  open: boolean
  limits: LimitTexts
  onLimits: (limits: LimitTexts) => void
  routing: RoutingTexts
  onRouting: (routing: RoutingTexts) => void
}

/** What most keys do without, by its subject. */
function Restrictions({ open, limits, onLimits, routing, onRouting, ...rest }: RestrictionsProps) {
  return (
    <details className="fold" open={open}>
      <summary>Restrictions and limits</summary>
      <div className="stack">
        <Section title="What it may call">
          <Permissions {...rest} />
        </Section>
        <Section title="Limits">
          <LimitFields texts={limits} onTexts={onLimits} />
        </Section>
        <Section title="Where its calls go">
          <RoutingFields texts={routing} onTexts={onRouting} />
        </Section>
        <Section title="Rules for its calls">
          <Rules {...rest} />
        </Section>
      </div>
    </details>
  )
}

/** Where its calls may come from, what they must carry, and whether they use the response cache. */
function Rules(props: RulesProps) {
  const { ranges, onRanges, labels, onLabels, keeps, onKeeps } = props
  return (
    <div className="grid-2">
      <TextArea
        label="Allowed IP ranges"
        name="ipRanges"
        hint="One per line, such as 203.0.113.0/24. Leave empty for anywhere."
        value={ranges}
        onText={onRanges}
        mono
        rows={2}
      />
      <Picker
        label="Required labels"
        hint="Calls without these are rejected. Type others of your own, such as feature."
        placeholder="None"
        value={labels}
        onText={onLabels}
        options={LABELS}
        free={/^[\w.-]+$/}
      />
      <SelectField
        label="Response cache"
        hint="The same request at temperature 0 is answered from the cache, without a call to the vendor, at the cached price."
        value={keeps}
        onText={onKeeps}
        options={RESPONSE_CACHE}
      />
    </div>
  )
}

function Replaces({ replaced: { name, prefix, last4 } }: { replaced: Key }) {
  return (
    <p>
      A new key takes the place of <b>{name}</b>{' '}
      <code>
        {prefix}…{last4}
      </code>
      , with the settings below.
    </p>
  )
}

interface ExpiryProps {
  expires: string
  onExpires: (expires: string) => void
  date: string
  onDate: (date: string) => void
}

function Expiry({ expires, onExpires, date, onDate }: ExpiryProps) {
  return (
    <div className="stack-tight">
      <SelectField label="Expires" value={expires} onText={onExpires} options={EXPIRIES} />
      {expires === 'date' ? (
        <TextField
          label="Last day"
          name="expiresAt"
          quiet
          hint={`Until the end of this day, ${zoneName()}.`}
          type="date"
          value={date}
          onText={onDate}
          required
        />
      ) : null}
    </div>
  )
}

function cacheWord(responseCache: boolean | null = null): string {
  if (responseCache === null) return ''
  return responseCache ? 'on' : 'off'
}

/** The day's last moment in the zone that the page shows. */
function expiryOf(expires: string, date: string): string | null {
  if (expires === '') return null
  if (expires === 'date') return lastMoment(date)
  return new Date(Date.now() + Number(expires) * 86_400_000).toISOString()
}

function lastMoment(date: string): string | null {
  const next = dayStart(date, 1)
  return next ? new Date(Date.parse(next) - 1000).toISOString() : null
}

function onlyGiven(input: KeyInput): KeyInput {
  const kept = Object.entries(input).filter(
    ([name, value]) => value !== null && (name !== 'limits' || Object.keys(value).length),
  )
  return Object.fromEntries(kept) as unknown as KeyInput
}
