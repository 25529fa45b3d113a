import { useState } from 'react'
import { api } from '../../api.ts'
import { formatMs, formatPercent, formatWhole, plural } from '../../format.ts'
import { refresh, useQuery } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { Ago, Badge, Card, Facts, Page } from '../../ui/page.tsx'
import { Empty, Fault, Loaded, Skeleton } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Vendor, VendorHistory, VendorTest } from '../../wire.ts'
import { TestReport } from './test-report.tsx'
import { CredentialDialog, CredentialTable } from './vendor-credentials.tsx'
import { LastDay } from './vendor-history.tsx'
import { vendorState, worstFirst } from './vendor-state.ts'

export function VendorsPage() {
  const vendors = useQuery('vendors', api.vendors, { everyMs: 5000 })
  const history = useQuery('vendor-history', api.vendorHistory, { everyMs: 60_000 })
  return (
    <Page
      title="Vendors"
      lead="Where calls are sent. A circuit breaker opens when a vendor has failed several times in a row; calls then take another route for a while."
      actions={
        <LinkButton look="primary" icon="plus" to="/operator/vendors/new">
          Add vendor
        </LinkButton>
      }
    >
      <Loaded query={vendors} skeleton={<Skeleton lines={3} tall />}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="vendors" title="The catalog names no vendors" />
          ) : (
            <div className="vendor-grid">
              {worstFirst(items).map((vendor) => (
                <VendorCard
                  key={vendor.name}
                  vendor={vendor}
                  history={history.data?.items.find((one) => one.vendor === vendor.name)}
                />
              ))}
            </div>
          )
        }
      </Loaded>
    </Page>
  )
}

function VendorCard({ vendor, history }: { vendor: Vendor; history: VendorHistory | undefined }) {
  const [test, setTest] = useState<VendorTest>()
  const [asking, setAsking] = useState<'store' | 'remove' | 'add'>()
  const state = vendorState(vendor, test)
  const { credential } = vendor
  const { busy, error, go } = useAction(async () => {
    setTest(undefined)
    setTest(await api.testVendor(vendor.name))
    refresh('vendors')
  })
  const items: MenuItem[] = []
  const several = vendor.credentials.length > 1
  if (credential.name && !several)
    items.push({
      label: credential.source === 'stored' ? 'Replace the credential' : 'Store a credential',
      icon: 'key',
      run: () => setAsking('store'),
    })
  if (credential.name) items.push({ label: 'Add another credential', icon: 'plus', run: () => setAsking('add') })
  if (credential.source === 'stored' && !several)
    items.push({ label: 'Remove the credential', icon: 'trash', danger: true, run: () => setAsking('remove') })
  return (
    <Card
      title={vendor.name}
      lead={<code>{vendor.baseUrl}</code>}
      actions={
        <>
          <Button small icon="live" busy={busy} onClick={() => go()}>
            Test
          </Button>
          {items.length ? <Menu label={`Actions for ${vendor.name}`} items={items} /> : null}
        </>
      }
    >
      <div className="badges">
        <Badge tone={state.tone}>{state.label}</Badge>
        {vendor.simulated ? <Badge tone="busy">Simulated</Badge> : null}
        <CredentialBadge vendor={vendor} />
      </div>
      <Facts
        items={[
          ['Requests', formatWhole(vendor.requests)],
          [
            'Errors',
            vendor.requests ? `${formatWhole(vendor.errors)} (${formatPercent(vendor.errors / vendor.requests)})` : '–',
          ],
          [
            `Last ${vendor.recent.minutes || 10} min`,
            vendor.recent.requests
              ? `${formatWhole(vendor.recent.errors)} of ${plural(vendor.recent.requests, 'request')} failed`
              : 'no requests',
          ],
          ['In flight', formatWhole(vendor.inFlight)],
          ['Latency p50', formatMs(vendor.latencyMsP50)],
          ['Latency p95', formatMs(vendor.latencyMsP95)],
          ['Last call', <Ago key="l" at={vendor.lastAt} none="None yet" />],
          ['Last test', vendor.lastTest ? <LastTest key="t" test={vendor.lastTest} /> : 'none'],
        ]}
      />
      {vendor.lastError ? (
        <p className="small">
          <span className="muted">Last error:</span> {vendor.lastError}
        </p>
      ) : null}
      {several ? <CredentialTable vendor={vendor} /> : null}
      {history ? <LastDay history={history} /> : null}
      <div role="status">{test ? <TestReport test={test} /> : null}</div>
      {error ? <Fault error={error} /> : null}
      {asking === 'store' ? <StoreCredential vendor={vendor} onClose={() => setAsking(undefined)} /> : null}
      {asking === 'add' ? <CredentialDialog vendor={vendor} onClose={() => setAsking(undefined)} /> : null}
      {asking === 'remove' ? <RemoveCredential vendor={vendor} onClose={() => setAsking(undefined)} /> : null}
    </Card>
  )
}

function LastTest({ test }: { test: NonNullable<Vendor['lastTest']> }) {
  return (
    <span title={test.message}>
      {test.ok ? 'worked' : 'failed'}, <Ago at={test.at} />
    </span>
  )
}

function CredentialBadge({ vendor: { credential, credentials, simulated } }: { vendor: Vendor }) {
  if (credentials.length > 1) {
    const usable = credentials.filter(({ present, asideUntil }) => present && asideUntil === null).length
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

function RemoveCredential({ vendor, onClose }: { vendor: Vendor; onClose: () => void }) {
  return (
    <Confirm
      title="Remove the stored credential?"
      action="Remove"
      danger
      run={async () => {
        await api.removeCredential(vendor.name)
        toast('The credential was removed.')
        refresh('vendors')
      }}
      onClose={onClose}
    >
      <p>
        Calls to <b>{vendor.name}</b> will fail unless the environment variable <code>{vendor.credential.name}</code> is
        set.
      </p>
    </Confirm>
  )
}

function StoreCredential({ vendor, onClose }: { vendor: Vendor; onClose: () => void }) {
  return (
    <FormDialog
      title={`Credential for ${vendor.name}`}
      action="Store"
      run={async (form) => {
        await api.storeCredential(vendor.name, String(form.get('value') ?? '').trim())
        toast(
          vendor.credential.source === 'env'
            ? 'The credential is stored; the environment variable is still the one in use.'
            : 'The credential is stored.',
        )
        refresh('vendors')
      }}
      onClose={onClose}
    >
      <TextField
        label={<code>{vendor.credential.name}</code>}
        name="value"
        type="password"
        autoComplete="off"
        hint={
          vendor.credential.source === 'env'
            ? 'The environment variable of this name is set and wins; what is stored here is used once it is gone.'
            : 'Stored encrypted, never shown again. An environment variable of the same name would win over it.'
        }
        required
      />
    </FormDialog>
  )
}
