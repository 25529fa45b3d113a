import { useDeferredValue, useState } from 'react'
import { parseCredits } from '../../credits.ts'
import { Price } from '../../pages/models.tsx'
import { Checkbox, SearchField, SelectField, TextField } from '../../ui/field.tsx'
import { Card, Note } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { type ConnectInput, KIND_NAMES, kindRow, type ModelType, type Preset, type Pricing } from '../../wire.ts'

/** One of the vendor's models, and how it would be offered. */
export interface Offer {
  model: string
  uid: string
  /** The shipped name of the same model, and whether it is offered under that too. */
  alias: string | null
  alsoAlias: boolean
  type: ModelType
  chosen: boolean
  /** The list price, where one was noted. */
  list: Pricing | null
  known: boolean
  /** By the million tokens, in credits. */
  costInput: string
  costOutput: string
  priceInput: string
  priceOutput: string
}

/** This form has prices for tokens only: the kinds that are sold by these. */
const TYPES = KIND_NAMES.filter((kind) => kindRow(kind).priced.every(([unit]) => unit === 'input' || unit === 'output'))
const hasOutput = ({ type }: Offer) => kindRow(type).priced.flat().includes('output')
const SHOWN_MAX = 50

/** What the server would make of an offer. */
export interface MadePrice {
  readonly pricing: Pricing
  /** In percent, of each rate whose cost is known. */
  readonly margins: readonly number[]
}

/**
 * Those that the preset knows, and what the vendor lists besides. Only what it lists is chosen: the rest may not be
 * there any more.
 */
export function offersOf(preset: Preset | undefined, listed: readonly string[]): Offer[] {
  const blank = { alsoAlias: false, costInput: '', costOutput: '', priceInput: '', priceOutput: '' }
  const known = (preset?.models ?? []).map(({ model, uid, alias, type, cost }) => ({
    model,
    uid,
    alias,
    type,
    chosen: cost !== null && listed.includes(model),
    list: cost,
    known: true,
    ...blank,
  }))
  const names = new Set(known.map(({ model }) => model))
  const others = listed
    .filter((model) => !names.has(model))
    .map((model) => ({
      model,
      uid: uidOf(model),
      alias: null,
      type: 'text' as const,
      chosen: false,
      list: null,
      known: false,
      ...blank,
    }))
  return [...known, ...others]
}

const uidOf = (model: string) =>
  model
    .toLowerCase()
    .replaceAll(/[^a-z0-9._/-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')

export function choiceOf(offers: readonly Offer[]): Pick<ConnectInput, 'models'> {
  const chosen = offers.filter((offer) => offer.chosen)
  return {
    models: chosen.flatMap((one) => {
      const { model, uid, alias, type, known } = one
      const cost = pricingOf(one.costInput, one.costOutput)
      const pricing = pricingOf(one.priceInput, one.priceOutput)
      const rest = { ...(known ? {} : { type }), ...(cost ? { cost } : {}), ...(pricing ? { pricing } : {}) }
      const uids = alias && one.alsoAlias ? [uid, alias] : [uid]
      return uids.map((uid) => ({ model, uid, ...rest }))
    }),
  }
}

function pricingOf(input: string, output: string): Pricing | undefined {
  if (!input.trim() && !output.trim()) return undefined
  return { unit: 'credits', tiers: [{ ...(input.trim() ? { input } : {}), ...(output.trim() ? { output } : {}) }] }
}

interface Props {
  offers: readonly Offer[]
  onOffers: (next: readonly Offer[]) => void
  markup: string
  onMarkup: (text: string) => void
  preset: Preset | undefined
  /** By the id under which a model is offered. */
  prices: ReadonlyMap<string, MadePrice>
  /** The vendor said which models it has. */
  isListed: boolean
}

export function ConnectModels({ offers, onOffers, markup, onMarkup, preset, prices, isListed }: Props) {
  const [text, setText] = useState('')
  const sought = useDeferredValue(text.trim().toLowerCase())
  const found = offers.filter(({ model, uid }) => `${model} ${uid}`.toLowerCase().includes(sought))
  const change = (model: string, next: Partial<Offer>) =>
    onOffers(offers.map((offer) => (offer.model === model ? { ...offer, ...next } : offer)))
  return (
    <Card title="Models to offer" lead="In credits by the million tokens. Price = cost × markup, unless you set one.">
      {isListed ? null : <Note>The vendor does not list its models. Choose those that it has.</Note>}
      {preset?.replacesVendor ? (
        <Note>
          It takes over the routes of the vendor {preset.replacesVendor}. What it does not serve is named before you
          apply it.
        </Note>
      ) : null}
      <div className="grid-2">
        <TextField
          label="Markup"
          inputMode="decimal"
          value={markup}
          placeholder="1.2"
          fault={faultOf(markup)}
          hint={
            preset?.prices
              ? `List prices as of ${preset.prices.noted}, from ${preset.prices.from}.`
              : 'No list price known.'
          }
          onText={onMarkup}
        />
        {offers.length > 10 ? <SearchField label="Search models" text={text} onText={setText} /> : null}
      </div>
      <Table
        label="Models to offer"
        rows={found.slice(0, SHOWN_MAX)}
        rowKey={({ model }) => model}
        columns={[
          {
            head: 'Model',
            main: true,
            cell: (row) => (
              <Checkbox label={row.model} checked={row.chosen} onCheck={(chosen) => change(row.model, { chosen })} />
            ),
          },
          { head: 'Offered as', cell: (row) => <UidField row={row} onChange={(next) => change(row.model, next)} /> },
          { head: 'Cost', cell: (row) => <CostFields row={row} onChange={(next) => change(row.model, next)} /> },
          {
            head: 'Price',
            cell: (row) => (
              <PriceFields row={row} made={prices.get(row.uid)} onChange={(next) => change(row.model, next)} />
            ),
          },
        ]}
      />
      {found.length > SHOWN_MAX ? (
        <p className="muted small">{found.length - SHOWN_MAX} more: search for them.</p>
      ) : null}
    </Card>
  )
}

interface RowProps {
  row: Offer
  onChange: (next: Partial<Offer>) => void
}

function UidField({ row, onChange }: RowProps) {
  if (!row.chosen) return <code>{row.uid}</code>
  return (
    <>
      <TextField quiet label={`Id of ${row.model}`} mono value={row.uid} onText={(uid) => onChange({ uid })} />
      {row.alias && row.alias !== row.uid ? (
        <Checkbox
          label={`Also as ${row.alias}`}
          checked={row.alsoAlias}
          onCheck={(alsoAlias) => onChange({ alsoAlias })}
        />
      ) : null}
      {row.known ? null : (
        <SelectField
          quiet
          label={`Kind of ${row.model}`}
          value={row.type}
          options={TYPES}
          // It is one of the options.
          onText={(type) => onChange({ type: type as ModelType })}
        />
      )}
    </>
  )
}

function CostFields({ row, onChange }: RowProps) {
  if (row.list) return <Price pricing={row.list} />
  if (!row.chosen) return <span className="muted small">No list price known</span>
  return (
    <>
      <Rate
        label={`Cost of input, ${row.model}`}
        placeholder="input"
        text={row.costInput}
        onText={(costInput) => onChange({ costInput })}
      />
      {hasOutput(row) ? (
        <Rate
          label={`Cost of output, ${row.model}`}
          placeholder="output"
          text={row.costOutput}
          onText={(costOutput) => onChange({ costOutput })}
        />
      ) : null}
    </>
  )
}

function PriceFields({ row, made, onChange }: RowProps & { made: MadePrice | undefined }) {
  if (!row.chosen) return null
  return (
    <>
      {made ? (
        <span className="small" data-testid={`price-${row.uid}`}>
          <Price pricing={made.pricing} />
          <span className="cell-sub">{marginWords(made.margins)}</span>
        </span>
      ) : null}
      <Rate
        label={`Price of input, ${row.model}`}
        placeholder="input, by markup"
        text={row.priceInput}
        onText={(priceInput) => onChange({ priceInput })}
      />
      {hasOutput(row) ? (
        <Rate
          label={`Price of output, ${row.model}`}
          placeholder="output, by markup"
          text={row.priceOutput}
          onText={(priceOutput) => onChange({ priceOutput })}
        />
      ) : null}
    </>
  )
}

/** "margin 16.7 %", or from the least to the most. */
function marginWords(margins: readonly number[]): string {
  if (margins.length === 0) return 'cost not known'
  const [least, most] = [Math.min(...margins), Math.max(...margins)]
  return least === most ? `margin ${least} %` : `margin ${least} to ${most} %`
}

function Rate({
  label,
  placeholder,
  text,
  onText,
}: {
  label: string
  placeholder: string
  text: string
  onText: (text: string) => void
}) {
  return (
    <TextField
      quiet
      label={label}
      inputMode="decimal"
      placeholder={placeholder}
      value={text}
      fault={faultOf(text)}
      onText={onText}
    />
  )
}

function faultOf(text: string): string | undefined {
  return text.trim() && (parseCredits(text.trim()) ?? -1n) < 0n ? 'An amount such as 2.5.' : undefined
}
