import { useState } from 'react'
import { api } from '../../api.ts'
import { refresh, useList } from '../../query.ts'
import { useDialogInAddress } from '../../router.tsx'
import { useSession } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Ago, Badge, Page } from '../../ui/page.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Operator } from '../../wire.ts'
import { PassOn, PendingInvites } from '../pending-invites.tsx'

export function OperatorsPage() {
  const { user } = useSession()
  const operators = useList('operators', (_, signal) => api.operators(signal))
  const [inviting, setInviting] = useDialogInAddress('invite')
  const [leaving, setLeaving] = useState<Operator>()
  return (
    <Page
      title="Operators"
      lead="Those who run this gateway: they see every account, the catalog, the vendors and the audit."
      actions={
        <Button look="primary" icon="plus" onClick={() => setInviting(true)}>
          Invite an operator
        </Button>
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
          { head: 'Since', cell: (row) => <Ago at={row.createdAt} /> },
          { head: 'Last seen', cell: (row) => <Ago at={row.lastSeenAt} none="Never" /> },
          {
            head: 'Actions',
            cell: (row) =>
              row.userId === user.id ? null : (
                <Button small icon="trash" onClick={() => setLeaving(row)}>
                  Remove
                </Button>
              ),
          },
        ]}
      />
      <PendingInvites name="operator-invites" read={api.operatorInvites} withdraw={api.withdrawOperatorInvite} />
      {inviting ? <InviteOperator onClose={() => setInviting(false)} /> : null}
      {leaving ? (
        <Confirm
          title="Remove this operator?"
          action="Remove"
          danger
          run={async () => {
            await api.removeOperator(leaving.userId)
            toast(`${leaving.email} is no operator any more.`)
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
  const [link, setLink] = useState<string>()
  if (link)
    return (
      <PassOn label="Invitation link" link={link} onClose={onClose}>
        Whoever opens this link first becomes an operator. Send it only to <b>{email}</b>. It is shown once.
      </PassOn>
    )
  return (
    <FormDialog
      title="Invite an operator"
      action="Create link"
      run={async () => {
        setLink((await api.inviteOperator(email)).link)
        refresh('operator-invites')
      }}
      onClose={onClose}
      stay
    >
      <TextField label="Email" type="email" value={email} onText={setEmail} required />
    </FormDialog>
  )
}
