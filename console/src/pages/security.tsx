// What a person signs in by: second factors, recovery codes, logins at providers.
import { useState } from 'react'
import { api } from '../api.ts'
import { createPasskey, hasPasskeys } from '../extensions/directory/passkey.ts'
import { refresh, useQuery } from '../query.ts'
import { useLocation } from '../router.tsx'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Confirm, FormDialog, Notice } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Ago, Badge, Card, Note } from '../ui/page.tsx'
import { Fault, Loaded } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { Security, TotpSecret } from '../wire.ts'

const KINDS = { passkey: 'Passkey', totp: 'Authenticator app' } as const

type Dialog =
  | { kind: 'passkey' }
  | { kind: 'totp'; secret: TotpSecret }
  | { kind: 'remove'; factor: Security['factors'][number] }
  | { kind: 'disconnect'; identity: Security['identities'][number] }
  | { kind: 'codes'; codes: readonly string[] }

export function SecurityCards() {
  const security = useQuery('security', api.security)
  return <Loaded query={security}>{(data) => <Cards security={data} />}</Loaded>
}

function Cards({ security }: { security: Security }) {
  const { query } = useLocation()
  const [dialog, setDialog] = useState<Dialog>()
  const close = () => setDialog(undefined)
  const added = (codes: readonly string[] | null) => {
    refresh('security', 'sessions', 'session')
    toast('Your second factor was added.')
    setDialog(codes ? { kind: 'codes', codes } : undefined)
  }
  return (
    <>
      <Factors security={security} isRequired={query.get('factor') === 'required'} open={setDialog} />
      <Identities security={security} open={setDialog} />
      {dialog?.kind === 'passkey' ? <NewPasskey onAdded={added} onClose={close} /> : null}
      {dialog?.kind === 'totp' ? <NewTotp secret={dialog.secret} onAdded={added} onClose={close} /> : null}
      {dialog?.kind === 'codes' ? <Codes codes={dialog.codes} onClose={close} /> : null}
      {dialog?.kind === 'remove' ? (
        <Confirm
          title="Remove this second factor?"
          action="Remove"
          danger
          run={async () => {
            await api.removeFactor(dialog.factor.id)
            refresh('security')
          }}
          onClose={close}
        >
          <p>
            <b>{dialog.factor.name}</b> no longer signs you in. If it is the last one, your recovery codes are deleted
            too.
          </p>
        </Confirm>
      ) : null}
      {dialog?.kind === 'disconnect' ? (
        <Confirm
          title="Disconnect this login?"
          action="Disconnect"
          danger
          run={async () => {
            await api.disconnectLogin(dialog.identity.id)
            refresh('security')
          }}
          onClose={close}
        >
          <p>
            You no longer sign in by <b>{dialog.identity.name}</b>.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

const LEAD = 'Asked for after your password, and again before sensitive actions.'
const NO_PASSKEYS = 'Passkeys need the console’s https address in PUBLIC_URL.'

function Factors({
  security,
  isRequired,
  open,
}: {
  security: Security
  isRequired: boolean
  open: (dialog: Dialog) => void
}) {
  const { factors, recoveryCodes } = security
  const totp = useAction(async () => open({ kind: 'totp', secret: await api.beginTotp() }))
  const renew = useAction(async () => {
    const { codes } = await api.renewRecoveryCodes()
    refresh('security')
    open({ kind: 'codes', codes: codes ?? [] })
  })
  const error = totp.error ?? renew.error
  return (
    <Card
      flush={factors.length > 0}
      title="Second factors"
      lead={security.passkeysPossible ? `${LEAD} A passkey also signs you in by itself.` : `${LEAD} ${NO_PASSKEYS}`}
      actions={
        <>
          {security.passkeysPossible && hasPasskeys() ? (
            <Button icon="key" onClick={() => open({ kind: 'passkey' })}>
              Add a passkey
            </Button>
          ) : null}
          {factors.some(({ kind }) => kind === 'totp') ? null : (
            <Button busy={totp.busy} onClick={() => void totp.go()}>
              Add an authenticator app
            </Button>
          )}
        </>
      }
    >
      {isRequired && factors.length === 0 ? (
        <Note tone="warn">Your role requires a second factor. Add one to continue.</Note>
      ) : null}
      {error ? <Fault error={error} /> : null}
      {factors.length === 0 ? (
        <p className="muted">
          None yet. {security.factorRequired ? <Badge tone="warn">required by your role</Badge> : null}
        </p>
      ) : (
        <>
          <Table
            label="Second factors"
            rows={factors}
            rowKey={(row) => row.id}
            columns={[
              { head: 'Name', main: true, cell: (row) => <b>{row.name}</b> },
              { head: 'Kind', cell: (row) => KINDS[row.kind] },
              { head: 'Added', cell: (row) => <Ago at={row.createdAt} /> },
              { head: 'Last used', cell: (row) => <Ago at={row.lastUsedAt} none="Never" /> },
              {
                head: 'Actions',
                cell: (row) => (
                  <Button small icon="trash" onClick={() => open({ kind: 'remove', factor: row })}>
                    Remove
                  </Button>
                ),
              },
            ]}
          />
          <div className="card-foot row">
            <span>
              {recoveryCodes} recovery {recoveryCodes === 1 ? 'code' : 'codes'} left.
            </span>
            <Button small busy={renew.busy} onClick={() => void renew.go()}>
              Make new codes
            </Button>
          </div>
        </>
      )}
    </Card>
  )
}

function NewPasskey({ onAdded, onClose }: { onAdded: (codes: readonly string[] | null) => void; onClose: () => void }) {
  return (
    <FormDialog
      title="Add a passkey"
      action="Continue"
      stay
      run={async (form) => {
        const response = await createPasskey(await api.newPasskeyOptions())
        onAdded((await api.addPasskey({ name: String(form.get('name')), response })).codes)
      }}
      onClose={onClose}
    >
      <p>Your browser will ask for your fingerprint, face, PIN or security key.</p>
      <TextField label="Name" name="name" required maxLength={60} placeholder="Laptop" hint="To tell it from others." />
    </FormDialog>
  )
}

function NewTotp({
  secret,
  onAdded,
  onClose,
}: {
  secret: TotpSecret
  onAdded: (codes: readonly string[] | null) => void
  onClose: () => void
}) {
  return (
    <FormDialog
      title="Add an authenticator app"
      action="Confirm"
      stay
      run={async (form) => onAdded((await api.confirmTotp(String(form.get('code')).replaceAll(' ', ''))).codes)}
      onClose={onClose}
    >
      <p>
        Open <a href={secret.uri}>this link</a> on the device with the app, or type the key into it. Then enter the code
        that it shows.
      </p>
      <Code label="Key" text={secret.secret} wrap />
      <TextField
        label="Code"
        name="code"
        inputMode="numeric"
        autoComplete="one-time-code"
        pattern="[0-9 ]{6,7}"
        required
        mono
      />
    </FormDialog>
  )
}

function Codes({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  return (
    <Notice title="Your recovery codes" done="I have saved them" once onClose={onClose}>
      <Note tone="warn">
        Each replaces your second factor once, for example when you lose your phone. They are shown this once; earlier
        ones no longer work.
      </Note>
      <Code label="Recovery codes" text={codes.join('\n')} />
    </Notice>
  )
}

function Identities({ security, open }: { security: Security; open: (dialog: Dialog) => void }) {
  const options = useQuery('login', api.loginOptions)
  const connect = useAction(async (_signal, provider: string) => {
    const { redirect } = await api.connectProvider(provider)
    window.location.assign(redirect)
  })
  const providers = options.data?.providers ?? []
  if (providers.length === 0 && security.identities.length === 0) return null
  return (
    <Card
      flush={security.identities.length > 0}
      title="Single sign-on"
      lead="Login providers that you use to sign in."
      actions={providers.map(({ id, name }) => (
        <Button key={id} busy={connect.busy} onClick={() => void connect.go(id)}>
          Connect {name}
        </Button>
      ))}
    >
      {connect.error ? <Fault error={connect.error} /> : null}
      {security.identities.length === 0 ? (
        <p className="muted">None connected.</p>
      ) : (
        <Table
          label="Single sign-on"
          rows={security.identities}
          rowKey={(row) => row.id}
          columns={[
            { head: 'Login provider', main: true, cell: (row) => <b>{row.name}</b> },
            { head: 'Email', cell: (row) => row.email ?? '–' },
            { head: 'Connected', cell: (row) => <Ago at={row.createdAt} /> },
            { head: 'Last used', cell: (row) => <Ago at={row.lastUsedAt} /> },
            {
              head: 'Actions',
              cell: (row) => (
                <Button small onClick={() => open({ kind: 'disconnect', identity: row })}>
                  Disconnect
                </Button>
              ),
            },
          ]}
        />
      )}
    </Card>
  )
}
