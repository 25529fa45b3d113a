// What a key can ask about itself, free of charge: its models, its account, the size of a prompt, the price of a call.

import { estimate, worstAtMost } from '../admission/admit.ts'
import { mayCall, type Principal } from '../admission/api-key.ts'
import { type DataEndpointSpec, type EndpointSpec, isDataEndpoint } from '../catalog/endpoint.ts'
import { FREE } from '../catalog/generation.ts'
import { endpointsOf } from '../catalog/index.ts'
import { type Catalog, type CatalogStore, findProduct } from '../catalog/store.ts'
import { type Database, sql } from '../database/database.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson } from '../kernel/json.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { NEVER } from '../kernel/timers.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type Limits, showLimits } from '../ledger/limits.ts'
import { mostOf } from '../meter/bounds.ts'
import { readPictures } from '../pipeline/arrive.ts'
import type { PathHooks } from '../pipeline/hooks.ts'
import { inBatch, isBatchable } from '../pipeline/in-batch.ts'
import { broughtBy, isPaid, type PaidSpec, type Read, type ReadDeps, type RequestBody, read } from '../pipeline/read.ts'
import { permitAt } from '../pipeline/readers.ts'
import { countResponseTokens, countTokens, readModelName } from '../protocols/text/text.ts'
import { balanceSentence } from '../reports/balance-sentence.ts'
import { HELD } from '../reports/figures.ts'
import { accountFacts, readBalance } from '../reports/statement.ts'
import { type ByteBudget, type ByteLease, SMALL_BODY_BYTES } from '../upstream/budget.ts'
import type { Handle, HandlersOf } from './api.ts'
import { createModelLists } from './models.ts'
import { jsonBody } from './server/body.ts'
import type { Caller } from './server/caller.ts'
import { rawQuery } from './server/server.ts'
import type { OwnAccount, QuoteView } from './views.ts'

export interface AccountDeps extends Pick<PathHooks, 'background'> {
  readonly catalog: CatalogStore
  readonly database: Database
  readonly ledger: Pick<Ledger, 'posted'>
  readonly read: ReadDeps
  readonly budget: ByteBudget
}

export function accountHandlers(
  deps: AccountDeps,
): HandlersOf<'models' | 'models/{id}' | 'account' | 'quote' | 'count_tokens' | 'responses/input_tokens'> {
  const { catalog } = deps
  const lists = createModelLists(() => catalog.current)
  return {
    count_tokens: counting(FREE.count_tokens, catalog, (json) => ({ input_tokens: countTokens(json) })),
    'responses/input_tokens': counting(FREE['responses/input_tokens'], catalog, (json) => ({
      object: 'response.input_tokens',
      input_tokens: countResponseTokens(json),
    })),
    models: (request, out) => send(out, lists.list(request.principal, request.id, request.route.surface)),
    'models/{id}': (request, out) =>
      send(out, lists.retrieve(request.principal, request.id, request.param('id'), request.route.surface)),
    async account(request, out) {
      const data = await readAccount(request.principal, deps)
      return send(out, JSON.stringify({ success: true, data, requestId: request.id }))
    },
    async quote(request, out) {
      const query = new URLSearchParams(rawQuery(request))
      const [endpoint, inBatch] = [query.get('endpoint'), query.get('batch') ?? 'false']
      if (inBatch !== 'true' && inBatch !== 'false') throw invalid('"batch" must be true or false.', 'batch')
      const { lease, principal } = request
      const asked = { body: jsonBody(request), endpoint, batch: inBatch === 'true', principal, lease }
      const data = await quoteCall(asked, deps)
      return send(out, JSON.stringify({ success: true, data, requestId: request.id }))
    },
  }
}

const send = (out: Caller, body: string) => out.send(200, { 'content-type': 'application/json; charset=utf-8' }, body)

/** A free endpoint that counts tokens. A model that the key could not ask has none to count. */
export const counting =
  (spec: EndpointSpec, catalog: Pick<CatalogStore, 'current'>, count: (json: JsonText) => object): Handle =>
  (request, out) => {
    const json = readJson(jsonBody(request))
    const counted = count(json)
    const { model = readModelName(json) } = request.params
    permitAt(spec, model, { catalog: catalog.current, principal: request.principal })
    return send(out, JSON.stringify(counted))
  }

/** The account of a key, and what the key may do. */
export async function readAccount(
  principal: Principal,
  { database, ledger }: Pick<AccountDeps, 'database' | 'ledger'>,
): Promise<OwnAccount> {
  const { keyId, models, endpoints, expiresAtMs } = principal
  await ledger.posted(principal.accountId)
  const [row] = await database.query<AccountRow>(ACCOUNT, [principal.accountId, keyId])
  if (!row) throw new Fault('key_unknown')
  // Those of an account without lots are in the row that was just read.
  const special = row.has_lots ? await readBalance(database, row.id) : undefined
  const { balance, held, available, lots } = special ?? { ...accountFacts(row), lots: [] }
  return {
    ...accountFacts(row),
    balance,
    held,
    available,
    summary: balanceSentence({ balance, lots }),
    lots: lots.map(({ remaining, endsAt, products }) => ({ remaining, endsAt, products })),
    test: isTestAccount(row.id),
    key: {
      id: keyId,
      models: models && [...models],
      endpoints: endpoints && [...endpoints],
      expiresAt: Number.isFinite(expiresAtMs) ? new Date(expiresAtMs).toISOString() : null,
      limits: showLimits(row.key_limits),
    },
  }
}

/** What a call would hold and cost. */
export async function quoteCall(question: Question, deps: AccountDeps): Promise<QuoteView> {
  const now = deps.catalog.current
  const { principal } = question
  const asked = await readQuoted(question, now, deps)
  const { endpoint, paidRequest, product, own } = asked
  const { want, floor, most } = estimate(asked)
  const [row] = await deps.database.query<AccountRow>(ACCOUNT, [principal.accountId, principal.keyId])
  const available = row ? row.posted - row.held : 0n
  const worst = worstAtMost(paidRequest)
  const charges = (own?.prices ?? [product.pricing]).map((pricing) => mostOf(pricing, { ...paidRequest, worst }))
  const lines = charges.find(({ amount }) => amount === most)?.lines ?? []
  return {
    endpoint,
    product: paidRequest.product,
    unit: 'credits',
    hold: formatCredits(holdOf({ want, floor, most }, available)),
    costAtMost: formatCredits(most),
    holdAtLeast: formatCredits(floor),
    worstCase: worst,
    lines: lines.map(([unit, quantity, rate]) => ({
      unit,
      quantity,
      rate: formatCredits(BigInt(rate)),
      per: 1_000_000,
    })),
    available: formatCredits(available),
    affordable: floor <= available,
    byok: own !== undefined,
    catalogVersion: now.version,
  }
}

/** What a call that is alone would hold: half of what is available, unless it needs less or its reserve is more. */
function holdOf({ want, floor, most }: ReturnType<typeof estimate>, available: Credits): Credits {
  if (available < want) return available > floor ? available : want
  const half = available / 2n
  return half >= most ? most : half > want ? half : want
}

interface AccountRow {
  id: string
  name: string
  posted: bigint
  held: bigint
  limits: Limits
  has_lots: boolean
  key_limits: Limits
}

const ACCOUNT = sql('own_account')`
  select a.id, a.name, a.posted, ${HELD('a')} as held, limits_of(a.id, 'account') as limits, a.has_lots, limits_of(k.account_id, k.id) as key_limits
   from account a left join api_key k on k.id = $2 where a.id = $1`

// The call that a quote is about, read as its endpoint reads it.

type Quoted = Read & { readonly endpoint: string }

interface Question {
  readonly body: Buffer
  /** The endpoint's id; null: it follows from the body. */
  readonly endpoint: string | null
  /** The endpoint itself, where it has no address. */
  readonly own?: PaidSpec | undefined
  /** As a line of a batch, at the price that its model has there. */
  readonly batch?: boolean
  readonly principal: Principal
  /** What the request has of the budget; absent where it is part of another. */
  readonly lease?: ByteLease | null
}

const paidOf = (catalog: Catalog) => endpointsOf(catalog).filter(isPaid)

async function readQuoted(
  { body, endpoint, own, batch = false, principal, lease }: Question,
  catalog: Catalog,
  deps: Pick<AccountDeps, 'read' | 'budget' | 'background'>,
): Promise<Quoted> {
  const json = readJson(body)
  const paid = paidOf(catalog)
  const named = own ? [own] : paid.filter(({ id }) => id === endpoint)
  const specs = endpoint === null ? likely(json, catalog, principal) : named
  let first: Fault | undefined
  let best: Quoted | undefined
  for (const spec of specs)
    try {
      const room = lease ?? deps.budget.open(principal.accountId)
      const asked = spec.sells === 'image' ? await withPictures(body, room) : { json }
      const brought = await broughtBy(principal, deps.read)
      const parts = isDataEndpoint(spec) ? asParts(json, spec) : { params: {}, query: '', body: asked }
      const quoted = { endpoint: spec.id, ...read({ spec, catalog, principal, brought, ...parts }, deps.read) }
      if (batch && !(deps.background && isBatchable(spec)))
        throw invalid(`"batch" must be false: ${spec.path} is not offered in batches.`, 'batch')
      // A body that several endpoints can read is meant for the one that knows most of its members.
      if (!best || strangers(quoted) < strangers(best)) best = quoted
      if (strangers(best) === 0) break
    } catch (error) {
      if (!(error instanceof Fault) || error.kind !== 'request_invalid') throw error
      first ??= endpoint === null && specs.length > 1 ? elsewhere(error, spec) : error
    }
  if (best) return batch ? inBatch(best) : best
  throw first ?? invalid(`"endpoint" must be one of ${paid.map(({ id }) => id).join(', ')}.`, 'endpoint')
}

const strangers = ({ paidRequest }: Quoted) => paidRequest.unknown?.length ?? 0

/**
 * The endpoints that sell the model, of which the key may use some; those first whose required fields are all there,
 * and of these the one with the most.
 */
function likely(json: JsonText, catalog: Catalog, principal: Principal): PaidSpec[] {
  const { model } = json.value
  const product = typeof model === 'string' ? findProduct(catalog, model) : undefined
  const kind = product && 'type' in product ? product.type : 'text'
  // All have a model, which says nothing of the endpoint.
  const required = ({ body }: PaidSpec) =>
    ((body?.required ?? []) as readonly string[]).filter((name) => name !== 'model')
  const rank = (spec: PaidSpec) =>
    required(spec).every((name) => Object.hasOwn(json.value, name)) ? required(spec).length : 0
  const selling = paidOf(catalog).filter((spec) => spec.sells === kind && spec.method === 'POST')
  const own = selling.filter((spec) => mayCall(principal, spec))
  const able = own.length > 0 ? own : selling
  // A form is meant only where nothing else sells the model.
  const asJson = able.filter((spec) => !spec.form)
  return (asJson.length > 0 ? asJson : able).sort((a, b) => rank(b) - rank(a))
}

function elsewhere(error: Fault, spec: PaidSpec): Fault {
  const message = `${error.message} (Read as ${spec.path}; another can be named with ?endpoint=…)`
  return new Fault(error.kind, { ...error.details, message, cause: error })
}

/**
 * The pictures stand beside the body while they are read, so that a body which is worth counting counts twice, as one
 * request's. The memory is given back at once: nothing is fetched or kept for an ask that is never opened.
 */
async function withPictures(body: Buffer, lease: ByteLease): Promise<RequestBody> {
  const { bytes } = lease
  // The budget bounds the wait itself.
  if (body.length > SMALL_BODY_BYTES) await lease.grow(body.length, NEVER)
  try {
    return await readPictures(body, lease)
  } finally {
    lease.shrinkTo(bytes)
  }
}

/** Of a data endpoint the parameters stand in the body, by their names; the body itself, if it takes one, as `body`. */
function asParts(json: JsonText, { path, params: fields, body: takes }: DataEndpointSpec) {
  const params: Record<string, string> = {}
  const headers: Record<string, string> = {}
  const query = new URLSearchParams()
  let body: RequestBody = { json }
  for (const [name, value] of Object.entries(json.value)) {
    if (takes && name === 'body') body = { json: readJson(Buffer.from(JSON.stringify(value))) }
    else if (typeof value === 'object') throw invalid(`"${name}" must be a text, a number or true or false.`, name)
    else if (path.includes(`{${name}}`)) params[name] = String(value)
    else if (fields[name]?.in === 'header') headers[name.toLowerCase()] = String(value)
    else query.append(name, String(value))
  }
  return { params, query: query.toString(), body, headers }
}
