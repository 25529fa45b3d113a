import { type FormEvent, useState } from 'react'
import { Markdown } from '../../markdown.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/code.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Fault } from '../../ui/state.tsx'
import type { ToolCall, Turn } from './chat-stream.ts'
import { ReceiptLine } from './cost.tsx'

export function ChatTurn({
  account,
  turn,
  last,
  idle,
  onRegenerate,
  onEdit,
  onTools,
}: {
  account: string
  turn: Turn
  last: boolean
  idle: boolean
  onRegenerate: () => void
  onEdit: () => void
  onTools: (results: { toolCallId: string; text: string }[]) => void
}) {
  if (turn.role !== 'assistant')
    return (
      <article className="turn turn-user" aria-label={turn.role === 'tool' ? 'Tool result' : 'You'}>
        <div className="turn-bubble">
          {turn.role === 'tool' ? <p className="turn-who">Tool result</p> : null}
          <p className="turn-plain">{turn.text}</p>
          {turn.files?.map(({ id, name, source }) =>
            source.startsWith('data:image/') ? (
              <img key={id} className="turn-image" src={source} alt={name} />
            ) : (
              <code key={id} className="clamp">
                {name}
              </code>
            ),
          )}
        </div>
        {idle && turn.role === 'user' ? (
          <IconButton icon="edit" label="Edit this message; what follows it is removed" onClick={onEdit} />
        ) : null}
      </article>
    )
  const calls = turn.toolCalls ?? []
  const running = turn.state === 'running'
  return (
    <article className="turn" aria-label={`Answer of ${turn.model ?? 'the model'}`}>
      <p className="turn-who">{turn.model}</p>
      {turn.reasoning ? (
        <details className="fold turn-reasoning">
          <summary>Reasoning</summary>
          <p className="turn-plain">{turn.reasoning}</p>
        </details>
      ) : null}
      {turn.text ? <Markdown text={turn.text} /> : null}
      {calls.map((call) => (
        <ToolCallView key={call.id || call.name} call={call} />
      ))}
      {running ? <span className="caret" aria-hidden="true" /> : null}
      {turn.problem ? <Fault error={turn.problem} /> : null}
      {turn.finish === 'length' ? <p className="muted small">Cut at the output limit.</p> : null}
      {turn.state === 'stopped' ? <p className="muted small">Interrupted. You pay for what was delivered.</p> : null}
      {running ? null : (
        <div className="turn-foot">
          {turn.receipt ? <ReceiptLine account={account} receipt={turn.receipt} /> : <span />}
          <div className="row">
            {turn.text ? <CopyButton text={turn.text} /> : null}
            {last && idle ? (
              <Button small icon="refresh" onClick={onRegenerate}>
                Regenerate
              </Button>
            ) : null}
          </div>
        </div>
      )}
      {last && idle && calls.length > 0 ? <ToolResults calls={calls} onTools={onTools} /> : null}
    </article>
  )
}

function ToolCallView({ call }: { call: ToolCall }) {
  return (
    <div className="tool-call">
      <p>
        <Icon name="code" size={14} /> calls <code>{call.name}</code>
      </p>
      <pre>{pretty(call.arguments)}</pre>
    </div>
  )
}

function ToolResults({
  calls,
  onTools,
}: {
  calls: readonly ToolCall[]
  onTools: (results: { toolCallId: string; text: string }[]) => void
}) {
  const [texts, setTexts] = useState<Record<string, string>>({})
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onTools(calls.map((call) => ({ toolCallId: call.id, text: texts[call.id] ?? '' })))
  }
  return (
    <form className="tool-results stack" onSubmit={submit}>
      {calls.map((call) => (
        <TextArea
          key={call.id}
          label={`Result of ${call.name}`}
          hint="What your program would send back. The model then continues."
          value={texts[call.id] ?? ''}
          onText={(text) => setTexts({ ...texts, [call.id]: text })}
          mono
          rows={2}
          required
        />
      ))}
      <div>
        <Button type="submit" look="primary" icon="send">
          Send the result
        </Button>
      </div>
    </form>
  )
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
