import { useState } from 'react'
import { api } from '../../api.ts'
import { AuditExportCard } from '../../extensions/finance/audit-export.tsx'
import { useList } from '../../query.ts'
import { Link, setQuery, useLocation } from '../../router.tsx'
import { Allowed } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Notice } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { FilterBar } from '../../ui/filter-bar.tsx'
import { Facts, Page, When } from '../../ui/page.tsx'
import { Empty, RequestId } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import type { AuditRow } from '../../wire.ts'
import { RangeFields } from '../range-fields.tsx'
import { Sentences } from './review.tsx'

/** Name and example. */
const FIELDS = {
  action: ['Action', 'key, or key.revoke'],
  actor: ['Who', 'An email address'],
  object: ['Object', 'Id of the changed object'],
  token: ['Token', 'The token’s name'],
} as const
const EXACT = ['action', 'actor', 'object', 'token'] as const
const FILTERS = [...EXACT, 'from', 'to'] as const

export function AuditPage() {
  const { query } = useLocation()
  const [open, setOpen] = useState<AuditRow>()
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)?.trim() || undefined]))
  const filtered = FILTERS.some((name) => filter[name])
  const list = useList(`audit/${JSON.stringify(filter)}`, (cursor, signal) =>
    api.audit({ ...filter, cursor, limit: 50 }, signal),
  )
  return (
    <Page title="Audit" lead="Who changed what, when, from where, and what it was before. Rows are only ever added.">
      <FilterBar
        filters={EXACT.map((name) => ({
          name,
          label: FIELDS[name][0],
          value: filter[name],
          field: <ExactField name={name} value={filter[name]} />,
        }))}
        filtered={filtered}
        onDrop={(name) => setQuery({ [name]: undefined })}
        onClear={() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
      >
        <RangeFields from={filter.from} to={filter.to} />
      </FilterBar>
      <TableCard
        label="Audit"
        list={list}
        rowKey={(row) => row.id}
        onOpen={setOpen}
        empty={<Empty icon="audit" title={filtered ? 'No rows match' : 'Nothing has been changed yet'} />}
        columns={[
          {
            head: 'Change',
            main: true,
            cell: (row) => (
              <>
                <button type="button" className="row-button cell-link clamp" onClick={() => setOpen(row)}>
                  {row.sentence}
                </button>
                <span className="cell-sub">
                  {row.action} · <ObjectLink row={row} />
                </span>
              </>
            ),
          },
          { head: 'Time', cell: (row) => <When at={row.at} />, tight: true },
        ]}
      />
      <Allowed right="audit-export:read">
        <AuditExportCard />
      </Allowed>
      {open ? <OneRow row={open} onClose={() => setOpen(undefined)} /> : null}
    </Page>
  )
}

/** Takes effect when it is left or with Enter: half a name finds nothing. */
function ExactField({ name, value = '' }: { name: keyof typeof FIELDS; value: string | undefined }) {
  const [label, placeholder] = FIELDS[name]
  return (
    <form
      key={value}
      onSubmit={(event) => {
        event.preventDefault()
        setQuery({ [name]: String(new FormData(event.currentTarget).get(name) ?? '').trim() })
      }}
    >
      <TextField
        label={label}
        name={name}
        defaultValue={value}
        placeholder={placeholder}
        onBlur={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
      />
    </form>
  )
}

function OneRow({ row, onClose }: { row: AuditRow; onClose: () => void }) {
  const only = (name: (typeof EXACT)[number], value: string) => () => {
    setQuery({ [name]: value })
    onClose()
  }
  return (
    <Notice title={row.action} done="Close" panel onClose={onClose}>
      <p>{row.sentence}</p>
      <Facts
        items={[
          ['Time', <When key="t" at={row.at} />],
          ['Who', row.actor],
          ['Object', <ObjectLink key="o" row={row} />],
          ['From', <code key="f">{row.ip ?? '–'}</code>],
          ['Token', row.token ?? '–'],
          ['Request', row.requestId ? <RequestId key="r" id={row.requestId} /> : '–'],
        ]}
      />
      <BeforeAndAfter row={row} />
      <details className="fold">
        <summary>Show the JSON</summary>
        <Code
          label="Detail"
          text={JSON.stringify({ before: row.before, after: row.after, detail: row.detail }, null, 2)}
          wrap
        />
      </details>
      <div className="row">
        <Button small onClick={only('object', row.object)}>
          All about this object
        </Button>
        <Button small onClick={only('actor', row.actor)}>
          All by {row.actor}
        </Button>
      </div>
    </Notice>
  )
}

function ObjectLink({ row }: { row: AuditRow }) {
  if (row.object.startsWith('req_')) return <RequestId id={row.object} />
  const noun = row.action.split('.')[0]
  const shown = <code>{row.object}</code>
  if (noun === 'account') return <Link to={`/operator/accounts/${encodeURIComponent(row.object)}`}>{shown}</Link>
  if (noun === 'credential') return <Link to="/operator/vendors">{shown}</Link>
  if (noun === 'catalog') return <Link to="/operator/catalog/versions">{shown}</Link>
  return shown
}

/** Rows of older versions, and changes of the catalog, have their sentences only. */
function BeforeAndAfter({ row }: { row: AuditRow }) {
  const names = [...new Set([...Object.keys(row.before), ...Object.keys(row.after)])]
  if (names.length === 0) return row.changes.length > 0 ? <Sentences lines={row.changes} /> : null
  return (
    <table className="plain-table">
      <caption className="sr-only">Before and after</caption>
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {names.map((name) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{memberText(row.before[name])}</td>
            <td>{memberText(row.after[name])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function memberText(value: unknown): string {
  if (value === null || value === undefined) return '–'
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ') || '–'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
