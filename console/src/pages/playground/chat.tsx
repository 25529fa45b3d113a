import { type FormEvent, useEffect, useRef, useState } from 'react'
import { useDraft } from '../../draft.ts'
import { useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogBody } from '../../ui/dialog.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Empty } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { SnippetTabs } from '../model.tsx'
import { Saved } from '../saved-views.tsx'
import { type BenchProps, modelTab, shortened } from './bench.tsx'
import { History } from './chat-history.tsx'
import { Settings } from './chat-settings.tsx'
import { type ChatSettings, chatBody, DEFAULT_SETTINGS, readTools, type Turn } from './chat-stream.ts'
import { ChatTurn } from './chat-turn.tsx'
import { QuoteHint } from './cost.tsx'
import { needsEyes, type Reference, References } from './references.tsx'
import { useChat } from './use-chat.ts'

export const speaksChat = (model: PublicModel) => model.type === 'text' && model.clientFormats.includes('openai-chat')
export const canSee = (model: PublicModel | undefined) => model?.capabilities.includes('vision') ?? false
export const Chat = modelTab('chat', 'models', speaksChat, ChatRoom)

const IDEAS = [
  'Explain what a gateway does, in two sentences.',
  'Write a haiku about a toll booth at night.',
  'List three ways to test a rate limiter.',
]

function ChatRoom({ account, models }: BenchProps) {
  const { query } = useLocation()
  const [settings, setSettings] = useDraft<ChatSettings>(`chat/${account}/settings`, DEFAULT_SETTINGS)
  const [text, setText] = useDraft(`chat/${account}/text`, '')
  const [files, setFiles] = useDraft<Reference[]>(`chat/${account}/files`, [])
  const [code, setCode] = useState(false)
  const wanted = query.get('model')
  const model = models.find((one) => one.uid === (settings.model || wanted)) ?? models[0]
  const full = { ...settings, model: model?.uid ?? '' }
  const chat = useChat(account, full)

  // A link from a model's page or the documentation chooses the model and fills in its message, also over what was
  // there.
  const message = query.get('message')
  useEffect(() => {
    if (wanted) setSettings((old) => ({ ...old, model: wanted }))
    if (message) setText(message)
  }, [wanted, message, setSettings, setText])

  const tools = readTools(settings.tools)
  const ready = text.trim() !== '' && !chat.busy && !tools.fault
  const sees = canSee(model)
  const draft = draftOf(text, sees ? files : files.filter((file) => !needsEyes(file)))
  const send = (event?: FormEvent) => {
    event?.preventDefault()
    if (!ready) return
    chat.ask(draft)
    setText('')
    setFiles([])
  }

  return (
    <div className="bench">
      <div className="talk">
        <TalkLog account={account} chat={chat} onText={setText} />
        <form className="talk-ask" onSubmit={send}>
          <TextArea
            label="Message"
            quiet
            placeholder="Write a message. Enter sends, Shift + Enter starts a new line."
            value={text}
            onText={setText}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
              event.preventDefault()
              send()
            }}
            rows={2}
          />
          <Attached sees={sees} files={files} onFiles={setFiles} />
          <div className="talk-act">
            <QuoteHint account={account} body={ready ? codeBody(full, chat.turns, draft) : undefined} />
            <Actions chat={chat} ready={ready} onCode={() => setCode(true)} />
          </div>
        </form>
        <Saved
          page={`prompts/${account}`}
          what="prompt"
          hint="The message, the system prompt and the settings, for you alone. A prompt of the same name is replaced."
          current={text.trim() || settings.system.trim() ? promptOf(text, full) : undefined}
          onOpen={(saved) => {
            const { message: kept, ...others } = readPrompt(saved)
            setText(kept)
            setSettings(others)
          }}
        />
        <p className="sr-only" role="status">
          {statusOf(chat.turns.at(-1))}
        </p>
      </div>
      <Settings models={models} settings={full} fault={tools.fault} onSettings={setSettings}>
        <History kept={chat.kept} onOpen={chat.open} onForget={chat.forget} />
      </Settings>
      {code ? (
        <Dialog title="This conversation as code" wide onClose={() => setCode(false)}>
          <DialogBody>
            <SnippetTabs
              subject={{ kind: 'chat', model: full.model, body: shortened(codeBody(full, chat.turns, draft)) }}
            />
          </DialogBody>
        </Dialog>
      ) : null}
    </div>
  )
}

const promptOf = (message: string, settings: ChatSettings) => JSON.stringify({ message, ...settings })

/** Members that a prompt of an earlier version lacks, or that nobody knows any more, do not matter. */
function readPrompt(saved: string): ChatSettings & { message: string } {
  const known = { ...DEFAULT_SETTINGS, message: '' }
  // Saved by the form above, as an object.
  const given = Object.entries(JSON.parse(saved) as object)
  return {
    ...known,
    ...Object.fromEntries(given.filter(([name, value]) => name in known && typeof value === 'string')),
  }
}

const draftOf = (text: string, files: readonly Reference[]): Turn => ({
  id: '',
  role: 'user',
  text: text.trim(),
  ...(files.length ? { files } : {}),
})

type ChatState = ReturnType<typeof useChat>

function TalkLog({ account, chat, onText }: { account: string; chat: ChatState; onText: (text: string) => void }) {
  const end = useRef<HTMLDivElement>(null)
  const follow = useRef(true)
  const last = chat.turns.at(-1)
  // A new turn is followed wherever the reader was.
  useEffect(() => {
    if (last?.id) follow.current = true
  }, [last?.id])
  // With every word, and with what stands below the words: an error, the form of a tool, the receipt.
  const grown = last && [last.id, last.text.length, last.state, last.toolCalls?.length, last.receipt?.charged].join()
  useEffect(() => {
    if (grown !== undefined && follow.current) end.current?.scrollIntoView({ block: 'nearest' })
  }, [grown])
  return (
    <div
      className="talk-log"
      role="log"
      aria-label="Conversation"
      aria-busy={chat.busy}
      onScroll={(event) => {
        const box = event.currentTarget
        follow.current = box.scrollHeight - box.scrollTop - box.clientHeight < 60
      }}
      tabIndex={0}
    >
      {chat.turns.length === 0 ? (
        <Ideas onIdea={onText} />
      ) : (
        chat.turns.map((turn, index) => (
          <ChatTurn
            key={turn.id}
            account={account}
            turn={turn}
            last={index === chat.turns.length - 1}
            idle={!chat.busy}
            onRegenerate={() => chat.regenerate(turn)}
            onEdit={() => onText(chat.editFrom(turn))}
            onTools={chat.answerTools}
          />
        ))
      )}
      <div ref={end} />
    </div>
  )
}

const FILES_MAX = 4

export function Attached(props: { sees: boolean; files: Reference[]; onFiles: (files: Reference[]) => void }) {
  const { sees, files, onFiles } = props
  return (
    <details className="fold" open={files.length > 0}>
      <summary>Files{files.length ? ` (${files.length})` : ''}</summary>
      <References
        label={sees ? 'Images, PDFs and text for the model' : 'Text files for the model'}
        accept={sees ? 'files' : 'text'}
        most={FILES_MAX}
        chosen={files}
        onChosen={onFiles}
      />
      {!sees && files.some(needsEyes) ? (
        <p className="field-hint">This model takes text only: images and PDFs are not sent.</p>
      ) : null}
    </details>
  )
}

function Ideas({ onIdea }: { onIdea: (idea: string) => void }) {
  return (
    <Empty icon="play" title="Ask something">
      <p>The answer streams in as the model writes it.</p>
      <div className="ideas">
        {IDEAS.map((idea) => (
          <button key={idea} type="button" className="idea" onClick={() => onIdea(idea)}>
            {idea}
          </button>
        ))}
      </div>
    </Empty>
  )
}

function Actions({ chat, ready, onCode }: { chat: ChatState; ready: boolean; onCode: () => void }) {
  return (
    <div className="row">
      {chat.turns.length ? (
        <Button look="ghost" icon="plus" onClick={chat.begin}>
          New chat
        </Button>
      ) : null}
      <Button look="ghost" icon="code" onClick={onCode}>
        Code
      </Button>
      {chat.busy ? (
        <Button icon="stop" onClick={chat.stop}>
          Stop
        </Button>
      ) : (
        <Button type="submit" look="primary" icon="send" disabled={!ready}>
          Send
        </Button>
      )}
    </div>
  )
}

/** Announced once at the start and once at the end: reading out every word as it comes helps nobody. */
function statusOf(turn: Turn | undefined): string {
  if (turn?.role !== 'assistant') return ''
  if (turn.state === 'running') return 'The model is answering.'
  if (turn.state === 'failed') return 'The answer failed.'
  return turn.receipt?.charged ? `Answer complete, ${turn.receipt.charged} credits.` : 'Answer complete.'
}

function codeBody(settings: ChatSettings, turns: readonly Turn[], draft: Turn): Record<string, unknown> {
  const next = draft.text ? [draft] : []
  const body = chatBody(settings, [...turns, ...next])
  const empty = (body.messages as unknown[]).every((message) => (message as { role: string }).role === 'system')
  return empty ? { ...body, messages: [...(body.messages as unknown[]), { role: 'user', content: 'Hello' }] } : body
}
