import { useState } from 'react'
import { api } from '../api.ts'
import { refresh, useList, useQuery } from '../query.ts'
import { useDialogInAddress } from '../router.tsx'
import { useMay, useSession } from '../session.tsx'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Confirm, FormDialog, Notice } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Menu, type MenuItem } from '../ui/menu.tsx'
import { Ago, Badge, Note, Page } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { AccountRole, Member } from '../wire.ts'
import { PassOn, PendingInvites } from './pending-invites.tsx'
import { ChangeRole, ROLE_NAMES, RoleField, useAccountRoles } from './roles.tsx'

export function MembersPage({ account }: { account: string }) {
  const [inviting, setInviting] = useDialogInAddress('invite')
  const [secret, setSecret] = useState(false)
  const may = useMay()
  return (
    <Page
      title="Members"
      lead="The people of this account, and what their roles let them do."
      actions={
        <>
          {may('webhook-secret:read', account) ? (
            <Button icon="key" onClick={() => setSecret(true)}>
              Webhook secret
            </Button>
          ) : null}
          {may('members:write', account) ? (
            <Button look="primary" icon="plus" onClick={() => setInviting(true)}>
              Invite
            </Button>
          ) : null}
        </>
      }
    >
      <MembersPanel account={account} inviting={inviting} onInviting={setInviting} />
      {secret ? <WebhookSecret account={account} onClose={() => setSecret(false)} /> : null}
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
          {
            head: 'Actions',
            cell: (member) => <MemberMenu email={member.email} items={actions(member)} />,
          },
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
      {leaving ? <RemoveMember account={account} member={leaving} onClose={() => setLeaving(undefined)} /> : null}
    </>
  )
}

function RemoveMember({ account, member, onClose }: { account: string; member: Member; onClose: () => void }) {
  return (
    <Confirm
      title="Remove this member?"
      action="Remove"
      danger
      run={async () => {
        await api.removeMember(account, member.userId)
        toast(`${member.email} is no longer a member.`)
        refresh(`members/${account}`)
      }}
      onClose={onClose}
    >
      <p>
        <b>{member.email}</b> loses access to this account at once. Keys that this person made go on working; their
        tokens do not.
      </p>
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
      <p>An invitation is a link that you pass on yourself; no email is sent.</p>
    </Empty>
  )
}

async function changeRole(account: string, member: Member, role: AccountRole): Promise<void> {
  await api.changeRole(account, member.userId, role)
  toast(`${member.email} has the role ${ROLE_NAMES[role]} now.`)
  refresh(`members/${account}`, 'session')
}

/** For whoever receives the account's webhooks; only owners and admins are told. */
function WebhookSecret({ account, onClose }: { account: string; onClose: () => void }) {
  const query = useQuery(`webhook-secret/${account}`, (signal) => api.webhookSecret(account, signal))
  return (
    <Notice title="Webhook secret" onClose={onClose}>
      <Note tone="warn">
        All webhooks are signed with it. Anyone who knows it can send webhooks that look like ours.
      </Note>
      <Loaded query={query}>{({ secret }) => <Code label="Webhook secret" text={secret} wrap />}</Loaded>
    </Notice>
  )
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
      action="Create link"
      run={async () => {
        setLink((await api.inviteMember(account, { email, role })).link)
        refresh(`invites/${account}`)
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
      title="Make a link for a new password?"
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
