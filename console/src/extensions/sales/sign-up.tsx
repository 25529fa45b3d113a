// Signing up: an address, then behind the link of the mail a password and the account.
import { useState } from 'react'
import { api } from '../../api.ts'
import { useBranding } from '../../branding.ts'
import { MailForm } from '../../pages/forgot.tsx'
import { NewPassword, SignedOutPage, useToken } from '../../pages/signed-out.tsx'
import { clearCache, useQuery } from '../../query.ts'
import { Link, navigate } from '../../router.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { SignUp, SignUpLink } from '../../wire.ts'

const toLogin = <Link to="/login">I already have a login</Link>

export function SignUpPage() {
  const token = useToken()
  return token ? <Finish key={token} token={token} /> : <Begin />
}

function Begin() {
  const signUp = useQuery('sign-up/public', api.signUp)
  const name = useBranding()?.name
  return (
    <SignedOutPage
      title="Create your account"
      lead={name ? `At ${name}, with a balance and keys of your own.` : undefined}
      foot={toLogin}
    >
      <Loaded query={signUp}>{(data) => <BeginForm signUp={data} />}</Loaded>
    </SignedOutPage>
  )
}

function BeginForm({ signUp: { mode, domains } }: { signUp: SignUp }) {
  if (mode === 'off' || mode === 'invitation')
    return <Note>Nobody can sign up here by themselves. Ask for an invitation; its link leads here.</Note>
  const hint = mode === 'domain' ? `An address at ${domains.join(', ')}.` : undefined
  return <MailForm action="Send me a link" hint={hint} send={api.askSignUp} />
}

function Finish({ token }: { token: string }) {
  const link = useQuery(`sign-up/${token}`, (signal) => api.signUpLink(token, signal))
  return (
    <SignedOutPage title="Create your account" foot={toLogin}>
      <Loaded query={link}>{(data) => <FinishForm token={token} link={data} />}</Loaded>
    </SignedOutPage>
  )
}

function FinishForm({ token, link: { email, terms } }: { token: string; link: SignUpLink }) {
  const [isAccepted, setAccepted] = useState(false)
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    const name = String(form.get('account')).trim()
    await api.finishSignUp(token, {
      password: String(form.get('password')),
      ...(name ? { name } : {}),
      ...(terms ? { terms: terms.version } : {}),
    })
    clearCache()
    toast('Welcome. This is your account.')
    navigate('/', { replace: true })
  })
  return (
    <form onSubmit={onSubmit}>
      <TextField label="Email" value={email} type="email" autoComplete="username" readOnly />
      <NewPassword autoFocus hint="A few words in a row are easy to remember." />
      <TextField
        label="Account name"
        name="account"
        autoComplete="organization"
        maxLength={100}
        placeholder={email}
        hint="Your company or project. You can leave it empty."
      />
      {terms ? (
        <Checkbox
          label={
            <>
              I accept the{' '}
              <a href={terms.url} target="_blank" rel="noreferrer">
                terms
              </a>{' '}
              (version {terms.version}).
            </>
          }
          checked={isAccepted}
          onCheck={setAccepted}
          required
        />
      ) : null}
      {error ? <Fault error={error} /> : null}
      <Button type="submit" look="primary" busy={busy}>
        Create the account
      </Button>
    </form>
  )
}
