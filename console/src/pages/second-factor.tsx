// Asks for one of the things that prove who somebody is: after the password, and again before a sensitive act.
import { type ReactNode, useState } from 'react'
import { hasPasskeys } from '../extensions/directory/passkey.ts'
import { useAction, useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Fault } from '../ui/state.tsx'
import type { ProofWay } from '../wire.ts'

export function ProofForm({
  ways,
  byCode,
  byPasskey,
  byPassword,
  foot,
}: {
  ways: readonly ProofWay[]
  byCode: (code: string) => Promise<unknown>
  byPasskey: () => Promise<unknown>
  byPassword?: (password: string) => Promise<unknown>
  foot?: ReactNode
}) {
  const [recovering, setRecovering] = useState(!ways.includes('totp'))
  const passkey = useAction(() => byPasskey())
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    if (byPassword && ways.includes('password')) await byPassword(String(form.get('password')))
    else await byCode(String(form.get('code')).trim())
  })
  const offersPasskey = ways.includes('passkey') && hasPasskeys()
  const offersCodes = ways.includes('totp') || ways.includes('recovery')
  return (
    <>
      {offersPasskey ? (
        <Button look="primary" icon="key" busy={passkey.busy} onClick={() => void passkey.go()} data-first>
          Use a passkey
        </Button>
      ) : null}
      {passkey.error ? <Fault error={passkey.error} /> : null}
      {offersCodes || (byPassword && ways.includes('password')) ? (
        <form onSubmit={onSubmit} className="stack">
          {byPassword && ways.includes('password') ? (
            <TextField label="Password" name="password" type="password" autoComplete="current-password" required />
          ) : recovering ? (
            <TextField key="recovery" label="Recovery code" name="code" required mono hint="Each code works once." />
          ) : (
            <TextField
              key="code"
              label="Code of your authenticator app"
              name="code"
              inputMode="numeric"
              autoComplete="one-time-code"
              pattern="[0-9 ]{6,7}"
              required
              mono
              autoFocus={!offersPasskey}
            />
          )}
          {error ? <Fault error={error} /> : null}
          <Button type="submit" look={offersPasskey ? 'plain' : 'primary'} busy={busy}>
            Confirm
          </Button>
          {ways.includes('totp') && ways.includes('recovery') ? (
            <Button look="ghost" onClick={() => setRecovering(!recovering)}>
              {recovering ? 'Use the authenticator app' : 'Use a recovery code instead'}
            </Button>
          ) : null}
        </form>
      ) : null}
      {foot}
    </>
  )
}
