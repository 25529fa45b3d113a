import { useState } from 'react'
import { api } from '../../api.ts'
import { useQuery } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { Badge, Card, Note } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { PriceComparison } from '../../wire.ts'
import { catalogChanged } from './catalogue-models.tsx'

type Row = PriceComparison['rows'][number]

const TITLES: Readonly<Record<Row['kind'], string>> = {
  changed: 'Changed',
  new: 'New model',
  gone: 'No longer listed',
  deprecated: 'Deprecated',
  unreadable: 'Unreadable',
}

/** The costs of this release’s signed table beside those of the catalog; nothing changes until rows are chosen and applied. */
export function ListPrices() {
  const compared = useQuery('catalog/list-prices', api.comparePrices)
  return <Loaded query={compared}>{(data) => <Differences key={data.made} compared={data} />}</Loaded>
}

function Differences({ compared: { made, warnings, rows } }: { compared: PriceComparison }) {
  const [chosen, setChosen] = useState(() => rows.filter(({ preselected }) => preselected).map(({ id }) => id))
  const apply = useAction(async () => {
    const { version } = await api.applyPrices(chosen)
    toast(`Version ${version} is current now.`)
    setChosen([])
    catalogChanged()
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
            { head: 'Cost in credits', cell: (row) => costWords(row) },
            { head: 'Noted', cell: ({ noted }) => noted ?? '–', tight: true },
            { head: 'Notes', cell: ({ notes, from }) => [...notes, ...(from ? [`Source: ${from}.`] : [])].join(' ') },
          ]}
        />
      )}
    </Card>
  )
}

/** "input 50 → 40, output 150 → 120", of the last tier, which is for every call. */
function costWords({ before, after }: Row): string {
  const [was, is] = [before, after].map((price) => Object.entries(price?.tiers.at(-1) ?? {}))
  const rates = (list: [string, unknown][] | undefined) =>
    (list ?? []).filter(([name]) => name !== 'when' && name !== 'upTo')
  const old = new Map(rates(was))
  if (rates(is).length === 0) return [...old].map(([unit, rate]) => `${unit} ${String(rate)}`).join(', ') || '–'
  return rates(is)
    .map(([unit, rate]) =>
      old.has(unit) ? `${unit} ${String(old.get(unit))} → ${String(rate)}` : `${unit} ${String(rate)}`,
    )
    .join(', ')
}
