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
  readonly body?: JsonText
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
        ...(sent === undefined ? {} : { body: sent.text }),
      },
      answer(body) {
        const shown = isResponse ? passResponsesAnswer(body, uid).body : body
        const keptAs = sent ? idsMade(readWhole(body).value, sent.value) : []
        return { body: shown, contentType: 'application/json', keptAs, usage: {} }
      },
      said: readErrorBody,
    }),
  }
}

/**
 * What the vendor has named itself: a conversation, or each item of a list. Only where it is made can that be told from ids that
 * callers wrote into their items, which would be another account's; those are kept for nobody.
 */
function idsMade(value: Json, sent: Json): string[] {
  const all = Array.isArray(value.data) ? objects(value.data) : [value]
  const given = new Set([sent, ...objects(sent.items)].map(({ id }) => id))
  return all.map(({ id }) => (given.has(id) ? undefined : text(id))).filter((id) => id !== undefined)
}
