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
  const session = useQuery(token ? 'session' : undefined, (signal) => api.session(signal))
  const isOwn = !renewing && invite.data !== undefined && session.data?.user.email === invite.data.email
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    if (isOwn) await api.joinByInvite(token)
    else await api.acceptInvite(token, String(form.get('password')), form.get('endOthers') !== null)
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
                <p>
                  You are invited to run this gateway, with the role <b>{data.role}</b>.
                </p>
              ) : (
                <p>
                  You are invited to <b>{data.account}</b>, with the role <b>{data.role}</b>.
                </p>
              )}
              <form onSubmit={onSubmit}>
                <TextField label="Email" value={data.email} type="email" autoComplete="username" readOnly />
                {isOwn ? (
                  <p className="muted">You are signed in with this address.</p>
                ) : (
                  <NewPassword
                    autoFocus
                    hint={renewing ? '' : 'If this email already has a login here, enter its password.'}
                  />
                )}
                {data.others.length > 0 ? (
                  <>
                    <p>You can also sign in by: {data.others.join(', ')}.</p>
                    <label className="checkbox">
                      <input type="checkbox" name="endOthers" /> End logins at other providers and connected programs.
                      Second factors stay; change them on your profile page.
                    </label>
                  </>
                ) : null}
                {error ? <Fault error={error} /> : null}
                <Button type="submit" look="primary" busy={busy}>
                  {renewing ? 'Set the password and sign in' : isOwn ? 'Accept' : 'Accept and sign in'}
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
