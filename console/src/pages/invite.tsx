import { useState } from 'react'
import { ApiError, api } from '../api.ts'
import { forgetAll, useQuery } from '../query.ts'
import { Link, navigate } from '../router.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Note } from '../ui/page.tsx'
import { Fault, Loaded } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import { Gate, PASSWORD_MAX, PASSWORD_MIN, tokenOfAddress, useSubmit } from './gate.tsx'

export function Invite() {
  const [token] = useState(tokenOfAddress)
  const invite = useQuery(token ? 'invite' : undefined, (signal) => api.invite(token, signal))
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    const password = String(form.get('password'))
    await api.acceptInvite(token, password)
    forgetAll()
    await api.session().catch(async (problem) => {
      if (problem instanceof ApiError && problem.status === 401 && invite.data)
        await api.logIn({ email: invite.data.email, password })
      else throw problem
    })
    toast('Welcome. You are a member now.')
    navigate('/', { replace: true })
  })
  return (
    <Gate title="Accept the invitation" foot={<Link to="/login">Sign in instead</Link>}>
      {token ? (
        <Loaded query={invite}>
          {(data) => (
            <>
              <p>
                You are invited to <b>{typeof data.account === 'string' ? data.account : data.account.name}</b> as{' '}
                {data.role === 'owner' ? 'an owner' : 'a member'}.
              </p>
              <form onSubmit={onSubmit}>
                <TextField label="Email" value={data.email} type="email" autoComplete="username" readOnly />
                <TextField
                  label="Password"
                  name="password"
                  type="password"
                  autoComplete="new-password"
                  minLength={PASSWORD_MIN}
                  maxLength={PASSWORD_MAX}
                  hint={`Choose one of at least ${PASSWORD_MIN} characters. If this email already has a login here, enter its password.`}
                  required
                  autoFocus
                />
                {error ? <Fault error={error} /> : null}
                <Button type="submit" look="primary" busy={busy}>
                  Accept and sign in
                </Button>
              </form>
            </>
          )}
        </Loaded>
      ) : (
        <Note tone="warn">This address is missing its token. Open the whole invitation link.</Note>
      )}
    </Gate>
  )
}
