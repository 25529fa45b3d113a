// Who may vouch for people: the login providers, the domains and groups that lead into accounts, and for whom a second
// factor is required.
import { useState } from 'react'
import { ACCOUNT_ROLES, OPERATOR_ROLES } from '../../../../src/identity/roles.ts'
import { api } from '../../api.ts'
import { refresh, useList, useQuery } from '../../query.ts'
import { useDialogInAddress } from '../../router.tsx'
import { AllowedFields } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { Checkbox, TextArea, TextField } from '../../ui/field.tsx'
import { Badge, Card, Note, Page } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast, toastError } from '../../ui/toast.tsx'
import type { AnyRole, LoginProvider, LoginProviderInput } from '../../wire.ts'

export function LoginProvidersPage() {
  const providers = useList('login-providers', (_, signal) => api.loginProviders(signal))
  const [adding, setAdding] = useDialogInAddress('new')
  const [editing, setEditing] = useState<LoginProvider>()
  const [removing, setRemoving] = useState<LoginProvider>()
  const test = async ({ id, name }: LoginProvider) => {
    const { ok, message } = await api.testLoginProvider(id)
    toast(`${name}: ${message}`, { bad: !ok })
  }
  return (
    <Page
      title="Login"
      lead="Single sign-on by OpenID Connect, and who needs a second factor."
      actions={
        <Button right="login-providers:write" look="primary" icon="plus" onClick={() => setAdding(true)}>
          Add a login provider
        </Button>
      }
    >
      <TableCard
        label="Login providers"
        list={providers}
        empty={
          <Empty icon="members" title="People sign in by password and passkey">
            <p>Add Google, Microsoft, Okta, Keycloak or any other OpenID Connect provider.</p>
          </Empty>
        }
        rowKey={(row) => row.id}
        columns={[
          {
            head: 'Name',
            main: true,
            cell: (row) => (
              <>
                <b>{row.name}</b> {row.enabled ? null : <Badge tone="warn">off</Badge>}
              </>
            ),
          },
          { head: 'Issuer', cell: (row) => <code className="clamp">{row.issuer}</code> },
          { head: 'Domains', cell: (row) => row.domains.map(domainWord).join(', ') || '–' },
          { head: 'Groups', cell: (row) => row.groups.map(({ group }) => group).join(', ') || '–' },
          {
            head: 'Actions',
            tight: true,
            cell: (row) => (
              <span className="row row-one">
                <Button right="login-providers:read" small onClick={() => void test(row).catch(toastError)}>
                  Test
                </Button>
                <Button right="login-providers:write" small onClick={() => setEditing(row)}>
                  Edit
                </Button>
                <Button right="login-providers:write" small icon="trash" onClick={() => setRemoving(row)}>
                  Remove
                </Button>
              </span>
            ),
          },
        ]}
      />
      <PolicyCard />
      {adding ? <ProviderForm onClose={() => setAdding(false)} /> : null}
      {editing ? <ProviderForm provider={editing} onClose={() => setEditing(undefined)} /> : null}
      {removing ? (
        <Confirm
          title="Remove this login provider?"
          action="Remove"
          danger
          run={async () => {
            await api.removeLoginProvider(removing.id)
            refresh('login-providers', 'login')
          }}
          onClose={() => setRemoving(undefined)}
        >
          <p>
            Nobody can sign in by <b>{removing.name}</b> any more. People and memberships stay; domains that it alone
            could vouch for take passwords again.
          </p>
        </Confirm>
      ) : null}
    </Page>
  )
}

const domainWord = ({ domain, ssoOnly }: LoginProvider['domains'][number]) =>
  ssoOnly ? `${domain} (only by single sign-on)` : domain

const domainLine = ({ domain, account, role, ssoOnly }: LoginProvider['domains'][number]) =>
  [domain, account ? `${account} ${role}` : '', ssoOnly ? 'only' : ''].filter(Boolean).join(' ')
const groupLine = ({ group, account, role }: LoginProvider['groups'][number]) =>
  `${group} = ${account ? `${account} ` : ''}${role}`

const linesOf = (value: FormDataEntryValue | null) =>
  String(value ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** `example.com acc_1 member only` */
function readDomain(line: string): LoginProvider['domains'][number] {
  const words = line.split(/\s+/)
  const ssoOnly = words.at(-1) === 'only'
  const [domain = '', account = null, role = null] = ssoOnly ? words.slice(0, -1) : words
  return { domain, account, role, ssoOnly }
}

/** `platform team = acc_1 admin`, or without an account a role of those who run the gateway. */
function readGroup(line: string): LoginProvider['groups'][number] {
  const at = line.lastIndexOf('=')
  const words = line
    .slice(at + 1)
    .trim()
    .split(/\s+/)
  if (at < 1 || words.length > 2)
    throw new Error(`groups: must be "name = account role" or "name = role", unlike ${line}`)
  const [first = '', second] = words
  const group = line.slice(0, at).trim()
  return second === undefined ? { group, account: null, role: first } : { group, account: first, role: second }
}

function readForm(form: FormData): Omit<LoginProviderInput, 'provesSecondFactor' | 'enabled'> {
  const secret = String(form.get('secret') ?? '')
  return {
    name: String(form.get('name')),
    issuer: String(form.get('issuer')),
    clientId: String(form.get('clientId')),
    ...(secret ? { secret } : {}),
    scopes: String(form.get('scopes')).split(/\s+/).filter(Boolean),
    groupsClaim: String(form.get('groupsClaim')),
    domains: linesOf(form.get('domains')).map(readDomain),
    groups: linesOf(form.get('groups')).map(readGroup),
  }
}

function ProviderForm({ provider, onClose }: { provider?: LoginProvider; onClose: () => void }) {
  const [id, setId] = useState(provider?.id ?? '')
  const [proves, setProves] = useState(provider?.provesSecondFactor ?? false)
  const [enabled, setEnabled] = useState(provider?.enabled ?? true)
  const { name } = provider ?? { name: '' }
  return (
    <FormDialog
      right="login-providers:write"
      wide
      title={name ? `Edit ${name}` : 'Add a login provider'}
      action="Save"
      run={async (form) => {
        await api.putLoginProvider(id, { ...readForm(form), provesSecondFactor: proves, enabled })
        refresh('login-providers', 'login')
        toast('Saved.')
      }}
      onClose={onClose}
    >
      <Place provider={provider} id={id} setId={setId} />
      <Mappings provider={provider} />
      <div className="grid-2">
        <TextField label="Scopes" name="scopes" defaultValue={provider?.scopes.join(' ') ?? 'openid email profile'} />
        <TextField label="Claim with the groups" name="groupsClaim" defaultValue={provider?.groupsClaim ?? 'groups'} />
      </div>
      <Checkbox label="The login provider asks for a second factor itself" checked={proves} onCheck={setProves} />
      <Checkbox label="Offered on the sign-in page" checked={enabled} onCheck={setEnabled} />
    </FormDialog>
  )
}

/** Where it is, and what has to be registered there. */
function Place({
  provider,
  id,
  setId,
}: {
  provider: LoginProvider | undefined
  id: string
  setId: (id: string) => void
}) {
  const base = window.location.origin
  return (
    <>
      <div className="grid-2">
        <TextField label="Name" name="name" defaultValue={provider?.name ?? ''} required placeholder="Example Corp" />
        <TextField
          label="Id"
          value={id}
          onText={setId}
          readOnly={provider !== undefined}
          required
          pattern={'[a-z0-9][a-z0-9\\-]{0,39}'}
          placeholder="corp"
          hint="Part of the addresses below."
        />
      </div>
      <TextField
        label="Issuer"
        name="issuer"
        type="url"
        defaultValue={provider?.issuer ?? ''}
        required
        placeholder="https://login.example.com"
        hint="As the login provider names it; its description is read from there."
      />
      <div className="grid-2">
        <TextField label="Client id" name="clientId" defaultValue={provider?.clientId ?? ''} required />
        <TextField
          label="Client secret"
          name="secret"
          type="password"
          autoComplete="off"
          hint={provider?.hasSecret ? 'Stored. Leave empty to keep it.' : 'Stored sealed.'}
        />
      </div>
      <Code label="Redirect address, to be registered there" text={`${base}/console/sso/${id || '<id>'}`} wrap />
      <Code label="Back-channel logout address" text={`${base}/sso/${id || '<id>'}/logout`} wrap />
    </>
  )
}

/** Whom it lets in where. */
function Mappings({ provider }: { provider: LoginProvider | undefined }) {
  return (
    <>
      <TextArea
        label="Domains"
        name="domains"
        rows={3}
        mono
        defaultValue={provider?.domains.map(domainLine).join('\n') ?? ''}
        placeholder="example.com acc_01… member only"
        hint="One per line: domain, account and role that people with a verified address join; “only” allows no other way to sign in."
      />
      <TextArea
        label="Groups"
        name="groups"
        rows={3}
        mono
        defaultValue={provider?.groups.map(groupLine).join('\n') ?? ''}
        placeholder={'platform = acc_01… admin\ngateway-support = support'}
        hint="One per line: group = account role. Without an account it is a role in the gateway."
      />
    </>
  )
}

function PolicyCard() {
  const policy = useQuery('login-policy', api.loginPolicy)
  return (
    <Card
      title="Required second factor"
      lead="People with one of these roles can do nothing before they have added a passkey or an authenticator app."
    >
      <Loaded query={policy}>
        {(data) => (
          <AllowedFields right="login-providers:write">
            <PolicyForm key={data.secondFactorRoles.join()} roles={data.secondFactorRoles} />
          </AllowedFields>
        )}
      </Loaded>
    </Card>
  )
}

const ROLES: readonly AnyRole[] = [...OPERATOR_ROLES, ...ACCOUNT_ROLES]

function PolicyForm({ roles }: { roles: readonly AnyRole[] }) {
  const [chosen, setChosen] = useState(new Set(roles))
  const save = useAction(async () => {
    await api.changeLoginPolicy({ secondFactorRoles: ROLES.filter((role) => chosen.has(role)) })
    refresh('login-policy', 'security')
    toast('Saved.')
  })
  const toggle = (role: AnyRole) => {
    const next = new Set(chosen)
    if (!next.delete(role)) next.add(role)
    setChosen(next)
  }
  return (
    <div className="stack">
      <fieldset className="checks">
        <legend className="sr-only">Roles</legend>
        {ROLES.map((role) => (
          <Checkbox key={role} label={role} checked={chosen.has(role)} onCheck={() => toggle(role)} />
        ))}
      </fieldset>
      {chosen.has('operator') ? (
        <Note>Operators without one set it up when they sign in next. You are not signed out.</Note>
      ) : null}
      {save.error ? <Fault error={save.error} /> : null}
      <div>
        <Button look="primary" busy={save.busy} onClick={() => void save.go()}>
          Save
        </Button>
      </div>
    </div>
  )
}
