// What an account charges its customers, and what it earns by that.
import { useState } from 'react'
import { plural } from '../../format.ts'
import { refresh, useQuery } from '../../query.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { Amount, Card, Page, Stat, Stats } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { PursePrices } from '../../wire.ts'
import { pursesApi } from './api.ts'
import { purseAt } from './purses.tsx'

export function PursePricesPage({ account }: { account: string }) {
  const [editing, setEditing] = useState(false)
  const prices = useQuery(`purse-prices/${account}`, (signal) => pursesApi.prices(account, signal))
  const margins = useQuery(`purse-margins/${account}`, (signal) => pursesApi.margins(account, signal))
  return (
    <Page
      title="Prices for customers"
      lead="What calls of purses cost your customers. A call keeps the price list by which it began."
      actions={
        <Button right="budgets:write" account={account} look="primary" icon="edit" onClick={() => setEditing(true)}>
          Change
        </Button>
      }
    >
      <Loaded query={prices}>
        {(data) => (
          <>
            <List prices={data} />
            {editing ? <PricesForm account={account} given={data} onClose={() => setEditing(false)} /> : null}
          </>
        )}
      </Loaded>
      <Loaded query={margins}>
        {(data) => (
          <>
            <Stats>
              <Stat label="Customers paid" value={<Amount value={data.sold} />} />
              <Stat label="You paid" value={<Amount value={data.paid} />} />
              <Stat label="Margin" value={<Amount value={data.margin} />} note={plural(data.calls, 'call')} />
            </Stats>
            <Card title="By customer" flush>
              <Table
                label="Margin by customer"
                rows={data.purses}
                rowKey={({ purse }) => purse}
                columns={[
                  {
                    head: 'Customer',
                    main: true,
                    cell: ({ purse, name }) => <Named to={purseAt(account, purse)} name={name || purse} />,
                  },
                  ...SUMS,
                ]}
              />
            </Card>
            <Card title="By model" flush>
              <Table
                label="Margin by model"
                rows={data.products}
                rowKey={({ product }) => product}
                columns={[{ head: 'Model', main: true, cell: ({ product }) => product }, ...SUMS]}
              />
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  )
}

interface Sum {
  readonly calls: number
  readonly sold: string
  readonly paid: string
  readonly margin: string
}

const SUMS = [
  { head: 'Calls', right: true, cell: ({ calls }: Sum) => String(calls) },
  { head: 'Paid', right: true, cell: ({ sold }: Sum) => <Amount value={sold} /> },
  { head: 'Cost you', right: true, cell: ({ paid }: Sum) => <Amount value={paid} /> },
  { head: 'Margin', right: true, cell: ({ margin }: Sum) => <Amount value={margin} sign /> },
] as const

const shownRates = (rates: Readonly<Record<string, string | number>>) =>
  Object.entries(rates)
    .map(([unit, rate]) => `${unit} ${rate}`)
    .join(', ')

function List({ prices: { version, markupPercent, models, volume } }: { prices: PursePrices }) {
  if (version === 0)
    return (
      <Empty icon="statement" title="No price list yet">
        <p>Customers pay what you pay.</p>
      </Empty>
    )
  const rows = [...models, { model: models.length === 0 ? 'All models' : 'All others', markupPercent }]
  return (
    <Card title={`Version ${version}`} flush>
      <Table
        label="Prices"
        rows={rows}
        rowKey={({ model }) => model}
        columns={[
          { head: 'Model', main: true, cell: ({ model }) => model },
          {
            head: 'Price',
            cell: (row) =>
              'prices' in row && row.prices
                ? row.prices.map(shownRates).join('; ')
                : `${row.markupPercent ?? markupPercent} % on what you pay`,
          },
        ]}
      />
      {volume.length === 0 ? null : (
        <Table
          label="Discounts by volume"
          rows={volume}
          rowKey={({ from }) => from}
          columns={[
            { head: 'A customer that paid in this month', main: true, cell: ({ from }) => <Amount value={from} /> },
            { head: 'Discount', right: true, cell: ({ discountPercent }) => `${discountPercent} %` },
          ]}
        />
      )}
    </Card>
  )
}

function PricesForm({ account, given, onClose }: { account: string; given: PursePrices; onClose: () => void }) {
  const [markupPercent, setMarkup] = useState(given.markupPercent)
  const [models, setModels] = useState(JSON.stringify(given.models, null, 2))
  const [volume, setVolume] = useState(given.volume.map((one) => `${one.from}: ${one.discountPercent}`).join(', '))
  const parsed = parse(models)
  const discounts = discountsIn(volume)
  const run = async () => {
    const prices = { markupPercent: markupPercent.trim(), models: parsed, volume: discounts }
    const { version } = await pursesApi.setPrices(account, prices)
    toast(`Price list ${version} is in force.`)
    refresh(`purse-prices/${account}`)
  }
  return (
    <FormDialog title="Prices for customers" action="Save" run={run} onClose={onClose}>
      <TextField
        label="Markup on what you pay, in percent"
        value={markupPercent}
        onText={setMarkup}
        inputMode="decimal"
        required
      />
      <TextArea
        label="Models with a price of their own"
        value={models}
        onText={setModels}
        mono
        rows={12}
        hint='JSON, in the form of the catalog: [{"model": "…", "prices": [{"input": "3", "output": "15"}]}]. The first that fits counts; a name may end in *'
        fault={parsed ? undefined : 'This is no list in JSON.'}
      />
      <TextField
        label="Discounts by volume"
        value={volume}
        onText={setVolume}
        placeholder="1000: 5, 10000: 10"
        hint="From so many credits that a customer paid for calls in this month: so many percent less on the next ones"
        fault={discounts ? undefined : 'Such as 1000: 5, 10000: 10.'}
      />
    </FormDialog>
  )
}

/** "1000: 5, 10000: 10" */
function discountsIn(text: string): object[] | undefined {
  const parts = text.split(',').filter((part) => part.trim() !== '')
  const found = parts.flatMap((part) => {
    const [, from, discountPercent] = /^([\d.]+)\s*:\s*([\d.]+)\s*%?$/.exec(part.trim()) ?? []
    return from === undefined ? [] : [{ from, discountPercent }]
  })
  return found.length === parts.length ? found : undefined
}

function parse(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
