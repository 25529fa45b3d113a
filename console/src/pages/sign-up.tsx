// Signing up: an address, then behind the link of the mail a password and the account. Also the mail for a forgotten password.
import { useState } from 'react'
import { api } from '../api.ts'
import { useBranding } from '../branding.ts'
import { clearCache, useQuery } from '../query.ts'
import { Link, navigate } from '../router.tsx'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Note } from '../ui/page.tsx'
import { Fault, Loaded } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import type { SignUp, SignUpLink } from '../wire.ts'
import { NewPassword, SignedOutPage, useToken } from './signed-out.tsx'

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

export function ForgotPage() {
  return (
    <SignedOutPage
      title="Choose a new password"
      lead="You get a mail with a link. Your old password works until you choose a new one."
      foot={<Link to="/login">Back to sign in</Link>}
    >
      <MailForm action="Send me a link" send={api.askPassword} />
    </SignedOutPage>
  )
}

/** Says the same whoever the address belongs to. */
function MailForm(props: { action: string; hint?: string | undefined; send: (email: string) => Promise<unknown> }) {
  const [sentTo, setSentTo] = useState<string>()
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    const email = String(form.get('email')).trim()
    await props.send(email)
    setSentTo(email)
  })
  if (sentTo !== undefined)
    return (
      <div role="status" className="stack">
        <Note>
          If <b>{sentTo}</b> can be used here, a mail is on its way. Open the link in it, in any browser. It may take a
          minute; look into the spam folder too.
        </Note>
        <div>
          <Button onClick={() => setSentTo(undefined)}>Use another address</Button>
        </div>
      </div>
    )
  return (
    <form onSubmit={onSubmit}>
      <TextField label="Email" name="email" type="email" autoComplete="username" hint={props.hint} required autoFocus />
      {error ? <Fault error={error} /> : null}
      <Button type="submit" look="primary" busy={busy}>
        {props.action}
      </Button>
    </form>
  )
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
