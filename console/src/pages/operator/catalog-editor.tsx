import { useRef, useState } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { plural } from '../../format.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Card, Note } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import type { Catalog, CatalogCheck } from '../../wire.ts'
import { JsonArea, type JsonAreaHandle } from './json-area.tsx'
import { catalogChanged, Review, toastSaved } from './review.tsx'

export function CatalogEditor({ catalog }: { catalog: Catalog }) {
  const original = JSON.stringify(catalog.document, null, 2)
  // The draft remembers which version it was made from, so that it is not applied blindly over someone else's change.
  const [draft, setDraft] = useDraft<{ from: number; text: string } | null>('catalog', null)
  const [check, setCheck] = useState<CatalogCheck>()
  const [reviewing, setReviewing] = useState(false)
  const area = useRef<JsonAreaHandle>(null)
  const text = draft?.text ?? original
  const changed = text !== original
  const outdated = changed && draft !== null && draft.from !== catalog.version

  const onText = (next: string) => {
    setCheck(undefined)
    setDraft(next === original ? null : { from: draft?.from ?? catalog.version, text: next })
  }

  const parsed = parse(text)
  const review = useAction(async () => {
    if (!parsed.ok) return
    const result = await api.checkCatalog(parsed.document)
    setCheck(result)
    if (result.problems.length === 0) setReviewing(true)
  })

  return (
    <>
      {outdated ? (
        <Note tone="warn">
          This draft was made from version {draft.from}; version {catalog.version} is current now. The preview shows
          what applying the draft would change in it.
        </Note>
      ) : null}
      <Card>
        <div className="row-spread">
          <p className="muted small">
            {changed ? 'Edited, not applied. The draft stays in this tab.' : 'The document as it is applied.'}
          </p>
          <div className="row">
            <Button
              small
              disabled={!parsed.ok}
              onClick={() => parsed.ok && onText(JSON.stringify(parsed.document, null, 2))}
            >
              Format
            </Button>
            <Button small disabled={!changed} onClick={() => onText(original)}>
              Discard draft
            </Button>
            <Button
              right="catalog:write"
              small
              look="primary"
              disabled={!changed || !parsed.ok}
              busy={review.busy}
              onClick={() => review.go()}
            >
              Check and preview
            </Button>
          </div>
        </div>
        <Problems problems={check?.problems ?? []} onShow={(path) => area.current?.show(path)} />
        <JsonArea ref={area} label="Catalog document" text={text} onText={onText} />
        {parsed.ok ? null : (
          <p className="field-fault" role="status">
            <Icon name="warning" size={14} /> {parsed.fault}
          </p>
        )}
        {review.error ? <Fault error={review.error} /> : null}
      </Card>
      {reviewing && check && parsed.ok ? (
        <Review
          before={catalog.document}
          after={parsed.document}
          apply={async (note) => {
            const saved = await api.applyCatalog(parsed.document, note)
            toastSaved(saved)
            setDraft(null)
            setCheck(undefined)
            catalogChanged()
          }}
          onClose={() => setReviewing(false)}
        />
      ) : null}
    </>
  )
}

type Parsed = { ok: true; document: unknown } | { ok: false; fault: string }

function parse(text: string): Parsed {
  try {
    return { ok: true, document: JSON.parse(text) }
  } catch (error) {
    return { ok: false, fault: (error as Error).message }
  }
}

function Problems({ problems, onShow }: { problems: readonly string[]; onShow: (path: string) => void }) {
  if (problems.length === 0) return null
  return (
    <div className="fault tone-bad" role="alert">
      <Icon name="warning" />
      <div className="fault-text">
        <p>
          <b>{plural(problems.length, 'problem')}.</b> Nothing was applied.
        </p>
        <ul className="problem-list">
          {problems.map((problem) => (
            <li key={problem}>
              <button type="button" className="link-button" onClick={() => onShow(problem.split(':')[0] ?? '')}>
                {problem}
              </button>
            </li>
          ))}
        </ul>
      </div>
    </div>
  )
}
