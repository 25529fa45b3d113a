import { useState } from 'react'
import { api } from '../api.ts'
import { hasPasskeys, usePasskey } from '../extensions/directory/passkey.ts'
import { safeNext } from '../path.ts'
import { clearCache, useQuery } from '../query.ts'
import { Link, navigate, useLocation } from '../router.tsx'
import { useAction, useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Note } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import type { LoginStep, ProofWay, SignUp } from '../wire.ts'
import { ProofForm } from './second-factor.tsx'
import { SignedOutPage, useToken } from './signed-out.tsx'

const NEXT = 'login-next'

/** Where to go after the journey to a provider. */
function rememberNext(next: string): void {
  try {
    sessionStorage.setItem(NEXT, next)
  } catch {
    // Without storage the journey ends on the start page.
  }
}

export function goNext(next?: string): void {
  let kept: string | null = null
  try {
    kept = sessionStorage.getItem(NEXT)
    sessionStorage.removeItem(NEXT)
  } catch {
    // As above.
  }
  clearCache()
  navigate(next ?? safeNext(kept), { replace: true })
}

export function Login() {
  const { query } = useLocation()
  const token = useToken()
  const [needs, setNeeds] = useState<readonly ProofWay[]>([])
  const next = safeNext(query.get('next'))
  const took = (step: LoginStep) => (step.signedIn ? goNext(next) : setNeeds(step.needs))
  if (needs.length > 0) return <SecondFactorPage needs={needs} onDone={() => goNext(next)} />
  return (
    <SignedOutPage title="Sign in" foot={<a href="/docs">Documentation</a>}>
      {token ? <ByLink token={token} took={took} /> : <Ways next={next} took={took} />}
    </SignedOutPage>
  )
}

function Ways({ next, took }: { next: string; took: (step: LoginStep) => void }) {
  const setup = useQuery('setup', api.setupOpen)
  const options = useQuery('login', api.loginOptions)
  const signUp = useQuery('sign-up/public', api.signUp)
  const { busy, error, onSubmit } = useSubmit(async (form) =>
    took(await api.logIn({ email: String(form.get('email')), password: String(form.get('password')) })),
  )
  const passkey = useAction(async () => took(await api.loginPasskey(await usePasskey(await api.loginPasskeyOptions()))))
  const sso = useAction(async (_signal, provider: string) => {
    const { redirect } = await api.loginSso(provider)
    rememberNext(next)
    window.location.assign(redirect)
  })
  const providers = options.data?.providers ?? []
  const offersPasskeys = options.data?.passkeys === true && hasPasskeys()
  return (
    <>
      {setup.data?.open ? (
        <Note>
          Nobody has set up this gateway yet. Open the one-time link that it printed when it started: it creates the
          operator’s login.
        </Note>
      ) : null}
      {providers.map(({ id, name }) => (
        <Button key={id} busy={sso.busy} onClick={() => void sso.go(id)}>
          Continue with {name}
        </Button>
      ))}
      {sso.error ? <Fault error={sso.error} /> : null}
      {providers.length > 0 ? <p className="or">or</p> : null}
      <form onSubmit={onSubmit}>
        <TextField label="Email" name="email" type="email" autoComplete="username webauthn" required autoFocus />
        <TextField label="Password" name="password" type="password" autoComplete="current-password" required />
        {error ? <Fault error={error} /> : null}
        <Button type="submit" look="primary" busy={busy}>
          Sign in
        </Button>
      </form>
      {offersPasskeys ? (
        <Button icon="key" busy={passkey.busy} onClick={() => void passkey.go()}>
          Sign in with a passkey
        </Button>
      ) : null}
      {passkey.error ? <Fault error={passkey.error} /> : null}
      <SignInHelp signUp={signUp.data} byMail={setup.data?.passwordByMail === true} />
    </>
  )
}

/** A link of the operator's works once, so it is not used up by merely opening it. */
function ByLink({ token, took }: { token: string; took: (step: LoginStep) => void }) {
  const { busy, error, go } = useAction(async () => took(await api.loginLink(token)))
  return (
    <>
      <p>This link signs you in once.</p>
      {error ? <Fault error={error} /> : null}
      <Button look="primary" busy={busy} onClick={() => void go()}>
        Sign in
      </Button>
    </>
  )
}

export function SecondFactorPage({ needs, onDone }: { needs: readonly ProofWay[]; onDone: () => void }) {
  const done = async (step: Promise<LoginStep>) => {
    await step
    onDone()
  }
  return (
    <SignedOutPage title="Second factor" lead="Your login is protected by a second factor.">
      <ProofForm
        ways={needs}
        byCode={(code) => done(api.loginCode(code.replaceAll(' ', '')))}
        byPasskey={async () => done(api.loginPasskey(await usePasskey(await api.loginPasskeyOptions())))}
      />
    </SignedOutPage>
  )
}

/** What somebody can do who has no login, or forgot the password of it. */
function SignInHelp({ signUp, byMail }: { signUp: SignUp | undefined; byMail: boolean }) {
  const isOpen = signUp?.mode === 'open' || signUp?.mode === 'domain'
  return (
    <p className="small muted">
      {isOpen ? (
        <>
          No login yet? <Link to="/sign-up">Sign up</Link>.{' '}
        </>
      ) : (
        'No login yet? The owner of your account can send you an invitation link. '
      )}
      {byMail ? (
        <>
          Forgot your password? <Link to="/forgot">Get a mail</Link> with a link to choose a new one.
        </>
      ) : (
        'Forgot your password? The operator can make you a link to choose a new one.'
      )}
    </p>
  )
}
