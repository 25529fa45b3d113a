// A product from a document, a preset or by hand: which operations, at which price, and where calls go. Nothing changes
// before it was previewed.
import { useState } from 'react'
import { api } from '../../api.ts'
import { briefCredits } from '../../credits.ts'
import { Review, toastSaved } from '../../pages/operator/review.tsx'
import { useQuery } from '../../query.ts'
import { navigate } from '../../router.tsx'
import { useAction } from '../../ui/action.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Badge, Card, Note, Page } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import type { Catalog, ProductCheck } from '../../wire.ts'
import {
  type Auth,
  addressOf,
  BLANK,
  draftOf,
  EMPTY,
  inputOf,
  mostOf,
  type OperationDraft,
  type ProductDraft,
  problemsOf,
} from './product-draft.ts'
import { OperationForm } from './product-operation.tsx'
import { ProductSource } from './product-source.tsx'

export function NewProductPage() {
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Page
      title="New product"
      lead="A third-party HTTP API, sold with the same keys and balances."
      back={{ to: '/operator/products', label: 'Products' }}
    >
      <Loaded query={catalog}>{(data) => <ProductForm catalog={data} start={EMPTY} />}</Loaded>
    </Page>
  )
}

export function EditProductPage({ product }: { product: string }) {
  const catalog = useQuery('catalog', api.catalog)
  return (
    <Page title={`Edit ${product}`} back={{ to: `/operator/products/${product}`, label: product }}>
      <Loaded query={catalog}>
        {(data) => {
          const start = draftOf(product, data)
          if (!start) return <Empty icon="search" title={`There is no product ${product}`} />
          // A form that opened on what is being read again would save over it.
          return <ProductForm key={data.version} catalog={data} start={start} isKnown />
        }}
      </Loaded>
    </Page>
  )
}

function ProductForm({
  catalog,
  start,
  isKnown = false,
}: {
  catalog: Catalog
  start: ProductDraft
  isKnown?: boolean
}) {
  const [draft, setDraft] = useState(start)
  const [editing, setEditing] = useState<{ at: number; operation: OperationDraft }>()
  const [check, setCheck] = useState<ProductCheck>()
  const [reviewing, setReviewing] = useState(false)
  const set = (next: Partial<ProductDraft>) => {
    setDraft((old) => ({ ...old, ...next }))
    setCheck(undefined)
  }
  const preview = useAction(async () => {
    const result = await api.checkProduct(inputOf(draft))
    setCheck(result)
    setReviewing(result.problems.length === 0)
  })
  const put = (at: number, next?: OperationDraft) =>
    set({ operations: [...draft.operations.slice(0, at), ...(next ? [next] : []), ...draft.operations.slice(at + 1)] })
  const source = (
    <ProductSource
      onTake={({ operations, ...about }) => {
        const ids = operations.map(({ id }) => id)
        // What was typed already stays; an operation that is read again replaces the one of its id.
        const given = Object.entries(draft).filter(([, value]) => value !== '' && value !== undefined)
        const kept = draft.operations.filter(({ id }) => !ids.includes(id))
        set({ ...about, ...Object.fromEntries(given), operations: [...kept, ...operations] })
      }}
    />
  )
  return (
    <>
      {isKnown ? (
        <details className="fold">
          <summary>More operations from a document or a preset</summary>
          {source}
        </details>
      ) : (
        source
      )}
      <OperationTable
        draft={draft}
        check={check}
        onPut={put}
        onEdit={(at, operation) => setEditing({ at, operation })}
      />
      <ProductFields draft={draft} isKnown={isKnown} onChange={set} />
      <Problems draft={draft} check={check} />
      {preview.error ? <Fault error={preview.error} /> : null}
      <div className="row">
        <Button
          right="catalog:write"
          look="primary"
          disabled={draft.operations.length === 0}
          busy={preview.busy}
          onClick={() => preview.go()}
        >
          Preview the change
        </Button>
      </div>
      {editing ? (
        <OperationForm
          draft={draft}
          {...editing}
          onSave={(next) => put(editing.at, next)}
          onClose={() => setEditing(undefined)}
        />
      ) : null}
      {check && reviewing ? (
        <Review
          before={catalog.document}
          after={check.document}
          notes={check.notes}
          apply={async (note) => {
            const saved = await api.putProduct({ ...inputOf(draft), ...(note ? { note } : {}) })
            toastSaved(saved)
            navigate(`/operator/products/${draft.id.trim()}`)
          }}
          onClose={() => setReviewing(false)}
        />
      ) : null}
    </>
  )
}

/** Those of operations stand with them. */
function Problems({ draft, check }: { draft: ProductDraft; check: ProductCheck | undefined }) {
  if (!check || check.problems.length === 0) return null
  const isOfOne = (line: string) =>
    draft.operations.some(({ id }) => problemsOf([line], draft.id.trim(), id).length > 0)
  const rest = check.problems.filter((line) => !isOfOne(line))
  return (
    <Note tone="warn">
      {rest.length === 0 ? 'It cannot be applied yet: see the operations above.' : rest.join(' ')}
    </Note>
  )
}

interface OperationTableProps {
  draft: ProductDraft
  check: ProductCheck | undefined
  onPut: (at: number, next?: OperationDraft) => void
  onEdit: (at: number, operation: OperationDraft) => void
}

function OperationTable(props: OperationTableProps) {
  const { operations } = props.draft
  return (
    <Card
      title="Operations"
      lead="Each is an endpoint, a page of the documentation and a tool."
      actions={
        <Button right="catalog:write" small icon="plus" onClick={() => props.onEdit(operations.length, BLANK)}>
          Add an operation
        </Button>
      }
    >
      {operations.length === 0 ? (
        <p className="muted">None yet: read a document, choose a preset, or add one by hand.</p>
      ) : (
        <OperationRows {...props} />
      )}
    </Card>
  )
}

function OperationRows({ draft, check, onPut, onEdit }: OperationTableProps) {
  return (
    <Table
      label="Operations of the product"
      rows={draft.operations.map((operation, at) => ({ ...operation, at }))}
      rowKey={({ at, id }) => `${at} ${id}`}
      columns={[
        {
          head: 'Operation',
          main: true,
          cell: ({ id, entry }) => <Named name={entry.title || id} sub={`${id} · ${entry.route}`} />,
        },
        {
          head: 'Credits a call',
          cell: ({ at, ...operation }) => (
            <TextField
              quiet
              label={`Credits a call of ${operation.id}`}
              inputMode="decimal"
              value={operation.rates.call ?? ''}
              onText={(call) => onPut(at, { ...operation, rates: { ...operation.rates, call } })}
            />
          ),
        },
        {
          head: 'State',
          cell: (row) => {
            const [problem] = problemsOf(check?.problems ?? [], draft.id.trim(), row.id)
            const most = mostOf(row, check?.bounds[row.id] ?? {})
            if (problem)
              return (
                <span className="field-fault">
                  {problem.path}: {problem.message}
                </span>
              )
            if (Object.values(row.rates).every((rate) => rate.trim() === '')) return <Badge tone="warn">No price</Badge>
            return (
              <span className="small">{most === undefined ? '' : `Holds up to ${briefCredits(most)} credits`}</span>
            )
          },
        },
        {
          head: 'Actions',
          cell: ({ at, ...operation }) => (
            <span className="row row-one">
              <Button right="catalog:write" small icon="edit" onClick={() => onEdit(at, operation)}>
                Edit
              </Button>
              <IconButton
                right="catalog:write"
                icon="trash"
                label={`Leave out ${operation.id}`}
                onClick={() => onPut(at)}
              />
            </span>
          ),
        },
      ]}
    />
  )
}

interface FieldsProps {
  draft: ProductDraft
  onChange: (next: Partial<ProductDraft>) => void
}

function ProductFields({ draft, isKnown, onChange }: FieldsProps & { isKnown: boolean }) {
  return (
    <Card right="catalog:write" title="Product and vendor">
      <div className="grid-2">
        <TextField
          label="Id"
          mono
          required
          disabled={isKnown}
          value={draft.id}
          placeholder="maps"
          hint={`Its addresses begin with ${addressOf(draft.id)}.`}
          onText={(id) => onChange({ id })}
        />
        <TextField label="Title" value={draft.title} onText={(title) => onChange({ title })} />
        <TextField
          label="Address of the API"
          mono
          value={draft.baseUrl}
          placeholder="https://api.vendor.example"
          onText={(baseUrl) => onChange({ baseUrl })}
        />
        <TextField
          label="Vendor in the catalog"
          mono
          value={draft.vendor}
          placeholder={draft.id.trim() || 'maps'}
          hint="Timeouts, limits and further credentials are on its page."
          onText={(vendor) => onChange({ vendor })}
        />
        <AuthFields draft={draft} onChange={onChange} />
        <TextField
          label="Name of the credential"
          mono
          value={draft.credential}
          placeholder={`${(draft.id.trim() || 'maps').toUpperCase().replaceAll('-', '_')}_API_KEY`}
          onText={(credential) => onChange({ credential })}
        />
        <TextField
          label="Credential"
          type="password"
          autoComplete="off"
          value={draft.value}
          hint="Stored encrypted, never shown again. Without one only test keys are answered, with examples."
          onText={(value) => onChange({ value })}
        />
      </div>
    </Card>
  )
}

/** By kind: how it is called, and what else it needs. A field without a name is the whole value. */
const AUTHS = {
  bearer: ['Bearer token', []],
  basic: ['Basic (name:password)', []],
  header: ['Header', [['', 'Header', 'x-api-key']]],
  query: ['Query parameter', [['', 'Query parameter', 'api_key']]],
  oauth: [
    'OAuth client credentials (id:secret)',
    [
      ['tokenUrl', 'Token address', 'https://auth.vendor.example/token'],
      ['scope', 'Scope', ''],
    ],
  ],
  sigv4: [
    'AWS Signature 4 (key id:secret)',
    [
      ['region', 'Region', 'us-east-1'],
      ['service', 'Service', 'execute-api'],
    ],
  ],
} as const satisfies Record<string, readonly [string, readonly (readonly [string, string, string])[]]>
type AuthKind = keyof typeof AUTHS

function AuthFields({ draft: { auth = 'bearer' }, onChange }: FieldsProps) {
  const kind = (typeof auth === 'string' ? auth : Object.keys(auth)[0]) as AuthKind // Of a login that has no fields here, nothing is shown.
  // Its only member is a text, or an object of texts.
  const inner = typeof auth === 'string' ? '' : (auth as Record<string, string | Record<string, string>>)[kind]
  const [, fields] = AUTHS[kind] ?? ['', []]
  const put = (name: string, text: string) => {
    const { [name]: _, ...others } = typeof inner === 'object' ? inner : {}
    const value = name === '' ? text : { ...others, ...(text ? { [name]: text } : {}) }
    onChange({ auth: { [kind]: value } as Auth }) // In the form of its kind; the server checks it.
  }
  return (
    <>
      <SelectField
        label="Where the credential goes"
        value={kind}
        options={[
          ...Object.entries(AUTHS).map(([name, [label]]) => [name, label] as const),
          ...(kind in AUTHS ? [] : [kind]),
        ]}
        onText={(next) => {
          if (!(next in AUTHS)) return
          const [, wanted] = AUTHS[next as AuthKind] // It is one of them.
          const empty = wanted.length === 0 ? next : { [next]: wanted[0][0] === '' ? wanted[0][2] : {} }
          onChange({ auth: empty as Auth }) // In the form of its kind; the server checks it.
        }}
      />
      {fields.map(([name, label, placeholder]) => (
        <TextField
          key={name}
          label={label}
          mono
          placeholder={placeholder}
          value={(typeof inner === 'object' ? inner[name] : inner) ?? ''}
          onText={(text) => put(name, text)}
        />
      ))}
    </>
  )
}
