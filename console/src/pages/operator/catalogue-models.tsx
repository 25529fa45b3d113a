import { useDeferredValue, useState } from 'react'
import { api } from '../../api.ts'
import { parseCredits } from '../../credits.ts'
import { describeTier, PRICE_UNITS, UNIT_NAMES } from '../../pricing.ts'
import { refresh } from '../../query.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { SearchField, Switch, TextField } from '../../ui/field.tsx'
import { Badge, Card, Note } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import { toast, toastError } from '../../ui/toast.tsx'
import type { Catalog, CatalogDocument, CatalogModel, PriceTier, PriceUnit, Pricing } from '../../wire.ts'
import { Price } from '../models.tsx'
import { RoutesForm } from './routes-form.tsx'

/** Models and data endpoints alike: what has a price can be offered. */
interface Row {
  uid: string
  model: Pick<CatalogModel, 'name' | 'type' | 'enabled' | 'pricing' | 'routes' | 'routing'>
}

function rowsOf({ models, endpoints }: CatalogDocument): Row[] {
  return [
    ...Object.entries(models).map(([uid, model]) => ({ uid, model })),
    ...Object.entries(endpoints).map(([uid, endpoint]) => ({
      uid,
      model: { ...endpoint, name: uid.split('/').slice(1).join(' / '), type: 'data' as const },
    })),
  ]
}

export function catalogChanged(): void {
  refresh('catalog', 'public-catalog', 'vendors')
}

export function CatalogueModels({ catalog }: { catalog: Catalog }) {
  const [text, setText] = useState('')
  const sought = useDeferredValue(text.trim().toLowerCase())
  const [editing, setEditing] = useState<Row>()
  const [routing, setRouting] = useState<Row>()
  const [busy, setBusy] = useState<string>()
  const rows = rowsOf(catalog.document).filter(({ uid, model }) =>
    `${uid} ${model.name}`.toLowerCase().includes(sought),
  )
  const enable = async ({ uid, model }: Row, enabled: boolean) => {
    setBusy(uid)
    try {
      await api.changeModel(uid, { enabled })
      toast(`${model.name} is ${enabled ? 'offered' : 'no longer offered'}.`)
      catalogChanged()
    } catch (error) {
      toastError(error)
    }
    setBusy(undefined)
  }
  return (
    <>
      <SearchField label="Search models" text={text} onText={setText} />
      <Card flush>
        {rows.length === 0 ? (
          <Empty icon="search" title="Nothing found" />
        ) : (
          <Table
            label="Models of the catalogue"
            rows={rows}
            rowKey={(row) => row.uid}
            dim={(row) => row.model.enabled === false}
            columns={[
              { head: 'Model', main: true, cell: (row) => <Named name={row.model.name} sub={row.uid} /> },
              { head: 'Type', cell: (row) => <Badge>{row.model.type}</Badge> },
              {
                head: 'Routes',
                cell: (row) => [...new Set(row.model.routes.map((route) => route.vendor))].join(', '),
                wideOnly: true,
              },
              { head: 'Price', cell: (row) => <Price pricing={row.model.pricing} />, tight: true },
              {
                head: 'Enabled',
                cell: (row) => (
                  <Switch
                    label={`Enable ${row.model.name}`}
                    on={row.model.enabled !== false}
                    disabled={busy === row.uid}
                    onSwitch={(on) => void enable(row, on)}
                  />
                ),
              },
              {
                head: 'Actions',
                cell: (row) => (
                  <span className="row">
                    <Button small icon="edit" onClick={() => setEditing(row)}>
                      Price
                    </Button>
                    <Button small icon="vendors" onClick={() => setRouting(row)}>
                      Routes
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </Card>
      {routing ? (
        <RoutesForm
          {...routing}
          vendors={Object.keys(catalog.document.vendors)}
          onClose={() => setRouting(undefined)}
        />
      ) : null}
      {editing ? <PriceForm row={editing} onClose={() => setEditing(undefined)} /> : null}
    </>
  )
}

type TierTexts = Partial<Record<PriceUnit, string>>

function PriceForm({ row, onClose }: { row: Row; onClose: () => void }) {
  const { tiers } = row.model.pricing
  const [texts, setTexts] = useState<TierTexts[]>(() =>
    tiers.map((tier) =>
      Object.fromEntries(PRICE_UNITS.flatMap((unit) => (tier[unit] === undefined ? [] : [[unit, String(tier[unit])]]))),
    ),
  )
  const units = unitsOf(row.model)
  const fault = (text: string | undefined) =>
    text?.trim() && (parseCredits(text) ?? -1n) < 0n ? 'An amount such as 2.5.' : undefined
  const valid = texts.every((tier) => units.every((unit) => !fault(tier[unit])))
  const run = async () => {
    await api.changeModel(row.uid, { pricing: withPrices(row.model.pricing, texts, units) })
    toast(`New prices for ${row.model.name} hold from now on.`)
    catalogChanged()
  }
  return (
    <FormDialog
      title={`Price of ${row.model.name}`}
      wide
      action="Set the price"
      disabled={!valid}
      run={run}
      onClose={onClose}
    >
      <Note>In credits. Calls in flight keep the old price. Tiers are edited in the JSON document.</Note>
      {tiers.map((tier, index) => (
        <fieldset key={describeTier(tier)} className="stack">
          {tiers.length > 1 ? <legend className="field-label">For {describeTier(tier)}</legend> : null}
          <div className="grid-2">
            {units.map((unit) => (
              <TextField
                key={unit}
                label={UNIT_NAMES[unit].price}
                inputMode="decimal"
                value={texts[index]?.[unit] ?? ''}
                placeholder="–"
                fault={fault(texts[index]?.[unit])}
                onText={(text) =>
                  setTexts((old) => old.map((entry, at) => (at === index ? { ...entry, [unit]: text } : entry)))
                }
              />
            ))}
          </div>
        </fieldset>
      ))}
    </FormDialog>
  )
}

/** What may have a price beside what has one. */
const USUAL: Partial<Record<CatalogModel['type'], readonly PriceUnit[]>> = {
  text: ['input', 'cachedInput', 'cacheWrite', 'output'],
  image: ['image', 'input', 'output'],
  video: ['second', 'output'],
  data: ['call', 'row'],
}

function unitsOf(model: Row['model']): PriceUnit[] {
  return PRICE_UNITS.filter(
    (unit) => USUAL[model.type]?.includes(unit) || model.pricing.tiers.some((tier) => tier[unit] !== undefined),
  )
}

function withPrices(pricing: Pricing, texts: readonly TierTexts[], units: readonly PriceUnit[]): Pricing {
  return {
    ...pricing,
    tiers: pricing.tiers.map((tier, index) => {
      const next: PriceTier = { ...tier }
      for (const unit of units) {
        const text = texts[index]?.[unit]?.trim()
        if (text) next[unit] = text
        else delete next[unit]
      }
      return next
    }),
  }
}
