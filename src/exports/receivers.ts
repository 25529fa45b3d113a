// Receivers of events over HTTP: a webhook, OpenMeter, Lago and Stripe. Each takes rows in their order and says how many of them, from the first on, it has accepted.
import { signedHeaders } from '../jobs/webhook.ts'
import { Fault } from '../kernel/fault.ts'
import { withoutCredentials } from '../kernel/redact.ts'
import type { Secrets } from '../kernel/secret.ts'
import { NEVER } from '../kernel/timers.ts'
import { newId, type World } from '../kernel/world.ts'
import { bearer, type HttpCall } from '../upstream/call.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { factsOf, quantitiesOf, requestIdOf, type UsageRow } from './usage-rows.ts'
import type { ExportSettings } from './views.ts'

/** Why something was not accepted. */
export interface Problem {
  /** The receiver rejects it: sending it again would change nothing. */
  readonly final: boolean
  readonly status: number | null
  readonly message: string
  /** The receiver asked for this pause. */
  readonly afterMs?: number
}

interface Sent {
  /** Rows from the first on. */
  readonly accepted: number
  readonly problem?: Problem
}

export interface Receiver {
  /** Rows that one call of `send` takes at most. */
  readonly rowsMax: number
  /** It takes rows of whole hours or days that are over. */
  readonly everyMs?: number
  /** Of an account that the receiver does not know: its rows are passed over. */
  readonly knows?: (account: string) => boolean
  send(rows: readonly UsageRow[]): Promise<Sent>
  /** Whether it would take usage, by something that changes no meter. */
  test(): Promise<Problem | undefined>
}

export interface ReceiverDeps {
  /** Its addresses come over the operator API, so they are checked. */
  readonly upstream: Pick<GuardedFetch, 'send'>
  readonly world: World
  readonly secrets: Secrets
  /** The destination's own id. */
  readonly id: string
  /** The value of its credential; empty where it needs none. */
  readonly secret: string
  /** By account. */
  readonly customers: ReadonlyMap<string, string>
}

const DEADLINES = { connectMs: 5_000, firstByteMs: 20_000, idleMs: 10_000, totalMs: 30_000 }
const ANSWER_BYTES_MAX = 262_144
const MESSAGE_CHARS_MAX = 300

interface Answer {
  readonly status: number
  readonly text: string
  readonly retryAfterMs?: number
}

/** An answer of whatever status, or why there is none. */
async function ask(upstream: ReceiverDeps['upstream'], call: HttpCall): Promise<Answer | Problem> {
  try {
    const reply = await upstream.send(call, { deadlines: DEADLINES, signal: NEVER })
    const text = String(await reply.read(ANSWER_BYTES_MAX))
    const seconds = Number(reply.headers['retry-after'] ?? Number.NaN)
    return { status: reply.status, text, ...(seconds > 0 && { retryAfterMs: Math.min(seconds, 3_600) * 1000 }) }
  } catch (error) {
    const timedOut = error instanceof Fault && error.kind === 'upstream_timeout'
    const message = timedOut ? 'The receiver did not answer in time.' : 'The connection to the receiver failed.'
    return { final: false, status: null, message }
  }
}

/** 4xx says that sending it again is useless, but for a timeout and a request to slow down. */
export function problemOf({ status, text, retryAfterMs }: Answer): Problem | undefined {
  if (status >= 200 && status < 300) return undefined
  const final = status >= 300 && status < 500 && status !== 408 && status !== 425 && status !== 429
  const said = withoutCredentials(text.replaceAll(/[\p{Cc}\p{Cf}\ufffd]+/gu, ' '))
    .slice(0, MESSAGE_CHARS_MAX)
    .toWellFormed()
    .trim()
  const message = `The receiver answered with status ${status}${said ? `: ${said}` : '.'}`
  return { final, status, message, ...(retryAfterMs !== undefined && { afterMs: retryAfterMs }) }
}

const isProblem = (answer: Answer | Problem): answer is Problem => 'final' in answer

async function accepted(upstream: ReceiverDeps['upstream'], call: HttpCall): Promise<Problem | undefined> {
  const answer = await ask(upstream, call)
  return isProblem(answer) ? answer : problemOf(answer)
}

/** CloudEvents 1.0. The request's id is the event's id, so a receiver recognises what it has. */
function cloudEvent(row: UsageRow, source: string, subject: string) {
  return {
    specversion: '1.0',
    type: 'tollgate.usage',
    source,
    id: requestIdOf(row),
    time: row.at.toISOString(),
    subject,
    datacontenttype: 'application/json',
    data: factsOf(row),
  }
}

const BATCH_TYPE = 'application/cloudevents-batch+json'
const EVENT_TYPE = 'application/cloudevents+json'

export function webhookReceiver(
  { url, source, batch }: ExportSettings<'webhook'>,
  { upstream, secrets, world, id, customers }: ReceiverDeps,
): Receiver {
  function post(events: readonly { readonly id: string }[]): Promise<Problem | undefined> {
    const [first] = events
    const body = JSON.stringify(batch === 1 ? first : events)
    // The gateway's own webhooks have the secret of the empty account.
    const message = { account: '', id: `msg_${id}_${first?.id}_${events.length}`, body }
    const headers = {
      ...signedHeaders({ secrets, world }, message),
      'content-type': batch === 1 ? EVENT_TYPE : BATCH_TYPE,
    }
    return accepted(upstream, { method: 'POST', url, headers, body })
  }
  return {
    rowsMax: batch,
    async send(rows) {
      const problem = await post(
        rows.map((row) => cloudEvent(row, source, customers.get(row.account_id) ?? row.account_id)),
      )
      return problem ? { accepted: 0, problem } : { accepted: rows.length }
    },
    // An event of another type, which is no usage.
    test: () =>
      post([
        {
          ...{ specversion: '1.0', type: 'tollgate.test', source, id: `test_${newId(world)}` },
          ...{ time: new Date(world.nowMs()).toISOString(), datacontenttype: 'application/json', data: {} },
        },
      ]),
  }
}

const OPENMETER_EVENTS = 100

export function openMeterReceiver(
  { url, source }: ExportSettings<'openmeter'>,
  { upstream, secret, customers }: ReceiverDeps,
): Receiver {
  const headers = { 'content-type': BATCH_TYPE, ...(secret ? { authorization: bearer(secret) } : {}) }
  return {
    rowsMax: OPENMETER_EVENTS,
    async send(rows) {
      const events = rows.map((row) => cloudEvent(row, source, customers.get(row.account_id) ?? row.account_id))
      const problem = await accepted(upstream, {
        ...{ method: 'POST', url: `${base(url)}/api/v1/events`, headers },
        body: JSON.stringify(events),
      })
      return problem ? { accepted: 0, problem } : { accepted: rows.length }
    },
    test: () => accepted(upstream, { method: 'GET', url: `${base(url)}/api/v1/meters`, headers }),
  }
}

const base = (url: string) => url.replace(/(?<!\/)\/+$/, '')

/** A property by which Lago takes an event's credits from one wallet. Labels are the caller's, and the wallet is not. */
const LAGO_WALLET = 'target_wallet_code'
/** Lago takes no more in a request. */
const LAGO_EVENTS = 100

export function lagoReceiver({ url, code }: ExportSettings<'lago'>, deps: ReceiverDeps): Receiver {
  const { upstream, secret, customers } = deps
  const headers = { 'content-type': 'application/json', authorization: bearer(secret) }

  function eventOf(row: UsageRow) {
    const { units, labels, ...facts } = factsOf(row)
    return {
      transaction_id: facts.requestId,
      external_subscription_id: customers.get(row.account_id) ?? row.account_id,
      code,
      timestamp: (row.at.getTime() / 1000).toFixed(3),
      // A label never takes the place of a fact, nor chooses the wallet that pays.
      properties: { ...labels, ...facts, ...units, [LAGO_WALLET]: undefined },
    }
  }

  return {
    rowsMax: LAGO_EVENTS,
    async send(rows) {
      let events = rows.map(eventOf)
      for (;;) {
        const body = JSON.stringify({ events })
        const answer = await ask(upstream, { method: 'POST', url: `${base(url)}/api/v1/events/batch`, headers, body })
        if (isProblem(answer)) return { accepted: 0, problem: answer }
        const problem = problemOf(answer)
        if (!problem) return { accepted: rows.length }
        // A batch is taken whole or not at all. Events that Lago has already are named; the others are sent without them.
        const known = answer.status === 422 ? knownByLago(answer.text) : undefined
        if (!known || known.size === 0) return { accepted: 0, problem }
        events = events.filter((_, at) => !known.has(at))
        if (events.length === 0) return { accepted: rows.length }
      }
    },
    test: () =>
      accepted(upstream, {
        ...{ method: 'GET', url: `${base(url)}/api/v1/billable_metrics/${encodeURIComponent(code)}`, headers },
      }),
  }
}

/** The places of events that were sent before; undefined when something else is wrong as well. */
function knownByLago(text: string): ReadonlySet<number> | undefined {
  try {
    const { error_details: details } = JSON.parse(text) as { error_details?: Record<string, unknown> } // checked below
    const places = new Set<number>()
    for (const [place, about] of Object.entries(details ?? {})) {
      if (JSON.stringify(about) !== '{"transaction_id":["value_already_exist"]}') return undefined
      places.add(Number(place))
    }
    return places
  } catch {
    return undefined
  }
}

/** A meter event is a request of its own at Stripe. */
const STRIPE_EVENTS = 100
const STRIPE_AT_ONCE = 8
const STRIPE_METERS_MAX = 500

/** What Stripe's library throws for an answer that is no success. */
interface StripeError {
  readonly type?: string
  readonly code?: string
  readonly statusCode?: number
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
}

export async function stripeReceiver(settings: ExportSettings<'stripe'>, deps: ReceiverDeps): Promise<Receiver> {
  const { customers } = deps
  const { default: Stripe } = await import('stripe')
  const { protocol, hostname, port } = new URL(settings.url)
  const stripe = new Stripe(deps.secret, {
    httpClient: stripeClient(deps.upstream),
    // Exports have their own retries, which survive the process.
    maxNetworkRetries: 0,
    telemetry: false,
    host: hostname,
    protocol: protocol === 'http:' ? 'http' : 'https',
    ...(port ? { port } : {}),
  })

  async function sendOne(row: UsageRow): Promise<Problem | undefined> {
    const value = meterValue(row, settings.value)
    // What adds nothing to a meter needs no request.
    if (value === 0n) return undefined
    try {
      await stripe.billing.meterEvents.create({
        event_name: settings.event,
        identifier: requestIdOf(row),
        timestamp: Math.floor(row.at.getTime() / 1000),
        payload: { stripe_customer_id: customers.get(row.account_id) ?? '', value: String(value) },
      })
      return undefined
    } catch (error) {
      const { code, message = '' } = error as StripeError // the library's own
      return isDuplicate(code, message) ? undefined : stripeProblem(error as StripeError)
    }
  }

  async function test(): Promise<Problem | undefined> {
    try {
      let seen = 0
      for await (const meter of stripe.billing.meters.list({ status: 'active', limit: 100 })) {
        if (meter.event_name === settings.event) return undefined
        if (++seen >= STRIPE_METERS_MAX) break
      }
      return { final: true, status: null, message: `Stripe has no active meter with the event "${settings.event}".` }
    } catch (error) {
      return stripeProblem(error as StripeError) // the library throws nothing else
    }
  }

  return {
    rowsMax: STRIPE_EVENTS,
    test,
    knows: (account) => customers.has(account),
    async send(rows) {
      let accepted = 0
      while (accepted < rows.length) {
        const group = rows.slice(accepted, accepted + STRIPE_AT_ONCE)
        const answers = await Promise.all(group.map(sendOne))
        const failed = answers.findIndex((problem) => problem !== undefined)
        const problem = answers[failed]
        if (problem) return { accepted: accepted + failed, problem }
        accepted += group.length
      }
      return { accepted }
    },
  }
}

function stripeProblem({ statusCode, message = '', headers = {} }: StripeError): Problem | undefined {
  if (statusCode === undefined) return { final: false, status: null, message: 'The connection to the receiver failed.' }
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return problemOf({ status: statusCode, text: message, ...(seconds > 0 && { retryAfterMs: seconds * 1000 }) })
}

/** Stripe has this event: it was accepted, and the answer got lost. */
function isDuplicate(code: string | undefined, message: string): boolean {
  return code === 'duplicate_meter_event' || /already exists with identifier/i.test(message)
}

function meterValue(row: UsageRow, value: ExportSettings<'stripe'>['value']): bigint {
  const { inputTokens, outputTokens } = quantitiesOf(row)
  switch (value) {
    case 'microcredits':
      return row.charged
    case 'tokens':
      return BigInt(inputTokens + outputTokens)
    case 'inputTokens':
      return BigInt(inputTokens)
    case 'outputTokens':
      return BigInt(outputTokens)
    case 'calls':
      return 1n
  }
}

/** The library's requests over the gateway's one HTTP client. */
function stripeClient(upstream: ReceiverDeps['upstream']) {
  return {
    getClientName: () => 'tollgate',
    // The library's own signature.
    async makeRequest(...[host, port, path, method, headers, body, protocol]: StripeRequest) {
      const isDefault = String(port) === (protocol === 'http' ? '80' : '443')
      const reply = await upstream.send(
        {
          method: method as HttpCall['method'], // the library's word for it
          url: `${protocol}://${host}${isDefault ? '' : `:${port}`}${path}`,
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
          ),
          ...(body ? { body } : {}),
        },
        { deadlines: DEADLINES, signal: NEVER },
      )
      const text = String(await reply.read(ANSWER_BYTES_MAX))
      return {
        getStatusCode: () => reply.status,
        getHeaders: () => ({ ...reply.headers }),
        getRawResponse: () => reply,
        toStream: () => text,
        toJSON: async (): Promise<unknown> => JSON.parse(text),
      }
    },
  }
}

type StripeRequest = [
  host: string,
  port: string,
  path: string,
  method: string,
  headers: object,
  body: string,
  protocol: string,
  timeout: number,
]
