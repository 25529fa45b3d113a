import { api } from '../api.ts'
import { clearCache } from '../query.ts'
import { Link, navigate } from '../router.tsx'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Note } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import { NewPassword, SignedOutPage, useToken } from './signed-out.tsx'

export function Setup() {
  const token = useToken()
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    const email = String(form.get('email'))
    const password = String(form.get('password'))
    if (password !== form.get('again')) throw new Error('again: The two passwords are not the same.')
    await api.setUp({ token, email, password })
    clearCache()
    toast('Welcome. You are the operator of this gateway.')
    navigate('/', { replace: true })
  })
  return (
    <SignedOutPage
      title="Set up Tollgate"
      lead="Create the operator’s login. The operator sees every account, the catalog and the vendors."
      foot={<Link to="/login">I already have a login</Link>}
    >
      {token ? (
        <form onSubmit={onSubmit}>
          <TextField label="Email" name="email" type="email" autoComplete="username" required autoFocus />
          <NewPassword hint="A few words in a row are easy to remember." />
          <TextField label="Password again" name="again" type="password" autoComplete="new-password" required />
          {error ? <Fault error={error} /> : null}
          <Button type="submit" look="primary" busy={busy}>
            Create the operator’s login
          </Button>
        </form>
      ) : (
        <Note tone="warn">
          This address is missing its one-time token. Open the whole link that the gateway printed when it started.
        </Note>
      )}
    </SignedOutPage>
  )
}
