// What a key can ask about itself, free of charge: its models, its account, the size of a prompt, the price of a call.
import { estimate } from '../admission/admit.ts'
import type { Principal } from '../admission/api-key.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import { FREE } from '../catalog/generation.ts'
import type { CatalogStore } from '../catalog/store.ts'
import { type Database, statement } from '../database/database.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson } from '../kernel/json.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { HELD } from '../ledger/available.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type Limits, showLimits } from '../ledger/limits.ts'
import { chargeOf } from '../meter/charge.ts'
import { permitAt, type ReadDeps } from '../pipeline/read.ts'
import { countGeminiTokens, countResponseTokens, countTokens, readModelName } from '../protocols/text/text.ts'
import { accountFacts } from '../reports/statement.ts'
import { jsonBody } from '../server/body.ts'
import type { Caller } from '../server/caller.ts'
import { rawQuery } from '../server/server.ts'
import type { ByteBudget } from '../upstream/budget.ts'
import type { HandlersOf, RequestContext } from './api.ts'
import { createModelLists, type ListShape } from './models.ts'
import { type Question, readQuoted } from './quote.ts'
import type { OwnAccount, QuoteView } from './views.ts'

export interface AccountDeps {
  readonly catalog: CatalogStore
  readonly database: Database
  readonly ledger: Pick<Ledger, 'posted'>
  readonly read: ReadDeps
  readonly budget: ByteBudget
}

export function accountHandlers(
  deps: AccountDeps,
): HandlersOf<
  'models' | 'models/{id}' | 'account' | 'quote' | 'count_tokens' | 'gemini/count_tokens' | 'responses/input_tokens'
> {
  const { catalog } = deps
  const lists = createModelLists(() => catalog.current)
  const send = (out: Caller, body: string) => out.send(200, { 'content-type': 'application/json; charset=utf-8' }, body)
  const shapeOf = ({ route: { surface } }: RequestContext): ListShape =>
    surface === 'messages' || surface === 'gemini' ? surface : 'native'

  /** A model that the key could not ask has no tokens to count. */
  const counted = (request: RequestContext, spec: EndpointSpec, count: (json: JsonText) => number): number => {
    const json = readJson(jsonBody(request))
    const tokens = count(json)
    const { model = readModelName(json) } = request.params
    permitAt(spec, model, { catalog: catalog.current, principal: request.principal })
    return tokens
  }

  return {
    count_tokens: (request, out) =>
      send(out, JSON.stringify({ input_tokens: counted(request, FREE.count_tokens, countTokens) })),
    'responses/input_tokens': (request, out) => {
      const input_tokens = counted(request, FREE['responses/input_tokens'], countResponseTokens)
      return send(out, JSON.stringify({ object: 'response.input_tokens', input_tokens }))
    },
    'gemini/count_tokens': (request, out) =>
      send(out, JSON.stringify({ totalTokens: counted(request, FREE['gemini/count_tokens'], countGeminiTokens) })),
    models: (request, out) => send(out, lists.list(request.principal, request.id, shapeOf(request))),
    'models/{id}': (request, out) =>
      send(out, lists.retrieve(request.principal, request.id, request.param('id'), shapeOf(request))),
    async account(request, out) {
      const data = await readAccount(request.principal, deps)
      return send(out, JSON.stringify({ success: true, data, requestId: request.id }))
    },
    async quote(request, out) {
      const query = new URLSearchParams(rawQuery(request))
      const [endpoint, inBatch] = [query.get('endpoint'), query.get('batch') ?? 'false']
      if (inBatch !== 'true' && inBatch !== 'false') throw invalid('"batch" must be true or false.', 'batch')
      const { lease } = request
      const asked = {
        body: jsonBody(request),
        endpoint,
        batch: inBatch === 'true',
        principal: request.principal,
        lease,
      }
      const data = await quoteCall(asked, deps)
      return send(out, JSON.stringify({ success: true, data, requestId: request.id }))
    },
  }
}

/** The account of a key, and what the key may do. */
export async function readAccount(
  principal: Principal,
  { database, ledger }: Pick<AccountDeps, 'database' | 'ledger'>,
): Promise<OwnAccount> {
  const { keyId, models, expiresAtMs } = principal
  await ledger.posted(principal.accountId)
  const [row] = await database.query<AccountRow>(ACCOUNT, [principal.accountId, keyId])
  if (!row) throw new Fault('key_unknown')
  return {
    ...accountFacts(row),
    test: isTestAccount(row.id),
    key: {
      id: keyId,
      models: models && [...models],
      expiresAt: Number.isFinite(expiresAtMs) ? new Date(expiresAtMs).toISOString() : null,
      limits: showLimits(row.key_limits ?? {}),
    },
  }
}

/** What a call would hold and cost. */
export async function quoteCall(question: Question, deps: AccountDeps): Promise<QuoteView> {
  const now = deps.catalog.current
  const { principal } = question
  const { endpoint, ask, product, own } = await readQuoted(question, now, deps)
  const { want, floor, most } = estimate(ask, product, own)
  const [row] = await deps.database.query<AccountRow>(ACCOUNT, [principal.accountId, principal.keyId])
  const available = row ? row.posted - row.held : 0n
  const worst = ask.outputOpen ? { ...ask.worst, output: ask.outputOpen.mostTokens } : ask.worst
  const charges = (own?.prices ?? [product.pricing]).map((pricing) => chargeOf(pricing, worst, ask.price))
  const lines = charges.find(({ amount }) => amount === most)?.lines ?? []
  return {
    endpoint,
    product: ask.product,
    unit: 'credits',
    hold: formatCredits(holdOf({ want, floor, most }, available)),
    costAtMost: formatCredits(most),
    costAtLeast: formatCredits(floor),
    worstCase: worst,
    lines: lines.map(([unit, quantity, rate]) => ({
      unit,
      quantity,
      rate: formatCredits(BigInt(rate)),
      per: 1_000_000,
    })),
    available: formatCredits(available),
    affordable: floor <= available,
    ownKey: own !== undefined,
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
  key_limits: Limits | null
}

const ACCOUNT = statement(
  'own_account',
  `select a.id, a.name, a.posted, ${HELD('a')} as held, a.limits, k.limits as key_limits
   from account a left join api_key k on k.id = $2 where a.id = $1`,
)
