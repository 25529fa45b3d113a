// The call that a quote is about: its body alone says which endpoint would take it, and is read as that endpoint reads it.
import type { Principal } from '../admission/api-key.ts'
import { TEXT_PROTOCOLS, type TextProtocolName } from '../catalog/kind.ts'
import { type Catalog, findProduct, type Product } from '../catalog/store.ts'
import { Fault } from '../kernel/fault.ts'
import { type JsonText, readJson } from '../kernel/json.ts'
import type { ImageAskDeps } from '../protocols/openai-images/ask.ts'
import { readImageBody } from '../protocols/openai-images/body.ts'
import type { Ask } from '../protocols/protocol.ts'
import { imageAsk } from './images.ts'
import { textAsk, withModel } from './text.ts'
import { videoAsk } from './video.ts'

export interface DefaultModels {
  readonly chat: string
  readonly images: string
}

export interface Quoted {
  readonly ask: Ask
  readonly product: Product
}

export async function readQuoted(
  body: Buffer,
  catalog: Catalog,
  principal: Principal,
  defaults: DefaultModels | undefined,
): Promise<Quoted> {
  const sent = readJson(body)
  const has = (name: string) => Object.hasOwn(sent.value, name)
  const preset = has('messages') ? defaults?.chat : has('input') ? undefined : defaults?.images
  const json = withModel(sent, preset)
  const found = typeof json.value.model === 'string' ? findProduct(catalog, json.value.model) : undefined
  const type = found && 'type' in found ? found.type : 'text'
  if (type === 'image') {
    const read = await readImageBody(inPieces(body), { contentLength: body.length })
    // Nothing is fetched or kept for an ask that is never opened.
    const { ask, model } = imageAsk(
      { ...read, json: withModel(read.json, defaults?.images) },
      catalog,
      principal,
      {} as ImageAskDeps,
    )
    return { ask, product: model }
  }
  const { ask, model } = type === 'video' ? videoAsk(json, catalog, principal) : anyTextAsk(json, catalog, principal)
  return { ask, product: model }
}

async function* inPieces(body: Buffer): AsyncGenerator<Buffer> {
  yield body
}

/** The formats overlap: the likeliest is tried first, and its refusal is the one that is told. */
function anyTextAsk(json: JsonText, catalog: Catalog, principal: Principal) {
  const has = (name: string) => Object.hasOwn(json.value, name)
  const likely: TextProtocolName = has('input')
    ? 'openai-responses'
    : has('system')
      ? 'anthropic-messages'
      : 'openai-chat'
  let first: Fault | undefined
  for (const door of [likely, ...TEXT_PROTOCOLS])
    try {
      return textAsk(door, json, catalog, principal)
    } catch (error) {
      if (!(error instanceof Fault) || error.kind !== 'request_invalid') throw error
      first ??= error
    }
  throw first
}
