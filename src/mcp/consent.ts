// A person's yes before a call that costs more than they set: `?confirm_above=5` in the address that a client was given.
import { type InputRequiredResult, inputRequired, inputResponse } from '@modelcontextprotocol/server'
import { type Credits, formatCredits, parseCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import type { ToolCall } from './tool.ts'

/** Not a fault: the client is to ask, and to call again with the answer. */
export class InputNeeded extends Error {
  readonly result: InputRequiredResult

  constructor(result: InputRequiredResult) {
    super('the client is asked for more')
    this.result = result
  }
}

const KEY = 'consent'

/** What the call may cost at most: as the agent says, or as much as needs no confirmation, or as the user is asked to confirm. */
export function costBound(call: ToolCall, want: Credits): Credits | undefined {
  if (call.costMax !== undefined) return call.costMax
  const above = readThreshold(call.query.get('confirm_above'))
  return above === undefined || above > want ? above : want
}

/** Returns when the call may be made. */
export function askConsent(call: ToolCall, cost: Credits): void {
  const above = readThreshold(call.query.get('confirm_above'))
  if (above === undefined || cost <= above) return
  const answer = inputResponse(call.request.inputResponses, KEY)
  if (answer.kind === 'elicit') {
    if (answer.action === 'accept' && answer.content?.agree === true) return
    throw new Fault('access_denied', {
      message: 'The user did not agree to the cost of this call. Nothing was charged.',
    })
  }
  const price = formatCredits(cost)
  if (call.canAsk)
    throw new InputNeeded(
      inputRequired({
        inputRequests: {
          [KEY]: inputRequired.elicit({
            message: `This call may cost up to ${price} credits. Make it?`,
            requestedSchema: {
              type: 'object',
              properties: { agree: { type: 'boolean', title: `Spend up to ${price} credits` } },
              required: ['agree'],
            },
          }),
        },
      }),
    )
  // Whatever a call says for itself, such as a max_cost, the model may have written: only a person's answer is one.
  throw new Fault('access_denied', {
    message: `This call may cost up to ${price} credits, which the user wants to confirm, and this client cannot ask. Nothing was charged. The user can raise confirm_above in the address of this server, or use a client that asks.`,
  })
}

function readThreshold(given: string | null): Credits | undefined {
  if (given === null) return undefined
  const above = parseCredits(given)
  if (above === undefined)
    throw invalid('"confirm_above" in the address must be an amount of credits.', 'confirm_above')
  return above
}
