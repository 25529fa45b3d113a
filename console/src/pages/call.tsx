import { ApiError, api } from '../api.ts'
import { formatCredits, sumCredits } from '../credits.ts'
import { CallContent } from '../extensions/guardrails/call-content.tsx'
import { formatMs, formatWhole, plural } from '../format.ts'
import { type Query, useQuery } from '../query.ts'
import { Link, useLocation } from '../router.tsx'
import { lastAccount, useSession } from '../session.tsx'
import { CopyButton } from '../ui/code.tsx'
import { Notice } from '../ui/dialog.tsx'
import { Amount, Card, Facts, Note, Page, Stat, Stats, When } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { type UsageDetail, unitRow } from '../wire.ts'
import { Verdict, Waterfall } from './call-verdict.tsx'
import { keyLabels } from './key-label.ts'
import { OutcomeBadge } from './usage.tsx'

interface Props {
  account: string
  request: string
  /** The way to the list that led here. */
  back?: { to: string; label: string }
}

export function CallPage({ account, request, back }: Props) {
  const call = useQuery(`usage-of/${request}`, (signal) => api.usageOf(request, signal))
  // The account that the address names may be another one, or none.
  const base = `/a/${encodeURIComponent(call.data?.account ?? account)}`
  return (
    <Page
      title={call.data?.product || 'Call'}
      lead={<code>{request}</code>}
      back={back ?? { to: `${base}/usage`, label: 'Usage' }}
      actions={<CopyButton text={request} label="Copy request id" small={false} />}
    >
      <CallDetails call={call} base={base} />
    </Page>
  )
}

/** Beside the list of calls. */
export function CallPanel({ account, request, to, onClose }: Props & { to: string; onClose: () => void }) {
  const call = useQuery(`usage-of/${request}`, (signal) => api.usageOf(request, signal))
  return (
    <Notice title={call.data?.product || 'Call'} done="Close" panel onClose={onClose}>
      <div className="row-spread">
        <code>{request}</code>
        <Link to={to}>Open its page</Link>
      </div>
      <CallDetails call={call} base={`/a/${encodeURIComponent(account)}`} />
    </Notice>
  )
}

function CallDetails({ call, base }: { call: Query<UsageDetail>; base: string }) {
  if (call.error instanceof ApiError && call.error.status === 404)
    return (
      <Empty icon="search" title="No call is recorded under this id">
        <p>Requests to the console and calls that ended before they had a price leave no row in the usage.</p>
        <p>An operator finds the id in the log.</p>
      </Empty>
    )
  return (
    <Loaded query={call}>
      {(data) => (
        <>
          <CallBody base={base} call={data} />
          <CallContent account={data.account} call={data} />
        </>
      )}
    </Loaded>
  )
}

export function OperatorCallPage({ request }: { request: string }) {
  const { query } = useLocation()
  return (
    <CallPage
      account=""
      request={request}
      back={{ to: `/operator/calls${query.size > 0 ? `?${query}` : ''}`, label: 'Calls' }}
    />
  )
}

/** For an id from a message or a log, which does not say whose call it was. */
export function AnyCallPage({ request }: { request: string }) {
  const { accounts } = useSession()
  return <CallPage account={lastAccount() ?? accounts[0]?.id ?? ''} request={request} />
}

function CallBody({ base, call }: { base: string; call: UsageDetail }) {
  return (
    <>
      <Verdict call={call} />
      <Asked base={base} call={call} />
      {call.outcome === 'rejected' ? (
        <Note>The gateway rejected the call before anything was held. It is not charged.</Note>
      ) : (
        <>
          <Waterfall call={call} />
          <Money call={call} />
        </>
      )}
    </>
  )
}

/** Each leads to all calls that have it. */
function Labels({ base, labels }: { base: string; labels: Readonly<Record<string, string>> }) {
  return (
    <span className="row">
      {Object.entries(labels).map(([name, value]) => (
        <Link key={name} to={`${base}/usage?labels=${encodeURIComponent(`${name}=${value}`)}`}>
          {name}={value}
        </Link>
      ))}
    </span>
  )
}

function Asked({ base, call }: { base: string; call: UsageDetail }) {
  const keyId = call.keyName === null ? undefined : call.keyId
  const keys = useQuery(`keys/${call.account}/choice`, (signal) => api.keys(call.account, { limit: 200 }, signal))
  // A call that went well at once has no attempts to tell of.
  const attempted = call.attemptLog?.attempts.flatMap(({ vendor }) => vendor ?? []) ?? []
  const vendors = [...new Set([...attempted, ...(call.vendor ? [call.vendor] : [])])]
  return (
    <Card title="Request">
      <Facts
        items={[
          ['Time', <When key="t" at={call.at} />],
          ['Outcome', <OutcomeBadge key="o" row={call} />],
          ['HTTP status', call.status],
          ['Endpoint', <code key="e">{call.endpoint || '–'}</code>],
          [
            'Model',
            call.product ? (
              <Link key="m" to={`${base}/models/${encodeURIComponent(call.product)}`}>
                {call.product}
              </Link>
            ) : call.outcome === 'rejected' ? (
              'unknown: see the message above'
            ) : (
              '–'
            ),
          ],
          [
            'Key',
            keyId ? (
              <Link key="k" to={`${base}/usage?key=${encodeURIComponent(keyId)}`}>
                {keyLabels(keys.data?.items ?? []).get(keyId) ?? call.keyName}
              </Link>
            ) : (
              'console'
            ),
          ],
          call.client ? ['Agent', call.client] : false,
          call.labels ? ['Labels', <Labels key="l" base={base} labels={call.labels} />] : false,
          call.outcome === 'rejected' ? false : ['Response', call.stream ? 'streamed' : 'not streamed'],
          ...Object.entries(call.attemptLog?.parameters ?? {}).map(([name, value]): [string, string] => [
            name,
            String(value),
          ]),
          vendors.length > 0
            ? [
                plural(vendors.length, 'Vendor').replace(/^\d+ /, ''),
                <Link key="v" to={`/operator/vendors/${encodeURIComponent(vendors[0] ?? '')}`}>
                  {vendors.join(', ')}
                </Link>,
              ]
            : false,
          call.catalogVersion === null ? false : ['Price list', `version ${call.catalogVersion}`],
          ...othersOf(call),
          call.job
            ? [
                'Job',
                <Link key="j" to={`${base}/jobs/${encodeURIComponent(call.job)}`}>
                  {call.job}
                </Link>,
              ]
            : false,
          call.trace
            ? [
                'Trace',
                <a key="trace" href={call.trace} target="_blank" rel="noreferrer">
                  in your tracing
                </a>,
              ]
            : false,
        ]}
      />
    </Card>
  )
}

function Money({ call }: { call: UsageDetail }) {
  const loss = sumCredits([call.loss])
  return (
    <>
      <Stats>
        <Stat label="Charged" value={<Amount value={call.charged} />} note="credits" />
        {call.cost ? <Stat label="Cost" value={<Amount value={call.cost} />} note="credits, at the vendor" /> : null}
        <Stat label="Hold" value={<Amount value={call.held} />} note="Reserved before the call" />
        <Stat label="Duration" value={formatMs(call.durationMs)} note="to the last byte" />
        {call.firstByteMs === null ? null : (
          <Stat
            label="Time to first byte"
            value={formatMs(call.firstByteMs)}
            note={call.stream ? 'streamed' : 'not streamed'}
          />
        )}
      </Stats>
      <Charge call={call} />
      {call.estimated ? (
        <Note>
          The vendor reported no usage for this call, or an impossible amount, so the gateway counted the quantities and
          marked them as estimated. An estimate is never charged above the hold.
        </Note>
      ) : null}
      {loss > 0n ? (
        <Note>
          This call consumed {formatCredits(loss)} credits more than could be charged. The platform bears that part.
        </Note>
      ) : null}
    </>
  )
}

function Charge({ call }: { call: UsageDetail }) {
  const exact = sumCredits(call.lines.map((line) => line.amount))
  return (
    <Card flush title="How the charge was calculated" lead="Quantity × rate, summed and rounded up once.">
      {call.lines.length === 0 ? (
        <div className="card-note">
          <p className="muted">
            {call.outcome === 'settled'
              ? 'The call used nothing that has a price.'
              : 'The call was not charged; its hold was released.'}
          </p>
        </div>
      ) : (
        <>
          <Table
            label="Charge, line by line"
            rows={call.lines}
            rowKey={(line) => line.unit}
            columns={[
              { head: 'Unit', main: true, cell: (line) => unitRow(line.unit).many },
              { head: 'Quantity', right: true, cell: (line) => formatWhole(line.quantity) },
              {
                head: 'Rate',
                right: true,
                cell: (line) => (
                  <>
                    {formatCredits(line.rate)}
                    {line.per > 1 ? <span className="muted"> per {formatWhole(line.per)}</span> : null}
                  </>
                ),
              },
              { head: 'Credits', right: true, cell: (line) => <Amount value={line.amount} exact /> },
            ]}
          />
          <p className="sum">
            <span>Sum</span>
            <b>{formatCredits(exact)}</b>
          </p>
        </>
      )}
    </Card>
  )
}

/** What nobody has given a place of its own: a new field of the view is seen here without a change to the page. */
function othersOf(call: UsageDetail): [string, string][] {
  const { id, at, product, endpoint, keyName, outcome, status, charged, held, loss, units, estimated, ...rest } = call
  const {
    stream,
    durationMs,
    firstByteMs,
    route,
    job,
    lines,
    catalogVersion,
    fault,
    attemptLog,
    keyId,
    account,
    message,
    calls,
    cost,
    content,
    trace,
    vendor,
    ...others
  } = rest
  const said = Object.entries(others).filter(([, value]) => value !== null && value !== '' && value !== false)
  return said.map(([name, value]) => [
    name
      .replace(/^./, (first) => first.toUpperCase())
      .replaceAll(/[A-Z]/g, (letter, index) => (index ? ` ${letter.toLowerCase()}` : letter)),
    String(value),
  ])
}
