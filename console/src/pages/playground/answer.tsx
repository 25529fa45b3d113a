import { useState } from 'react'
import { formatAny, formatDate, formatMonth, formatWhole } from '../../format.ts'
import { BarList, Chart } from '../../ui/chart.tsx'
import { Code } from '../../ui/code.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Facts } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { barsOfTable, type SeriesShape, shapesOf, type TableShape } from './shape.ts'
import { SocialView, socialShape } from './social-view.tsx'

export function Answer({ body }: { body: unknown }) {
  const social = socialShape(body)
  const shapes = shapesOf(body)
  const charted = shapes.tables.flatMap((table) => {
    const bars = barsOfTable(table)
    return bars ? [{ table, bars }] : []
  })
  const hasChart = !social && shapes.series.length + shapes.bars.length + shapes.figures.length + charted.length > 0
  const rows = shapes.tables.reduce((sum, table) => sum + table.rows.length, 0)
  const tabs = [
    social && { name: 'read', label: 'Read', content: () => <SocialView shape={social} /> },
    hasChart && {
      name: 'chart',
      label: 'Chart',
      content: () => (
        <div className="stack">
          {shapes.figures.map((figures, index) => (
            <div key={`${figures.title}${index}`} className="stack-tight">
              {figures.title ? <h3>{figures.title}</h3> : null}
              <Facts
                items={figures.bars.map(({ name, value }) => [name, <b key={name}>{formatAny(value)}</b>] as const)}
              />
            </div>
          ))}
          {shapes.series.map((series, index) => (
            <SeriesChart key={`${series.title}${index}`} series={series} />
          ))}
          {shapes.bars.map((bars, index) => (
            <div key={`${bars.title}${index}`} className="stack-tight">
              {bars.title ? <h3>{bars.title}</h3> : null}
              <BarList
                label={bars.title || 'Values'}
                rows={bars.bars.map((bar) => ({ ...bar, shown: formatAny(bar.value) }))}
              />
            </div>
          ))}
          {charted.map(({ table, bars }, index) => (
            <TableChart key={`${table.title}${index}`} table={table} name={bars.name} numbers={bars.numbers} />
          ))}
        </div>
      ),
    },
    rows > 0 && {
      name: 'table',
      label: `Table (${formatWhole(rows)})`,
      content: () => (
        <div className="stack">
          {shapes.tables.map((table, index) => (
            <AnyTable key={`${table.title}${index}`} table={table} />
          ))}
        </div>
      ),
    },
    {
      name: 'json',
      label: 'JSON',
      content: () => <Code label="Answer as JSON" text={JSON.stringify(body, null, 2)} />,
    },
  ].filter((tab) => tab !== false && tab !== undefined)
  return <Tabs label="Answer" tabs={tabs} />
}

function SeriesChart({ series }: { series: SeriesShape }) {
  const monthly = series.labels.every((label) => label.endsWith('-01'))
  return (
    <Chart
      title={series.title || 'Over time'}
      kind="lines"
      labels={series.labels}
      axis={series.labels.map(monthly ? formatMonth : formatDate)}
      format={formatAny}
      height={240}
      series={series.lines.slice(0, 6)}
    />
  )
}

function TableChart({ table, name, numbers }: { table: TableShape; name: string; numbers: readonly string[] }) {
  const [chosen, setChosen] = useState(numbers[0] ?? '')
  return (
    <div className="stack">
      {numbers.length > 1 ? (
        <div className="half">
          <SelectField label="Show" value={chosen} onText={setChosen} options={numbers} />
        </div>
      ) : (
        <h3>{chosen}</h3>
      )}
      <BarList
        label={chosen}
        rows={unique(
          table.rows.slice(0, 20).map((row) => ({ name: String(row[name] ?? '–'), value: Number(row[chosen] ?? 0) })),
        )}
      />
    </div>
  )
}

/** Two rows may share a name; a list needs each to be told apart. */
function unique(rows: { name: string; value: number }[]) {
  const seen = new Map<string, number>()
  return rows.map((row) => {
    const count = (seen.get(row.name) ?? 0) + 1
    seen.set(row.name, count)
    return { name: count > 1 ? `${row.name} (${count})` : row.name, value: row.value, shown: formatAny(row.value) }
  })
}

function AnyTable({ table }: { table: TableShape }) {
  return (
    <div className="stack-tight">
      {table.title ? <h3>{table.title}</h3> : null}
      <div className="table-frame any-table" tabIndex={0} role="region" aria-label={table.title || 'Rows'}>
        <table className="plain-table">
          <thead>
            <tr>
              {table.columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row, index) => (
              <tr key={index}>
                {table.columns.map((column) => (
                  <td key={column} className={typeof row[column] === 'number' ? 'cell-right' : undefined}>
                    {cellText(row[column])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '–'
  if (typeof value === 'number') return formatAny(value)
  if (typeof value === 'object') return JSON.stringify(value).slice(0, 120)
  return String(value)
}
