// Requests for responses and conversations that a vendor stores. They are free of charge, as at the vendor.
import type { EndpointSpec } from '../../../catalog/endpoint.ts'
import { invalid } from '../../../kernel/fault.ts'
import { type Json, type JsonText, objects, text, withMembers } from '../../../kernel/json.ts'
import { wrong } from '../../check.ts'
import { type Continued, garbled, type PaidRequest } from '../../protocol.ts'
import { readErrorBody } from '../../vendor-words.ts'
import { readWhole } from '../relay.ts'
import { admitMembers, withoutUnknown } from '../request-members.ts'
import { type ModelFacts, readTextRequest } from '../text.ts'
import { readResponsesUsage, toUsage } from '../tokens.ts'
import { passResponses, passResponsesAnswer } from './pass.ts'

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

// A conversation compacted by its vendor: a call like a response, with its own path, without streaming and without an
// output limit.

const CHECKED = { stream: false, includeUsage: true, n: 1, tokensMax: undefined, hasTools: false } as const

export function readCompactRequest(sent: JsonText, model: ModelFacts): PaidRequest {
  const { input, previous_response_id: previous, stream, max_output_tokens: most, tools } = sent.value
  const isBare = input === undefined || input === null
  if (isBare && typeof previous !== 'string') throw wrong('input', 'or "previous_response_id" is required.')
  if (stream === true) throw wrong('stream', 'must be false: a conversation is compacted as a whole.')
  if (most !== undefined && most !== null) throw wrong('max_output_tokens', 'is not a parameter here; leave it out.')
  if (tools !== undefined && tools !== null)
    throw wrong('tools', 'is not a parameter here: a conversation is compacted without parameters; leave it out.')
  // The vendor cannot be told to stop at the end of the credits, so the hold covers the most that it may use.
  const { json, unknown } = admitMembers('openai-responses', sent, model.traits.hostedTools)
  const { outputOpen: _, ...paidRequest } = readTextRequest(
    'openai-responses',
    isBare ? withMembers(sent, { input: '""' }) : sent,
    model,
  )
  const { uid, traits, limits } = model
  const output = limits.outputTokensMax ?? limits.contextTokens ?? paidRequest.worst.output ?? 0
  return {
    ...paidRequest,
    worst: { ...paidRequest.worst, output },
    offer: 'compact',
    refusal: (protocol) =>
      protocol === 'openai-responses' ? undefined : invalid(`The vendor of "${uid}" does not compact.`, 'model'),
    open: (target) => ({
      call: {
        method: 'POST',
        url: `${target.baseUrl}/responses/compact`,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: passResponses(target.passesUnknown ? json : withoutUnknown(json, unknown), CHECKED, {
          model: target.model,
          // This call stores nothing, and has no `store` member to say so.
          traits: { ...traits, vendorState: true },
          outputTokensCap: undefined,
        }),
      },
      answer(body) {
        const { value } = readWhole(body, 'utf8')
        if (!Array.isArray(value.output)) throw garbled('no output')
        return {
          body,
          contentType: 'application/json',
          usage: toUsage(readResponsesUsage(value.usage, value.output)),
          outputChars: objects(value.output).reduce((sum, one) => sum + (text(one.encrypted_content) ?? '').length, 0),
        }
      },
      vendorError: readErrorBody,
    }),
  }
}
