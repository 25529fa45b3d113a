// A day, typed as 2026-11-19 or chosen from a month as the ARIA practices describe it. The browser's own field has the
// order of its own language, not the one in which the page writes days.
import { type ComponentProps, type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { formatUtcDay, monthName } from '../format.ts'
import { IconButton } from './button.tsx'
import { Icon } from './icon.tsx'
import { placeAt } from './menu.tsx'

const DAY_MS = 86_400_000
const WEEK = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'] as const
const DAYS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }
const MONTHS: Readonly<Record<string, number>> = { PageUp: -1, PageDown: 1 }
const isDay = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
/** An address may have a moment instead, the step of a chart. */
const dayIn = (text = '') => (isDay(text) ? text : '')
const daysLater = (day: string, days: number) => new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)

/** The same day of another month, or its last one. */
function monthsLater(day: string, months: number): string {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number)
  const last = new Date(Date.UTC(year, month + months, 0))
  return daysLater(last.toISOString().slice(0, 10), Math.min(0, date - last.getUTCDate()))
}

interface Props extends Omit<ComponentProps<'input'>, 'value' | 'onChange'> {
  value?: string | undefined
  onChange: (event: { target: { value: string } }) => void
}

export function DateInput({ value, onChange, min = '', max = '', ...rest }: Props) {
  const [told, setTold] = useState(value)
  const [typed, setTyped] = useState(dayIn(value))
  const box = useRef<HTMLSpanElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const id = useId()
  // Chosen by something else: a link, or the button that clears.
  if (told !== value) {
    setTold(value)
    setTyped(dayIn(value))
  }
  const write = (text: string) => {
    setTyped(text)
    if (text !== '' && !isDay(text)) return
    if (value !== undefined) setTold(text)
    onChange({ target: { value: text } })
  }
  const [open, setOpen] = useState(false)
  return (
    <span className="date" ref={box}>
      <input
        className="input"
        autoComplete="off"
        placeholder="YYYY-MM-DD"
        pattern="\d{4}-\d\d-\d\d"
        title="A day such as 2026-11-19."
        maxLength={10}
        {...rest}
        type="text"
        value={typed}
        onChange={(event) => write(event.target.value)}
      />
      <button type="button" className="icon-button" aria-label="Choose a day" aria-expanded={open} popoverTarget={id}>
        <Icon name="calendar" size={16} />
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="dialog"
        aria-label="Choose a day"
        className="menu month"
        onToggle={({ newState }) => {
          setOpen(newState === 'open')
          if (newState === 'open') placeAt(list.current, box.current)
        }}
      >
        {open ? (
          <Month
            day={isDay(typed) ? typed : new Date().toISOString().slice(0, 10)}
            isIn={(day) => (min === '' || day >= String(min)) && (max === '' || day <= String(max))}
            onDay={(day) => {
              write(day)
              list.current?.hidePopover()
              box.current?.querySelector('input')?.focus()
            }}
          />
        ) : null}
      </div>
    </span>
  )
}

function Month({ day, isIn, onDay }: { day: string; isIn: (day: string) => boolean; onDay: (day: string) => void }) {
  const [at, setAt] = useState(day)
  const table = useRef<HTMLTableElement>(null)
  useEffect(() => {
    // Whoever goes on by the buttons stays on them.
    if (at === day || table.current?.contains(document.activeElement))
      table.current?.querySelector<HTMLElement>(`[data-day="${at}"]`)?.focus()
  }, [at, day])
  const first = `${at.slice(0, 7)}-01`
  const start = daysLater(first, -((new Date(first).getUTCDay() + 6) % 7))
  const weeks = Array.from({ length: 6 }, (_, week) => WEEK.map((_name, one) => daysLater(start, 7 * week + one)))
  const onKeyDown = (event: KeyboardEvent) => {
    const next = MONTHS[event.key] ? monthsLater(at, MONTHS[event.key] ?? 0) : daysLater(at, DAYS[event.key] ?? 0)
    if (next === at) return
    event.preventDefault()
    setAt(next)
  }
  return (
    <>
      <div className="month-head">
        <IconButton icon="left" label="Month before" onClick={() => setAt(monthsLater(at, -1))} />
        <b aria-live="polite">{monthName(at.slice(0, 7))}</b>
        <IconButton icon="right" label="Month after" onClick={() => setAt(monthsLater(at, 1))} />
      </div>
      <table ref={table} onKeyDown={onKeyDown}>
        <thead>
          <tr>
            {WEEK.map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeks
            .filter((week) => week.some((one) => one.startsWith(at.slice(0, 7))))
            .map((week) => (
              <tr key={week[0]}>
                {week.map((one) => (
                  <td key={one}>
                    <button
                      type="button"
                      data-day={one}
                      tabIndex={one === at ? 0 : -1}
                      aria-label={formatUtcDay(one)}
                      aria-pressed={one === day}
                      aria-disabled={!isIn(one)}
                      className={one.startsWith(at.slice(0, 7)) ? undefined : 'muted'}
                      onClick={() => (isIn(one) ? onDay(one) : undefined)}
                    >
                      {Number(one.slice(8))}
                    </button>
                  </td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </>
  )
}
