// Which conversation a request belongs to, as far as its body tells: what stays the same from turn to turn.
import { createHash } from 'node:crypto'
import { isObject } from '../check.ts'

/** Undefined when nothing in it says so. */
export function conversationOf(sent: string | undefined): string | undefined {
  if (sent === undefined) return undefined
  const body: unknown = JSON.parse(sent)
  if (!isObject(body)) return undefined
  // The caller's own word for it, where there is one.
  if (typeof body.prompt_cache_key === 'string') return body.prompt_cache_key
  const turns: unknown = body.messages ?? body.input
  // Everything up to the first question comes again with every turn, word for word.
  const first = Array.isArray(turns) ? turns.findIndex((turn) => isObject(turn) && turn.role === 'user') : -1
  const begin = Array.isArray(turns) ? turns.slice(0, first + 1) : turns
  if (begin === undefined || (Array.isArray(begin) && begin.length === 0)) return undefined
  const said = JSON.stringify([body.system, body.instructions, begin])
  return createHash('sha256').update(said).digest('base64')
}
