// Where the audit log is exported to, how far that has come, and what is wrong with it.
import { useState } from 'react'
import { ApiError, api } from '../../api.ts'
import { refresh, useQuery } from '../../query.ts'
import { Allowed } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Card, Facts, Note, When } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { AuditExportInput, AuditExportView } from '../../wire.ts'

export function AuditExportCard() {
  const exported = useQuery('audit-export', api.auditExport)
  const [dialog, setDialog] = useState<'set' | 'end'>()
  // This gateway has no such extension.
  if (exported.error instanceof ApiError && exported.error.status === 404) return null
  return (
    <Loaded query={exported}>
      {(data) => (
        <Card
          title="Export"
          lead="Every row as a JSON line, to a webhook or to S3. Each row has a hash, so a receiver can detect missing rows."
          actions={
            <Allowed right="audit-export:write">
              {data.target ? <Button onClick={() => setDialog('end')}>End export</Button> : null}
              <Button onClick={() => setDialog('set')}>{data.target ? 'Change' : 'Set up'}</Button>
            </Allowed>
          }
        >
          <State view={data} />
          {dialog === 'set' ? <SetDialog view={data} onClose={() => setDialog(undefined)} /> : null}
          {dialog === 'end' ? (
            <Confirm
              title="End the export?"
              action="End export"
              danger
              run={async () => {
                await api.endAuditExport()
                refresh('audit')
                toast('The export has ended.')
              }}
              onClose={() => setDialog(undefined)}
            >
              <p>Nothing more is sent. The audit log itself stays as it is.</p>
            </Confirm>
          ) : null}
        </Card>
      )}
    </Loaded>
  )
}

function State({ view }: { view: AuditExportView }) {
  const { target, error, failures, secret } = view
  if (!target) return <p className="muted">The audit log is not exported.</p>
  return (
    <>
      {error ? (
        <Note tone="warn">
          {failures} failed {failures === 1 ? 'attempt' : 'attempts'}: {error}
          {view.nextAttemptAt ? (
            <>
              {' '}
              Next one: <When at={view.nextAttemptAt} />
            </>
          ) : null}
        </Note>
      ) : null}
      <Facts
        items={[
          ['To', target.kind === 'webhook' ? `Webhook at ${target.host}` : `${target.bucket} at ${target.endpoint}`],
          ['Sent', view.sent.toLocaleString('en')],
          ['Waiting', view.waiting.toLocaleString('en')],
          ['Last sent', view.lastSentAt ? <When key="l" at={view.lastSentAt} /> : 'Never'],
        ]}
      />
      {secret ? <Code label="Secret of the signatures" text={secret} wrap /> : null}
    </>
  )
}

function SetDialog({ view, onClose }: { view: AuditExportView; onClose: () => void }) {
  const [kind, setKind] = useState<'webhook' | 's3'>(view.target?.kind ?? 'webhook')
  const s3 = view.target?.kind === 's3' ? view.target : undefined
  return (
    <FormDialog
      title="Export the audit log"
      action="Save"
      run={async (form) => {
        await api.putAuditExport(inputOf(kind, form))
        refresh('audit')
        toast('Saved. The first rows are sent now.')
      }}
      onClose={onClose}
    >
      <SelectField
        label="To"
        value={kind}
        options={[
          ['webhook', 'Webhook'],
          ['s3', 'S3 bucket'],
        ]}
        onText={(next) => setKind(next === 's3' ? 's3' : 'webhook')}
      />
      {kind === 'webhook' ? (
        <TextField
          key="url"
          label="Address"
          name="url"
          type="url"
          required
          placeholder="https://siem.example.com/tollgate"
        />
      ) : (
        <>
          <TextField
            label="Endpoint"
            name="endpoint"
            type="url"
            required
            defaultValue={s3?.endpoint ?? ''}
            placeholder="https://s3.eu-central-1.amazonaws.com"
          />
          <TextField label="Bucket" name="bucket" required defaultValue={s3?.bucket ?? ''} />
          <TextField label="Region" name="region" required defaultValue={s3?.region ?? 'us-east-1'} />
          <TextField label="Prefix" name="prefix" required defaultValue={s3?.prefix ?? 'audit'} />
          <TextField label="Access key id" name="accessKeyId" required defaultValue={s3?.accessKeyId ?? ''} />
          <TextField
            label="Secret access key"
            name="secretAccessKey"
            type="password"
            autoComplete="off"
            required={!s3}
            hint={s3 ? 'Leave empty to keep the stored one.' : undefined}
          />
        </>
      )}
      <SelectField
        label="Start with"
        name="from"
        options={[
          ...(view.target ? ([['', 'Where it is']] as const) : []),
          ['start', 'The whole log'],
          ['now', 'Only new rows'],
        ]}
      />
    </FormDialog>
  )
}

function inputOf(kind: 'webhook' | 's3', form: FormData): AuditExportInput {
  const of = (name: string) => String(form.get(name) ?? '').trim()
  const from = of('from') === 'now' ? 'now' : of('from') === 'start' ? 'start' : undefined
  if (kind === 'webhook') return { kind, url: of('url'), waitSeconds: 0, from }
  return {
    kind,
    endpoint: of('endpoint'),
    bucket: of('bucket'),
    region: of('region'),
    prefix: of('prefix'),
    accessKeyId: of('accessKeyId'),
    virtualHost: false,
    waitSeconds: 3_600,
    from,
    ...(of('secretAccessKey') === '' ? {} : { secretAccessKey: of('secretAccessKey') }),
  }
}
