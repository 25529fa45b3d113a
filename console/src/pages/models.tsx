import { useDeferredValue, useState } from 'react'
import { api } from '../api.ts'
import { formatCompact } from '../format.ts'
import { priceWords } from '../pricing.ts'
import { useQuery } from '../query.ts'
import { setQuery, useLocation } from '../router.tsx'
import { SearchField, Segments } from '../ui/field.tsx'
import { Marked } from '../ui/mark.tsx'
import { Badge, Badges, Card, Page } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { Named, Table } from '../ui/table.tsx'
import type { ModelType, Pricing, PublicCatalog } from '../wire.ts'

/** Models and data endpoints are one list: whatever has a price can be called. */
interface Offer {
  uid: string
  name: string
  /** Of a data endpoint: what it belongs to. */
  family: string
  type: ModelType
  pricing: Pricing | null
  detail: string
  marks: readonly string[]
  simulated: boolean
}

export function typeName(type: string): string {
  return type.charAt(0).toUpperCase() + type.slice(1)
}

export function ModelsPage({ account }: { account: string }) {
  const { query } = useLocation()
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const [text, setText] = useState(query.get('q') ?? '')
  const sought = useDeferredValue(text.trim().toLowerCase())
  const all = catalog.data ? offersOf(catalog.data) : []
  const types = ['all', ...new Set<string>(all.map((offer) => offer.type))]
  const type = types.find((one) => one === query.get('type')) ?? 'all'
  return (
    <Page
      title="Models"
      lead={
        <>
          Everything that this gateway offers right now, with current prices in credits.{' '}
          <a href="/docs/guides/billing#models-and-their-families">What the family names stand for</a>
        </>
      }
    >
      <div className="row-spread">
        <SearchField label="Search models" text={text} onText={setText} />
        <Segments
          label="Type"
          value={type}
          options={types.map((value) => ({ value, label: typeName(value) }))}
          onPick={(value) => setQuery({ type: value === 'all' ? undefined : value })}
        />
      </div>
      <Card flush>
        <Loaded query={catalog}>
          {() => {
            const offers = all.filter(
              (offer) =>
                (type === 'all' || offer.type === type) && `${offer.uid} ${offer.name}`.toLowerCase().includes(sought),
            )
            return offers.length === 0 ? (
              <Empty icon="search" title="Nothing found">
                <p>Try another word, or all types.</p>
              </Empty>
            ) : (
              <OfferTable account={account} offers={offers} />
            )
          }}
        </Loaded>
      </Card>
    </Page>
  )
}

function OfferTable({ account, offers }: { account: string; offers: readonly Offer[] }) {
  const to = (offer: Offer) => `/a/${encodeURIComponent(account)}/models/${encodeURIComponent(offer.uid)}`
  return (
    <Table
      label="Models"
      rows={offers}
      rowKey={(offer) => offer.uid}
      to={to}
      columns={[
        {
          head: 'Model',
          main: true,
          cell: (offer) => (
            <Marked by={offer.family}>
              <Named to={to(offer)} name={offer.name} sub={offer.uid} />
            </Marked>
          ),
        },
        {
          head: 'Type',
          cell: (offer) => (
            <span className="badges">
              <Badge>{typeName(offer.type)}</Badge>
              {offer.simulated ? <SimulatedBadge /> : null}
            </span>
          ),
          tight: true,
        },
        { head: 'Price', cell: (offer) => <Price pricing={offer.pricing} />, tight: true },
        {
          head: 'Context',
          cell: (offer) => offer.detail || <span className="muted">–</span>,
          wideOnly: true,
          tight: true,
        },
        { head: 'Capabilities', wideOnly: true, cell: (offer) => <Badges names={offer.marks.slice(0, 4)} /> },
      ]}
    />
  )
}

export function SimulatedBadge() {
  return <Badge tone="busy">Simulated</Badge>
}

export function Price({ pricing }: { pricing: Pricing | null }) {
  const { amount, per } = priceWords(pricing)
  return (
    <>
      {amount}
      <span className="cell-sub">{per}</span>
    </>
  )
}

function offersOf(catalog: PublicCatalog): Offer[] {
  const models = catalog.models
    .filter((model) => model.type !== 'data')
    .map((model) => ({
      uid: model.uid,
      name: model.name,
      family: model.family,
      type: model.type,
      pricing: model.pricing,
      detail: model.limits?.contextTokens ? `${formatCompact(model.limits.contextTokens)} tokens` : '',
      // What every model of its kind can do tells nothing.
      simulated: model.simulated,
      marks: (model.capabilities ?? []).filter((name) => !/^(text|streaming|generation|text-to-video)$/.test(name)),
    }))
  const endpoints = catalog.endpoints.map((endpoint) => ({
    uid: endpoint.id,
    name: endpoint.title,
    family: endpoint.id,
    type: 'data' as const,
    pricing: endpoint.pricing,
    detail: '',
    marks: [],
    simulated: endpoint.simulated,
  }))
  return [...models, ...endpoints]
}
