// The invoices of an account, and whom they are made out to.
import { api, type InvoiceFilter } from '../../api.ts'
import { BillingDetailsCard } from '../../pages/billing-details.tsx'
import { Invoices } from '../../pages/invoice-table.tsx'
import { refresh, useQuery } from '../../query.ts'
import { useMay } from '../../session.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'

export function InvoicesPage({ account }: { account: string }) {
  const mayChange = useMay()('billing-details:write', account)
  const details = useQuery(`billing-details/${account}`, (signal) => api.billingDetails(account, signal))
  return (
    <Page title="Invoices" lead="Each payment has an invoice, each refund a credit note.">
      <InvoiceTable of={account} filter={{}} />
      <Loaded query={details}>
        {(data) => (
          <BillingDetailsCard
            key={JSON.stringify(data)}
            details={data}
            missing={data.missing}
            mayChange={mayChange}
            lead={
              data.missing === null
                ? 'The recipient of invoices. Issued invoices do not change.'
                : 'Nothing can be bought before these are complete.'
            }
            save={async (details) => {
              await api.changeBillingDetails(account, details)
              refresh('billing-details/', 'sales/')
            }}
          />
        )}
      </Loaded>
    </Page>
  )
}

/** Of one account, or of all with the name of the customer. */
export function InvoiceTable({ of, filter }: { of: string | undefined; filter: InvoiceFilter }) {
  return (
    <Invoices
      name={`invoices/${of ?? 'all'}/${JSON.stringify(filter)}`}
      ask={(cursor, signal) => api.invoices(of, { ...filter, cursor, limit: 50 }, signal)}
      file={({ account, id }) => api.invoiceFile(account, id)}
      hasCustomer={of === undefined}
      isFiltered={Object.values(filter).some(Boolean)}
    />
  )
}
