// What is sold: packs, plans, and what a credit costs. Each form ends in the same review as every other change of the
// catalog.
import { type ReactNode, useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { formatWhole, idOf, plural } from '../../format.ts'
import { describeLimits } from '../../pages/limits.tsx'
import { Review, requireFit, toastSaved } from '../../pages/operator/review.tsx'
import { useQuery } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Badges, Card, Facts } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import type { Catalog, CatalogDocument, PlanOffer } from '../../wire.ts'
import { priceOf } from './plan-card.tsx'

type Sales = NonNullable<CatalogDocument['sales']>
type Shelf = 'packs' | 'plans'
type Offer = NonNullable<Sales['packs']>[number] | NonNullable<Sales['plans']>[number]
/** `id`: the offer that is edited; absent: a new one. `terms`: the currency and the price of a credit. */
type Editing = { shelf: Shelf; id?: string } | 'terms'

interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly isNumber?: true
  readonly isOptional?: true
}

const OF_ALL: readonly Field[] = [
  { name: 'name', label: 'Name' },
  { name: 'id', label: 'Id', hint: 'Lower-case letters, digits and “-”. Payments refer to it.' },
]
const FIELDS: Readonly<Record<Shelf | 'terms', readonly Field[]>> = {
  packs: [
    ...OF_ALL,
    { name: 'price', label: 'Price', hint: 'Such as 20.00' },
    { name: 'credits', label: 'Credits' },
    {
      name: 'endsAfterDays',
      label: 'Credits expire after (days)',
      hint: 'Leave empty: they do not expire.',
      isNumber: true,
      isOptional: true,
    },
  ],
  plans: [
    ...OF_ALL,
    { name: 'price', label: 'Price a month', hint: '0: a free plan.' },
    { name: 'credits', label: 'Credits a month' },
    { name: 'trialDays', label: 'Free trial (days)', hint: 'Leave empty: none.', isNumber: true, isOptional: true },
  ],
  terms: [
    { name: 'currency', label: 'Currency', hint: 'Such as EUR' },
    {
      name: 'pricePerCredit',
      label: 'Price of one credit',
      hint: 'Leave empty: only packs and plans are sold.',
      isOptional: true,
    },
    { name: 'minimum', label: 'Smallest purchase', isOptional: true },
    { name: 'maximum', label: 'Largest purchase', isOptional: true },
  ],
}

export function Offers({ plans }: { plans: readonly PlanOffer[] }) {
  const may = useMay()
  const { data } = useQuery(may('catalog:read') ? 'catalog' : undefined, api.catalog)
  const [editing, setEditing] = useState<Editing>()
  const sales = data?.document.sales
  const add = (shelf: Shelf, label: string) =>
    data ? (
      <Button right="catalog:write" icon="plus" onClick={() => setEditing({ shelf })}>
        {label}
      </Button>
    ) : null
  const edit = (shelf: Shelf, { id, name }: { id: string; name: string }) =>
    data ? (
      <Button
        right="catalog:write"
        small
        icon="edit"
        aria-label={`Edit ${name}`}
        onClick={() => setEditing({ shelf, id })}
      >
        Edit
      </Button>
    ) : null
  return (
    <>
      <Card flush title="Plans" lead="Credits every month, for a price or free." actions={add('plans', 'New plan')}>
        {plans.length === 0 ? <Empty icon="statement" title="No plans yet" /> : <Plans plans={plans} edit={edit} />}
      </Card>
      {data ? (
        <Card flush title="Packs" lead="Credits for one price." actions={add('packs', 'New pack')}>
          {sales?.packs?.length ? (
            <Table
              label="Packs"
              rows={sales.packs}
              rowKey={({ id }) => id}
              columns={[
                { head: 'Pack', main: true, cell: ({ name, id }) => <Named name={name} sub={id} /> },
                { head: 'Price', right: true, cell: ({ price }) => `${price} ${sales.currency}` },
                { head: 'Credits', right: true, cell: ({ credits }) => formatCredits(credits) },
                {
                  head: 'Expires',
                  cell: ({ endsAfterDays }) => (endsAfterDays ? `after ${plural(endsAfterDays, 'day')}` : 'never'),
                },
                { head: 'Actions', cell: (pack) => edit('packs', pack) },
              ]}
            />
          ) : (
            <Empty icon="statement" title="No packs yet" />
          )}
        </Card>
      ) : null}
      {data ? <Terms sales={sales} onEdit={() => setEditing('terms')} /> : null}
      {data && editing ? <SalesForm catalog={data} editing={editing} onClose={() => setEditing(undefined)} /> : null}
    </>
  )
}

interface PlansProps {
  plans: readonly PlanOffer[]
  edit: (shelf: Shelf, offer: PlanOffer) => ReactNode
}

function Plans({ plans, edit }: PlansProps) {
  return (
    <Table
      label="Plans"
      rows={plans}
      rowKey={({ id }) => id}
      columns={[
        { head: 'Plan', main: true, cell: ({ name, id }) => <Named name={name} sub={id} /> },
        { head: 'Price', cell: (plan) => priceOf(plan) },
        { head: 'Credits a month', right: true, cell: ({ credits }) => formatCredits(credits) },
        { head: 'Trial', cell: ({ trialDays }) => (trialDays === null ? '–' : plural(trialDays, 'day')) },
        { head: 'Limits', wideOnly: true, cell: ({ limits }) => describeLimits(limits).join(', ') || '–' },
        {
          head: 'For',
          wideOnly: true,
          cell: ({ products }) => (products === null ? 'everything' : <Badges names={products} />),
        },
        { head: 'Accounts', right: true, cell: ({ accounts = 0 }) => formatWhole(accounts) },
        { head: 'Actions', cell: (plan) => edit('plans', plan) },
      ]}
    />
  )
}

function Terms({ sales, onEdit }: { sales: Sales | undefined; onEdit: () => void }) {
  const of = (amount: string | undefined) => (amount === undefined ? '–' : `${amount} ${sales?.currency}`)
  return (
    <Card
      title="Free amounts"
      lead="The currency of all that is sold, and what a credit costs without a pack or plan."
      actions={
        <Button right="catalog:write" icon="edit" onClick={onEdit}>
          {sales ? 'Change' : 'Set'}
        </Button>
      }
    >
      {sales ? (
        <Facts
          items={[
            ['Currency', sales.currency],
            ['Price of one credit', of(sales.pricePerCredit)],
            ['Purchase', sales.pricePerCredit ? `${of(sales.minimum)} to ${of(sales.maximum)}` : '–'],
          ]}
        />
      ) : (
        <p className="muted">Nothing is sold yet.</p>
      )}
    </Card>
  )
}

type Texts = Readonly<Record<string, string>>

function SalesForm({ catalog, editing, onClose }: { catalog: Catalog; editing: Editing; onClose: () => void }) {
  const { sales } = catalog.document
  const shelf = editing === 'terms' ? 'terms' : editing.shelf
  const known = editing === 'terms' ? sales : (sales?.[editing.shelf] ?? []).find(({ id }) => id === editing.id)
  const [texts, setTexts] = useState<Texts>(() => textsOf(known))
  const [after, setAfter] = useState<unknown>()
  // The first thing that is sold says in which currency.
  const fields = sales || shelf === 'terms' ? FIELDS[shelf] : [...FIELDS[shelf], FIELDS.terms[0]!]
  const id = texts.id ?? idOf(texts.name ?? '')
  const textOf = (name: string) => (name === 'id' ? id : (texts[name] ?? ''))
  const preview = async () => {
    const next = withOffer(catalog.document, editing, { ...texts, ...(shelf === 'terms' ? {} : { id }) })
    requireFit(await api.checkCatalog(next), next)
    setAfter(next)
  }
  const what = shelf === 'packs' ? 'pack' : 'plan'
  return (
    <>
      <FormDialog
        title={shelf === 'terms' ? 'Currency and price of a credit' : known ? `Edit the ${what}` : `New ${what}`}
        action="Preview the change"
        right="catalog:write"
        stay
        run={preview}
        onClose={onClose}
      >
        {fields.map(({ name, label, hint, isNumber, isOptional }) => (
          <TextField
            key={name}
            name={name}
            label={label}
            hint={hint}
            required={!isOptional}
            inputMode={isNumber ? 'numeric' : undefined}
            readOnly={name === 'id' && known !== undefined}
            value={textOf(name)}
            onText={(text) => setTexts((old) => ({ ...old, [name]: text }))}
          />
        ))}
      </FormDialog>
      {after ? (
        <Review
          before={catalog.document}
          after={after}
          apply={async (note) => {
            const said = note || (shelf === 'terms' ? 'price of a credit' : `${what} ${id}`)
            const saved = await api.applyCatalog(after, said, catalog.version)
            toastSaved(saved)
            onClose()
          }}
          onClose={() => setAfter(undefined)}
        />
      ) : null}
    </>
  )
}

const textsOf = (known: object | undefined): Texts =>
  Object.fromEntries(
    Object.entries(known ?? {}).flatMap(([name, value]) => (typeof value === 'object' ? [] : [[name, String(value)]])),
  )

/** The document with an offer as it was typed; what the form does not show is kept. */
function withOffer(document: CatalogDocument, editing: Editing, texts: Texts): unknown {
  const given = (names: readonly Field[], old: object) => {
    const entries = names.map(({ name, isNumber }) => {
      const text = texts[name]?.trim() ?? ''
      return [name, text === '' ? undefined : isNumber && /^\d+$/.test(text) ? Number(text) : text]
    })
    return Object.fromEntries(
      Object.entries({ ...old, ...Object.fromEntries(entries) }).filter(([, value]) => value !== undefined),
    )
  }
  const sales: Partial<Sales> = document.sales ?? { currency: texts.currency?.trim().toUpperCase() ?? '' }
  if (editing === 'terms') {
    const next = given(FIELDS.terms, sales)
    return { ...document, sales: { ...next, currency: String(next.currency).toUpperCase() } }
  }
  const { shelf, id } = editing
  const offers: readonly Offer[] = sales[shelf] ?? []
  const offer = given(FIELDS[shelf], offers.find((one) => one.id === id) ?? {})
  const list = id === undefined ? [...offers, offer] : offers.map((one) => (one.id === id ? offer : one))
  return { ...document, sales: { ...sales, [shelf]: list } }
}
