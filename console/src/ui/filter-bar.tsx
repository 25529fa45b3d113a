// One bar above a list: what is always asked, a chip for each filter in force, and the others in a menu.
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button, IconButton } from './button.tsx'
import { Icon } from './icon.tsx'
import { Menu } from './menu.tsx'

interface Filter {
  readonly name: string
  readonly label: string
  readonly value: string | undefined
  /** The control, which is labelled; it stands in the chip. */
  readonly field: ReactNode
}

interface Props {
  filters: readonly Filter[]
  /** Something is chosen, also among what is always asked. */
  filtered: boolean
  onDrop: (name: string) => void
  onClear: () => void
  children?: ReactNode
}

export function FilterBar({ filters, filtered, onDrop, onClear, children }: Props) {
  const bar = useRef<HTMLElement>(null)
  /** Without a value yet; the last one was just added. */
  const [added, setAdded] = useState<readonly string[]>([])
  const last = added.at(-1)
  useEffect(() => {
    if (last) bar.current?.querySelector<HTMLElement>(`[data-filter="${last}"] :is(input, select)`)?.focus()
  }, [last])
  const isShown = ({ name, value }: Filter) => Boolean(value) || added.includes(name)
  const rest = filters.filter((one) => !isShown(one))
  const without = (name: string) => added.filter((one) => one !== name)
  return (
    <search className="filters" ref={bar}>
      {children}
      {filters.filter(isShown).map(({ name, label, field }) => (
        <span key={name} className="chip filter-chip" data-filter={name}>
          {field}
          <IconButton
            icon="close"
            label={`Remove the filter ${label}`}
            onClick={() => {
              setAdded(without(name))
              onDrop(name)
            }}
          />
        </span>
      ))}
      {rest.length > 0 ? (
        <Menu
          label="Add filter"
          items={rest.map(({ name, label }) => ({ label, run: () => setAdded([...without(name), name]) }))}
        >
          <Icon name="plus" size={16} /> Add filter
        </Menu>
      ) : null}
      {filtered ? (
        <Button
          look="ghost"
          onClick={() => {
            setAdded([])
            onClear()
          }}
        >
          Clear filters
        </Button>
      ) : null}
    </search>
  )
}
