// A paid tool call. It builds the same PaidRequest as the HTTP endpoint would from the same parameters, and uses the
// same functions to parse, hold, serve and settle. Only the response sink differs.

import { estimate } from '../../../admission/admit.ts'
import { faultBody } from '../../../api/server/envelope.ts'
import type { RequestHeaders } from '../../../catalog/query.ts'
import type { CatalogStore } from '../../../catalog/store.ts'
import { formatCredits } from '../../../kernel/credits.ts'
import { asFault, CLIENT_CLOSED, Fault } from '../../../kernel/fault.ts'
import { readJson } from '../../../kernel/json.ts'
import { type ArriveDeps, arrive, readBody, readFor, readPictures } from '../../../pipeline/arrive.ts'
import type { Recorder, Recording } from '../../../pipeline/hooks.ts'
import { broughtBy, type PaidSpec, type RequestBody } from '../../../pipeline/read.ts'
import { BufferedSink } from '../../../pipeline/response-sink.ts'
import { serve } from '../../../pipeline/serve.ts'
import type { ByteBudget, ByteLease } from '../../../upstream/budget.ts'
import { askConsent, costBound, type ToolCall } from './tool.ts'

/** No model can read more than this, and no client expects more in one message. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024

export interface PaidDeps extends ArriveDeps {
  readonly catalog: CatalogStore
  readonly budget: ByteBudget
  /** Records the bytes of calls for accounts with content logging. */
  readonly contents?: Recorder | undefined
}

/** The parts of an HTTP request that a tool call supplies. */
export interface Request {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  /** The JSON body of a POST. */
  readonly body?: Buffer
  /** Parameters that stand in headers. */
  readonly headers?: RequestHeaders
}

interface Paid {
  readonly value: unknown
  readonly charge: string | undefined
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
    const { principal, requestId, idempotencyKey: key, client, headers } = call
    const { params = {}, query = '', headers: given } = request
    const reading = {
      spec,
      principal,
      brought: await broughtBy(principal, deps.read),
      params,
      query,
      body,
      headers: { ...headers, ...given },
    }
    const { asked, catalog } = readFor(reading, deps)
    const { want, most } = estimate(asked)
    if (call.costMax !== undefined && want > call.costMax)
      throw new Fault('request_invalid', {
        message: `This call may cost up to ${formatCredits(want)} credits, which is more than the max_cost of ${formatCredits(call.costMax)}. Raise max_cost, or ask for less.`,
        param: 'max_cost',
      })
    const costMax = costBound(call, want)
    askConsent(call, costMax !== undefined && costMax < most ? costMax : most)
    const out = new BufferedSink(call.signal, ANSWER_BYTES_MAX)
    const idempotency = key === undefined ? undefined : { key, digest: JSON.stringify(call.args) }
    const arrival = { requestId, principal, endpoint: `mcp:${tool}`, out, client, headers, idempotency }
    const arrived = { ...arrive(arrival, asked, catalog, deps.path), costMax }
    await recorded(serve(arrived, deps.path), out, recordingOf(spec, request, call, deps))
    return taken(out)
  } finally {
    lease?.release()
  }
}

/** The recording of a tool call is what a caller of its endpoint would have sent and received. */
function recordingOf(spec: PaidSpec, request: Request, call: ToolCall, { contents }: PaidDeps): Recording | undefined {
  const { requestId, principal } = call
  const { content: rule, accountId: account, keyId: key } = principal
  if (!rule) return undefined
  const { params = {}, query = '', body } = request
  const filled = spec.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const path = query === '' ? filled : `${filled}?${query}`
  const recording = contents?.begin({ requestId, account, key, rule, method: spec.method, path })
  if (body) recording?.asked(body)
  return recording
}

async function recorded(served: Promise<void>, out: BufferedSink, recording: Recording | undefined): Promise<void> {
  try {
    await served
    recording?.answers(out.status, out.headers['content-type'] ?? '')
    recording?.sent(out.body)
  } catch (error) {
    const fault = asFault(error)
    if (recording && fault !== CLIENT_CLOSED) {
      recording.answers(fault.status, 'application/json')
      recording.sent(faultBody(fault, 'native', { requestId: recording.call.requestId, sdk: false }))
    }
    throw error
  } finally {
    recording?.end()
  }
}

function taken(out: BufferedSink): Paid {
  if (out.overflowed)
    throw new Fault('upstream_garbled', {
      message: `The answer is larger than a tool may give (${ANSWER_BYTES_MAX / 1_048_576} MB). It was paid for; ask for fewer rows, or use the HTTP endpoint.`,
    })
  const { 'x-tollgate-charge': charge } = out.headers
  try {
    return { value: JSON.parse(out.body.toString()), charge }
  } catch (cause) {
    throw new Fault('upstream_garbled', { cause })
  }
}

const EMPTY = readJson(Buffer.from('{}'))

/** Images in the arguments are in memory twice while they are parsed. */
function leaseFor({ body }: Request, { signal, principal }: ToolCall, { budget }: PaidDeps): Promise<ByteLease> {
  return budget.acquire(principal.accountId, 2 * (body?.length ?? 0), signal)
}

async function bodyOf(spec: PaidSpec, { body }: Request, lease: ByteLease | undefined): Promise<RequestBody> {
  if (body === undefined) return { json: EMPTY }
  return lease ? readPictures(body, lease) : readBody(spec, body)
}
