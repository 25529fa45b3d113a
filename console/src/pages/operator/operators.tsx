import { useState } from 'react'
import { api } from '../../api.ts'
import { refresh, useList } from '../../query.ts'
import { useDialogInAddress } from '../../router.tsx'
import { useMay, useSession } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Ago, Badge, Page } from '../../ui/page.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Operator, OperatorRole } from '../../wire.ts'
import { PassOn, PendingInvites } from '../pending-invites.tsx'
import { ChangeRole, ROLE_NAMES, RoleField, useOperatorRoles } from '../roles.tsx'

export function OperatorsPage() {
  const { user } = useSession()
  const operators = useList('operators', (_, signal) => api.operators(signal))
  const [inviting, setInviting] = useDialogInAddress('invite')
  const [leaving, setLeaving] = useState<Operator>()
  const [changing, setChanging] = useState<Operator>()
  const mayWrite = useMay()('operators:write')
  const roles = useOperatorRoles()
  return (
    <Page
      title="Operators"
      lead="The people who run this gateway, and their roles."
      actions={
        mayWrite ? (
          <Button look="primary" icon="plus" onClick={() => setInviting(true)}>
            Invite an operator
          </Button>
        ) : null
      }
    >
      <TableCard
        label="Operators"
        list={operators}
        rowKey={(row) => row.userId}
        columns={[
          {
            head: 'Email',
            main: true,
            cell: (row) => (
              <>
                <b>{row.email}</b> {row.userId === user.id ? <Badge>you</Badge> : null}
              </>
            ),
          },
          {
            head: 'Role',
            cell: ({ role }) => <Badge tone={role === 'operator' ? 'busy' : 'calm'}>{ROLE_NAMES[role]}</Badge>,
          },
          { head: 'Since', cell: (row) => <Ago at={row.createdAt} /> },
          { head: 'Last seen', cell: (row) => <Ago at={row.lastSeenAt} none="Never" /> },
          {
            head: 'Actions',
            cell: (row) =>
              row.userId === user.id || !mayWrite ? null : (
                <Menu
                  label={`Actions for ${row.email}`}
                  items={[
                    { label: 'Change role', icon: 'swap', run: () => setChanging(row) },
                    { label: 'Remove', icon: 'trash', danger: true, run: () => setLeaving(row) },
                  ]}
                />
              ),
          },
        ]}
      />
      <PendingInvites name="operator-invites" read={api.operatorInvites} withdraw={api.withdrawOperatorInvite} />
      {inviting ? <InviteOperator onClose={() => setInviting(false)} /> : null}
      {changing ? (
        <ChangeRole
          email={changing.email}
          role={changing.role}
          roles={roles}
          run={async (role) => {
            await api.changeOperator(changing.userId, role)
            toast(`${changing.email} has the role ${ROLE_NAMES[role]} now.`)
            refresh('operators')
          }}
          onClose={() => setChanging(undefined)}
        />
      ) : null}
      {leaving ? (
        <Confirm
          title="Remove this operator?"
          action="Remove"
          danger
          run={async () => {
            await api.removeOperator(leaving.userId)
            toast(`${leaving.email} is no longer an operator.`)
            refresh('operators')
          }}
          onClose={() => setLeaving(undefined)}
        >
          <p>
            <b>{leaving.email}</b> stays a member of the accounts that this person belongs to, and loses everything
            else.
          </p>
        </Confirm>
      ) : null}
    </Page>
  )
}

function InviteOperator({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<OperatorRole>('operator')
  const roles = useOperatorRoles()
  const [link, setLink] = useState<string>()
  if (link)
    return (
      <PassOn label="Invitation link" link={link} onClose={onClose}>
        The first person who opens this link gets the role {ROLE_NAMES[role]}. Send it only to <b>{email}</b>. It is
        shown once.
      </PassOn>
    )
  return (
    <FormDialog
      title="Invite an operator"
      action="Create link"
      run={async () => {
        setLink((await api.inviteOperator({ email, role })).link)
        refresh('operator-invites')
      }}
      onClose={onClose}
      stay
    >
      <TextField label="Email" type="email" value={email} onText={setEmail} required />
      <RoleField value={role} roles={roles} onRole={setRole} />
    </FormDialog>
  )
}
