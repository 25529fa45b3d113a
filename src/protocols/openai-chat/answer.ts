// A chat vendor's whole answer on its way to a chat caller: measured, given the public name of the model, otherwise as it
// came.
import { Fault } from '../../kernel/fault.ts'
import { isObject, type Json, objects, text } from '../check.ts'
import type { Answer } from '../protocol.ts'
import { readChatUsage, toUsage } from '../tokens.ts'
import type { TextTraits } from '../traits.ts'
import { readWhole, renamed } from '../whole.ts'
import { mendAnswer } from './mend.ts'

export function passChatAnswer(body: Buffer, uid: string, traits: TextTraits): Answer {
  const whole = readWhole(body)
  if (traits.quirks.length > 0) mendAnswer(whole.value, traits.quirks)
  if (!Array.isArray(whole.value.choices)) throw new Fault('upstream_garbled', { internal: { why: 'no choices' } })
  let outputChars = 0
  for (const choice of objects(whole.value.choices)) {
    const message = isObject(choice.message) ? choice.message : {}
    outputChars += (text(message.content) ?? '').length + (text(message.reasoning_content) ?? '').length
    for (const call of objects(message.tool_calls)) outputChars += JSON.stringify(call.function ?? '').length
  }
  return {
    body: traits.quirks.length > 0 ? rewritten(whole.value, uid) : renamed(body, whole, uid),
    contentType: 'application/json',
    usage: toUsage(readChatUsage(whole.value.usage)),
    outputChars,
  }
}

/** A mended answer is written anew; its text is still one character per byte. */
function rewritten(value: Json, uid: string): Buffer {
  return Buffer.from(JSON.stringify({ ...value, model: uid }), 'latin1')
}
