// What a vendor can be asked that costs nothing, for formats whose least call is not small: whoever sells pictures, films or rows of data
// shows by it that address and credential are right, and nothing is ordered.
import { isDataEndpoint } from '../catalog/endpoint.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import type { HttpCall } from '../upstream/call.ts'
import { listCall } from './media/video-task/task.ts'
import type { Target } from './protocol.ts'

export interface FreeCheck {
  readonly call: HttpCall
  /** The statuses that show it. */
  readonly shownBy: (status: number) => boolean
  /** What was done, and what was not. */
  readonly words: string
}

const isSuccess = (status: number) => status >= 200 && status < 300
/** Whoever refuses what is missing from a request has found the credential right. */
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
      const url = dataAddress(target)
      return url === undefined
        ? undefined
        : {
            call: { method: 'GET', url, headers: accept },
            shownBy: isUnderstood,
            words: 'It was asked without parameters, and address and credential are right. No row was bought.',
          }
    }
    default:
      return undefined
  }
}

/** Without any of its parameters; where one stands in the address, with what is nobody's name. */
function dataAddress({ baseUrl, model: product }: Target): string | undefined {
  const spec = ENDPOINTS.filter(isDataEndpoint).find((one) => one.product === product)
  return spec && `${baseUrl}/${spec.vendorPath.replaceAll(/\{\w+\}/g, '-')}`
}
