// The page on which a customer sees a purse and tops it up, under the brand of the purse's account; what it and other
// pages and apps ask for by a session token; and the webhooks of the accounts' payment providers. The page itself knows
// nothing: the token stands in the fragment of its address.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Api, RequestContext } from '../../api/api.ts'
import { jsonBody } from '../../api/server/body.ts'
import type { WebServer } from '../../api/server/server.ts'
import { json } from '../../api/server/web.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { invalid } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import { readFields } from '../../operator/resource.ts'
import { formatMoney } from '../billing/money.ts'
import { PURSE } from './calls.ts'
import type { PurseInvoices } from './invoices.ts'
import { PURSE_PAGE, PURSE_WEBHOOKS, type PursePayments, TEST_PAGES } from './payments.ts'
import type { Purses } from './purses.ts'
import { OWN_PURSE_PATH } from './sessions.ts'
import { checkoutInput } from './topup-resources.ts'
import type { TopUps } from './topups.ts'

interface PageDeps {
  readonly purses: Pick<Purses, 'find' | 'movements'>
  readonly payments: PursePayments
  readonly topUps: TopUps
  readonly invoices: Pick<PurseInvoices, 'list' | 'file'>
  readonly publicUrl: () => string
}

const BODY_BYTES_MAX = 10_000
const EVENT_BYTES_MAX = 262_144
const FORM_BYTES_MAX = 1_024
const MOVEMENTS = 20
const INVOICES = 100

/** A buffer is a PDF. */
type Own = (at: { account: string; purse: string }, request: RequestContext) => Promise<object | Buffer>

/** What a session token, or a key that names a purse, is told of that purse, and nothing of its account. */
function mountOwn(api: Api, method: 'GET' | 'POST', path: string, run: Own): void {
  api.add(method, path, {
    surface: 'native',
    alias: false,
    isRecorded: false,
    bodyBytesMax: BODY_BYTES_MAX,
    async handle(request, out) {
      const { principal, id: requestId } = request
      const data = await run({ account: principal.accountId, purse: principal.place?.[PURSE] ?? '' }, request)
      const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
      if (Buffer.isBuffer(data)) out.send(200, { ...headers, 'content-type': 'application/pdf' }, data)
      else out.send(200, headers, JSON.stringify({ success: true, data, requestId }))
    },
  })
  api.crossSite(path)
}

export function mountOwnPurse(api: Api, { purses, payments, topUps, invoices, publicUrl }: PageDeps): void {
  const readPurse = async (account: string, purse: string) => {
    const { id, name, status, balance, held, available } = await purses.find(account, purse)
    return { id, name, status, balance, held, available }
  }
  mountOwn(api, 'GET', OWN_PURSE_PATH, ({ account, purse }) => readPurse(account, purse))
  mountOwn(api, 'GET', `${OWN_PURSE_PATH}/page`, async ({ account, purse }) => {
    const own = await readPurse(account, purse)
    const sale = await payments.sale(account)
    const { items } = await purses.movements(account, purse, { limit: MOVEMENTS })
    return {
      purse: own,
      brand: await payments.brand(account),
      sale: sale && {
        currency: sale.currency,
        pricePerCredit: formatCredits(sale.amounts.pricePerCredit),
        minimum: formatMoney(sale.amounts.minimumMinor, sale.currency),
        maximum: formatMoney(sale.amounts.maximumMinor, sale.currency),
        isTest: sale.provider.name === 'simulated',
      },
      // Nothing of what its account pays, or notes for itself.
      movements: items.map(({ at, kind, moved, balanceAfter, product }) => ({
        at,
        kind,
        moved,
        balanceAfter,
        product,
      })),
    }
  })
  mountOwn(api, 'POST', `${OWN_PURSE_PATH}/topups`, ({ account, purse }, request) => {
    const given = readFields(checkoutInput, readJson(jsonBody(request)).value, 'field')
    const { returnUrl = `${publicUrl()}${PURSE_PAGE}`, ...order } = given
    const from = request.headers.origin
    // No page sends customers elsewhere with a checkout that looks like its account's.
    if (from !== undefined && ![from, new URL(publicUrl()).origin].includes(new URL(returnUrl).origin))
      throw invalid('returnUrl: must be on the site that asks.', 'returnUrl')
    return topUps.begin(account, purse, { ...order, returnUrl })
  })
  mountOwn(api, 'GET', `${OWN_PURSE_PATH}/topups/{topup}`, async ({ account, purse }, request) => {
    const { id, state, amount, currency, credits } = await topUps.get(account, request.param('topup'), purse)
    return { id, state, amount, currency, credits }
  })
  mountOwn(api, 'GET', `${OWN_PURSE_PATH}/invoices`, async (own) => {
    const { items } = await invoices.list({ ...own, limit: INVOICES })
    return items.map(({ id, number, kind, issuedAt, gross, currency }) => ({
      id,
      number,
      kind,
      issuedAt,
      gross,
      currency,
    }))
  })
  mountOwn(
    ...([api, 'GET', `${OWN_PURSE_PATH}/invoices/{invoice}`] as const),
    async ({ account, purse }, request) => (await invoices.file(request.param('invoice'), account, purse)).body,
  )
}

const FOLDER = join(import.meta.dirname, 'page')
const TOKENS = resolve(import.meta.dirname, '../../../console/src/styles/tokens.css')
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Its files, which are read when somebody first asks. */
const FILES = {
  [PURSE_PAGE]: ['text/html', ['page.html']],
  [`${PURSE_PAGE}/page.css`]: ['text/css', [TOKENS, 'page.css']],
  [`${PURSE_PAGE}/page.js`]: ['text/javascript', ['page.js']],
  [`${PURSE_PAGE}/widget.js`]: ['text/javascript', ['widget.js']],
} as const

export function mountPage(app: WebServer, { payments, topUps }: Pick<PageDeps, 'payments' | 'topUps'>): void {
  for (const [path, [type, names]] of Object.entries(FILES)) {
    let body: string | undefined
    app.get(path, () => {
      body ??= names.map((name) => readFileSync(resolve(FOLDER, name), 'utf8')).join('\n')
      const headers = {
        'content-type': `${type}; charset=utf-8`,
        'cache-control': 'public, max-age=300',
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        // The widget is for pages of other sites.
        'access-control-allow-origin': '*',
        'cross-origin-resource-policy': 'cross-origin',
      }
      return { headers, body }
    })
  }
  for (const method of ['GET', 'POST'] as const)
    app.add(method, `${TEST_PAGES}/{id}`, async ({ params: { id = '' }, body }) =>
      payments.testPage({ method, id, body: await body(FORM_BYTES_MAX) }),
    )
  app.add('POST', `${PURSE_WEBHOOKS}/{account}`, async (request) => {
    app.bodyDeadline(request.response)
    const body = await request.body(EVENT_BYTES_MAX)
    const single = Object.entries(request.headers).map(([name, one]) => [
      name,
      Array.isArray(one) ? one.join(' ') : one,
    ])
    await topUps.receive(request.params.account ?? '', body, Object.fromEntries(single))
    return json({ received: true })
  })
}
