// A tool: an endpoint as an agent sees it.
import {
  type CallToolResult,
  type ContentBlock,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Principal } from '../admission/api-key.ts'
import type { JsonSchema } from '../catalog/endpoint.ts'
import type { Field } from '../catalog/field.ts'
import type { Catalog } from '../catalog/store.ts'
import { type Credits, formatCredits, parseCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'

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

// A person's yes before a call that costs more than they set: `?confirm_above=5` in the address that a client was given.

/** Not a fault: the client is to ask, and to call again with the answer. */
export class InputNeeded extends Error {
  readonly result: InputRequiredResult

  constructor(result: InputRequiredResult) {
    super('the client is asked for more')
    this.result = result
  }
}

const KEY = 'consent'

/** What the call may cost at most: as the agent says, or as much as needs no confirmation, or as the user is asked to confirm. */
export function costBound(call: ToolCall, want: Credits): Credits | undefined {
  if (call.costMax !== undefined) return call.costMax
  const above = readThreshold(call.query.get('confirm_above'))
  return above === undefined || above > want ? above : want
}

/** Returns when the call may be made. */
export function askConsent(call: ToolCall, cost: Credits): void {
  const above = readThreshold(call.query.get('confirm_above'))
  if (above === undefined || cost <= above) return
  const answer = inputResponse(call.request.inputResponses, KEY)
  if (answer.kind === 'elicit') {
    if (answer.action === 'accept' && answer.content?.agree === true) return
    throw new Fault('access_denied', {
      message: 'The user did not agree to the cost of this call. Nothing was charged.',
    })
  }
  const price = formatCredits(cost)
  if (call.canAsk)
    throw new InputNeeded(
      inputRequired({
        inputRequests: {
          [KEY]: inputRequired.elicit({
            message: `This call may cost up to ${price} credits. Make it?`,
            requestedSchema: {
              type: 'object',
              properties: { agree: { type: 'boolean', title: `Spend up to ${price} credits` } },
              required: ['agree'],
            },
          }),
        },
      }),
    )
  // Whatever a call says for itself, such as a max_cost, the model may have written: only a person's answer is one.
  throw new Fault('access_denied', {
    message: `This call may cost up to ${price} credits, which the user wants to confirm, and this client cannot ask. Nothing was charged. The user can raise confirm_above in the address of this server, or use a client that asks.`,
  })
}

function readThreshold(given: string | null): Credits | undefined {
  if (given === null) return undefined
  const above = parseCredits(given)
  if (above === undefined)
    throw invalid('"confirm_above" in the address must be an amount of credits.', 'confirm_above')
  return above
}

// What a tool's ending looks like to the protocol: an answer, or an error that an agent can act on.

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

// The compact form of an answer, for whoever reads it as text: tables as Markdown, long lists cut, deep values in one line.
// The whole answer is in the structured content.

const ROWS_MAX = 25
const COLUMNS_MAX = 12
const CELL_CHARS_MAX = 80
const DEPTH_MAX = 4
const CHARS_MAX = 8_000

export function markdownOf(value: unknown): string {
  const lines: string[] = []
  write(value, '', lines, 0)
  const text = lines.join('\n')
  return text.length <= CHARS_MAX
    ? text
    : `${text.slice(0, text.lastIndexOf('\n', CHARS_MAX)).toWellFormed()}\n… cut here; all of it is in the structured content.`
}

/** Plain objects, of which every value of parsed JSON is one that is no array. */
function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function write(value: unknown, path: string, lines: string[], depth: number): void {
  if (Array.isArray(value) && value.length > 0 && value.every(isObject)) writeTable(value, path, lines)
  else if (!isObject(value) || depth === DEPTH_MAX) lines.push(path ? `${path}: ${cell(value)}` : cell(value))
  else
    for (const [name, member] of rowsFirst(Object.entries(value))) {
      // What is null says nothing.
      if (member !== null) write(member, path ? `${path}.${name}` : name, lines, depth + 1)
    }
}

/** Analytics answers have lists of their filters before what was asked for. */
function rowsFirst<T>(members: ReadonlyArray<readonly [string, T]>): ReadonlyArray<readonly [string, T]> {
  const isRows = ([name]: readonly [string, T]) => /^(?:data|records)$/i.test(name)
  return [...members.filter(isRows), ...members.filter((member) => !isRows(member))]
}

function writeTable(rows: readonly Record<string, unknown>[], path: string, lines: string[]): void {
  const shown = rows.slice(0, ROWS_MAX)
  const columns = [...new Set(shown.flatMap((row) => Object.keys(row)))].slice(0, COLUMNS_MAX)
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  lines.push(
    ...(path ? [`${path}:`] : []),
    row(columns),
    row(columns.map(() => '---')),
    ...shown.map((one) => row(columns.map((name) => cell(one[name]).replaceAll('|', '\\|')))),
  )
  if (rows.length > shown.length)
    lines.push(`… ${shown.length} of ${rows.length} rows; all of them are in the structured content.`)
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).replaceAll(/\s+/g, ' ')
  return text.length <= CELL_CHARS_MAX ? text : `${text.slice(0, CELL_CHARS_MAX).toWellFormed()}…`
}

// The input schema of a data tool, from the fields of its endpoint. Every word of it is read by a model with every listing, so
// it says only what a model would not guess: the first sentence of a description, and no parameter that has only one value.

export function fieldSchemas(params: Readonly<Record<string, Field>>): Record<string, JsonSchema> {
  const open = Object.entries(params).filter(([, field]) => !('allowed' in field) || field.allowed.length > 1)
  return Object.fromEntries(open.map(([name, field]) => [name, fieldSchema(field)]))
}

function fieldSchema(field: Field): JsonSchema {
  const description = describe(field)
  return { ...typeOf(field), ...(description ? { description } : {}) }
}

function typeOf(field: Field): JsonSchema {
  const preset = (value: unknown) => (field.default === undefined ? {} : { default: value })
  switch (field.kind) {
    case 'boolean':
      return { type: 'boolean', ...(field.default === 'true' ? { default: true } : {}) }
    case 'integer':
      return {
        type: 'integer',
        ...(field.min === 0 ? {} : { minimum: field.min }),
        ...(field.max === undefined ? {} : { maximum: field.max }),
        ...preset(Number(field.default)),
      }
    case 'choice':
      return { type: 'string', enum: field.allowed, ...preset(field.default) }
    case 'date':
      return { type: 'string', format: 'date' }
    default:
      return { type: 'string', ...preset(field.default) }
  }
}

export function firstSentence(text: string): string {
  const end = text.indexOf('. ')
  return end < 0 ? text : text.slice(0, end + 1)
}

function describe(field: Field): string {
  const what = firstSentence(field.description)
  switch (field.kind) {
    // Their values, and names such as `from` and `includeSubDomains`, say enough.
    case 'boolean':
    case 'date':
    case 'choice':
      return ''
    case 'latest': {
      const days = field.daysMax > 0 ? [`1d to ${field.daysMax}d`] : []
      return `${[...days, ...field.months.map((count) => `${count}m`)].join(', ')}; not with from and to.`
    }
    case 'list':
      return `${what} Comma-separated: ${field.allowed.join(', ')}.`
    case 'text':
      return field.form === undefined ? what : `${what} Takes ${field.form}.`
    default:
      return what
  }
}
