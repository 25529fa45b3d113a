// The routes of one model as a form: who serves it, in which order, at which share and cost.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { formatMs, formatPercent, formatWhole } from '../../format.ts'
import { typicalAmount } from '../../pricing.ts'
import { useQuery } from '../../query.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { Checkbox, SelectField, Switch, TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import {
  type Catalog,
  type CatalogDocument,
  type CatalogModel,
  type CatalogRoute,
  type CatalogRouting,
  type Pricing,
  type RouteFigures,
  TEXT_PROTOCOLS,
} from '../../wire.ts'
import { useProposal, withModel } from './review.tsx'

interface Props {
  uid: string
  model: Pick<CatalogModel, 'name' | 'type' | 'pricing' | 'routes' | 'routing'>
  catalog: Catalog
  onClose: () => void
}

export function RoutesForm({ uid, model, catalog, onClose }: Props) {
  const { document } = catalog
  const vendors = vendorsFor(document, model)
  const { propose, review } = useProposal(catalog, onClose)
  const [routes, setRoutes] = useState<readonly CatalogRoute[]>(model.routes)
  const [routing, setRouting] = useState<CatalogRouting>(model.routing ?? {})
  const figures = useQuery(`routes/${uid}`, (signal) => api.routeFigures(uid, signal))
  const [dragged, setDragged] = useState<number>()
  const change = (at: number, next: Partial<CatalogRoute>) =>
    setRoutes((old) => old.map((route, index) => (index === at ? { ...route, ...next } : route)))
  const move = (from: number, to: number) => {
    const moved = routes[from]
    if (!moved || from === to || to < 0 || to >= routes.length) return
    const rest = routes.filter((_, index) => index !== from)
    // Whoever moves a route wants an order, and no sharing.
    setRoutes([...rest.slice(0, to), moved, ...rest.slice(to)].map((route, order) => ({ ...route, order })))
  }
  /** One of a hundred calls, of those that are tried first. */
  const sendOnePercent = (at: number) =>
    setRoutes((old) => {
      const first = Math.min(...old.filter((_, index) => index !== at).map((route) => route.order ?? 0))
      const shared = old.filter((route, index) => index !== at && (route.order ?? 0) === first).length
      return old.map((route, index) => {
        if (index === at) return { ...route, order: first, weight: 10, enabled: true }
        return (route.order ?? 0) === first ? { ...route, weight: Math.floor(990 / shared) } : route
      })
    })
  const add = () =>
    setRoutes((old) => [
      ...old,
      { ...(old.at(-1) ?? { vendor: '', protocol: 'openai-chat' }), vendor: unused(old), order: old.length },
    ])
  /** A fallback to the vendor that has just failed would be none. */
  const unused = (old: readonly CatalogRoute[]) =>
    vendors.find((name) => !old.some(({ vendor }) => vendor === name)) ?? vendors[0] ?? ''
  const first = Math.min(...routes.map(({ order = 0 }) => order))
  return (
    <>
      <FormDialog
        right="catalog:write"
        title={`Routes of ${model.name}`}
        wide
        action="Preview the change"
        stay
        disabled={routes.length === 0}
        run={async () => {
          const fields = { routes: routes.map(tidy), ...(Object.keys(routing).length > 0 ? { routing } : {}) }
          await propose({ after: withModel(document, uid, fields), text: `The routes of ${model.name} apply now.` })
        }}
        onClose={onClose}
      >
        <Note>
          Lower orders are tried first; equal orders share the calls by weight: weights 99 and 1 send 1 % to the second.
          Drag a route, or use its arrows, to give every route an order of its own.
        </Note>
        <div className="grid-2">
          <SelectField
            label="Balance equal routes by"
            value={routing.policy ?? 'weighted'}
            options={[
              ['weighted', 'share the calls by weight'],
              ['least-latency', 'the fastest first'],
              ['least-busy', 'the one with the fewest calls first'],
              ['cheapest-first', 'the cheapest first'],
            ]}
            // One of the options.
            onText={(policy) => setRouting((old) => ({ ...old, policy: policy as CatalogRouting['policy'] }))}
          />
          <Checkbox
            label="Sticky conversations"
            hint="So that the vendor’s prompt cache is used."
            checked={routing.sticky === true}
            onCheck={(sticky) => setRouting((old) => ({ ...old, sticky }))}
          />
        </div>
        <ol className="route-list">
          {routes.map((route, at) => (
            <li
              // Routes have no names of their own, and may be equal.
              key={at}
              draggable
              className={dragged === at ? 'route-row route-dragged' : 'route-row'}
              onDragStart={() => setDragged(at)}
              onDragOver={(event) => event.preventDefault()}
              onDrop={(event) => {
                event.preventDefault()
                if (dragged !== undefined) move(dragged, at)
                setDragged(undefined)
              }}
              onDragEnd={() => setDragged(undefined)}
            >
              <h3 className="small">{(route.order ?? 0) === first ? 'Tried first' : 'Fallback'}</h3>
              <RouteFields
                route={route}
                at={at}
                vendors={vendors}
                formats={formatsOf(model, route)}
                pricing={model.pricing}
                type={model.type}
                onChange={(next) => change(at, next)}
              />
              <p className="small muted">
                {figuresInWords(figures.data?.items.find(({ route: number }) => number === at + 1))}
              </p>
              <div className="row">
                <IconButton
                  icon="up"
                  label={`Move route ${at + 1} up`}
                  disabled={at === 0}
                  onClick={() => move(at, at - 1)}
                />
                <IconButton
                  icon="down"
                  label={`Move route ${at + 1} down`}
                  disabled={at === routes.length - 1}
                  onClick={() => move(at, at + 1)}
                />
                <Switch
                  label={`Use route ${at + 1}`}
                  on={route.enabled !== false}
                  onSwitch={(enabled) => change(at, { enabled })}
                />
                {routes.length > 1 ? (
                  <Button small onClick={() => sendOnePercent(at)}>
                    Send 1 % here
                  </Button>
                ) : null}
                <IconButton
                  icon="trash"
                  label={`Remove route ${at + 1}`}
                  disabled={routes.length === 1}
                  onClick={() => setRoutes((old) => old.filter((_, index) => index !== at))}
                />
              </div>
            </li>
          ))}
        </ol>
        <Button small icon="plus" onClick={add}>
          Add a fallback
        </Button>
      </FormDialog>
      {review}
    </>
  )
}

/**
 * Those that serve models, for a model, and those that serve data, for data; a vendor that serves nothing yet can do
 * either.
 */
function vendorsFor({ vendors, models, endpoints, toolServers }: CatalogDocument, { type }: Props['model']): string[] {
  const servedIn = (shelf: Readonly<Record<string, { routes: readonly CatalogRoute[] }>>) =>
    new Set(Object.values(shelf).flatMap(({ routes }) => routes.map(({ vendor }) => vendor)))
  const [own, other] = type === 'data' ? [endpoints, models] : [models, endpoints]
  const [same, others] = [servedIn(own), servedIn(other)]
  for (const { vendor } of Object.values(toolServers ?? {})) others.add(vendor)
  return Object.keys(vendors).filter((name) => same.has(name) || !others.has(name))
}

function figuresInWords(figures: RouteFigures | undefined): string {
  if (!figures) return 'No calls in the last 24 hours.'
  const { answered, failed, firstByteMsP50, costAvg } = figures
  const share = formatPercent(answered / Math.max(1, answered + failed))
  const cost = costAvg === null ? '' : `, ${formatCredits(costAvg)} credits a call at the vendor`
  return `Last 24 hours: ${formatWhole(answered)} answered (${share}), p50 to the first byte ${formatMs(firstByteMsP50)}${cost}.`
}

/** Text models take any text format; the others the one that they have. */
function formatsOf({ type }: Props['model'], { protocol }: CatalogRoute): readonly string[] {
  return type === 'text' ? TEXT_PROTOCOLS : [protocol]
}

/** What stands at its default is left out of the document. */
function tidy({ enabled, serves, ...route }: CatalogRoute): CatalogRoute {
  return { ...route, ...(enabled === false ? { enabled } : {}), ...(serves?.length ? { serves } : {}) }
}

interface RouteProps {
  route: CatalogRoute
  at: number
  vendors: readonly string[]
  formats: readonly string[]
  pricing: Pricing
  type: CatalogModel['type']
  onChange: (next: Partial<CatalogRoute>) => void
}

function RouteFields({ route, at, vendors, formats, pricing, type, onChange }: RouteProps) {
  const number = (text: string) => Math.max(0, Number.parseInt(text, 10) || 0)
  return (
    <div className="route-fields">
      <SelectField label="Vendor" value={route.vendor} options={vendors} onText={(vendor) => onChange({ vendor })} />
      <SelectField
        label="Format"
        value={route.protocol}
        options={formats}
        // One of the options.
        onText={(protocol) => onChange({ protocol: protocol as CatalogRoute['protocol'] })}
      />
      <TextField
        label="Model name at the vendor"
        mono
        value={route.model ?? ''}
        placeholder="the same"
        onText={(model) => onChange({ model: model.trim() || undefined })}
      />
      <TextField
        label="Order"
        type="number"
        min={0}
        value={route.order ?? 0}
        onText={(text) => onChange({ order: number(text) })}
      />
      <TextField
        label="Weight"
        type="number"
        min={1}
        max={1000}
        value={route.weight ?? 1}
        onText={(text) => onChange({ weight: Math.min(1000, Math.max(1, number(text))) })}
      />
      <TextField
        label="Only for"
        value={(route.serves ?? []).join(', ')}
        placeholder="everything"
        onText={(text) =>
          onChange({
            serves: text
              .split(',')
              .map((word) => word.trim())
              .filter(Boolean),
          })
        }
      />
      <p className="small muted">{marginInWords(type, pricing, route.cost, at)}</p>
    </div>
  )
}

function marginInWords(type: CatalogModel['type'], pricing: Pricing, cost: Pricing | undefined, at: number): string {
  if (!cost) return `Route ${at + 1}: its cost is not known.`
  const [price, paid] = [typicalAmount(type, pricing), typicalAmount(type, cost)]
  const share = price === 0n ? 0 : Number(((price - paid) * 10_000n) / price) / 10_000
  return `A typical call costs ${formatCredits(paid)} and is charged ${formatCredits(price)}: margin ${formatPercent(share)}.`
}
