// What a caller asks about a response that a vendor keeps: itself, its input, its end. Free of charge, as it is there.
import type { Ask } from '../../protocol.ts'
import { readErrorBody } from '../../vendor-words.ts'
import { passResponsesAnswer } from './pass.ts'

interface StoredQuestion {
  readonly method: 'GET' | 'DELETE'
  readonly id: string
  /** `/input_items`, or nothing for the response itself. */
  readonly below: string
  /** With its question mark, or empty. */
  readonly query: string
}

export function storedAsk({ method, id, below, query }: StoredQuestion, uid: string): Ask {
  return {
    product: uid,
    door: 'openai-responses',
    stream: false,
    price: {},
    worst: {},
    open: (target) => ({
      call: {
        method,
        url: `${target.baseUrl}/responses/${encodeURIComponent(id)}${below}${query}`,
        headers: { accept: 'application/json' },
      },
      answer(body) {
        const isResponse = method === 'GET' && below === ''
        return {
          body: isResponse ? passResponsesAnswer(body, uid).body : body,
          contentType: 'application/json',
          usage: {},
        }
      },
      said: readErrorBody,
    }),
  }
}
