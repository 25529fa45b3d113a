// One operation of a product: its address, its parameters, and its price with what the check says of it while it is
// typed.
import { useState } from 'react'
import { api } from '../../api.ts'
import { briefCredits } from '../../credits.ts'
import { useQuery, useSettled } from '../../query.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { type ProductInput, type ProductOperation, unitRow } from '../../wire.ts'
import {
  addressOf,
  inputOf,
  mostOf,
  type OperationDraft,
  type ProductDraft,
  problemsOf,
  RATES,
} from './product-draft.ts'

type Param = NonNullable<ProductOperation['params']>[string]
type NamedParam = readonly [name: string, param: Param]

/** What has fields of its own; the rest is edited as JSON. */
const OWN = ['title', 'description', 'route', 'vendorPath', 'params', 'counts', 'bytesMax', 'timeoutSeconds'] as const

interface Props {
  draft: ProductDraft
  at: number
  operation: OperationDraft
  onSave: (next: OperationDraft) => void
  onClose: () => void
}

export function OperationForm({ draft, at, operation, onSave, onClose }: Props) {
  const [one, setOne] = useState(operation)
  const [params, setParams] = useState<readonly NamedParam[]>(Object.entries(operation.entry.params ?? {}))
  const [rest, setRest] = useState(() => restOf(operation.entry))
  const more = parseRest(rest)
  const made: OperationDraft = {
    ...one,
    // The form of the catalog; the server checks it.
    entry: { ...pick(one.entry), ...more.members, params: Object.fromEntries(params) } as ProductOperation,
  }
  const isTaken = draft.operations.some(({ id }, index) => index !== at && id === one.id)
  const check = useCheck(draft, made)
  const found = problemsOf(check.problems, check.product, one.id)
  const faultAt = (path: string) => found.find((problem) => problem.path.startsWith(path))?.message
  const entry = (next: Partial<ProductOperation>) => setOne((old) => ({ ...old, entry: { ...old.entry, ...next } }))
  const shown = ['title', 'route', 'vendorPath', 'counts', 'bytesMax', 'timeoutSeconds']
  const others = found.filter(({ path }) => !shown.some((name) => path.startsWith(name)))
  return (
    <FormDialog
      right="catalog:write"
      wide
      title={operation.id || 'New operation'}
      action="Done"
      run={async () => onSave(made)}
      onClose={onClose}
    >
      <Address
        one={one}
        isTaken={isTaken}
        faultAt={faultAt}
        below={addressOf(draft.id)}
        onOne={setOne}
        onEntry={entry}
      />
      <Params params={params} onParams={setParams} />
      <Prices one={one} bounds={check.bounds} faultAt={faultAt} onOne={setOne} onEntry={entry} />
      <details className="fold">
        <summary>Description, body, answer and example</summary>
        <div className="stack">
          <TextArea
            label="Description"
            rows={2}
            value={one.entry.description ?? ''}
            onText={(description) => entry({ description })}
          />
          <TextArea
            label="Everything else, as JSON"
            mono
            rows={8}
            value={rest}
            fault={more.fault}
            hint="body, answer, answers, example, pageToken, tool: as the catalog has them."
            onText={setRest}
          />
        </div>
      </details>
      {check.error ? <Note tone="warn">{check.error}</Note> : null}
      {others.map(({ path, message }) => (
        <Note key={path} tone="warn">
          {path}: {message}
        </Note>
      ))}
    </FormDialog>
  )
}

interface FieldsProps {
  one: OperationDraft
  faultAt: (path: string) => string | undefined
  onOne: (next: (old: OperationDraft) => OperationDraft) => void
  onEntry: (next: Partial<ProductOperation>) => void
}

interface AddressProps extends FieldsProps {
  isTaken: boolean
  below: string
}

function Address({ one, isTaken, faultAt, below, onOne, onEntry }: AddressProps) {
  return (
    <div className="grid-2">
      <TextField
        label="Operation id"
        mono
        required
        value={one.id}
        placeholder="search"
        fault={isTaken ? 'Another operation has this id.' : undefined}
        onText={(id) => onOne((old) => ({ ...old, id }))}
      />
      <TextField
        label="Title"
        required
        value={one.entry.title}
        said={one.entry.title ? faultAt('title') : undefined}
        onText={(title) => onEntry({ title })}
      />
      <TextField
        label="Method and path here"
        mono
        required
        value={one.entry.route}
        placeholder="GET /places/{id}"
        said={faultAt('route')}
        hint={`Below ${below}.`}
        onText={(route) => onEntry({ route })}
      />
      <TextField
        label="Path at the vendor"
        mono
        value={one.entry.vendorPath}
        placeholder="v2/places/{id}"
        said={faultAt('vendorPath')}
        onText={(vendorPath) => onEntry({ vendorPath })}
      />
    </div>
  )
}

const pick = (entry: ProductOperation) =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => OWN.some((one) => one === name)))

function restOf(entry: ProductOperation): string {
  const rest = Object.entries(entry).filter(([name]) => !OWN.some((one) => one === name))
  return JSON.stringify(Object.fromEntries(rest), null, 2)
}

function parseRest(text: string): { members: object; fault?: string } {
  try {
    const members: unknown = JSON.parse(text.trim() || '{}')
    if (typeof members === 'object' && members !== null && !Array.isArray(members)) return { members }
    return { members: {}, fault: 'It must be an object.' }
  } catch (error) {
    return { members: {}, fault: (error as Error).message } // JSON.parse throws errors.
  }
}

/**
 * What the server says of this operation, in a product that is otherwise good. No credential is sent, and none is in
 * the key of what was read.
 */
function useCheck(draft: ProductDraft, operation: OperationDraft) {
  const input: ProductInput = inputOf({
    ...draft,
    id: draft.id.trim() || 'product',
    vendor: '',
    value: '',
    operations: [operation],
    baseUrl: draft.baseUrl.trim() || 'https://api.example.com',
  })
  // A new name is no vendor that the catalog has.
  const text = useSettled(JSON.stringify({ ...input, vendor: { ...input.vendor, name: 'product-being-edited' } }))
  const isAsked = operation.id !== '' && operation.entry.title !== '' && Object.keys(input.prices).length > 0
  const { data, error } = useQuery(
    isAsked ? `product-check/${text}` : undefined,
    (signal) => api.checkProduct(JSON.parse(text) as ProductInput, signal), // It was made of one above.
  )
  return {
    product: input.id,
    problems: data?.problems ?? [],
    bounds: data?.bounds[operation.id] ?? {},
    error: error?.message,
  }
}

const KINDS = ['text', 'integer', 'number', 'boolean', 'choice', 'values', 'date'] as const
/** What a parameter of a kind has besides, and an example of it. */
const OF_KIND: Readonly<Record<string, object>> = {
  integer: { min: 0, example: '1' },
  number: { example: '1' },
  boolean: { allowed: ['true', 'false'], example: 'true' },
  choice: { allowed: ['a'], example: 'a' },
  values: { example: 'a,b' },
  date: { example: '2026-01-31' },
}

function Params({ params, onParams }: { params: readonly NamedParam[]; onParams: (next: NamedParam[]) => void }) {
  const put = (at: number, ...next: NamedParam[]) =>
    onParams([...params.slice(0, at), ...next, ...params.slice(at + 1)])
  return (
    <fieldset className="stack-tight">
      <legend className="field-label">Parameters</legend>
      {params.length > 0 ? (
        <Table
          label="Parameters"
          rows={params.map(([name, param], at) => ({ name, param, at }))}
          rowKey={({ at }) => String(at)}
          columns={[
            {
              head: 'Name',
              main: true,
              cell: ({ name, param, at }) => (
                <>
                  <TextField
                    quiet
                    label={`Name of parameter ${at + 1}`}
                    mono
                    value={name}
                    onText={(next) => put(at, [next, param])}
                  />
                  <SelectField
                    quiet
                    label={`Place of ${name}`}
                    value={param.in ?? 'query'}
                    options={['query', 'path', 'header']}
                    onText={(place) => {
                      const isPath = place === 'path'
                      const moved = withMember(param, 'in', place === 'query' ? '' : place)
                      put(at, [name, isPath ? withMember(moved, 'required', true) : moved])
                    }}
                  />
                </>
              ),
            },
            {
              head: 'Kind',
              cell: ({ name, param, at }) => (
                <KindFields name={name} param={param} onParam={(next) => put(at, [name, next])} />
              ),
            },
            {
              head: 'Default and example',
              cell: ({ name, param, at }) => (
                <>
                  <TextField
                    quiet
                    label={`Default of ${name}`}
                    placeholder="no default"
                    value={param.default ?? ''}
                    onText={(text) => put(at, [name, withMember(param, 'default', text)])}
                  />
                  <TextField
                    quiet
                    label={`Example of ${name}`}
                    placeholder="example"
                    value={param.example}
                    onText={(example) => put(at, [name, { ...param, example }])}
                  />
                </>
              ),
            },
            {
              head: 'Required',
              cell: ({ name, param, at }) => (
                <span className="row row-one">
                  <Checkbox
                    label={<span className="sr-only">{name} is required</span>}
                    checked={param.required === true}
                    onCheck={(on) => put(at, [name, withMember(param, 'required', on)])}
                  />
                  <IconButton icon="trash" label={`Remove ${name}`} onClick={() => put(at)} />
                </span>
              ),
            },
          ]}
        />
      ) : null}
      <div>
        <Button small icon="plus" onClick={() => onParams([...params, ['', { kind: 'text', example: 'text' }]])}>
          Add a parameter
        </Button>
      </div>
    </fieldset>
  )
}

/** An empty value takes the member out. */
function withMember(param: Param, member: string, value: unknown): Param {
  // By its members, which differ between kinds.
  const { [member]: _, ...others } = param as Record<string, unknown>
  return { ...others, ...(value === '' || value === false || value === undefined ? {} : { [member]: value }) } as Param // A member of every kind, or of this one.
}

function KindFields({ name, param, onParam }: { name: string; param: Param; onParam: (next: Param) => void }) {
  const { kind } = param
  const number = (member: 'min' | 'max') => (
    <TextField
      quiet
      label={`${member === 'min' ? 'Least' : 'Most'} of ${name}`}
      type="number"
      placeholder={member}
      value={String((param as { min?: number; max?: number })[member] ?? '')} // Only numbers have them.
      onText={(text) =>
        onParam(
          withMember(param, member, text === '' ? (kind === 'integer' && member === 'min' ? 0 : '') : Number(text)),
        )
      }
    />
  )
  return (
    <>
      <SelectField
        quiet
        label={`Kind of ${name}`}
        value={kind}
        options={[...KINDS, ...(KINDS.some((one) => one === kind) ? [] : [kind])]}
        onText={(next) => {
          const { description, required, in: place } = param
          const kept = Object.entries({ description, required, in: place }).filter(([, value]) => value !== undefined)
          onParam({ example: 'text', ...Object.fromEntries(kept), ...OF_KIND[next], kind: next } as Param) // One of the options, with what it needs.
        }}
      />
      {kind === 'integer' || kind === 'number' ? (
        <span className="row row-one">
          {number('min')}
          {number('max')}
        </span>
      ) : null}
      {'allowed' in param && kind !== 'boolean' ? (
        <TextField
          quiet
          label={`Allowed values of ${name}`}
          placeholder="a, b, c"
          value={param.allowed.join(',')}
          onText={(text) => onParam({ ...param, allowed: text.split(',').map((value) => value.trimStart()) })}
        />
      ) : null}
    </>
  )
}

interface PricesProps extends FieldsProps {
  bounds: Readonly<Record<string, number>>
}

const EXPRESSIONS = {
  row: ['What is counted as rows', 'min(size(answer.results), 50)'],
  metered: ['What is counted as units', 'min(answer.cost, 5) * 10'],
} as const

function Prices({ one, bounds, faultAt, onOne, onEntry }: PricesProps) {
  const { rates, entry, cacheSeconds } = one
  const most = mostOf(one, bounds)
  const counted = (unit: 'row' | 'metered') => {
    const rule = entry.counts?.[unit]
    if (!rates[unit]?.trim() && !rule) return null
    const [label, placeholder] = EXPRESSIONS[unit]
    const bound = bounds[unit]
    const fault = faultAt(`counts.${unit}`)
    return (
      <TextField
        key={unit}
        label={label}
        mono
        placeholder={placeholder}
        value={rule?.expression ?? ''}
        said={fault && `It ${fault}.`}
        hint={bound === undefined || fault ? 'CEL over request and answer.' : `Proved: at most ${bound} in any answer.`}
        onText={(expression) => {
          const { [unit]: _, ...others } = entry.counts ?? {}
          onEntry({ counts: { ...others, ...(expression === '' ? {} : { [unit]: { ...rule, expression } }) } })
        }}
      />
    )
  }
  return (
    <fieldset className="stack-tight">
      <legend className="field-label">Price in credits</legend>
      <div className="grid-3">
        {RATES.map((unit) => (
          <TextField
            key={unit}
            label={unitRow(unit).rate}
            inputMode="decimal"
            placeholder="–"
            value={rates[unit] ?? ''}
            onText={(text) => onOne((old) => ({ ...old, rates: { ...old.rates, [unit]: text } }))}
          />
        ))}
        <TextField
          label="Cached for (seconds)"
          type="number"
          min={1}
          placeholder="not cached"
          value={cacheSeconds}
          onText={(text) => onOne((old) => ({ ...old, cacheSeconds: text }))}
        />
        <TextField
          label="Timeout (seconds)"
          type="number"
          min={1}
          placeholder="as the vendor’s"
          value={String(entry.timeoutSeconds ?? '')}
          said={faultAt('timeoutSeconds')}
          onText={(text) => onEntry({ timeoutSeconds: text === '' ? undefined : Number(text) })}
        />
        {rates.byte?.trim() || entry.bytesMax !== undefined ? (
          <TextField
            label="Largest answer (bytes)"
            type="number"
            min={1}
            value={String(entry.bytesMax ?? '')}
            said={faultAt('bytesMax')}
            onText={(text) => onEntry({ bytesMax: text === '' ? undefined : Number(text) })}
          />
        ) : null}
      </div>
      {counted('row')}
      {counted('metered')}
      <p className="field-hint" role="status">
        {most === undefined
          ? 'The amount reserved for a call is known when every counted quantity has a maximum.'
          : `Up to ${briefCredits(most)} credits are held for a call.`}
      </p>
    </fieldset>
  )
}
