// What an answer says, read from its bytes in the plainest way, without the gateway's own readers: text, thoughts,
// calls, end, tokens.
import type { ClientFormatName } from '../../src/meter/kind.ts'
import { SseDecoder } from '../../src/upstream/sse.ts'

// Answers of strangers, of which each member may be anything.
export type Loose = any

export interface Said {
  readonly text: string
  readonly thoughts: string
  readonly calls: { name: string; input: unknown }[]
  readonly end: string
  /** Undefined where the vendor reports none. */
  readonly tokens: Tokens | undefined
}

export interface Tokens {
  readonly input: number
  readonly cached: number
  readonly written: number
  readonly writtenHour: number
  readonly output: number
}

/** The data of each event of a stream. */
export function eventsOf(bytes: Buffer): Loose[] {
  const decoder = new SseDecoder()
  const events = [...decoder.push(bytes), decoder.end()]
  return events.flatMap((event) =>
    event && event.data.trim() !== '' && event.data.trim() !== '[DONE]' ? [JSON.parse(event.data)] : [],
  )
}

/** Undefined if it is no answer but an error, or broken off. */
export function saidBy(format: ClientFormatName, bytes: Buffer, isStream: boolean): Said | undefined {
  const said = isStream ? READ_STREAM[format](eventsOf(bytes)) : READ[format](JSON.parse(bytes.toString('utf8')))
  if (!said || said.end === '') return undefined
  const called = said.calls.length > 0 && (said.end === 'stop' || said.end === 'other')
  return { ...said, end: called ? 'tool' : said.end }
}

const list = (value: Loose): Loose[] => (Array.isArray(value) ? value.filter((entry) => entry) : [])
const joined = (parts: Loose[], read: (part: Loose) => unknown) =>
  parts.map((part) => (typeof read(part) === 'string' ? read(part) : '')).join('')

/** Arguments that a limit cut are no JSON: formats that need an object get the text as a member of one. */
function inputOf(text: unknown): unknown {
  if (typeof text !== 'string') {
    const { input, ...rest } = (text ?? {}) as Loose
    return typeof input === 'string' && Object.keys(rest).length === 0 && inputOf(input) === input
      ? input
      : (text ?? {})
  }
  try {
    return text.trim() === '' ? {} : (JSON.parse(text) ?? {})
  } catch {
    return text
  }
}

const ENDS: Record<string, string> = {
  stop: 'stop',
  pause_turn: 'stop',
  compaction: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  STOP: 'stop',
  completed: 'stop',
  eos: 'stop',
  length: 'length',
  max_tokens: 'length',
  MAX_TOKENS: 'length',
  max_output_tokens: 'length',
  model_context_window_exceeded: 'length',
  model_length: 'length',
  tool_calls: 'tool',
  function_call: 'tool',
  tool_use: 'tool',
  content_filter: 'filter',
  refusal: 'filter',
  SAFETY: 'filter',
  RECITATION: 'filter',
  PROHIBITED_CONTENT: 'filter',
  BLOCKLIST: 'filter',
  SPII: 'filter',
  MODEL_ARMOR: 'filter',
}
const endOf = (reason: Loose) => (reason ? (ENDS[reason] ?? 'other') : '')

/** Content as a string or as parts; Mistral's thoughts are parts of it. */
function contentOf(content: Loose): { text: string; thoughts: string } {
  if (typeof content === 'string') return { text: content, thoughts: '' }
  return {
    text: joined(list(content), (part) => part.text),
    thoughts: joined(list(content), (part) =>
      part.type === 'thinking' ? joined(list(part.thinking), ({ text }) => text) : '',
    ),
  }
}

const chatCall = ({ function: called }: Loose) => ({ name: called?.name, input: inputOf(called?.arguments) })

function chatTokens(usage: Loose): Tokens | undefined {
  if (typeof usage?.prompt_tokens !== 'number') return undefined
  const { prompt_tokens: input, completion_tokens: output = 0, total_tokens: total = 0 } = usage
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens ?? 0
  const written = usage.prompt_tokens_details?.cache_write_tokens ?? 0
  if (cached + written > input) return undefined // It contradicts itself.
  const beyond = Math.max(0, total - input - output)
  // The total tells whether the sound is part of the prompt (not at Mistral), and the thoughts part of the output.
  const sound = beyond > 0 && beyond === usage.prompt_tokens_details?.audio_tokens ? beyond : 0
  const apart = sound === 0 && beyond >= reasoning ? beyond : 0
  return { input: input - cached - written + sound, cached, written, writtenHour: 0, output: output + apart }
}

function messagesTokens(usage: Loose): Tokens | undefined {
  // The counts of a compaction are in the passes, and not in the sum.
  if (typeof usage?.output_tokens !== 'number' || list(usage.iterations).length > 0) return undefined
  const writtenHour = usage.cache_creation?.ephemeral_1h_input_tokens ?? 0
  const written = (usage.cache_creation_input_tokens ?? 0) - writtenHour
  const cached = usage.cache_read_input_tokens ?? 0
  return { input: usage.input_tokens ?? 0, cached, written, writtenHour, output: usage.output_tokens }
}

function responsesTokens(usage: Loose): Tokens | undefined {
  if (typeof usage?.input_tokens !== 'number') return undefined
  const cached = usage.input_tokens_details?.cached_tokens ?? 0
  const written = usage.input_tokens_details?.cache_write_tokens ?? 0
  const { output_tokens: output = 0 } = usage
  return { input: usage.input_tokens - cached - written, cached, written, writtenHour: 0, output }
}

function geminiTokens(usage: Loose): Tokens | undefined {
  if (typeof usage?.promptTokenCount !== 'number') return undefined
  // Sound has one rate, also from the cache.
  const sound = list(usage.cacheTokensDetails).find(({ modality }) => modality === 'AUDIO')?.tokenCount ?? 0
  const cached = (usage.cachedContentTokenCount ?? 0) - sound
  const input = usage.promptTokenCount + (usage.toolUsePromptTokenCount ?? 0) - cached
  const output = (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0)
  return { input, cached, written: 0, writtenHour: 0, output }
}

type Read = (value: Loose) => Said | undefined

const READ: Record<ClientFormatName, Read> = {
  'openai-chat'({ choices, usage }) {
    const [choice] = list(choices)
    if (!choice) return undefined
    const message = choice.message ?? {}
    const { text, thoughts } = contentOf(message.content)
    return {
      text: text + (message.refusal ?? ''),
      thoughts: (message.reasoning_content ?? message.reasoning ?? '') + thoughts,
      calls: list(message.tool_calls).map(chatCall),
      end: message.refusal ? 'filter' : endOf(choice.finish_reason),
      tokens: chatTokens(usage),
    }
  },
  'openai-responses'({ output, status, incomplete_details: why, usage }) {
    const items = list(output)
    const parts = items.filter(({ type }) => type === 'message').flatMap(({ content }) => list(content))
    const thoughts = items.filter(({ type }) => type === 'reasoning')
    return {
      text: joined(parts, ({ text, refusal }) => text ?? refusal),
      thoughts: joined(
        thoughts.flatMap(({ summary, content }) => [...list(summary), ...list(content)]),
        ({ text }) => text,
      ),
      calls: items
        .filter(({ type }) => type === 'function_call')
        .map((call) => ({ name: call.name, input: inputOf(call.arguments) })),
      end: parts.some(({ refusal }) => refusal)
        ? 'filter'
        : endOf(status === 'incomplete' ? why?.reason : status === 'completed' ? status : undefined),
      tokens: responsesTokens(usage),
    }
  },
  'anthropic-messages'({ content, stop_reason: reason, usage }) {
    const blocks = list(content)
    return {
      text: joined(blocks, ({ type, text }) => (type === 'text' ? text : '')),
      thoughts: joined(blocks, ({ thinking }) => thinking),
      calls: blocks
        .filter(({ type }) => type === 'tool_use')
        .map(({ name, input }) => ({ name, input: inputOf(input) })),
      end: endOf(reason),
      tokens: messagesTokens(usage),
    }
  },
  gemini({ candidates, promptFeedback, usageMetadata }) {
    const [candidate] = list(candidates)
    const parts = list(candidate?.content?.parts)
    return {
      text: joined(parts, ({ text, thought }) => (thought ? '' : text)),
      thoughts: joined(parts, ({ text, thought }) => (thought ? text : '')),
      calls: parts
        .filter(({ functionCall }) => functionCall)
        .map(({ functionCall: { name, args } }) => ({ name, input: inputOf(args) })),
      end: endOf(candidate?.finishReason ?? (promptFeedback?.blockReason ? 'SAFETY' : undefined)),
      tokens: geminiTokens(usageMetadata),
    }
  },
}

const READ_STREAM: Record<ClientFormatName, (events: Loose[]) => Said | undefined> = {
  'openai-chat'(events) {
    if (events.some(({ error }) => error)) return undefined
    const choices = events.flatMap(({ choices }) => list(choices).filter(({ index }) => (index ?? 0) === 0))
    const deltas = choices.map(({ delta }) => delta ?? {})
    const pieces = deltas.map(({ content }) => contentOf(content))
    const calls: { id: unknown; name: string; input: string }[] = []
    for (const { index, id, function: called } of deltas.flatMap((delta) => list(delta.tool_calls))) {
      const known = calls.findIndex((call) => id && call.id === id)
      const at = typeof index === 'number' ? index : known >= 0 ? known : id ? calls.length : calls.length - 1
      calls[at] ??= { id, name: called?.name, input: '' }
      calls[at].input += called?.arguments ?? ''
    }
    return {
      text: joined(pieces, ({ text }) => text) + joined(deltas, ({ refusal }) => refusal),
      thoughts:
        joined(deltas, (delta) => delta.reasoning_content ?? delta.reasoning) +
        joined(pieces, (piece) => piece.thoughts),
      calls: calls.filter(Boolean).map(({ name, input }) => ({ name, input: inputOf(input) })),
      end: deltas.some(({ refusal }) => refusal)
        ? 'filter'
        : endOf(choices.findLast(({ finish_reason: finish }) => finish)?.finish_reason),
      tokens: chatTokens(events.findLast(({ usage }) => usage)?.usage),
    }
  },
  'openai-responses'(events) {
    const last = events.findLast(({ type }) => type === 'response.completed' || type === 'response.incomplete')
    const items = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
    if (!last?.response) return undefined
    const { output } = last.response
    return READ['openai-responses']({ ...last.response, output: list(output).length > 0 ? output : items })
  },
  'anthropic-messages'(events) {
    const blocks: Loose[] = []
    let usage: Loose = events.find(({ type }) => type === 'message_start')?.message?.usage ?? {}
    let reason: Loose
    for (const { type, index, content_block: block, delta, usage: more } of events) {
      if (type === 'content_block_start') blocks[index] = { ...block, given: block.input, input: '' }
      if (type === 'content_block_delta' && blocks[index]) {
        blocks[index].text = (blocks[index].text ?? '') + (delta.text ?? '')
        blocks[index].thinking = (blocks[index].thinking ?? '') + (delta.thinking ?? '')
        blocks[index].input += delta.partial_json ?? ''
      }
      if (type !== 'message_delta') continue
      reason = delta?.stop_reason
      for (const [name, value] of Object.entries(more ?? {})) if (value !== null) usage = { ...usage, [name]: value }
    }
    for (const block of list(blocks)) block.input = block.input === '' ? block.given : block.input
    return READ['anthropic-messages']({ content: blocks, stop_reason: reason, usage })
  },
  gemini(events) {
    const whole = events.flat()
    const candidates = whole.flatMap(({ candidates: some }) => list(some).filter(({ index }) => (index ?? 0) === 0))
    return READ.gemini({
      candidates:
        candidates.length === 0
          ? []
          : [
              {
                content: { parts: candidates.flatMap(({ content }) => list(content?.parts)) },
                finishReason: candidates.findLast(({ finishReason }) => finishReason)?.finishReason,
              },
            ],
      promptFeedback: whole.find(({ promptFeedback }) => promptFeedback)?.promptFeedback,
      usageMetadata: whole.findLast(({ usageMetadata }) => usageMetadata)?.usageMetadata,
    })
  },
}
