// All vendors, those that need somebody first. Each has a page of its own.
import { api } from '../../api.ts'
import { formatMs, formatPercent, formatWhole } from '../../format.ts'
import { useQuery } from '../../query.ts'
import { useSession } from '../../session.tsx'
import { LinkButton } from '../../ui/button.tsx'
import { Marked } from '../../ui/mark.tsx'
import { Badge, Card, Page } from '../../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import type { Catalog, Vendor, VendorHistory } from '../../wire.ts'
import { vendorState, worstFirst } from './vendor-state.ts'

export const vendorPath = (name: string) => `/operator/vendors/${encodeURIComponent(name)}`

export function VendorsPage() {
  const canConnect = useSession().extensions.includes('connect')
  const vendors = useQuery('vendors', api.vendors, { everyMs: 5000 })
  const history = useQuery('vendor-history/24', (signal) => api.vendorHistory(24, signal), { everyMs: 10_000 })
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Page
      title="Vendors"
      lead="Where calls are sent. A circuit breaker opens when a vendor has failed several times in a row; calls then take another route for a while."
      actions={
        canConnect ? (
          <LinkButton right="vendors:write" look="primary" icon="plus" to="/operator/vendors/new">
            Add vendor
          </LinkButton>
        ) : null
      }
    >
      <Card flush>
        <Loaded query={vendors} skeleton={<Skeleton lines={3} like="tall" />}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon="vendors" title="No vendors yet">
                <p>Add one to offer its models.</p>
              </Empty>
            ) : (
              <VendorTable vendors={worstFirst(items)} history={history.data?.items ?? []} catalog={catalog.data} />
            )
          }
        </Loaded>
      </Card>
    </Page>
  )
}

function VendorTable(props: {
  vendors: readonly Vendor[]
  history: readonly VendorHistory[]
  catalog: Catalog | undefined
}) {
  const { vendors, history, catalog } = props
  const dayOf = (vendor: Vendor) => {
    const hours = history.find((one) => one.vendor === vendor.name)?.hours ?? []
    const sum = (of: 'requests' | 'errors') => hours.reduce((all, hour) => all + hour[of], 0)
    return { calls: sum('requests'), errors: sum('errors') }
  }
  const modelsOf = (vendor: Vendor) => (catalog ? servedBy(vendor.name, catalog).length : 0)
  return (
    <Table
      label="Vendors"
      rows={vendors}
      rowKey={({ name }) => name}
      to={({ name }) => vendorPath(name)}
      columns={[
        {
          head: 'Vendor',
          main: true,
          cell: ({ name, baseUrl, simulated }) => (
            <Marked by={name}>
              <Named name={name} to={vendorPath(name)} sub={simulated ? 'simulated' : baseUrl} />
            </Marked>
          ),
        },
        {
          head: 'State',
          cell: (vendor) => <StateBadge vendor={vendor} />,
          sort: (vendor) => vendorState(vendor).worry,
        },
        { head: 'Models', right: true, cell: modelsOf, sort: modelsOf },
        {
          head: 'Calls, 24 h',
          right: true,
          cell: (vendor) => formatWhole(dayOf(vendor).calls),
          sort: (vendor) => dayOf(vendor).calls,
        },
        {
          head: 'Failed, 24 h',
          right: true,
          cell: (vendor) => {
            const { calls, errors } = dayOf(vendor)
            return errors ? `${formatWhole(errors)} (${formatPercent(errors / calls)})` : '0'
          },
          sort: (vendor) => dayOf(vendor).errors,
        },
        {
          head: 'Latency p50',
          right: true,
          cell: ({ latencyMsP50 }) => formatMs(latencyMsP50),
          sort: ({ latencyMsP50 }) => latencyMsP50 ?? 0,
        },
      ]}
    />
  )
}

/** What has a route to it: whether others serve it as well, and what it takes. */
export function servedBy(vendor: string, { document: { models, endpoints } }: Catalog) {
  const products = [
    ...Object.entries(models).map(([uid, { name, pricing, routes }]) => ({ uid, name, pricing, routes })),
    ...Object.entries(endpoints).map(([uid, { pricing, routes }]) => ({ uid, name: uid, pricing, routes })),
  ]
  return products.filter(({ routes }) => routes.some((route) => route.vendor === vendor))
}

export function StateBadge({ vendor, test }: { vendor: Vendor; test?: { ok: boolean } | undefined }) {
  const { tone, label } = vendorState(vendor, test)
  return (
    <span className="badges">
      <Badge tone={tone}>{label}</Badge>
    </span>
  )
}

export function CredentialBadge({ vendor: { credential, credentials, simulated } }: { vendor: Vendor }) {
  if (credentials.length > 1) {
    const usable = credentials.filter(({ present, disabledUntil }) => present && disabledUntil === null).length
    return (
      <Badge tone={usable < credentials.length ? 'warn' : 'calm'}>
        {usable} of {credentials.length} credentials in use
      </Badge>
    )
  }
  // The simulated vendors take any caller; a warning on each would hide the one that matters.
  if (!credential.name || (simulated && !credential.present)) return <Badge>No credential needed</Badge>
  if (!credential.present) return <Badge tone="warn">{credential.name} is missing</Badge>
  return (
    <Badge>
      {credential.name} {credential.source === 'env' ? 'from the environment' : 'stored'}
    </Badge>
  )
}
