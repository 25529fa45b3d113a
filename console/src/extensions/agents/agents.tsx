// What agents of an account's people may do, team by team, and the programs that people have signed in, with their last
// use and spend.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { plural } from '../../format.ts'
import { refresh, useList, useQuery } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Ago, Amount, Name, Page } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { AgentSettings, Program, Team } from '../../wire.ts'
import { agentsApi } from './api.ts'

const EVERYBODY = 'account'

const nameOf = (scope: string, teams: readonly Team[]): string => {
  if (scope === EVERYBODY) return 'Everybody else'
  const team = teams.find(({ id }) => id === scope)
  const parent = teams.find(({ id }) => id === team?.parentId)
  return [parent?.name, team?.name ?? scope].filter(Boolean).join(' / ')
}

export function AgentsPage({ account }: { account: string }) {
  const may = useMay()
  return (
    <Page
      title="Agents"
      lead="What people may use by their agents, their keys and the playground. The gateway enforces it; keys that belong to nobody are services and stay free."
    >
      <Settings account={account} />
      {may('members:read', account) ? <Programs account={account} /> : null}
    </Page>
  )
}

function Settings({ account }: { account: string }) {
  const may = useMay()('teams:write', account)
  const [editing, setEditing] = useState<Partial<AgentSettings>>()
  const [removing, setRemoving] = useState<AgentSettings>()
  const settings = useList(`agent-settings/${account}`, (_, signal) => agentsApi.settings(account, signal))
  const teams = useQuery(`teams/${account}`, (signal) => api.teams(account, signal)).data?.items ?? []
  const add = may ? (
    <Button look="primary" icon="plus" onClick={() => setEditing({})}>
      Settings for a team
    </Button>
  ) : null
  return (
    <>
      <TableCard
        title="Settings"
        label="Settings of agents"
        actions={add}
        list={settings}
        rowKey={({ scope }) => scope}
        empty={
          <Empty icon="sliders" title="Every model, no bound">
            <p>Say which models a team’s agents may use, and what one call may cost.</p>
          </Empty>
        }
        columns={[
          { head: 'For', main: true, cell: ({ scope }) => <b>{nameOf(scope, teams)}</b> },
          { head: 'Models', cell: ({ models }) => (models === null ? 'All' : <Name text={models.join(', ')} />) },
          { head: 'Begins with', cell: ({ defaultModel }) => defaultModel ?? '–' },
          { head: 'Small model', cell: ({ smallModel }) => smallModel ?? '–' },
          {
            head: 'One call',
            right: true,
            cell: ({ callMax }) => (callMax === null ? 'No bound' : `${formatCredits(callMax)} credits`),
          },
          {
            head: 'Actions',
            cell: (row) =>
              may ? (
                <Menu
                  label={`Actions for ${nameOf(row.scope, teams)}`}
                  items={[
                    { label: 'Change', icon: 'edit', run: () => setEditing(row) },
                    { label: 'Remove', icon: 'trash', danger: true, run: () => setRemoving(row) },
                  ]}
                />
              ) : null,
          },
        ]}
      />
      {editing ? (
        <SettingsForm account={account} given={editing} teams={teams} onClose={() => setEditing(undefined)} />
      ) : null}
      {removing ? (
        <Confirm
          title="Remove these settings?"
          action="Remove"
          danger
          run={async () => {
            await agentsApi.remove(account, removing.scope)
            toast('The settings were removed.')
            refresh(`agent-settings/${account}`)
          }}
          onClose={() => setRemoving(undefined)}
        >
          <p>
            <b>{nameOf(removing.scope, teams)}</b> gets the settings above it: those of the team, or of everybody else.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

interface FormProps {
  readonly account: string
  readonly given: Partial<AgentSettings>
  readonly teams: readonly Team[]
  readonly onClose: () => void
}

function SettingsForm({ account, given, teams, onClose }: FormProps) {
  const [scope, setScope] = useState(given.scope ?? EVERYBODY)
  const [models, setModels] = useState((given.models ?? []).join('\n'))
  const [defaultModel, setDefault] = useState(given.defaultModel ?? '')
  const [smallModel, setSmall] = useState(given.smallModel ?? '')
  const [callMax, setCallMax] = useState(given.callMax ?? '')
  const listed = models.split(/[\s,]+/).filter(Boolean)
  const run = async () => {
    await agentsApi.set(account, scope, {
      models: listed.length === 0 ? null : listed,
      defaultModel: defaultModel.trim() || null,
      smallModel: smallModel.trim() || null,
      callMax: callMax.trim() || null,
    })
    toast(`Saved. ${nameOf(scope, teams)}: ${listed.length === 0 ? 'every model' : plural(listed.length, 'model')}.`)
    refresh(`agent-settings/${account}`)
  }
  const scopes = [EVERYBODY, ...teams.map(({ id }) => id)].map((id) => [id, nameOf(id, teams)] as const)
  return (
    <FormDialog title="What agents may do" action="Save" run={run} onClose={onClose}>
      <SelectField label="For" value={scope} onText={setScope} options={scopes} disabled={given.scope !== undefined} />
      <TextArea
        label="Only these models"
        value={models}
        onText={setModels}
        mono
        rows={4}
        hint="One on a line. Leave empty to allow all"
      />
      <div className="grid-2">
        <TextField label="Default model" value={defaultModel} onText={setDefault} hint="Agents begin with it" />
        <TextField label="Small model" value={smallModel} onText={setSmall} hint="For titles and summaries" />
      </div>
      <TextField
        label="Most that one call may cost"
        value={callMax}
        onText={setCallMax}
        inputMode="decimal"
        hint="In credits. For a bound on a whole run, make a budget for sessions of the team"
      />
    </FormDialog>
  )
}

function Programs({ account }: { account: string }) {
  const may = useMay()('keys:write', account)
  const [ending, setEnding] = useState<Program>()
  const programs = useList(`programs/${account}`, (_, signal) => agentsApi.programs(account, signal))
  return (
    <>
      <TableCard
        title="Signed-in programs"
        label="Signed-in programs"
        list={programs}
        rowKey={({ keyId }) => keyId}
        empty={
          <Empty icon="key" title="Nobody has signed a program in">
            <p>
              On any machine: <code>npx tollgate agent claude-code --gateway {window.location.origin}</code>
            </p>
          </Empty>
        }
        columns={[
          { head: 'Person', main: true, cell: ({ email }) => <Name text={email ?? 'Nobody'} /> },
          { head: 'Program', cell: ({ program }) => <Name text={program} /> },
          { head: 'Last used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} none="Never" /> },
          { head: 'Signed in', cell: ({ createdAt }) => <Ago at={createdAt} /> },
          { head: 'Last 30 days', right: true, cell: ({ charged }) => <Amount value={charged} /> },
          {
            head: 'Actions',
            cell: (row) =>
              may ? (
                <Menu
                  label={`Actions for ${row.program}`}
                  items={[{ label: 'End sign-in', icon: 'trash', danger: true, run: () => setEnding(row) }]}
                />
              ) : null,
          },
        ]}
      />
      {ending ? (
        <Confirm
          title="End this sign-in?"
          action="End"
          danger
          run={async () => {
            await api.revokeKey(ending.keyId)
            toast(`${ending.program} is signed out.`)
            refresh(`programs/${account}`)
          }}
          onClose={() => setEnding(undefined)}
        >
          <p>
            <b>{ending.program}</b> of {ending.email ?? 'nobody'} is rejected from now on, until it is signed in again.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}
