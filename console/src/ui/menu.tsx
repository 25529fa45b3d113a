// A button with a short list of actions. The list is a popover, so that it lies above everything and closes by itself.
import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react'
import { type Needs, useAllowed } from '../session.tsx'
import { stepTo } from './arrow-keys.ts'
import { Icon, type IconName } from './icon.tsx'

export interface MenuItem {
  label: string
  icon?: IconName
  danger?: boolean
  run: () => void
}

const EDGE = 8

/** Below what it belongs to, or above it where there is no room. */
export function placeAt(popover: HTMLElement | null, around: HTMLElement | null): void {
  const anchor = around?.getBoundingClientRect()
  if (!popover || !anchor) return
  const { offsetWidth: width, offsetHeight: height } = popover
  const below = anchor.bottom + height + EDGE < window.innerHeight
  popover.style.left = `${Math.max(EDGE, Math.min(anchor.right - width, window.innerWidth - width - EDGE))}px`
  popover.style.top = `${below ? anchor.bottom + 4 : Math.max(EDGE, anchor.top - height - 4)}px`
}

interface MenuProps {
  label: string
  items: readonly MenuItem[]
  small?: boolean
  children?: ReactNode
}

/** Who has not the right for it does not see it. */
export function Menu({ right, account, ...props }: MenuProps & Needs) {
  return useAllowed({ right, account }) ? <OpenMenu {...props} /> : null
}

function OpenMenu({ label, items, small, children }: MenuProps) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState(false)

  const entries = () => [...(list.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]

  const onToggle = (shown: boolean) => {
    setOpen(shown)
    if (!shown) return
    placeAt(list.current, button.current)
    entries()[0]?.focus()
  }

  const onKeyDown = (event: KeyboardEvent) => {
    const all = entries()
    const next = stepTo(event.key, 'y', all.indexOf(document.activeElement as HTMLElement), all.length)
    if (event.key === 'Tab') list.current?.hidePopover()
    if (next === undefined) return
    event.preventDefault()
    all[next]?.focus()
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        className={children ? `button button-plain${small ? ' button-small' : ''}` : 'icon-button'}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={open}
        popoverTarget={id}
      >
        {children ?? <Icon name="more" />}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        className="menu"
        onToggle={(event) => onToggle(event.newState === 'open')}
        onKeyDown={onKeyDown}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            tabIndex={-1}
            className={item.danger ? 'menu-item menu-danger' : 'menu-item'}
            onClick={() => {
              list.current?.hidePopover()
              item.run()
            }}
          >
            {item.icon ? <Icon name={item.icon} size={16} /> : null}
            {item.label}
          </button>
        ))}
      </div>
    </>
  )
}
