// One vendor: how it is, why calls fail there, what it serves, its credentials and its settings.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatMs, formatWhole, plural } from '../../format.ts'
import { refresh, useQuery } from '../../query.ts'
import { Link, navigate } from '../../router.tsx'
import { useSession } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Ago, Badge, Card, Facts, Note, Page } from '../../ui/page.tsx'
import { Empty, Fault, Loaded, Skeleton } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Catalog, Vendor, VendorCheck, VendorTest } from '../../wire.ts'
import { Price } from '../models.tsx'
import { Changes, catalogChanged } from './review.tsx'
import { TestReport } from './test-report.tsx'
import { CredentialDialog, CredentialTable } from './vendor-credentials.tsx'
import { VendorFailures } from './vendor-errors.tsx'
import { VendorHealth } from './vendor-history.tsx'
import { VendorSettings } from './vendor-settings.tsx'
import { CredentialBadge, StateBadge, servedBy } from './vendors.tsx'

export function VendorPage({ vendor: name }: { vendor: string }) {
  const vendors = useQuery('vendors', api.vendors, { everyMs: 5000 })
  const catalog = useQuery('catalog', api.catalog)
  const vendor = vendors.data?.items.find((one) => one.name === name)
  if (vendor && catalog.data) return <OneVendor vendor={vendor} catalog={catalog.data} />
  return (
    <Page title={name} back={BACK}>
      <Loaded query={vendors} skeleton={<Skeleton lines={4} like="tall" />}>
        {() => (
          <Loaded query={catalog} skeleton={<Skeleton lines={4} like="tall" />}>
            {() => <Empty icon="vendors" title="The catalog has no vendor of this name" />}
          </Loaded>
        )}
      </Loaded>
    </Page>
  )
}

const BACK = { to: '/operator/vendors', label: 'Vendors' }

function OneVendor({ vendor, catalog }: { vendor: Vendor; catalog: Catalog }) {
  const canConnect = useSession().extensions.includes('connect')
  const [test, setTest] = useState<VendorTest>()
  const [removing, setRemoving] = useState<VendorCheck>()
  const { name } = vendor
  const testing = useAction(async () => {
    setTest(undefined)
    setTest(await api.testVendor(name))
    refresh('vendors')
  })
  const checking = useAction(async () => setRemoving(await api.checkRemoval(name)))
  return (
    <Page
      title={name}
      lead={<code>{vendor.baseUrl}</code>}
      back={BACK}
      actions={
        <>
          <Button right="vendors:write" icon="live" busy={testing.busy} onClick={() => testing.go()}>
            Test
          </Button>
          {vendor.simulated || !canConnect ? null : (
            <LinkButton
              right="vendors:write"
              icon="plus"
              to={`/operator/vendors/new?vendor=${encodeURIComponent(name)}`}
            >
              Add models
            </LinkButton>
          )}
          {canConnect ? (
            <Button right="vendors:write" icon="trash" busy={checking.busy} onClick={() => checking.go()}>
              Remove
            </Button>
          ) : null}
        </>
      }
    >
      {checking.error ? <Fault error={checking.error} /> : null}
      <Card>
        <div className="badges">
          <StateBadge vendor={vendor} test={test} />
          {vendor.simulated ? <Badge tone="busy">Simulated</Badge> : null}
          <CredentialBadge vendor={vendor} />
        </div>
        {vendor.reason ? (
          <Note tone="warn">
            Calls take other routes where there are some, because {vendor.reason}{' '}
            <span className="muted">
              (since <Ago at={vendor.since} />)
            </span>
          </Note>
        ) : null}
        <VendorFacts vendor={vendor} />
        <div role="status">{test ? <TestReport test={test} /> : null}</div>
        {testing.error ? <Fault error={testing.error} /> : null}
      </Card>
      <VendorHealth vendor={name} />
      <VendorFailures vendor={name} />
      <ModelsCard vendor={vendor} catalog={catalog} />
      <BridgeCard name={name} catalog={catalog} />
      <CredentialsCard vendor={vendor} />
      {canConnect ? <VendorSettings key={catalog.version} name={name} catalog={catalog} /> : null}
      {removing ? (
        <Removal name={name} check={removing} catalog={catalog} onClose={() => setRemoving(undefined)} />
      ) : null}
    </Page>
  )
}

function VendorFacts({ vendor }: { vendor: Vendor }) {
  const { recent, lastTest } = vendor
  return (
    <Facts
      items={[
        [
          `Last ${recent.minutes || 10} min`,
          recent.requests ? `${formatWhole(recent.errors)} of ${plural(recent.requests, 'call')} failed` : 'No calls',
        ],
        ['In flight', formatWhole(vendor.inFlight)],
        ['Latency p50', formatMs(vendor.latencyMsP50)],
        ['Latency p95', formatMs(vendor.latencyMsP95)],
        ['Last call', <Ago key="l" at={vendor.lastAt} none="None yet" />],
        ['Probe', <ProbeFact key="p" probe={vendor.probe} />],
        [
          'Last test',
          lastTest ? (
            <span key="t" title={lastTest.message}>
              {lastTest.ok ? 'worked' : 'failed'}, <Ago at={lastTest.at} />
            </span>
          ) : (
            'None yet'
          ),
        ],
      ]}
    />
  )
}

const PROBE_LABELS = {
  answering: 'answers',
  failing: 'fails',
  rejected: 'credential rejected',
  unsupported: 'not possible',
  waiting: 'none yet',
} as const

function ProbeFact({ probe }: { probe: Vendor['probe'] }) {
  if (!probe) return 'Off'
  const { state, message, since, latencyMs } = probe
  return (
    <span title={message}>
      {PROBE_LABELS[state]}
      {state === 'answering' && latencyMs !== null ? ` in ${formatMs(latencyMs)}` : null}
      {state === 'answering' ? null : `: ${message}`}
      {since ? (
        <span className="muted">
          {' '}
          (since <Ago at={since} />)
        </span>
      ) : null}
    </span>
  )
}

/** Of a vendor with a bridge: the endpoints that it answers, and those that nobody does. */
function BridgeCard({ name, catalog }: { name: string; catalog: Catalog }) {
  const { vendors, endpoints } = catalog.document
  const bridge = vendors[name]?.bridge
  if (!bridge) return null
  const unserved = Object.keys(endpoints).filter((uid) =>
    endpoints[uid]?.routes.every((route) => route.enabled === false),
  )
  return (
    <Card
      flush
      title="Endpoints"
      lead={
        unserved.length ? `Served by no vendor, and answered with the error 50001: ${unserved.join(', ')}.` : undefined
      }
    >
      <Table
        label={`Endpoints of ${name}`}
        rows={Object.entries(bridge.endpoints)}
        rowKey={([uid]) => uid}
        columns={[
          { head: 'Endpoint', cell: ([uid]) => <code>{uid}</code> },
          { head: 'What differs', cell: ([, { note }]) => note ?? '' },
        ]}
      />
    </Card>
  )
}

function ModelsCard({ vendor: { name }, catalog }: { vendor: Vendor; catalog: Catalog }) {
  const served = servedBy(name, catalog)
  const costOf = ({ routes }: (typeof served)[number]) => routes.find((route) => route.vendor === name)?.cost ?? null
  return (
    <Card flush title="Models" lead={served.length ? undefined : 'No model has a route to it.'}>
      {served.length ? (
        <Table
          label={`Models of ${name}`}
          rows={served}
          rowKey={({ uid }) => uid}
          columns={[
            { head: 'Model', main: true, cell: (row) => <Named name={row.name} sub={row.uid} /> },
            { head: 'Price', cell: ({ pricing }) => <Price pricing={pricing} />, tight: true },
            {
              head: 'Cost',
              cell: (row) => (costOf(row) ? <Price pricing={costOf(row)} /> : <span className="muted">Not known</span>),
              tight: true,
            },
            {
              head: 'Other vendors',
              cell: ({ routes }) => {
                const others = [...new Set(routes.map((route) => route.vendor))].filter((other) => other !== name)
                return others.length ? others.join(', ') : <Badge>Only this one</Badge>
              },
            },
          ]}
        />
      ) : null}
    </Card>
  )
}

/** What goes with it is said before anything goes. */
function Removal(props: { name: string; check: VendorCheck; catalog: Catalog; onClose: () => void }) {
  const { name, check, catalog, onClose } = props
  const { unservedProducts } = check
  return (
    <Confirm
      title={`Remove ${name}?`}
      action={unservedProducts.length ? `Remove it and ${plural(unservedProducts.length, 'model')}` : 'Remove'}
      wide
      danger
      run={async () => {
        const { version } = await api.removeVendor(name, unservedProducts.length > 0)
        toast(`${name} is removed. Saved as version ${version}.`)
        catalogChanged()
        navigate('/operator/vendors')
      }}
      onClose={onClose}
    >
      {unservedProducts.length ? (
        <Note tone="warn">
          <p>No other vendor serves these. They are no longer offered, and calls to them fail:</p>
          <p>
            <b>{unservedProducts.join(', ')}</b>
          </p>
        </Note>
      ) : (
        <p>Other vendors serve all of its models.</p>
      )}
      <p>
        Running jobs finish. A stored credential that no other vendor uses is deleted. The vendor can be brought back by
        rolling back the <Link to="/operator/catalog/versions">catalog</Link>; the credential cannot.
      </p>
      <Changes before={catalog.document} after={check.document} />
    </Confirm>
  )
}

function CredentialsCard({ vendor }: { vendor: Vendor }) {
  const [adding, setAdding] = useState(false)
  if (!vendor.credential.name) return null
  return (
    <Card
      flush
      title="Credentials"
      lead={
        vendor.credentials.length > 1
          ? 'Calls are shared by weight. A rejected or limited credential pauses, and the others stay in use. A call’s page says which one it used.'
          : undefined
      }
      actions={
        <Button right="vendor-credentials:write" icon="plus" onClick={() => setAdding(true)}>
          Add another credential
        </Button>
      }
    >
      <CredentialTable vendor={vendor} />
      {adding ? <CredentialDialog vendor={vendor} onClose={() => setAdding(false)} /> : null}
    </Card>
  )
}
