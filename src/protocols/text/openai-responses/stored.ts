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
        const keptAs = method === 'DELETE' ? [] : idsMade(readWhole(body).value, path, sent?.value)
        return { body: shown, contentType: 'application/json', keptAs, usage: {} }
      },
      said: readErrorBody,
    }),
  }
}

/**
 * What the vendor has named itself: each conversation and item where it is made, and whatever was asked for by its id, because it
 * was kept before. Of all else that is shown nobody knows whether a caller wrote its id into an item: it may be another account's.
 */
function idsMade(value: Json, path: string, sent: Json | undefined): string[] {
  const asked = path.split('/')[2]
  const all = Array.isArray(value.data) ? objects(value.data) : [value]
  const given = new Set(objects(sent?.items).map(({ id }) => id))
  const isKnown = (id: unknown) => id === asked || (sent !== undefined && !given.has(id))
  return all.map(({ id }) => (isKnown(id) ? text(id) : undefined)).filter((id) => id !== undefined)
}
