import { useState } from 'react'
import { api } from '../api.ts'
import { DomainsCard } from '../extensions/directory/domains.tsx'
import { refresh, useList } from '../query.ts'
import { useDialogInAddress } from '../router.tsx'
import { useMay, useSession } from '../session.tsx'
import { Button } from '../ui/button.tsx'
import { Confirm, FormDialog } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Menu, type MenuItem } from '../ui/menu.tsx'
import { Ago, Badge, Page } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { AccountRole, Ended, Member } from '../wire.ts'
import { PassOn, PendingInvites } from './pending-invites.tsx'
import { ChangeRole, ROLE_NAMES, RoleField, useAccountRoles } from './roles.tsx'

export function MembersPage({ account }: { account: string }) {
  const [inviting, setInviting] = useDialogInAddress('invite')
  const may = useMay()
  return (
    <Page
      title="Members"
      lead="The people of this account, and what their roles let them do."
      actions={
        may('members:write', account) ? (
          <Button look="primary" icon="plus" onClick={() => setInviting(true)}>
            Invite
          </Button>
        ) : null
      }
    >
      <MembersPanel account={account} inviting={inviting} onInviting={setInviting} />
      {may('scim:read', account) ? <DomainsCard account={account} /> : null}
    </Page>
  )
}

export function MembersPanel({
  account,
  inviting,
  onInviting,
}: {
  account: string
  inviting: boolean
  onInviting: (on: boolean) => void
}) {
  const { user } = useSession()
  const may = useMay()
  const operator = may('password-links:write')
  const mayWrite = may('members:write', account)
  const roles = useAccountRoles(account)
  const [changing, setChanging] = useState<Member>()
  const [forgetful, setForgetful] = useState<string>()
  const members = useList(`members/${account}`, (_, signal) => api.members(account, signal))
  const [leaving, setLeaving] = useState<Member>()
  const actions = (member: Member): MenuItem[] => [
    ...(operator ? [{ label: 'New password link', icon: 'key', run: () => setForgetful(member.email) } as const] : []),
    ...(roles.includes(member.role) && mayWrite
      ? [
          { label: 'Change role', icon: 'swap', run: () => setChanging(member) } as const,
          { label: 'Remove', icon: 'trash', danger: true, run: () => setLeaving(member) } as const,
        ]
      : []),
  ]
  return (
    <>
      <TableCard
        label="Members"
        list={members}
        rowKey={(member) => member.userId}
        empty={<NoMembers onInvite={() => onInviting(true)} />}
        columns={[
          {
            head: 'Email',
            main: true,
            cell: (member) => (
              <>
                <b>{member.email}</b> {member.userId === user.id ? <Badge>you</Badge> : null}
              </>
            ),
          },
          {
            head: 'Role',
            cell: ({ role }) => <Badge tone={role === 'owner' ? 'busy' : 'calm'}>{ROLE_NAMES[role]}</Badge>,
          },
          { head: 'Since', cell: (member) => <Ago at={member.createdAt} /> },
          { head: 'Last seen', cell: (member) => <Ago at={member.lastSeenAt} none="Never" /> },
          { head: 'Actions', cell: (member) => <MemberMenu email={member.email} items={actions(member)} /> },
        ]}
      />
      <PendingInvites
        name={`invites/${account}`}
        read={(signal) => api.invites(account, signal)}
        withdraw={(id) => api.withdrawInvite(account, id)}
      />
      {forgetful ? <PasswordLink email={forgetful} onClose={() => setForgetful(undefined)} /> : null}
      {changing ? (
        <ChangeRole
          email={changing.email}
          role={changing.role}
          roles={roles}
          run={(role) => changeRole(account, changing, role)}
          onClose={() => setChanging(undefined)}
        />
      ) : null}
      {inviting ? <InviteForm account={account} onClose={() => onInviting(false)} /> : null}
      {leaving ? (
        <RemoveMember
          account={account}
          member={leaving}
          members={members.data ?? []}
          onClose={() => setLeaving(undefined)}
        />
      ) : null}
    </>
  )
}

/** "2 keys and 1 token ended." Empty: nothing did. */
function endedText({ keys, handedOver, programs, tokens }: Ended): string {
  const counted = (count: number, noun: string) => (count > 0 ? [`${count} ${noun}${count === 1 ? '' : 's'}`] : [])
  const ended = [...counted(keys, 'key'), ...counted(programs, 'connected program'), ...counted(tokens, 'token')]
  return [
    ...(ended.length > 0 ? [` Ended: ${ended.join(', ')}.`] : []),
    ...(handedOver > 0 ? [` Handed over: ${counted(handedOver, 'key').join('')}.`] : []),
  ].join('')
}

function RemoveMember({
  account,
  member,
  members,
  onClose,
}: {
  account: string
  member: Member
  members: readonly Member[]
  onClose: () => void
}) {
  const [keysTo, setKeysTo] = useState('')
  const others = members.filter(({ userId }) => userId !== member.userId)
  return (
    <Confirm
      title="Remove this member?"
      action="Remove"
      danger
      run={async () => {
        const { ended } = await api.removeMember(account, member.userId, keysTo)
        toast(`${member.email} is no longer a member.${endedText(ended)}`)
        refresh(`members/${account}`)
      }}
      onClose={onClose}
    >
      <p>
        <b>{member.email}</b> loses access to this account at once. Their tokens and connected programs end, and so do
        their keys and the keys without a member that they made.
      </p>
      <SelectField
        label="Keys"
        value={keysTo}
        onText={setKeysTo}
        options={[['', 'End them'], ...others.map(({ userId, email }) => [userId, `Hand over to ${email}`] as const)]}
        hint={keysTo ? 'This person still knows the values of the keys. Rotate them soon.' : undefined}
      />
    </Confirm>
  )
}

function MemberMenu({ email, items }: { email: string; items: MenuItem[] }) {
  return items.length > 0 ? <Menu label={`Actions for ${email}`} items={items} /> : null
}

function NoMembers({ onInvite }: { onInvite: () => void }) {
  return (
    <Empty
      icon="members"
      title="No members yet"
      action={
        <Button look="primary" icon="plus" onClick={onInvite}>
          Invite someone
        </Button>
      }
    >
      <p>You get a link to share; we do not send an email.</p>
    </Empty>
  )
}

async function changeRole(account: string, member: Member, role: AccountRole): Promise<void> {
  const { ended } = await api.changeRole(account, member.userId, role)
  toast(`${member.email} has the role ${ROLE_NAMES[role]} now.${ended ? endedText(ended) : ''}`)
  refresh(`members/${account}`, 'session')
}

function InviteForm({ account, onClose }: { account: string; onClose: () => void }) {
  const [email, setEmail] = useState('')
  const roles = useAccountRoles(account)
  const [role, setRole] = useState<AccountRole>('member')
  const [link, setLink] = useState<string>()
  if (link)
    return (
      <PassOn label="Invitation link" link={link} onClose={onClose}>
        The first person who opens this link joins with the role {ROLE_NAMES[role]}. Send it only to <b>{email}</b>. It
        is shown once.
      </PassOn>
    )
  return (
    <FormDialog
      title="Invite someone"
      action="Invite"
      run={async () => {
        const made = await api.inviteMember(account, { email, role })
        refresh(`invites/${account}`)
        if (made.link !== null) return setLink(made.link)
        toast(`The invitation was sent to ${email}.`)
        onClose()
      }}
      onClose={onClose}
      stay
    >
      <TextField label="Email" type="email" value={email} onText={setEmail} required />
      <RoleField value={role} roles={roles} onRole={setRole} />
    </FormDialog>
  )
}

/** The way back in for someone who forgot their password; only operators can make it. */
function PasswordLink({ email, onClose }: { email: string; onClose: () => void }) {
  const [link, setLink] = useState<string>()
  if (link)
    return (
      <PassOn label="Link for a new password" link={link} onClose={onClose}>
        Anyone who opens this link can sign in as <b>{email}</b>. It is shown once.
      </PassOn>
    )
  return (
    <Confirm
      title="Create a link for a new password?"
      action="Create link"
      run={async () => setLink((await api.passwordLink(email)).link)}
      onClose={onClose}
      stay
    >
      <p>
        With it, <b>{email}</b> chooses a new password. It works once, for a day.
      </p>
    </Confirm>
  )
}
