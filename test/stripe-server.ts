// A scripted Stripe: an HTTP server with the shapes of the real API, for as much of it as the gateway uses, and a
// hosted checkout page that a browser can click. Events are signed by the official library.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import Stripe from 'stripe'
import { listen } from './started.ts'

export const STRIPE_KEY = 'sk_test_0123456789abcdef'
export const STRIPE_SECRET = 'whsec_0123456789abcdef0123456789abcdef'

type Obj = Record<string, any>

export interface StripeServer {
  readonly url: string
  /** By id: what is there. */
  readonly intents: Map<string, Obj>
  readonly sessions: Map<string, Obj>
  /** What was asked, as "POST /v1/refunds". */
  readonly asked: string[]
  /** Pays a checkout session as its page does, without sending an event. Returns the payment intent. */
  pay(session: string, change?: Obj): Obj
  /** A payment that nobody asked for at the gateway. */
  strange(intent: Obj): Obj
  refund(intent: string, amount: number): void
  dispute(intent: string, status: string): void
  /** An event with its signature, as Stripe would send it. */
  event(type: string, object: Obj, id?: string): { body: string; signature: string }
  /** Where events of clicked checkouts go. */
  webhook: { url: string; secret: string } | undefined
  /** What Stripe Tax works out, in percent. */
  taxPercent: number
  /** What the next charges of saved cards get: a decline with this message. */
  declines: string | undefined
  /** Called before an answer to this request leaves. */
  before: ((asked: string) => Promise<void> | void) | undefined
  close(): Promise<void>
}

export async function startStripe(): Promise<StripeServer> {
  const intents = new Map<string, Obj>()
  const sessions = new Map<string, Obj>()
  const customers = new Map<string, Obj>()
  const methods = new Map<string, Obj>()
  const refunds: Obj[] = []
  const disputes: Obj[] = []
  const answered = new Map<string, { status: number; body: Obj; asked: string }>()
  let count = 0
  // A random part, because ids of several servers may meet in one database.
  const mark = Math.random().toString(36).slice(2, 8)
  const newId = (kind: string) => {
    count += 1
    return `${kind}_${mark}${String(count).padStart(8, '0')}`
  }
  const now = () => Math.floor(Date.now() / 1000)

  function intentOf(about: Obj): Obj {
    const id = newId('pi')
    const charge: Obj = {
      object: 'charge',
      id: newId('ch'),
      amount: about.amount,
      amount_refunded: 0,
      disputed: false,
      payment_intent: id,
      receipt_url: `https://pay.stripe.com/receipts/${id}`,
    }
    const intent = {
      object: 'payment_intent',
      id,
      created: now(),
      currency: 'eur',
      status: 'succeeded',
      metadata: {},
      last_payment_error: null,
      payment_method: null,
      setup_future_usage: null,
      latest_charge: charge,
      amount_received: about.amount,
      ...about,
    }
    intents.set(id, intent)
    return intent
  }

  function cardOf(customer: string | null): Obj {
    const card = { brand: 'visa', last4: '4242', exp_month: 12, exp_year: 2030 }
    const method = { object: 'payment_method', id: newId('pm'), type: 'card', customer, card }
    methods.set(method.id, method)
    return method
  }

  const { url, close } = await listen((request, response) => {
    const serve = request.url?.startsWith('/pay/') ? page : api
    serve(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  const server: StripeServer = {
    url,
    close,
    intents,
    sessions,
    asked: [],
    webhook: undefined,
    taxPercent: 19,
    declines: undefined,
    before: undefined,
    pay(id, change = {}) {
      const session = sessions.get(id)!
      if (session.payment_intent) return intents.get(session.payment_intent)!
      const { metadata, setup_future_usage = null } = session.asked.payment_intent_data ?? {}
      const intent = intentOf({
        amount: session.amount_total,
        currency: session.currency,
        metadata: metadata ?? {},
        setup_future_usage,
        payment_method: cardOf(session.customer),
        customer: session.customer,
        ...change,
      })
      Object.assign(session, { payment_intent: intent.id, status: 'complete', payment_status: 'paid' })
      return intent
    },
    strange: intentOf,
    refund(id, amount) {
      const intent = intents.get(id)!
      intent.latest_charge.amount_refunded += amount
      refunds.push({ object: 'refund', id: newId('re'), payment_intent: id, amount, created: now() })
    },
    dispute(id, status) {
      const known = disputes.find((one) => one.payment_intent === id)
      const intent = intents.get(id)!
      intent.latest_charge.disputed = true
      if (known) known.status = status
      else {
        const of = { payment_intent: id, amount: intent.amount, status, created: now() }
        disputes.push({ object: 'dispute', id: newId('dp'), ...of })
      }
    },
    event(type, object, id = newId('evt')) {
      const body = JSON.stringify({ object: 'event', id, type, created: now(), api_version: 'any', data: { object } })
      const secret = server.webhook?.secret ?? STRIPE_SECRET
      return { body, signature: Stripe.webhooks.generateTestHeaderString({ payload: body, secret }) }
    },
  }

  const list = (data: readonly Obj[], { limit = '10', starting_after: after }: Obj) => {
    const from = after === undefined ? 0 : data.findIndex(({ id }) => id === after) + 1
    const page = data.slice(from, from + Number(limit))
    return { object: 'list', url: '/v1/things', data: page, has_more: from + page.length < data.length }
  }
  const within = ({ created }: Obj, range: Obj | undefined) =>
    created >= Number(range?.gte ?? 0) && created < Number(range?.lt ?? Number.MAX_SAFE_INTEGER)
  const shown = (intent: Obj, expand: readonly string[] | undefined) => ({
    ...intent,
    latest_charge: expand?.some((one) => one.endsWith('latest_charge'))
      ? intent.latest_charge
      : intent.latest_charge?.id,
    payment_method: expand?.some((one) => one.endsWith('payment_method'))
      ? intent.payment_method
      : intent.payment_method?.id,
  })
  const newest = (of: Iterable<Obj>) => [...of].reverse()

  function taxOn(price: number, behaviour: string): { amount: number; tax: number } {
    const { taxPercent } = server
    if (behaviour === 'exclusive') {
      const tax = Math.round((price * taxPercent) / 100)
      return { amount: price + tax, tax }
    }
    return { amount: price, tax: Math.round((price * taxPercent) / (100 + taxPercent)) }
  }

  const ROUTES: Readonly<Record<string, (given: Obj, id: string) => Obj>> = {
    'POST /v1/customers'(given) {
      const customer = { object: 'customer', id: newId('cus'), ...given }
      customers.set(customer.id, customer)
      return customer
    },
    'GET /v1/customers/:id/payment_methods': (given, id) =>
      list(
        newest(methods.values()).filter(({ customer }) => customer === id),
        given,
      ),
    'POST /v1/checkout/sessions'(given) {
      const id = newId('cs')
      const [line] = Object.values<Obj>(given.line_items ?? {})
      const price = Number(line?.price_data?.unit_amount ?? 0)
      const isTaxed = given.automatic_tax?.enabled === 'true'
      const { amount, tax } = isTaxed ? taxOn(price, line?.price_data?.tax_behavior) : { amount: price, tax: 0 }
      const session = {
        object: 'checkout.session',
        id,
        created: now(),
        asked: given,
        mode: given.mode,
        status: 'open',
        amount_total: amount,
        amount_subtotal: price,
        total_details: { amount_tax: tax },
        payment_intent: null,
        currency: line?.price_data?.currency ?? 'eur',
        customer: given.customer ?? null,
        metadata: given.metadata ?? {},
        url: `${server.url}/pay/${id}`,
      }
      sessions.set(id, session)
      return session
    },
    'GET /v1/checkout/sessions': (given) =>
      list(
        [...sessions.values()].filter(({ payment_intent }) => payment_intent === given.payment_intent),
        given,
      ),
    'GET /v1/checkout/sessions/:id': (_, id) => sessions.get(id) ?? missing(id),
    'POST /v1/payment_intents'(given) {
      const amount = Number(given.amount)
      const method = methods.get(given.payment_method)
      if (!method) throw refusal(400, { type: 'invalid_request_error', message: 'No such PaymentMethod' })
      const about = { amount, currency: given.currency, metadata: given.metadata ?? {}, payment_method: method }
      const intent = intentOf({ ...about, customer: given.customer, off_session: given.off_session })
      if (server.declines !== undefined) {
        Object.assign(intent, { status: 'requires_payment_method', amount_received: 0, latest_charge: null })
        const error = { type: 'card_error', code: 'card_declined', message: server.declines, payment_intent: intent }
        throw refusal(402, error)
      }
      return intent
    },
    'GET /v1/payment_intents': (given) => {
      const all = newest(intents.values()).filter(
        (one) => within(one, given.created) && (!given.customer || one.customer === given.customer),
      )
      const page = list(all, given)
      return { ...page, data: page.data.map((one) => shown(one, Object.values(given.expand ?? {}))) }
    },
    'GET /v1/payment_intents/:id': (given, id) =>
      shown(intents.get(id) ?? missing(id), Object.values(given.expand ?? {})),
    'POST /v1/refunds'(given) {
      const intent = intents.get(given.payment_intent) ?? missing(given.payment_intent)
      const amount = Number(given.amount)
      if (intent.latest_charge.amount_refunded + amount > intent.amount)
        throw refusal(400, { type: 'invalid_request_error', message: 'Refund amount is greater than the charge' })
      server.refund(intent.id, amount)
      return refunds.at(-1) ?? {}
    },
    'GET /v1/refunds': (given) =>
      list(
        newest(refunds).filter((one) => within(one, given.created)),
        given,
      ),
    'GET /v1/disputes': (given) =>
      list(
        newest(disputes).filter(
          (one) => within(one, given.created) && (!given.payment_intent || one.payment_intent === given.payment_intent),
        ),
        given,
      ),
    'POST /v1/billing_portal/sessions': (given) => ({
      object: 'billing_portal.session',
      id: newId('bps'),
      url: `${server.url}/portal?customer=${given.customer}`,
    }),
    'POST /v1/tax/calculations'(given) {
      const [line] = Object.values<Obj>(given.line_items ?? {})
      const { amount, tax } = taxOn(Number(line?.amount), line?.tax_behavior)
      const isAdded = line?.tax_behavior === 'exclusive'
      return {
        object: 'tax.calculation',
        id: newId('taxcalc'),
        amount_total: amount,
        tax_amount_exclusive: isAdded ? tax : 0,
        tax_amount_inclusive: isAdded ? 0 : tax,
      }
    },
  }

  function missing(id: string): never {
    throw refusal(404, { type: 'invalid_request_error', code: 'resource_missing', message: `No such object: ${id}` })
  }

  async function api(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, search } = new URL(request.url ?? '/', server.url)
    const sent = await text(request)
    const given = readForm(request.method === 'GET' ? search.slice(1) : sent)
    const parts = pathname.split('/')
    const at = parts.findIndex((part) => /^[a-z]+_\w{10,}$/.test(part))
    const id = at < 0 ? '' : (parts[at] ?? '')
    const name = `${request.method} ${at < 0 ? pathname : parts.with(at, ':id').join('/')}`
    server.asked.push(name)
    const key = request.headers['idempotency-key'] as string | undefined
    const known = key === undefined ? undefined : answered.get(key)
    let answer: { status: number; body: Obj } | undefined = known
    // As the real one: a key stands for one request.
    if (known && known.asked !== sent)
      answer = refusal(400, {
        type: 'idempotency_error',
        message: 'Keys for idempotent requests can only be used with the same parameters',
      })
    if (!answer) {
      try {
        const route = ROUTES[name]
        if (request.headers.authorization !== `Bearer ${STRIPE_KEY}`)
          throw refusal(401, { type: 'invalid_request_error', message: 'Invalid API Key' })
        answer = { status: 200, body: route ? route(given, id) : missing(name) }
      } catch (error) {
        answer = error as { status: number; body: Obj } // a refusal, or a fault of this server that the test shows
        if (!answer.status) throw error
      }
      if (key !== undefined) answered.set(key, { ...answer, asked: sent })
    }
    await server.before?.(name)
    response.writeHead(answer.status, { 'content-type': 'application/json', 'request-id': newId('req') })
    response.end(JSON.stringify(answer.body, (field, value) => (field === 'asked' ? undefined : value)))
  }

  /** The hosted page: a click on Pay pays, tells the gateway, and leads back. */
  async function page(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = (request.url ?? '').split('/')[2] ?? ''
    const session = sessions.get(id)
    if (!session) return void response.writeHead(404).end()
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/html' })
      const what = session.mode === 'setup' ? 'Save card' : `Pay ${session.amount_total} ${session.currency}`
      response.end(
        `<!doctype html><title>Checkout</title><main><h1>Simulated Stripe</h1><form method="post"><button>${what}</button></form></main>`,
      )
      return
    }
    if (session.mode === 'setup') cardOf(session.customer)
    const object = session.mode === 'setup' ? session : server.pay(id)
    const type = session.mode === 'setup' ? 'checkout.session.completed' : 'payment_intent.succeeded'
    if (server.webhook) await sendStripe(server.webhook.url, server.event(type, object))
    response.writeHead(303, { location: session.asked.success_url }).end()
  }

  return server
}

export type StripeEvent = { readonly body: string; readonly signature: string }

/** As Stripe tells an event. */
export async function sendStripe(url: string, { body, signature }: StripeEvent): Promise<number> {
  const headers = { 'content-type': 'application/json', 'stripe-signature': signature }
  const answer = await fetch(url, { method: 'POST', headers, body })
  await answer.arrayBuffer()
  return answer.status
}

function refusal(status: number, error: Obj): { status: number; body: Obj } {
  return { status, body: { error } }
}

/** `a[b][0]=c` as Stripe reads it. */
function readForm(text: string): Obj {
  const root: Obj = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.replaceAll(']', '').split('[')
    const last = path.pop() ?? ''
    let at = root
    for (const part of path) at = at[part] ??= {}
    at[last] = value
  }
  return root
}
