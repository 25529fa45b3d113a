import { useDeferredValue, useState } from 'react'
import { isSimulated, simulatedOffers, withSimulated } from '../../../../src/catalog/simulated.ts'
import { SearchField, Switch } from '../../ui/field.tsx'
import { Marked } from '../../ui/mark.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Badge, Card } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import { toastError } from '../../ui/toast.tsx'
import type { Catalog, CatalogDocument, CatalogModel } from '../../wire.ts'
import { Price, SimulatedBadge } from '../models.tsx'
import { PriceForm } from './price-form.tsx'
import { useProposal, withModel } from './review.tsx'
import { RoutesForm } from './routes-form.tsx'

/** Models and data endpoints alike: what has a price can be offered. */
interface SoldProduct {
  uid: string
  model: Pick<CatalogModel, 'name' | 'type' | 'enabled' | 'pricing' | 'batchFactor' | 'routes' | 'routing'>
}

function rowsOf({ models, endpoints }: CatalogDocument): SoldProduct[] {
  return [
    ...Object.entries(models).map(([uid, model]) => ({ uid, model })),
    ...Object.entries(endpoints).map(([uid, endpoint]) => ({
      uid,
      model: { ...endpoint, name: uid.split('/').slice(1).join(' / '), type: 'data' as const },
    })),
  ]
}

export const simulatedProposal = (document: CatalogDocument, on: boolean): [after: CatalogDocument, text: string] => [
  withSimulated(document, on),
  `What is simulated is ${on ? 'offered' : 'no longer offered'}.`,
]

interface SwitchesProps {
  document: CatalogDocument
  isStale: boolean
  offer: (after: CatalogDocument, text: string) => void
}

function Switches({ document, isStale, offer }: SwitchesProps) {
  const isOffered = simulatedOffers(document).length > 0
  const isThere = isOffered || simulatedOffers(withSimulated(document, true)).length > 0
  const openFormats = (allClientFormats: boolean) =>
    offer(
      { ...document, allClientFormats },
      allClientFormats
        ? 'Every SDK works with every text model now.'
        : 'Each text model has the formats of its entry again.',
    )
  return (
    <Card>
      <SwitchRow
        label="Offer all API formats for all text models"
        about="Chat completions, Responses, Messages and Google’s format, converted if the vendor uses another. Off: each model has the formats of its entry."
        on={document.allClientFormats === true}
        disabled={isStale}
        onSwitch={openFormats}
      />
      {isThere ? (
        <SwitchRow
          label="Offer what is simulated"
          about="Models and data endpoints that only simulated vendors serve: their answers are made up, and charged like all others."
          on={isOffered}
          disabled={isStale}
          onSwitch={(on) => offer(...simulatedProposal(document, on))}
        />
      ) : null}
    </Card>
  )
}

function SwitchRow({ about, ...rest }: Omit<Parameters<typeof Switch>[0], 'right'> & { about: string }) {
  return (
    <div className="row-spread">
      <p>
        <b>{rest.label}</b>
        <br />
        <span className="muted small">{about}</span>
      </p>
      <Switch right="catalog:write" {...rest} />
    </div>
  )
}

/** `isStale`: it is being read again. A form that opened now would save over what has just changed. */
export function CatalogModels({ catalog, isStale }: { catalog: Catalog; isStale: boolean }) {
  const [text, setText] = useState('')
  const sought = useDeferredValue(text.trim().toLowerCase())
  const [editing, setEditing] = useState<SoldProduct>()
  const [routing, setRouting] = useState<SoldProduct>()
  const { propose, review } = useProposal(catalog)
  const rows = rowsOf(catalog.document).filter(({ uid, model }) =>
    `${uid} ${model.name}`.toLowerCase().includes(sought),
  )
  const offer = (after: CatalogDocument, text: string) => void propose({ after, text }).catch(toastError)
  const enable = ({ uid, model: { name } }: SoldProduct, enabled: boolean) =>
    offer(withModel(catalog.document, uid, { enabled }), `${name} is ${enabled ? 'offered' : 'no longer offered'}.`)
  return (
    <>
      <Switches document={catalog.document} isStale={isStale} offer={offer} />
      <SearchField label="Search models" text={text} onText={setText} />
      <Card flush>
        {rows.length === 0 ? (
          <Empty icon="search" title="Nothing found" />
        ) : (
          <Table
            label="Models of the catalog"
            rows={rows}
            rowKey={(row) => row.uid}
            dim={(row) => row.model.enabled === false}
            columns={[
              {
                head: 'Model',
                main: true,
                cell: (row) => (
                  <Marked by={row.model.routes[0]?.vendor ?? row.uid}>
                    <Named name={row.model.name} sub={row.uid} />
                  </Marked>
                ),
              },
              {
                head: 'Type',
                cell: ({ model }) => (
                  <span className="badges">
                    <Badge>{model.type}</Badge>
                    {isSimulated(model, catalog.document.vendors) ? <SimulatedBadge /> : null}
                  </span>
                ),
              },
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
                    right="catalog:write"
                    label={`Enable ${row.model.name}`}
                    on={row.model.enabled !== false}
                    disabled={isStale}
                    onSwitch={(on) => enable(row, on)}
                  />
                ),
              },
              {
                head: 'Actions',
                cell: (row) =>
                  isStale ? null : (
                    <Menu
                      right="catalog:write"
                      label={`Actions for ${row.model.name}`}
                      items={[
                        { label: 'Price', icon: 'edit', run: () => setEditing(row) },
                        { label: 'Routes', icon: 'vendors', run: () => setRouting(row) },
                      ]}
                    />
                  ),
              },
            ]}
          />
        )}
      </Card>
      {review}
      {routing ? <RoutesForm {...routing} catalog={catalog} onClose={() => setRouting(undefined)} /> : null}
      {editing ? <PriceForm row={editing} catalog={catalog} onClose={() => setEditing(undefined)} /> : null}
    </>
  )
}
