// A chat vendor's whole answer on its way to a chat caller: measured, given the public name of the model, otherwise as it
// came.

import type { TextTraits } from '../../../catalog/traits.ts'
import { Fault } from '../../../kernel/fault.ts'
import { isObject, objects, text } from '../../check.ts'
import type { Answer } from '../../protocol.ts'
import { readChatUsage, toUsage } from '../tokens.ts'
import { readWhole, renamed } from '../whole.ts'
import { mendAnswer } from './mend.ts'

export function passChatAnswer(body: Buffer, uid: string, traits: TextTraits): Answer {
  const mends = traits.quirks.length > 0
  const whole = readWhole(body, mends ? 'utf8' : 'latin1')
  if (mends) mendAnswer(whole.value, traits.quirks)
  if (!Array.isArray(whole.value.choices)) throw new Fault('upstream_garbled', { internal: { why: 'no choices' } })
  return {
    body: mends ? JSON.stringify({ ...whole.value, model: uid }) : renamed(body, whole, uid),
    contentType: 'application/json',
    usage: toUsage(readChatUsage(whole.value.usage, traits)),
    outputChars: outputChars(whole.value.choices),
  }
}

function outputChars(choices: readonly unknown[]): number {
  let chars = 0
  for (const choice of objects(choices)) {
    const message = isObject(choice.message) ? choice.message : {}
    for (const name of ['content', 'reasoning_content', 'refusal']) chars += (text(message[name]) ?? '').length
    for (const call of objects(message.tool_calls)) chars += JSON.stringify(call.function ?? '').length
  }
  return chars
}
