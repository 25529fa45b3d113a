// A chat vendor's whole answer on its way to a chat caller: measured, given the public name of the model, otherwise as it
// came.
import { Fault } from '../../kernel/fault.ts'
import { isObject, objects, text } from '../check.ts'
import type { Answer } from '../protocol.ts'
import { readChatUsage, toUsage } from '../tokens.ts'
import { readWhole, renamed } from '../whole.ts'

export function passChatAnswer(body: Buffer, uid: string): Answer {
  const whole = readWhole(body)
  if (!Array.isArray(whole.value.choices)) throw new Fault('upstream_garbled', { internal: { why: 'no choices' } })
  let outputChars = 0
  for (const choice of objects(whole.value.choices)) {
    const message = isObject(choice.message) ? choice.message : {}
    outputChars += (text(message.content) ?? '').length + (text(message.reasoning_content) ?? '').length
    for (const call of objects(message.tool_calls)) outputChars += JSON.stringify(call.function ?? '').length
  }
  return {
    body: renamed(body, whole, uid),
    contentType: 'application/json',
    usage: toUsage(readChatUsage(whole.value.usage)),
    outputChars,
  }
}
