// The call that a quote is about, read as its endpoint reads it.
import type { Principal } from '../admission/api-key.ts'
import { isDataEndpoint } from '../catalog/endpoint.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { type Catalog, findProduct } from '../catalog/store.ts'
import { inBatch } from '../deferred/call.ts'
import { endpointAt } from '../deferred/lines.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson } from '../kernel/json.ts'
import { readPictures } from '../pipeline/arrive.ts'
import { type PaidSpec, type Read, type ReadDeps, type RequestBody, read } from '../pipeline/read.ts'
import { type ByteBudget, type ByteLease, SMALL_BODY_BYTES } from '../upstream/budget.ts'

interface Quoted extends Read {
  readonly endpoint: string
}

export interface Question {
  readonly body: Buffer
  /** The endpoint's id; null: it follows from the body. */
  readonly endpoint: string | null
  /** As a line of a batch, at the price that its model has there. */
  readonly batch?: boolean
  readonly principal: Principal
  /** What the request has of the budget; absent where it is part of another. */
  readonly lease?: ByteLease | null
}

/** The budget bounds the wait itself. */
const NEVER = new AbortController().signal
const PAID = ENDPOINTS.filter((spec): spec is PaidSpec => spec.sells !== undefined)

export async function readQuoted(
  { body, endpoint, batch = false, principal, lease }: Question,
  catalog: Catalog,
  deps: { read: ReadDeps; budget: ByteBudget },
): Promise<Quoted> {
  const json = readJson(body)
  const specs = endpoint === null ? likely(json, catalog) : PAID.filter(({ id }) => id === endpoint)
  let first: Fault | undefined
  for (const spec of specs)
    try {
      const room = lease ?? deps.budget.open(principal.accountId)
      const asked = spec.largeBody && !spec.form ? await withPictures(body, room) : { json }
      const { params, query } = isDataEndpoint(spec) ? asQuery(json, spec.path) : { params: {}, query: '' }
      const quoted = { endpoint: spec.id, ...read({ spec, catalog, principal, params, query, body: asked }, deps.read) }
      if (!batch) return quoted
      if (!endpointAt(spec.path))
        throw invalid(`"batch" must be false: ${spec.path} is not offered in batches.`, 'batch')
      return inBatch(quoted)
    } catch (error) {
      if (!(error instanceof Fault) || error.kind !== 'request_invalid') throw error
      first ??= endpoint === null && specs.length > 1 ? elsewhere(error, spec) : error
    }
  throw first ?? invalid(`"endpoint" must be one of ${PAID.map(({ id }) => id).join(', ')}.`, 'endpoint')
}

/** The endpoints that sell the model; those first whose required fields are all there, and of these the one with the most. */
function likely(json: JsonText, catalog: Catalog): PaidSpec[] {
  const { model } = json.value
  const product = typeof model === 'string' ? findProduct(catalog, model) : undefined
  const kind = product && 'type' in product ? product.type : 'text'
  // All have a model, which says nothing of the endpoint.
  const required = ({ body }: PaidSpec) =>
    ((body?.required ?? []) as readonly string[]).filter((name) => name !== 'model')
  const rank = (spec: PaidSpec) =>
    required(spec).every((name) => Object.hasOwn(json.value, name)) ? required(spec).length : 0
  return PAID.filter((spec) => spec.sells === kind && spec.method === 'POST').sort((a, b) => rank(b) - rank(a))
}

function elsewhere(error: Fault, spec: PaidSpec): Fault {
  const message = `${error.message} (Read as ${spec.path}; another can be named with ?endpoint=…)`
  return new Fault(error.kind, { ...error.details, message, cause: error })
}

/**
 * The pictures stand beside the body while they are read, so that a body which is worth counting counts twice, as one request's. The memory is
 * given back at once: nothing is fetched or kept for an ask that is never opened.
 */
async function withPictures(body: Buffer, lease: ByteLease): Promise<RequestBody> {
  const { bytes } = lease
  if (body.length > SMALL_BODY_BYTES) await lease.grow(body.length, NEVER)
  try {
    return await readPictures(body, lease)
  } finally {
    lease.shrinkTo(bytes)
  }
}

/** Of a data endpoint the parameters stand in the body, by their names. */
function asQuery(json: JsonText, path: string): { params: Record<string, string>; query: string } {
  const params: Record<string, string> = {}
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(json.value)) {
    if (typeof value === 'object') throw invalid(`"${name}" must be a text, a number or true or false.`, name)
    if (path.includes(`{${name}}`)) params[name] = String(value)
    else query.append(name, String(value))
  }
  return { params, query: query.toString() }
}
