// Mail domains that an account has proved to be its own: its directory (SCIM) creates people of these only.
import { useState } from 'react'
import { api } from '../../api.ts'
import { refresh, useList } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { useAction, useSubmit } from '../../ui/action.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { TextField } from '../../ui/field.tsx'
import { Ago, Card } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Domain } from '../../wire.ts'

export function DomainsCard({ account }: { account: string }) {
  const may = useMay()('scim:write', account)
  const name = `domains/${account}`
  const domains = useList(name, (_, signal) => api.domains(account, signal))
  const [domain, setDomain] = useState('')
  /** The one whose record is not there yet. */
  const [missing, setMissing] = useState<Domain>()
  const proving = useSubmit(async () => {
    const found = await api.proveDomain(account, domain.trim())
    if (found.provedAt === null) return setMissing(found)
    setMissing(undefined)
    setDomain('')
    refresh(name)
    toast(`${found.domain} is proved.`)
  })
  const removing = useAction(async (_signal, gone: string) => {
    await api.removeDomain(account, gone)
    refresh(name)
  })
  const error = proving.error ?? removing.error
  return (
    <Card
      title="Domains"
      lead="A directory (SCIM) of this account creates people of proved mail domains. Others are invited by mail."
    >
      <div className="stack">
        {domains.data?.length === 0 ? <p className="muted">No proved domains.</p> : null}
        <ul className="rule-list">
          {(domains.data ?? []).map((one) => (
            <li key={one.domain}>
              <span className="name">{one.domain}</span>
              <span className="muted">
                proved <Ago at={one.provedAt} none="" />
              </span>
              {may ? (
                <IconButton icon="trash" label={`Remove ${one.domain}`} onClick={() => void removing.go(one.domain)} />
              ) : null}
            </li>
          ))}
        </ul>
        {may ? (
          <form className="receiver-form" onSubmit={proving.onSubmit}>
            <TextField
              label="Domain"
              value={domain}
              onText={setDomain}
              maxLength={253}
              placeholder="example.com"
              required
            />
            <Button type="submit" busy={proving.busy}>
              Check
            </Button>
          </form>
        ) : null}
        {missing ? (
          <>
            <p>
              The record is not there yet. Add this TXT record to the DNS of {missing.domain}, and check again. It can
              take minutes until name servers know it.
            </p>
            <Code label="Name of the record" text={missing.record} wrap />
            <Code label="Value of the record" text={missing.value} wrap />
          </>
        ) : null}
        {error ? <Fault error={error} /> : null}
      </div>
    </Card>
  )
}
