import { type ReactNode, useState } from 'react'
import { api } from '../api.ts'
import { useQuery } from '../query.ts'
import { FormDialog } from '../ui/dialog.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../ui/field.tsx'
import { Loaded } from '../ui/state.tsx'
import type { Key, KeyInput, NewKey, PublicCatalog } from '../wire.ts'
import { dayOf, dayStart, zoneName } from '../zone.ts'
import { LimitFields, type LimitTexts, limitsAreValid, limitsAsTexts, textsAsLimits } from './limits.tsx'

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

export interface KeyPreset {
  readonly name: string
  readonly models: readonly string[]
  readonly limits: LimitTexts
  readonly test?: boolean
}

interface Props {
  account: string
  edit?: Key
  /** What a new key begins with. */
  preset?: KeyPreset | undefined
  /** Stands above the fields. */
  children?: ReactNode
  onClose: () => void
  onMade?: (made: NewKey) => void
  onSaved?: () => void
}

export function KeyForm({ account, edit, preset, children, onClose, onMade, onSaved }: Props) {
  const [name, setName] = useState(edit?.name ?? preset?.name ?? '')
  const [models, setModels] = useState<readonly string[] | null>(edit?.models ?? preset?.models ?? null)
  const [expires, setExpires] = useState(edit?.expiresAt ? 'date' : '')
  const [date, setDate] = useState(edit?.expiresAt ? dayOf(edit.expiresAt) : '')
  const [ranges, setRanges] = useState(edit?.ipRanges?.join('\n') ?? '')
  const [keeps, setKeeps] = useState(cacheWord(edit?.responseCache))
  const [test, setTest] = useState(preset?.test ?? false)
  const [limits, setLimits] = useState<LimitTexts>(preset?.limits ?? limitsAsTexts(edit?.limits ?? {}))

  const run = async () => {
    const ipRanges = ranges.split(/[\s,]+/).filter(Boolean)
    const input: KeyInput = {
      name: name.trim(),
      models: models ? [...models] : null,
      expiresAt: expiryOf(expires, date),
      ipRanges: ipRanges.length ? ipRanges : null,
      responseCache: keeps === '' ? null : keeps === 'on',
      limits: textsAsLimits(limits, edit?.limits ?? {}),
    }
    if (edit) await api.changeKey(edit.id, input)
    if (edit) onSaved?.()
    else onMade?.(await api.createKey(account, { ...onlyGiven(input), ...(test ? { test } : {}) }))
  }

  const open = Boolean(models || ranges || keeps || Object.keys(limits).length)
  return (
    <FormDialog
      title={edit ? 'Edit key' : 'Create a key'}
      wide
      action={edit ? 'Save' : 'Create key'}
      disabled={!name.trim() || models?.length === 0 || !limitsAreValid(limits)}
      run={run}
      onClose={onClose}
    >
      {children}
      <div className="grid-2">
        <TextField
          label="Name"
          value={name}
          onText={setName}
          maxLength={100}
          placeholder="Where it is used, e.g. website"
          required
        />
        <Expiry expires={expires} onExpires={setExpires} date={date} onDate={setDate} />
      </div>
      {edit ? null : (
        <Checkbox
          label="Test key: vendors are simulated, and nothing is charged to this account"
          checked={test}
          onCheck={setTest}
        />
      )}
      <details className="fold" open={open}>
        <summary>Restrictions and limits</summary>
        <div className="stack">
          <ModelChoice chosen={models} onChoose={setModels} />
          <LimitFields texts={limits} onTexts={setLimits} />
          <TextArea
            label="Allowed IP ranges"
            hint="One per line, such as 203.0.113.0/24. Empty: from anywhere."
            value={ranges}
            onText={setRanges}
            mono
            rows={2}
          />
          <SelectField
            label="Response cache"
            hint="The same request at temperature 0 is answered from the cache, without a call to the vendor, at the cached price."
            value={keeps}
            onText={setKeeps}
            options={RESPONSE_CACHE}
          />
        </div>
      </details>
    </FormDialog>
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
          quiet
          hint={`To its end, ${zoneName()}.`}
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

function ModelChoice({
  chosen,
  onChoose,
}: {
  chosen: readonly string[] | null
  onChoose: (models: readonly string[] | null) => void
}) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  return (
    <fieldset className="stack-tight">
      <legend className="field-label">Models</legend>
      <Checkbox
        label="All models and data endpoints, also those added later"
        checked={chosen === null}
        onCheck={(all) => onChoose(all ? null : [])}
      />
      {chosen === null ? null : (
        <Loaded query={catalog}>
          {(data) => (
            <div className="choice-list">
              {choices(data).map(({ uid, label }) => (
                <Checkbox
                  key={uid}
                  label={label}
                  checked={chosen.includes(uid)}
                  onCheck={(on) => onChoose(on ? [...chosen, uid] : chosen.filter((other) => other !== uid))}
                />
              ))}
            </div>
          )}
        </Loaded>
      )}
    </fieldset>
  )
}

function choices(catalog: PublicCatalog): { uid: string; label: string }[] {
  const models = catalog.models.map((model) => ({ uid: model.uid, label: model.uid }))
  const analytics = { uid: 'siteanalytics', label: 'siteanalytics (all site analytics)' }
  return models.some((model) => model.uid === analytics.uid) ? models : [...models, analytics]
}
