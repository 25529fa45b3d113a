// One delivery of one alert: a signed webhook, a message for Slack and what reads the same JSON, or a mail.
import { type Database, statement } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { unseal } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import { spend } from '../upstream/guard.ts'
import { createMinuteBudget } from '../upstream/minute-budget.ts'
import { type AlertSettings, alertSettings, type Receiver } from './alert-views.ts'
import { type QueueItem, WEBHOOK_RETRIES } from './queue.ts'
import { signedHeaders, type WebhookDeps } from './webhook.ts'

export interface Mailer {
  /** In the name of an account, or with an empty one of the gateway. Rejects with rate_limited when the account has had its share. */
  send(mail: { account: string; to: string; subject: string; text: string }): Promise<void>
}

const MAIL_MS = 15_000
/** Nobody confirms that a mailbox is theirs, and the mail server is the operator's: few for each account. */
const MAILS_PER_MINUTE = 5
/** Slow receivers of one account must not keep those of others, and of the operator, waiting. */
const ACCOUNT_AT_ONCE_MAX = 3

/** Connects anew for each mail: there are few. The library takes a start 65 ms and 12 MB, and most have no mail server. */
export function createMailer(url: string, from: string, world: World): Mailer {
  const wait = { connectionTimeout: MAIL_MS, greetingTimeout: MAIL_MS, socketTimeout: MAIL_MS }
  const transport = import('nodemailer').then(({ createTransport }) => createTransport({ url, ...wait }))
  const budget = createMinuteBudget(world, MAILS_PER_MINUTE)
  return {
    async send({ account, to, subject, text }) {
      if (account !== '') spend(budget, account, 1, (max) => `${max} mails sent`)
      await (await transport).sendMail({ from, to, subject, text, disableFileAccess: true, disableUrlAccess: true })
    },
  }
}

interface DeliveryDeps extends Pick<WebhookDeps, 'secrets' | 'guard' | 'world' | 'log'> {
  readonly database: Database
  readonly mailer: Mailer | undefined
  /** How many deliveries of each scope run in this process. */
  readonly running: Map<string, number>
}

interface Row {
  id: string
  alert_id: string
  receiver: number
  scope: string
  rule: string
  subject: string
  level: string
  title: string
  message: string
  at: Date
  tries: number
  sealed: Buffer | null
}

/** `failed`: it is worth another try. `held`: it was not tried, since its account has enough under way. */
type Outcome = 'done' | 'failed' | 'held'

/** One try, after so many that the queue knows of. */
export async function deliver(
  { key: id, retries }: QueueItem,
  deps: DeliveryDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { database, running } = deps
  const [row] = await database.query<Row>(FIND, [id])
  if (!row) return 'done'
  const { scope, tries } = row
  const before = running.get(scope) ?? 0
  if (scope !== '' && before >= ACCOUNT_AT_ONCE_MAX) {
    await database.query(HELD, [id])
    return 'held'
  }
  running.set(scope, before + 1)
  try {
    return await attempt(row, Math.max(retries, tries) >= WEBHOOK_RETRIES, deps, signal)
  } finally {
    const left = (running.get(scope) ?? 1) - 1
    if (left > 0) running.set(scope, left)
    else running.delete(scope)
  }
}

async function attempt(row: Row, last: boolean, deps: DeliveryDeps, signal: AbortSignal): Promise<Outcome> {
  const { database, log } = deps
  const { id } = row
  const receiver = receiverOf(row, deps)
  if (!receiver) {
    await database.query(TRIED, [id, 'failed', 'This receiver is no longer in the settings.', null])
    return 'done'
  }
  try {
    await send(row, receiver, deps, signal)
    await database.query(TRIED, [id, 'delivered', null, shown(receiver)])
    return 'done'
  } catch (error) {
    if (signal.aborted) return 'failed'
    const why = whyOf(error)
    log.warn({ alert: row.alert_id, kind: receiver.kind, why, last }, 'alert was not accepted')
    await database.query(TRIED, [id, last ? 'failed' : 'waiting', why, shown(receiver)])
    return last ? 'done' : 'failed'
  }
}

function receiverOf({ scope, sealed, receiver }: Row, { secrets }: DeliveryDeps): Receiver | undefined {
  const text = sealed === null ? undefined : unseal(secrets.key('alert'), `alert_setting:${scope}`, sealed)
  const settings: AlertSettings | undefined = text === undefined ? undefined : alertSettings.parse(JSON.parse(text))
  return settings?.receivers[receiver]
}

async function send(row: Row, { kind, to }: Receiver, deps: DeliveryDeps, signal: AbortSignal): Promise<void> {
  const { scope, rule, subject, level, title, message, alert_id: alert } = row
  if (kind === 'email') {
    if (!deps.mailer) throw new Error('no mail server is set up')
    return deps.mailer.send({
      account: scope,
      to,
      subject: `[Tollgate] ${title}`,
      text: `${message}\n\n${rule} · ${subject} · ${row.at.toISOString()}\n`,
    })
  }
  const data = { id: alert, account: scope === '' ? null : scope, rule, subject, level, title, message }
  const body =
    kind === 'slack'
      ? JSON.stringify({ text: `*${title}*\n${message}` })
      : JSON.stringify({ type: `alert.${rule}`, timestamp: row.at.toISOString(), data })
  const headers =
    kind === 'slack'
      ? { 'content-type': 'application/json' }
      : signedHeaders(deps, { account: scope, id: `msg_${row.id}`, body })
  const { status } = await deps.guard.post(to, body, headers, { account: scope, signal })
  if (status < 200 || status >= 300) throw new Error(`HTTP ${status}`)
}

/** Who was told, without what would let somebody else tell them: of an address on the web its host. */
function shown({ kind, to }: Receiver): string {
  return kind === 'email' ? to : (URL.parse(to)?.host ?? '')
}

function whyOf(error: unknown): string {
  if (error instanceof Fault) {
    const words = Object.values(error.details.internal ?? {}).filter((value) => typeof value === 'string')
    return (words.join(' ') || error.kind).slice(0, 200)
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
  return (code ?? (error instanceof Error ? error.message : 'unknown')).slice(0, 200)
}

const FIND = statement(
  'alert_delivery_find',
  `select d.id, d.alert_id, d.receiver, a.scope, a.rule, a.subject, a.level, a.title, a.message, a.at, d.tries, s.sealed
   from alert_delivery d join alert a on a.id = d.alert_id left join alert_setting s on s.scope = a.scope
   where d.id = $1 and d.state = 'waiting'`,
)
// Its time says that somebody has it in hand, so that nobody queues it a second time.
const HELD = statement('alert_delivery_held', 'update alert_delivery set at = now() where id = $1')
const TRIED = statement(
  'alert_delivery_tried',
  'update alert_delivery set state = $2, tries = tries + 1, error = $3, shown = coalesce($4, shown), at = now() where id = $1',
)
