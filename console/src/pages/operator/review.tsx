import { useState } from 'react'
import {
  listChanges,
  marginPercent,
  type PriceChange,
  type RateChange,
} from '../../../../src/catalog/change-sentences.ts'
import { reviewGuardrails } from '../../../../src/extensions/guardrails/review.ts'
import { reviewProducts } from '../../../../src/extensions/products/review.ts'
import { reviewSales } from '../../../../src/extensions/sales/review.ts'
import { ApiError, api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { refresh } from '../../query.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { type Applied, type Catalog, type CatalogDocument, type CatalogModel, unitRow } from '../../wire.ts'
import { diffLines, hunksOf } from './diff.ts'

const TABLES_MAX = 100
/** Of sections of extensions. */
const REVIEWS = { products: reviewProducts, sales: reviewSales, guardrails: reviewGuardrails }

/** What a change of the catalog does, before it is applied. */
export function Review({
  notes = [],
  belowCostNotes = [],
  apply,
  onClose,
  ...changes
}: ChangesProps & {
  /** What should be known besides. */
  notes?: readonly string[]
  /** What would be sold for less than it costs. */
  belowCostNotes?: readonly string[]
  apply: (note: string) => Promise<void>
  onClose: () => void
}) {
  const [note, setNote] = useState('')
  return (
    <FormDialog
      title="What will change"
      wide
      action={belowCostNotes.length > 0 ? 'Apply, and sell below cost' : 'Apply'}
      cancel="Back to editing"
      run={() => apply(note.trim())}
      onClose={onClose}
    >
      {belowCostNotes.map((line) => (
        <Note key={line} tone="warn">
          {line}
        </Note>
      ))}
      {notes.map((line) => (
        <Note key={line}>{line}</Note>
      ))}
      <Changes {...changes} />
      <TextField label="Note" value={note} onText={setNote} maxLength={200} placeholder="Reason, for the audit log" />
    </FormDialog>
  )
}

export function catalogChanged(): void {
  refresh('catalog', 'public-catalog', 'vendors', 'plans')
}

/** Without changes there is no new version. */
type Saved = Pick<Applied, 'version' | 'changes'>

/** Says that a change applies, and takes it back if it is still the last one. */
export function toastSaved({ version, changes }: Saved, text = `Saved as version ${version}.`): void {
  catalogChanged()
  const undo = async () => {
    const current = await api.catalog()
    if (current.version !== version) throw new Error(`Version ${current.version} has followed: see Catalog › Versions.`)
    await api.rollBackCatalog(version - 1)
    toast(`Version ${version} is undone.`)
    catalogChanged()
  }
  toast(text, version > 1 && changes.length > 0 ? { action: { right: 'catalog:write', label: 'Undo', run: undo } } : {})
}

/** What is proposed for the catalog, and what is said when it applies. */
interface Proposal {
  after: CatalogDocument
  text: string
}

/** Forms show at its field what is wrong with a document. */
export function requireFit<Check extends { problems: readonly string[] }>(check: Check, document: unknown): Check {
  if (check.problems.length === 0) return check
  throw Object.assign(new ApiError(400, check.problems.join('\n')), { sent: document })
}

/** Nothing applies before it was checked and seen; `review` shows it. */
export function useProposal(catalog: Catalog, onApplied = () => {}) {
  const [proposal, setProposal] = useState<Proposal>()
  const { document, version } = catalog
  return {
    async propose(next: Proposal) {
      requireFit(await api.checkCatalog(next.after), next.after)
      setProposal(next)
    },
    review: proposal ? (
      <Review
        before={document}
        after={proposal.after}
        belowCostNotes={belowCost(document, proposal.after)}
        apply={async (note) => {
          toastSaved(await api.applyCatalog(proposal.after, note || proposal.text, version), proposal.text)
          onApplied()
        }}
        onClose={() => setProposal(undefined)}
      />
    ) : null,
  }
}

/** The document with other fields of one model or data endpoint. */
export function withModel(document: CatalogDocument, uid: string, fields: Partial<CatalogModel>): CatalogDocument {
  const shelf = Object.hasOwn(document.models, uid) ? 'models' : 'endpoints'
  return { ...document, [shelf]: { ...document[shelf], [uid]: { ...document[shelf][uid], ...fields } } }
}

function belowCost(before: unknown, after: unknown): string[] {
  const prices = listChanges(before, after).filter((one) => typeof one !== 'string')
  return prices
    .filter(({ rates }) => rates.some(({ now, cost }) => now !== undefined && cost !== undefined && now < cost))
    .map(({ subject }) => `${subject} would be sold for less than it costs.`)
}

interface ChangesProps {
  /** The document that is in force, and the one that would be. */
  before: unknown
  after: unknown
}

/** Prices as tables, all else in sentences; the lines of the document are one click further. */
export function Changes({ before, after }: ChangesProps) {
  const [open, setOpen] = useState(false)
  const changes = listChanges(before, after, REVIEWS)
  const prices = changes.filter((one) => typeof one !== 'string')
  const lines = changes.flatMap((one) =>
    typeof one === 'string' ? [one] : one.more ? [`${one.subject}: ${one.more}`] : [],
  )
  return (
    <>
      {changes.length ? null : <p className="muted">Nothing differs.</p>}
      {prices.slice(0, TABLES_MAX).map((one) => (
        <section key={one.subject} className="stack-tight">
          <h3 className="field-label">{one.subject}</h3>
          <Rates of={one} />
        </section>
      ))}
      {prices.length > TABLES_MAX ? (
        <p className="muted">{prices.length - TABLES_MAX} more with other prices.</p>
      ) : null}
      {lines.length ? <Sentences lines={lines} /> : null}
      <details className="fold" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Show the JSON</summary>
        {open ? <Lines before={before} after={after} /> : null}
      </details>
    </>
  )
}

/** "unit · was · new · cost · margin". */
function Rates({ of: { subject, rates } }: { of: PriceChange }) {
  const isTiered = rates.some(({ tier }) => tier !== '')
  return (
    <Table
      label={`Prices of ${subject}`}
      rows={rates}
      rowKey={({ tier, unit }) => `${tier} ${unit}`}
      columns={[
        isTiered && { head: 'For', cell: ({ tier }) => (tier === 'else' ? 'everything else' : tier) },
        { head: 'Unit', main: true, cell: ({ unit }) => unitRow(unit).rate },
        { head: 'Was', right: true, cell: ({ was }) => <Rate value={was} /> },
        { head: 'New', right: true, cell: ({ now }) => <Rate value={now} /> },
        { head: 'Cost', right: true, cell: (row) => <Rate value={row.now === undefined ? undefined : row.cost} /> },
        { head: 'Margin', right: true, tight: true, cell: (row) => <Margin of={row} /> },
      ]}
    />
  )
}

function Rate({ value }: { value: bigint | undefined }) {
  return value === undefined ? <span className="muted">–</span> : formatCredits(value)
}

export function marginOf({ now, cost }: RateChange): number | undefined {
  return now === undefined || cost === undefined ? undefined : marginPercent(now, cost)
}

function Margin({ of }: { of: RateChange }) {
  const percent = marginOf(of)
  if (percent === undefined) return <span className="muted">–</span>
  const text = `${percent.toFixed(1).replace('-', '−')} %`
  return percent < 0 ? <b className="tone-bad">{text}</b> : text
}

export function Sentences({ lines }: { lines: readonly string[] }) {
  return (
    <ul className="change-list">
      {lines.map((line, index) => (
        <li key={index}>{line}</li>
      ))}
    </ul>
  )
}

function Lines({ before, after }: { before: unknown; after: unknown }) {
  const linesOf = (document: unknown) => JSON.stringify(document, null, 2).split('\n')
  const hunks = hunksOf(diffLines(linesOf(before), linesOf(after)))
  return (
    <div className="diff" tabIndex={0} role="region" aria-label="Changed lines">
      {hunks.map((hunk) => (
        <div key={hunk.line} className="diff-hunk">
          <p className="diff-at">line {hunk.line}</p>
          {hunk.lines.map((line, index) => (
            <pre key={index} className={`diff-${line.kind}`}>
              <span aria-hidden="true">{line.kind === 'new' ? '+' : line.kind === 'gone' ? '−' : ' '}</span>
              {line.kind === 'same' ? null : (
                <span className="sr-only">{line.kind === 'new' ? 'added ' : 'removed '}</span>
              )}
              {line.text}
            </pre>
          ))}
        </div>
      ))}
    </div>
  )
}
