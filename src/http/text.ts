// The three text endpoints: from a body to an ask.
import type { FastifyRequest } from 'fastify'
import type { Principal } from '../admission/api-key.ts'
import type { Model } from '../catalog/document.ts'
import type { TextProtocolName } from '../catalog/kind.ts'
import type { Catalog } from '../catalog/store.ts'
import { readTextTraits } from '../catalog/traits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson, splice } from '../kernel/json.ts'
import { type ModelFacts, readModelName, readTextAsk, type TextAsk } from '../protocols/text.ts'
import { routesFor } from '../routing/route.ts'
import { jsonBody } from './server.ts'

export const TEXT_DOORS: Record<string, TextProtocolName> = {
  chat: 'openai-chat',
  responses: 'openai-responses',
  messages: 'anthropic-messages',
}

const DOOR_PATHS: Record<TextProtocolName, string> = {
  'openai-chat': '/v1/chat-completions',
  'openai-responses': '/alpha/responses',
  'anthropic-messages': '/beta/v1/messages',
}

/** For the checks that do not depend on the model, when there is no such model. */
const NO_MODEL: ModelFacts = {
  uid: '',
  traits: readTextTraits(),
  limits: { outputTokensReserve: 1, outputTokensFloor: 1 },
}

export function readTextRequest(request: FastifyRequest): JsonText {
  return readJson(jsonBody(request))
}

/** The contract's table names a default beside "required": it is filled in only where the operator says so. */
export function withModel(json: JsonText, preset: string | undefined): JsonText {
  if (preset === undefined || json.member('model')) return json
  return readJson(Buffer.from(splice(json, { add: { model: JSON.stringify(preset) } })))
}

export function textAsk(
  door: TextProtocolName,
  json: JsonText,
  catalog: Catalog,
  principal: Principal,
): { ask: TextAsk; model: Model } {
  const uid = readModelName(json)
  const model = modelAt(catalog, uid)
  // Whatever is wrong with the body is said first, even when the model is wrong too.
  if (!model?.enabled || model.type !== 'text') readTextAsk(door, json, NO_MODEL)
  if (!model?.enabled) throw new Fault('model_unknown')
  if (model.type !== 'text') throw invalid(`"${uid}" is not a text model; GET /v1/models lists the types.`, 'model')
  if (!model.doors.includes(door))
    throw invalid(
      `"${uid}" is not offered here; use ${model.doors.map((name) => DOOR_PATHS[name]).join(' or ')}.`,
      'model',
    )
  const ask = readTextAsk(door, json, { uid, traits: model.traits, limits: model.limits })
  // What no route can carry is refused before anything is held.
  routesFor(ask, model.routes)
  if (principal.models !== null && !principal.models.has(uid)) throw new Fault('model_restricted')
  return { ask, model }
}

export function modelAt(catalog: Catalog, uid: string): Model | undefined {
  return Object.hasOwn(catalog.document.models, uid) ? catalog.document.models[uid] : undefined
}
