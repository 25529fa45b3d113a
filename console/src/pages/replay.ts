// A request that was kept, as the playground's form: which tab, and what is filled in.
import { putDraft } from '../draft.ts'
import { navigate } from '../router.tsx'
import { KIND_NAMES } from '../wire.ts'
import { type ChatSettings, DEFAULT_SETTINGS, type Turn } from './playground/chat-stream.ts'
import { POSTS } from './snippet.ts'

type Members = Record<string, unknown>

const TOOL_TABS: Record<string, string> = { 'mcp:generate_image': 'image', 'mcp:create_video': 'video' }

/**
 * The tab whose form is filled by its address: that of the kind which the endpoint sells, unless it is asked with a
 * file.
 */
function tabOf(endpoint: string): string | undefined {
  const [kind] = Object.entries(POSTS).find(([, { id }]) => id === endpoint) ?? []
  return TOOL_TABS[endpoint] ?? KIND_NAMES.find((one) => one === kind && one !== 'transcription')
}

interface Replayed {
  endpoint: string
  method: string
  path: string
  body: string
}

/** Undefined where the playground has no form for it, or the body was cut in the middle. */
export function replayOf(account: string, { endpoint, method, path, body }: Replayed): (() => void) | undefined {
  const base = `/a/${encodeURIComponent(account)}/playground`
  // Data is asked for by its address alone.
  if (method === 'GET') {
    const [address = '', query = ''] = path.split('?')
    const filled = new URLSearchParams(query)
    filled.set('address', address)
    return () => navigate(`${base}/${address.split('/')[2] === 'social' ? 'social' : 'analytics'}?${filled}`)
  }
  const asked = readMembers(body)
  if (!asked) return undefined
  const chat = conversationOf(asked, endpoint)
  if (chat)
    return () => {
      putDraft(`chat/${account}/settings`, chat.settings)
      putDraft(`chat/${account}/turns`, chat.turns)
      putDraft(`chat/${account}/text`, chat.text)
      putDraft(`chat/${account}/files`, [])
      navigate(`${base}/chat`)
    }
  const tab = tabOf(endpoint)
  if (!tab) return undefined
  const filled = new URLSearchParams()
  const put = (name: string, value: unknown) => {
    if (typeof value === 'string' || typeof value === 'number') filled.set(name, String(value))
  }
  for (const name of ['model', 'prompt', 'query']) put(name, asked[name])
  if (asked.input !== undefined) filled.set('text', textOf(asked.input))
  if (Array.isArray(asked.documents)) filled.set('text', asked.documents.map(textOf).join('\n'))
  return () => navigate(`${base}/${tab}?${filled}`)
}

function readMembers(body: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return isMembers(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Of each of the text formats: messages with roles, an instruction beside them, parts of text. */
function conversationOf(
  asked: Members,
  endpoint: string,
): { settings: ChatSettings; turns: Turn[]; text: string } | undefined {
  const given = asked.messages ?? asked.contents ?? (endpoint === 'responses' ? asked.input : undefined)
  const listed = typeof given === 'string' ? [{ role: 'user', content: given }] : given
  if (!Array.isArray(listed)) return undefined
  const messages = listed
    .filter(isMembers)
    .map(({ role, content, parts }) => ({ role, text: textOf(content ?? parts) }))
  const isSystem = ({ role }: { role: unknown }) => role === 'system' || role === 'developer'
  const instructions = [asked.system, asked.instructions].filter(Boolean).map(textOf)
  const turns = messages
    .filter((message) => !isSystem(message) && message.role !== 'tool' && message.text !== '')
    .map(({ role, text }, at): Turn => {
      const isUser = role === 'user'
      return {
        id: `kept-${at}`,
        role: isUser ? 'user' : 'assistant',
        text,
        ...(isUser ? {} : { state: 'done' as const }),
      }
    })
  const last = turns.at(-1)?.role === 'user' ? turns.pop() : undefined
  const number = (value: unknown) => (typeof value === 'number' ? String(value) : '')
  const settings: ChatSettings = {
    ...DEFAULT_SETTINGS,
    model: typeof asked.model === 'string' ? asked.model : '',
    system: [...instructions, ...messages.filter(isSystem).map(({ text }) => text)].join('\n\n'),
    tools: Array.isArray(asked.tools) && asked.tools.length > 0 ? JSON.stringify(asked.tools, null, 2) : '',
    temperature: number(asked.temperature),
    topP: number(asked.top_p),
    maxTokens: number(asked.max_completion_tokens ?? asked.max_tokens ?? asked.max_output_tokens),
  }
  return { settings, turns, text: last?.text ?? '' }
}

/** A text, or those of its parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map(textOf).filter(Boolean).join('\n')
  return isMembers(content) && typeof content.text === 'string' ? content.text : ''
}
