// Client routing on the History API, below /console. Links are real anchors, so opening in a new tab, copying and
// reloading work as everywhere else.
import { type ComponentProps, type MouseEvent, useSyncExternalStore } from 'react'

export const BASE = '/console'
export { match } from './path.ts'

const listeners = new Set<() => void>()

function subscribe(run: () => void): () => void {
  listeners.add(run)
  window.addEventListener('popstate', run)
  return () => {
    listeners.delete(run)
    window.removeEventListener('popstate', run)
  }
}

interface PageLocation {
  /** Without the base: `/a/acc_1/keys`. */
  path: string
  query: URLSearchParams
}

export function useLocation(): PageLocation {
  const href = useSyncExternalStore(subscribe, () => window.location.pathname + window.location.search)
  const url = new URL(href, window.location.origin)
  return { path: url.pathname.slice(BASE.length) || '/', query: url.searchParams }
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const samePage = window.location.pathname === new URL(BASE + to, window.location.origin).pathname
  if (options.replace) window.history.replaceState(null, '', BASE + to)
  else window.history.pushState(null, '', BASE + to)
  for (const run of listeners) run()
  if (!samePage) window.scrollTo(0, 0)
}

/** Writes filters into the address, so that a filtered list can be reloaded, shared and gone back to. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const query = new URLSearchParams(window.location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value)
    else query.delete(name)
  }
  const search = query.toString()
  navigate(`${window.location.pathname.slice(BASE.length)}${search ? `?${search}` : ''}`, { replace: true })
}

/** A dialog that the address opens, so that a link, or an action of the finder, can lead to it. */
export function useDialogInAddress(name: string): [open: boolean, setOpen: (open: boolean) => void] {
  const { query } = useLocation()
  return [query.get('open') === name, (open) => setQuery({ open: open ? name : undefined })]
}

export function Link({ to, onClick, ...rest }: { to: string } & Omit<ComponentProps<'a'>, 'href'>) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(to)
  }
  return <a href={BASE + to} onClick={follow} {...rest} />
}
