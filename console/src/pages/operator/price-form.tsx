// What a model costs: rates for each tier, extras among them, what multiplies them, and what they are in batches.
import { useState } from 'react'
import { costsOf, marginPercent } from '../../../../src/catalog/change-sentences.ts'
import { formatCredits, parseCredits } from '../../credits.ts'
import { describeTier } from '../../pricing.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import {
  type Catalog,
  type CatalogModel,
  kindRow,
  type PriceTier,
  type PriceUnit,
  type Pricing,
  UNIT_NAMES,
  unitRow,
} from '../../wire.ts'
import { useProposal, withModel } from './review.tsx'

interface Priced {
  uid: string
  model: Pick<CatalogModel, 'name' | 'type' | 'pricing' | 'batchFactor' | 'routes'>
}

type TierTexts = Partial<Record<PriceUnit, string>>

/** `service_tier` `priority`: times 2. */
interface Multiplier {
  field: string
  value: string
  times: string
}

const faultOf = (text: string | undefined) =>
  text?.trim() && (parseCredits(text) ?? -1n) < 0n ? 'An amount such as 2.5.' : undefined

interface Props {
  row: Priced
  catalog: Catalog
  onClose: () => void
}

type Fields = Pick<CatalogModel, 'pricing'> & { batchFactor?: string }

/** Nothing applies before it has been seen as a table, beside what it costs. */
export function PriceForm({ row, catalog, onClose }: Props) {
  const { propose, review } = useProposal(catalog, onClose)
  const text = `New prices for ${row.model.name} apply now.`
  return (
    <>
      <PriceFields
        row={row}
        onClose={onClose}
        onFields={(fields) => propose({ after: withModel(catalog.document, row.uid, fields), text })}
      />
      {review}
    </>
  )
}

function PriceFields({
  row,
  onFields,
  onClose,
}: Omit<Props, 'catalog'> & { onFields: (fields: Fields) => Promise<void> }) {
  const { model } = row
  const costs = costsOf({ ...model })
  /** "Costs 250: margin 16.7 %". */
  const costHint = (index: number, unit: PriceUnit) => {
    const given = costs[index]?.[unit]
    const cost = given === undefined ? undefined : parseCredits(String(given))
    if (cost === undefined) return undefined
    const price = parseCredits(texts[index]?.[unit] ?? '')
    const margin = price === undefined ? undefined : marginPercent(price, cost)
    return `Costs ${formatCredits(cost)}${margin === undefined ? '' : `: margin ${margin} %`}`
  }
  const { tiers } = model.pricing
  const [texts, setTexts] = useState<TierTexts[]>(() =>
    tiers.map((tier) =>
      Object.fromEntries(UNIT_NAMES.flatMap((unit) => (tier[unit] === undefined ? [] : [[unit, String(tier[unit])]]))),
    ),
  )
  const [multipliers, setMultipliers] = useState(() => multipliersOf(model.pricing))
  const [batchFactor, setBatchFactor] = useState(String(model.batchFactor ?? ''))
  const units = unitsOf(model)
  const extras = model.type === 'text' ? UNIT_NAMES.filter((unit) => unitRow(unit).extra && !units.includes(unit)) : []
  const all = [...units, ...extras]
  const run = async () => {
    const pricing = withMultipliers(withPrices(model.pricing, texts, all), multipliers)
    const factor = batchFactor.trim() || (model.batchFactor === undefined ? undefined : '1')
    await onFields({ pricing, ...(factor === undefined ? {} : { batchFactor: factor }) })
  }
  const fields = (index: number, shown: readonly PriceUnit[]) => (
    <div className="grid-2">
      {shown.map((unit) => (
        <TextField
          key={unit}
          label={unitRow(unit).rate}
          hint={costHint(index, unit)}
          inputMode="decimal"
          value={texts[index]?.[unit] ?? ''}
          placeholder="–"
          fault={faultOf(texts[index]?.[unit])}
          onText={(text) =>
            setTexts((old) => old.map((entry, at) => (at === index ? { ...entry, [unit]: text } : entry)))
          }
        />
      ))}
    </div>
  )
  return (
    <FormDialog
      right="catalog:write"
      title={`Price of ${model.name}`}
      wide
      action="Preview the change"
      stay
      run={run}
      onClose={onClose}
    >
      <Note>In credits. Calls in flight keep the old price. Tiers are edited in the JSON document.</Note>
      {tiers.map((tier, index) => (
        <fieldset key={describeTier(tier)} className="stack">
          {tiers.length > 1 ? <legend className="field-label">For {describeTier(tier)}</legend> : null}
          {fields(index, units)}
          {extras.length > 0 ? (
            <details className="fold">
              <summary>Extras: tools that run at the vendor, and caches for an hour</summary>
              <div className="stack">
                <p className="field-hint">Extras without a price in every tier are not offered to callers.</p>
                {fields(index, extras)}
              </div>
            </details>
          ) : null}
        </fieldset>
      ))}
      {model.type === 'text' ? <Multipliers list={multipliers} onChange={setMultipliers} /> : null}
      {kindRow(model.type).batchable ? (
        <TextField
          label="Batch multiplier"
          hint="Each rate is multiplied by this in batches, such as 0.5. Leave empty for the same price."
          inputMode="decimal"
          placeholder="1"
          value={batchFactor}
          fault={faultOf(batchFactor)}
          onText={setBatchFactor}
        />
      ) : null}
    </FormDialog>
  )
}

function Multipliers({ list, onChange }: { list: readonly Multiplier[]; onChange: (list: Multiplier[]) => void }) {
  const change = (at: number, part: Partial<Multiplier>) =>
    onChange(list.map((one, index) => (index === at ? { ...one, ...part } : one)))
  return (
    <fieldset className="stack">
      <legend className="field-label">Service-tier multipliers</legend>
      {list.map(({ field, value, times }, at) => (
        <div key={at} className="row">
          <TextField label="Field" required value={field} onText={(text) => change(at, { field: text })} />
          <TextField label="Value" required value={value} onText={(text) => change(at, { value: text })} />
          <TextField
            label="Times"
            inputMode="decimal"
            required
            value={times}
            fault={faultOf(times)}
            onText={(text) => change(at, { times: text })}
          />
          <IconButton
            icon="trash"
            label={`Remove ${field} ${value}`}
            onClick={() => onChange(list.filter((_, index) => index !== at))}
          />
        </div>
      ))}
      <div>
        <Button
          small
          icon="plus"
          onClick={() =>
            onChange([...list, { field: 'service_tier', value: list.length ? '' : 'priority', times: '' }])
          }
        >
          Add a multiplier
        </Button>
      </div>
    </fieldset>
  )
}

function multipliersOf({ multipliers = {} }: Pricing): Multiplier[] {
  return Object.entries(multipliers).flatMap(([field, values]) =>
    Object.entries(values).map(([value, times]) => ({ field, value, times: String(times) })),
  )
}

function unitsOf({ type, pricing }: Priced['model']): PriceUnit[] {
  const { priced, usual = [] } = kindRow(type)
  return UNIT_NAMES.filter(
    (unit) => [...priced.flat(), ...usual].includes(unit) || pricing.tiers.some((tier) => tier[unit] !== undefined),
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

function withMultipliers({ multipliers: _, ...pricing }: Pricing, list: readonly Multiplier[]): Pricing {
  if (list.length === 0) return pricing
  const multipliers: NonNullable<Pricing['multipliers']> = {}
  for (const { field, value, times } of list)
    multipliers[field.trim()] = { ...multipliers[field.trim()], [value.trim()]: times.trim() }
  return { ...pricing, multipliers }
}
