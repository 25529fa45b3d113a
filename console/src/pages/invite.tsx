import { api } from '../api.ts'
import { clearCache, useQuery } from '../query.ts'
import { Link, navigate } from '../router.tsx'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Note } from '../ui/page.tsx'
import { Fault, Loaded } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import { NewPassword, SignedOutPage, useToken } from './signed-out.tsx'

/** Where both kinds of links lead: to join an account, and to choose a new password. */
export function Invite() {
  const token = useToken()
  const invite = useQuery(token ? `invite/${token}` : undefined, (signal) => api.invite(token, signal))
  const renewing = invite.data?.kind === 'password'
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    await api.acceptInvite(token, String(form.get('password')))
    clearCache()
    toast(renewing ? 'Your password was changed.' : 'Welcome. You are a member now.')
    navigate('/', { replace: true })
  })
  return (
    <SignedOutPage
      title={renewing ? 'Choose a new password' : 'Accept the invitation'}
      foot={<Link to="/login">Sign in instead</Link>}
    >
      {token ? (
        <Loaded query={invite}>
          {(data) => (
            <>
              {renewing ? null : data.kind === 'operator' ? (
                <p>You are invited to run this gateway, as an operator.</p>
              ) : (
                <p>
                  You are invited to <b>{data.account}</b> as {data.role === 'owner' ? 'an owner' : 'a member'}.
                </p>
              )}
              <form onSubmit={onSubmit}>
                <TextField label="Email" value={data.email} type="email" autoComplete="username" readOnly />
                <NewPassword
                  autoFocus
                  hint={renewing ? '' : 'If this email already has a login here, enter its password.'}
                />
                {error ? <Fault error={error} /> : null}
                <Button type="submit" look="primary" busy={busy}>
                  {renewing ? 'Set the password and sign in' : 'Accept and sign in'}
                </Button>
              </form>
            </>
          )}
        </Loaded>
      ) : (
        <Note tone="warn">This address is missing its token. Open the whole link.</Note>
      )}
    </SignedOutPage>
  )
}
