import { api } from '../api.ts'
import { safeNext } from '../path.ts'
import { clearCache, useQuery } from '../query.ts'
import { navigate, useLocation } from '../router.tsx'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Note } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { SignedOutPage } from './signed-out.tsx'

export function Login() {
  const { query } = useLocation()
  const setup = useQuery('setup', api.setupOpen)
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    await api.logIn({ email: String(form.get('email')), password: String(form.get('password')) })
    clearCache()
    navigate(safeNext(query.get('next')), { replace: true })
  })
  return (
    <SignedOutPage title="Sign in" foot={<a href="/docs">Documentation</a>}>
      {setup.data?.open ? (
        <Note>
          Nobody has set up this gateway yet. Open the one-time link that it printed when it started: it creates the
          operator’s login.
        </Note>
      ) : null}
      <form onSubmit={onSubmit}>
        <TextField label="Email" name="email" type="email" autoComplete="username" required autoFocus />
        <TextField label="Password" name="password" type="password" autoComplete="current-password" required />
        {error ? <Fault error={error} /> : null}
        <Button type="submit" look="primary" busy={busy}>
          Sign in
        </Button>
      </form>
      <p className="small muted">
        No login yet? The owner of your account can send you an invitation link. Forgot your password? The operator can
        make you a link to choose a new one.
      </p>
    </SignedOutPage>
  )
}
