// Where operations of a product come from: an OpenAPI document, or a preset.
import { useRef, useState } from 'react'
import { api } from '../../api.ts'
import { idOf, plural } from '../../format.ts'
import { JsonArea, type JsonAreaHandle } from '../../pages/operator/json-area.tsx'
import { useQuery } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, Segments, SelectField, TextField } from '../../ui/field.tsx'
import { Card, Note } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import type { ImportedDocument, ProductOperation, ProductPreset } from '../../wire.ts'
import type { Auth, OperationDraft, ProductDraft } from './product-draft.ts'

type Taken = Partial<ProductDraft> & { operations: readonly OperationDraft[] }

const WAYS = [
  { value: 'document', label: 'OpenAPI document' },
  { value: 'preset', label: 'Preset' },
] as const

export function ProductSource({ onTake }: { onTake: (taken: Taken) => void }) {
  const [way, setWay] = useState<(typeof WAYS)[number]['value']>('document')
  return (
    <Card title="Source" lead="We read this file once; no URL in it is opened.">
      <Segments label="Source" value={way} options={WAYS} onPick={setWay} />
      {way === 'document' ? <FromDocument onTake={onTake} /> : <FromPreset onTake={onTake} />}
    </Card>
  )
}

/** As many are chosen at once; of more the operator says which. */
const CHOSEN_MAX = 20

const lineIn = (text: string) => Number(/line (\d+)/.exec(text)?.[1] ?? 0)

function FromDocument({ onTake }: { onTake: (taken: Taken) => void }) {
  const [text, setText] = useState('')
  const [read, setRead] = useState<ImportedDocument>()
  const [chosen, setChosen] = useState<readonly string[]>([])
  const [call, setCall] = useState('')
  const area = useRef<JsonAreaHandle>(null)
  const show = (said: string) => lineIn(said) > 0 && area.current?.showLine(lineIn(said))
  const change = (next: string) => {
    setText(next)
    setRead(undefined)
  }
  const reading = useAction(async () => {
    const found = await api.readProduct({ document: text }).catch((error: Error) => {
      show(error.message)
      throw error
    })
    const sold = found.operations.filter(({ problem }) => problem === null).map(({ id }) => id)
    setRead(found)
    setChosen(sold.length > CHOSEN_MAX ? [] : sold)
  })
  const taking = useAction(async () => {
    const { operations, title, description, server, auth } = await api.readProduct({
      document: text,
      operations: [...chosen],
    })
    onTake({
      id: idOf(title),
      title,
      description,
      baseUrl: server ?? '',
      ...(auth ? { auth: auth as Auth } : {}), // In the catalog's words, as the server reads it.
      operations: operations.flatMap(({ id, entry }) =>
        // In the form of the catalog, as the server makes it.
        entry ? [{ id, entry: entry as ProductOperation, rates: call ? { call } : {}, cacheSeconds: '' }] : [],
      ),
    })
    change('')
  })
  return (
    <div className="stack">
      <div className="field">
        <label className="stack-tight">
          <span className="field-label">File</span>
          <input
            type="file"
            className="input"
            accept=".json,.yaml,.yml,application/json,application/yaml"
            onChange={async ({ target: { files } }) => change((await files?.[0]?.text()) ?? '')}
          />
        </label>
        <p className="field-hint">OpenAPI 3.0 or 3.1, as JSON (up to 5 MB) or YAML (up to 1 MB). Or paste it below.</p>
      </div>
      <div className="json-area-small">
        <JsonArea ref={area} label="OpenAPI document" text={text} onText={change} />
      </div>
      {reading.error ? <Fault error={reading.error} /> : null}
      <div className="row">
        <Button disabled={text.trim() === ''} busy={reading.busy} onClick={() => reading.go()}>
          Import
        </Button>
      </div>
      {read ? (
        <>
          {read.serverProblem ? (
            <Note tone="warn">{read.serverProblem} Enter the address of the API below.</Note>
          ) : null}
          <DocumentOperations read={read} chosen={chosen} onChosen={setChosen} onLine={show} />
          {taking.error ? <Fault error={taking.error} /> : null}
          <div className="row">
            <TextField label="Price per call (credits)" inputMode="decimal" value={call} onText={setCall} />
            <Button disabled={chosen.length === 0} busy={taking.busy} onClick={() => taking.go()}>
              Add {plural(chosen.length, 'operation')}
            </Button>
          </div>
        </>
      ) : null}
    </div>
  )
}

interface DocumentOperationsProps {
  read: ImportedDocument
  chosen: readonly string[]
  onChosen: (chosen: readonly string[]) => void
  onLine: (said: string) => void
}

function DocumentOperations({ read, chosen, onChosen, onLine }: DocumentOperationsProps) {
  return (
    <Table
      label="Operations of the document"
      rows={read.operations}
      rowKey={({ id }) => id}
      dim={({ problem }) => problem !== null}
      columns={[
        {
          head: 'Operation',
          main: true,
          cell: ({ id, problem }) => (
            <Checkbox
              label={id}
              disabled={problem !== null}
              checked={chosen.includes(id)}
              onCheck={(on) => onChosen(on ? [...chosen, id] : chosen.filter((one) => one !== id))}
            />
          ),
        },
        {
          head: 'Address',
          cell: ({ route, title }) => (
            <>
              <code>{route}</code>
              <span className="cell-sub">{title}</span>
            </>
          ),
        },
        {
          head: 'Problem',
          cell: ({ problem, notes }) =>
            problem === null ? (
              <span className="small muted">{notes.join(' ')}</span>
            ) : (
              <>
                {`It ${problem}. `}
                {lineIn(problem) > 0 ? (
                  <button type="button" className="text-button" onClick={() => onLine(problem)}>
                    Show the line
                  </button>
                ) : null}
              </>
            ),
        },
      ]}
    />
  )
}

function FromPreset({ onTake }: { onTake: (taken: Taken) => void }) {
  const presets = useQuery('product-presets', api.productPresets)
  return <Loaded query={presets}>{({ items }) => <PresetFields presets={items} onTake={onTake} />}</Loaded>
}

function PresetFields({ presets, onTake }: { presets: readonly ProductPreset[]; onTake: (taken: Taken) => void }) {
  const [name, setName] = useState(presets[0]?.name ?? '')
  const [perDollar, setPerDollar] = useState('100')
  const preset = presets.find((one) => one.name === name)
  if (!preset) return null
  const credits = (usd: string) => String(Number((Number(usd) * Number(perDollar)).toFixed(6)))
  const take = () =>
    onTake({
      id: preset.name,
      title: preset.title,
      baseUrl: preset.baseUrl,
      credential: preset.credential,
      auth: preset.auth as Auth, // In the catalog's words.
      operations: preset.operations.map(({ id, entry, usd }) => ({
        id,
        entry: entry as ProductOperation, // In the form of the catalog.
        rates: Object.fromEntries(Object.entries(usd ?? {}).map(([unit, rate]) => [unit, credits(rate)])),
        cacheSeconds: '',
      })),
    })
  return (
    <div className="stack">
      <div className="grid-2">
        <SelectField
          label="Preset"
          value={name}
          options={presets.map((one) => [one.name, one.title] as const)}
          onText={setName}
        />
        <TextField label="Credits per US dollar" inputMode="decimal" value={perDollar} onText={setPerDollar} />
      </div>
      <Note>
        Made from public documentation and not tried against the vendor. List prices noted on {preset.noted} from{' '}
        <a href={preset.from}>{preset.from}</a>; an operation without one needs a price.
      </Note>
      <div>
        <Button disabled={!(Number(perDollar) > 0)} onClick={take}>
          Add {plural(preset.operations.length, 'operation')}
        </Button>
      </div>
    </div>
  )
}
