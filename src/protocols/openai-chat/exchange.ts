// One exchange between a chat caller and a chat vendor.
import { Fault } from '../../kernel/fault.ts'
import type { JsonText } from '../../kernel/json.ts'
import type { Exchange, OpenOptions, Target } from '../protocol.ts'
import { PassRelay } from '../relay.ts'
import { readTraits } from '../traits.ts'
import { readErrorText } from '../vendor-words.ts'
import { passChatAnswer } from './answer.ts'
import type { ChatAsk } from './check.ts'
import { ChatObserver } from './observe.ts'
import { passChat } from './pass.ts'

export interface ChatOpening {
  readonly json: JsonText
  readonly ask: ChatAsk
  readonly uid: string
  readonly target: Target
  readonly options: OpenOptions
}

export function openChat({ json, ask, uid, target, options }: ChatOpening): Exchange {
  const traits = readTraits(target.traits)
  return {
    call: {
      method: 'POST',
      url: `${target.baseUrl}/chat/completions`,
      headers: {
        ...(target.secret === undefined ? {} : { authorization: `Bearer ${target.secret}` }),
        ...target.headers,
        'content-type': 'application/json',
        accept: ask.stream ? 'text/event-stream' : 'application/json',
      },
      body: passChat(json, ask, { model: target.model, traits, outputTokensCap: options.outputTokensCap }),
    },
    answer: (body) => passChatAnswer(body, uid),
    ...(ask.stream
      ? {
          stream: (headers: Readonly<Record<string, string>>) => {
            if (/json/.test(headers['content-type'] ?? ''))
              throw new Fault('upstream_garbled', { internal: { why: 'JSON in answer to a streaming request' } })
            return new PassRelay(new ChatObserver({ uid, includeUsage: ask.includeUsage, n: ask.n }))
          },
        }
      : {}),
    errorText: readErrorText,
  }
}
