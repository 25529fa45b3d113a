// Who may sign up, what they begin with, and what keeps floods out.
import { useState } from 'react'
import { api } from '../../api.ts'
import { parseCredits } from '../../credits.ts'
import { LimitFields, type LimitTexts, limitsAsTexts, textsAsLimits } from '../../pages/limits.tsx'
import { PassOn } from '../../pages/pending-invites.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { useDialogInAddress } from '../../router.tsx'
import { Allowed, AllowedFields } from '../../session.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { RadioCards, TextArea, TextField } from '../../ui/field.tsx'
import { Ago, Card, Note, Page } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast, toastError } from '../../ui/toast.tsx'
import type { SignUpSettings } from '../../wire.ts'

const MODES = [
  { value: 'off', label: 'Off', hint: 'Operators make accounts; owners invite members.' },
  { value: 'invitation', label: 'By invitation', hint: 'People you invite here open an account of their own.' },
  { value: 'domain', label: 'By domain', hint: 'People with a mailbox at one of the domains below.' },
  { value: 'open', label: 'Open', hint: 'Anyone with a mailbox.' },
] as const

export function SignUpSettingsPage() {
  const settings = useQuery('sign-up/settings', api.signUpSettings)
  const [inviting, setInviting] = useDialogInAddress('invite')
  const isOff = settings.data?.mode === 'off'
  return (
    <Page
      title="Sign-up"
      lead="How people get an account of their own."
      actions={
        settings.data && !isOff ? (
          <Allowed right="sign-up:write">
            <Button icon="plus" onClick={() => setInviting(true)}>
              Invite a customer
            </Button>
          </Allowed>
        ) : null
      }
    >
      <Loaded query={settings}>
        {(data) => (
          <AllowedFields right="sign-up:write">
            <SettingsForm key={JSON.stringify(data)} settings={data} />
          </AllowedFields>
        )}
      </Loaded>
      <Invitations />
      {inviting ? <InviteCustomer onClose={() => setInviting(false)} /> : null}
    </Page>
  )
}

const linesOf = (text: string) => text.split(/[\s,]+/).filter(Boolean)

/** The settings as typed. */
interface Draft {
  readonly mode: SignUpSettings['mode']
  readonly domains: string
  readonly blocked: string
  readonly credits: string
  readonly version: string
  readonly url: string
  readonly perNetwork: string
  readonly perDomain: string
  readonly challenge: string
  readonly region: string
  readonly limits: LimitTexts
}

const draftOf = (settings: SignUpSettings): Draft => ({
  mode: settings.mode,
  domains: settings.domains.join('\n'),
  blocked: settings.blockedDomains.join('\n'),
  credits: settings.credits,
  version: settings.terms?.version ?? '',
  url: settings.terms?.url ?? '',
  perNetwork: String(settings.perNetworkPerHour),
  perDomain: String(settings.perDomainPerDay),
  challenge: settings.challengeUrl ?? '',
  region: settings.region ?? '',
  limits: limitsAsTexts(settings.limits),
})

interface Part {
  readonly draft: Draft
  readonly onDraft: (change: Partial<Draft>) => void
}

function SettingsForm({ settings }: { settings: SignUpSettings }) {
  const [draft, setDraft] = useState(draftOf(settings))
  const onDraft = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }))
  const { busy, error, onSubmit } = useSubmit(async () => {
    const { mode, domains, blocked, credits, version, url, perNetwork, perDomain, challenge, region, limits } = draft
    await api.changeSignUp({
      mode,
      domains: linesOf(domains),
      blockedDomains: linesOf(blocked),
      credits: credits.trim() || '0',
      limits: textsAsLimits(limits, {}),
      terms: version.trim() || url.trim() ? { version: version.trim(), url: url.trim() } : null,
      perNetworkPerHour: Number(perNetwork),
      perDomainPerDay: Number(perDomain),
      challengeUrl: challenge.trim() || null,
      region: region.trim() || null,
    })
    refresh('sign-up/')
    toast('Saved.')
  })
  return (
    <form className="stack" onSubmit={onSubmit}>
      <WhoCard draft={draft} onDraft={onDraft} mailServer={settings.mailServer} />
      <NewAccountsCard draft={draft} onDraft={onDraft} />
      <RateLimitsCard draft={draft} onDraft={onDraft} />
      {error ? <Fault error={error} /> : null}
      <Allowed right="sign-up:write">
        <div>
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
        </div>
      </Allowed>
    </form>
  )
}

/** In these modes a mail leads to the new account. */
const needsMail = (mode: Draft['mode']) => mode === 'domain' || mode === 'open'

function WhoCard({ draft, onDraft, mailServer }: Part & { mailServer: boolean }) {
  const options = MODES.map((mode) => ({ ...mode, disabled: needsMail(mode.value) && !mailServer }))
  return (
    <Card title="Who may sign up">
      <RadioCards label="Sign-up" value={draft.mode} options={options} onPick={(mode) => onDraft({ mode })} />
      {mailServer ? null : (
        <Note tone="warn">
          <b>By domain</b> and <b>Open</b> need a mail server, which confirms each mailbox. Set{' '}
          <code>TOLLGATE_SMTP_URL</code> and <code>TOLLGATE_MAIL_FROM</code> in the gateway’s environment, and restart
          it.
        </Note>
      )}
      {draft.mode === 'domain' ? (
        <TextArea
          label="Domains"
          name="domains"
          required
          value={draft.domains}
          onText={(domains) => onDraft({ domains })}
          rows={3}
          hint="One per line; subdomains are included."
        />
      ) : null}
      <TextArea
        label="Blocked mail domains"
        name="blockedDomains"
        value={draft.blocked}
        onText={(blocked) => onDraft({ blocked })}
        rows={4}
        hint="One per line; subdomains are included. Paste a list of disposable mail providers."
      />
    </Card>
  )
}

function NewAccountsCard({ draft, onDraft }: Part) {
  return (
    <Card title="New accounts" lead="What an account begins with. Changes apply to those who sign up from now on.">
      <div className="grid-3">
        <TextField
          label="Starting credits"
          name="credits"
          value={draft.credits}
          onText={(credits) => onDraft({ credits })}
          inputMode="decimal"
          fault={parseCredits(draft.credits || '0') === undefined ? 'An amount such as 25 or 0.5.' : undefined}
          hint="Once for each mailbox."
        />
        <TextField
          label="Terms version"
          name="terms.version"
          required={Boolean(draft.url)}
          value={draft.version}
          onText={(version) => onDraft({ version })}
          maxLength={60}
          placeholder="2026-11"
          hint="Leave empty if there is nothing to accept."
        />
        <TextField
          label="Terms URL"
          name="terms.url"
          required={Boolean(draft.version)}
          value={draft.url}
          onText={(url) => onDraft({ url })}
          type="url"
          placeholder="https://example.com/terms"
        />
      </div>
      <TextField
        label="Region"
        name="region"
        value={draft.region}
        onText={(region) => onDraft({ region })}
        maxLength={30}
        hint="Of a ledger, where accounts lie in several. Leave empty for the ledger with most room."
      />
      <LimitFields texts={draft.limits} onTexts={(limits) => onDraft({ limits })} />
    </Card>
  )
}

function RateLimitsCard({ draft, onDraft }: Part) {
  return (
    <Card
      title="Sign-up rate limits"
      lead="More than these are rejected with 429. A mailbox gets at most three mails an hour."
    >
      <div className="grid-3">
        <TextField
          label="Mails per network and hour"
          name="perNetworkPerHour"
          value={draft.perNetwork}
          onText={(perNetwork) => onDraft({ perNetwork })}
          inputMode="numeric"
          pattern="[1-9]\d{0,3}"
          required
        />
        <TextField
          label="Sign-ups per domain and day"
          name="perDomainPerDay"
          value={draft.perDomain}
          onText={(perDomain) => onDraft({ perDomain })}
          inputMode="numeric"
          pattern="[1-9]\d{0,5}"
          required
          hint="Large mail hosts are exempt."
        />
        <TextField
          label="Address of a challenge"
          name="challengeUrl"
          value={draft.challenge}
          onText={(challenge) => onDraft({ challenge })}
          type="url"
          placeholder="https://example.com/challenge"
          hint="It is asked before each mail. Leave empty to ask nobody."
        />
      </div>
    </Card>
  )
}

function Invitations() {
  const list = useList('sign-up/invites', (_, signal) => api.signUpInvites(signal))
  const drop = async (id: string) => {
    await api.withdrawSignUpInvite(id)
    refresh('sign-up/invites')
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
        { head: 'Made', cell: (row) => <Ago at={row.createdAt} /> },
        { head: 'Ends', cell: (row) => <Ago at={row.expiresAt} /> },
        {
          head: 'Actions',
          cell: (row) => (
            <Allowed right="sign-up:write">
              <Button small onClick={() => void drop(row.id).catch(toastError)}>
                Withdraw
              </Button>
            </Allowed>
          ),
        },
      ]}
    />
  )
}

function InviteCustomer({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [link, setLink] = useState<string>()
  if (link)
    return (
      <PassOn label="Invitation link" link={link} onClose={onClose}>
        <b>{email}</b> gets this link by mail if a mail server is set up. The first person who opens it gets the
        account.
      </PassOn>
    )
  return (
    <FormDialog
      title="Invite a customer"
      action="Invite"
      run={async () => {
        setLink((await api.inviteToSignUp(email)).link)
        refresh('sign-up/invites')
      }}
      onClose={onClose}
      stay
    >
      <TextField label="Email" type="email" value={email} onText={setEmail} required />
    </FormDialog>
  )
}
