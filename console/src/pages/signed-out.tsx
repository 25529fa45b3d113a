// The frame of the pages for whoever is not signed in: sign in, set up, accept an invitation.
import { type ReactNode, useSyncExternalStore } from 'react'
import { useBranding, useTitle } from '../branding.ts'
import { Brand, BrandLinks } from '../ui/brand.tsx'
import { TextField } from '../ui/field.tsx'

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
  useTitle(title)
  const branding = useBranding()
  return (
    <main className="signed-out">
      <div className="signed-out-box">
        <div className="signed-out-brand">
          <Brand size={34} />
        </div>
        <div className="signed-out-card">
          <div>
            <h1>{title}</h1>
            {lead ? <p className="lead">{lead}</p> : null}
          </div>
          {children}
        </div>
        {foot ? <div className="signed-out-foot">{foot}</div> : null}
        {branding && (branding.support || branding.links.length > 0) ? (
          <div className="signed-out-foot">
            <BrandLinks branding={branding} />
          </div>
        ) : null}
      </div>
    </main>
  )
}

const PASSWORD_MIN = 12
const PASSWORD_MAX = 128

export function NewPassword(props: { label?: string; name?: string; hint?: string; autoFocus?: boolean }) {
  return (
    <TextField
      label="Password"
      name="password"
      {...props}
      type="password"
      autoComplete="new-password"
      minLength={PASSWORD_MIN}
      maxLength={PASSWORD_MAX}
      hint={`At least ${PASSWORD_MIN} characters. ${props.hint ?? ''}`}
      required
    />
  )
}

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
