import { Button } from '../../ui/button.tsx'
import { Ago } from '../../ui/page.tsx'
import type { Conversation } from './use-chat.ts'

/** Earlier conversations of this tab. */
export function History({
  kept,
  onOpen,
  onForget,
}: {
  kept: readonly Conversation[]
  onOpen: (conversation: Conversation) => void
  onForget: () => void
}) {
  return (
    <details className="fold">
      <summary>History{kept.length ? ` (${kept.length})` : ''}</summary>
      <div className="stack-tight">
        <p className="field-hint">Kept in this tab until you close it or sign out.</p>
        {kept.length ? (
          <>
            <ul className="pick-list">
              {kept.map((conversation) => (
                <li key={conversation.id}>
                  <button type="button" className="pick" onClick={() => onOpen(conversation)}>
                    <span className="clamp">{conversation.title}</span>
                    <span className="pick-end small">
                      <Ago at={conversation.at} />
                    </span>
                  </button>
                </li>
              ))}
            </ul>
            <div>
              <Button small icon="trash" onClick={onForget}>
                Forget all
              </Button>
            </div>
          </>
        ) : null}
      </div>
    </details>
  )
}
