// The invoices of an account, and whom they are made out to.
import { useState } from 'react'
import { api, type InvoiceFilter } from '../../api.ts'
import { CsvButton } from '../../pages/csv.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { CountryOrText } from '../../ui/field.tsx'
import { Badge, Card, Name, Page, When } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { BillingDetails, Invoice } from '../../wire.ts'

const KINDS: Readonly<Record<Invoice['kind'], string>> = {
  payment: 'Invoice',
  month: 'Monthly invoice',
  credit_note: 'Credit note',
}

export function InvoicesPage({ account }: { account: string }) {
  const details = useQuery(`billing-details/${account}`, (signal) => api.billingDetails(account, signal))
  return (
    <Page title="Invoices" lead="Each payment has an invoice, each refund a credit note.">
      <InvoiceTable of={account} filter={{}} />
      <Loaded query={details}>
        {(data) => <BillingDetailsCard key={JSON.stringify(data)} account={account} details={data} />}
      </Loaded>
    </Page>
  )
}

/** Of one account, or of all with the name of the customer. */
export function InvoiceTable({ of, filter }: { of: string | undefined; filter: InvoiceFilter }) {
  const list = useList(`invoices/${of ?? 'all'}/${JSON.stringify(filter)}`, (cursor, signal) =>
    api.invoices(of, { ...filter, cursor, limit: 50 }, signal),
  )
  return (
    <TableCard
      label="Invoices"
      list={list}
      rowKey={(row) => row.id}
      empty={
        <Empty icon="statement" title="There are no invoices">
          <p>
            {Object.values(filter).some(Boolean)
              ? 'Try a longer period or all kinds.'
              : 'Each payment gets an invoice once the issuer is set.'}
          </p>
        </Empty>
      }
      columns={[
        { head: 'Number', main: true, cell: (row) => row.number },
        {
          head: 'Kind',
          cell: (row) => <Badge tone={row.kind === 'credit_note' ? 'warn' : 'calm'}>{KINDS[row.kind]}</Badge>,
        },
        ...(of === undefined ? [{ head: 'Customer', cell: (row: Invoice) => <Name text={row.customer} /> }] : []),
        { head: 'Issued', tight: true, cell: (row) => <When at={row.issuedAt} /> },
        { head: 'VAT', right: true, wideOnly: true, cell: (row) => `${row.tax} ${row.currency}` },
        { head: 'Total', right: true, cell: (row) => `${row.gross} ${row.currency}` },
        {
          head: 'File',
          tight: true,
          cell: (row) => (
            <CsvButton label="PDF" fetchIt={() => api.invoiceFile(row.account, row.id)} name={`${row.number}.pdf`} />
          ),
        },
      ]}
    />
  )
}

const FIELDS = [
  ['company', 'Company'],
  ['name', 'Name'],
  ['street', 'Street and number'],
  ['postcode', 'Postcode'],
  ['city', 'City'],
  ['country', 'Country'],
  ['vatId', 'VAT id'],
  ['email', 'Email'],
] as const
/** As the form names it. */
export const detailName = (field: string) =>
  field === 'name' ? 'Company or name' : (FIELDS.find(([name]) => name === field)?.[1] ?? field)
const HINTS: Partial<Record<(typeof FIELDS)[number][0], string>> = {
  name: 'Of a person; a company may leave it out.',
  vatId: 'With the letters of the country, such as DE123456789.',
}

function BillingDetailsCard({ account, details }: { account: string; details: BillingDetails }) {
  const mayChange = useMay()('billing-details:write', account)
  const [values, setValues] = useState(() => Object.fromEntries(FIELDS.map(([field]) => [field, details[field] ?? ''])))
  const { busy, error, onSubmit } = useSubmit(async () => {
    await api.changeBillingDetails(
      account,
      Object.fromEntries(FIELDS.map(([field]) => [field, values[field]?.trim() || null])),
    )
    refresh('billing-details/', 'sales/')
    toast('The billing details were saved.')
  })
  return (
    <Card
      title="Billing details"
      lead={
        details.missing === null
          ? 'The recipient of invoices. Issued invoices do not change.'
          : 'Nothing can be bought before these are complete.'
      }
    >
      <form className="stack" onSubmit={onSubmit}>
        <div className="grid-3">
          {FIELDS.map(([field, label]) => (
            <CountryOrText
              key={field}
              name={field}
              label={label}
              hint={HINTS[field]}
              type={field === 'email' ? 'email' : 'text'}
              value={values[field] ?? ''}
              maxLength={200}
              disabled={!mayChange}
              fault={details.missing === field ? 'This is missing.' : undefined}
              onText={(text) => setValues((before) => ({ ...before, [field]: text }))}
            />
          ))}
        </div>
        {error ? <Fault error={error} /> : null}
        {mayChange ? (
          <div className="row">
            <Button type="submit" look="primary" busy={busy}>
              Save
            </Button>
          </div>
        ) : null}
      </form>
    </Card>
  )
}
