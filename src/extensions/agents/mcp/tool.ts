// A tool: an endpoint in the form that an agent sees.

import {
  type CallToolResult,
  type ContentBlock,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Principal } from '../../../admission/api-key.ts'
import type { JsonSchema } from '../../../catalog/endpoint.ts'
import type { Field } from '../../../catalog/field.ts'
import type { RequestHeaders } from '../../../catalog/query.ts'
import type { Catalog } from '../../../catalog/store.ts'
import { type Credits, formatCredits, parseCredits } from '../../../kernel/credits.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { isObject } from '../../../kernel/json.ts'
import type { PaidSpec } from '../../../pipeline/read.ts'

/** Listings are filtered by group; each of the first four has its own path. */
export type Group = 'analytics' | 'social' | 'media' | 'products' | 'text' | 'account' | 'servers'

export type Arguments = Readonly<Record<string, unknown>>

/** One client request of any kind. */
export interface ToolCaller {
  readonly principal: Principal
  /** The first call of an HTTP request uses that request's id. Further calls of a batch get new ids. */
  readonly newRequestId: () => string
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  /** Of the HTTP request. */
  readonly headers: RequestHeaders
  /** Path and query of the server address that the client is configured with. */
  readonly path: string
  readonly query: URLSearchParams
}

/** One tool call. */
export interface ToolCall extends ToolCaller {
  readonly requestId: string
  readonly args: Arguments
  /** The session, or the program's own name; spending is summed by it. */
  readonly client: string
  /** The call is rejected if it may cost more than this. */
  readonly costMax: Credits | undefined
  readonly idempotencyKey: string | undefined
  /** The protocol's request context, with the questions to the client's user and their answers. */
  readonly request: ServerContext['mcpReq']
  /** Whether the client supports asking its user (elicitation). */
  readonly canAsk: boolean
  /** Reports progress to clients that asked for it; a no-op for the others. */
  readonly progress: (done: number, total: number | undefined, message: string | undefined) => void
}

export interface ToolAnswer {
  readonly structured: unknown
  /** A compact, incomplete form for readers of text. */
  readonly text: string
  /** Absent: the tool is free of charge. */
  readonly charge?: string | undefined
  /** The arguments to change for the next page. */
  readonly next?: Arguments | undefined
  /** Content other than text, such as links to generated files. */
  readonly content?: readonly ContentBlock[]
}

export interface Tool {
  readonly name: string
  /** Of a tool of a foreign server: stands before its name where that is taken. */
  readonly prefix?: string
  readonly group: Group
  readonly title: string
  readonly description: string
  /** The price as text, appended to the description. Absent: the description already names it. */
  readonly price?: (catalog: Catalog) => string
  readonly input: JsonSchema
  /** Absent: the tool declares no output schema. */
  readonly output?: JsonSchema
  /** Whether calling it changes nothing. A lookup is read-only even if it costs credits. */
  readonly readOnly: boolean
  /** The tool reaches systems outside the gateway. */
  readonly openWorld: boolean
  /** The endpoint that parses the arguments for a quote. Absent: the tool is free of charge. */
  readonly endpoint?: string
  /** That endpoint, where only this tool has it. */
  readonly own?: (call: ToolCall) => Promise<PaidSpec>
  /** Converts the arguments to the endpoint's body, where the two differ. */
  readonly asBody?: (args: Arguments) => Arguments
  /** Whether this key may use the tool and the catalog has something to serve it with. */
  readonly offered: (principal: Principal, catalog: Catalog) => boolean
  readonly run: (call: ToolCall) => Promise<ToolAnswer>
}

export function objectSchema(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema {
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}

/** Reads an argument that must be a text; undefined if it is absent. */
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
  // Data endpoints reject unknown names themselves and suggest the right ones; a foreign tool's schema says whether it
  // takes others.
  if (!['analytics', 'social', 'products', 'servers'].includes(tool.group)) checkNames(tool, call.args)
  return tool.run(call)
}

/** Rejects names that the tool does not know, because a misspelt argument must not be ignored. */
function checkNames({ name, input }: Tool, args: Arguments): void {
  const known = Object.keys(input.properties as JsonSchema)
  const unknown = Object.keys(args).find((given) => !known.includes(given))
  if (unknown !== undefined)
    throw invalid(
      `${JSON.stringify(unknown.slice(0, 64))} is not an argument of ${name}. It takes ${known.join(', ') || 'none'}.`,
    )
}

// User confirmation for expensive calls: `?confirm_above=5` in the server address asks the user before each call above
// 5 credits.

/** Not a fault: the client should ask its user and repeat the call with the answer. */
export class InputNeeded extends Error {
  readonly result: InputRequiredResult

  constructor(result: InputRequiredResult) {
    super('the client is asked for more')
    this.result = result
  }
}

const KEY = 'consent'

/**
 * The most that the call may cost: the agent's own limit if it set one, else the confirmation threshold or the wanted
 * cost, whichever is higher. Undefined: there is no limit.
 */
export function costBound(call: ToolCall, want: Credits): Credits | undefined {
  if (call.costMax !== undefined) return call.costMax
  const above = readThreshold(call.query.get('confirm_above'))
  return above === undefined || above > want ? above : want
}

/** Returns if the call may be made; otherwise throws InputNeeded or access_denied. */
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
  // The model may have written any argument itself, such as max_cost, so only an answer from the user counts as
  // consent.
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

// A tool's result in the protocol's form: an answer, or an error that an agent can act on.

/** Names of the metadata that accompanies an answer. */
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
  const words = told ? [{ type: 'text' as const, text: told }] : []
  return {
    // Without a text of ours, what was asked for comes before our notes.
    content: text === '' ? [...(content ?? []), ...words] : [...words, ...(content ?? [])],
    structuredContent: structured as NonNullable<CallToolResult['structuredContent']>, // Parsed JSON, or an object of our own.
    _meta: { [REQUEST_ID]: requestId, [CHARGE]: charge ?? '0', ...(next === undefined ? {} : { [NEXT]: next }) },
  }
}

/** One sentence on what went wrong, one on what to do, and the same in structured form for programs. */
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

// The compact text form of an answer: tables as Markdown, long lists cut, nested values on one line. The structured
// content has the whole answer.

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

function write(value: unknown, path: string, lines: string[], depth: number): void {
  if (Array.isArray(value) && value.length > 0 && value.every(isObject)) writeTable(value, path, lines)
  else if (!isObject(value) || depth === DEPTH_MAX) lines.push(path ? `${path}: ${cell(value)}` : cell(value))
  else
    for (const [name, member] of rowsFirst(Object.entries(value))) {
      // Null members are left out.
      if (member !== null) write(member, path ? `${path}.${name}` : name, lines, depth + 1)
    }
}

/** Analytics answers list their filters before the data, so the data is moved to the front. */
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

// The input schema of a data tool, built from its endpoint's fields. A model reads every word of it with every listing,
// so it contains only what a model would not guess: the first sentence of a description, and no parameter that has only
// one value.

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
    // These need no description: their values, and names such as `from` and `includeSubDomains`, are clear enough.
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
