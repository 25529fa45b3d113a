// One streamed chat answer: sends the conversation, reads the chunks, and reports the answer as it grows.
import { ApiError, api } from '../../api.ts'
import { readSse } from '../../sse.ts'
import type { Receipt } from './cost.tsx'
import { type Reference, textOf } from './references.tsx'

export interface ToolCall {
  id: string
  name: string
  arguments: string
}

export interface Turn {
  id: string
  role: 'user' | 'assistant' | 'tool'
  text: string
  /** Sent with a question. */
  files?: readonly Reference[]
  reasoning?: string
  toolCalls?: ToolCall[]
  toolCallId?: string
  model?: string
  state?: 'running' | 'done' | 'stopped' | 'failed'
  finish?: string
  problem?: { message: string; status?: number; code?: number; requestId?: string }
  receipt?: Receipt
}

export interface ChatSettings {
  model: string
  system: string
  tools: string
  temperature: string
  topP: string
  maxTokens: string
  effort: string
}

export const DEFAULT_SETTINGS: ChatSettings = {
  model: '',
  system: '',
  tools: '',
  temperature: '',
  topP: '',
  maxTokens: '',
  effort: '',
}

/** Only what was filled in is sent: defaults are the model's business. */
export function chatBody(settings: ChatSettings, turns: readonly Turn[]): Record<string, unknown> {
  const body: Record<string, unknown> = { model: settings.model, messages: messagesOf(settings.system, turns) }
  if (settings.temperature.trim()) body.temperature = Number(settings.temperature)
  if (settings.topP.trim()) body.top_p = Number(settings.topP)
  if (settings.maxTokens.trim()) body.max_tokens = Number(settings.maxTokens)
  if (settings.effort) body.reasoning_effort = settings.effort
  const tools = readTools(settings.tools)
  if (tools.tools?.length) body.tools = tools.tools
  return body
}

export function readTools(text: string): { tools?: unknown[]; fault?: string } {
  if (!text.trim()) return {}
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? { tools: value } : { fault: 'Tools are a JSON array.' }
  } catch (error) {
    return { fault: (error as Error).message }
  }
}

function messagesOf(system: string, turns: readonly Turn[]): unknown[] {
  const messages: unknown[] = system.trim() ? [{ role: 'system', content: system }] : []
  for (const turn of turns) {
    if (turn.role === 'tool') messages.push({ role: 'tool', tool_call_id: turn.toolCallId, content: turn.text })
    else if (turn.role === 'user') messages.push({ role: 'user', content: contentOf(turn) })
    // What a model had not finished saying when it failed is no part of the conversation.
    else if (turn.state === 'failed') continue
    else if (turn.text || turn.toolCalls?.length)
      messages.push({
        role: 'assistant',
        content: turn.text || null,
        ...(turn.reasoning ? { reasoning_content: turn.reasoning } : {}),
        ...(turn.toolCalls?.length
          ? {
              tool_calls: turn.toolCalls.map((call) => ({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: call.arguments },
              })),
            }
          : {}),
      })
  }
  return messages
}

function contentOf({ text, files = [] }: Turn): unknown {
  if (files.length === 0) return text
  return [{ type: 'text', text }, ...files.map(partOf)]
}

/** A text file is read by every model as text; a PDF goes as it is. What has an address is an image. */
function partOf(file: Reference): Record<string, unknown> {
  const written = textOf(file)
  if (written !== undefined) return { type: 'text', text: `${file.name}:\n${written}` }
  if (file.source.startsWith('data:application/pdf'))
    return { type: 'file', file: { filename: file.name, file_data: file.source } }
  return { type: 'image_url', image_url: { url: file.source } }
}

interface Chunk {
  choices?: {
    delta?: {
      content?: string | null
      reasoning_content?: string | null
      tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[]
    }
    finish_reason?: string | null
  }[]
  error?: { message?: string; code?: number | string }
  requestId?: string
}

/** `onChange` is called with each new state of the answer; the last one is not running any more. */
export async function streamChat(
  account: string,
  body: Record<string, unknown>,
  answer: Turn,
  { signal, onChange }: { signal: AbortSignal; onChange: (answer: Turn) => void },
): Promise<Turn> {
  let now: Turn = { ...answer, state: 'running' }
  const set = (change: Partial<Turn>) => {
    now = { ...now, ...change }
    onChange(now)
  }
  try {
    const response = await api.play(account, 'POST', '/v1/chat-completions', {
      body: { ...body, stream: true },
      signal,
    })
    const requestId = response.headers.get('x-request-id') ?? undefined
    if (requestId) set({ receipt: { requestId } })
    if (!response.body) throw new ApiError(response.status, 'The answer had no body.')
    for await (const event of readSse(response.body)) {
      if (event.data === '[DONE]') break
      const chunk = JSON.parse(event.data) as Chunk
      if (chunk.error) throw new ApiError(200, chunk.error.message ?? 'The vendor failed.', undefined, requestId)
      const choice = chunk.choices?.[0]
      if (choice) set(withDelta(now, choice))
    }
    set({ state: now.finish === undefined ? 'stopped' : 'done' })
  } catch (error) {
    if (signal.aborted) set({ state: 'stopped' })
    else set({ state: 'failed', problem: describe(error) })
  }
  return now
}

function withDelta(turn: Turn, choice: NonNullable<Chunk['choices']>[number]): Partial<Turn> {
  const change: Partial<Turn> = {}
  if (choice.delta?.content) change.text = turn.text + choice.delta.content
  if (choice.delta?.reasoning_content) change.reasoning = (turn.reasoning ?? '') + choice.delta.reasoning_content
  if (choice.finish_reason) change.finish = choice.finish_reason
  if (choice.delta?.tool_calls?.length) {
    const calls = [...(turn.toolCalls ?? [])]
    for (const piece of choice.delta.tool_calls) {
      const index = piece.index ?? 0
      const before = calls[index] ?? { id: '', name: '', arguments: '' }
      calls[index] = {
        id: piece.id ?? before.id,
        name: piece.function?.name ?? before.name,
        arguments: before.arguments + (piece.function?.arguments ?? ''),
      }
    }
    change.toolCalls = calls
  }
  return change
}

function describe(error: unknown): NonNullable<Turn['problem']> {
  const problem: NonNullable<Turn['problem']> = { message: error instanceof Error ? error.message : String(error) }
  if (error instanceof ApiError) {
    if (error.status) problem.status = error.status
    if (error.code !== undefined) problem.code = error.code
    if (error.requestId) problem.requestId = error.requestId
  }
  return problem
}
