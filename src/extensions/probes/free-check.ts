// Free vendor tests, for formats whose smallest call is expensive (images, videos, rows of data). They show that
// address and credential are right without ordering anything.
import { type EndpointSpec, isDataEndpoint } from '../../catalog/endpoint.ts'
import { ENDPOINTS } from '../../catalog/index.ts'
import { readJson } from '../../kernel/json.ts'
import { CLIENT_FORMATS, type ProtocolName, protocolsOf, TEXT_PROTOCOLS } from '../../meter/kind.ts'
import { isPaid } from '../../pipeline/read.ts'
import { listCall } from '../../protocols/media/video-task/task.ts'
import type { PaidRequest, Target } from '../../protocols/protocol.ts'
import { FORMATS } from '../../protocols/text/formats.ts'
import { type ModelFacts, modelsAddress, readTextRequest } from '../../protocols/text/text.ts'
import type { HttpCall } from '../../upstream/call.ts'

export interface FreeCheck {
  readonly call: HttpCall
  /** The statuses that count as success. */
  readonly shownBy: (status: number) => boolean
  /** What was tested, and what was not. */
  readonly words: string
}

const isSuccess = (status: number) => status >= 200 && status < 300
/** A vendor that rejects the request as incomplete has accepted the credential. */
const isUnderstood = (status: number) => isSuccess(status) || status === 400 || status === 422

const accept = { accept: 'application/json' }

export function freeCheck(target: Target): FreeCheck | undefined {
  switch (target.protocol) {
    case 'video-task':
      return {
        call: listCall(target, 1),
        shownBy: isSuccess,
        words: 'It shows its tasks, so that address and credential are right. No film was ordered.',
      }
    case 'openai-images':
      return {
        call: {
          method: 'POST',
          url: `${target.baseUrl}/images/generations`,
          headers: { ...accept, 'content-type': 'application/json' },
          body: JSON.stringify({ model: target.model }),
        },
        shownBy: isUnderstood,
        words: 'It was asked without a prompt, and address and credential are right. No picture was ordered.',
      }
    case 'social-v2':
    case 'site-analytics': {
      const { bridge, baseUrl } = target
      // A vendor that names no address for it is not tested.
      const path = bridge ? bridge.check : dataPath(target)
      if (path === undefined) return undefined
      const call = { method: 'GET', url: `${baseUrl}/${path}`, headers: accept } as const
      const words = 'It was asked without parameters, and address and credential are right. No row was bought.'
      if (!bridge) return { call, shownBy: isUnderstood, words }
      return { call, shownBy: isSuccess, words: 'It says what the credential may use. No data were bought.' }
    }
    default:
      return undefined
  }
}

/** The endpoint without its parameters; a parameter in the path gets a name that does not exist. */
function dataPath({ model: product }: Target): string | undefined {
  const spec = ENDPOINTS.filter(isDataEndpoint).find((one) => one.product === product)
  return spec?.vendorPath.replaceAll(/\{\w+\}/g, '-')
}

/** A request that can be repeated for free: it only reads and orders nothing. Undefined: no such request is known. */
export function probeCall(target: Target): HttpCall | undefined {
  if (target.protocol === 'video-task' || target.bridge) return freeCheck(target)?.call
  const listsModels = target.cloud === undefined && !protocolsOf('data').some((one) => one === target.protocol)
  return listsModels ? { method: 'GET', url: modelsAddress(target), headers: accept } : undefined
}

// The smallest call in each format, to test a vendor.

const QUESTION = 'Hi'
/** Reasoning models reject lower limits. */
const TOKENS_LEAST = 16

/** Undefined for formats whose smallest call is expensive: an image, a video, a paid row of data. */
export function smallestRequest(
  protocol: ProtocolName,
  model: ModelFacts,
  endpoints: readonly EndpointSpec[],
): PaidRequest | undefined {
  const inJson = (body: object) => readJson(Buffer.from(JSON.stringify({ model: model.uid, ...body })))
  for (const { sells, ask, smallest } of endpoints.filter(isPaid))
    if (smallest && protocolsOf(sells).some((one) => one === protocol)) return ask?.(inJson(smallest), model.uid)
  if (!TEXT_PROTOCOLS.some((one) => one === protocol)) return undefined
  const clientFormat = CLIENT_FORMATS.find((one) => one === protocol) ?? 'openai-chat'
  const tokens = model.traits.tokensField === 'max_completion_tokens' ? TOKENS_LEAST : 1
  return readTextRequest(clientFormat, inJson(FORMATS[clientFormat].smallest(QUESTION, tokens)), model)
}
