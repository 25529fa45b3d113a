// The conversation of one account: kept across reloads, one answer at a time.
import { useEffect, useRef, useState } from 'react'
import { useDraft } from '../../draft.ts'
import { refresh } from '../../query.ts'
import { randomId } from '../../random.ts'
import { type ChatSettings, chatBody, streamChat, type Turn } from './chat-stream.ts'
import { receiptOf } from './cost.tsx'

const newId = randomId

export interface Conversation {
  readonly id: string
  readonly title: string
  readonly at: string
  readonly turns: Turn[]
}

const KEPT_MAX = 20
const TITLE_CHARS_MAX = 80

/** The newest first. Files are left out: the tab's storage holds a few megabytes in all. */
function withConversation(kept: readonly Conversation[], turns: readonly Turn[]): Conversation[] {
  const first = turns.find(({ role }) => role === 'user')
  if (!first) return [...kept]
  const title = first.text.slice(0, TITLE_CHARS_MAX)
  const bare = turns.map(({ files: _, ...turn }) => turn)
  return [{ id: newId(), title, at: new Date().toISOString(), turns: bare }, ...kept].slice(0, KEPT_MAX)
}

export function useChat(account: string, settings: ChatSettings) {
  const [stored, setStored] = useDraft<Turn[]>(`chat/${account}/turns`, [])
  // The growing answer lives outside the draft, so that a fast stream does not write to storage with every word.
  const [growing, setGrowing] = useState<Turn>()
  const [kept, setKept] = useDraft<Conversation[]>(`chat/${account}/history`, [])
  const aborter = useRef<AbortController>(undefined)
  const frame = useRef(0)

  useEffect(() => () => aborter.current?.abort(), [])

  const run = async (turns: Turn[]) => {
    const answer: Turn = { id: newId(), role: 'assistant', text: '', model: settings.model }
    // What a reload would find: an answer that was cut.
    setStored([...turns, { ...answer, state: 'stopped' }])
    const control = new AbortController()
    aborter.current = control
    let latest = answer
    const show = (next: Turn) => {
      latest = next
      // At most one drawing per frame, however fast the words come.
      if (frame.current === 0)
        frame.current = requestAnimationFrame(() => {
          frame.current = 0
          if (latest.state === 'running') setGrowing(latest)
        })
    }
    setGrowing({ ...answer, state: 'running' })
    const last = await streamChat(account, chatBody(settings, turns), answer, {
      signal: control.signal,
      onChange: show,
    })
    cancelAnimationFrame(frame.current)
    frame.current = 0
    setGrowing(undefined)
    setStored([...turns, last])
    if (!last.receipt) return
    const receipt = await receiptOf(last.receipt.requestId)
    setStored((old) => old.map((turn) => (turn.id === last.id ? { ...turn, receipt } : turn)))
    refresh(`overview/${account}`, `usage/${account}`, `account/${account}`)
  }

  const turns = growing ? stored.map((turn) => (turn.id === growing.id ? growing : turn)) : stored
  const upTo = (turn: Turn) =>
    stored.slice(
      0,
      stored.findIndex((other) => other.id === turn.id),
    )
  return {
    turns: growing && !stored.some((turn) => turn.id === growing.id) ? [...turns, growing] : turns,
    busy: growing !== undefined,
    ask: (turn: Turn) => void run([...stored, { ...turn, id: newId() }]),
    /** Results of the tools that the last answer called; the model then goes on. */
    answerTools: (results: { toolCallId: string; text: string }[]) =>
      void run([...stored, ...results.map((result) => ({ id: newId(), role: 'tool' as const, ...result }))]),
    regenerate: (turn: Turn) => void run(upTo(turn)),
    /** Removes a message and everything after it, and returns its text for editing. */
    editFrom: (turn: Turn) => {
      setStored(upTo(turn))
      return turn.text
    },
    stop: () => aborter.current?.abort(),
    kept,
    /** Puts what was said so far among the earlier conversations and begins a new one. */
    begin: () => {
      aborter.current?.abort()
      setKept((old) => withConversation(old, stored))
      setStored([])
    },
    open: (conversation: Conversation) => {
      aborter.current?.abort()
      const others = kept.filter(({ id }) => id !== conversation.id)
      setKept(withConversation(others, stored))
      setStored(conversation.turns)
    },
    forget: () => setKept([]),
  }
}
