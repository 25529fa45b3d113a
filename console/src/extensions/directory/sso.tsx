// Where a login provider sends the browser back to.
import { useEffect, useState } from 'react'
import { api } from '../../api.ts'
import { goNext, SecondFactorPage } from '../../pages/login.tsx'
import { SignedOutPage } from '../../pages/signed-out.tsx'
import { PROOF_CHANNEL } from '../../proof.tsx'
import { clearCache } from '../../query.ts'
import { BASE, Link, match, navigate, useLocation } from '../../router.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Fault, Skeleton } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { LoginStep, ProofWay, SsoStep } from '../../wire.ts'

/** Each answer of a provider is used once, also where the page is drawn twice. */
let finishing: { readonly query: string; readonly step: Promise<SsoStep> } | undefined

function finish(provider: string, query: string): Promise<SsoStep> {
  if (finishing?.query !== query) finishing = { query, step: api.finishSso({ provider, parameters: query }) }
  return finishing.step
}

export function Sso() {
  const { path } = useLocation()
  const provider = match('/sso/:provider', path)?.provider ?? ''
  const [step, setStep] = useState<SsoStep>()
  const [error, setError] = useState<Error>()
  useEffect(() => {
    const query = window.location.search.slice(1) || finishing?.query || ''
    // The code must not stay in the address, where a bookmark or a screen would keep it.
    window.history.replaceState(null, '', `${BASE}${path}`)
    finish(provider, query).then(setStep, setError)
  }, [provider, path])
  useEffect(() => {
    if (step?.result === 'signed-in' && step.signedIn) goNext()
    if (step?.result === 'connected') {
      clearCache()
      toast('The login is connected.')
      navigate('/profile', { replace: true })
    }
    if (step?.result === 'proved') new BroadcastChannel(PROOF_CHANNEL).postMessage('proved')
  }, [step])
  if (step && step.result === 'signed-in' && !step.signedIn)
    return <SecondFactorPage needs={step.needs} onDone={() => goNext()} />
  if (step?.result === 'password') return <Connect ways={step.needs} />
  return (
    <SignedOutPage title="Single sign-on" foot={<Link to="/login">Back to the sign-in page</Link>}>
      {error ? (
        <Fault error={error} />
      ) : step?.result === 'proved' ? (
        <p>Confirmed. Close this tab and go back to the one you came from.</p>
      ) : (
        <Skeleton lines={2} />
      )}
    </SignedOutPage>
  )
}

/**
 * Somebody has this email address here already: only who knows their password may connect the provider's login to them.
 */
function Connect({ ways }: { ways: readonly ProofWay[] }) {
  const asksCode = ways.some((way) => way !== 'password')
  const [needs, setNeeds] = useState<readonly ProofWay[]>([])
  const took = (step: LoginStep) => (step.signedIn ? goNext() : setNeeds(step.needs))
  const { busy, error, onSubmit } = useSubmit(async (form) =>
    took(
      await api.connectLogin({
        password: String(form.get('password')),
        ...(asksCode ? { code: String(form.get('code')).replaceAll(' ', '') } : {}),
      }),
    ),
  )
  if (needs.length > 0) return <SecondFactorPage needs={needs} onDone={() => goNext()} />
  return (
    <SignedOutPage
      title="Connect your login"
      lead="A login with your email address already exists. If it is yours, enter its password; from then on you sign in with your login provider."
      foot={<Link to="/login">Back to the sign-in page</Link>}
    >
      <form onSubmit={onSubmit}>
        <TextField
          label="Password"
          name="password"
          type="password"
          autoComplete="current-password"
          required
          autoFocus
        />
        {asksCode ? (
          <TextField label="Code of your authenticator app, or a recovery code" name="code" required mono />
        ) : null}
        {error ? <Fault error={error} /> : null}
        <Button type="submit" look="primary" busy={busy}>
          Connect and sign in
        </Button>
      </form>
    </SignedOutPage>
  )
}
