// One attempt at one delivery: a signed webhook, a message for Slack and what reads the same JSON, or a mail; and what may be
// shown of it. Whoever receives it sees the same id and the same body in every attempt.
import { Fault } from '../kernel/fault.ts'
import { redact, withoutCredentials, withoutFiles } from '../kernel/redact.ts'
import { type Secrets, seal, unseal } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import { Refusal } from '../upstream/address.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import type { DeliveryKind } from './delivery-views.ts'
import type { Mailer } from './mailer.ts'
import { signedHeaders } from './webhook.ts'

export interface Message {
  /** The same for every attempt, so that a receiver can tell a repetition. */
  readonly id: string
  /** Empty: the gateway's own. */
  readonly account: string
  readonly kind: DeliveryKind
  readonly event: string
  /** The job or the alert that it is about. */
  readonly subject: string
  readonly to: string
  /** JSON, or the text of a mail. */
  readonly body: string
  /** Of a mail. */
  readonly title?: string
}

/** What became of an attempt. */
export interface Outcome {
  readonly delivered: boolean
  /** The receiver's own word that it wants no more, or there is nothing that could be sent. */
  readonly final?: boolean
  readonly statusCode: number | null
  readonly error: string | null
  readonly response: string | null
  /** The next attempt has no chance before. */
  readonly notBeforeMs?: number
}

export interface SendDeps {
  readonly secrets: Secrets
  readonly guard: Pick<GuardedFetch, 'post'>
  readonly mailer: Mailer | undefined
  readonly world: World
}

type Sealed = Pick<Message, 'to' | 'body' | 'title'>

const placeOf = (id: string) => `delivery:${id}`

export function sealMessage({ id, to, body, title }: Message, { secrets, world }: SendDeps): Buffer {
  const text = JSON.stringify({ to, body, ...(title === undefined ? {} : { title }) })
  return seal(secrets.key('delivery'), placeOf(id), text, world)
}

/** Undefined when it was not kept, or the secret is another. */
export function unsealMessage(id: string, sealed: Buffer | null, secrets: Secrets): Sealed | undefined {
  const text = sealed === null ? undefined : unseal(secrets.key('delivery'), placeOf(id), sealed)
  // It is what `sealMessage` wrote, or would not open.
  return text === undefined ? undefined : (JSON.parse(text) as Sealed)
}

/** To whom, without what would let somebody else tell them: of an address on the web its host. */
export function shownTarget({ kind, to }: Pick<Message, 'kind' | 'to'>): string {
  return kind === 'email' ? to : (URL.parse(to)?.host ?? '')
}

const RESPONSE_CHARS_MAX = 1_024
const ERROR_CHARS_MAX = 300
const BODY_CHARS_MAX = 20_000
/** The user, and what follows the path: either may be a token. */
const ADDRESS_SECRETS = /(https?:\/\/)(?:[^\s"'\\/?#@]{1,500}@)?([^\s"'\\?#]{1,4000})(?:[?#][^\s"'\\]*)?/g

/** What somebody may read of what is sent. */
export function shownBody({ to, body }: Sealed): string {
  const clean = withoutCredentials(withoutFiles(redact(body, [to], '[address]'))).replaceAll(
    ADDRESS_SECRETS,
    (all, scheme: string, rest: string) => (all === scheme + rest ? all : `${scheme}${rest}?…`),
  )
  return clean.length > BODY_CHARS_MAX ? `${clean.slice(0, BODY_CHARS_MAX).toWellFormed()}…` : clean
}

/** A stranger's words, so that they can be stored and shown: no control characters, and not many. */
function cleaned(text: string, charsMax: number): string {
  return withoutCredentials(text.replaceAll(/[\p{Cc}\p{Cf}\ufffd]+/gu, ' '))
    .slice(0, charsMax)
    .toWellFormed()
    .trim()
}

/** Never throws, unless `signal` fires: its reason then. */
export async function attemptDelivery(
  message: Omit<Message, 'to' | 'body' | 'title' | 'event' | 'subject'> & { readonly sealed: Buffer | null },
  deps: SendDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const nothing = { statusCode: null, response: null }
  const content = unsealMessage(message.id, message.sealed, deps.secrets)
  if (!content)
    return { ...nothing, delivered: false, final: true, error: 'What was to be sent can no longer be read.' }
  try {
    const { status, excerpt } = await send({ ...message, ...content }, deps, signal)
    const delivered = status === null || (status >= 200 && status < 300)
    return {
      delivered,
      final: status === 410,
      statusCode: status,
      error: delivered ? null : `The receiver answered with status ${status}.`,
      response: excerpt === '' ? null : cleaned(redact(excerpt, [content.to], '[address]'), RESPONSE_CHARS_MAX),
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const statusCode = mailStatusOf(error)
    const waitSeconds = error instanceof Fault ? (error.details.retryAfterSeconds ?? 0) : 0
    return {
      ...{ ...nothing, statusCode, delivered: false, error: cleaned(whyOf(error), ERROR_CHARS_MAX) },
      notBeforeMs: waitSeconds * 1000,
    }
  }
}

type Sent = Omit<Message, 'event' | 'subject'>

async function send(message: Sent, deps: SendDeps, signal: AbortSignal) {
  const { kind, id, account, to, body } = message
  if (kind === 'email') {
    if (!deps.mailer) throw new Fault('conflict', { message: 'No mail server is set up.' })
    const mail = deps.mailer.send({ account, id, to, subject: message.title ?? '', text: body })
    await unlessAborted(mail, signal)
    return { status: null, excerpt: '' }
  }
  const headers = kind === 'slack' ? { 'content-type': 'application/json' } : signedHeaders(deps, message)
  return deps.guard.post(to, body, headers, { account, signal })
}

/** The library of mails knows no signal: what it still does then has no effect here. */
function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
    if (signal.aborted) stop()
  })
}

function mailStatusOf(error: unknown): number | null {
  const code = error instanceof Error && 'responseCode' in error ? Number(error.responseCode) : Number.NaN
  return Number.isInteger(code) && code > 0 ? code : null
}

/** For whoever has the account: nothing of our own network, which a receiver's address could be made to ask about. */
function whyOf(error: unknown): string {
  if (!(error instanceof Fault)) {
    const code = codeOf(error)
    return `The mail server did not take it${code === undefined ? '' : ` (${code})`}.`
  }
  if (error.kind !== 'upstream_failed') return error.message
  if (error.cause instanceof Refusal) return 'The address could not be used. It must be a public http or https address.'
  const { why, code = codeOf(error.cause) } = error.details.internal ?? {}
  if (why === 'upstream_timeout') return 'The receiver did not answer in time.'
  return `The connection to the receiver failed${code === undefined ? '' : ` (${code})`}.`
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined)
