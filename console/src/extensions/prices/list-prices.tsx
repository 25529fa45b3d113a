import { useState } from 'react'
import { rateChanges } from '../../../../src/catalog/change-sentences.ts'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { toastSaved } from '../../pages/operator/review.tsx'
import { useQuery } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { Badge, Card, Note } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { type PriceComparison, unitRow } from '../../wire.ts'

type ComparedPrice = PriceComparison['rows'][number]

const TITLES: Readonly<Record<ComparedPrice['kind'], string>> = {
  changed: 'Changed',
  new: 'New model',
  gone: 'No longer listed',
  deprecated: 'Deprecated',
  unreadable: 'Unreadable',
}

/**
 * The costs of this release’s signed table beside those of the catalog; nothing changes until rows are chosen and
 * applied.
 */
export function ListPrices() {
  const compared = useQuery('catalog/list-prices', api.comparePrices)
  return <Loaded query={compared}>{(data) => <Differences key={data.made} compared={data} />}</Loaded>
}

function Differences({ compared: { made, warnings, rows } }: { compared: PriceComparison }) {
  const [chosen, setChosen] = useState(() => rows.filter(({ preselected }) => preselected).map(({ id }) => id))
  const apply = useAction(async () => {
    const saved = await api.applyPrices(chosen)
    toastSaved(saved)
    setChosen([])
  })
  const choose = (id: string, checked: boolean) =>
    setChosen((before) => (checked ? [...before, id] : before.filter((one) => one !== id)))
  return (
    <Card
      flush
      title="List prices"
      lead={`Compared with the signed table of ${made}. Costs and prices that you set by hand are left alone.`}
      actions={
        <Button
          right="catalog:write"
          look="primary"
          icon="check"
          busy={apply.busy}
          disabled={chosen.length === 0}
          onClick={() => apply.go()}
        >
          {`Apply ${chosen.length} ${chosen.length === 1 ? 'row' : 'rows'}`}
        </Button>
      }
    >
      {warnings.map((one) => (
        <Note key={one} tone="warn">
          {one}
        </Note>
      ))}
      {apply.error ? <Fault error={apply.error} /> : null}
      {rows.length === 0 ? (
        <Empty icon="check" title="All costs are list prices" />
      ) : (
        <Table
          label="List prices"
          rows={rows}
          rowKey={({ id, kind }) => `${id} ${kind}`}
          columns={[
            {
              head: 'Model',
              main: true,
              cell: ({ id, model, selectable }) =>
                selectable ? (
                  <Checkbox label={model} checked={chosen.includes(id)} onCheck={(checked) => choose(id, checked)} />
                ) : (
                  <b>{model}</b>
                ),
            },
            { head: 'Vendor', cell: ({ vendor }) => vendor, wideOnly: true },
            { head: 'What', cell: ({ kind }) => <Badge>{TITLES[kind]}</Badge>, tight: true },
            { head: 'Cost in credits', cell: (row) => <Costs of={row} /> },
            { head: 'Noted', cell: ({ noted }) => noted ?? '–', tight: true },
            { head: 'Notes', cell: ({ notes, from }) => [...notes, ...(from ? [`Source: ${from}.`] : [])].join(' ') },
          ]}
        />
      )}
    </Card>
  )
}

/** Of each tier: "Input, per million tokens 50 → 40". */
function Costs({ of: { before, after } }: { of: ComparedPrice }) {
  const rates = rateChanges(before ? { pricing: before } : undefined, { pricing: after ?? before })
  const shown = rates.length > 0 ? rates : rateChanges(undefined, { pricing: after ?? before })
  if (shown.length === 0) return '–'
  return (
    <ul className="plain-list small">
      {shown.map(({ tier, unit, was, now }) => (
        <li key={`${tier} ${unit}`}>
          {tier ? `${tier === 'else' ? 'everything else' : tier}: ` : ''}
          {unitRow(unit).rate}{' '}
          <b>{[was, now].flatMap((rate) => (rate === undefined ? [] : formatCredits(rate))).join(' → ')}</b>
        </li>
      ))}
    </ul>
  )
}
