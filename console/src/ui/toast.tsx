// Short messages about what just happened. The region is always in the page, so that screen readers notice additions.
import { useSyncExternalStore } from 'react'
import type { Needs } from '../session.tsx'
import { useAction } from './action.ts'
import { Button, IconButton } from './button.tsx'
import { Icon } from './icon.tsx'

/** What can be done about it at once, such as taking it back. */
interface ToastAction {
  right: Needs['right']
  label: string
  run: () => Promise<unknown>
}

interface Toast {
  id: number
  text: string
  bad: boolean
  action?: ToastAction | undefined
}

let toasts: readonly Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

function change(next: readonly Toast[]): void {
  toasts = next
  for (const run of listeners) run()
}

const drop = (id: number) => change(toasts.filter((toast) => toast.id !== id))

export function toast(text: string, { bad = false, action }: { bad?: boolean; action?: ToastAction } = {}): void {
  const id = ++lastId
  change([...toasts.slice(-2), { id, text, bad, action }])
  window.setTimeout(() => drop(id), action ? 20_000 : bad ? 10_000 : 5_000)
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
          <span>
            {entry.text} {entry.action ? <Act action={entry.action} onDone={() => drop(entry.id)} /> : null}
          </span>
          <IconButton icon="close" label="Dismiss" onClick={() => drop(entry.id)} />
        </div>
      ))}
    </section>
  )
}

function Act({ action: { right, label, run }, onDone }: { action: ToastAction; onDone: () => void }) {
  const { busy, go } = useAction(async () => {
    await run().catch(toastError)
    onDone()
  })
  return (
    <Button right={right} small look="ghost" busy={busy} onClick={() => go()}>
      {label}
    </Button>
  )
}
