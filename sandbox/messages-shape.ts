// What whole and streamed Messages answers have in common.
import type { Json } from './json.ts'
import type { TextAnswer } from './text-room.ts'

export const STOP_REASONS = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  length: 'max_tokens',
  tool: 'tool_use',
} as const

/** True when the caller asked for the hour's cache instead of the five minutes'. */
export function longLived({ body, reply }: TextAnswer): boolean {
  return reply.usage.cacheWrite > 0 && JSON.stringify([body.system, body.tools, body.messages]).includes('"ttl":"1h"')
}

export function messageHead(answer: TextAnswer): Json {
  return { id: `msg_${answer.id}`, type: 'message', role: 'assistant', model: answer.ask.model }
}

export function toolUseId(id: string): string {
  return id.replace(/^call_/, 'toolu_')
}
