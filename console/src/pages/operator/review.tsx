import { useState } from 'react'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { diffLines, hunksOf } from './diff.ts'

/** What a change of the catalog does, line by line, before it is applied. */
export function Review({
  before,
  after,
  changes,
  notes = [],
  losses = [],
  apply,
  onClose,
}: {
  before: string
  after: string
  changes: readonly string[]
  /** What should be known besides. */
  notes?: readonly string[]
  /** What would be sold for less than it costs. */
  losses?: readonly string[]
  apply: (note: string) => Promise<void>
  onClose: () => void
}) {
  const [note, setNote] = useState('')
  const hunks = hunksOf(diffLines(before.split('\n'), after.split('\n')))
  return (
    <FormDialog
      title="What will change"
      wide
      action={losses.length > 0 ? 'Apply, and sell below cost' : 'Apply'}
      cancel="Back to editing"
      run={() => apply(note.trim())}
      onClose={onClose}
    >
      {losses.map((line) => (
        <Note key={line} tone="warn">
          {line}
        </Note>
      ))}
      {notes.map((line) => (
        <Note key={line}>{line}</Note>
      ))}
      {changes.length ? (
        <ul className="change-list">
          {changes.map((change) => (
            <li key={change}>{change}</li>
          ))}
        </ul>
      ) : null}
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
      <TextField
        label="Note"
        value={note}
        onText={setNote}
        maxLength={200}
        placeholder="Why, for whoever looks later"
      />
    </FormDialog>
  )
}
