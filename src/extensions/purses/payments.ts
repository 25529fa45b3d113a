// How customers of an account pay into their purses: the account's own payment provider with its sealed secrets, what a
// credit of a purse costs, and how the page for customers looks. Nothing here is the gateway's own selling: the money
// is the account's.
import * as z from 'zod'
import { lockAccount } from '../../admission/accounts.ts'
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { checkColors, checkLogo, colorsOf } from '../../identity/branding/branding.ts'
import { brandingInput } from '../../identity/branding/views.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import { fingerprintOf, seal, sign, unseal } from '../../kernel/secret.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import type { Upstream } from '../../upstream/call.ts'
import { checkIssuer, issuerInput } from '../billing/invoices/details.ts'
import type { Seller } from '../billing/invoices/issuing.ts'
import { currencyDecimals, parseMoney } from '../billing/money.ts'
import { type Amounts, amountsOf } from '../billing/payments/amounts.ts'
import type { Provider } from '../billing/payments/provider.ts'
import { modeOf, STRIPE_SECRETS } from '../billing/payments/secrets.ts'
import { createSimulatedPayments } from '../billing/payments/simulated.ts'
import { createStripe } from '../billing/payments/stripe.ts'
import { type PaymentsView, PURSE_PROVIDERS, paymentsView } from './views.ts'

const LOGO_BYTES_MAX = 50_000
/** Anybody with a key chooses one, and an invoice draws each pixel of it. */
const LOGO_SIDE_MAX = 1_000
const LOGO_CHARS_MAX = Math.ceil(LOGO_BYTES_MAX / 3) * 4
export const PAYMENTS_BYTES_MAX = LOGO_CHARS_MAX + 10_000
const money = z.string().max(20).optional()
const { name, color, colorDark } = brandingInput.shape

export const paymentsInput = z.strictObject({
  provider: z.enum(PURSE_PROVIDERS).optional().describe('off, stripe, or simulated to try it without money'),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be a currency such as "EUR"')
    .optional()
    .describe('In which money customers pay'),
  pricePerCredit: money.describe('What a credit of a purse costs, with at most six decimals'),
  minimum: money.describe('The least that a customer pays at once'),
  maximum: money.describe('The most that a customer pays at once'),
  name: name.removeDefault().nullable().optional().meta({ description: 'On the page for customers', none: 'account' }),
  color: color.removeDefault().optional().meta({ description: 'Of its buttons on light pages', none: 'none' }),
  colorDark: colorDark.removeDefault().optional().meta({ description: 'The same on dark pages', none: 'none' }),
  logo: z
    .string()
    .max(LOGO_CHARS_MAX, `must be a file of at most ${LOGO_BYTES_MAX / 1000} kB`)
    .regex(/^[A-Za-z0-9+/]+={0,2}$/, 'must be base64')
    .nullable()
    .optional()
    .meta({ description: 'PNG or JPEG in base64', read: 'base64' }),
  issuer: issuerInput
    .nullable()
    .optional()
    .meta({ description: 'Who issues invoices for top-ups', option: 'issuer', read: 'json' }),
  secrets: z.strictObject(STRIPE_SECRETS).optional(),
})

const stored = paymentsView
  .omit({ hasLogo: true, secrets: true, fingerprints: true, mode: true, canSimulate: true, webhookUrl: true })
  .extend({ logo: z.string().nullable() })
type Stored = z.output<typeof stored>
const NOTHING: Stored = {
  provider: 'off',
  currency: null,
  pricePerCredit: null,
  minimum: null,
  maximum: null,
  name: null,
  color: null,
  colorDark: null,
  logo: null,
  issuer: null,
}
const storedSecrets = z.object({ stripe: z.string().optional(), 'stripe-webhook': z.string().optional() })
type StoredSecrets = z.output<typeof storedSecrets>

/** What a customer can buy now. */
interface PurseSale {
  readonly provider: Provider
  readonly currency: string
  readonly amounts: Amounts
}

interface Brand {
  readonly name: string
  /** By their tokens in the console's palette, on light and on dark pages. */
  readonly colors: Readonly<Record<string, readonly [string, string]>>
  /** As an address of its own. */
  readonly logo: string | null
}

export interface PaymentsDeps
  extends Pick<CoreParts, 'database' | 'world' | 'audit' | 'secrets' | 'sandboxUrl' | 'publicUrl'> {
  readonly upstream: Pick<Upstream, 'send'>
  readonly localUrl: () => string
  readonly stripeUrl: string | undefined
  /** Whether calls of every account are simulated. */
  readonly isSimulated: () => boolean
}

/** The page for customers. */
export const PURSE_PAGE = '/purse'
export const PURSE_WEBHOOKS = '/webhooks/purses'
export const TEST_PAGES = `${PURSE_PAGE}/test-payments`

export type PursePayments = ReturnType<typeof createPursePayments>

export function createPursePayments(deps: PaymentsDeps) {
  const { database, world, secrets, publicUrl } = deps
  const key = secrets.key('credential')
  const canSimulate = (account: string) => isTestAccount(account) || deps.isSimulated()

  async function read(account: string, on: Queryable = database): Promise<Stored & { sealed: StoredSecrets }> {
    const [row] = await on.query<{ settings: object; sealed: Buffer | null }>(READ, [account])
    const text = row?.sealed ? unseal(key, placeOf(account), row.sealed) : undefined
    const opened = text === undefined ? {} : readJson(Buffer.from(text)).value
    return { ...stored.parse({ ...NOTHING, ...row?.settings }), sealed: storedSecrets.parse(opened) }
  }

  const simulatedFor = (account: string) =>
    createSimulatedPayments({
      ...deps,
      // Of this account alone: nobody else's report opens here.
      secret: () => sign(secrets.key('test-payments'), account).toString('base64'),
      pageUrl: (id) => `${publicUrl()}${TEST_PAGES}/${id}`,
      webhookUrl: () => `${deps.localUrl()}${PURSE_WEBHOOKS}/${account}`,
    })

  function providerOf(account: string, name: Provider['name'], sealed: StoredSecrets): Provider {
    if (name === 'simulated' && canSimulate(account)) return simulatedFor(account)
    if (name !== 'stripe') throw new Fault('not_found')
    return createStripe({
      world,
      baseUrl: deps.stripeUrl,
      tax: async () => 'off',
      apiKey: () => sealed.stripe,
      webhookSecret: () => sealed['stripe-webhook'],
    })
  }

  async function view(account: string, salt?: string): Promise<PaymentsView> {
    const { logo, sealed, ...settings } = await read(account)
    const fingerprints: Record<string, string> = {}
    for (const [name, secret] of Object.entries(sealed))
      if (salt !== undefined && secret !== undefined) fingerprints[name] = await fingerprintOf(secret, salt)
    return {
      ...settings,
      hasLogo: logo !== null,
      canSimulate: canSimulate(account),
      secrets: { stripe: sealed.stripe !== undefined, 'stripe-webhook': sealed['stripe-webhook'] !== undefined },
      ...(salt === undefined ? {} : { fingerprints }),
      mode: sealed.stripe === undefined ? null : modeOf(sealed.stripe),
      webhookUrl: `${publicUrl()}${PURSE_WEBHOOKS}/${account}`,
    }
  }

  return {
    view,
    async change(
      account: string,
      { secrets: given = {}, ...fields }: z.output<typeof paymentsInput>,
      by: By,
    ): Promise<PaymentsView> {
      await database.transaction(async (tx) => {
        await lockAccount(tx, account)
        const { sealed, ...before } = await read(account, tx)
        const after = stored.parse({ ...before, ...defined(fields) })
        const kept = storedSecrets.parse(present({ ...sealed, ...defined(given) }))
        check(after, kept, canSimulate(account))
        const bytes = Object.keys(kept).length > 0 ? seal(key, placeOf(account), JSON.stringify(kept), world) : null
        await tx.query(PUT, [account, JSON.stringify(after), bytes])
        await deps.audit.write(tx, by, {
          action: 'purse-payments.change',
          object: account,
          before: noted(before, sealed),
          after: noted(after, kept),
        })
      })
      return view(account)
    },
    /** Undefined: nothing is sold. */
    async sale(account: string): Promise<PurseSale | undefined> {
      const { provider, currency, sealed, ...given } = await read(account)
      if (provider === 'off' || currency === null || (provider === 'simulated' && !canSimulate(account)))
        return undefined
      const amounts = soldFor({ ...given, currency })
      return amounts ? { provider: providerOf(account, provider, sealed), currency, amounts } : undefined
    },
    async brand(account: string): Promise<Brand> {
      const { name, color, colorDark, logo } = await read(account)
      const [row] = name === null ? await database.query<{ name: string }>(NAME, [account]) : []
      return {
        name: name ?? row?.name ?? '',
        colors: color === null ? {} : colorsOf(color, colorDark),
        logo: logo && `data:image/${checkLogo(Buffer.from(logo, 'base64')).type};base64,${logo}`,
      }
    },
    /** Who issues invoices for top-ups. */
    async seller(on: Queryable, account: string): Promise<Seller> {
      const { issuer, name, color, logo } = await read(account, on)
      const brand = name === null && color === null ? undefined : { name: name ?? issuer?.name ?? '', color }
      return { issuer, brand, logo: logo === null ? undefined : Buffer.from(logo, 'base64') }
    },
    /** By whom a payment is or was taken, whatever is chosen now. */
    provider: async (account: string, name: Provider['name']): Promise<Provider> =>
      providerOf(account, name, (await read(account)).sealed),
    // Any account's: the address is a secret of whoever began the payment.
    /** The page of a test payment. */
    testPage: simulatedFor('').page,
  }
}

const placeOf = (account: string) => `purse_payments|${account}|sealed|1`

const defined = (fields: object) => Object.fromEntries(Object.entries(fields).filter(([, one]) => one !== undefined))
const present = (fields: object) => Object.fromEntries(Object.entries(fields).filter(([, one]) => one !== null))

/** Of secrets and pictures, only whether there is one. */
const noted = ({ logo, name: pageName, ...settings }: Stored, sealed: StoredSecrets) => ({
  ...settings,
  pageName,
  hasLogo: logo !== null,
  secrets: Object.keys(sealed).sort(),
})

function check(settings: Stored, sealed: StoredSecrets, canSimulate: boolean): void {
  const { provider, currency, logo, issuer } = settings
  checkColors(settings)
  if (issuer) checkIssuer(issuer)
  if (logo !== null) {
    const { width, height } = checkLogo(Buffer.from(logo, 'base64'))
    if (Math.max(width, height) > LOGO_SIDE_MAX)
      throw invalid(`logo: may be at most ${LOGO_SIDE_MAX} pixels wide and high.`, 'logo')
  }
  if (provider === 'off' && currency === null) return
  if (currency === null || !soldFor({ ...settings, currency }))
    throw invalid('"currency", "pricePerCredit", "minimum" and "maximum" say what is sold.', 'currency')
  if (provider === 'simulated' && !canSimulate)
    throw new Fault('conflict', { message: 'Test payments are offered only while every vendor is simulated.' })
  if (provider === 'stripe' && !(sealed.stripe !== undefined && sealed['stripe-webhook'] !== undefined))
    throw invalid('Stripe needs both secrets: "stripe" and "stripe-webhook".', 'secrets')
}

function soldFor(given: Pick<Stored, 'pricePerCredit' | 'minimum' | 'maximum'> & { readonly currency: string }) {
  const { currency } = given
  const problem = (path: (string | number)[], message: string): never => {
    throw invalid(`${path.join('.')}: ${message}.`, String(path[0]))
  }
  return amountsOf(
    given,
    (text, path, least) => {
      const minor = parseMoney(text, currency)
      if (minor !== undefined && minor >= least) return minor
      return problem(path, `must be an amount of ${currency} with at most ${currencyDecimals(currency)} decimals`)
    },
    problem,
  )
}

const READ = sql('purse_payments_read')`select settings, sealed from purse_payments where account_id = $1`
const NAME = sql('purse_payments_name')`select name from account where id = $1`
const PUT = sql('purse_payments_put')`insert into purse_payments (account_id, settings, sealed) values ($1, $2, $3)
   on conflict (account_id) do update set settings = excluded.settings, sealed = excluded.sealed`
