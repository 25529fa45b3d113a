// The rules of alerts and who is told, by form.
import { useState } from 'react'
import { api } from '../../api.ts'
import { parseCredits } from '../../credits.ts'
import { DeliveryTable } from '../../pages/deliveries.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { useAction, useSubmit } from '../../ui/action.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { SelectField, Switch, TextField } from '../../ui/field.tsx'
import { Badge, Card } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { AlertRules, AlertSettings, AlertSettingsInput, Receiver } from '../../wire.ts'

type Name = keyof AlertRules

/** A rule's schema, with its words: src/extensions/alerts/rules.ts. */
interface RuleSchema {
  readonly type?: string
  readonly anyOf?: readonly RuleSchema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly title: string
  /** Without one, the rule has no value but on or off. */
  readonly unit?: string
  readonly usual?: string
  /** Only the gateway's own rules have it; the others are those of accounts. */
  readonly of?: 'gateway'
  /** The rule of which it is a second value. */
  readonly after?: Name
}
declare const ALERT_RULES: Record<Name, RuleSchema>

const NAMES = Object.keys(ALERT_RULES) as Name[] // the table has no others
const schemaOf = (name: Name): RuleSchema => ({
  ...ALERT_RULES[name].anyOf?.find(({ type }) => type !== 'null'),
  ...ALERT_RULES[name],
})

const amounts = (text: string) => {
  const pairs = text.split(',').filter((pair) => pair.trim())
  const parts = pairs.map((pair) => pair.trim().split('='))
  const isMeant = ([name = '', value = '', ...rest]: string[]) =>
    /^[A-Za-z][\w.:/-]{0,63}$/.test(name) && (parseCredits(value) ?? 0n) > 0n && rest.length === 0
  return parts.length > 0 && parts.every(isMeant) ? Object.fromEntries(parts) : undefined
}

/** Undefined: it is not a value of the rule. */
function read({ type, minimum = 0, maximum = 100 }: RuleSchema, text: string): AlertRules[Name] | undefined {
  if (type === 'object') return amounts(text)
  if (type === 'string') return (parseCredits(text) ?? -1n) >= 0n ? text.trim() : undefined
  const list = type === 'array' ? text.split(/[\s,;%]+/).filter(Boolean) : [text]
  const values = list.map(Number)
  const isMeant = values.every(
    (one) => (type === 'number' || Number.isInteger(one)) && one >= minimum && one <= maximum,
  )
  if (!isMeant || list.length === 0 || text.trim() === '') return undefined
  return type === 'array' ? values : values[0]
}

const off = ({ type }: RuleSchema) =>
  type === 'boolean' ? false : type === 'array' ? [] : type === 'object' ? {} : null
const isOn = (value: AlertRules[Name]) =>
  value !== null && value !== false && !(typeof value === 'object' && Object.keys(value).length === 0)
const asText = (value: AlertRules[Name]) =>
  Array.isArray(value)
    ? value.join(', ')
    : typeof value === 'object' && value !== null
      ? Object.entries(value)
          .map((pair) => pair.join('='))
          .join(', ')
      : String(value)

export function AlertSettingsPanel({ account }: { account: string | undefined }) {
  const settings = useQuery(`alert-settings/${account ?? ''}`, (signal) => api.alertSettings(account, signal))
  return (
    <Loaded query={settings}>
      {(data) => (
        <>
          <RulesCard key={JSON.stringify(data.rules)} account={account} settings={data} />
          <ReceiversCard account={account} settings={data} />
          <Deliveries account={account} />
        </>
      )}
    </Loaded>
  )
}

async function save(account: string | undefined, settings: AlertSettingsInput): Promise<void> {
  await api.changeAlerts(account, settings)
  refresh(`alert-settings/${account ?? ''}`)
}

interface CardProps {
  account: string | undefined
  settings: AlertSettings
}

function RulesCard({ account, settings }: CardProps) {
  const names = NAMES.filter((name) => (ALERT_RULES[name].of === 'gateway') === (account === undefined))
  const [on, setOn] = useState(() => new Set<Name>(names.filter((name) => isOn(settings.rules[name]))))
  const [texts, setTexts] = useState<Partial<Record<Name, string>>>({})
  const textOf = (name: Name) => {
    const known = settings.rules[name]
    return texts[name] ?? (isOn(known) ? asText(known) : (schemaOf(name).usual ?? ''))
  }
  const meantBy = (name: Name) => {
    const schema = schemaOf(name)
    if (!on.has(name)) return off(schema)
    return schema.unit ? read(schema, textOf(name)) : true
  }
  const values = names.map((name) => [name, meantBy(name)] as const)
  const wrong = values.some(([, value]) => value === undefined)
  const { busy, error, onSubmit } = useSubmit(async () => {
    await save(account, { ...settings, rules: { ...settings.rules, ...Object.fromEntries(values) } })
    toast('Saved.')
  })
  return (
    <Card
      right="alert-settings:write"
      account={account}
      title="Rules"
      lead="Each alert is sent once and resets when the problem clears."
    >
      <form className="stack" onSubmit={onSubmit}>
        <ul className="rule-list">
          {names
            .filter((name) => ALERT_RULES[name].after === undefined)
            .map((name) => (
              <li key={name}>
                <Switch
                  label={ALERT_RULES[name].title}
                  on={on.has(name)}
                  onSwitch={(next) => setOn((old) => (next ? new Set([...old, name]) : without(old, name)))}
                />
                <span>{ALERT_RULES[name].title}</span>
                <span className={`rule-values${on.has(name) && schemaOf(name).unit ? '' : ' muted'}`}>
                  {!on.has(name)
                    ? 'off'
                    : !schemaOf(name).unit
                      ? 'on'
                      : [name, ...names.filter((other) => ALERT_RULES[other].after === name)].map((one) => (
                          <RuleValue
                            key={one}
                            schema={schemaOf(one)}
                            text={textOf(one)}
                            wrong={meantBy(one) === undefined}
                            onText={(text) => setTexts({ ...texts, [one]: text })}
                          />
                        ))}
                </span>
              </li>
            ))}
        </ul>
        {error ? <Fault error={error} /> : null}
        <div>
          <Button type="submit" look="primary" busy={busy} disabled={wrong}>
            Save
          </Button>
        </div>
      </form>
    </Card>
  )
}

function without<T>(set: ReadonlySet<T>, one: T): Set<T> {
  return new Set([...set].filter((other) => other !== one))
}

function RuleValue(props: { schema: RuleSchema; text: string; wrong: boolean; onText: (text: string) => void }) {
  const { title, unit = '', usual, after } = props.schema
  return (
    <>
      {after ? <span className="nowrap">{title}</span> : null}
      <TextField
        quiet
        label={`${title}, in ${unit}`}
        inputMode="decimal"
        value={props.text}
        onText={props.onText}
        fault={props.wrong ? `Such as ${usual}.` : undefined}
      />
      <span>{unit}</span>
    </>
  )
}

const KINDS: readonly (readonly [Receiver['kind'], string, string])[] = [
  ['webhook', 'Webhook (signed)', 'https://example.com/alerts'],
  ['slack', 'Slack-compatible webhook', 'https://hooks.slack.com/services/…'],
  ['email', 'Email', 'ada@example.com'],
]

const STATUSES = { waiting: 'Waiting for confirmation', unsubscribed: 'Unsubscribed' }

function ReceiversCard({ account, settings }: CardProps) {
  const [kind, setKind] = useState<Receiver['kind']>('webhook')
  const [to, setTo] = useState('')
  const { receivers } = settings
  const operates = useMay()('alert-settings:write')
  const change = (next: readonly Receiver[]) => save(account, { ...settings, receivers: [...next] })
  const adding = useSubmit(async () => {
    await change([...receivers, { kind, to: to.trim() }])
    setTo('')
  })
  const removing = useAction((_signal, gone: Receiver) => change(receivers.filter((one) => one !== gone)))
  const testing = useAction(async () => {
    await api.testAlerts(account)
    toast('A test alert is on its way.')
    refresh('alerts/')
  })
  const error = adding.error ?? removing.error ?? testing.error
  return (
    <Card
      right="alert-settings:write"
      account={account}
      title="Receivers"
      lead="Alerts are sent here in addition to the bell, up to ten receivers. An email address of nobody who is a member confirms it once by a link. Webhooks are signed with the account’s secret."
      actions={
        <Button
          right="alert-settings:write"
          account={account}
          icon="send"
          busy={testing.busy}
          disabled={receivers.length === 0}
          onClick={() => void testing.go()}
        >
          Send a test
        </Button>
      }
    >
      <div className="stack">
        {receivers.length === 0 ? <p className="muted">No receivers: alerts appear in the console only.</p> : null}
        <ul className="rule-list">
          {receivers.map((one) => (
            <li key={`${one.kind} ${one.to}`}>
              <Badge>{one.kind}</Badge>
              <span className="name">{one.to}</span>
              {one.status === 'active' ? null : <Badge tone="warn">{STATUSES[one.status]}</Badge>}
              <span>
                <IconButton icon="trash" label={`Remove ${one.to}`} onClick={() => void removing.go(one)} />
              </span>
            </li>
          ))}
        </ul>
        <form className="receiver-form" onSubmit={adding.onSubmit}>
          <SelectField
            label="Kind"
            value={kind}
            onText={(text) => setKind(KINDS.find(([name]) => name === text)?.[0] ?? 'webhook')}
            options={KINDS.map(([name, label]) => [name, label] as const)}
          />
          <TextField
            label="Address"
            value={to}
            onText={setTo}
            maxLength={500}
            placeholder={KINDS.find(([name]) => name === kind)?.[2]}
            hint={
              operates && kind !== 'email' ? 'Private addresses must be listed in TOLLGATE_OUTBOUND_ALLOW.' : undefined
            }
            required
          />
          <Button type="submit" icon="plus" busy={adding.busy} disabled={receivers.length >= 10}>
            Add
          </Button>
        </form>
        {error ? <Fault error={error} /> : null}
      </div>
    </Card>
  )
}

const SHOWN = 20
const EVERY_MS = 3000

function Deliveries({ account }: { account: string | undefined }) {
  const list = useList(
    `alerts/${account ?? 'gateway'}/deliveries`,
    (_, signal) => api.alerts(account, { ...(account ? {} : { of: 'gateway' as const }), limit: SHOWN }, signal),
    { everyMs: EVERY_MS },
  )
  const rows = (list.data ?? []).flatMap(({ deliveries }) => deliveries)
  return (
    <Card
      flush
      title="Deliveries"
      lead="Deliveries of the newest alerts. Failed ones are retried for about six hours, with doubling pauses."
    >
      {rows.length ? <DeliveryTable account={account} rows={rows} /> : <p className="card-note muted">None yet.</p>}
    </Card>
  )
}
