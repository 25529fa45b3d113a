import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Link } from '../router.tsx'
import { stepTo } from './arrow-keys.ts'
import { Icon, type IconName } from './icon.tsx'

/** Tabs that are links: each has its own address. */
export function RouteTabs({
  label,
  tabs,
  current,
}: {
  label: string
  tabs: readonly { to: string; name: string; label: string; icon?: IconName }[]
  current: string
}) {
  const bar = useRef<HTMLElement>(null)
  // On a phone the tabs scroll, and the current one must be in sight.
  useEffect(() => {
    const tab = bar.current?.querySelector<HTMLElement>('[aria-current]')
    if (tab && bar.current) bar.current.scrollLeft = tab.offsetLeft - bar.current.offsetLeft - 40
  }, [current])
  return (
    <nav className="tabs" aria-label={label} ref={bar}>
      {tabs.map((tab) => (
        <Link key={tab.name} to={tab.to} className="tab" aria-current={tab.name === current ? 'page' : undefined}>
          {tab.icon ? <Icon name={tab.icon} size={16} /> : null}
          {tab.label}
        </Link>
      ))}
    </nav>
  )
}

/** Tabs within a page, by the usual keys: arrows, Home and End. */
export function Tabs({
  label,
  tabs,
  aside,
}: {
  label: string
  tabs: readonly { name: string; label: ReactNode; content: () => ReactNode }[]
  aside?: ReactNode
}) {
  const id = useId()
  const [chosen, setChosen] = useState<string>()
  const list = useRef<HTMLDivElement>(null)
  const current = tabs.find((tab) => tab.name === chosen) ?? tabs[0]
  if (!current) return null

  const onKeyDown = (event: KeyboardEvent) => {
    const next = stepTo(event.key, 'x', tabs.indexOf(current), tabs.length)
    if (next === undefined) return
    event.preventDefault()
    setChosen(tabs[next]?.name)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus()
  }

  return (
    <div className="tab-group">
      <div className="tab-bar">
        <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
          {tabs.map((tab) => (
            <button
              key={tab.name}
              type="button"
              role="tab"
              id={`${id}-${tab.name}`}
              className="tab"
              aria-selected={tab === current}
              aria-controls={`${id}-panel`}
              tabIndex={tab === current ? 0 : -1}
              onClick={() => setChosen(tab.name)}
            >
              {tab.label}
            </button>
          ))}
        </div>
        {aside}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current.name}`} tabIndex={0}>
        {current.content()}
      </div>
    </div>
  )
}
