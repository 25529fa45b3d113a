// What the catalog's entry of a vendor says, in fields. A change is shown in sentences before it is applied.
import { useState } from 'react'
import { api } from '../../api.ts'
import { navigate } from '../../router.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import { type Catalog, TEXT_PROTOCOLS, type VendorChange, type VendorCheck } from '../../wire.ts'
import { Review, requireFit, toastSaved } from './review.tsx'
import { servedBy, vendorPath } from './vendors.tsx'

type Entry = Catalog['document']['vendors'][string]

const NUMBERS = {
  'timeouts.connectMs': ['Connect timeout (ms)', '5000'],
  'timeouts.firstByteMs': ['First-byte timeout (ms)', '120000'],
  'timeouts.idleMs': ['Idle timeout (ms)', '60000'],
  'timeouts.totalMs': ['Total timeout (ms)', '600000'],
  concurrencyMax: ['Calls at once', '2000'],
  pendingMax: ['Waiting calls', '500'],
  'probe.everySeconds': ['Seconds between probes', 'off'],
} as const
type NumberName = keyof typeof NUMBERS
// The names of an object that has just these.
const NUMBER_NAMES = Object.keys(NUMBERS) as NumberName[]

const ON_ABORT = [
  ['', 'As the format suggests'],
  ['cancel', 'Stop the vendor, charge what was delivered'],
  ['drain', 'Read the answer to its end, charge what the vendor reports'],
] as const

interface Draft {
  name: string
  baseUrl: string
  format: string
  numbers: Record<NumberName, string>
  onAbort: string
  passesUnknown: boolean
  headers: string
  key: string
}

export function VendorSettings({ name, catalog }: { name: string; catalog: Catalog }) {
  const entry = catalog.document.vendors[name]
  if (!entry) return null
  return <SettingsForm name={name} catalog={catalog} entry={entry} />
}

function SettingsForm({ name, catalog, entry }: { name: string; catalog: Catalog; entry: Entry }) {
  const [first] = useState(() => draftOf(name, catalog, entry))
  const [draft, setDraft] = useState(first)
  const [check, setCheck] = useState<VendorCheck>()
  const set = (next: Partial<Draft>) => setDraft((old) => ({ ...old, ...next }))
  const input = changeOf(first, draft, name)
  const moves = hostOf(draft.baseUrl) !== hostOf(entry.baseUrl)
  const { busy, error, onSubmit } = useSubmit(async () => {
    const found = await api.checkVendor(name, input)
    setCheck(requireFit(found, found.document))
  })
  const hasKey = entry.credential !== undefined || entry.credentials !== undefined
  return (
    <Card right="vendors:write" title="Settings">
      <form className="stack" onSubmit={onSubmit}>
        <div className="grid-3">
          <TextField label="Name" value={draft.name} onText={(text) => set({ name: text })} required />
          <TextField label="Base URL" mono value={draft.baseUrl} onText={(text) => set({ baseUrl: text })} required />
          {first.format === '' && draft.format === '' && textRoutes(name, catalog).length === 0 ? null : (
            <SelectField
              label="API format"
              value={draft.format}
              options={[...(first.format === '' ? [['', 'As each route says'] as const] : []), ...TEXT_PROTOCOLS]}
              onText={(format) => set({ format })}
            />
          )}
        </div>
        {moves && hasKey ? (
          <TextField
            label="Key"
            type="password"
            autoComplete="off"
            value={draft.key}
            onText={(key) => set({ key })}
            hint="This is another host: enter the key again, so that no stored key is sent where it does not belong."
          />
        ) : null}
        <MoreFields draft={draft} onChange={set} />
        {error ? <Fault error={error} /> : null}
        <div>
          <Button type="submit" look="primary" busy={busy} disabled={Object.keys(input).length === 0}>
            Preview the change
          </Button>
        </div>
      </form>
      {check ? (
        <Review
          before={catalog.document}
          after={check.document}
          apply={async (note) => {
            const saved = await api.changeVendor(name, { ...input, note })
            toastSaved(saved)
            if (draft.name !== name) navigate(vendorPath(draft.name))
          }}
          onClose={() => setCheck(undefined)}
        />
      ) : null}
    </Card>
  )
}

function MoreFields({ draft, onChange }: { draft: Draft; onChange: (next: Partial<Draft>) => void }) {
  return (
    <details className="fold">
      <summary>Timeouts, limits and headers</summary>
      <div className="stack">
        <NumberFields numbers={draft.numbers} onNumbers={(numbers) => onChange({ numbers })} />
        <SelectField
          label="When a caller hangs up"
          value={draft.onAbort}
          options={ON_ABORT}
          onText={(onAbort) => onChange({ onAbort })}
        />
        <TextArea
          label="Headers"
          hint="Sent with every call, one per line: name: value"
          mono
          rows={2}
          value={draft.headers}
          onText={(headers) => onChange({ headers })}
        />
        <Checkbox
          label="Send request fields that the gateway does not know"
          checked={draft.passesUnknown}
          onCheck={(passesUnknown) => onChange({ passesUnknown })}
        />
      </div>
    </details>
  )
}

function NumberFields(props: { numbers: Draft['numbers']; onNumbers: (numbers: Draft['numbers']) => void }) {
  const { numbers, onNumbers } = props
  return (
    <div className="grid-3">
      {NUMBER_NAMES.map((name) => {
        const [label, usual] = NUMBERS[name]
        return (
          <TextField
            key={name}
            label={label}
            type="number"
            min={1}
            placeholder={usual}
            value={numbers[name]}
            onText={(text) => onNumbers({ ...numbers, [name]: text })}
          />
        )
      })}
    </div>
  )
}

const textRoutes = (name: string, catalog: Catalog) =>
  servedBy(name, catalog).flatMap(({ routes }) =>
    routes.filter(({ vendor, protocol }) => vendor === name && TEXT_PROTOCOLS.some((one) => one === protocol)),
  )

function draftOf(name: string, catalog: Catalog, entry: Entry): Draft {
  const formats = [...new Set(textRoutes(name, catalog).map(({ protocol }) => protocol))]
  const numberOf = (path: NumberName): string => {
    const [first, second] = path.split('.')
    const member = entry[first as 'concurrencyMax' | 'pendingMax' | 'timeouts' | 'probe'] // A path begins with one of these.
    const value = second ? (member as Readonly<Record<string, unknown>> | undefined)?.[second] : member // What is below are numbers.
    return value === undefined ? '' : String(value)
  }
  return {
    name,
    baseUrl: entry.baseUrl,
    format: formats.length === 1 ? (formats[0] ?? '') : '',
    // One for each name of the table.
    numbers: Object.fromEntries(NUMBER_NAMES.map((path) => [path, numberOf(path)])) as Draft['numbers'],
    onAbort: entry.onAbort ?? '',
    passesUnknown: entry.passesUnknown ?? false,
    headers: Object.entries(entry.headers ?? {})
      .map(([header, value]) => `${header}: ${value}`)
      .join('\n'),
    key: '',
  }
}

/** Only what was changed; what was emptied takes its default again. */
function changeOf(first: Draft, draft: Draft, name: string): VendorChange {
  const entry: Record<string, unknown> = {}
  if (draft.baseUrl.trim() !== first.baseUrl) entry.baseUrl = draft.baseUrl.trim()
  for (const path of NUMBER_NAMES) {
    if (draft.numbers[path] === first.numbers[path]) continue
    const value = draft.numbers[path] === '' ? null : Number(draft.numbers[path])
    const [member = '', below] = path.split('.')
    // A vendor without an interval is not probed.
    entry[member] =
      below && !(member === 'probe' && value === null) ? { ...(entry[member] ?? {}), [below]: value } : value
  }
  if (draft.onAbort !== first.onAbort) entry.onAbort = draft.onAbort || null
  if (draft.passesUnknown !== first.passesUnknown) entry.passesUnknown = draft.passesUnknown
  if (draft.headers !== first.headers) entry.headers = headersOf(first.headers, draft.headers)
  return {
    ...(draft.name.trim() === name ? {} : { name: draft.name.trim() }),
    ...(draft.format === first.format || draft.format === '' ? {} : { format: draft.format }),
    ...(Object.keys(entry).length ? { entry } : {}),
    // A key that was typed before the address was put back stays here.
    ...(draft.key.trim() && hostOf(draft.baseUrl) !== hostOf(first.baseUrl)
      ? { credential: { value: draft.key.trim() } }
      : {}),
  }
}

/** Headers that were there and are not any more are taken out. */
function headersOf(before: string, after: string): Record<string, string | null> {
  const read = (text: string) =>
    text.split('\n').flatMap((line): [string, string][] => {
      const at = line.indexOf(':')
      return at < 1 ? [] : [[line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()]]
    })
  const gone = read(before).map(([name]): [string, null] => [name, null])
  return Object.fromEntries([...gone, ...read(after)])
}

const hostOf = (address: string) => URL.parse(address)?.origin ?? address
