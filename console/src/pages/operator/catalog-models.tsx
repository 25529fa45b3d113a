import { useDeferredValue, useState } from 'react'
import { SearchField, Switch } from '../../ui/field.tsx'
import { Marked } from '../../ui/mark.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Badge, Card } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import { toastError } from '../../ui/toast.tsx'
import type { Catalog, CatalogDocument, CatalogModel } from '../../wire.ts'
import { Price } from '../models.tsx'
import { PriceForm } from './price-form.tsx'
import { useProposal, withModel } from './review.tsx'
import { RoutesForm } from './routes-form.tsx'

/** Models and data endpoints alike: what has a price can be offered. */
interface Row {
  uid: string
  model: Pick<CatalogModel, 'name' | 'type' | 'enabled' | 'pricing' | 'batchFactor' | 'routes' | 'routing'>
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

/** `isStale`: it is being read again. A form that opened now would save over what has just changed. */
export function CatalogModels({ catalog, isStale }: { catalog: Catalog; isStale: boolean }) {
  const [text, setText] = useState('')
  const sought = useDeferredValue(text.trim().toLowerCase())
  const [editing, setEditing] = useState<Row>()
  const [routing, setRouting] = useState<Row>()
  const { propose, review } = useProposal(catalog)
  const rows = rowsOf(catalog.document).filter(({ uid, model }) =>
    `${uid} ${model.name}`.toLowerCase().includes(sought),
  )
  const offer = (after: CatalogDocument, text: string) => void propose({ after, text }).catch(toastError)
  const enable = ({ uid, model: { name } }: Row, enabled: boolean) =>
    offer(withModel(catalog.document, uid, { enabled }), `${name} is ${enabled ? 'offered' : 'no longer offered'}.`)
  const openFormats = (allClientFormats: boolean) =>
    offer(
      { ...catalog.document, allClientFormats },
      allClientFormats
        ? 'Every SDK works with every text model now.'
        : 'Each text model has the formats of its entry again.',
    )
  return (
    <>
      <Card>
        <div className="row-spread">
          <p>
            <b>Offer all API formats for all text models</b>
            <br />
            <span className="muted small">
              Chat completions, Responses, Messages and Google’s format, converted if the vendor uses another. Off: each
              model has the formats of its entry.
            </span>
          </p>
          <Switch
            right="catalog:write"
            label="Offer all API formats for all text models"
            on={catalog.document.allClientFormats === true}
            disabled={isStale}
            onSwitch={openFormats}
          />
        </div>
      </Card>
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
