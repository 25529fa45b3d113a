// All invoices with filters and a ZIP, who issues them, and whether months are invoiced.
import { api, type InvoiceFilter } from '../../api.ts'
import { CsvButton } from '../../pages/csv.tsx'
import { IssuerCard } from '../../pages/issuer.tsx'
import { RangeFields } from '../../pages/range-fields.tsx'
import { refresh, useQuery } from '../../query.ts'
import { setQuery, useLocation } from '../../router.tsx'
import { Allowed, AllowedFields, useMay } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Checkbox, SearchField, SelectField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import type { InvoiceSettings } from '../../wire.ts'
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
              <IssuerCard
                key={JSON.stringify(data.issuer)}
                issuer={data.issuer}
                right="invoice-settings:write"
                save={async (issuer) => {
                  await api.changeInvoiceSettings({ issuer })
                  refresh('invoice-settings')
                }}
              />
              {data.issuer ? <MonthlyCard settings={data} /> : null}
            </AllowedFields>
          )}
        </Loaded>
      </Allowed>
    </Page>
  )
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
