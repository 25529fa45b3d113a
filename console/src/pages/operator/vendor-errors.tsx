// Why calls failed at a vendor in the last day: one row for each cause, with the calls that met it.
import { api } from '../../api.ts'
import { useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { Ago, Card } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import type { VendorError } from '../../wire.ts'
import { PHASES } from '../call-verdict.tsx'
import { faultTitle } from '../fault-words.ts'

export function VendorFailures({ vendor }: { vendor: string }) {
  const errors = useQuery(`vendor-errors/${vendor}`, (signal) => api.vendorErrors(vendor, signal), { everyMs: 30_000 })
  const calls = `/operator/calls?vendor=${encodeURIComponent(vendor)}&outcome=failed`
  return (
    <Card
      flush
      title="Failures, last 24 hours"
      lead={errors.data?.items.length === 0 ? 'No call failed at this vendor.' : undefined}
      actions={<Link to={calls}>All failed calls</Link>}
    >
      <Loaded query={errors}>
        {({ items }) =>
          items.length === 0 ? null : (
            <Table
              label={`Failures of ${vendor}`}
              rows={items}
              rowKey={keyOf}
              columns={[
                { head: 'Cause', main: true, cell: (row) => <Cause error={row} /> },
                { head: 'Calls', right: true, cell: (row) => row.calls },
                { head: 'Models', cell: (row) => row.products.join(', '), wideOnly: true },
                { head: 'Newest calls', cell: (row) => <Newest error={row} /> },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  )
}

const keyOf = ({ fault, status, phase, cause }: VendorError) => JSON.stringify([fault, status, phase, cause])

function Cause({ error }: { error: VendorError }) {
  const { vendorError, fix } = error
  return (
    <>
      <b>{inWords(error)}</b>
      {vendorError ? <span className="cell-sub">It said: “{vendorError}”</span> : null}
      {fix ? <span className="cell-sub">You need to fix this: {fix}.</span> : null}
    </>
  )
}

function inWords({ fault, status, phase, cause }: VendorError): string {
  const title = faultTitle(fault)
  if (status !== null) return `${title}: it answered HTTP ${status}${cause ? ` (${cause})` : ''}.`
  if (phase === 'connect') return `${title}: it could not be reached${cause ? ` (${cause})` : ''}.`
  const where = phase ? ` while ${PHASES[phase] ?? phase}` : ''
  return `${title}${where}${cause ? ` (${cause})` : ''}.`
}

function Newest({ error }: { error: VendorError }) {
  return error.newest.map(({ requestId, at, accountName, product }) => (
    <span key={requestId} className="cell-sub">
      <Link to={`/calls/${encodeURIComponent(requestId)}`}>
        {product} <span className="sr-only">of</span> {accountName ? `for ${accountName}` : ''}
      </Link>
      , <Ago at={at} />
    </span>
  ))
}
