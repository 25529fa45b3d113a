// Bars and lines over time, drawn as SVG in the page's own colours. Pointer and arrow keys move a cursor whose values
// are shown beside the legend and announced.
import { type CSSProperties, type KeyboardEvent, type PointerEvent, useEffect, useId, useRef, useState } from 'react'
import { Link, navigate } from '../router.tsx'
import { colorsOf, type SeriesColor } from './colors.ts'
import { niceTicks, pickLabels } from './scale.ts'

interface Series {
  name: string
  values: readonly (number | null)[]
  /** For what is no name: by itself a series has the colour of its name, which is the same in every chart. */
  color?: SeriesColor
}
type Colored = Series & { color: SeriesColor }

/** The stylesheet draws with this; React's types know no properties of our own. */
const inColor = ({ color }: Colored) => ({ '--series': `var(--series-${color})` }) as CSSProperties

function colored(series: readonly Series[]): Colored[] {
  const named = series.filter(({ color }) => color === undefined).map(({ name }) => name)
  const colors = new Map(colorsOf(named).map((color, at) => [named[at], color]))
  return series.map((one) => ({ ...one, color: one.color ?? colors.get(one.name) ?? 'rest' }))
}

export interface ChartProps {
  title: string
  /** One per point, in full: read with the values. */
  labels: readonly string[]
  /** The same, short enough for the axis. */
  axis?: readonly string[]
  series: readonly Series[]
  kind: 'bars' | 'lines'
  format: (value: number) => string
  height?: number
  /** Where a point leads: to the calls behind it. */
  to?: ((index: number) => string) | undefined
}

/** Room for an axis label of so many characters. */
const CHARACTER = 7
const RIGHT = 6
const TOP = 8
const BOTTOM = 22

export function Chart(props: ChartProps) {
  const { title, labels, axis = labels, series: given, kind, format, height = 190, to } = props
  const series = colored(given)
  const frame = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(600)
  const [cursor, setCursor] = useState<number>()
  const id = useId()

  useEffect(() => {
    const element = frame.current
    if (!element) return
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(200, entry.contentRect.width)))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  const count = labels.length
  const sums = labels.map((_, index) => series.reduce((sum, one) => sum + (one.values[index] ?? 0), 0))
  const tops = kind === 'bars' ? sums : series.flatMap((one) => one.values.map((value) => value ?? 0))
  const ticks = niceTicks(Math.max(0, ...tops), 4, tops.every(Number.isInteger))
  const ceiling = ticks.at(-1) ?? 1
  const left = 12 + CHARACTER * Math.max(...ticks.map((tick) => format(tick).length))
  const plotWidth = width - left - RIGHT
  const plotHeight = height - TOP - BOTTOM
  const slot = plotWidth / Math.max(1, count)
  const x = (index: number) => left + slot * (index + 0.5)
  const y = (value: number) => TOP + plotHeight * (1 - value / ceiling)

  const point = (event: PointerEvent<SVGSVGElement>) => {
    const offset = event.clientX - event.currentTarget.getBoundingClientRect().left
    const index = Math.floor((offset - left) / slot)
    setCursor(index >= 0 && index < count ? index : undefined)
  }
  const open = () => {
    if (to && cursor !== undefined) navigate(to(cursor))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') open()
    const steps: Record<string, number> = {
      ArrowRight: Math.min(count - 1, (cursor ?? -1) + 1),
      ArrowLeft: Math.max(0, (cursor ?? count) - 1),
      Home: 0,
      End: count - 1,
    }
    const next = steps[event.key]
    if (next === undefined) return
    event.preventDefault()
    setCursor(next)
  }

  const total = series.map((one) => one.values.reduce<number>((sum, value) => sum + (value ?? 0), 0))
  const summary = `${title}, ${labels[0] ?? ''} to ${labels.at(-1) ?? ''}. Use the arrow keys to read single values${to ? ', and Enter to see the calls behind one' : ''}.`
  const read = (one: Colored) => (cursor === undefined ? undefined : one.values[cursor])

  return (
    <figure className="chart">
      <figcaption className="chart-at">{cursor === undefined ? title : labels[cursor]}</figcaption>
      <div
        ref={frame}
        className="chart-frame"
        tabIndex={0}
        role="group"
        aria-roledescription="chart"
        aria-label={summary}
        onKeyDown={onKeyDown}
        onBlur={() => setCursor(undefined)}
      >
        <svg
          width={width}
          height={height}
          aria-hidden="true"
          className={to && cursor !== undefined ? 'chart-open' : undefined}
          onPointerMove={point}
          onPointerDown={point}
          // A finger that taps wants to read the value.
          onPointerUp={(event) => {
            if (event.pointerType === 'mouse' && event.button === 0) open()
          }}
          // A finger leaves with every tap; what it asked for stays in sight until the next one.
          onPointerLeave={(event) => {
            if (event.pointerType !== 'touch') setCursor(undefined)
          }}
        >
          {ticks.map((tick) => (
            <g key={tick}>
              <line className="chart-grid" x1={left} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
              <text className="chart-text" x={left - 8} y={y(tick) + 4} textAnchor="end">
                {format(tick)}
              </text>
            </g>
          ))}
          {pickLabels(axis, Math.floor(plotWidth / 74)).map(({ index, label, anchor }) => (
            <text key={index} className="chart-text" x={x(index)} y={height - 5} textAnchor={anchor}>
              {label}
            </text>
          ))}
          {cursor === undefined ? null : (
            <rect className="chart-cursor" x={x(cursor) - slot / 2} y={TOP} width={slot} height={plotHeight} />
          )}
          {kind === 'bars'
            ? labels.map((label, index) => {
                let below = 0
                return series.map((one) => {
                  const value = one.values[index] ?? 0
                  const from = below
                  below += value
                  if (value <= 0) return null
                  const gap = Math.min(slot * 0.28, 6)
                  return (
                    <rect
                      key={`${label}-${one.name}`}
                      className="series"
                      style={inColor(one)}
                      x={x(index) - slot / 2 + gap / 2}
                      width={Math.max(1, slot - gap)}
                      y={y(below)}
                      height={Math.max(1, y(from) - y(below))}
                      rx={Math.min(2, slot / 5)}
                    />
                  )
                })
              })
            : series.map((one) => (
                <g key={one.name} className="series" style={inColor(one)}>
                  <path className="chart-line" d={linePath(one.values, x, y)} />
                  {one.values.map((value, index) =>
                    value !== null && (index === cursor || isLone(one.values, index)) ? (
                      <circle key={labels[index]} className="chart-point" cx={x(index)} cy={y(value)} r={3.5} />
                    ) : null,
                  )}
                </g>
              ))}
        </svg>
      </div>
      <p className="sr-only" role="status" id={id}>
        {cursor === undefined
          ? ''
          : `${labels[cursor]}: ${series.map((one) => `${one.name} ${read(one) === null || read(one) === undefined ? 'none' : format(read(one) as number)}`).join(', ')}`}
      </p>
      <div className="chart-legend">
        {series.map((one, index) => {
          const value = read(one)
          return (
            <span key={one.name} className="chart-key">
              <span className="chart-dot series" style={inColor(one)} aria-hidden="true" />
              {one.name}
              {cursor !== undefined ? (
                <b>{value === null || value === undefined ? '–' : format(value)}</b>
              ) : kind === 'bars' ? (
                <b>{format(total[index] ?? 0)}</b>
              ) : null}
            </span>
          )
        })}
      </div>
    </figure>
  )
}

/** A point without neighbours would not show as a line, so it gets a dot. */
function isLone(values: readonly (number | null)[], index: number): boolean {
  return (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null
}

/** A missing value breaks the line. */
function linePath(
  values: readonly (number | null)[],
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  let path = ''
  let drawing = false
  for (const [index, value] of values.entries()) {
    if (value === null) {
      drawing = false
      continue
    }
    path += `${drawing ? 'L' : 'M'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`
    drawing = true
  }
  return path
}

interface Bar {
  name: string
  value: number
  shown: string
  note?: string
  to?: string
  color?: SeriesColor
}

/**
 * Shares of a whole as labelled bars, which are easier to read than a pie chart. `named`: in the colours that the names
 * have in charts.
 */
export function BarList({ label, rows, named = false }: { label: string; rows: readonly Bar[]; named?: boolean }) {
  const top = Math.max(...rows.map((row) => Math.abs(row.value)), 0)
  const colors = named
    ? colored(rows.map(({ name, color }) => ({ name, values: [], ...(color ? { color } : {}) })))
    : []
  return (
    <ul className="bars" aria-label={label}>
      {rows.map((row, index) => (
        <li key={row.name} style={colors[index] && inColor(colors[index])}>
          <span className="bars-name">{row.to ? <Link to={row.to}>{row.name}</Link> : row.name}</span>
          <span className="bars-value">
            {row.shown}
            {row.note ? <span className="bars-note"> {row.note}</span> : null}
          </span>
          <span className="bars-track" aria-hidden="true">
            <span
              style={{ width: `${top > 0 && row.value !== 0 ? Math.max(0.5, (Math.abs(row.value) / top) * 100) : 0}%` }}
            />
          </span>
        </li>
      ))}
    </ul>
  )
}
