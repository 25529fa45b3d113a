// Whom to add: all vendors whose address and models are known, to be found by eye or by name, and any other.
import { useId, useState } from 'react'
import { SearchField } from '../../ui/field.tsx'
import { Marked } from '../../ui/mark.tsx'
import type { Preset } from '../../wire.ts'

interface Props {
  presets: readonly Preset[]
  /** The name of a preset; empty: another vendor. */
  value: string
  onPick: (name: string) => void
}

export function VendorGrid({ presets, value, onPick }: Props) {
  const [text, setText] = useState('')
  const group = useId()
  const sought = text.trim().toLowerCase()
  const other = { name: '', title: 'Other (OpenAI-compatible)' }
  // The chosen one stays, so that it can be seen.
  const shown = presets.filter(({ name, title }) => name === value || `${name} ${title}`.toLowerCase().includes(sought))
  return (
    <fieldset className="stack-tight">
      <legend className="sr-only">Vendor</legend>
      <SearchField label="Search vendors" text={text} onText={setText} />
      <div className="vendor-grid">
        {[...shown, other].map(({ name, title }) => (
          <label key={name} className="radio-card">
            <input type="radio" name={group} checked={name === value} onChange={() => onPick(name)} />
            <Marked by={title}>{title}</Marked>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
