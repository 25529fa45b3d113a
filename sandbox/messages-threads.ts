// Threads of the Messages API: the vendor keeps a conversation under the id of its last answer, and the next request
// brings only what is new.
import type { IncomingHttpHeaders } from 'node:http'
import { type Json, list, record, string } from './json.ts'
import { Refusal } from './refusal.ts'

/** The oldest are forgotten. */
const KEPT_MAX = 500
const KEPT_CHARS_MAX = 200_000
/** What a request may not be combined with. */
const UNSUPPORTED = ['context_management', 'fallbacks']
/** What a thread was created with, and its continuations do not repeat. */
const CREATE_ONLY = ['system', 'tools'] as const

interface Thread {
  readonly conversation: Json
  continued: boolean
}

export class Threads {
  readonly #kept = new Map<string, Thread>()

  resume(body: Json, headers: IncomingHttpHeaders): Json {
    const { type, previous_message_id: previous } = record(body.thread)
    if (type === undefined) return body
    if (!String(headers['anthropic-beta'] ?? '').includes('message-threads-'))
      throw new Refusal(400, 'thread: Extra inputs are not permitted')
    const unsupported = UNSUPPORTED.find((name) => body[name] !== undefined)
    if (unsupported)
      throw new Refusal(400, `thread: cannot be used with ${unsupported}`, null, 'thread_unsupported_request')
    if (type !== 'continue') return body
    const repeated = CREATE_ONLY.find((name) => body[name] !== undefined)
    if (repeated) throw new Refusal(400, `${repeated}: may only be sent when the thread is created`)
    const found = this.#kept.get(string(previous))
    if (!found) throw new Refusal(404, `thread: no thread ends with ${string(previous)}`, null, 'thread_not_found')
    if (found.continued)
      throw new Refusal(400, 'thread: this response was continued already', null, 'thread_already_continued')
    found.continued = true
    const { messages, ...created } = found.conversation
    return { ...created, ...body, messages: [...list(messages), ...list(body.messages)] }
  }

  /** `body` is the whole conversation, as `resume` answered it. */
  keep(body: Json, message: Json): void {
    if (body.thread === undefined) return
    const { system, tools } = body
    const messages = [...list(body.messages), { role: 'assistant', content: message.content }]
    const conversation: Json = {
      ...(system === undefined ? {} : { system }),
      ...(tools === undefined ? {} : { tools }),
      messages,
    }
    if (JSON.stringify(conversation).length > KEPT_CHARS_MAX) return
    this.#kept.set(string(message.id), { conversation, continued: false })
    const oldest = this.#kept.keys().next().value
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest)
  }
}
