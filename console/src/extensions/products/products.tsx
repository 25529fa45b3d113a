// Products: APIs that the catalog sells as endpoints. What each offers, at which price, and whether it reaches its
// vendor.
import { useState } from 'react'
import { api } from '../../api.ts'
import { plural } from '../../format.ts'
import { Price } from '../../pages/models.tsx'
import { Sentences, toastSaved } from '../../pages/operator/review.tsx'
import { vendorPath } from '../../pages/operator/vendors.tsx'
import { useQuery } from '../../query.ts'
import { Link, navigate } from '../../router.tsx'
import { lastAccount } from '../../session.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Badge, Card, Facts, Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import type { Catalog, Vendor } from '../../wire.ts'
import { addressOf, vendorOf } from './product-draft.ts'

const HOME = '/operator/products'

interface ListedProduct {
  id: string
  title: string
  description: string
  vendor: string | undefined
  operations: readonly string[]
}

const rowsOf = ({ document }: Catalog): ListedProduct[] =>
  Object.entries(document.products ?? {}).map(([id, { title, description = '', operations }]) => ({
    id,
    title,
    description,
    vendor: vendorOf(id, document),
    operations: Object.keys(operations),
  }))

/** Without a credential test keys alone are answered, with examples. */
function StateBadge({ vendor }: { vendor: Vendor | undefined }) {
  if (!vendor) return <Badge>–</Badge>
  if (!vendor.credential.name && vendor.credentials.length === 0) return <Badge>No credential needed</Badge>
  const isThere = vendor.credential.present || vendor.credentials.some(({ present }) => present)
  return isThere ? <Badge tone="good">Credential stored</Badge> : <Badge tone="warn">Simulated: no credential</Badge>
}

export function ProductsPage() {
  const catalog = useQuery('catalog', api.catalog)
  const vendors = useQuery('vendors', api.vendors)
  const of = (name: string | undefined) => vendors.data?.items.find((one) => one.name === name)
  return (
    <Page
      title="Products"
      lead="Third-party APIs, sold as endpoints of this gateway: checked, charged and documented like its own, and offered to agents as tools."
      actions={
        <LinkButton right="catalog:write" look="primary" icon="plus" to={`${HOME}/new`}>
          Add a product
        </LinkButton>
      }
    >
      <Card flush>
        <Loaded query={catalog}>
          {(data) =>
            rowsOf(data).length === 0 ? (
              <Empty icon="catalog" title="No products yet">
                <p>Paste an OpenAPI document, choose a preset, or describe one operation.</p>
              </Empty>
            ) : (
              <Table
                label="Products"
                rows={rowsOf(data)}
                rowKey={({ id }) => id}
                to={({ id }) => `${HOME}/${id}`}
                columns={[
                  {
                    head: 'Product',
                    main: true,
                    cell: ({ id, title }) => <Named name={title} to={`${HOME}/${id}`} sub={addressOf(id)} />,
                  },
                  { head: 'Operations', right: true, cell: ({ operations }) => operations.length },
                  { head: 'State', cell: ({ vendor }) => <StateBadge vendor={of(vendor)} /> },
                  { head: 'Vendor', cell: ({ vendor = '–' }) => vendor },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
    </Page>
  )
}

export function ProductPage({ product: id }: { product: string }) {
  const catalog = useQuery('catalog', api.catalog)
  const vendors = useQuery('vendors', api.vendors)
  const [removing, setRemoving] = useState(false)
  const row = catalog.data && rowsOf(catalog.data).find((one) => one.id === id)
  const vendor = vendors.data?.items.find(({ name }) => name === row?.vendor)
  return (
    <Page
      title={row?.title ?? id}
      lead={row?.description || undefined}
      back={{ to: HOME, label: 'Products' }}
      actions={
        row ? (
          <>
            <LinkButton right="catalog:write" icon="edit" to={`${HOME}/${id}/edit`}>
              Edit
            </LinkButton>
            <Button right="catalog:write" look="danger" onClick={() => setRemoving(true)}>
              Remove
            </Button>
          </>
        ) : null
      }
    >
      <Loaded query={catalog}>
        {({ document }) =>
          row ? (
            <>
              <Facts
                items={[
                  ['State', <StateBadge key="state" vendor={vendor} />],
                  ['Vendor', row.vendor ? <Link to={vendorPath(row.vendor)}>{row.vendor}</Link> : '–'],
                  ['Address of the API', <code key="url">{vendor?.baseUrl ?? '–'}</code>],
                  [
                    'Usage',
                    <Link key="usage" to={`/operator/calls?q=${id}%2F`}>
                      Calls of this product
                    </Link>,
                  ],
                ]}
              />
              <Card flush title={plural(row.operations.length, 'operation')}>
                <Operations id={id} document={document} />
              </Card>
            </>
          ) : (
            <Empty icon="search" title={`There is no product ${id}`} />
          )
        }
      </Loaded>
      {removing ? <RemoveDialog id={id} onClose={() => setRemoving(false)} /> : null}
    </Page>
  )
}

function Operations({ id, document: { products, endpoints } }: { id: string; document: Catalog['document'] }) {
  const account = lastAccount()
  const docs = (uid: string) => `/docs/api/${uid.replaceAll(/[^a-zA-Z0-9]+/g, '-').replaceAll(/^-|-$/g, '')}`
  return (
    <Table
      label="Operations"
      rows={Object.entries(products?.[id]?.operations ?? {}).map(([name, entry]) => ({ name, ...entry }))}
      rowKey={({ name }) => name}
      dim={({ name }) => endpoints[`${id}/${name}`]?.enabled === false}
      columns={[
        {
          head: 'Operation',
          main: true,
          cell: ({ name, title, route }) => (
            <Named name={title} sub={`${name} · ${route.replace(' ', ` ${addressOf(id)}`)}`} />
          ),
        },
        {
          head: 'Price',
          tight: true,
          cell: ({ name }) => <Price pricing={endpoints[`${id}/${name}`]?.pricing ?? null} />,
        },
        {
          head: 'Cached',
          tight: true,
          cell: ({ name }) => {
            const { cache } = endpoints[`${id}/${name}`] ?? {}
            return cache?.ttlSeconds ? `${cache.ttlSeconds} s` : '–'
          },
        },
        {
          head: 'Try it',
          cell: ({ name, body }) => (
            <span className="row">
              <a href={docs(`${id}/${name}`)}>Docs</a>
              {account && body === undefined ? (
                <Link
                  to={`/a/${encodeURIComponent(account)}/playground/products?endpoint=${encodeURIComponent(`${id}/${name}`)}`}
                >
                  Playground
                </Link>
              ) : null}
              <Link to={`/operator/calls?product=${encodeURIComponent(`${id}/${name}`)}`}>Calls</Link>
            </span>
          ),
        },
      ]}
    />
  )
}

function RemoveDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const check = useQuery(`product-remove/${id}`, (signal) => api.checkRemoveProduct(id, signal))
  return (
    <Confirm
      right="catalog:write"
      title={`Remove ${id}?`}
      danger
      action="Remove"
      disabled={!check.data}
      run={async () => {
        const saved = await api.removeProduct(id)
        toastSaved(saved)
        navigate(HOME)
      }}
      onClose={onClose}
    >
      <Loaded query={check}>{({ changes }) => <Sentences lines={changes} />}</Loaded>
      <p>Charges stay in the ledger. You can roll back to the previous version of the catalog.</p>
    </Confirm>
  )
}
