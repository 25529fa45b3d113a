// Receivers of events over HTTP: a webhook, OpenMeter, Lago and Stripe. Each sends rows in order and returns how many
// of them, from the first on, were accepted.
import type { CoreParts } from '../../extension.ts'
import { signedHeaders } from '../../jobs/webhook.ts'
import { Fault } from '../../kernel/fault.ts'
import { withoutCredentials } from '../../kernel/redact.ts'
import { NEVER } from '../../kernel/timers.ts'
import { newId } from '../../kernel/world.ts'
import { bearer, type HttpCall } from '../../upstream/call.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import { factsOf, quantitiesOf, requestIdOf, type UsageRow } from './usage-rows.ts'
import type { ExportSettings } from './views.ts'

/** Why something was not accepted. */
export interface Problem {
  /** The receiver rejects it permanently, so a retry is useless. */
  readonly final: boolean
  readonly status: number | null
  readonly message: string
  /** The receiver asked for this pause. */
  readonly afterMs?: number
}

interface Sent {
  /** The number of accepted rows, from the first on. */
  readonly accepted: number
  readonly problem?: Problem
}

export interface Receiver {
  /** The maximum number of rows per call of `send`. */
  readonly rowsMax: number
  /** The receiver needs complete hours or days. */
  readonly everyMs?: number
  /** Whether the receiver knows this account; rows of unknown accounts are skipped. Absent: it knows all. */
  readonly knows?: (account: string) => boolean
  send(rows: readonly UsageRow[]): Promise<Sent>
  /** Tests the receiver by a request that changes no meter. */
  test(): Promise<Problem | undefined>
}

export interface ReceiverDeps extends Pick<CoreParts, 'world' | 'secrets'> {
  /** With the SSRF guard, because addresses come from the operator API. */
  readonly upstream: Pick<GuardedFetch, 'send'>
  /** The destination's own id. */
  readonly id: string
  /** The value of its credential; empty if it needs none. */
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

/** Returns an answer with any status, or the problem if there is no answer. */
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

/** 4xx is permanent, except for a timeout (408) and rate limits (429). So is a redirect, which is never followed. */
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

/** CloudEvents 1.0. The id of the call is the id of the event, so receivers can recognise duplicates. */
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
  function post(
    events: readonly { readonly id: string; readonly [field: string]: unknown }[],
  ): Promise<Problem | undefined> {
    const [first] = events
    const body = JSON.stringify(batch === 1 ? first : events)
    // Webhooks of the gateway itself are signed with the secret of the account with the empty id.
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
    // The test event has another type, so it does not count as usage.
    test: () =>
      post([
        {
          specversion: '1.0',
          type: 'tollgate.test',
          source,
          id: `test_${newId(world)}`,
          time: new Date(world.nowMs()).toISOString(),
          datacontenttype: 'application/json',
          data: {},
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
        method: 'POST',
        url: `${base(url)}/api/v1/events`,
        headers,
        body: JSON.stringify(events),
      })
      return problem ? { accepted: 0, problem } : { accepted: rows.length }
    },
    test: () => accepted(upstream, { method: 'GET', url: `${base(url)}/api/v1/meters`, headers }),
  }
}

const base = (url: string) => url.replace(/(?<!\/)\/+$/, '')

/**
 * The property by which Lago charges an event to a certain wallet. Labels come from callers, who must not choose the
 * wallet.
 */
const LAGO_WALLET = 'target_wallet_code'
/** Lago's maximum of events per request. */
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
      // A label must not overwrite a property of the call, or choose the wallet.
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
        // Lago accepts a batch completely or not at all. If its answer lists duplicates, the other events are sent
        // again without them.
        const known = answer.status === 422 ? knownByLago(answer.text) : undefined
        if (!known || known.size === 0) return { accepted: 0, problem }
        events = events.filter((_, at) => !known.has(at))
        if (events.length === 0) return { accepted: rows.length }
      }
    },
    test: () =>
      accepted(upstream, {
        method: 'GET',
        url: `${base(url)}/api/v1/billable_metrics/${encodeURIComponent(code)}`,
        headers,
      }),
  }
}

/** The positions of duplicate events; undefined if there are other errors too. */
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

/** Stripe needs a request for each meter event. */
const STRIPE_EVENTS = 100
const STRIPE_AT_ONCE = 8
const STRIPE_METERS_MAX = 500

/** The error that Stripe's library throws for an error status. */
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
    // No retries in the library: exports have their own, which survive a restart.
    maxNetworkRetries: 0,
    telemetry: false,
    host: hostname,
    protocol: protocol === 'http:' ? 'http' : 'https',
    ...(port ? { port } : {}),
  })

  async function sendOne(row: UsageRow): Promise<Problem | undefined> {
    const value = meterValue(row, settings.value)
    // A value of zero needs no request.
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

/** Stripe already has this event: it was accepted, but the answer was lost. */
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

/** Lets the library use the gateway's HTTP client. */
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
