// Legacy completions on top of chat: prompts become chats, and chat completions and their chunks become completions.
import { edited, isObject, type Json, type JsonText, objectOf, objects, readJson, text } from '../../kernel/json.ts'
import { readBody, wrong } from '../../protocols/check.ts'
import { bytesOf, bytesToText, eachBlock, encodeEvent, readEvent, SseBlocks } from '../../upstream/sse.ts'
import { completionsBody } from './endpoint.ts'

/** Members that a chat does not have. */
const OWN = ['prompt', 'suffix', 'echo', 'logprobs', 'best_of', 'messages']

/** The chat of each prompt. */
export function chatsOf(json: JsonText): JsonText[] {
  const { prompt, stream } = readBody(completionsBody, json)
  const prompts = typeof prompt === 'string' ? [prompt] : prompt
  if (stream && prompts.length > 1) throw wrong('stream', 'must be false: there are several prompts.')
  const remove = OWN.filter((name) => json.member(name))
  return prompts.map((content) =>
    edited(json, { remove, add: { messages: JSON.stringify([{ role: 'user', content }]) } }),
  )
}

/** The whole answers to the prompts as one. */
export function completionOf(answers: readonly Buffer[]): string {
  const chats = answers.map((body): Json => readJson(body).value)
  const choices = chats
    .flatMap(({ choices }) => objects(choices))
    .map((choice, index) => ({ ...choiceOf(choice), index }))
  return JSON.stringify({ ...headOf(chats[0] ?? {}), choices, ...usageOf(chats) })
}

const headOf = ({ id, created, model }: Json) => ({
  id: `cmpl-${String(id).replace(/^chatcmpl-/, '')}`,
  object: 'text_completion',
  created,
  model,
})

const choiceOf = ({ message, delta, index, finish_reason }: Json) => {
  const { content, refusal } = objectOf(message ?? delta)
  return { text: text(content) ?? text(refusal) ?? '', index, logprobs: null, finish_reason: finish_reason ?? null }
}

function usageOf(chats: readonly Json[]): { usage?: Json } {
  const usages = chats.map(({ usage }) => usage).filter(isObject)
  const [first] = usages
  if (!first || usages.length < chats.length) return {}
  if (usages.length === 1) return { usage: first }
  const sum = (name: string) => usages.reduce((total, usage) => total + Number(usage[name] ?? 0), 0)
  return {
    usage: Object.fromEntries(['prompt_tokens', 'completion_tokens', 'total_tokens'].map((name) => [name, sum(name)])),
  }
}

/** The events of a chat as those of a completion. */
export class CompletionEvents {
  readonly #blocks = new SseBlocks()

  push(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): string {
    const bytes = bytesOf(piece, encoding)
    let out = ''
    eachBlock(this.#blocks.push(bytes), (block) => {
      out += written(block)
    })
    return out
  }

  end(): string {
    return written(this.#blocks.rest())
  }
}

/** Comments stay: they keep the connection open, and say what the call cost. */
function written(block: string): string {
  const event = readEvent(block)
  const comments = block.split('\n').filter((line) => line.startsWith(':'))
  const said = comments.length === 0 ? '' : `${bytesToText(comments.join('\n'))}\n${event ? '' : '\n'}`
  return said + (event ? chunkOf(event.data) : '')
}

function chunkOf(data: string): string {
  if (data === '[DONE]') return encodeEvent(data)
  const chunk: unknown = JSON.parse(data)
  if (!isObject(chunk) || !Array.isArray(chunk.choices)) return encodeEvent(data) // An error.
  const choices = objects(chunk.choices).map(choiceOf)
  // What only names the role, or is a thought, is nothing here.
  if (!isObject(chunk.usage) && choices.every((choice) => choice.text === '' && choice.finish_reason === null))
    return ''
  return encodeEvent(JSON.stringify({ ...headOf(chunk), choices, ...(chunk.usage ? { usage: chunk.usage } : {}) }))
}
