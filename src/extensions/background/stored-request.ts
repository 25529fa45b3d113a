// Requests for responses and conversations that a vendor stores. They are free of charge, as at the vendor.
import type { EndpointSpec } from '../../catalog/endpoint.ts'
import { type Json, type JsonText, objects, text } from '../../kernel/json.ts'
import type { Continued, PaidRequest } from '../../protocols/protocol.ts'
import { passResponsesAnswer } from '../../protocols/text/openai-responses/pass.ts'
import { readWhole } from '../../protocols/text/relay.ts'
import { readErrorBody } from '../../protocols/vendor-words.ts'

interface StoredQuestion {
  readonly method: EndpointSpec['method']
  /** The path below the vendor's address, with encoded ids. */
  readonly path: string
  /** With its question mark, or empty. */
  readonly query: string
  readonly body?: JsonText
  /** The answer is a response and gets its model's public name. */
  readonly isResponse?: boolean
  readonly continues?: readonly Continued[]
}

export function storedRequest(question: StoredQuestion, uid: string): PaidRequest {
  const { method, path, query, body: sent, isResponse = false, continues } = question
  return {
    product: uid,
    clientFormat: 'openai-responses',
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
        const storedAs = method === 'DELETE' ? [] : idsMade(readWhole(body).value, path, sent?.value)
        return { body: shown, contentType: 'application/json', storedAs, usage: {} }
      },
      vendorError: readErrorBody,
    }),
  }
}

/**
 * Ids that the vendor itself assigned: newly created conversations and items, and the object that was requested by an
 * id already recorded. Other ids in the answer are not recorded: a caller may have written them into an item, and they
 * may belong to another account.
 */
function idsMade(value: Json, path: string, sent: Json | undefined): string[] {
  const asked = path.split('/')[2]
  const all = Array.isArray(value.data) ? objects(value.data) : [value]
  const given = new Set(objects(sent?.items).map(({ id }) => id))
  const isKnown = (id: unknown) => id === asked || (sent !== undefined && !given.has(id))
  return all.map(({ id }) => (isKnown(id) ? text(id) : undefined)).filter((id) => id !== undefined)
}
