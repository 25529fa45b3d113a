// What vendors bill against what was recorded: fetched or uploaded, line by line, with the calls behind each.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatWhole } from '../../format.ts'
import { CsvButton } from '../../pages/csv.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { Link, navigate, setQuery, useDialogInAddress, useLocation } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { Segments, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Amount, Badge, Page, ShortId, Stat, Stats, When } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { ComparedLine, VendorReport } from '../../wire.ts'

const HOME = '/operator/finance/vendor-reports'
const to = ({ id }: VendorReport) => `${HOME}/${encodeURIComponent(id)}`

const SOURCES = {
  openai: 'OpenAI’s admin API',
  anthropic: 'Anthropic’s admin API',
  openrouter: 'OpenRouter’s activity',
  csv: 'CSV file',
} as const satisfies Record<VendorReport['source'], string>
type Source = keyof typeof SOURCES

export function VendorReportsPage() {
  const mayWrite = useMay()('vendor-reports:write')
  const list = useList('vendor-reports', (_, signal) => api.vendorReports(signal))
  const [adding, setAdding] = useDialogInAddress('new')
  const [storing, setStoring] = useState(false)
  return (
    <Page
      title="Vendor reconciliation"
      lead="Compares a vendor’s bill with the recorded calls, by day (UTC), model and credential."
      actions={
        mayWrite ? (
          <>
            <Button icon="key" onClick={() => setStoring(true)}>
              Admin credential
            </Button>
            <Button look="primary" icon="plus" onClick={() => setAdding(true)}>
              Add a report
            </Button>
          </>
        ) : null
      }
    >
      <TableCard
        label="Vendor reconciliation"
        list={list}
        rowKey={(row) => row.id}
        to={to}
        empty={
          <Empty icon="ledger" title="No reports yet">
            <p>Fetch one from the vendor’s admin API, or upload a CSV file.</p>
          </Empty>
        }
        columns={[
          { head: 'Vendor', main: true, cell: (row) => <Named name={row.vendor} to={to(row)} sub={row.id} /> },
          { head: 'Days', tight: true, cell: (row) => `${row.from} – ${row.to}` },
          { head: 'From', cell: (row) => SOURCES[row.source] },
          { head: 'Lines', right: true, cell: (row) => formatWhole(row.lines) },
          {
            head: 'Credits per unit',
            right: true,
            wideOnly: true,
            cell: (row) => `${row.creditsPerUnit} / ${row.currency}`,
          },
          { head: 'Added', tight: true, cell: (row) => <When at={row.createdAt} /> },
        ]}
      />
      {adding ? <ReportForm onClose={() => setAdding(false)} /> : null}
      {storing ? <CredentialForm onClose={() => setStoring(false)} /> : null}
    </Page>
  )
}

/** `key_1=OPENAI_A`, one a line. */
function keysOf(text: string): Record<string, string> {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  return Object.fromEntries(
    lines.map((line) => {
      const [key = '', name = '', ...rest] = line.split('=').map((word) => word.trim())
      if (!key || !name || rest.length > 0)
        throw new Error(`keys: must be lines such as key_1=OPENAI_API_KEY, unlike ${line}`)
      return [key, name]
    }),
  )
}

function ReportForm({ onClose }: { onClose: () => void }) {
  const [source, setSource] = useState<Source>('openai')
  const vendors = useQuery('vendors', api.vendors)
  const text = (form: FormData, name: string) => String(form.get(name) ?? '').trim() || undefined
  return (
    <FormDialog
      right="vendor-reports:write"
      wide
      title="Add a vendor’s report"
      action={source === 'csv' ? 'Upload and compare' : 'Fetch and compare'}
      run={async (form) => {
        const file = form.get('file')
        const made = await api.createVendorReport({
          source,
          vendor: String(form.get('vendor')),
          from: String(form.get('from')),
          to: String(form.get('to')),
          currency: text(form, 'currency'),
          creditsPerUnit: text(form, 'creditsPerUnit'),
          ...(source === 'csv' ? { csv: file instanceof File ? await file.text() : '' } : { url: text(form, 'url') }),
          keys: keysOf(text(form, 'keys') ?? ''),
        })
        refresh('vendor-reports')
        navigate(to(made))
      }}
      onClose={onClose}
    >
      <div className="grid-2">
        <SelectField
          label="Vendor"
          name="vendor"
          options={vendors.data?.items.map(({ name }) => name) ?? []}
          required
        />
        <SelectField
          label="Report"
          value={source}
          onText={(next) => setSource(next as Source)} // one of the options
          options={Object.entries(SOURCES)}
        />
        <TextField label="First day (UTC)" name="from" type="date" required />
        <TextField label="Last day (UTC)" name="to" type="date" required hint="At most 31 days." />
        <TextField label="Currency" name="currency" placeholder="USD" pattern="[A-Z]{3}" />
        <TextField
          label="Credits per unit of the currency"
          name="creditsPerUnit"
          inputMode="decimal"
          placeholder="100"
          hint="Not needed if the value of a credit is set in this currency."
        />
      </div>
      {source === 'csv' ? (
        <TextField
          label="CSV file"
          name="file"
          type="file"
          accept=".csv,text/csv"
          required
          hint="Columns day, model, and any of credential, requests, input_tokens, output_tokens, cost."
        />
      ) : (
        <>
          <TextArea
            label="Keys"
            name="keys"
            rows={2}
            mono
            placeholder="key_abc=OPENAI_API_KEY"
            hint="One per line: the vendor’s id of a key (its hash at OpenRouter) = our credential."
          />
          <TextField label="Custom API address" name="url" type="url" />
        </>
      )}
    </FormDialog>
  )
}

function CredentialForm({ onClose }: { onClose: () => void }) {
  return (
    <FormDialog
      title="Admin credential"
      action="Store"
      run={async (form) => {
        const url = String(form.get('url') ?? '').trim()
        const { name } = await api.storeReportCredential({
          source: String(form.get('source')),
          value: String(form.get('value')),
          ...(url ? { url } : {}),
        })
        toast(`Stored as ${name}.`)
      }}
      onClose={onClose}
    >
      <SelectField label="Vendor" name="source" options={Object.entries(SOURCES).filter(([name]) => name !== 'csv')} />
      <TextField
        label="Credential"
        name="value"
        type="password"
        autoComplete="off"
        required
        hint="It may read usage and costs of your organization there. Stored encrypted, and sent to this address only."
      />
      <TextField label="Custom API address" name="url" type="url" />
    </FormDialog>
  )
}

const VERDICTS = {
  differs: { label: 'Differs', tone: 'bad' },
  only_theirs: { label: 'Only theirs', tone: 'warn' },
  only_ours: { label: 'Only ours', tone: 'warn' },
  matched: { label: 'Matched', tone: 'good' },
} as const
type Verdict = keyof typeof VERDICTS
const NAMES = Object.keys(VERDICTS) as Verdict[] // its own names
const FIGURES = { calls: 'calls', input: 'input tokens', output: 'output tokens', cost: 'cost' }

export function VendorReportPage({ report: id }: { report: string }) {
  const { query } = useLocation()
  const report = useQuery(`vendor-report/${id}`, (signal) => api.vendorReport(id, signal))
  const verdict = NAMES.find((one) => one === query.get('verdict'))
  const tolerance = query.get('tolerance') ?? '1'
  const asked = { verdict, tolerance }
  const key = `vendor-report/${id}/lines/${JSON.stringify(asked)}`
  const list = useList(key, (cursor, signal) => api.comparedLines(id, { ...asked, cursor, limit: 50 }, signal))
  const counts = useQuery(`${key}/counts`, (signal) => api.comparedLines(id, { tolerance, limit: 1 }, signal))
  const [day, model] = [query.get('day'), query.get('model')]
  return (
    <Page
      title={report.data ? `${report.data.vendor}, ${report.data.from} – ${report.data.to}` : 'Vendor’s report'}
      lead={report.data ? SOURCES[report.data.source] : undefined}
      back={{ to: HOME, label: 'Vendor reconciliation' }}
      actions={<RemoveButton id={id} />}
    >
      <Loaded query={counts}>
        {({ counts: of }) => (
          <Stats>
            {NAMES.map((one) => (
              <Stat key={one} label={VERDICTS[one].label} value={formatWhole(of[one])} note="lines" />
            ))}
          </Stats>
        )}
      </Loaded>
      <div className="filters">
        <Segments<Verdict | ''>
          label="Lines"
          value={verdict ?? ''}
          options={[{ value: '', label: 'All' }, ...NAMES.map((value) => ({ value, label: VERDICTS[value].label }))]}
          onPick={(value) => setQuery({ verdict: value, day: undefined, model: undefined, credential: undefined })}
        />
        <SelectField
          label="Tolerance"
          value={tolerance}
          onText={(value) => setQuery({ tolerance: value })}
          options={['0', '0.1', '1', '5', ...(['0', '0.1', '1', '5'].includes(tolerance) ? [] : [tolerance])].map(
            (value) => [value, `${value} %`] as const,
          )}
        />
        <CsvButton fetchIt={() => api.comparedCsv(id, asked)} name={`comparison-${id}.csv`} />
      </div>
      <TableCard
        title="Compared"
        lead="Each cell shows the vendor’s figure above ours. Costs are credits. Open a line to see the calls behind it."
        label="Compared"
        list={list}
        rowKey={(row) => `${row.day} ${row.model} ${row.credential}`}
        to={(row) => callsTo(id, asked, row)}
        empty={<Empty icon="ledger" title="No such lines" />}
        columns={[
          {
            head: 'Model',
            main: true,
            cell: (row) => (
              <Named name={row.model} to={callsTo(id, asked, row)} sub={row.credential ?? 'all credentials'} />
            ),
          },
          { head: 'Day', tight: true, cell: (row) => row.day },
          {
            head: 'Verdict',
            cell: (row) => (
              <>
                <Badge tone={VERDICTS[row.verdict].tone}>{VERDICTS[row.verdict].label}</Badge>
                {row.differing.length > 0 ? (
                  <span className="cell-sub">{row.differing.map((one) => FIGURES[one]).join(', ')}</span>
                ) : null}
              </>
            ),
          },
          { head: 'Calls', right: true, cell: (row) => <Both row={row} of="calls" /> },
          { head: 'Input tokens', right: true, cell: (row) => <Both row={row} of="inputTokens" /> },
          { head: 'Output tokens', right: true, cell: (row) => <Both row={row} of="outputTokens" /> },
          { head: 'Cost', right: true, cell: (row) => <Both row={row} of="cost" /> },
          {
            head: 'Difference',
            right: true,
            cell: (row) => (row.difference === null ? '–' : <Amount value={row.difference} />),
          },
        ]}
      />
      {day && model ? <Calls id={id} of={{ day, model, credential: query.get('credential') ?? undefined }} /> : null}
    </Page>
  )
}

interface LineName {
  day: string
  model: string
  credential?: string | undefined
}

/** The same page with the calls of the line below it. */
function callsTo(id: string, asked: { verdict: string | undefined; tolerance: string }, row: ComparedLine): string {
  const named = { ...asked, day: row.day, model: row.model, credential: row.credential ?? undefined }
  const given = Object.entries(named).flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : []))
  return `${HOME}/${encodeURIComponent(id)}?${new URLSearchParams(given)}`
}

/** Theirs above ours. */
function Both({ row, of }: { row: ComparedLine; of: 'calls' | 'inputTokens' | 'outputTokens' | 'cost' }) {
  const figureText = (value: string | number | null | undefined) =>
    value === null || value === undefined ? (
      '–'
    ) : typeof value === 'number' ? (
      formatWhole(value)
    ) : (
      <Amount value={value} />
    )
  return (
    <>
      <span title="theirs">{figureText(row.theirs?.[of])}</span>
      <span className="cell-sub" title="ours">
        {figureText(row.ours?.[of])}
      </span>
    </>
  )
}

function Calls({ id, of }: { id: string; of: LineName }) {
  const list = useList(`vendor-report/${id}/calls/${JSON.stringify(of)}`, (cursor, signal) =>
    api.comparedCalls(id, { ...of, cursor, limit: 50 }, signal),
  )
  return (
    <TableCard
      title={`Recorded calls of ${of.model} on ${of.day}`}
      lead={of.credential ?? 'All credentials'}
      label="Recorded calls"
      list={list}
      rowKey={(row) => row.id}
      to={(row) => `/operator/calls/${encodeURIComponent(row.id)}`}
      empty={
        <Empty icon="usage" title="No calls were recorded">
          <p>The gateway has no calls of this model with this credential on that day.</p>
        </Empty>
      }
      columns={[
        {
          head: 'Call',
          main: true,
          cell: (row) => (
            <Link to={`/operator/calls/${encodeURIComponent(row.id)}`}>
              <ShortId id={row.id} />
            </Link>
          ),
        },
        { head: 'Started', tight: true, cell: (row) => <When at={row.at} /> },
        { head: 'Account', cell: (row) => <ShortId id={row.account} /> },
        { head: 'Model', cell: (row) => row.product },
        { head: 'Input', right: true, cell: (row) => formatWhole(row.inputTokens) },
        { head: 'Output', right: true, cell: (row) => formatWhole(row.outputTokens) },
        { head: 'Cost', right: true, cell: (row) => (row.cost === null ? '–' : <Amount value={row.cost} />) },
      ]}
    />
  )
}

function RemoveButton({ id }: { id: string }) {
  const mayWrite = useMay()('vendor-reports:write')
  const [asking, setAsking] = useState(false)
  if (!mayWrite) return null
  return (
    <>
      <Button icon="trash" onClick={() => setAsking(true)}>
        Remove
      </Button>
      {asking ? (
        <Confirm
          title="Remove this report?"
          action="Remove"
          danger
          run={async () => {
            await api.removeVendorReport(id)
            refresh('vendor-reports')
            navigate(HOME)
          }}
          onClose={() => setAsking(false)}
        >
          <p>The report is deleted. Recorded calls stay.</p>
        </Confirm>
      ) : null}
    </>
  )
}
