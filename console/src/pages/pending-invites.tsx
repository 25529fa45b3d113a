// Pending invitations: anyone with the link may join until it expires or is withdrawn.
import type { ReactNode } from 'react'
import { refresh, useList } from '../query.ts'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Notice } from '../ui/dialog.tsx'
import { Ago, Note } from '../ui/page.tsx'
import { TableCard } from '../ui/table.tsx'
import { toast, toastError } from '../ui/toast.tsx'
import type { Page, PendingInvite } from '../wire.ts'
import { ROLE_NAMES } from './roles.tsx'

export function PendingInvites({
  name,
  read,
  withdraw,
}: {
  name: string
  read: (signal?: AbortSignal) => Promise<Page<PendingInvite>>
  withdraw: (id: string) => Promise<unknown>
}) {
  const list = useList(name, (_, signal) => read(signal))
  const drop = async ({ id, email }: PendingInvite) => {
    await withdraw(id)
    toast(`The link for ${email} does not work any more.`)
    refresh(name)
  }
  if (!list.error && !list.data?.length) return null
  return (
    <TableCard
      title="Pending invitations"
      lead="These links have not been used yet."
      label="Pending invitations"
      list={list}
      rowKey={(row) => row.id}
      columns={[
        { head: 'Email', main: true, cell: (row) => <b>{row.email}</b> },
        { head: 'Role', cell: ({ role }) => ROLE_NAMES[role] },
        { head: 'Made', cell: (row) => <Ago at={row.createdAt} /> },
        { head: 'Ends', cell: (row) => <Ago at={row.expiresAt} /> },
        {
          head: 'Actions',
          cell: (row) => (
            <Button small onClick={() => void drop(row).catch(toastError)}>
              Withdraw
            </Button>
          ),
        },
      ]}
    />
  )
}

/** A link that is shown once, for whoever it is meant for. */
export function PassOn(props: { label: string; link: string; children: ReactNode; onClose: () => void }) {
  return (
    <Notice title="Pass this link on" once onClose={props.onClose}>
      <Note tone="warn">{props.children}</Note>
      <Code label={props.label} text={new URL(props.link, window.location.origin).href} wrap />
    </Notice>
  )
}
