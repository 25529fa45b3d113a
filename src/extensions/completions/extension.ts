// Legacy completions, as older programs ask for them: each prompt is a chat with one message.
import { defineExtension } from '../../extension.ts'
import { paidEndpoints, type Serving } from '../../pipeline/paid-endpoint.ts'
import { readText } from '../../pipeline/readers.ts'
import { chatsOf } from './conversion.ts'
import { COMPLETIONS } from './endpoint.ts'
import { CompletionSink, completeAll } from './sink.ts'

const convert: Serving['convert'] = (json, out, call) => {
  const [chat, ...more] = chatsOf(json)
  if (chat && more.length === 0) return call(chat, new CompletionSink(out))
  return completeAll(
    out,
    chatsOf(json).map((chat, part) => (sink) => call(chat, sink, part)),
  )
}

export const completions = defineExtension({
  name: 'completions',
  entries: paidEndpoints(COMPLETIONS, { completions: { read: readText, convert } }),
})
