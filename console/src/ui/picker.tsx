// Chooses by name what has an id, so that nobody pastes one: chips of what is chosen, and a list that follows what is
// typed. A combobox as the ARIA practices describe it.
import { type KeyboardEvent, type ReactNode, useId, useState } from 'react'
import { Field } from './field.tsx'
import { Icon } from './icon.tsx'

interface Pick {
  readonly value: string
  readonly label: string
  /** Beside its name, where names may be alike. */
  readonly about?: string
}

interface PickerProps {
  label: string
  hint?: ReactNode
  placeholder?: string
  /** The chosen values, separated by commas, as text fields have them. */
  value: string
  onText: (value: string) => void
  options: readonly Pick[]
  /** The server searches: what is typed is passed on. */
  onSearch?: (text: string) => void
  /** Only one can be chosen. */
  single?: boolean
  /** What is in no list can be typed too, if it looks like this. */
  free?: RegExp
}

const SHOWN_MAX = 50
const partsOf = (value: string) => value.split(/[\s,]+/).filter(Boolean)

export function Picker({ value, onText, options, onSearch, single = false, free, ...field }: PickerProps) {
  const [typed, setTyped] = useState('')
  const [active, setActive] = useState(-1)
  const [open, setOpen] = useState(false)
  const list = useId()
  const chosen = partsOf(value)
  const sought = typed.trim().toLowerCase()
  const shown = options
    .filter(({ value: one }) => !chosen.includes(one))
    .filter((one) => `${one.label} ${one.about ?? ''} ${one.value}`.toLowerCase().includes(sought))
    .slice(0, SHOWN_MAX)

  const type = (text: string) => {
    setTyped(text)
    setActive(-1)
    setOpen(true)
    onSearch?.(text)
  }
  const choose = (values: readonly string[]) => {
    if (values.length > 0) onText((single ? values.slice(0, 1) : [...new Set([...chosen, ...values])]).join(', '))
    type('')
    setOpen(false)
  }
  /** What was typed and is left: a value, or nothing. */
  const settle = () => {
    const exact = options.find((one) => one.value === typed.trim() || one.label.toLowerCase() === sought)
    choose(exact ? [exact.value] : partsOf(typed).filter((part) => free?.test(part)))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      setOpen(true)
      setActive((at) => (shown.length === 0 ? -1 : (at + step + shown.length) % shown.length))
    } else if (event.key === 'Enter') {
      const one = shown[active] ?? (sought && !free?.test(typed.trim()) ? shown[0] : undefined)
      if (one) choose([one.value])
      else if (sought) settle()
      else return
    } else if (event.key === 'Escape' && open) setOpen(false)
    else if (event.key === 'Backspace' && typed === '') return onText(chosen.slice(0, -1).join(', '))
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const isOpen = open && shown.length > 0
  return (
    <Field
      props={{ ...field, onText: type }}
      control={(wired) => (
        <div className="picker">
          <div className="input picker-box">
            {chosen.map((one) => (
              <Chip
                key={one}
                name={options.find((option) => option.value === one)?.label ?? one}
                onRemove={() => onText(chosen.filter((other) => other !== one).join(', '))}
              />
            ))}
            <input
              {...wired}
              role="combobox"
              aria-expanded={isOpen}
              aria-controls={list}
              aria-autocomplete="list"
              aria-activedescendant={isOpen && active >= 0 ? `${list}-${active}` : undefined}
              autoComplete="off"
              placeholder={chosen.length > 0 ? undefined : field.placeholder}
              value={typed}
              onFocus={() => setOpen(true)}
              onBlur={settle}
              onKeyDown={onKeyDown}
            />
          </div>
          <div id={list} role="listbox" aria-label="Options" className="picker-list" hidden={!isOpen}>
            {shown.map((one, at) => (
              <div
                key={one.value}
                id={`${list}-${at}`}
                role="option"
                tabIndex={-1}
                aria-selected={at === active}
                // Before the field loses the focus.
                onMouseDown={(event) => {
                  event.preventDefault()
                  choose([one.value])
                }}
              >
                {one.label}
                {one.about ? <span className="cell-sub">{one.about}</span> : null}
              </div>
            ))}
          </div>
        </div>
      )}
    />
  )
}

function Chip({ name, onRemove }: { name: string; onRemove: () => void }) {
  return (
    <span className="chip">
      {name}
      <button type="button" aria-label={`Remove ${name}`} onClick={onRemove}>
        <Icon name="close" size={12} />
      </button>
    </span>
  )
}
