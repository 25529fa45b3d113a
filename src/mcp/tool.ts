// A tool: an endpoint as an agent sees it.
import type { ContentBlock, ServerContext } from '@modelcontextprotocol/server'
import type { Principal } from '../admission/api-key.ts'
import type { JsonSchema } from '../catalog/endpoint.ts'
import type { Catalog } from '../catalog/store.ts'
import type { Credits } from '../kernel/credits.ts'
import { invalid } from '../kernel/fault.ts'

/** By which a listing is cut: each of the first three has an address of its own. */
export type Group = 'analytics' | 'social' | 'media' | 'text' | 'account'

export type Arguments = Readonly<Record<string, unknown>>

/** One request of a client, whatever it asks for. */
export interface ToolCaller {
  readonly principal: Principal
  /** The HTTP request's own for its first call; a batch has more calls than requests. */
  readonly newRequestId: () => string
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
  /** Of the HTTP request, by lower-case names. */
  readonly header: (name: string) => string | undefined
  /** Of the address that the client was given. */
  readonly path: string
  readonly query: URLSearchParams
}

/** One call of a tool. */
export interface ToolCall extends ToolCaller {
  readonly requestId: string
  readonly args: Arguments
  /** The session, or what the program calls itself: by which its spending is summed. */
  readonly client: string
  /** Nothing is done that may cost more. */
  readonly costMax: Credits | undefined
  readonly idempotencyKey: string | undefined
  /** As the protocol has it, with what the client was asked and answered. */
  readonly request: ServerContext['mcpReq']
  /** Whether the client can ask its user. */
  readonly canAsk: boolean
  /** For clients that want to hear how far it is; a no-op for the others. */
  readonly progress: (done: number, total: number, message: string) => void
}

export interface ToolAnswer {
  readonly structured: unknown
  /** For whoever reads: compact, not complete. */
  readonly text: string
  /** Absent: the tool is free of charge. */
  readonly charge?: string | undefined
  /** Arguments of the next page. */
  readonly next?: Arguments | undefined
  /** What is no text, such as links to files that it made. */
  readonly content?: readonly ContentBlock[]
}

export interface Tool {
  readonly name: string
  readonly group: Group
  readonly title: string
  readonly description: string
  /** In words, which follow the description; absent: its description tells. */
  readonly price?: (catalog: Catalog) => string
  readonly input: JsonSchema
  /** Absent: it promises nothing. */
  readonly output?: JsonSchema
  /** Whether calling it changes nothing: looking up is reading, whatever it costs. */
  readonly readOnly: boolean
  /** It reaches out of the gateway. */
  readonly openWorld: boolean
  /** The endpoint by which a quote reads its arguments. Absent: it is free of charge. */
  readonly endpoint?: string
  /** The body that the endpoint takes, where the arguments are another. */
  readonly asBody?: (args: Arguments) => Arguments
  /** Whether this key may use it at all, and there is something to use. */
  readonly offered: (principal: Principal, catalog: Catalog) => boolean
  readonly run: (call: ToolCall) => Promise<ToolAnswer>
}

export function objectSchema(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema {
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}

/** An argument that must be a text; undefined when it is not there. */
export function textArgument(args: Arguments, name: string): string | undefined {
  const value = args[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw invalid(`"${name}" must be a text.`, name)
  return value
}

export function requiredText(args: Arguments, name: string): string {
  const value = textArgument(args, name)
  if (value === undefined || value === '') throw invalid(`"${name}" is required.`, name)
  return value
}

export function runTool(tool: Tool, call: ToolCall): Promise<ToolAnswer> {
  // Data endpoints refuse unknown names by themselves, and say which were meant.
  if (tool.group !== 'analytics' && tool.group !== 'social') checkNames(tool, call.args)
  return tool.run(call)
}

/** Refuses names that the tool does not know: a misspelt argument must not be ignored. */
function checkNames({ name, input }: Tool, args: Arguments): void {
  const known = Object.keys(input.properties as JsonSchema)
  const unknown = Object.keys(args).find((given) => !known.includes(given))
  if (unknown !== undefined)
    throw invalid(
      `${JSON.stringify(unknown.slice(0, 64))} is not an argument of ${name}. It takes ${known.join(', ') || 'none'}.`,
    )
}
