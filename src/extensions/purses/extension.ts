import { type AccountDeps, quoteCall } from '../../api/account.ts'
import type { Api } from '../../api/api.ts'
import { jsonBody } from '../../api/server/body.ts'
import type { WebServer } from '../../api/server/server.ts'
import type { WebRequest } from '../../api/server/web.ts'
import { hasRealVendor } from '../../catalog/simulated.ts'
import type { Config } from '../../config.ts'
import { type CoreParts, defineExtension } from '../../extension.ts'
import type { Deliveries } from '../../jobs/deliveries.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { withCommands } from '../../operator/command.ts'
import { type Actor, HERE, mountResources } from '../../operator/resource.ts'
import { createReconciliations } from '../billing/payments/reconcile.ts'
import { PURSE, purseCallers, withPurses } from './calls.ts'
import { PURSE_COMMANDS } from './commands.ts'
import { createPurseEvents } from './events.ts'
import { createPurseInvoices, type PurseInvoices, purseInvoiceResources } from './invoices.ts'
import { mountOwnPurse, mountPage } from './page.ts'
import { createPursePayments, type PaymentsDeps } from './payments.ts'
import { createPurseLists, type PurseLists, purseCharge } from './prices.ts'
import { createPurses, type Purses } from './purses.ts'
import { ownResources, purseResources, requireUnrestricted } from './resources.ts'
import { createPurseSessions, PURSE_QUOTE_PATH } from './sessions.ts'
import { type TopUpResourceDeps, topUpResources } from './topup-resources.ts'
import { createTopUps } from './topups.ts'
import { verifyPurses } from './verify.ts'
import { verifyTopUps } from './verify-topups.ts'

interface Core
  extends Pick<CoreParts, 'database' | 'audit' | 'changes' | 'world' | 'secrets' | 'catalog' | 'apiKeys' | 'log'>,
    Pick<AccountDeps, 'ledger' | 'budget'>,
    Omit<PaymentsDeps, 'stripeUrl' | 'isSimulated'> {
  readonly config: Pick<Config, 'TOLLGATE_RETENTION_USAGE_MONTHS' | 'TOLLGATE_STRIPE_URL'>
  readonly jobs: { readonly deliveries: Pick<Deliveries, 'add' | 'wake'> }
}

interface Place extends Pick<AccountDeps, 'read'> {
  readonly app: WebServer
  readonly api: Api
}

const TELL_EVERY_MS = 1_000
const LOOK_EVERY_MS = 600_000
const PRUNE_EVERY_MS = 3_600_000

type AllDeps = Parameters<typeof purseResources>[0] & TopUpResourceDeps & { readonly invoices: PurseInvoices }
const allResources = (all: AllDeps) => [...purseResources(all), ...topUpResources(all), ...purseInvoiceResources(all)]

export const purses = defineExtension({
  name: 'purses',
  verify: [verifyPurses, verifyTopUps],
  open(core: Core) {
    const { catalog, config } = core
    const payments = createPursePayments({
      ...core,
      stripeUrl: config.TOLLGATE_STRIPE_URL,
      isSimulated: () => !hasRealVendor(catalog.current.document),
    })
    const invoices = createPurseInvoices({ ...core, payments })
    const topUps = createTopUps({ ...core, payments, invoices })
    return {
      payments,
      invoices,
      topUps,
      reconciliations: createReconciliations({ ...core, payments: topUps.reconciled }),
      purses: createPurses(core),
      lists: createPurseLists(core),
      sessions: createPurseSessions(core),
      events: createPurseEvents(core),
    }
  },
  resources: (all) => withCommands(allResources(all), PURSE_COMMANDS),
  endpoints(all, { app, api, read }: Place) {
    mountForKeys(app, all)
    mountOwnPurse(api, all)
    mountPage(app, all)
    mountPurseQuote(api, { ...all, read })
  },
  callers: ({ sessions }) => purseCallers(sessions),
  accountIn: ({ sessions }, token) => sessions.accountIn(token),
  ledger: (all, ledger) => withPurses(ledger, all),
  work: ({ events, sessions, topUps, invoices, reconciliations, config }) => [
    { everyMs: LOOK_EVERY_MS, run: () => topUps.look() },
    { everyMs: LOOK_EVERY_MS, run: () => reconciliations.tick() },
    { everyMs: TELL_EVERY_MS, run: () => events.tell() },
    { everyMs: PRUNE_EVERY_MS, run: () => events.prune(config.TOLLGATE_RETENTION_USAGE_MONTHS) },
    { everyMs: PRUNE_EVERY_MS, run: () => sessions.prune() },
    { everyMs: PRUNE_EVERY_MS, run: () => invoices.makeFiles() },
  ],
})

/** A key of the account manages its purses like a person of it. */
function mountForKeys(app: WebServer, all: AllDeps & Pick<Core, 'apiKeys'>): void {
  const accounts = new WeakMap<object, string>()
  const own = ownResources(allResources(all), (actor) => accounts.get(actor) ?? '')
  const authenticate = async ({ headers, ip, response }: WebRequest) => {
    response.setHeader('cache-control', 'no-store')
    const xApiKey = headers['x-api-key']
    const given = { authorization: headers.authorization, xApiKey: Array.isArray(xApiKey) ? xApiKey[0] : xApiKey }
    const principal = await all.apiKeys.authenticate(given, { ip })
    requireUnrestricted(principal)
    const actor: Actor = { name: principal.keyId, role: null, roles: new Map(), session: null }
    accounts.set(actor, principal.accountId)
    return actor
  }
  mountResources(app, '/v1', own, { authenticate, delegation: HERE })
}

const QUOTE_BYTES_MAX = 1_000_000

/** What a call would cost the customer at most, by the price list of now. */
function mountPurseQuote(api: Api, deps: AccountDeps & { readonly purses: Purses; readonly lists: PurseLists }): void {
  api.add('POST', PURSE_QUOTE_PATH, {
    surface: 'native',
    alias: false,
    isRecorded: false,
    bodyBytesMax: QUOTE_BYTES_MAX,
    async handle(request, out) {
      const { principal, lease, id: requestId } = request
      const { id, available } = await deps.purses.find(principal.accountId, principal.place?.[PURSE] ?? '')
      const quote = await quoteCall({ body: jsonBody(request), endpoint: null, principal, lease }, deps)
      const { version, list } = await deps.lists.current(principal.accountId)
      const charge = purseCharge(list, {
        product: quote.product,
        volume: 0n,
        charged: parseCredits(quote.costAtMost) ?? 0n,
        lines: quote.lines.map(
          ({ unit, quantity, rate }) => [unit, quantity, String(parseCredits(rate) ?? 0n)] as const,
        ),
      })
      const data = { purse: id, product: quote.product, list: version, costAtMost: formatCredits(charge), available }
      const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
      out.send(200, headers, JSON.stringify({ success: true, data, requestId }))
    },
  })
  api.crossSite(PURSE_QUOTE_PATH)
}
