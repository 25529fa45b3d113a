// The parts that pages are made of.
import { createContext, Fragment, type ReactNode, useContext, useId, useSyncExternalStore } from 'react'
import { useTitle } from '../branding.ts'
import {
  amountsIn,
  briefCredits,
  FEW,
  formatCredits,
  inMoney,
  parseCredits,
  shownCurrency,
  worthCurrency,
} from '../credits.ts'
import { formatAgo, formatClock, formatMoment, formatTime, zoneAt } from '../format.ts'
import type { Section } from '../navigation.ts'
import { Link, useLocation } from '../router.tsx'
import { AllowedFields, type Needs } from '../session.tsx'
import type { CreditWorth } from '../wire.ts'
import { localZoneName, setZone, useZone } from '../zone.ts'
import { Icon } from './icon.tsx'
import { RouteTabs } from './tabs.tsx'

/** The section of the menu to which the page belongs. */
export const SectionTabs = createContext<Section | undefined>(undefined)

export function Page({
  title,
  lead,
  actions,
  back,
  children,
}: {
  title: string
  lead?: ReactNode
  actions?: ReactNode
  back?: { to: string; label: string }
  children: ReactNode
}) {
  useTitle(title)
  return (
    <div className="page">
      <header className="page-head">
        <div className="page-title">
          {back ? (
            <Link to={back.to} className="back">
              <Icon name="left" size={14} /> {back.label}
            </Link>
          ) : null}
          <h1 tabIndex={-1}>{title}</h1>
          {lead ? <p className="lead">{lead}</p> : null}
        </div>
        {actions ? <div className="page-actions">{actions}</div> : null}
      </header>
      <SiblingPages />
      {children}
      <ZoneLine />
    </div>
  )
}

/** The pages of a section as tabs; what one of them leads to has its way back instead. */
function SiblingPages() {
  const { path } = useLocation()
  const section = useContext(SectionTabs)
  if (!section || section.pages.length < 2 || !section.pages.some(({ to }) => to === path)) return null
  const tabs = section.pages.map(({ to, label }) => ({ to, name: to, label }))
  return <RouteTabs label={section.label} current={path} tabs={tabs} />
}

/** Which zone the times of this page are in, and the way to the other one. */
function ZoneLine() {
  const utc = useZone() === 'utc'
  const own = localZoneName()
  const asMoney = amountsIn.use() === 'money'
  const currency = worthCurrency()
  // Where the reader's own zone is UTC there is nothing to choose.
  const same = own === 'UTC' || own === 'Etc/UTC'
  return (
    <p className="zone-line">
      <span className="zone-times">
        Times are in {utc || same ? 'UTC' : own}.{' '}
        {same ? null : (
          <button type="button" className="text-button" onClick={() => setZone(utc ? 'local' : 'utc')}>
            Show {utc ? own : 'UTC'}
          </button>
        )}
      </span>
      {currency === null ? null : (
        <>
          {' '}
          Amounts are in {asMoney ? currency : 'credits'}.{' '}
          <button type="button" className="text-button" onClick={() => amountsIn.set(asMoney ? 'credits' : 'money')}>
            Show {asMoney ? 'credits' : currency}
          </button>
        </>
      )}
    </p>
  )
}

/** With a right: a form of those who have it. Others see what is set, and why they cannot change it. */
export function Card({
  title,
  lead,
  actions,
  children,
  flush,
  right,
  account,
}: {
  title?: string | undefined
  lead?: ReactNode
  actions?: ReactNode
  children: ReactNode
  /** The content reaches the card's edges: tables. */
  flush?: boolean
} & Needs) {
  const id = useId()
  return (
    <section className={flush ? 'card card-flush' : 'card'} aria-labelledby={title ? id : undefined}>
      {title ? (
        <header className="card-head">
          <div>
            <h2 id={id}>{title}</h2>
            {lead ? <p className="card-lead">{lead}</p> : null}
          </div>
          {actions ? <div className="card-actions">{actions}</div> : null}
        </header>
      ) : null}
      {right ? (
        <AllowedFields right={right} account={account}>
          {children}
        </AllowedFields>
      ) : (
        children
      )}
    </section>
  )
}

/** `to`: where the calls behind the figure are. */
export function Stat({
  label,
  value,
  note,
  change,
  spark,
  to,
}: {
  label: string
  value: ReactNode
  note?: ReactNode
  /** Against the period before: "▲ 24 % vs. before". */
  change?: string
  /** How it went in the period. */
  spark?: readonly number[]
  to?: string | undefined
}) {
  const tone = change?.startsWith('▲') ? ' tone-text-good' : change?.startsWith('▼') ? ' tone-text-warn' : ''
  return (
    <div className="stat">
      <dt>{label}</dt>
      <dd>
        <span className="stat-value">
          {to === undefined ? (
            value
          ) : (
            <Link to={to} className="plain-link">
              {value}
              <span className="sr-only"> ({label.toLowerCase()}: show the calls)</span>
            </Link>
          )}
        </span>
        {change ? <span className={`stat-note stat-change${tone}`}>{change}</span> : null}
        {change && note ? <span className="stat-note"> · </span> : null}
        {note ? <span className="stat-note">{note}</span> : null}
        {spark && spark.length > 1 ? <Spark values={spark} /> : null}
      </dd>
    </div>
  )
}

/** A line without scales; the chart below has them. */
function Spark({ values }: { values: readonly number[] }) {
  const top = Math.max(...values) || 1
  const points = values.map((value, at) => `${(at * 100) / (values.length - 1)},${28 - (value / top) * 26}`)
  return (
    <svg className="stat-spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
      <polyline
        points={points.join(' ')}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  )
}

/** The credits of an account. */
export function Balance({ of }: { of: { balance: string; held: string; available: string } }) {
  return (
    <Stats>
      <Stat label="Balance" value={<Amount value={of.balance} decimals={2} />} note={shownCurrency() ?? 'credits'} />
      <Stat label="Held" value={<Amount value={of.held} decimals={2} />} note="for calls in flight" />
      <Stat label="Available" value={<Amount value={of.available} decimals={2} />} note="to spend now" />
    </Stats>
  )
}

export function Stats({ children }: { children: ReactNode }) {
  return <dl className="stats">{children}</dl>
}

export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'calm'

export function Badge({ tone = 'calm', children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge tone-${tone}`}>{children}</span>
}

export function Badges({ names, title }: { names: readonly string[]; title?: string | undefined }) {
  return (
    <span className="badges" title={title}>
      {names.map((name) => (
        <Badge key={name}>{name}</Badge>
      ))}
    </span>
  )
}

export function Facts({ items }: { items: readonly (readonly [string, ReactNode] | false)[] }) {
  return (
    <dl className="facts">
      {items
        .filter((item) => item !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

/**
 * Credits, and what they are worth beside them. The unit is said once by the heading around it, or here. Only
 * statements show every decimal.
 */
export function Amount({
  value,
  unit,
  decimals,
  exact,
  worth,
  sign,
}: {
  value: string | bigint
  unit?: boolean
  decimals?: number
  exact?: boolean
  /** Of a statement: what a credit was worth then. */
  worth?: CreditWorth | null
  /** Says of a gain that it is one. */
  sign?: boolean
}) {
  const money = inMoney(value, worth)
  const isMoney = !exact && money !== undefined && shownCurrency() !== undefined
  const isGain = sign && (typeof value === 'bigint' ? value : (parseCredits(value) ?? 0n)) > 0n
  return (
    <span className={isGain ? 'amount gain' : 'amount'} title={exact ? undefined : `${formatCredits(value)} credits`}>
      {isGain ? '+' : ''}
      {exact
        ? sixDecimals(value)
        : isMoney
          ? money
          : unit && decimals === undefined
            ? briefCredits(value)
            : formatCredits(value, decimals ?? FEW)}
      {unit && !isMoney ? <span className="amount-unit"> credits</span> : null}
      {money === undefined || isMoney ? null : <span className="amount-worth">{money}</span>}
    </span>
  )
}

/** So that points stand below each other. */
function sixDecimals(value: string | bigint): string {
  const shown = formatCredits(value, 6)
  return shown === '0' ? '0.000000' : shown
}

const ticks = new Set<() => void>()
let nowMs = Date.now()
window.setInterval(() => {
  nowMs = Date.now()
  for (const run of ticks) run()
}, 15_000)

/** The wall clock, refreshed every quarter of a minute: for texts such as "3 minutes ago". */
export function useNow(): number {
  return useSyncExternalStore(
    (run) => {
      ticks.add(run)
      return () => ticks.delete(run)
    },
    () => nowMs,
  )
}

export function Ago({ at, none = '–' }: { at: string | null | undefined; none?: string }) {
  const now = useNow()
  if (!at) return <span className="muted">{none}</span>
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatAgo(at, Math.max(now, 0))}
    </time>
  )
}

/** Ids are long and alike; their ends tell them apart. The whole one is in the title and can be copied elsewhere. */
export function ShortId({ id }: { id: string }) {
  return (
    <code title={id} className="nowrap">
      {id.length > 18 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id}
    </code>
  )
}

/** Names such as `siteanalytics/websites/visits` break at their slashes. */
export function Name({ text }: { text: string }) {
  const parts = text.split('/')
  return parts.map((part, index) => (
    <Fragment key={index}>
      {part}
      {index < parts.length - 1 ? (
        <>
          /<wbr />
        </>
      ) : null}
    </Fragment>
  ))
}

export function When({ at }: { at: string }) {
  return (
    <time dateTime={at} className="when" title={formatTime(at)}>
      {formatMoment(at)} <span className="zone">{zoneAt(at)}</span>
    </time>
  )
}

/** For what happened a moment ago: the time of day alone. */
export function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} className="when" title={formatTime(at)}>
      {formatClock(at)} <span className="zone">{zoneAt(at)}</span>
    </time>
  )
}

export function Note({ tone = 'info', children }: { tone?: 'info' | 'warn'; children: ReactNode }) {
  return (
    <div className={`note tone-${tone === 'info' ? 'busy' : tone}`}>
      <Icon name={tone === 'warn' ? 'warning' : 'info'} size={16} />
      <div>{children}</div>
    </div>
  )
}
