// What a caller asks about a response or a conversation that a vendor keeps. Free of charge, as it is there.
import type { JsonText } from '../../../kernel/json.ts'
import { type Json, objects, text } from '../../check.ts'
import type { Ask, Continued } from '../../protocol.ts'
import { readErrorBody } from '../../vendor-words.ts'
import { readWhole } from '../whole.ts'
import { passResponsesAnswer } from './pass.ts'

interface StoredQuestion {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below the vendor's address, with its ids encoded. */
  readonly path: string
  /** With its question mark, or empty. */
  readonly query: string
  readonly body?: JsonText['text']
  /** The answer is a response, under the public name of its model. */
  readonly isResponse?: boolean
  readonly continues?: readonly Continued[]
}

export function storedAsk(question: StoredQuestion, uid: string): Ask {
  const { method, path, query, body: sent, isResponse = false, continues } = question
  return {
    product: uid,
    door: 'openai-responses',
    stream: false,
    price: {},
    worst: {},
    ...(continues ? { continues } : {}),
    open: (target) => ({
      call: {
        method,
        url: target.baseUrl + path + query,
        headers: { accept: 'application/json', ...(sent === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(sent === undefined ? {} : { body: sent }),
      },
      answer(body) {
        const shown = isResponse ? passResponsesAnswer(body, uid).body : body
        const keptAs = method === 'DELETE' ? [] : idsIn(readWhole(body).value)
        return { body: shown, contentType: 'application/json', keptAs, usage: {} }
      },
      said: readErrorBody,
    }),
  }
}

/** What was shown to an account is its own: a conversation, an item, or each of a list. */
function idsIn(value: Json): string[] {
  const all = Array.isArray(value.data) ? objects(value.data) : [value]
  return all.map(({ id }) => text(id)).filter((id) => id !== undefined)
}
