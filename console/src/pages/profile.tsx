import { useState } from 'react'
import { api } from '../api.ts'
import { clearCache, refresh, useList, useQuery } from '../query.ts'
import { signOut, useSession } from '../session.tsx'
import { setTheme, type Theme, useTheme } from '../theme.ts'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { Checkbox, Segments, TextField } from '../ui/field.tsx'
import { Ago, Badge, Card, Page } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import { toast, toastError } from '../ui/toast.tsx'
import type { SessionRow } from '../wire.ts'
import { SecurityCards } from './security.tsx'
import { NewPassword } from './signed-out.tsx'

export function ProfilePage() {
  const { user, extensions } = useSession()
  const theme = useTheme()
  return (
    <Page
      title="Profile"
      lead={user.email}
      actions={
        <Button icon="leave" onClick={() => void signOut()}>
          Sign out
        </Button>
      }
    >
      <Card title="Appearance">
        <div>
          <Segments<Theme>
            label="Theme"
            value={theme}
            options={[
              { value: 'auto', label: 'System' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
            ]}
            onPick={setTheme}
          />
        </div>
      </Card>
      <SecurityCards />
      <Sessions />
      <Password />
      {extensions.includes('sales') ? <DeleteLogin /> : null}
    </Page>
  )
}

const METHODS: Readonly<Record<SessionRow['method'], string>> = {
  password: 'Password',
  passkey: 'Passkey',
  sso: 'Single sign-on',
  link: 'Login link',
}

function Sessions() {
  const sessions = useList('sessions', (_, signal) => api.sessions(signal))
  const end = async (row: SessionRow) => {
    try {
      await api.endSession(row.id)
      toast('The session has ended.')
      refresh('sessions')
    } catch (error) {
      toastError(error)
    }
  }
  return (
    <TableCard
      title="Sessions"
      lead="Where you are signed in. End what you do not recognize, then change your password."
      label="Sessions"
      list={sessions}
      rowKey={(row) => row.id}
      columns={[
        {
          head: 'Browser',
          main: true,
          cell: (row) => (
            <>
              {browserName(row.userAgent)} {row.current ? <Badge tone="good">this one</Badge> : null}
            </>
          ),
        },
        { head: 'Address', cell: (row) => <code>{row.ip}</code> },
        {
          head: 'Signed in by',
          cell: (row) => METHODS[row.method] + (row.secondFactor && row.method !== 'passkey' ? ', second factor' : ''),
        },
        { head: 'Signed in', cell: (row) => <Ago at={row.createdAt} /> },
        { head: 'Last seen', cell: (row) => <Ago at={row.lastSeenAt} /> },
        {
          head: 'Actions',
          cell: (row) =>
            row.current ? null : (
              <Button small onClick={() => void end(row)}>
                End
              </Button>
            ),
        },
      ]}
    />
  )
}

function Password() {
  const security = useQuery('security', api.security)
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    if (form.get('next') !== form.get('again')) throw new Error('again: The two new passwords are not the same.')
    await api.changePassword({ current: String(form.get('current')), next: String(form.get('next')) })
    toast('Your password was changed. Other sessions were ended.')
    refresh('sessions')
  })
  // Whoever comes by single sign-on has none.
  if (security.data?.hasPassword === false) return null
  return (
    <Card title="Password">
      <form onSubmit={onSubmit} className="stack">
        <div className="grid-3">
          <TextField label="Current password" name="current" type="password" autoComplete="current-password" required />
          <NewPassword label="New password" name="next" />
          <TextField label="New password again" name="again" type="password" autoComplete="new-password" required />
        </div>
        {error ? <Fault error={error} /> : null}
        <div>
          <Button type="submit" busy={busy}>
            Change password
          </Button>
        </div>
      </form>
    </Card>
  )
}

/** It cannot be taken back, so the address is typed. The server asks for a fresh proof besides. */
function DeleteLogin() {
  const [isAsking, setAsking] = useState(false)
  const [forfeit, setForfeit] = useState(false)
  const [email, setEmail] = useState('')
  return (
    <Card
      title="Delete my login"
      lead="Your address, password, sessions and memberships are deleted, and your keys, tokens and connected programs end. Accounts that only you belong to are closed and their keys end. Records of money are kept."
    >
      <div>
        <Button look="danger" onClick={() => setAsking(true)}>
          Delete my login
        </Button>
      </div>
      {isAsking ? (
        <FormDialog
          title="Delete your login?"
          action="Delete for good"
          look="danger"
          run={async () => {
            await api.deleteMe({ email, forfeit })
            clearCache()
            window.location.assign('/console/login')
          }}
          onClose={() => setAsking(false)}
          stay
        >
          <TextField label="Your email address" type="email" value={email} onText={setEmail} required />
          <Checkbox
            label="Credits that are left on my accounts are lost to me."
            checked={forfeit}
            onCheck={setForfeit}
          />
        </FormDialog>
      ) : null}
    </Card>
  )
}

/** Enough to tell one's own browsers apart; anything else is shown as it came. */
function browserName(agent: string): string {
  if (!agent) return 'Unknown browser'
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\/(\d+)/.exec(agent)
  const system = /(Windows|Macintosh|Android|iPhone|iPad|Linux)/.exec(agent)
  if (!browser) return agent.slice(0, 60)
  const names: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', Macintosh: 'Mac' }
  const name = browser[1] ?? ''
  const on = system?.[1] ?? ''
  return `${names[name] ?? name} ${browser[2]}${on ? ` on ${names[on] ?? on}` : ''}`
}
