import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { useDraft } from '../../draft.ts'
import { estimateTokens, priceOf, priceSummary, tierFor } from '../../pricing.ts'
import { useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogBody } from '../../ui/dialog.tsx'
import { SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Empty } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { SnippetTabs } from '../model.tsx'
import { type BenchProps, modelTab } from './bench.tsx'
import { type ChatSettings, chatBody, DEFAULT_SETTINGS, readTools, type Turn } from './chat-stream.ts'
import { ChatTurn } from './chat-turn.tsx'
import { CostHint } from './cost.tsx'
import { ModelOptions } from './model-options.tsx'
import { useChat } from './use-chat.ts'

const speaksChat = (model: PublicModel) => model.type === 'text' && model.doors.includes('openai-chat')
export const Chat = modelTab('chat', 'models', speaksChat, ChatRoom)

const EFFORTS = [['', 'Default'], 'minimal', 'low', 'medium', 'high'] as const

const IDEAS = [
  'Explain what a gateway does, in two sentences.',
  'Write a haiku about a toll booth at night.',
  'List three ways to test a rate limiter.',
]

function ChatRoom({ account, models }: BenchProps) {
  const { query } = useLocation()
  const [settings, setSettings] = useDraft<ChatSettings>(`chat/${account}/settings`, DEFAULT_SETTINGS)
  const [text, setText] = useDraft(`chat/${account}/text`, '')
  const [code, setCode] = useState(false)
  const wanted = query.get('model')
  const model = models.find((one) => one.uid === (settings.model || wanted)) ?? models[0]
  const uid = model?.uid ?? ''
  const full = { ...settings, model: uid }
  const chat = useChat(account, full)
  const end = useRef<HTMLDivElement>(null)
  const follow = useRef(true)

  // A link from a model's page chooses that model, also over what was chosen before.
  useEffect(() => {
    if (wanted) setSettings((old) => ({ ...old, model: wanted }))
  }, [wanted, setSettings])

  const lastText = chat.turns.at(-1)?.text.length
  useEffect(() => {
    if (lastText !== undefined && follow.current) end.current?.scrollIntoView({ block: 'nearest' })
  }, [lastText])

  const tools = readTools(settings.tools)
  const ready = text.trim() !== '' && !chat.busy && !tools.fault
  const send = (event?: FormEvent) => {
    event?.preventDefault()
    if (!ready) return
    chat.ask(text.trim())
    setText('')
  }
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }

  return (
    <div className="bench">
      <div className="talk">
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
            <Ideas onIdea={setText} />
          ) : (
            chat.turns.map((turn, index) => (
              <ChatTurn
                key={turn.id}
                account={account}
                turn={turn}
                last={index === chat.turns.length - 1}
                idle={!chat.busy}
                onRegenerate={() => chat.regenerate(turn)}
                onEdit={() => setText(chat.editFrom(turn))}
                onTools={chat.answerTools}
              />
            ))
          )}
          <div ref={end} />
        </div>
        <form className="talk-ask" onSubmit={send}>
          <TextArea
            label="Message"
            quiet
            placeholder="Write a message. Enter sends, Shift + Enter starts a new line."
            value={text}
            onText={setText}
            onKeyDown={onKeyDown}
            rows={2}
          />
          <div className="talk-act">
            {model ? <ChatCost model={model} settings={full} turns={chat.turns} text={text} /> : null}
            <Actions chat={chat} ready={ready} onCode={() => setCode(true)} />
          </div>
        </form>
        <p className="sr-only" role="status">
          {statusOf(chat.turns.at(-1))}
        </p>
      </div>
      <Settings models={models} settings={full} fault={tools.fault} onSettings={setSettings} />
      {code ? (
        <Dialog title="This conversation as code" wide onClose={() => setCode(false)}>
          <DialogBody>
            <SnippetTabs subject={{ kind: 'chat', model: uid, body: codeBody(full, chat.turns, text) }} />
          </DialogBody>
        </Dialog>
      ) : null}
    </div>
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

function Actions({ chat, ready, onCode }: { chat: ReturnType<typeof useChat>; ready: boolean; onCode: () => void }) {
  return (
    <div className="row">
      {chat.turns.length ? (
        <Button look="ghost" icon="trash" onClick={chat.clear}>
          Clear
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

function codeBody(settings: ChatSettings, turns: readonly Turn[], text: string): Record<string, unknown> {
  const next: Turn[] = text.trim() ? [{ id: '', role: 'user', text: text.trim() }] : []
  const { model: _, ...body } = chatBody(settings, [...turns, ...next])
  const empty = (body.messages as unknown[]).every((message) => (message as { role: string }).role === 'system')
  return empty ? { ...body, messages: [...(body.messages as unknown[]), { role: 'user', content: 'Hello' }] } : body
}

/** The prompt is guessed at four characters a token; the answer may grow to what is asked for, or the model's reserve. */
function ChatCost({
  model,
  settings,
  turns,
  text,
}: {
  model: PublicModel
  settings: ChatSettings
  turns: readonly Turn[]
  text: string
}) {
  const input = estimateTokens(settings.system + settings.tools + turns.map((turn) => turn.text).join('') + text) + 8
  const output = Number(settings.maxTokens) || model.limits.outputTokensReserve || 4096
  const tier = tierFor(model.pricing, {}, input)
  return <CostHint least={priceOf(tier, { input })} most={priceOf(tier, { input, output })} />
}

function Settings({
  models,
  settings,
  fault,
  onSettings,
}: {
  models: readonly PublicModel[]
  settings: ChatSettings
  fault: string | undefined
  onSettings: (change: (old: ChatSettings) => ChatSettings) => void
}) {
  const set = (name: keyof ChatSettings) => (text: string) => onSettings((old) => ({ ...old, [name]: text }))
  const model = models.find((one) => one.uid === settings.model)
  return (
    <aside className="bench-side talk-side" aria-label="Settings">
      <SelectField
        label="Model"
        value={settings.model}
        onText={set('model')}
        hint={model ? `${priceSummary(model.pricing)}, in credits` : undefined}
      >
        <ModelOptions models={models} />
      </SelectField>
      <details className="fold" open={Boolean(settings.system)}>
        <summary>System prompt</summary>
        <TextArea
          label="System prompt"
          quiet
          value={settings.system}
          onText={set('system')}
          placeholder="How the model should behave"
          rows={3}
        />
      </details>
      <details
        className="fold"
        open={Boolean(settings.temperature || settings.topP || settings.maxTokens || settings.effort)}
      >
        <summary>Parameters</summary>
        <Parameters settings={settings} set={set} />
      </details>
      <details className="fold" open={Boolean(settings.tools)}>
        <summary>Tools</summary>
        <div className="stack-tight">
          <TextArea
            label="Tools, as a JSON array"
            mono
            value={settings.tools}
            onText={set('tools')}
            fault={fault}
            rows={5}
            spellCheck={false}
          />
          <div>
            <Button small onClick={() => set('tools')(EXAMPLE_TOOLS)}>
              Insert an example
            </Button>
          </div>
        </div>
      </details>
    </aside>
  )
}

function Parameters({
  settings,
  set,
}: {
  settings: ChatSettings
  set: (name: keyof ChatSettings) => (text: string) => void
}) {
  return (
    <div className="stack">
      <p className="field-hint">Empty fields are not sent; the model then uses its own defaults.</p>
      <div className="pair">
        <TextField
          label="Temperature"
          inputMode="decimal"
          type="number"
          step="0.1"
          min={0}
          max={2}
          value={settings.temperature}
          onText={set('temperature')}
        />
        <TextField
          label="Top p"
          inputMode="decimal"
          type="number"
          step="0.05"
          min={0}
          max={1}
          value={settings.topP}
          onText={set('topP')}
        />
      </div>
      <div className="pair">
        <TextField
          label="Max tokens"
          inputMode="numeric"
          type="number"
          min={1}
          value={settings.maxTokens}
          onText={set('maxTokens')}
        />
        <SelectField label="Reasoning effort" value={settings.effort} onText={set('effort')} options={EFFORTS} />
      </div>
    </div>
  )
}

const EXAMPLE_TOOLS = JSON.stringify(
  [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'The current weather in a city.',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    },
  ],
  null,
  2,
)
