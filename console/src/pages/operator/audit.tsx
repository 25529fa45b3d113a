import { api } from '../../api.ts'
import { useList } from '../../query.ts'
import { Page, When } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'

export function AuditPage() {
  const list = useList('audit', (cursor, signal) => api.audit({ cursor, limit: 50 }, signal))
  return (
    <Page title="Audit" lead="Who changed what, when, and from where. Rows are only ever added.">
      <TableCard
        label="Audit"
        list={list}
        rowKey={(row) => row.id}
        empty={<Empty icon="audit" title="Nothing has been changed yet" />}
        columns={[
          { head: 'Action', main: true, cell: (row) => <Named name={row.action} sub={row.object} /> },
          { head: 'Who', cell: (row) => row.actor, tight: true },
          { head: 'Time', cell: (row) => <When at={row.at} />, tight: true },
          { head: 'From', cell: (row) => <code>{row.ip ?? '–'}</code>, tight: true },
          { head: 'Detail', cell: (row) => <Detail value={row.detail} />, wideOnly: true },
        ]}
      />
    </Page>
  )
}

function Detail({ value }: { value: unknown }) {
  if (value === null || value === undefined || value === '') return <span className="muted">–</span>
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (text === '{}') return <span className="muted">–</span>
  return (
    <code className="clamp" title={text}>
      {text}
    </code>
  )
}
