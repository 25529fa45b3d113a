// One box that finds a page, setting, model, key, account, job or call, from anywhere by Ctrl or Cmd K.
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useState } from 'react'
import { api } from './api.ts'
import { useQuery } from './query.ts'
import { navigate } from './router.tsx'
import { useIsOperator } from './session.tsx'
import { stepTo } from './ui/arrow-keys.ts'
import { Dialog, DialogBody } from './ui/dialog.tsx'
import { Icon, type IconName } from './ui/icon.tsx'

export interface Place {
  to: string
  label: string
  icon: IconName
}

interface Found extends Place {
  kind: string
}

const PER_KIND = 6

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
        {text.trim() && found.length === 0 ? <p className="muted">Nothing of that name.</p> : null}
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
  Catalogue: 'prices routes models',
  Accounts: 'customers credits',
}

function useFound(text: string, account: string | undefined, pages: readonly Place[]): Found[] {
  const sought = useDeferredValue(text.toLowerCase())
  const operator = useIsOperator()
  const base = `/a/${encodeURIComponent(account ?? '')}`
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const keys = useQuery(account ? `keys/${account}/choice` : undefined, (signal) =>
    api.keys(account ?? '', { limit: 200 }, signal),
  )
  const accounts = useQuery(operator && sought ? `accounts/find/${sought}` : undefined, (signal) =>
    api.accounts({ q: sought, limit: PER_KIND }, signal),
  )
  const has = (...words: string[]) => words.some((word) => word.toLowerCase().includes(sought))
  const some = (list: readonly Found[]) => list.slice(0, PER_KIND)
  if (!sought) return pages.map((place) => ({ ...place, kind: 'page' }))
  return [
    ...byId(sought, text, base, account !== undefined),
    ...some(pages.filter(({ label }) => has(label, ALSO[label] ?? '')).map((place) => ({ ...place, kind: 'page' }))),
    ...some(
      (keys.data?.items ?? [])
        .filter((key) => has(key.name, key.id, `${key.prefix}…${key.last4}`, key.last4))
        .map((key) => ({
          to: `${base}/usage?key=${encodeURIComponent(key.id)}`,
          label: `${key.name} …${key.last4}`,
          icon: 'key' as const,
          kind: 'calls of this key',
        })),
    ),
    ...some(
      [
        ...(catalog.data?.models ?? []).map(({ uid, name }) => ({ uid, name })),
        ...(catalog.data?.endpoints ?? []).map(({ id, title }) => ({ uid: id, name: title })),
      ]
        .filter(({ uid, name }) => has(uid, name))
        .map(({ uid, name }) => ({
          to: account ? `${base}/models/${encodeURIComponent(uid)}` : '/operator/catalogue',
          label: name,
          icon: 'models' as const,
          kind: uid,
        })),
    ),
    ...(accounts.data?.items ?? []).map(({ id, name }) => ({
      to: `/operator/accounts/${encodeURIComponent(id)}`,
      label: name,
      icon: 'accounts' as const,
      kind: 'account',
    })),
  ]
}

/** Ids say by their shape what they are of. */
function byId(sought: string, text: string, base: string, hasAccount: boolean): Found[] {
  if (/^req_\w{10,}$/.test(sought))
    return [{ to: `/calls/${encodeURIComponent(text)}`, label: text, icon: 'usage', kind: 'call' }]
  if (hasAccount && /^\d{8,20}$/.test(sought))
    return [{ to: `${base}/jobs/${sought}`, label: `Job ${sought}`, icon: 'jobs', kind: 'job' }]
  return []
}
