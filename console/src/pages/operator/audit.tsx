import { useState } from 'react'
import { api } from '../../api.ts'
import { useList } from '../../query.ts'
import { Link, setQuery, useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Notice } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Facts, Page, When } from '../../ui/page.tsx'
import { Empty, RequestId } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import type { AuditRow } from '../../wire.ts'
import { Sentences } from './review.tsx'

const FILTERS = ['action', 'actor', 'object'] as const

export function AuditPage() {
  const { query } = useLocation()
  const [open, setOpen] = useState<AuditRow>()
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)?.trim() || undefined]))
  const filtered = FILTERS.some((name) => filter[name])
  const list = useList(`audit/${JSON.stringify(filter)}`, (cursor, signal) =>
    api.audit({ ...filter, cursor, limit: 50 }, signal),
  )
  return (
    <Page title="Audit" lead="Who changed what, when, and from where. Rows are only ever added.">
      <div className="filters">
        <ExactField name="action" label="Action" value={filter.action} placeholder="key, or key.revoke" />
        <ExactField name="actor" label="Who" value={filter.actor} placeholder="An e-mail address" />
        <ExactField name="object" label="Object" value={filter.object} placeholder="The id it was done to" />
        {filtered ? (
          <Button onClick={() => setQuery({ action: undefined, actor: undefined, object: undefined })}>Clear</Button>
        ) : null}
      </div>
      <TableCard
        label="Audit"
        list={list}
        rowKey={(row) => row.id}
        empty={<Empty icon="audit" title={filtered ? 'No rows match' : 'Nothing has been changed yet'} />}
        columns={[
          {
            head: 'Action',
            main: true,
            cell: (row) => (
              <>
                <button type="button" className="text-button" onClick={() => setOpen(row)}>
                  {row.action}
                </button>
                <span className="cell-sub">
                  <ObjectLink row={row} />
                </span>
              </>
            ),
          },
          { head: 'Who', cell: (row) => row.actor, tight: true },
          { head: 'Time', cell: (row) => <When at={row.at} />, tight: true },
          { head: 'From', cell: (row) => <code>{row.ip ?? '–'}</code>, tight: true },
          { head: 'Detail', cell: (row) => <Detail value={row.detail} />, wideOnly: true },
        ]}
      />
      {open ? <OneRow row={open} onClose={() => setOpen(undefined)} /> : null}
    </Page>
  )
}

/** Takes effect when it is left or with Enter: half a name finds nothing. */
function ExactField(props: {
  name: (typeof FILTERS)[number]
  label: string
  value: string | undefined
  placeholder: string
}) {
  const { name, label, value = '', placeholder } = props
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
  const only = (name: (typeof FILTERS)[number], value: string) => () => {
    setQuery({ [name]: value })
    onClose()
  }
  return (
    <Notice title={row.action} done="Close" wide onClose={onClose}>
      <Facts
        items={[
          ['Time', <When key="t" at={row.at} />],
          ['Who', row.actor],
          ['Object', <ObjectLink key="o" row={row} />],
          ['From', <code key="f">{row.ip ?? '–'}</code>],
          ['Request', row.requestId ? <RequestId key="r" id={row.requestId} /> : '–'],
        ]}
      />
      <Sentences lines={sentencesOf(row.detail)} />
      <details className="fold">
        <summary>Show the JSON</summary>
        <Code label="Detail" text={JSON.stringify(row.detail, null, 2)} wrap />
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
  if (noun === 'catalog') return <Link to="/operator/catalogue/versions">{shown}</Link>
  return shown
}

function Detail({ value }: { value: AuditRow['detail'] }) {
  const lines = sentencesOf(value)
  const [first] = lines
  if (first === undefined) return <span className="muted">–</span>
  return (
    <span className="clamp" title={lines.join('\n')}>
      {first} {lines.length > 1 ? <span className="muted">and {lines.length - 1} more</span> : null}
    </span>
  )
}

/** Changes of the catalog and of alerts are sentences already; of anything else each field is one. Fingerprints say nothing to a reader. */
function sentencesOf(detail: AuditRow['detail']): string[] {
  return Object.entries(detail).flatMap(([name, value]) => {
    if (name === 'digest' || value === null || value === undefined) return []
    if (name === 'changes' && Array.isArray(value)) return value.map(String)
    const words = inWords(value)
    return words === '' ? [] : [`${nameInWords(name)}: ${words}`]
  })
}

/** "overlapSeconds" becomes "Overlap seconds". */
function nameInWords(name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function inWords(value: unknown): string {
  if (Array.isArray(value)) return value.map(inWords).join(', ')
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).filter(([, member]) => member !== null && member !== undefined)
  return members.map(([name, member]) => `${nameInWords(name).toLowerCase()} ${inWords(member)}`).join(', ')
}
