// The seam between the one path and the three text formats: a caller's body in, an ask out.
import { invalid } from '../kernel/fault.ts'
import type { JsonText } from '../kernel/json.ts'
import { Fields, shown } from './check.ts'
import { checkChat } from './openai-chat/check.ts'
import { openChat } from './openai-chat/exchange.ts'
import type { Ask, TextProtocolName, Traits } from './protocol.ts'
import { estimateTokens } from './tokens.ts'
import { readTraits } from './traits.ts'

/** What the catalogue says of a model, as far as asks depend on it. */
export interface ModelFacts {
  readonly uid: string
  readonly traits: Traits
  readonly limits: {
    readonly contextTokens?: number | undefined
    readonly outputTokensMax?: number | undefined
    readonly outputTokensReserve: number
    readonly outputTokensFloor: number
  }
}

export interface TextAsk extends Ask {
  readonly door: TextProtocolName
}

/** The model's name, for its lookup before anything else is read. */
export function readModelName(json: JsonText): string {
  const model = Object.hasOwn(json.value, 'model') ? json.value.model : undefined
  if (model === undefined || model === null)
    throw invalid('"model" is required: the id of a model, as GET /v1/models lists it.', 'model')
  if (typeof model !== 'string' || model === '')
    throw invalid(`"model" must be a string, not ${shown(model)}.`, 'model')
  return model
}

export function readTextAsk(door: TextProtocolName, json: JsonText, model: ModelFacts): TextAsk {
  const traits = readTraits(model.traits)
  const fields = new Fields(json)
  const ask = checkChat(fields, traits)
  const { limits } = model
  const input = Math.min(
    estimateTokens(json.value.messages) + estimateTokens(json.value.tools ?? ''),
    limits.contextTokens ?? Number.MAX_SAFE_INTEGER,
  )
  const perChoice = Math.min(
    ask.tokensMax ?? limits.outputTokensReserve,
    limits.outputTokensMax ?? Number.MAX_SAFE_INTEGER,
  )
  return {
    door,
    product: model.uid,
    stream: ask.stream,
    price: {},
    worst: { input, output: perChoice * ask.n },
    ...(ask.tokensMax === undefined ? { outputOpen: { floorTokens: limits.outputTokensFloor * ask.n } } : {}),
    ...(ask.hasTools && traits.toolsNeed !== undefined ? { needs: [traits.toolsNeed] } : {}),
    open: (target, options) => openChat({ json, ask, uid: model.uid, target, options }),
  }
}
