import { type FormEvent, useState } from 'react'
import { api } from '../api.ts'
import { refresh, useQuery } from '../query.ts'
import { useIsOperator, useSession } from '../session.tsx'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Confirm, Dialog, DialogBody, DialogFoot } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Menu } from '../ui/menu.tsx'
import { Ago, Badge, Card, Note, Page } from '../ui/page.tsx'
import { Empty, Fault, Loaded } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { Member, Role } from '../wire.ts'

export function MembersPage({ account }: { account: string }) {
  const [inviting, setInviting] = useState(false)
  const [secret, setSecret] = useState(false)
  return (
    <Page
      title="Members"
      lead="Members use the account: keys, playground, usage. Owners also manage members and webhooks."
      actions={
        <>
          <Button icon="key" onClick={() => setSecret(true)}>
            Webhook secret
          </Button>
          <Button look="primary" icon="plus" onClick={() => setInviting(true)}>
            Invite
          </Button>
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
  const operator = useIsOperator()
  const [forgetful, setForgetful] = useState<string>()
  const members = useQuery(`members/${account}`, (signal) => api.members(account, signal))
  const [leaving, setLeaving] = useState<Member>()
  return (
    <>
      <Card flush>
        <Loaded query={members}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty
                icon="members"
                title="No members yet"
                action={
                  <Button look="primary" icon="plus" onClick={() => onInviting(true)}>
                    Invite someone
                  </Button>
                }
              >
                <p>An invitation is a link that you pass on yourself; no email is sent.</p>
              </Empty>
            ) : (
              <Table
                label="Members"
                rows={items}
                rowKey={(member) => member.userId}
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
                    cell: (member) => (
                      <Badge tone={member.role === 'owner' ? 'busy' : 'calm'}>
                        {member.role === 'owner' ? 'Owner' : 'Member'}
                      </Badge>
                    ),
                  },
                  { head: 'Since', cell: (member) => <Ago at={member.createdAt} /> },
                  { head: 'Last seen', cell: (member) => <Ago at={member.lastSeenAt} none="Never" /> },
                  {
                    head: 'Actions',
                    cell: (member) => (
                      <Menu
                        label={`Actions for ${member.email}`}
                        items={[
                          ...(operator
                            ? [
                                {
                                  label: 'New password link',
                                  icon: 'key',
                                  run: () => setForgetful(member.email),
                                } as const,
                              ]
                            : []),
                          { label: 'Remove', icon: 'trash', danger: true, run: () => setLeaving(member) },
                        ]}
                      />
                    ),
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
      {forgetful ? <PasswordLink email={forgetful} onClose={() => setForgetful(undefined)} /> : null}
      {inviting ? <InviteForm account={account} onClose={() => onInviting(false)} /> : null}
      {leaving ? (
        <Confirm
          title="Remove this member?"
          action="Remove"
          danger
          run={async () => {
            await api.removeMember(account, leaving.userId)
            toast(`${leaving.email} is no longer a member.`)
            refresh(`members/${account}`)
          }}
          onClose={() => setLeaving(undefined)}
        >
          <p>
            <b>{leaving.email}</b> loses access to this account at once. Keys that this person made go on working.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

/** For whoever receives the account's webhooks; only owners are told. */
function WebhookSecret({ account, onClose }: { account: string; onClose: () => void }) {
  const query = useQuery(`webhook-secret/${account}`, (signal) => api.webhookSecret(account, signal))
  return (
    <Dialog title="Webhook secret" onClose={onClose}>
      <DialogBody>
        <Note tone="warn">
          Whoever knows it can send webhooks that look like ours. All webhooks are signed with it.
        </Note>
        <Loaded query={query}>{({ secret }) => <Code label="Webhook secret" text={secret} wrap />}</Loaded>
      </DialogBody>
      <DialogFoot>
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </DialogFoot>
    </Dialog>
  )
}

function InviteForm({ account, onClose }: { account: string; onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [link, setLink] = useState<string>()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      setLink((await api.inviteMember(account, { email, role })).link)
    } catch (problem) {
      setError(problem as Error)
    }
    setBusy(false)
  }
  if (link)
    return (
      <Dialog title="Pass this link on" onClose={onClose}>
        <DialogBody>
          <Note tone="warn">
            Whoever opens this link first joins as {role === 'owner' ? 'an owner' : 'a member'}. Send it only to{' '}
            <b>{email}</b>. It is shown once.
          </Note>
          <Code label="Invitation link" text={absolute(link)} wrap />
        </DialogBody>
        <DialogFoot>
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </DialogFoot>
      </Dialog>
    )
  return (
    <Dialog title="Invite someone" onClose={onClose}>
      <form onSubmit={submit}>
        <DialogBody>
          <TextField label="Email" type="email" value={email} onText={setEmail} required />
          <SelectField label="Role" value={role} onText={(text) => setRole(text as Role)}>
            <option value="member">Member: uses the account</option>
            <option value="owner">Owner: also manages members</option>
          </SelectField>
          {error ? <Fault error={error} /> : null}
        </DialogBody>
        <DialogFoot>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={busy}>
            Create link
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  )
}

/** The way back in for someone who forgot their password; only operators can make it. */
function PasswordLink({ email, onClose }: { email: string; onClose: () => void }) {
  const [link, setLink] = useState<string>()
  if (link === undefined)
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
  return (
    <Dialog title="Pass this link on" onClose={onClose}>
      <DialogBody>
        <Note tone="warn">
          Whoever opens this link can sign in as <b>{email}</b>. It is shown once.
        </Note>
        <Code label="Link for a new password" text={absolute(link)} wrap />
      </DialogBody>
      <DialogFoot>
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </DialogFoot>
    </Dialog>
  )
}

const absolute = (link: string) => new URL(link, window.location.origin).href
