// What a call sent and was sent, where its account or key lets that be kept. It is fetched when somebody asks: the
// audit says who read it.
import { useState } from 'react'
import { api } from '../../api.ts'
import { replayOf } from '../../pages/replay.ts'
import { refresh } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Card, When } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Content, UsageDetail } from '../../wire.ts'

export function CallContent({ account, call }: { account: string; call: UsageDetail }) {
  const [content, setContent] = useState<Content>()
  const [asking, setAsking] = useState(false)
  const { busy, error, go } = useAction(async (signal) => setContent(await api.content(call.id, signal)))
  const remove = async () => {
    await api.removeContent(call.id)
    setContent(undefined)
    toast('The recording of this call was deleted.')
    refresh(`usage-of/${call.id}`)
  }
  if (!call.content) return null
  const replay = content && replayOf(account, { endpoint: call.endpoint, ...content.request })
  return (
    <Card
      title="Content"
      lead="The request and its answer are stored encrypted. Every reading is in the audit log."
      actions={
        <>
          {content ? null : (
            <Button right="recordings:read" account={account} icon="search" busy={busy} onClick={() => go()}>
              Show request and answer
            </Button>
          )}
          {replay ? (
            <Button right="playground:write" account={account} look="primary" icon="play" onClick={replay}>
              Open in playground
            </Button>
          ) : null}
          <Button right="recordings:write" account={account} icon="trash" onClick={() => setAsking(true)}>
            Delete
          </Button>
        </>
      }
    >
      {error ? <Fault error={error} retry={() => go()} /> : null}
      {content ? <Bodies content={content} /> : null}
      {asking ? (
        <Confirm
          title="Delete the content of this call?"
          action="Delete"
          danger
          run={remove}
          onClose={() => setAsking(false)}
        >
          <p>The request and the answer are gone at once. The call stays in the usage.</p>
        </Confirm>
      ) : null}
    </Card>
  )
}

function Bodies({ content: { request, answer, expiresAt } }: { content: Content }) {
  const cut = (body: { cut: boolean }) => (body.cut ? ' (cut: there was more)' : '')
  return (
    <div className="stack">
      <p className="muted">
        Kept until <When at={expiresAt} />. Secrets and pictures are left out.
      </p>
      <Code label={`Request: ${request.method} ${request.path}${cut(request)}`} text={readable(request.body)} wrap />
      {answer ? (
        <Code label={`Answer: ${answer.status}${cut(answer)}`} text={readable(answer.body)} wrap />
      ) : (
        <p className="muted">There is no answer: the caller disconnected first.</p>
      )}
    </div>
  )
}

/** JSON is easier to read with its lines. */
function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
