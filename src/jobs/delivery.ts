// One attempt at one delivery: a signed webhook, a message to Slack or a service that reads the same JSON, or a mail.
// Also what may be shown of it. The receiver sees the same id and the same body in every attempt.

import type { Branding } from '../identity/branding/branding.ts'
import { Fault } from '../kernel/fault.ts'
import { redact, withoutCredentials, withoutFiles } from '../kernel/redact.ts'
import { type Secrets, seal, unseal } from '../kernel/secret.ts'
import { unlessAborted } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { Refusal } from '../upstream/address.ts'
import { createMinuteBudget } from '../upstream/budget.ts'
import { type GuardedFetch, spend } from '../upstream/guard.ts'
import type { DeliveryKind } from './views.ts'
import { signedHeaders } from './webhook.ts'

export interface Message {
  /** The same for every attempt, so that a receiver can recognise a duplicate. */
  readonly id: string
  /** Empty: a message of the gateway itself. */
  readonly account: string
  readonly kind: DeliveryKind
  readonly event: string
  /** The id of the job or the alert. */
  readonly subject: string
  readonly to: string
  /** JSON, or the text of a mail. */
  readonly body: string
  /** The subject line of a mail. */
  readonly title?: string
  /** A mail's body once more, for programs that show HTML. */
  readonly html?: string
  /** A mail's address for those who want no more of them. */
  readonly unsubscribe?: string | undefined
}

/** The result of an attempt. */
export interface Outcome {
  readonly delivered: boolean
  /** No retry: the receiver answered 410, or the message can no longer be read. */
  readonly final?: boolean
  readonly statusCode: number | null
  readonly error: string | null
  readonly response: string | null
  /** An earlier retry would be refused again. */
  readonly notBeforeMs?: number
}

export interface SendDeps {
  readonly secrets: Secrets
  readonly guard: Pick<GuardedFetch, 'post'>
  readonly mailer: Mailer | undefined
  readonly world: World
}

type Sealed = Pick<Message, 'to' | 'body' | 'title' | 'html' | 'unsubscribe'>

const placeOf = (id: string) => `delivery:${id}`

export function sealMessage(message: Message, { secrets, world }: SendDeps): Buffer {
  const { id, to, body, title, html, unsubscribe } = message
  const text = JSON.stringify({ to, body, title, html, unsubscribe })
  return seal(secrets.key('delivery'), placeOf(id), text, world)
}

/** Undefined when the message was not stored, or was sealed with another secret. */
export function unsealMessage(id: string, sealed: Buffer | null, secrets: Secrets): Sealed | undefined {
  const text = sealed === null ? undefined : unseal(secrets.key('delivery'), placeOf(id), sealed)
  // Only text that `sealMessage` wrote can be unsealed.
  return text === undefined ? undefined : (JSON.parse(text) as Sealed)
}

/**
 * The receiver without its secret: of a URL only the host, because the path of a webhook can be enough to post to it.
 */
export function shownTarget({ kind, to }: Pick<Message, 'kind' | 'to'>): string {
  return kind === 'email' ? to : (URL.parse(to)?.host ?? '')
}

const RESPONSE_CHARS_MAX = 1_024
const ERROR_CHARS_MAX = 300
const BODY_CHARS_MAX = 20_000
/** The user part, and the query and fragment: each may be a token. */
const ADDRESS_SECRETS = /(https?:\/\/)(?:[^\s"'\\/?#@]{1,500}@)?([^\s"'\\?#]{1,4000})(?:[?#][^\s"'\\]*)?/g

/** The body as the API shows it: without credentials, file contents and the receiver's address. */
export function shownBody({ to, body }: Sealed): string {
  const clean = withoutCredentials(withoutFiles(redact(body, [to], '[address]'))).replaceAll(
    ADDRESS_SECRETS,
    (all, scheme: string, rest: string) => (all === scheme + rest ? all : `${scheme}${rest}?…`),
  )
  return clean.length > BODY_CHARS_MAX ? `${clean.slice(0, BODY_CHARS_MAX).toWellFormed()}…` : clean
}

/** Makes a receiver's text safe to store and show: no control characters, no credentials, limited length. */
function cleaned(text: string, charsMax: number): string {
  return withoutCredentials(text.replaceAll(/[\p{Cc}\p{Cf}\ufffd]+/gu, ' '))
    .slice(0, charsMax)
    .toWellFormed()
    .trim()
}

/** Throws only when `signal` fires, with its reason. */
export async function attemptDelivery(
  message: Omit<Message, keyof Sealed | 'event' | 'subject'> & { readonly sealed: Buffer | null },
  deps: SendDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const nothing = { statusCode: null, response: null }
  const content = unsealMessage(message.id, message.sealed, deps.secrets)
  if (!content) return { ...nothing, delivered: false, final: true, error: 'The message can no longer be read.' }
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
      ...nothing,
      statusCode,
      delivered: false,
      error: cleaned(whyOf(error), ERROR_CHARS_MAX),
      notBeforeMs: waitSeconds * 1000,
    }
  }
}

type Sent = Omit<Message, 'event' | 'subject'>

async function send(message: Sent, deps: SendDeps, signal: AbortSignal) {
  const { kind, id, account, to, body } = message
  if (kind === 'email') {
    if (!deps.mailer) throw new Fault('conflict', { message: 'No mail server is set up.' })
    const { title = '', html, unsubscribe } = message
    const mail = deps.mailer.send({ account, id, to, subject: title, text: body, html, unsubscribe })
    // The mail library takes no signal.
    await unlessAborted(mail, signal)
    return { status: null, excerpt: '' }
  }
  const headers = kind === 'slack' ? { 'content-type': 'application/json' } : signedHeaders(deps, message)
  return deps.guard.post(to, body, headers, { account, signal })
}

function mailStatusOf(error: unknown): number | null {
  const code = error instanceof Error && 'responseCode' in error ? Number(error.responseCode) : Number.NaN
  return Number.isInteger(code) && code > 0 ? code : null
}

/**
 * Shown to the account's owner, so it says nothing about our own network: a receiver's address could be chosen to probe
 * it.
 */
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

// Sends the gateway's mails over SMTP.

interface OutgoingMail {
  readonly account: string
  readonly id: string
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string | undefined
  readonly unsubscribe: string | undefined
}

export interface Mailer {
  /**
   * Sends for an account, or for the gateway if `account` is empty. Rejects with rate_limited when the account exceeds
   * its limit.
   */
  send(mail: OutgoingMail): Promise<void>
}

const MAIL_MS = 15_000
/** The mail server is the operator's: the limit for each account is low. */
const MAILS_PER_MINUTE = 5

/**
 * Opens a connection for each mail, since mails are few. The library is imported only here: it costs 65 ms and 12 MB,
 * and most setups send no mail.
 */
export function createMailer(url: string, from: string, world: World, branding: Pick<Branding, 'get'>): Mailer {
  const wait = { connectionTimeout: MAIL_MS, greetingTimeout: MAIL_MS, socketTimeout: MAIL_MS }
  const transport = import('nodemailer').then(({ createTransport }) => createTransport({ url, ...wait }))
  const budget = createMinuteBudget(world, MAILS_PER_MINUTE)
  // A fixed message id lets mailboxes drop duplicates.
  const domain = /@([\w.-]+)/.exec(from)?.[1] ?? 'tollgate'
  return {
    async send({ account, id, to, subject, text, html, unsubscribe }) {
      if (account !== '') spend(budget, account, 1, (max) => `${max} mails sent`)
      const messageId = `<${id}@${domain}>`
      // As an object, an address is one mailbox, whatever characters it has.
      await (await transport).sendMail({
        from: branding.get().sender ?? from,
        to: { name: '', address: to },
        subject,
        text,
        messageId,
        ...(html === undefined ? {} : { html }),
        ...(unsubscribe === undefined ? {} : { headers: unsubscribeHeaders(unsubscribe) }),
        disableFileAccess: true,
        disableUrlAccess: true,
      })
    },
  }
}

/** RFC 8058: mail programs send a POST there when the reader says so, without opening a page. */
function unsubscribeHeaders(url: string): Record<string, string> {
  return { 'List-Unsubscribe': `<${url}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }
}
