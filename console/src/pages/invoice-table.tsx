// A list of invoices and credit notes, each with its file.
import { useList } from '../query.ts'
import { Badge, Name, When } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import type { Invoice, Page } from '../wire.ts'
import { CsvButton } from './csv.tsx'

const KINDS: Readonly<Record<Invoice['kind'], string>> = {
  payment: 'Invoice',
  month: 'Monthly invoice',
  credit_note: 'Credit note',
}

interface InvoicesProps {
  readonly name: string
  readonly ask: (cursor: string | undefined, signal?: AbortSignal) => Promise<Page<Invoice>>
  readonly file: (invoice: Invoice) => Promise<Blob>
  /** Whether they are of several customers. */
  readonly hasCustomer: boolean
  readonly isFiltered?: boolean
}

export function Invoices({ name, ask, file, hasCustomer, isFiltered = false }: InvoicesProps) {
  const list = useList(name, ask)
  return (
    <TableCard
      label="Invoices"
      list={list}
      rowKey={(row) => row.id}
      empty={
        <Empty icon="statement" title="There are no invoices">
          <p>
            {isFiltered ? 'Try a longer period or all kinds.' : 'Each payment gets an invoice once the issuer is set.'}
          </p>
        </Empty>
      }
      columns={[
        { head: 'Number', main: true, cell: (row) => row.number },
        {
          head: 'Kind',
          cell: (row) => <Badge tone={row.kind === 'credit_note' ? 'warn' : 'calm'}>{KINDS[row.kind]}</Badge>,
        },
        ...(hasCustomer ? [{ head: 'Customer', cell: (row: Invoice) => <Name text={row.customer} /> }] : []),
        { head: 'Issued', tight: true, cell: (row) => <When at={row.issuedAt} /> },
        { head: 'VAT', right: true, wideOnly: true, cell: (row) => `${row.tax} ${row.currency}` },
        { head: 'Total', right: true, cell: (row) => `${row.gross} ${row.currency}` },
        {
          head: 'File',
          tight: true,
          cell: (row) => <CsvButton label="PDF" fetchIt={() => file(row)} name={`${row.number}.pdf`} />,
        },
      ]}
    />
  )
}
