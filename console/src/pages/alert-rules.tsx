// The rules of alerts and who is told, by form.
import { useState } from 'react'
import { api } from '../api.ts'
import { parseCredits } from '../credits.ts'
import { refresh, useList, useQuery } from '../query.ts'
import { useAction, useSubmit } from '../ui/action.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { SelectField, Switch, TextField } from '../ui/field.tsx'
import { Badge, Card } from '../ui/page.tsx'
import { Fault, Loaded } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import type { AlertRules, AlertSettings, Receiver } from '../wire.ts'
import { DeliveryTable } from './deliveries.tsx'

type Name = keyof AlertRules

interface RuleWords {
  label: string
  /** Only the gateway's own rules have it; the others are those of accounts. */
  gateway?: boolean
  value?: { unit: string; usual: string; read: (text: string) => AlertRules[Name] | undefined }
}

const within = (from: number, to: number) => (text: string) => {
  const value = Number(text)
  return text.trim() !== '' && value >= from && value <= to ? value : undefined
}
const percents = (text: string) => {
  const list = text.split(/[\s,;%]+/).filter(Boolean)
  const values = list.map(Number)
  return list.length > 0 && values.every((one) => Number.isInteger(one) && one >= 1 && one <= 100) ? values : undefined
}
const amount = (text: string) => {
  const value = parseCredits(text)
  return value !== undefined && value >= 0n ? text.trim() : undefined
}

const labelAmounts = (text: string) => {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter(Boolean)
    .map((pair) => pair.split('='))
  const isMeant = ([name = '', value = '', ...rest]: string[]) =>
    /^[A-Za-z][\w.:/-]{0,63}$/.test(name) && (parseCredits(value) ?? 0n) > 0n && rest.length === 0
  return pairs.length > 0 && pairs.every(isMeant) ? Object.fromEntries(pairs) : undefined
}

/** `failureCalls` is a second value of the rule before it. */
const RULES: Record<Exclude<Name, 'failureCalls'>, RuleWords> = {
  balanceBelow: { label: 'Fewer credits are available than', value: { unit: 'credits', usual: '100', read: amount } },
  balanceDays: {
    label: 'At last week’s rate the balance is used up within',
    value: { unit: 'days', usual: '3', read: within(0.1, 365) },
  },
  limitShares: {
    label: 'A spending limit of the account or a key reaches',
    value: { unit: '%', usual: '50, 80, 100', read: percents },
  },
  labelSpend: {
    label: 'One value of a label spends in 24 hours',
    value: { unit: 'credits', usual: 'user=5', read: labelAmounts },
  },
  failurePercent: {
    label: 'Failing calls in two hours reach',
    value: { unit: '%', usual: '50', read: within(1, 100) },
  },
  keyDays: { label: 'A key expires within', value: { unit: 'days', usual: '7', read: within(0.1, 365) } },
  jobFailed: { label: 'A job failed' },
  vendorOpen: { label: 'The circuit breaker of a vendor is open', gateway: true },
  vendorOverrun: { label: 'A vendor bills more output than its cap', gateway: true },
  verification: { label: 'A check of the ledger or the audit log found problems or did not finish', gateway: true },
  exportPaused: { label: 'An export of usage is paused because its receiver rejected it', gateway: true },
  payments: { label: 'A payment is quarantined, or payments differ from the payment provider’s list', gateway: true },
}
const NAMES = Object.keys(RULES) as Exclude<Name, 'failureCalls'>[] // the table has no others

const isOn = (value: AlertRules[Name]) =>
  value !== null && value !== false && !(typeof value === 'object' && Object.keys(value).length === 0)
const shown = (value: AlertRules[Name]) =>
  Array.isArray(value)
    ? value.join(', ')
    : typeof value === 'object' && value !== null
      ? Object.entries(value)
          .map((pair) => pair.join('='))
          .join(', ')
      : String(value)
const OFF: Partial<AlertRules> = {
  labelSpend: {},
  limitShares: [],
  jobFailed: false,
  vendorOpen: false,
  vendorOverrun: false,
  verification: false,
  exportPaused: false,
  payments: false,
}

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

async function save(account: string | undefined, settings: AlertSettings): Promise<void> {
  await api.changeAlerts(account, settings)
  refresh(`alert-settings/${account ?? ''}`)
}

interface CardProps {
  account: string | undefined
  settings: AlertSettings
}

function RulesCard({ account, settings }: CardProps) {
  const names = NAMES.filter((name) => (RULES[name].gateway ?? false) === (account === undefined))
  const [on, setOn] = useState(() => new Set<Name>(names.filter((name) => isOn(settings.rules[name]))))
  const [texts, setTexts] = useState<Partial<Record<Name, string>>>({})
  const [calls, setCalls] = useState(String(settings.rules.failureCalls))
  const textOf = (name: Name) => {
    const known = settings.rules[name]
    return texts[name] ?? (isOn(known) ? shown(known) : undefined)
  }
  const meantBy = (name: (typeof NAMES)[number]) => {
    const { value } = RULES[name]
    if (!on.has(name)) return OFF[name] ?? null
    return value ? value.read(textOf(name) ?? value.usual) : true
  }
  const failureCalls = within(1, 1_000_000)(calls)
  const values = names.map((name) => [name, meantBy(name)] as const)
  const wrong = values.some(([, value]) => value === undefined) || failureCalls === undefined
  const { busy, error, onSubmit } = useSubmit(async () => {
    const rules = { ...settings.rules, ...Object.fromEntries(values), failureCalls: Math.round(failureCalls ?? 1) }
    await save(account, { ...settings, rules })
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
          {names.map((name) => (
            <li key={name}>
              <Switch
                label={RULES[name].label}
                on={on.has(name)}
                onSwitch={(next) => setOn((old) => (next ? new Set([...old, name]) : without(old, name)))}
              />
              <span>{RULES[name].label}</span>
              <RuleValue
                words={RULES[name]}
                text={on.has(name) ? (textOf(name) ?? RULES[name].value?.usual ?? '') : undefined}
                wrong={meantBy(name) === undefined}
                onText={(text) => setTexts({ ...texts, [name]: text })}
              >
                {name === 'failurePercent' ? (
                  <>
                    <span className="nowrap">of at least</span>
                    <TextField quiet label="Calls at least" inputMode="numeric" value={calls} onText={setCalls} />
                    <span>calls</span>
                  </>
                ) : null}
              </RuleValue>
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

/** An undefined text: the rule is off. */
function RuleValue(props: {
  words: RuleWords
  text: string | undefined
  wrong: boolean
  onText: (text: string) => void
  children?: React.ReactNode
}) {
  const { value, label } = props.words
  if (props.text === undefined) return <span className="rule-values muted">off</span>
  if (!value) return <span className="rule-values muted">on</span>
  return (
    <span className="rule-values">
      <TextField
        quiet
        label={`${label}, in ${value.unit}`}
        inputMode="decimal"
        value={props.text}
        onText={props.onText}
        fault={props.wrong ? `Such as ${value.usual}.` : undefined}
      />
      <span>{value.unit}</span>
      {props.children}
    </span>
  )
}

const KINDS: readonly (readonly [Receiver['kind'], string, string])[] = [
  ['webhook', 'Webhook, signed', 'https://example.com/alerts'],
  ['slack', 'Slack-compatible webhook', 'https://hooks.slack.com/services/…'],
  ['email', 'E-mail', 'ada@example.com'],
]

function ReceiversCard({ account, settings }: CardProps) {
  const [kind, setKind] = useState<Receiver['kind']>('webhook')
  const [to, setTo] = useState('')
  const { receivers } = settings
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
      lead="Alerts are sent here in addition to the bell, up to ten receivers. Webhooks are signed with the account’s secret."
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
