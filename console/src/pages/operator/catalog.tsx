import { api } from '../../api.ts'
import { ListPrices } from '../../extensions/prices/list-prices.tsx'
import { useQuery } from '../../query.ts'
import { Ago, Badge, Note, Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { CatalogEditor } from './catalog-editor.tsx'
import { CatalogModels } from './catalog-models.tsx'
import { CatalogVersions } from './catalog-versions.tsx'

export function CatalogPage({ tab = 'models' }: { tab?: string }) {
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Page
      title="Catalog"
      lead="Vendors, models, data endpoints, routes and prices: one document. Each change makes a new version, and running calls keep the price they started with."
      actions={
        catalog.data ? (
          <span className="row">
            <Badge tone="good">version {catalog.data.version}</Badge>
            <span className="muted small">
              applied <Ago at={catalog.data.appliedAt} />
              {catalog.data.actor ? ` by ${catalog.data.actor}` : ''}
            </span>
          </span>
        ) : null
      }
    >
      {catalog.data?.notes.map((note) => (
        <Note key={note} tone="warn">
          {note}
        </Note>
      ))}
      {tab === 'versions' ? (
        <CatalogVersions current={catalog.data?.version} />
      ) : tab === 'list-prices' ? (
        <ListPrices />
      ) : (
        <Loaded query={catalog}>
          {(data) =>
            tab === 'document' ? (
              <CatalogEditor catalog={data} />
            ) : (
              <CatalogModels catalog={data} isStale={catalog.busy} />
            )
          }
        </Loaded>
      )}
    </Page>
  )
}
