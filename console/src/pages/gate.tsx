// The frame of the pages outside: sign in, set up, accept an invitation.
import { type FormEvent, type ReactNode, useEffect, useState, useSyncExternalStore } from 'react'
import { Mark } from '../ui/icon.tsx'

export function Gate({
  title,
  lead,
  children,
  foot,
}: {
  title: string
  lead?: ReactNode
  children: ReactNode
  foot?: ReactNode
}) {
  useEffect(() => {
    document.title = `${title} · Tollgate`
  }, [title])
  return (
    <main className="gate">
      <div className="gate-box">
        <div className="gate-brand">
          <Mark size={34} /> Tollgate
        </div>
        <div className="gate-card">
          <div>
            <h1>{title}</h1>
            {lead ? <p className="lead">{lead}</p> : null}
          </div>
          {children}
        </div>
        {foot ? <div className="gate-foot">{foot}</div> : null}
      </div>
    </main>
  )
}

/** One submission at a time, with its fault. */
export function useSubmit(run: (form: FormData) => Promise<void>): {
  busy: boolean
  error: Error | undefined
  onSubmit: (event: FormEvent<HTMLFormElement>) => void
} {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    setBusy(true)
    setError(undefined)
    run(new FormData(form))
      // What was typed into password fields does not stay in the document once it has been used.
      .then(() => form.reset())
      .catch((problem: Error) => setError(problem))
      .finally(() => setBusy(false))
  }
  return { busy, error, onSubmit }
}

export const PASSWORD_MIN = 12
export const PASSWORD_MAX = 128

/**
 * The token stands behind the `#`, which browsers do not send to servers; it leaves the address when it is used up.
 * Opening another link in the same tab changes nothing but the token.
 */
export function useToken(): string {
  return useSyncExternalStore(
    (changed) => {
      window.addEventListener('hashchange', changed)
      return () => window.removeEventListener('hashchange', changed)
    },
    () => new URLSearchParams(window.location.hash.slice(1)).get('token') ?? '',
  )
}
