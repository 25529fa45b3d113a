// Short messages about what just happened. The region is always in the page, so that screen readers notice additions.
import { useSyncExternalStore } from 'react'
import { IconButton } from './button.tsx'
import { Icon } from './icon.tsx'

interface Toast {
  id: number
  text: string
  bad: boolean
}

let toasts: readonly Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

function change(next: readonly Toast[]): void {
  toasts = next
  for (const run of listeners) run()
}

const drop = (id: number) => change(toasts.filter((toast) => toast.id !== id))

export function toast(text: string, options: { bad?: boolean } = {}): void {
  const id = ++lastId
  change([...toasts.slice(-2), { id, text, bad: options.bad ?? false }])
  window.setTimeout(() => drop(id), options.bad ? 10_000 : 5_000)
}

export const toastError = (error: unknown) =>
  toast(error instanceof Error ? error.message : String(error), { bad: true })

export function Toasts() {
  const shown = useSyncExternalStore(
    (run) => {
      listeners.add(run)
      return () => listeners.delete(run)
    },
    () => toasts,
  )
  return (
    <section className="toasts" aria-live="polite" aria-label="Notifications">
      {shown.map((entry) => (
        <div key={entry.id} className={entry.bad ? 'toast toast-bad' : 'toast'}>
          <Icon name={entry.bad ? 'warning' : 'check'} size={16} />
          <span>{entry.text}</span>
          <IconButton icon="close" label="Dismiss" onClick={() => drop(entry.id)} />
        </div>
      ))}
    </section>
  )
}
