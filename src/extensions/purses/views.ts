// What the API says of purses.
import * as z from 'zod'
import { count, credits, page, time } from '../../kernel/view.ts'
import { issuerView } from '../billing/invoices/views.ts'
import { PROVIDER_NAMES } from '../billing/payments/views.ts'

export const PURSE_STATUSES = ['open', 'frozen', 'closed'] as const
const MOVES = ['grant', 'topup', 'takeback', 'settled', 'released', 'expired'] as const
const KINDS = [...MOVES, 'empty', 'frozen', 'reopened', 'closed'] as const

export const purseView = z.object({
  /** The account’s own name of its customer. */
  id: z.string(),
  name: z.string(),
  /** Calls of a purse that is frozen or closed are refused. */
  status: z.enum(PURSE_STATUSES),
  balance: credits,
  /** What running calls hold. */
  held: credits,
  available: credits,
  /** Below this the account is told; null: at no amount. */
  low: credits.nullable(),
  createdAt: time,
  /** When it last changed; null: never. */
  movedAt: time.nullable(),
})
export type PurseView = z.infer<typeof purseView>

export const purseMovement = z.object({
  id: z.string(),
  at: time,
  kind: z.enum(KINDS),
  /** The change of the balance; negative if credits were taken. */
  moved: credits,
  balanceAfter: credits,
  /** Of a call: what the account paid for it, and the version of the price list. */
  charged: credits,
  list: count.nullable(),
  requestId: z.string().nullable(),
  product: z.string().nullable(),
  reference: z.string().nullable(),
  note: z.string().nullable(),
  actor: z.string().nullable(),
})
export type PurseMovement = z.infer<typeof purseMovement>
export const pursePage = page(purseView)
export const movementPage = page(purseMovement)

/** A sum of calls, at the account’s prices and at what the account paid. */
const sold = { calls: count, sold: credits, paid: credits, margin: credits }

export const purseStatement = z.object({
  purse: z.string(),
  name: z.string(),
  /** Such as 2026-11. */
  month: z.string(),
  opening: credits,
  granted: credits,
  takenBack: credits,
  spent: credits,
  closing: credits,
  /** By model and version of the price list. */
  lines: z.array(z.object({ product: z.string(), list: count, calls: count, spent: credits })),
})
export type PurseStatement = z.infer<typeof purseStatement>

export const purseMargins = z.object({
  ...sold,
  purses: z.array(z.object({ purse: z.string(), name: z.string(), ...sold })),
  products: z.array(z.object({ product: z.string(), ...sold })),
})
export type PurseMargins = z.infer<typeof purseMargins>

/** Of what a customer pays through the account's payment provider. */
export const TOP_UP_STATES = ['pending', 'paid', 'refunded', 'disputed', 'quarantined', 'failed'] as const
export const topUpView = z.object({
  id: z.string(),
  purse: z.string(),
  provider: z.enum(PROVIDER_NAMES),
  providerId: z.string().nullable(),
  state: z.enum(TOP_UP_STATES),
  /** Why it is quarantined, disputed or failed. */
  reason: z.string().nullable(),
  currency: z.string(),
  /** What was paid; while it is pending, the price. */
  amount: z.string(),
  refunded: z.string(),
  credits,
  /** Of its credits: what was taken back for a refund or dispute, and what was spent before. */
  creditsTaken: credits,
  creditsLost: credits,
  createdAt: time,
  paidAt: time.nullable(),
})
export type TopUpView = z.infer<typeof topUpView>
export const topUpPage = page(topUpView)
/** Where the customer pays. */
export const topUpCheckout = z.object({ id: z.string(), credits, url: z.string() })
/** Whoever has the address sees this purse and can pay into it, and nothing else. */
export const pageLinkView = z.object({ url: z.string(), expiresAt: time })
export type PageLinkView = z.infer<typeof pageLinkView>

export const sessionView = z.object({
  id: z.string(),
  purse: z.string(),
  /** The start of its token. */
  prefix: z.string(),
  /** The most that the purse pays for one call; null: any amount. */
  callMax: credits.nullable(),
  expiresAt: time,
  revokedAt: time.nullable(),
  createdAt: time,
})
export type SessionView = z.infer<typeof sessionView>
export const sessionPage = page(sessionView)

/** The token is shown once. It opens nothing but calls of this purse. */
export const newSessionView = sessionView.extend({ token: z.string() })
export type NewSessionView = z.infer<typeof newSessionView>

const rates = z.record(z.string(), z.union([credits, count]))
export const pricesView = z.object({
  /** 0: there is none, and customers pay what the account pays. */
  version: count,
  markupPercent: z.string(),
  models: z.array(
    z.object({ model: z.string(), markupPercent: z.string().exactOptional(), prices: z.array(rates).exactOptional() }),
  ),
  volume: z.array(z.object({ from: credits, discountPercent: z.string() })),
  actor: z.string().nullable(),
  createdAt: time.nullable(),
})
export type PricesView = z.infer<typeof pricesView>

export const eventsView = z.object({
  /** Null: nobody is told. */
  url: z.string().nullable(),
  /** Also of every call that was settled. */
  settled: z.boolean(),
})
export type EventsView = z.infer<typeof eventsView>

export const PURSE_PROVIDERS = ['off', 'stripe', 'simulated'] as const
export const paymentsView = z.object({
  provider: z.enum(PURSE_PROVIDERS),
  currency: z.string().nullable(),
  pricePerCredit: z.string().nullable(),
  minimum: z.string().nullable(),
  maximum: z.string().nullable(),
  /** On the page for customers; null: the account's name. */
  name: z.string().nullable(),
  color: z.string().nullable(),
  colorDark: z.string().nullable(),
  hasLogo: z.boolean(),
  /** Null: no invoices are issued for top-ups. */
  issuer: issuerView.nullable(),
  /** Which secrets are stored; they are never shown. */
  secrets: z.object({ stripe: z.boolean(), 'stripe-webhook': z.boolean() }),
  /** Salted hashes of them, if the request has a `salt`, to compare them with known values. */
  fingerprints: z.record(z.string(), z.string()).optional(),
  /** Of the Stripe key. */
  mode: z.enum(['live', 'test']).nullable(),
  /** Whether test payments can be chosen: calls of the account cost no vendor anything. */
  canSimulate: z.boolean(),
  /** For the webhook at Stripe. */
  webhookUrl: z.string(),
})
export type PaymentsView = z.infer<typeof paymentsView>
