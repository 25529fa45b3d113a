// The one bar of filters for calls. It lives in the address, and everything on the page is about the calls that it
// means.
import { type ReactNode, useEffect, useEffectEvent, useState } from 'react'
import { api, CALL_FILTERS, type CallFilter } from '../api.ts'
import { formatMoment } from '../format.ts'
import { PERIODS, spanOf } from '../period.ts'
import { useQuery } from '../query.ts'
import { setQuery, useLocation } from '../router.tsx'
import { withoutSecrets } from '../secret.ts'
import { useMay } from '../session.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { FilterBar } from '../ui/filter-bar.tsx'
import { keyLabels } from './key-label.ts'
import { RangeFields } from './range-fields.tsx'

const ALL = ['', 'All'] as const
const OUTCOMES = {
  succeeded: 'Succeeded',
  failed: 'Failed',
  rejected: 'Rejected',
  settled: 'Charged',
  released: 'Not charged',
  expired: 'Expired',
}
const STATUSES = [
  ...(['2xx', '4xx', '5xx'] as const),
  ...(['200', '400', '401', '402', '403', '404', '408', '409', '413', '422', '429'] as const),
  ...(['499', '500', '502', '503', '504'] as const),
]
/** Names with values, as the API takes them. */
const LABELS = /^[A-Za-z][^=,]*=[^,]+(,[^=,]+=[^,]+)*$/
const TYPED_MS = 350

interface CallChoice {
  /** As the server takes it. */
  filter: CallFilter
  /** Something besides the time is chosen. */
  filtered: boolean
}

/** What the address says. */
export function useCallChoice(): CallChoice {
  const { query } = useLocation()
  const chosen = Object.fromEntries(CALL_FILTERS.map((name) => [name, query.get(name) ?? undefined]))
  const { from, to } = spanOf(query)
  const filtered = CALL_FILTERS.some((name) => name !== 'from' && name !== 'to' && chosen[name])
  return { filter: { ...chosen, from, to }, filtered: filtered || query.has('period') || query.has('from') }
}

export const clearFilters = () =>
  setQuery(Object.fromEntries([...CALL_FILTERS, 'period'].map((name) => [name, undefined])))

export function CallFilters({ account, choice }: { account: string | undefined; choice: CallChoice }) {
  const { query } = useLocation()
  const { filter, filtered } = choice
  const { period } = spanOf(query)
  const exact = exactSpan(query)
  return (
    <FilterBar
      filters={useFilters(account, filter)}
      filtered={filtered}
      onDrop={(name) => setQuery({ [name]: undefined })}
      onClear={clearFilters}
    >
      <TypedField name="q" label="Search" placeholder="Request id or error message" value={filter.q} />
      <SelectField
        label="Period"
        value={period}
        onText={(text) => setQuery({ period: text, ...(text === 'range' ? {} : { from: undefined, to: undefined }) })}
        options={PERIODS.map(({ value, label }) => [value, label] as const)}
      />
      {exact === undefined ? null : <p className="filters-note">{exact}</p>}
      {period === 'range' && exact === undefined ? (
        <RangeFields from={query.get('from') ?? undefined} to={query.get('to') ?? undefined} />
      ) : null}
    </FilterBar>
  )
}

/** The step of a chart, from which somebody came: no range of days. */
function exactSpan(query: URLSearchParams): string | undefined {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
  return /T/.test(from) && /T/.test(to) ? `${formatMoment(from)} – ${formatMoment(to)}` : undefined
}

/** In the order in which they are needed. */
function useFilters(account: string | undefined, filter: CallFilter) {
  const seesVendors = useMay()('vendors:read')
  const one = (name: FilterName, label: string, field: ReactNode) => [{ name, label, value: filter[name], field }]
  const choice = (name: FilterName, label: string, options: readonly Option[]) =>
    one(name, label, <Choice name={name} label={label} value={filter[name]} options={options} />)
  const owner = account ?? filter.account
  return [
    ...choice('outcome', 'Outcome', Object.entries(OUTCOMES)),
    ...choice('status', 'Status', STATUSES),
    ...(account === undefined ? one('account', 'Account', <AccountChoice value={filter.account} />) : []),
    ...one('product', 'Model', <ModelChoice value={filter.product} />),
    // Keys belong to an account: of all accounts together none can be chosen by its name.
    ...(owner || filter.key ? one('key', 'Key', <KeyChoice account={owner} value={filter.key} />) : []),
    ...one('endpoint', 'Endpoint', <EndpointChoice account={account} filter={filter} />),
    ...(seesVendors ? one('vendor', 'Vendor', <VendorChoice value={filter.vendor} />) : []),
    ...one(
      ...(['minMs', 'Min duration (ms)'] as const),
      <TypedField name="minMs" label="Min duration (ms)" value={filter.minMs} pattern={/^\d{1,9}$/} />,
    ),
    ...one(
      ...(['minCharged', 'Min credits'] as const),
      <TypedField name="minCharged" label="Min credits" value={filter.minCharged} pattern={/^\d{1,9}(\.\d{1,6})?$/} />,
    ),
    ...one(
      ...(['labels', 'Labels'] as const),
      <TypedField
        name="labels"
        label="Labels"
        placeholder="feature=chat, user=alice"
        value={filter.labels}
        pattern={LABELS}
        wrong="Such as feature=chat"
      />,
    ),
    ...(filter.client ? choice('client', 'Agent', []) : []),
    ...choice('test', 'Calls', [['true', 'Test keys']]),
  ]
}

type Option = string | readonly [value: string, label: string]
type FilterName = (typeof CALL_FILTERS)[number]

/** What the address names stays selectable, also when the list does not have it. */
function Choice(props: { name: FilterName; label: string; value: string | undefined; options: readonly Option[] }) {
  const { name, label, value, options } = props
  const known = options.some((option) => (typeof option === 'string' ? option : option[0]) === value)
  return (
    <SelectField
      label={label}
      value={value ?? ''}
      onText={(text) => setQuery({ [name]: text })}
      options={[ALL, ...(value && !known ? [value] : []), ...options]}
    />
  )
}

function AccountChoice({ value }: { value: string | undefined }) {
  const accounts = useQuery('accounts/filter', (signal) => api.accounts({ limit: 200 }, signal))
  const options = accounts.data?.items.map(({ id, name }) => [id, name] as const) ?? []
  return <Choice name="account" label="Account" value={value} options={options} />
}

function ModelChoice({ value }: { value: string | undefined }) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const products = [
    ...new Set([
      ...(catalog.data?.models.map((model) => model.uid) ?? []),
      ...(catalog.data?.endpoints.map((endpoint) => endpoint.product) ?? []),
    ]),
  ]
  return <Choice name="product" label="Model" value={value} options={products} />
}

function KeyChoice({ account, value }: { account: string | undefined; value: string | undefined }) {
  return <Choice name="key" label="Key" value={value} options={[...useKeyLabels(account)]} />
}

export function useKeyLabels(account: string | undefined): Map<string, string> {
  const keys = useQuery(account === undefined ? undefined : `keys/${account}/choice`, (signal) =>
    api.keys(account ?? '', { limit: 200 }, signal),
  )
  return keyLabels(keys.data?.items ?? [])
}

/** Those that were called in the period. */
function EndpointChoice({ account, filter }: { account: string | undefined; filter: CallFilter }) {
  const { from, to, test } = filter
  const sums = useQuery(`sums/${account}/endpoints/${from}/${to}/${test}`, (signal) =>
    api.sums(account, { from, to, test, by: 'endpoint', per: 'day' }, signal),
  )
  const names = sums.data?.groups.map(({ group }) => group).filter(Boolean) ?? []
  return <Choice name="endpoint" label="Endpoint" value={filter.endpoint} options={names.toSorted()} />
}

function VendorChoice({ value }: { value: string | undefined }) {
  const vendors = useQuery('vendors', api.vendors)
  return (
    <Choice name="vendor" label="Vendor" value={value} options={vendors.data?.items.map(({ name }) => name) ?? []} />
  )
}

/** What is typed goes into the address when its reader pauses; what cannot be meant is marked and goes nowhere. */
function TypedField(props: {
  name: FilterName
  label: string
  value: string | undefined
  placeholder?: string
  pattern?: RegExp
  /** What a text that cannot be meant is. */
  wrong?: string
}) {
  const { name, label, value = '', placeholder, pattern, wrong } = props
  const [text, setText] = useState(value)
  const [told, setTold] = useState(value)
  // The address was changed by something else: a link, a saved view, the button that clears.
  if (told !== value) {
    setTold(value)
    setText(value)
  }
  const isWrong = Boolean(text && pattern && !pattern.test(text))
  const tell = useEffectEvent(() => {
    const said = withoutSecrets(text.trim())
    if (isWrong || said === value) return
    setTold(said)
    setQuery({ [name]: said })
  })
  useEffect(() => {
    const timer = window.setTimeout(() => tell(), TYPED_MS)
    return () => window.clearTimeout(timer)
  }, [text])
  return (
    <TextField
      label={label}
      value={text}
      placeholder={placeholder}
      inputMode={pattern && !wrong ? 'decimal' : undefined}
      fault={isWrong ? (wrong ?? 'Not a number') : undefined}
      onText={setText}
    />
  )
}
