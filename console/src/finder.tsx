// One box that finds a page, setting, model, key, account, job or call, from anywhere by Ctrl or Cmd K.
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { api } from './api.ts'
import { useQuery } from './query.ts'
import { navigate } from './router.tsx'
import { useIsOperator } from './session.tsx'
import { stepTo } from './ui/arrow-keys.ts'
import { Dialog, DialogBody } from './ui/dialog.tsx'
import { Icon, type IconName } from './ui/icon.tsx'
import type * as wire from './wire.ts'

export interface Place {
  to: string
  label: string
  icon: IconName
}

interface Found extends Place {
  kind: string
}

const PAGES_MAX = 6

/** Opens the finder by its keys, whatever has the focus. */
export function useFinder(): [open: boolean, setOpen: (open: boolean) => void] {
  const [open, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return
      event.preventDefault()
      setOpen((old) => !old)
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
  return [open, setOpen]
}

export function Finder(props: { account: string | undefined; pages: readonly Place[]; onClose: () => void }) {
  const { account, pages, onClose } = props
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const found = useFound(text.trim(), account, pages)
  const current = Math.min(at, Math.max(0, found.length - 1))
  const go = (place: Found | undefined) => {
    if (!place) return
    onClose()
    navigate(place.to)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const next = found.length ? stepTo(event.key, 'y', current, found.length) : undefined
    if (event.key === 'Enter') {
      event.preventDefault()
      go(found[current])
    } else if (next !== undefined && event.key.startsWith('Arrow')) {
      event.preventDefault()
      setAt(next)
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' })
    }
  }
  return (
    <Dialog title="Find" onClose={onClose}>
      <DialogBody>
        <div className="search finder-box">
          <Icon name="search" size={16} />
          <input
            className="input"
            type="search"
            role="combobox"
            aria-label="Find a call, job, key, model, account, page or setting"
            aria-expanded={found.length > 0}
            aria-controls={`${id}-list`}
            aria-activedescendant={found.length ? `${id}-${current}` : undefined}
            placeholder="Request id, job, key, model, account, page"
            autoComplete="off"
            value={text}
            onChange={(event) => {
              setText(event.target.value)
              setAt(0)
            }}
            onKeyDown={onKeyDown}
          />
        </div>
        <div role="listbox" id={`${id}-list`} aria-label="Found" className="pick-list">
          {found.map((place, index) => (
            <div
              key={`${place.kind} ${place.to}`}
              role="option"
              id={`${id}-${index}`}
              tabIndex={-1}
              aria-selected={index === current}
              className="pick finder-pick"
              onClick={() => go(place)}
              onKeyDown={onKeyDown}
            >
              <span className="row">
                <Icon name={place.icon} size={16} />
                <span className="clamp">{place.label}</span>
              </span>
              <span className="pick-end small">{place.kind}</span>
            </div>
          ))}
        </div>
        {text.trim() && found.length === 0 ? <p className="muted">No results.</p> : null}
      </DialogBody>
    </Dialog>
  )
}

/** What is on a page that people look for by another word. */
const ALSO: Record<string, string> = {
  Overview: 'spend requests latency balance',
  Keys: 'rotate revoke limits restrictions',
  Members: 'invite webhook secret people role',
  Statement: 'ledger credits balance csv invoice',
  Profile: 'password theme sessions zone sign out',
  Vendors: 'credential breaker test health',
  System: 'limits version processes database',
  Catalog: 'prices routes models',
  Accounts: 'customers credits',
}

/** Nobody waits for what was typed on the way to a word. */
const PAUSE_MS = 150

function usePaused(text: string): string {
  const [paused, setPaused] = useState(text)
  useEffect(() => {
    const timer = window.setTimeout(() => setPaused(text), PAUSE_MS)
    return () => window.clearTimeout(timer)
  }, [text])
  return paused
}

/** Pages and settings are here; everything else the server finds, in all accounts that the reader may see. */
function useFound(text: string, account: string | undefined, pages: readonly Place[]): Found[] {
  const sought = usePaused(text)
  const operator = useIsOperator()
  const found = useQuery(sought ? `find/${sought}` : undefined, (signal) => api.search(sought, signal))
  if (!text) return pages.map((place) => ({ ...place, kind: 'page' }))
  const has = (...words: string[]) => words.some((word) => word.toLowerCase().includes(text.toLowerCase()))
  const here = pages.filter(({ label }) => has(label, ALSO[label] ?? '')).slice(0, PAGES_MAX)
  const there = (sought === text ? (found.data?.items ?? []) : []).map((one) => placeOf(one, account, operator))
  const byId = there.filter(({ icon }) => icon === 'usage' || icon === 'jobs')
  return [...byId, ...here.map((place) => ({ ...place, kind: 'page' })), ...there.filter((one) => !byId.includes(one))]
}

function placeOf(
  { kind, id, label, account: whose }: wire.Found,
  account: string | undefined,
  operator: boolean,
): Found {
  const of = encodeURIComponent(whose ?? account ?? '')
  const name = encodeURIComponent(id)
  switch (kind) {
    case 'call':
      return { to: `/calls/${name}`, label: `${id} · ${label}`, icon: 'usage', kind }
    case 'job':
      return { to: `/a/${of}/jobs/${name}`, label: `${id} · ${label}`, icon: 'jobs', kind }
    case 'key':
      return { to: `/a/${of}/usage?key=${name}`, label, icon: 'key', kind: 'calls of this key' }
    case 'model':
      return { to: of ? `/a/${of}/models/${name}` : '/operator/catalogue', label, icon: 'models', kind: id }
    case 'account':
      return { to: operator ? `/operator/accounts/${name}` : `/a/${name}`, label, icon: 'accounts', kind }
  }
}
