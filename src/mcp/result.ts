// What a tool's ending looks like to the protocol: an answer, or an error that an agent can act on.
import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Fault } from '../kernel/fault.ts'
import type { ToolAnswer } from './tool.ts'

/** The names of what stands beside an answer. */
const REQUEST_ID = 'tollgate/requestId'
const CHARGE = 'tollgate/charge'
const NEXT = 'tollgate/next'
const ERROR = 'tollgate/error'

export function answered({ structured, text, charge, next, content }: ToolAnswer, requestId: string): CallToolResult {
  const notes = [
    ...(next ? [`More: call again with ${JSON.stringify(next)}.`] : []),
    ...(charge === undefined ? [] : [`Charged ${charge} credits.`]),
  ]
  const told = [text, ...notes].filter(Boolean).join('\n\n')
  return {
    content: [...(told ? [{ type: 'text' as const, text: told }] : []), ...(content ?? [])],
    structuredContent: structured as NonNullable<CallToolResult['structuredContent']>, // Parsed JSON, or our own object.
    _meta: {
      [REQUEST_ID]: requestId,
      [CHARGE]: charge ?? '0',
      ...(next === undefined ? {} : { [NEXT]: next }),
    },
  }
}

/** One sentence on what went wrong, one on what to do, and the same for programs. */
export function refused(fault: Fault, requestId: string): CallToolResult {
  const { message, code, kind, details } = fault
  const advice = ADVICE[kind]
  return {
    isError: true,
    content: [{ type: 'text', text: advice === undefined ? message : `${message} ${advice}` }],
    _meta: {
      [REQUEST_ID]: requestId,
      [CHARGE]: '0',
      [ERROR]: {
        code,
        kind,
        ...(details.param === undefined ? {} : { param: details.param }),
        ...(details.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: details.retryAfterSeconds }),
      },
    },
  }
}

const ADVICE: Partial<Record<Fault['kind'], string>> = {
  credits_short: 'Nothing was charged. Ask for less, or tell the user to add credits.',
  rate_limited: 'Nothing was charged.',
  model_unknown: 'The tool list_models lists those of this key.',
  model_restricted: 'The tool list_models lists those of this key.',
  internal: 'Nothing was charged. Tell the user the request id if it happens again.',
}
