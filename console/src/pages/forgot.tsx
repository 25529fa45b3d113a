// The mail for a forgotten password, and the form that asks for a mail with a link.
import { useState } from 'react'
import { api } from '../api.ts'
import { Link } from '../router.tsx'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Note } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { SignedOutPage } from './signed-out.tsx'

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
export function MailForm(props: {
  action: string
  hint?: string | undefined
  send: (email: string) => Promise<unknown>
}) {
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
