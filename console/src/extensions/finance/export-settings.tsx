// What each kind of destination needs, as fields of a form.
import type { ExportSettings } from '../../../../src/extensions/finance/views.ts'
import { Checkbox, SelectField, TextField } from '../../ui/field.tsx'
import type { Export } from '../../wire.ts'

type Kind = Export['kind']

interface FieldWords {
  readonly label: string
  readonly hint?: string
  readonly placeholder?: string
  readonly options?: readonly (readonly [value: string, label: string])[]
  readonly isOptional?: boolean
  readonly as?: 'number' | 'flag'
}

export const KINDS: Readonly<Record<Kind, string>> = {
  webhook: 'Webhook (CloudEvents)',
  openmeter: 'OpenMeter',
  lago: 'Lago',
  stripe: 'Stripe meters',
  s3: 'Bucket (Parquet or FOCUS)',
}

const url = (placeholder: string): FieldWords => ({ label: 'Address', placeholder })
const credential = (placeholder: string, hint?: string): FieldWords => ({
  label: 'Credential',
  placeholder,
  hint: hint ?? 'A name for it, in capitals.',
})
const source: FieldWords = {
  label: 'Source',
  placeholder: 'tollgate',
  isOptional: true,
  hint: 'The source of the events, to distinguish several gateways.',
}

/** The compiler sees to it that every setting has its field. */
const ALL: { readonly [K in Kind]: Readonly<Record<keyof ExportSettings<K>, FieldWords>> } = {
  webhook: {
    url: url('https://books.example/usage'),
    source,
    batch: { label: 'Events in a request', placeholder: '100', isOptional: true, as: 'number' },
  },
  openmeter: {
    url: url('https://openmeter.cloud'),
    credential: { ...credential('OPENMETER_KEY'), isOptional: true },
    source,
  },
  lago: {
    url: url('https://api.getlago.com'),
    credential: credential('LAGO_KEY'),
    code: { label: 'Code of the billable metric', placeholder: 'calls' },
  },
  stripe: {
    credential: credential('STRIPE_METER_KEY'),
    event: { label: 'Event name of the meter', placeholder: 'tokens' },
    value: {
      label: 'What the meter adds up',
      options: [
        ['tokens', 'Tokens'],
        ['inputTokens', 'Input tokens'],
        ['outputTokens', 'Output tokens'],
        ['calls', 'Calls'],
        ['microcredits', 'Millionths of a credit'],
      ],
    },
    url: { ...url('https://api.stripe.com'), isOptional: true },
  },
  s3: {
    url: url('https://s3.eu-central-1.amazonaws.com'),
    bucket: { label: 'Bucket', placeholder: 'books' },
    region: { label: 'Region', placeholder: 'us-east-1', isOptional: true },
    credential: credential('BOOKS_BUCKET', 'A name for it; its value is “access key id:secret access key”.'),
    prefix: { label: 'Folder', placeholder: 'usage', isOptional: true },
    format: {
      label: 'Files',
      options: [
        ['parquet', 'Calls as Parquet, by the hour'],
        ['focus-csv', 'FOCUS as CSV, by the day'],
        ['focus-parquet', 'FOCUS as Parquet, by the day'],
      ],
    },
    virtualHost: { label: 'The bucket is part of the host name', as: 'flag', isOptional: true },
  },
}
export const FIELDS: Readonly<Record<Kind, Readonly<Record<string, FieldWords>>>> = ALL

export function SettingsFields({ kind, settings }: { kind: Kind; settings: Export['settings'] }) {
  return (
    <div className="grid-2">
      {Object.entries(FIELDS[kind]).map(([name, field]) => (
        <Setting key={name} name={name} field={field} value={settings[name]} />
      ))}
    </div>
  )
}

function Setting({ name, field, value }: { name: string; field: FieldWords; value: unknown }) {
  const { label, hint, placeholder, options, isOptional = false, as } = field
  if (as === 'flag') return <Checkbox label={label} name={name} defaultChecked={value === true} onCheck={() => {}} />
  if (options) return <SelectField label={label} name={name} defaultValue={String(value ?? '')} options={options} />
  return (
    <TextField
      label={label}
      name={name}
      hint={hint}
      placeholder={placeholder}
      required={!isOptional}
      inputMode={as === 'number' ? 'numeric' : undefined}
      defaultValue={value === undefined ? '' : String(value)}
    />
  )
}

/** What was left empty has its default. The server says what is wrong with the rest. */
export function settingsOf(kind: Kind, form: FormData): Record<string, unknown> {
  const read = Object.entries(FIELDS[kind]).flatMap(([name, { as }]): [string, unknown][] => {
    const text = String(form.get(name) ?? '').trim()
    if (as === 'flag') return [[name, form.has(name)]]
    if (text === '') return []
    return [[name, as === 'number' ? Number(text) : text]]
  })
  return Object.fromEntries(read)
}
