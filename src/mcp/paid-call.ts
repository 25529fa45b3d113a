// A tool call on the path: the ask that the HTTP endpoint would make of the same parameters, read by the same reader, held,
// served and settled by the same functions. Only the caller's end is another.
import { estimate } from '../admission/admit.ts'
import { hashRequest } from '../admission/idempotency.ts'
import { catalogFor } from '../catalog/simulated.ts'
import type { CatalogStore } from '../catalog/store.ts'
import { formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { type JsonText, readJson } from '../kernel/json.ts'
import { AnswerTaker } from '../pipeline/answer-taker.ts'
import type { PathDeps } from '../pipeline/call.ts'
import { type PaidSpec, type ReadDeps, type RequestBody, read } from '../pipeline/read.ts'
import { serve } from '../pipeline/serve.ts'
import { readImageBody } from '../protocols/media/openai-images/body.ts'
import { checkVideoBody } from '../protocols/media/video-task/body.ts'
import type { ByteBudget, ByteLease } from '../upstream/budget.ts'
import { askConsent } from './consent.ts'
import type { ToolCall } from './tool.ts'

/** What a model could never read, and no client wants in one message. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024

export interface PaidDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly read: ReadDeps
  readonly budget: ByteBudget
}

/** What stands in the place of an HTTP request. */
export interface Request {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  /** Of a POST: its JSON. */
  readonly body?: Buffer
}

interface Paid {
  readonly value: unknown
  readonly charge: string | undefined
  readonly balance: string | undefined
}

export async function callEndpoint(
  { spec, tool }: { readonly spec: PaidSpec; readonly tool: string },
  request: Request,
  call: ToolCall,
  deps: PaidDeps,
): Promise<Paid> {
  const lease = spec.largeBody ? await leaseFor(request, call, deps) : undefined
  try {
    const body = await bodyOf(spec, request, lease)
    const { principal, requestId, idempotencyKey } = call
    const catalog = catalogFor(principal.accountId, deps.catalog.current)
    const { params = {}, query = '' } = request
    const asked = read({ spec, catalog, principal, params, query, body }, deps.read)
    const { want } = estimate(asked.ask, asked.product, asked.own)
    if (call.costMax !== undefined && want > call.costMax)
      throw new Fault('request_invalid', {
        message: `This call may cost up to ${formatCredits(want)} credits, which is more than the max_cost of ${formatCredits(call.costMax)}. Raise max_cost, or ask for less.`,
        param: 'max_cost',
      })
    askConsent(call, want)
    const endpoint = `mcp:${tool}`
    const out = new AnswerTaker(call.signal, ANSWER_BYTES_MAX)
    const traceparent = call.header('traceparent')
    await serve(
      {
        ...asked,
        ...{ requestId, principal, catalog, endpoint, out, client: call.client },
        startedMs: deps.path.world.elapsedMs(),
        callerHeaders: traceparent === undefined ? {} : { traceparent },
        idempotency:
          idempotencyKey === undefined
            ? undefined
            : { key: idempotencyKey, requestHash: hashRequest(endpoint, JSON.stringify(call.args)) },
      },
      deps.path,
    )
    return taken(out)
  } finally {
    lease?.release()
  }
}

function taken(out: AnswerTaker): Paid {
  if (out.overflowed)
    throw new Fault('upstream_garbled', {
      message: `The answer is larger than a tool may give (${ANSWER_BYTES_MAX / 1_048_576} MB). It was paid for; ask for fewer rows, or use the HTTP endpoint.`,
    })
  const { 'x-tollgate-charge': charge, 'x-tollgate-balance': balance } = out.headers
  try {
    return { value: JSON.parse(out.body.toString()), charge, balance }
  } catch (cause) {
    throw new Fault('upstream_garbled', { cause })
  }
}

const EMPTY = readJson(Buffer.from('{}'))

/** Pictures in the arguments are there twice while they are read. */
function leaseFor({ body }: Request, { signal }: ToolCall, { budget }: PaidDeps): Promise<ByteLease> {
  return budget.acquire(2 * (body?.length ?? 0), signal)
}

async function bodyOf(spec: PaidSpec, { body }: Request, lease: ByteLease | undefined): Promise<RequestBody> {
  if (body === undefined) return { json: EMPTY }
  if (lease) {
    const pictures = await readImageBody(inOnePiece(body), { contentLength: body.length })
    return { json: pictures.json, pictures: { ...pictures, lease } }
  }
  return { json: jsonOf(spec, body) }
}

function jsonOf(spec: PaidSpec, body: Buffer): JsonText {
  return readJson(spec.sells === 'video' ? checkVideoBody(body) : body)
}

async function* inOnePiece(body: Buffer): AsyncGenerator<Buffer> {
  yield body
}
