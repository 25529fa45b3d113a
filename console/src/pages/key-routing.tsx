import { Checkbox, TextField } from '../ui/field.tsx'
import type { Key } from '../wire.ts'
import { RegionPick, VendorPick } from './pickers.tsx'

/** Where the calls of a key may go, as it is typed. */
export interface RoutingTexts {
  readonly vendors: string
  readonly regions: string
  /** By unit, in credits. */
  readonly maxPrice: Readonly<Record<string, string>>
  readonly callerChoice: boolean
}

type Routing = NonNullable<Key['routing']>

/** Keys that were made by the API may have limits for other units too; these stay as they are. */
const PRICED = [
  ['input', 'Highest input price'],
  ['output', 'Highest output price'],
] as const

export function routingTexts(routing: Key['routing'] = null): RoutingTexts {
  const joined = (names: readonly string[] = []) => names.join(', ')
  const maxPrice = Object.fromEntries(Object.entries(routing?.maxPrice ?? {}).map(([unit, at]) => [unit, String(at)]))
  const texts = { vendors: joined(routing?.vendors), regions: joined(routing?.regions), maxPrice }
  return { ...texts, callerChoice: routing?.callerChoice !== false }
}

/** Null: anywhere. */
export function textsAsRouting({ vendors, regions, maxPrice, callerChoice }: RoutingTexts): Key['routing'] {
  const parts = (text: string) => text.split(/[\s,]+/).filter(Boolean)
  const prices = Object.fromEntries(
    Object.entries(maxPrice).flatMap(([unit, text]) => (text.trim() ? [[unit, text.trim()]] : [])),
  ) as NonNullable<Routing['maxPrice']> // Units of the form, or of the key.
  const routing: Routing = {
    ...(parts(vendors).length ? { vendors: parts(vendors) } : {}),
    ...(parts(regions).length ? { regions: parts(regions) } : {}),
    ...(Object.keys(prices).length ? { maxPrice: prices } : {}),
    ...(callerChoice ? {} : { callerChoice }),
  }
  return Object.keys(routing).length ? routing : null
}

export function RoutingFields(props: { texts: RoutingTexts; onTexts: (texts: RoutingTexts) => void }) {
  const { texts, onTexts } = props
  return (
    <div className="grid-2">
      <VendorPick
        label="Allowed vendors"
        placeholder="All vendors"
        value={texts.vendors}
        onText={(vendors) => onTexts({ ...texts, vendors })}
      />
      <RegionPick
        label="Allowed regions"
        placeholder="All regions"
        value={texts.regions}
        onText={(regions) => onTexts({ ...texts, regions })}
      />
      {PRICED.map(([unit, label]) => (
        <TextField
          key={unit}
          label={label}
          name={`routing.maxPrice.${unit}`}
          inputMode="decimal"
          pattern="\d{1,12}(\.\d{1,6})?"
          placeholder="Any price"
          hint="Credits per million tokens."
          value={texts.maxPrice[unit] ?? ''}
          onText={(text) => onTexts({ ...texts, maxPrice: { ...texts.maxPrice, [unit]: text } })}
        />
      ))}
      <Checkbox
        label="Calls may choose vendors and fallback models"
        checked={texts.callerChoice}
        onCheck={(callerChoice) => onTexts({ ...texts, callerChoice })}
      />
    </div>
  )
}
