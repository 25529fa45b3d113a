// The frame of the pages for whoever is not signed in: sign in, set up, accept an invitation.
import { type FormEvent, type ReactNode, useEffect, useState, useSyncExternalStore } from 'react'
import { Logo } from '../ui/icon.tsx'

export function SignedOutPage({
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
    <main className="signed-out">
      <div className="signed-out-box">
        <div className="signed-out-brand">
          <Logo size={34} /> Tollgate
        </div>
        <div className="signed-out-card">
          <div>
            <h1>{title}</h1>
            {lead ? <p className="lead">{lead}</p> : null}
          </div>
          {children}
        </div>
        {foot ? <div className="signed-out-foot">{foot}</div> : null}
      </div>
    </main>
  )
}

/** One submission at a time, with its error. */
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
