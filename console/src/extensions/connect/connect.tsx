// A vendor from nothing to the first call: who it is, its credential, a real test, which models, what changes, done.
import { useEffect, useState } from 'react'
import { rateChanges } from '../../../../src/catalog/change-sentences.ts'
import { hasRealVendor, simulatedOffers } from '../../../../src/catalog/simulated.ts'
import { api } from '../../api.ts'
import { simulatedProposal } from '../../pages/operator/catalog-models.tsx'
import { marginOf, Review, toastSaved, useProposal } from '../../pages/operator/review.tsx'
import { TestReport } from '../../pages/operator/test-report.tsx'
import { VendorGrid } from '../../pages/operator/vendor-grid.tsx'
import { servedBy } from '../../pages/operator/vendors.tsx'
import { useQuery } from '../../query.ts'
import { useLocation } from '../../router.tsx'
import { lastAccount } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Segments, SelectField, TextField } from '../../ui/field.tsx'
import { Card, Note, Page } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import type { Catalog, ConnectCheck, ConnectInput, ConnectPlace, Preset, VendorTest } from '../../wire.ts'
import { ConnectModels, choiceOf, type MadePrice, type Offer, offersOf } from './connect-models.tsx'

const FORMATS = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const

/** Of a vendor that is in the catalog the address names it: more of its models are offered by the same steps. */
export function ConnectPage() {
  const { query } = useLocation()
  const known = query.get('vendor') ?? undefined
  const presets = useQuery('presets', api.presets)
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Page
      title={known ? `Add models of ${known}` : 'Add vendor'}
      lead={
        known
          ? 'Test it, and choose which of its models to offer. Nothing changes before you apply it.'
          : 'Choose a vendor, enter its key, test it, and choose which models to offer. Nothing changes before you apply it.'
      }
      back={{ to: '/operator/vendors', label: 'Vendors' }}
    >
      <Loaded query={presets}>
        {({ items }) => (
          <Loaded query={catalog}>
            {(data) => (
              <Connect presets={items} start={known ? placeOfVendor(known, data, items) : EMPTY} known={known} />
            )}
          </Loaded>
        )}
      </Loaded>
    </Page>
  )
}

type Way = 'stored' | 'env' | 'none'

interface Place {
  preset: string
  /** Empty: that of the preset's entry. */
  login: string
  vendor: string
  baseUrl: string
  variables: Record<string, string>
  format: string
  way: Way
  credentialName: string
  /** Only as long as the page is open. */
  key: string
}

const EMPTY: Place = {
  preset: '',
  login: '',
  vendor: '',
  baseUrl: '',
  variables: {},
  format: FORMATS[0],
  way: 'stored',
  credentialName: '',
  key: '',
}

/** Where a vendor of the catalog is, and which of its credentials is used; its value stays where it is. */
function placeOfVendor(name: string, catalog: Catalog, presets: readonly Preset[]): Place {
  const entry = catalog.document.vendors[name]
  const routes = servedBy(name, catalog).flatMap((product) => product.routes.filter(({ vendor }) => vendor === name))
  const credential = entry?.credential ?? entry?.credentials?.[0]?.name ?? ''
  const preset = presets.find((one) => one.name === name && one.baseUrl === entry?.baseUrl)
  return {
    ...EMPTY,
    preset: preset?.name ?? '',
    vendor: name,
    baseUrl: entry?.baseUrl ?? '',
    format: routes[0]?.protocol ?? FORMATS[0],
    way: credential ? 'env' : 'none',
    credentialName: credential,
  }
}

function Connect({ presets, start, known }: { presets: readonly Preset[]; start: Place; known: string | undefined }) {
  const [place, setPlace] = useState<Place>(start)
  const [test, setTest] = useState<VendorTest>()
  const [offers, setOffers] = useState<readonly Offer[]>([])
  const [markup, setMarkup] = useState('')
  const [check, setCheck] = useState<ConnectCheck>()
  const [before, setBefore] = useState<unknown>()
  const [done, setDone] = useState<{ title: string; uids: readonly string[] }>()
  const preset = presets.find(({ name }) => name === place.preset)
  const body = bodyOf(place, preset)

  const change = (next: Partial<Place>) => {
    setPlace((old) => ({ ...old, ...next }))
    setTest(undefined)
  }
  const testing = useAction(async () => {
    setTest(undefined)
    const result = await api.testConnection(body)
    setTest(result)
    setOffers(offersOf(preset, result.models))
  })
  const input = (): ConnectInput => ({
    ...body,
    ...choiceOf(offers),
    ...(markup.trim() ? { markup: markup.trim() } : {}),
  })
  const preview = useAction(async () => {
    const [current, result] = await Promise.all([api.catalog(), api.checkConnection(input())])
    setBefore(current.document)
    setCheck(result)
  })
  const prices = usePrices(test ? input() : undefined)
  if (done) return <Connected title={done.title} uids={done.uids} />
  return (
    <>
      {known ? null : <WhoCard place={place} presets={presets} preset={preset} onChange={change} />}
      <Card
        title="Test"
        lead="Lists its models and makes the smallest real call, which costs about one token at the vendor."
        actions={
          <Button
            right="vendors:write"
            look={test?.ok ? 'plain' : 'primary'}
            icon="live"
            busy={testing.busy}
            onClick={() => testing.go()}
          >
            Test the vendor
          </Button>
        }
      >
        <div role="status">{test ? <TestReport test={test} onAddress={(baseUrl) => change({ baseUrl })} /> : null}</div>
        {testing.error ? <Fault error={testing.error} /> : null}
      </Card>
      {test && (offers.length > 0 || preset?.replacesVendor) ? (
        <ConnectModels
          offers={offers}
          markup={markup}
          preset={preset}
          prices={prices}
          isListed={test.models.length > 0}
          onOffers={setOffers}
          onMarkup={setMarkup}
        />
      ) : null}
      {check && check.problems.length > 0 ? <Note tone="warn">{check.problems.join(' ')}</Note> : null}
      {preview.error ? <Fault error={preview.error} /> : null}
      <div className="row">
        <Button right="vendors:write" look="primary" disabled={!test} busy={preview.busy} onClick={() => preview.go()}>
          Preview the change
        </Button>
        {test && !test.ok ? <span className="muted small">The test failed; calls would fail as well.</span> : null}
      </div>
      {check && check.problems.length === 0 ? (
        <Review
          before={before}
          after={check.document}
          notes={check.notes}
          belowCostNotes={check.belowCostNotes}
          apply={async (note) => {
            const saved = await api.connectVendor({ ...input(), note, belowCost: check.belowCostNotes.length > 0 })
            toastSaved(saved)
            setPlace(EMPTY)
            const uids = choiceOf(offers).models?.flatMap(({ uid }) => uid ?? []) ?? []
            setDone({ title: preset?.title ?? body.vendor ?? 'The vendor', uids })
          }}
          onClose={() => setCheck(undefined)}
        />
      ) : null}
    </>
  )
}

const TYPED_MS = 300

/** The prices that the server would make of what is entered, by the names under which the models are offered. */
function usePrices(input: ConnectInput | undefined): ReadonlyMap<string, MadePrice> {
  const wanted = input?.models?.length ? JSON.stringify(input) : ''
  const [asked, setAsked] = useState('')
  useEffect(() => {
    const timer = window.setTimeout(() => setAsked(wanted), TYPED_MS)
    return () => window.clearTimeout(timer)
  }, [wanted])
  const [prices, setPrices] = useState<ReadonlyMap<string, MadePrice>>(new Map())
  useEffect(() => {
    if (asked === '') return
    let isLatest = true
    // It was made of such an input above.
    const input = JSON.parse(asked) as ConnectInput
    api.checkConnection(input).then(
      ({ document }) => {
        if (!isLatest) return
        const all = Object.entries(document.models).map(([uid, model]): [string, MadePrice] => [
          uid,
          {
            pricing: model.pricing,
            margins: rateChanges(undefined, { ...model }).flatMap((rate) => marginOf(rate) ?? []),
          },
        ])
        setPrices(new Map(all))
      },
      // What is wrong is said when the change is previewed; until then there is no price to show.
      () => isLatest && setPrices(new Map()),
    )
    return () => {
      isLatest = false
    }
  }, [asked])
  return prices
}

/** As the server takes it. */
function bodyOf(
  { preset, login, vendor, baseUrl, variables, format, way, credentialName, key }: Place,
  known: Preset | undefined,
): ConnectPlace {
  const named = credentialName.trim() ? { name: credentialName.trim() } : {}
  return {
    ...(preset ? { preset } : { formats: [format] }),
    ...(vendor.trim() ? { vendor: vendor.trim() } : {}),
    ...(baseUrl.trim() ? { baseUrl: baseUrl.trim() } : {}),
    ...(login ? { login } : {}),
    ...(known && variablesOf(known, login).length > 0 ? { variables } : {}),
    credential:
      way === 'none' ? {} : way === 'env' ? named : { ...named, ...(key.trim() ? { value: key.trim() } : {}) },
  }
}

const loginOf = (preset: Preset | undefined, name: string) => preset?.logins.find((one) => one.name === name)

function variablesOf(preset: Preset | undefined, login: string) {
  return [...(preset?.variables ?? []), ...(loginOf(preset, login)?.variables ?? [])]
}

interface WhoProps {
  place: Place
  presets: readonly Preset[]
  preset: Preset | undefined
  onChange: (next: Partial<Place>) => void
}

function WhoCard({ place, presets, preset, onChange }: WhoProps) {
  return (
    <Card title="Vendor" lead={preset?.about ?? undefined}>
      <VendorGrid
        presets={presets}
        value={place.preset}
        onPick={(name) => {
          const chosen = presets.find((one) => one.name === name)
          onChange({ ...EMPTY, preset: name, way: chosen && chosen.credential === null ? 'none' : 'stored' })
        }}
      />
      <div className="grid-2">
        <TextField
          label="Name in the catalog"
          value={place.vendor}
          placeholder={preset?.name ?? 'my-vendor'}
          onText={(vendor) => onChange({ vendor })}
        />
        {variablesOf(preset, place.login).map(({ name, about }) => (
          <TextField
            key={name}
            label={name.charAt(0).toUpperCase() + name.slice(1)}
            hint={about}
            value={place.variables[name] ?? ''}
            onText={(text) => onChange({ variables: { ...place.variables, [name]: text } })}
          />
        ))}
        {preset?.baseUrl === '{address}' ? null : (
          <TextField
            label="Base address"
            mono
            value={place.baseUrl}
            placeholder={preset?.baseUrl ?? 'https://api.vendor.example/v1'}
            onText={(baseUrl) => onChange({ baseUrl })}
          />
        )}
        {preset ? null : (
          <SelectField
            label="API format"
            value={place.format}
            options={FORMATS}
            onText={(format) => onChange({ format })}
          />
        )}
      </div>
      <CredentialFields place={place} preset={preset} onChange={onChange} />
    </Card>
  )
}

const WAYS = [
  { value: 'stored', label: 'Paste the key' },
  { value: 'env', label: 'Environment variable' },
  { value: 'none', label: 'No key' },
] as const

function CredentialFields({ place, preset, onChange }: Omit<WhoProps, 'presets'>) {
  const login = loginOf(preset, place.login)
  const name = (login ?? preset)?.credential ?? 'MY_VENDOR_API_KEY'
  return (
    <div className="stack">
      {preset && preset.logins.length > 0 ? (
        <SelectField
          label="Login"
          value={place.login}
          hint={login?.about}
          options={[
            ['', preset.login ?? 'API key'],
            ...preset.logins.map((one): readonly [string, string] => [one.name, one.title]),
          ]}
          onText={(chosen) =>
            onChange({ login: chosen, way: loginOf(preset, chosen)?.credential === null ? 'none' : 'stored' })
          }
        />
      ) : null}
      <Segments label="Credential" value={place.way} options={WAYS} onPick={(way) => onChange({ way })} />
      <div className="grid-2">
        {place.way === 'stored' ? (
          <TextField
            label="Key"
            type="password"
            autoComplete="off"
            value={place.key}
            hint="Stored encrypted, never shown again. An environment variable of the gateway with the credential’s name takes precedence."
            onText={(key) => onChange({ key })}
          />
        ) : null}
        {place.way === 'none' ? null : (
          <TextField
            label="Name of the credential"
            mono
            value={place.credentialName}
            placeholder={name}
            hint={
              place.way === 'env'
                ? 'An environment variable of the gateway. It takes precedence over a stored credential of the same name.'
                : undefined
            }
            onText={(credentialName) => onChange({ credentialName })}
          />
        )}
      </div>
    </div>
  )
}

function Connected({ title, uids }: { title: string; uids: readonly string[] }) {
  const account = lastAccount()
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Card title={`${title} is connected`} lead={uids.length > 0 ? `Now available: ${uids.join(', ')}.` : undefined}>
      <div className="row">
        {account && uids[0] ? (
          <LinkButton
            look="primary"
            icon="play"
            to={`/a/${encodeURIComponent(account)}/playground/chat?model=${encodeURIComponent(uids[0])}`}
          >
            Try {uids[0]}
          </LinkButton>
        ) : null}
        <LinkButton to="/operator/vendors">All vendors</LinkButton>
      </div>
      <Loaded query={catalog}>{(data) => <StillSimulated catalog={data} />}</Loaded>
    </Card>
  )
}

/** Asked beside the first real vendors, because whoever sells real answers seldom wants to sell made-up ones too. */
function StillSimulated({ catalog }: { catalog: Catalog }) {
  const { propose, review } = useProposal(catalog)
  const asking = useAction(() => {
    const [after, text] = simulatedProposal(catalog.document, false)
    return propose({ after, text })
  })
  const offers = simulatedOffers(catalog.document)
  if (offers.length === 0 || !hasRealVendor(catalog.document)) return null
  return (
    <>
      <Note tone="warn">
        {offers.length} models and data endpoints are still simulated, such as {offers[0]}: their answers are made up,
        and charged like all others. <b>Catalog</b> has a switch for them.
      </Note>
      <div className="row">
        <Button right="catalog:write" busy={asking.busy} onClick={() => asking.go()}>
          No longer offer them
        </Button>
      </div>
      {asking.error ? <Fault error={asking.error} /> : null}
      {review}
    </>
  )
}
