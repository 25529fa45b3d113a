// Social data and site analytics: every endpoint is a form made from its own description.
import { useEffect } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { match } from '../../path.ts'
import { useQuery } from '../../query.ts'
import { setQuery, useLocation } from '../../router.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { GroupedOptions, SelectField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, Fault, Loaded, Skeleton } from '../../ui/state.tsx'
import type { PublicEndpoint } from '../../wire.ts'
import { endpointUrl } from '../snippet.ts'
import { Answer } from './answer.tsx'
import { AsCode, play } from './bench.tsx'
import { QuoteHint, type Receipt, ReceiptLine } from './cost.tsx'
import { EndpointForm } from './endpoint-form.tsx'

export function SocialPlay({ account }: { account: string }) {
  return <DataPlay account={account} area="social" />
}

export function AnalyticsPlay({ account }: { account: string }) {
  return <DataPlay account={account} area="siteanalytics" />
}

export function ProductPlay({ account }: { account: string }) {
  return <DataPlay account={account} area="products" />
}

type Area = 'social' | 'siteanalytics' | 'products'

/**
 * Products of the catalog are what the code does not know; those with a body are tried on their page of the
 * documentation.
 */
const isIn = (area: Area, { id, method }: PublicEndpoint) =>
  area === 'products' ? method === 'GET' && !/^(?:social|siteanalytics)/.test(id) : id.startsWith(area)

function DataPlay({ account, area }: { account: string; area: Area }) {
  const { query } = useLocation()
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const [last, setLast] = useDraft(`data/${account}/${area}/endpoint`, '')
  return (
    <Loaded query={catalog}>
      {({ endpoints }) => {
        const offered = endpoints.filter((endpoint) => isIn(area, endpoint))
        const address = query.get('address')
        const wanted = query.get('endpoint') ?? last
        const endpoint = offered.find((one) => (address ? namedIn(one.path, address) : one.id === wanted)) ?? offered[0]
        if (!endpoint) return <Empty icon="chart" title="No data endpoint is enabled" />
        const choose = (id: string) => {
          setLast(id)
          setQuery({ endpoint: id, address: '' })
        }
        return (
          <DataBench
            key={endpoint.id}
            account={account}
            area={area}
            endpoints={offered}
            endpoint={endpoint}
            onChoose={choose}
          />
        )
      }}
    </Loaded>
  )
}

interface Got {
  body: unknown
  url: string
  receipt?: Receipt
}

function DataBench({
  account,
  area,
  endpoints,
  endpoint,
  onChoose,
}: {
  account: string
  area: Area
  endpoints: readonly PublicEndpoint[]
  endpoint: PublicEndpoint
  onChoose: (id: string) => void
}) {
  const [values, setValues] = useDraft<Record<string, string>>(`data/${account}/${endpoint.id}/values`, {})
  const [got, setGot] = useDraft<Got | undefined>(`data/${account}/${endpoint.id}/answer`, undefined)
  // A site or a name that was typed for one endpoint is offered to the next one.
  const [common, setCommon] = useDraft<Record<string, string>>(`data/${account}/${area}/common`, {})
  const full = { ...prefilled(endpoint, common), ...values }
  const { query } = useLocation()
  // A link from the documentation fills in the parameters that it names.
  const given = query.toString()
  useEffect(() => {
    const asked = new URLSearchParams(given)
    const inPath = namedIn(endpoint.path, asked.get('address') ?? '') ?? {}
    const named = [...asked, ...Object.entries(inPath)].filter(([name]) =>
      endpoint.params.some((one) => one.name === name),
    )
    if (named.length) setValues((old) => ({ ...old, ...Object.fromEntries(named) }))
  }, [given, endpoint, setValues])

  const { busy, error, go } = useAction(async (_signal, more: Record<string, string>) => {
    const asked = { ...full, ...more }
    const url = endpointUrl(endpoint, asked)
    setCommon((old) => ({ ...old, ...shared(endpoint, asked) }))
    const { answer: body, ...receipt } = await play<unknown>(account, endpoint.method, url)
    setGot({ body, url, ...receipt })
  })

  return (
    <div className="bench">
      <div className="stack">
        {error ? <Fault error={error} retry={() => go({})} /> : null}
        {busy ? (
          <Card>
            <Skeleton lines={6} />
          </Card>
        ) : got ? (
          <GotCard account={account} got={got} onNext={(token) => go({ pagination_token: token })} />
        ) : (
          <Empty icon={area === 'social' ? 'at' : 'chart'} title={endpoint.title}>
            <p>{endpoint.description}</p>
          </Empty>
        )}
      </div>
      <div className="bench-side">
        <SelectField
          label="Endpoint"
          value={endpoint.id}
          onText={onChoose}
          hint={<code>{`${endpoint.method} ${endpoint.path}`}</code>}
        >
          <EndpointOptions endpoints={endpoints} />
        </SelectField>
        <EndpointForm
          endpoint={endpoint}
          values={full}
          busy={busy}
          hint={<QuoteHint account={account} endpoint={endpoint.id} body={complete(endpoint, full)} />}
          onValue={(name, value) => setValues((old) => ({ ...old, [name]: value }))}
          onRun={() => go({})}
        />
        <AsCode subject={{ kind: 'data', endpoint, values: full }} />
      </div>
    </div>
  )
}

/** What an address has in the places that a path names; undefined: it is another path. */
function namedIn(path: string, address: string): Record<string, string> | undefined {
  return match(path.replaceAll(/\{(\w+)\}/g, ':$1'), address)
}

/** What was filled in, once nothing that is required is missing. */
function complete(endpoint: PublicEndpoint, values: Record<string, string>): Record<string, string> | undefined {
  if (endpoint.params.some(({ name, required }) => required && !values[name])) return undefined
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))
}

function GotCard({ account, got, onNext }: { account: string; got: Got; onNext: (token: string) => void }) {
  const next = nextToken(got.body)
  return (
    <Card>
      <Answer body={got.body} />
      {next ? (
        <div>
          <Button onClick={() => onNext(next)}>Next page</Button>
        </div>
      ) : null}
      {got.receipt ? <ReceiptLine account={account} receipt={got.receipt} /> : null}
      <p className="muted small">
        <code>GET {got.url}</code>
      </p>
    </Card>
  )
}

function EndpointOptions({ endpoints }: { endpoints: readonly PublicEndpoint[] }) {
  const choices = endpoints.map(({ id, title }) => ({ value: id, label: title, group: id.split('/')[1] ?? '' }))
  return <GroupedOptions choices={choices} />
}

/** Without these an answer holds little more than an id. */
const USEFUL: Record<string, string> = {
  'user.fields': 'created_at,description,public_metrics,verified',
  'tweet.fields': 'created_at,public_metrics',
}

/** Timelines say how to go on. */
function nextToken(body: unknown): string {
  const token = (body as { meta?: { next_token?: unknown } } | null)?.meta?.next_token
  return typeof token === 'string' ? token : ''
}

const SITE = /^keys?$/i

/** `keys` names a site everywhere but at the endpoint that ranks sites for a keyword. */
const isSite = (endpoint: PublicEndpoint, name: string) => SITE.test(name) && !endpoint.id.includes('keywords/websites')

function shared(endpoint: PublicEndpoint, values: Record<string, string>): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const param of endpoint.params) {
    const value = values[param.name]
    if (!value) continue
    if (isSite(endpoint, param.name)) kept.site = value
    if (param.name === 'username') kept.username = value
    if (param.in === 'path') kept.id = value
  }
  return kept
}

function prefilled(endpoint: PublicEndpoint, common: Record<string, string>): Record<string, string> {
  const values: Record<string, string> = {}
  for (const param of endpoint.params) {
    const useful = USEFUL[param.name]
    if (useful) values[param.name] = useful
    if (isSite(endpoint, param.name) && common.site) values[param.name] = common.site
    if (param.name === 'username' && common.username) values[param.name] = common.username
    if (param.in === 'path' && common.id) values[param.name] = common.id
  }
  return values
}
