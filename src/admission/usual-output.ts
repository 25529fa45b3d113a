// How much the calls of a key write with a model, so that a call without an output limit holds no more than it is
// likely to need. In memory of each process: a process that knows little of a key holds as much as the balance allows.
import type { PaidRequestFacts } from '../protocols/protocol.ts'
import type { Application, Offered } from './admit.ts'

/** The last answers of a key and model, and the bound that follows from them. */
interface Answers {
  readonly tokens: number[]
  next: number
  bound: number
}

const ANSWERS_MAX = 32
/** Fewer say little. */
const ANSWERS_MIN = 8
/** The bound is so many times the longest of the last answers: the next one may well be longer than all of them. */
const TIMES = 1.75
/** For keys whose answers were all short: no call is bound to less. */
const TOKENS_MIN = 1_024
const KNOWN_MAX = 10_000

export type UsualOutput = ReturnType<typeof createUsualOutput>

export function createUsualOutput() {
  /** The oldest first. */
  const known = new Map<string, Answers>()

  function boundOf(key: string, product: string): number {
    return known.get(keyAndProduct(key, product))?.bound ?? Number.POSITIVE_INFINITY
  }

  function narrowed<One extends Offered>(offered: One, key: string): One {
    const { paidRequest } = offered
    const bound = boundOf(key, paidRequest.product) * (paidRequest.choices ?? 1)
    const { reserveTokens, mostTokens = 0 } = paidRequest.outputOpen ?? {}
    if (reserveTokens === undefined || bound >= mostTokens) return offered
    return { ...offered, paidRequest: boundTo(bound, paidRequest) }
  }

  return {
    /** The call with a smaller reserve and maximum, where enough is known of its key and model. */
    applied<Call extends Application>(call: Call): Call {
      if (known.size === 0 || !call.paidRequest.outputOpen) return call
      const { keyId } = call.principal
      const own = narrowed(call, keyId)
      return own.fallbacks ? { ...own, fallbacks: own.fallbacks.map((one) => narrowed(one, keyId)) } : own
    },
    /**
     * A call without an output limit of the caller's has written so many tokens, over all choices. One that was cut
     * would have written more.
     */
    wrote({ key, product }: { key: string; product: string }, tokens: number, wasCut: boolean): void {
      const name = keyAndProduct(key, product)
      let answers = known.get(name)
      if (!answers) {
        if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value ?? '')
        answers = { tokens: [], next: 0, bound: Number.POSITIVE_INFINITY }
        known.set(name, answers)
      }
      answers.tokens[answers.next] = wasCut ? Number.POSITIVE_INFINITY : tokens
      answers.next = (answers.next + 1) % ANSWERS_MAX
      if (answers.tokens.length >= ANSWERS_MIN)
        answers.bound = Math.max(TOKENS_MIN, Math.ceil(TIMES * Math.max(...answers.tokens)))
    },
  }
}

const keyAndProduct = (key: string, product: string) => `${key} ${product}`

function boundTo<Facts extends PaidRequestFacts>(tokens: number, paidRequest: Facts): Facts {
  const { outputOpen, worst } = paidRequest
  if (!outputOpen) return paidRequest
  const { reserveTokens: reserve = 0, mostTokens } = outputOpen
  const reserveTokens = Math.min(reserve, tokens)
  // What `worst` has besides the reserve stays: a prediction is billed beyond the output limit.
  const output = (worst.output ?? 0) - reserve + reserveTokens
  return {
    ...paidRequest,
    worst: { ...worst, output },
    outputOpen: { ...outputOpen, reserveTokens, mostTokens: tokens, modelTokens: mostTokens },
  }
}
