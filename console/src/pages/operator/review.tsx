import { useState } from 'react'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { diffLines, hunksOf } from './diff.ts'

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

interface ChangesProps {
  /** The document that is in force, and the one that would be. */
  before: unknown
  after: unknown
  /** In sentences, as the server says them. */
  changes: readonly string[]
}

/** Sentences; the lines of the document are one click further. */
export function Changes({ before, after, changes }: ChangesProps) {
  const [open, setOpen] = useState(false)
  return (
    <>
      {changes.length ? <Sentences lines={changes} /> : <p className="muted">Nothing differs.</p>}
      <details className="fold" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Show the JSON</summary>
        {open ? <Lines before={before} after={after} /> : null}
      </details>
    </>
  )
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
