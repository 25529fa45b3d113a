import { Checkbox, TextField } from '../ui/field.tsx'
import type { Key } from '../wire.ts'
import { VendorPick } from './pickers.tsx'

/** Where the calls of a key may go, as it is typed. */
export interface RoutingTexts {
  readonly vendors: string
  readonly regions: string
  readonly maxPrice: string
  readonly callerChoice: boolean
}

type Routing = NonNullable<Key['routing']>

export function routingTexts(routing: Key['routing'] = null): RoutingTexts {
  const prices = Object.entries(routing?.maxPrice ?? {}).map(([unit, amount]) => `${unit}=${amount}`)
  const joined = (names: readonly string[] = []) => names.join(', ')
  const texts = { vendors: joined(routing?.vendors), regions: joined(routing?.regions), maxPrice: joined(prices) }
  return { ...texts, callerChoice: routing?.callerChoice !== false }
}

/** Null: anywhere. */
export function textsAsRouting({ vendors, regions, maxPrice, callerChoice }: RoutingTexts): Key['routing'] {
  const parts = (text: string) => text.split(/[\s,]+/).filter(Boolean)
  // The gateway rejects what is no unit.
  const prices = Object.fromEntries(parts(maxPrice).map((one) => one.split('='))) as NonNullable<Routing['maxPrice']>
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
    <div className="grid-3">
      <VendorPick
        label="Allowed vendors"
        placeholder="All vendors"
        value={texts.vendors}
        onText={(vendors) => onTexts({ ...texts, vendors })}
      />
      <TextField
        label="Allowed regions"
        hint="Such as eu, us-east-1. Leave empty for all."
        value={texts.regions}
        onText={(regions) => onTexts({ ...texts, regions })}
      />
      <TextField
        label="Highest prices"
        hint="Such as input=300, output=1500. Leave empty for any."
        value={texts.maxPrice}
        onText={(maxPrice) => onTexts({ ...texts, maxPrice })}
      />
      <Checkbox
        label="Calls may choose vendors and fallback models"
        checked={texts.callerChoice}
        onCheck={(callerChoice) => onTexts({ ...texts, callerChoice })}
      />
    </div>
  )
}
