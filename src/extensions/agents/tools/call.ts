// A call of a tool of another MCP server. Arguments are compared with the agreed schema before money is touched;
// results that are errors, too large, or not what the schema promises are faults, and cost nothing.

import { mayUse } from '../../../admission/api-key.ts'
import type { JsonSchema } from '../../../catalog/endpoint.ts'
import { checkValue, sampleOf } from '../../../catalog/json-schema.ts'
import { findDataProduct } from '../../../catalog/store.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { isObject, type Json, objectOf } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import type { Incoming } from '../../../pipeline/read.ts'
import { dataWords } from '../../../protocols/data/data-words.ts'
import { type Exchange, garbled, type PaidRequest } from '../../../protocols/protocol.ts'
import { refusal } from '../../../protocols/vendor-fault.ts'
import { withoutSecrets } from '../../../protocols/vendor-words.ts'
import type { OnProgress, ToolClient } from './client.ts'
import type { SignIns } from './connections.ts'
import type { ToolServers } from './lists.ts'
import { type ServerToolSpec, visible } from './section.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const SAID_CHARS_MAX = 500
/** Notices of progress that one call may have. */
const PROGRESS_MAX = 200
/** Errors of the protocol that are about the request: invalid parameters, unknown method. */
const CALLERS_CODES = [-32602, -32601]

interface ToolDeps {
  readonly client: ToolClient
  /** Whose state the server may keep. */
  readonly session: string
  /** Of a server at which each person signs in: the token of the caller. */
  readonly token?: (() => string | Promise<string>) | undefined
  readonly onProgress?: OnProgress | undefined
  readonly perRow: boolean
  /** Answered by the simulated vendor, in one request. */
  readonly simulated: boolean
}

interface ReadToolDeps {
  readonly toolServers: Pick<ToolServers, 'client' | 'heldBack' | 'tokenFor'>
  /** Those of the account. */
  readonly signIns: SignIns | undefined
  /** Absent: the caller did not ask for notifications of progress. */
  readonly onProgress: OnProgress | undefined
}

/** A tool that its server has changed is not sold until the operator has agreed to the change. */
export function readTool(
  spec: ServerToolSpec,
  { catalog, principal, body }: Incoming,
  { toolServers, signIns, onProgress }: ReadToolDeps,
) {
  const product = findDataProduct(catalog, spec.product)
  if (!mayUse(principal, spec.restriction))
    throw new Fault('access_denied', { message: `This key may not use ${spec.restriction}.` })
  if (!product?.enabled || toolServers.heldBack(spec))
    throw new Fault('not_found', { message: 'This tool is not offered now.' })
  const perRow = product.pricing.tiers.some((tier) => tier.row !== undefined)
  const person = principal.place?.[':member'] ?? null
  const token = catalog.simulated
    ? undefined
    : toolServers.tokenFor({ account: principal.accountId, person, isOwn: principal.isOwn }, spec.server, signIns)
  // A sign-in belongs to a person, and so does the state that a server keeps for it.
  const session = token ? `${principal.accountId} ${person ?? ''}` : principal.accountId
  const facts = { session, token, onProgress, perRow, simulated: catalog.simulated, client: toolServers.client }
  return { paidRequest: readToolRequest(spec, body.json.value, facts), product }
}

function readToolRequest(spec: ServerToolSpec, args: Json, deps: ToolDeps): PaidRequest {
  const { sold, server } = spec
  const problem = problemOf(sold.inputSchema, args)
  if (problem !== undefined) throw invalid(`Arguments: ${problem}.`, /^[\w-]+/.exec(problem)?.[0])
  const relayed = deps.onProgress && progressRelay(deps.onProgress)
  const { token } = deps
  let headers: Readonly<Record<string, string>> = {}
  const usageOf = (rows: number): Usage => (deps.perRow ? { call: 1, row: rows } : { call: 1 })
  return {
    product: spec.product,
    stream: false,
    price: {},
    worst: usageOf(sold.resultsMax),
    sent: JSON.stringify(args),
    ...(sold.repeatable ? {} : { once: true }),
    ...(token && {
      async gather() {
        headers = { authorization: `Bearer ${await token()}` }
      },
    }),
    open(target): Exchange {
      const call = { method: 'POST', url: target.baseUrl, headers } as const
      // The server may repeat what it was sent: the credential, or the token of a person's sign-in.
      const clean = (said: string) => withoutSecrets(said, { ...target, headers: { ...target.headers, ...headers } })
      const facts: Pick<Exchange, 'answer' | 'vendorError' | 'drains'> = {
        // An effect is charged, whether or not its caller waits for the result.
        drains: sold.readOnly ? undefined : 'call',
        answer(body) {
          const result = resultIn(body, server, clean)
          checkPromise(result, spec)
          const rows = Math.min(countResults(result), sold.resultsMax)
          return { body: JSON.stringify(result), contentType: JSON_TYPE, usage: usageOf(rows) }
        },
        vendorError(body) {
          const words = dataWords(body, (value) => objectOf(value.error).message ?? value.message ?? value.error)
          return words && { ...words, message: clean(words.message) }
        },
      }
      if (deps.simulated) return { ...facts, call: { ...call, url: `${call.url}/call`, ...simulatedCall(spec) } }
      return {
        ...facts,
        call,
        async send({ url, headers: sent }, { deadlines, signal }) {
          const reply = await deps.client.call(
            { url, headers: sent },
            // A schema of an object: the definition was read as one, and the library only looks for headers in it.
            { name: sold.tool, args, inputSchema: { ...sold.inputSchema, type: 'object' } },
            { deadlines, signal, bytesMax: spec.resultBytesMax, session: deps.session, onProgress: relayed },
          )
          // It affects only this person, and no other caller of the server.
          if (deps.token && reply.status === 401)
            throw new Fault('tool_sign_in_needed', {
              message: `The tool server "${server}" no longer takes your sign-in. Sign out and in again in the console.`,
            })
          return reply
        },
      }
    },
  }
}

/**
 * A model may read a server's progress notifications: they are cleaned, never go backwards, and their number is
 * limited.
 */
function progressRelay(tell: OnProgress): OnProgress {
  let [left, last] = [PROGRESS_MAX, Number.NEGATIVE_INFINITY]
  return (done, total, message) => {
    if (!(done > last) || left-- <= 0) return
    last = done
    tell(done, total, message && visible(message).slice(0, SAID_CHARS_MAX).toWellFormed())
  }
}

function simulatedCall({ sold }: ServerToolSpec) {
  const text = `A simulated result of ${sold.tool}.`
  const structured = sold.outputSchema ? { structuredContent: sampleOf(sold.outputSchema) } : {}
  const result = { content: [{ type: 'text', text }], ...structured }
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ result }) }
}

/** Schema and value are untrusted: a value that is too deep to be checked is rejected like one that does not match. */
function problemOf(schema: JsonSchema, value: unknown): string | undefined {
  try {
    const problem = checkValue(schema, value)
    return problem && `${problem.at || 'the whole'} must ${problem.must}`
  } catch {
    return 'they are too deep'
  }
}

/** The result, or the fault that it stands for. An error costs nothing, and is marked as the server's own words. */
function resultIn(body: Buffer, server: string, clean: (said: string) => string): Json {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw garbled('the result is no JSON', cause)
  }
  const { result, error } = objectOf(value)
  const refused = objectOf(error)
  if (isObject(error))
    throw saidFault(
      server,
      clean(String(refused.message ?? '')),
      CALLERS_CODES.includes(Number(refused.code)) ? 400 : 502,
    )
  if (!isObject(result) || !Array.isArray(result.content)) throw garbled('the result has no content')
  if (result.isError === true) throw saidFault(server, clean(textOf(result.content)), 400)
  const { content, structuredContent } = result
  return { content, ...(structuredContent === undefined ? {} : { structuredContent }) }
}

function saidFault(server: string, said: string, status: 400 | 502) {
  const message = `The tool server "${server}" says: ${visible(said).slice(0, SAID_CHARS_MAX).toWellFormed() || 'it failed'}`
  return refusal(status, { message, words: [] }, '', {}).fault
}

function textOf(content: readonly unknown[]): string {
  return content.flatMap((block) => (typeof objectOf(block).text === 'string' ? [objectOf(block).text] : [])).join(' ')
}

function checkPromise({ structuredContent }: Json, { sold: { outputSchema } }: ServerToolSpec): void {
  if (!outputSchema) return
  const problem =
    structuredContent === undefined ? 'there is no structured content' : problemOf(outputSchema, structuredContent)
  if (problem !== undefined) throw garbled(`the result is not what its schema promises: ${problem.slice(0, 200)}`)
}

/** The rows of the structured content (itself, or its only list); without one, the blocks of content. */
function countResults({ content, structuredContent }: Json): number {
  if (Array.isArray(structuredContent)) return structuredContent.length
  const lists = isObject(structuredContent) ? Object.values(structuredContent).filter(Array.isArray) : []
  const [only] = lists
  if (only && lists.length === 1) return only.length
  return Array.isArray(content) ? content.length : 1
}
