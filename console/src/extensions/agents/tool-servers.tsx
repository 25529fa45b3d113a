// Foreign MCP servers: which tools of theirs are sold, at which price, and what changed since they were agreed to.
import { useState } from 'react'
import { api } from '../../api.ts'
import { refresh, useList, useQuery } from '../../query.ts'
import { navigate, useDialogInAddress } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { Badge, Card, Facts, Note, Page, When } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { Named, Table, TableCard } from '../../ui/table.tsx'
import type { ForeignTool, ToolServer } from '../../wire.ts'
import { SignIn } from './sign-ins.tsx'

const HOME = '/operator/tools'
const to = ({ name }: ToolServer) => `${HOME}/${name}`

const STATES: Readonly<Record<ForeignTool['state'], readonly [tone: 'good' | 'warn' | 'bad' | 'calm', label: string]>> =
  {
    listed: ['good', 'Listed'],
    changed: ['bad', 'Changed: held back'],
    gone: ['bad', 'Gone: held back'],
    unpriced: ['warn', 'No price: not listed'],
    off: ['calm', 'Off'],
    'not-chosen': ['calm', 'Not chosen'],
    unusable: ['calm', 'Cannot be sold'],
  }

function StateBadge({ state }: { state: ForeignTool['state'] }) {
  const [tone, label] = STATES[state]
  return <Badge tone={tone}>{label}</Badge>
}

export function ToolServersPage() {
  const mayWrite = useMay()('vendors:write')
  const list = useList('tool-servers', (_, signal) => api.toolServers(signal))
  const [adding, setAdding] = useDialogInAddress('new')
  const of = ({ tools }: ToolServer, ...states: ForeignTool['state'][]) =>
    tools.filter(({ state }) => states.includes(state)).length
  return (
    <Page
      title="Tools"
      lead="Tools of other MCP servers, sold beside our own at /mcp. You choose them, set prices, and agree to the description of each."
      actions={
        mayWrite ? (
          <Button look="primary" icon="plus" onClick={() => setAdding(true)}>
            Register a server
          </Button>
        ) : null
      }
    >
      <TableCard
        label="Tool servers"
        list={list}
        rowKey={(row) => row.name}
        to={to}
        empty={
          <Empty icon="vendors" title="No tools of other servers yet">
            <p>Register a server by its address, then choose what to sell.</p>
          </Empty>
        }
        columns={[
          {
            head: 'Server',
            main: true,
            cell: (row) => <Named name={row.title ?? row.name} to={to(row)} sub={row.url} />,
          },
          { head: 'Listed', right: true, cell: (row) => of(row, 'listed') },
          {
            head: 'Held back',
            right: true,
            cell: (row) => {
              const held = of(row, 'changed', 'gone')
              return held > 0 ? <Badge tone="bad">{held}</Badge> : 0
            },
          },
          {
            head: 'Last seen',
            tight: true,
            cell: (row) => (row.lastAnsweredAt ? <When at={row.lastAnsweredAt} /> : 'never'),
          },
          { head: 'Problem', cell: (row) => row.error ?? row.calls.lastError ?? '–' },
        ]}
      />
      {adding ? <ServerForm onClose={() => setAdding(false)} /> : null}
    </Page>
  )
}

const seen = () => refresh('tool-servers', 'tool-server/')

/** Registers a server, or changes one; its name stays. */
function ServerForm({ given, onClose }: { given?: ToolServer; onClose: () => void }) {
  const [personal, setPersonal] = useState(given?.perUserSignIn ?? false)
  return (
    <FormDialog
      right="vendors:write"
      wide
      title={given ? `Change ${given.name}` : 'Register a server'}
      action={given ? 'Save' : 'Register'}
      run={async (form) => {
        const [name, url, title, value] = ['name', 'url', 'title', 'secret'].map((field) =>
          String(form.get(field) ?? ''),
        )
        const made = await api.registerToolServer(given?.name ?? name ?? '', {
          url,
          title,
          ...(value ? { credential: { value } } : {}),
          ...(personal === (given?.perUserSignIn ?? false) ? {} : { auth: personal ? 'person' : 'bearer' }),
          timeoutMs: Number(form.get('seconds')) * 1000,
          concurrencyMax: Number(form.get('calls')),
        })
        seen()
        navigate(to(made))
      }}
      onClose={onClose}
    >
      <div className="grid-2">
        <TextField
          label="Name"
          name="name"
          defaultValue={given?.name ?? ''}
          disabled={given !== undefined}
          required
          pattern={'[a-z][a-z0-9\\-]{0,29}'}
          placeholder="weather"
          hint="Lower-case letters, digits and “-”."
        />
        <TextField
          label="Title"
          name="title"
          defaultValue={given?.title ?? ''}
          hint="Agents read it with every tool."
        />
      </div>
      <TextField
        label="Address"
        name="url"
        type="url"
        required
        defaultValue={given?.url ?? ''}
        placeholder="https://mcp.example.com/mcp"
      />
      <Checkbox
        label="Each person signs in there (OAuth)"
        hint="Calls use the caller’s own sign-in. A credential, or your own sign-in, then only lists its tools."
        checked={personal}
        onCheck={setPersonal}
      />
      <TextField
        label="Credential"
        name="secret"
        type="password"
        autoComplete="off"
        hint={given?.credential?.present ? 'Leave empty to keep it.' : 'Stored encrypted, sent as a bearer token.'}
      />
      <div className="grid-2">
        <TextField
          label="Seconds for a call"
          name="seconds"
          type="number"
          required
          defaultValue={String((given?.timeoutMs ?? 60_000) / 1000)}
        />
        <TextField
          label="Calls at once"
          name="calls"
          type="number"
          required
          defaultValue={String(given?.concurrencyMax ?? 20)}
        />
      </div>
    </FormDialog>
  )
}

export function ToolServerPage({ server: name }: { server: string }) {
  const mayWrite = useMay()('vendors:write')
  const one = useQuery(`tool-server/${name}`, (signal) => api.toolServer(name, signal))
  const [open, setOpen] = useState<'change' | 'remove'>()
  const [tool, setTool] = useState<ForeignTool>()
  const look = useAction(async () => {
    await api.refreshToolServer(name)
    seen()
  })
  return (
    <Page
      title={one.data?.title ?? name}
      lead={one.data?.url}
      back={{ to: HOME, label: 'Tools' }}
      actions={
        mayWrite && one.data ? (
          <>
            <Button onClick={() => look.go()} busy={look.busy}>
              Refresh
            </Button>
            <Button onClick={() => setOpen('change')}>Change</Button>
            <Button look="danger" onClick={() => setOpen('remove')}>
              Remove
            </Button>
          </>
        ) : null
      }
    >
      {look.error ? <Fault error={look.error} /> : null}
      <Loaded query={one}>
        {(row) => (
          <>
            {row.error ? <Note tone="warn">Its tools could not be read the last time: {row.error}</Note> : null}
            <Facts
              items={[
                ['Last seen', row.lastAnsweredAt ? <When at={row.lastAnsweredAt} /> : 'never'],
                [
                  'Credential',
                  row.credential ? `${row.credential.name}${row.credential.present ? '' : ' (missing)'}` : 'none',
                ],
                row.perUserSignIn && ['Your sign-in, to list tools', <LookSignIn key="look" server={name} />],
                ['Calls since the start', `${row.calls.requests}, ${row.calls.errors} failed`],
                ['Last failure', row.calls.lastError ?? 'none'],
              ]}
            />
            <Card title="Tools">
              <ToolTable tools={row.tools} onOpen={setTool} />
            </Card>
            {open === 'change' ? <ServerForm given={row} onClose={() => setOpen(undefined)} /> : null}
          </>
        )}
      </Loaded>
      {tool ? <ToolForm server={name} tool={tool} onClose={() => setTool(undefined)} /> : null}
      {open === 'remove' ? (
        <Confirm
          title={`Remove ${name}?`}
          danger
          action="Remove"
          run={async () => {
            await api.removeToolServer(name)
            seen()
            navigate(HOME)
          }}
          onClose={() => setOpen(undefined)}
        >
          <p>Its tools are no longer offered. Charges stay in the ledger.</p>
        </Confirm>
      ) : null}
    </Page>
  )
}

/** Without it a server that lists its tools only to people shows none. */
function LookSignIn({ server }: { server: string }) {
  const list = useList('tool-sign-ins', (_, signal) => api.toolSignIns(undefined, signal))
  const at = list.data?.find((one) => one.server === server)?.sharedSignInAt ?? null
  return <SignIn account={undefined} server={server} shared at={at} />
}

function ToolTable({ tools, onOpen }: { tools: readonly ForeignTool[]; onOpen: (tool: ForeignTool) => void }) {
  const mayWrite = useMay()('catalog:write')
  return (
    <Table
      label="Tools"
      rows={tools}
      rowKey={(row) => row.tool}
      dim={({ state }) => state === 'unusable'}
      columns={[
        { head: 'Tool', main: true, cell: (row) => <Named name={row.tool} sub={row.id} /> },
        {
          head: 'Description by the server',
          cell: (row) => <span className="clamp">{row.problem ?? row.description}</span>,
        },
        { head: 'State', tight: true, cell: (row) => <StateBadge state={row.state} /> },
        { head: 'Credits a call', right: true, cell: (row) => rateOf(row, 'call') || '–' },
        { head: 'A result', right: true, cell: (row) => rateOf(row, 'row') || '–' },
        mayWrite && {
          head: '',
          tight: true,
          cell: (row) =>
            row.state === 'unusable' ? null : (
              <Button small onClick={() => onOpen(row)}>
                {labelOf(row)}
              </Button>
            ),
        },
      ]}
    />
  )
}

const labelOf = ({ state }: ForeignTool) =>
  state === 'not-chosen' ? 'Choose' : state === 'changed' ? 'Compare' : 'Change'

/** The rate of a simple price; prices with tiers are edited in the catalog. */
function rateOf({ pricing }: ForeignTool, unit: 'call' | 'row'): string {
  const { tiers = [] } = (pricing ?? {}) as { tiers?: readonly Record<string, string>[] } // In the catalog's form.
  return String(tiers[0]?.[unit] ?? '')
}

function ToolForm({ server, tool, onClose }: { server: string; tool: ForeignTool; onClose: () => void }) {
  const isNew = tool.state === 'not-chosen' || tool.state === 'changed'
  return (
    <FormDialog
      wide
      title={`${tool.tool} of ${server}`}
      action={tool.state === 'changed' ? 'Agree and sell' : 'Save'}
      run={async (form) => {
        const [call, row] = [String(form.get('call')), String(form.get('row'))]
        await api.chooseTool(server, {
          tool: tool.tool,
          ...(isNew && tool.digest ? { digest: tool.digest } : {}),
          pricing: call === '' ? null : { unit: 'credits', tiers: [{ call, ...(row === '' ? {} : { row }) }] },
          resultsMax: Number(form.get('results')),
        })
        seen()
      }}
      onClose={onClose}
    >
      {tool.changes.length > 0 ? (
        <Note tone="warn">
          The server has changed this tool. Agents see only what you agree to.
          <ul>
            {tool.changes.map(({ field, before, after }) => (
              <li key={field}>
                <b>{field}</b>
                {before === null ? null : <del> {before}</del>}
                {after === null ? null : <ins> {after}</ins>}
              </li>
            ))}
          </ul>
        </Note>
      ) : (
        <Note>It says of itself: {tool.description || 'nothing'}</Note>
      )}
      <div className="grid-2">
        <TextField
          label="Credits a call"
          name="call"
          inputMode="decimal"
          defaultValue={rateOf(tool, 'call')}
          hint="Leave empty not to list it."
        />
        <TextField
          label="Credits a result"
          name="row"
          inputMode="decimal"
          defaultValue={rateOf(tool, 'row')}
          hint="Beside the price of the call."
        />
      </div>
      <TextField
        label="Results charged at most"
        name="results"
        type="number"
        required
        defaultValue={String(tool.resultsMax ?? 100)}
      />
    </FormDialog>
  )
}
