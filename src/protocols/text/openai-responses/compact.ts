// A conversation compacted by its vendor: a call like a response, with its own path, without streaming and without an
// output limit.
import { invalid } from '../../../kernel/fault.ts'
import { type JsonText, objects, text, withMembers } from '../../../kernel/json.ts'
import { wrong } from '../../check.ts'
import { garbled, type PaidRequest } from '../../protocol.ts'
import { readErrorBody } from '../../vendor-words.ts'
import { readWhole } from '../relay.ts'
import { admitMembers, withoutUnknown } from '../request-members.ts'
import { type ModelFacts, readTextRequest } from '../text.ts'
import { readResponsesUsage, toUsage } from '../tokens.ts'
import { openaiResponses } from './format.ts'
import { passResponses } from './pass.ts'

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
  const { json, unknown } = admitMembers(openaiResponses.members, sent, model.traits.hostedTools)
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
