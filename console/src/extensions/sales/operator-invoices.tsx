// All invoices with filters and a ZIP, who issues them, and whether months are invoiced.
import { useState } from 'react'
import { api, type InvoiceFilter } from '../../api.ts'
import { CsvButton } from '../../pages/csv.tsx'
import { RangeFields } from '../../pages/range-fields.tsx'
import { refresh, useQuery } from '../../query.ts'
import { setQuery, useLocation } from '../../router.tsx'
import { Allowed, AllowedFields, useMay } from '../../session.tsx'
import { useAction, useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, CountryOrText, SearchField, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { InvoiceSettings, Issuer } from '../../wire.ts'
import { InvoiceTable } from './invoices.tsx'

const KINDS = [
  ['', 'All kinds'],
  ['payment', 'Payments'],
  ['month', 'Months'],
  ['credit_note', 'Credit notes'],
] as const

export function OperatorInvoicesPage() {
  const { query } = useLocation()
  const mayRead = useMay()('invoice-settings:read')
  const settings = useQuery(mayRead ? 'invoice-settings' : undefined, api.invoiceSettings)
  const filter: InvoiceFilter = {
    kind: query.get('kind') || undefined,
    from: query.get('from') || undefined,
    to: query.get('to') || undefined,
    q: query.get('q') || undefined,
  }
  return (
    <Page title="Invoices" lead="All customers’ invoices, in one gapless series.">
      <div className="filters">
        <SearchField
          label="Number or customer"
          text={filter.q ?? ''}
          onText={(text) => setQuery({ q: text || undefined })}
        />
        <SelectField
          label="Kind"
          options={KINDS}
          value={filter.kind ?? ''}
          onText={(kind) => setQuery({ kind: kind || undefined })}
        />
        <RangeFields from={filter.from} to={filter.to} />
        <CsvButton label="All as PDF (ZIP)" fetchIt={() => api.invoicesZip(filter)} name="invoices.zip" />
      </div>
      <InvoiceTable of={undefined} filter={filter} />
      <Allowed right="invoice-settings:read">
        <Loaded query={settings}>
          {(data) => (
            <AllowedFields right="invoice-settings:write">
              <IssuerCard key={JSON.stringify(data.issuer)} issuer={data.issuer} />
              {data.issuer ? <MonthlyCard settings={data} /> : null}
            </AllowedFields>
          )}
        </Loaded>
      </Allowed>
    </Page>
  )
}

type IssuerField = Exclude<keyof Issuer, 'ratesAbroad' | 'paymentDays'>
const FIELDS: readonly (readonly [field: IssuerField, label: string, hint?: string])[] = [
  ['name', 'Name of the company'],
  ['street', 'Street and number'],
  ['postcode', 'Postcode'],
  ['city', 'City'],
  ['country', 'Country'],
  ['email', 'Email'],
  ['vatId', 'VAT id', 'With the letters of the country.'],
  ['taxNumber', 'Tax number', 'If there is no VAT id.'],
  ['registration', 'Registration number'],
  ['series', 'Series', 'The first part of each number: INV.'],
  ['taxRate', 'VAT in percent', 'In the issuer’s own country.'],
  ['exemption', 'Exemption', 'The reason why no VAT is charged. Leave empty to charge VAT.'],
  ['iban', 'IBAN', 'On invoices for months.'],
  ['bic', 'BIC'],
]
const REQUIRED: readonly string[] = ['name', 'street', 'city', 'country', 'taxRate']

function IssuerCard({ issuer }: { issuer: Issuer | null }) {
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(FIELDS.map(([field]) => [field, issuer?.[field] ?? (field === 'series' ? 'INV' : '')])),
  )
  const [rates, setRates] = useState(
    Object.entries(issuer?.ratesAbroad ?? {})
      .map(([country, rate]) => `${country} ${rate}`)
      .join('\n'),
  )
  const [footer, setFooter] = useState(issuer?.footer ?? '')
  const [days, setDays] = useState(String(issuer?.paymentDays ?? 14))
  const { busy, error, onSubmit } = useSubmit(async () => {
    await api.changeInvoiceSettings({
      issuer: {
        ...Object.fromEntries(FIELDS.map(([field]) => [field, values[field]?.trim() || null])),
        ratesAbroad: ratesOf(rates),
        footer: footer.trim() || null,
        paymentDays: Number(days),
      },
    })
    refresh('invoice-settings')
    toast('The issuer was saved.')
  })
  return (
    <Card
      right="invoice-settings:write"
      title="Issuer"
      lead={issuer ? 'Invoices that were issued stay as they are.' : 'No invoices are issued before this is filled in.'}
    >
      <form className="stack" onSubmit={onSubmit}>
        <div className="grid-3">
          {FIELDS.map(([field, label, hint]) => (
            <CountryOrText
              key={field}
              name={field}
              label={label}
              hint={hint}
              maxLength={200}
              required={REQUIRED.includes(field)}
              value={values[field] ?? ''}
              onText={(text) => setValues((before) => ({ ...before, [field]: text }))}
            />
          ))}
          <TextField label="Days to pay" type="number" min={0} max={365} value={days} onText={setDays} required />
        </div>
        <TextArea
          label="VAT of consumers abroad"
          hint="A line for each country: AT 20"
          rows={3}
          value={rates}
          onText={setRates}
        />
        <TextField label="Text at the foot of each page" value={footer} maxLength={500} onText={setFooter} />
        {error ? <Fault error={error} /> : null}
        <Allowed right="invoice-settings:write">
          <div className="row">
            <Button type="submit" look="primary" busy={busy}>
              Save issuer
            </Button>
          </div>
        </Allowed>
      </form>
    </Card>
  )
}

function ratesOf(lines: string): Record<string, string> {
  const rows = lines
    .split('\n')
    .map((line) => line.trim().split(/[\s:=]+/))
    .filter(([country]) => country)
  return Object.fromEntries(rows.map(([country = '', rate = '']) => [country.toUpperCase(), rate.replace(/%$/, '')]))
}

function MonthlyCard({ settings: { monthly, monthlySince } }: { settings: InvoiceSettings }) {
  const { busy, error, go } = useAction(async (_signal, on: boolean) => {
    await api.changeInvoiceSettings({ monthly: on })
    refresh('invoice-settings')
  })
  return (
    <Card right="invoice-settings:write" title="Months">
      <Checkbox
        label="Invoice each month"
        hint={`Credits that were added by hand, as they are used, at what a credit is worth.${monthlySince ? ` Since ${monthlySince}.` : ''}`}
        checked={monthly}
        disabled={busy}
        onCheck={(on) => void go(on)}
      />
      {error ? <Fault error={error} /> : null}
    </Card>
  )
}
