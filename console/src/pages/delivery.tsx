import { api } from '../api.ts'
import { formatWhole } from '../format.ts'
import { refresh, useQuery } from '../query.ts'
import { Link } from '../router.tsx'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Badge, Card, Facts, Note, Page, Stat, Stats, When } from '../ui/page.tsx'
import { Empty, Fault, Loaded } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { DeliveryDetail } from '../wire.ts'
import { DeliveryBadge, deliveriesOf, KINDS, Maybe, Whose } from './deliveries.tsx'

const EVERY_MS = 2_000

export function GatewayDeliveryPage({ delivery }: { delivery: string }) {
  return <DeliveryPage account={undefined} delivery={delivery} />
}

export function DeliveryPage({ account, delivery: id }: { account: string | undefined; delivery: string }) {
  const key = `delivery/${account ?? ''}/${id}`
  const delivery = useQuery(key, (signal) => api.delivery(account, id, signal), { everyMs: EVERY_MS })
  const { busy, error, go } = useAction(async () => {
    await api.repeatDelivery(account, id)
    toast('It is on its way, under the same id.')
    refresh(key, 'deliveries/')
  })
  const sending = delivery.data?.status === 'sending'
  return (
    <Page
      title="Delivery"
      lead={<code>{id}</code>}
      back={{ to: deliveriesOf(account), label: 'Deliveries' }}
      actions={
        delivery.data ? (
          <Button
            right="deliveries:write"
            account={account}
            icon="refresh"
            busy={busy}
            disabled={sending}
            onClick={() => void go()}
          >
            {delivery.data.status === 'waiting' ? 'Send now' : 'Repeat'}
          </Button>
        ) : null
      }
    >
      {error ? <Fault error={error} /> : null}
      <Loaded query={delivery}>{(data) => <Shown account={account} delivery={data} />}</Loaded>
    </Page>
  )
}

function Shown({ account, delivery }: { account: string | undefined; delivery: DeliveryDetail }) {
  return (
    <>
      <Stats>
        <Stat label="Status" value={<DeliveryBadge delivery={delivery} />} />
        <Stat label="Attempts" value={formatWhole(delivery.attempts)} />
        <Stat label="Last answer" value={delivery.statusCode ?? '–'} note="status" />
        <Stat label="Next attempt" value={<Maybe at={delivery.nextAttemptAt} />} />
      </Stats>
      <Attempts delivery={delivery} />
      <Card title="Details">
        <Facts
          items={[
            ['Event', <code key="e">{delivery.event}</code>],
            ['About', <About key="a" account={account} delivery={delivery} />],
            ['To', `${KINDS[delivery.kind]} at ${delivery.to}`],
            account === undefined && ['Account', <Whose key="w" account={delivery.account} />],
            ['Created', <When key="c" at={delivery.at} />],
            ['Delivered', <Maybe key="d" at={delivery.deliveredAt} />],
            ['Given up', <Maybe key="g" at={delivery.givenUpAt} />],
          ]}
        />
      </Card>
      <Body delivery={delivery} />
    </>
  )
}

function About({ account, delivery: { event, subject } }: { account: string | undefined; delivery: DeliveryDetail }) {
  if (!event.startsWith('job.') || account === undefined) return <code>{subject}</code>
  return (
    <Link to={`/a/${encodeURIComponent(account)}/jobs/${encodeURIComponent(subject)}`}>
      <code>{subject}</code>
    </Link>
  )
}

function Attempts({ delivery: { history, attempts } }: { delivery: DeliveryDetail }) {
  const lead = attempts > history.length ? `The last ${history.length} of ${attempts}, newest first.` : 'Newest first.'
  return (
    <Card flush title="Attempts" lead={lead}>
      {history.length === 0 ? (
        <Empty icon="send" title="Not sent yet" />
      ) : (
        <Table
          label="Attempts"
          rows={history.toReversed()}
          rowKey={({ number, at }) => `${number} ${at}`}
          columns={[
            { head: 'Attempt', main: true, cell: ({ number }) => <b>{number}</b>, tight: true },
            { head: 'Time', cell: ({ at }) => <When at={at} />, tight: true },
            {
              head: 'Took',
              right: true,
              cell: ({ durationMs }) => (durationMs === null ? '–' : `${formatWhole(durationMs)} ms`),
            },
            {
              head: 'Status',
              tight: true,
              cell: ({ statusCode, error }) => (
                <Badge tone={error === null ? 'good' : 'bad'}>{statusCode ?? (error === null ? 'ok' : 'none')}</Badge>
              ),
            },
            {
              head: 'Answer',
              cell: ({ error, response }) => (
                <>
                  {error ?? <span className="muted">accepted</span>}
                  {response === null ? null : <code className="cell-sub clamp">{response}</code>}
                </>
              ),
            },
          ]}
        />
      )}
    </Card>
  )
}

function Body({ delivery: { body, bodyBytes, kind } }: { delivery: DeliveryDetail }) {
  if (body === null) return <Note>The message was not stored, so it cannot be shown or repeated.</Note>
  return (
    <Card title="Message" lead={`${formatWhole(bodyBytes ?? 0)} bytes. Secrets in addresses are left out here.`}>
      <Code label={kind === 'email' ? 'Text' : 'Body'} text={pretty(body)} wrap />
    </Card>
  )
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
