// One box that finds pages, settings, actions, guides, models, keys, vendors, members, accounts, jobs and calls, from
// anywhere by Ctrl or Cmd K.
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { meantBy } from '../../src/extensions/docs/synonyms.ts'
import { actionId, useActions } from './actions.ts'
import { api } from './api.ts'
import type { Navigation } from './navigation.ts'
import { useQuery } from './query.ts'
import { navigate } from './router.tsx'
import { withoutSecrets } from './secret.ts'
import { signOut, useMay, useSession } from './session.tsx'
import { setTheme } from './theme.ts'
import { stepTo } from './ui/arrow-keys.ts'
import { Dialog, DialogBody } from './ui/dialog.tsx'
import { Icon, type IconName } from './ui/icon.tsx'
import type * as wire from './wire.ts'

interface Found {
  label: string
  icon: IconName
  kind: string
  /** An address of the console, an address outside of it, or what to do. */
  to: string | (() => void)
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

interface FinderProps {
  account: string | undefined
  sections: Navigation['sections']
  onClose: () => void
}

export function Finder({ account, sections, onClose }: FinderProps) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const found = useFound(text.trim(), account, sections)
  const current = Math.min(at, Math.max(0, found.length - 1))
  const go = (place: Found | undefined) => {
    if (!place) return
    onClose()
    if (typeof place.to === 'function') place.to()
    else if (place.to.startsWith('/docs')) window.location.assign(place.to)
    else navigate(place.to)
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
            aria-label="Find a page, action, guide, call, job, key, model, vendor, member or account"
            aria-expanded={found.length > 0}
            aria-controls={`${id}-list`}
            aria-activedescendant={found.length ? `${id}-${current}` : undefined}
            placeholder="Page, action, guide, key, model, request id"
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
              key={`${place.kind} ${place.label} ${index}`}
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

const isAccount = (account: string | undefined) => account !== undefined && account !== ''

/** What somebody may want to do, wherever they are. */
function useActionsOf(account: string | undefined): (Found & { also?: string })[] {
  const may = useMay()
  const canConnect = useSession().extensions.includes('connect')
  const action = (label: string, icon: IconName, to: Found['to'], also = '') => ({
    kind: 'action',
    label,
    icon,
    to,
    also,
  })
  const base = `/a/${encodeURIComponent(account ?? '')}`
  const theirs = `/operator/accounts/${encodeURIComponent(account ?? '')}`
  const inAccount = isAccount(account)
    ? [
        ...(may('keys:write', account) ? [action('New key', 'plus', `${base}/keys?new=1`, 'create api token')] : []),
        ...(may('playground:write', account)
          ? [
              action('New chat', 'play', `${base}/playground/chat`, 'try ask prompt'),
              action('New batch', 'batches', `${base}/batches?open=create`, 'create upload file'),
            ]
          : []),
        ...(may('members:write', account)
          ? [action('Invite a member', 'members', `${base}/members?open=invite`, 'add person')]
          : []),
        ...(may('credits:write')
          ? [action('Add credits', 'plus', `${theirs}?open=credits`, 'top up grant take back')]
          : []),
      ]
    : []
  const inGateway = [
    ...(may('accounts:write')
      ? [action('New account', 'accounts', '/operator/accounts?open=create', 'create customer')]
      : []),
    ...(canConnect && may('vendors:write')
      ? [action('Add vendor', 'vendors', '/operator/vendors/new', 'connect provider')]
      : []),
    ...(may('operators:write')
      ? [action('Invite an operator', 'user', '/operator/operators?open=invite', 'add person')]
      : []),
    ...(may('catalog:write')
      ? [action('Roll back the catalog', 'history', '/operator/catalog/versions', 'versions undo prices')]
      : []),
  ]
  return [
    ...inAccount,
    ...inGateway,
    action('Light theme', 'sun', () => setTheme('light'), 'appearance'),
    action('Dark theme', 'moon', () => setTheme('dark'), 'appearance'),
    action('Change password', 'key', '/profile', 'sessions'),
    action('Sign out', 'leave', () => void signOut(), 'log out leave'),
  ]
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

const GUIDES_MAX = 4
const FORMS_MAX = 4

/** The documentation's own list of its pages. */
async function readGuides(signal: AbortSignal): Promise<{ title: string; path: string; also: string }[]> {
  const text = await (await fetch('/llms.txt', { signal })).text()
  const links = text.matchAll(/^- \[([^\]]{1,200})\]\(([^)\s]{1,300})\.md\)(.*)$/gm)
  return [...links].map(([, title = '', url = '', also = '']) => ({
    title,
    path: new URL(url, window.location.origin).pathname,
    also,
  }))
}

/** Pages and actions are known here; everything else the server finds, in all accounts that the reader may see. */
function useFound(text: string, account: string | undefined, sections: Navigation['sections']): Found[] {
  const asked = withoutSecrets(text)
  const sought = usePaused(asked)
  const may = useMay()
  const found = useQuery(sought ? `find/${sought}` : undefined, (signal) => api.search(sought, signal))
  const guides = useQuery(text ? 'find-guides' : undefined, readGuides)
  const forms = useActions(text !== '')
  const shortcuts = useActionsOf(account)
  const pages = [
    ...[...sections.account, ...sections.operator].flatMap(({ icon, pages: of }) =>
      of.map((page) => ({ icon, ...page })),
    ),
    {
      icon: 'user' as const,
      to: '/profile',
      label: 'Profile',
      also: 'password theme sessions time zone second factor authenticator passkey',
    },
    { icon: 'code' as const, to: '/actions', label: 'All actions', also: 'api forms operator change' },
  ].map((page) => ({ ...page, kind: 'page' }))
  if (!text) return pages
  const words = text.toLowerCase().split(/\s+/)
  const has = ({ label, also = '' }: { label: string; also?: string }) => {
    const all = `${label} ${also}`.toLowerCase()
    return words.every((word) => all.includes(word) || all.includes(meantBy(word)))
  }
  const isNamed = ({ label }: Found) => label.toLowerCase().includes(text.toLowerCase())
  const actions = shortcuts.filter(has).sort((a, b) => Number(isNamed(b)) - Number(isNamed(a)))
  const there = (sought === asked ? (found.data?.items ?? []) : []).map((one) =>
    placeOf(one, account, may('accounts:read')),
  )
  const byId = there.filter(({ icon }) => icon === 'usage' || icon === 'jobs')
  return [
    ...byId,
    ...actions,
    ...pages.filter(has).slice(0, PAGES_MAX),
    ...there.filter((one) => !byId.includes(one)),
    ...(forms.data ?? [])
      .filter(({ title }) => has({ label: title }))
      .slice(0, FORMS_MAX)
      .map((one) => ({
        kind: 'form',
        label: one.title,
        icon: 'code' as const,
        to: `/actions?do=${encodeURIComponent(actionId(one))}`,
      })),
    ...(guides.data ?? [])
      .filter(({ title, also }) => has({ label: title, also }))
      .slice(0, GUIDES_MAX)
      .map(({ title, path }) => ({ kind: docsKind(path), label: title, icon: 'docs' as const, to: path })),
    {
      kind: 'docs',
      label: `Search the documentation for “${asked}”`,
      icon: 'docs',
      to: `/docs/search?q=${encodeURIComponent(asked)}`,
    },
  ]
}

/** What a page of the documentation is. */
const docsKind = (path: string) =>
  path.startsWith('/docs/guides/') ? 'guide' : path.startsWith('/docs/api/') ? 'endpoint' : 'reference'

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
      return { to: of ? `/a/${of}/models/${name}` : '/operator/catalog', label, icon: 'models', kind: id }
    case 'vendor':
      return { to: `/operator/vendors/${name}`, label, icon: 'vendors', kind }
    case 'member':
      return { to: operator ? `/operator/accounts/${of}/members` : `/a/${of}/members`, label, icon: 'members', kind }
    case 'account':
      return { to: operator ? `/operator/accounts/${name}` : `/a/${name}`, label, icon: 'accounts', kind }
  }
}
