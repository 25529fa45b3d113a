// Teams of an account and their projects: who is in them, and how many keys. All use the account's balance; budgets say
// how much of it.
import { useState } from 'react'
import { api } from '../api.ts'
import { formatWhole } from '../format.ts'
import { refresh, useList, useQuery } from '../query.ts'
import { useDialogInAddress } from '../router.tsx'
import { useMay } from '../session.tsx'
import { Button } from '../ui/button.tsx'
import { Confirm, FormDialog } from '../ui/dialog.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Menu, type MenuItem } from '../ui/menu.tsx'
import { Badge, Page, ShortId } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { Team } from '../wire.ts'

export function TeamsPage({ account }: { account: string }) {
  const may = useMay()('teams:write', account)
  const [making, setMaking] = useDialogInAddress('create')
  const [into, setInto] = useState<Team>()
  const [naming, setNaming] = useState<Team>()
  const [staffing, setStaffing] = useState<Team>()
  const [removing, setRemoving] = useState<Team>()
  const teams = useList(`teams/${account}`, (_, signal) => api.teams(account, signal))
  const newOne = (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New team
    </Button>
  )
  const actions = (team: Team): MenuItem[] => [
    ...(team.parentId === null ? [{ label: 'New project', icon: 'plus', run: () => setInto(team) } as const] : []),
    { label: 'Members', icon: 'members', run: () => setStaffing(team) },
    { label: 'Rename', icon: 'edit', run: () => setNaming(team) },
    { label: 'Remove', icon: 'trash', danger: true, run: () => setRemoving(team) },
  ]
  return (
    <Page
      title="Teams"
      lead="Teams and projects share the account’s balance. Keys belong to one, and budgets say how much each may use."
      actions={may ? newOne : null}
    >
      <TableCard
        label="Teams"
        list={teams}
        rowKey={({ id }) => id}
        empty={
          <Empty icon="members" title="No teams yet" action={may ? newOne : null}>
            <p>A team has projects, members and keys. Reports show what each spent.</p>
          </Empty>
        }
        columns={[
          {
            head: 'Name',
            main: true,
            cell: (row) =>
              row.parentId === null ? (
                <b>{row.name}</b>
              ) : (
                <>
                  <span className="muted">└ </span>
                  {row.name} <Badge>project</Badge>
                </>
              ),
          },
          { head: 'Id', cell: ({ id }) => <ShortId id={id} /> },
          {
            head: 'Members',
            cell: ({ members, scimGroup, scimGroupKnown }) => (
              <>
                {members.map(({ email }) => email).join(', ') || '–'}
                {scimGroup === null ? null : (
                  <>
                    {' '}
                    <Badge>
                      {scimGroup}
                      {scimGroupKnown ? '' : ' (not sent yet)'}
                    </Badge>
                  </>
                )}
              </>
            ),
          },
          { head: 'Keys', cell: ({ keys }) => formatWhole(keys) },
          {
            head: 'Actions',
            cell: (row) => (may ? <Menu label={`Actions for ${row.name}`} items={actions(row)} /> : null),
          },
        ]}
      />
      {making ? <NameForm title="New team" account={account} onClose={() => setMaking(false)} /> : null}
      {into ? (
        <NameForm
          title={`New project of ${into.name}`}
          account={account}
          parent={into}
          onClose={() => setInto(undefined)}
        />
      ) : null}
      {naming ? <NameForm title="Rename" account={account} edit={naming} onClose={() => setNaming(undefined)} /> : null}
      {staffing ? <MembersForm account={account} team={staffing} onClose={() => setStaffing(undefined)} /> : null}
      {removing ? <RemoveTeam account={account} team={removing} onClose={() => setRemoving(undefined)} /> : null}
    </Page>
  )
}

function NameForm(props: { title: string; account: string; parent?: Team; edit?: Team; onClose: () => void }) {
  const { title, account, parent, edit, onClose } = props
  const [name, setName] = useState(edit?.name ?? '')
  return (
    <FormDialog
      title={title}
      action={edit ? 'Save' : 'Create'}
      run={async () => {
        if (edit) await api.changeTeam(account, edit.id, { name: name.trim() })
        else await api.createTeam(account, { name: name.trim(), parentId: parent?.id ?? null })
        toast(`${name.trim()} was saved.`)
        refresh(`teams/${account}`)
      }}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onText={setName} maxLength={100} required />
    </FormDialog>
  )
}

function MembersForm({ account, team, onClose }: { account: string; team: Team; onClose: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(team.members.map(({ userId }) => userId)))
  const [group, setGroup] = useState(team.scimGroup ?? '')
  const scimGroup = group.trim() || null
  const members = useQuery(`members/${account}`, (signal) => api.members(account, signal))
  const set = (id: string, on: boolean) => {
    const next = new Set(chosen)
    if (on) next.add(id)
    else next.delete(id)
    setChosen(next)
  }
  return (
    <FormDialog
      title={`Members of ${team.name}`}
      action="Save"
      run={async () => {
        if (scimGroup !== team.scimGroup) await api.changeTeam(account, team.id, { scimGroup })
        if (scimGroup === null) await api.setTeamMembers(account, team.id, [...chosen])
        toast(`The members of ${team.name} were saved.`)
        refresh(`teams/${account}`)
      }}
      onClose={onClose}
    >
      <p>People with the role member who are in a team see and create only keys of their teams.</p>
      <TextField
        label="Group of your directory (SCIM)"
        hint="Its members are the members of the team. Leave empty to choose them here."
        value={group}
        onText={setGroup}
        maxLength={254}
      />
      {scimGroup === null ? (
        <Loaded query={members}>
          {({ items }) => (
            <div className="stack-tight">
              {items.map(({ userId, email }) => (
                <Checkbox key={userId} label={email} checked={chosen.has(userId)} onCheck={(on) => set(userId, on)} />
              ))}
            </div>
          )}
        </Loaded>
      ) : null}
    </FormDialog>
  )
}

function RemoveTeam({ account, team, onClose }: { account: string; team: Team; onClose: () => void }) {
  return (
    <Confirm
      title={`Remove ${team.name}?`}
      action="Remove"
      danger
      run={async () => {
        await api.removeTeam(account, team.id)
        toast(`${team.name} was removed.`)
        refresh(`teams/${account}`)
      }}
      onClose={onClose}
    >
      <p>Only possible while no key, project or budget belongs to it. What was spent stays in reports.</p>
    </Confirm>
  )
}
