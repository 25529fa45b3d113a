// Alerts. Once a minute one process evaluates all rules. A condition that has become true, or worse, since the last
// evaluation is written once, with a delivery for each receiver; deliveries.ts sends them. A condition that has cleared
// may fire again.

import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import type { Deliveries } from '../../jobs/deliveries.ts'
import { Fault } from '../../kernel/fault.ts'
import { NEVER } from '../../kernel/timers.ts'
import { asPage, type Paging } from '../../kernel/view.ts'
import { newId } from '../../kernel/world.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import { alertMail, alertMessage, type MailOf } from './alert-message.ts'
import { createReceivers } from './receivers.ts'
import { type AlertFact, LOWER, type OwnConditions, readConditions } from './rules.ts'
import {
  type AlertPage,
  type AlertSettings,
  type AlertSettingsInput,
  type AlertView,
  type Receiver,
  UNREAD_MAX,
} from './views.ts'

export interface AlertsOptions
  extends Pick<CoreParts, 'secrets' | 'world' | 'log' | 'database' | 'publicUrl'>,
    OwnConditions {
  readonly guard: Pick<GuardedFetch, 'check'>
  readonly deliveries: Pick<
    Deliveries,
    'add' | 'sendUnstored' | 'wake' | 'about' | 'withdrawAlerts' | 'forgetAlertMails'
  >
  readonly branding: Pick<Branding, 'get'>
  /** Undefined: no mail server is configured. */
  readonly mails: unknown
}

export const LOOK_EVERY_MS = 60_000

export type Alerts = ReturnType<typeof createAlerts>

export function createAlerts(options: AlertsOptions) {
  const { database, deliveries, world } = options
  const store = createReceivers(options)

  /** Fires each condition that has become worse, once, even if several processes evaluate at the same time. */
  async function fire(tx: Queryable, facts: readonly AlertFact[], receivers: (scope: string) => readonly Receiver[]) {
    const told = JSON.stringify(
      facts.map(({ scope, rule, subject, level, rank }, place) => ({ scope, rule, subject, level, rank, place })),
    )
    await tx.query(LOWER, [told])
    const risen = await tx.query<{ place: number }>(RAISE, [told])
    for (const { place } of risen) {
      const one = facts[place]
      if (one) await write(tx, one, receivers(one.scope))
    }
    return risen.length
  }

  /** Evaluates the rules now. Returns the number of alerts that fired. */
  async function look(): Promise<number> {
    const { rulesOf, receiversOf, special } = await store.all()
    const facts = await readConditions({ on: database, own: options, rulesOf, special })
    const count = await database.transaction(async (tx) => {
      await tx.query(LOCK)
      return fire(tx, facts, receiversOf)
    })
    if (count > 0) deliveries.wake()
    return count
  }

  const mailOf: MailOf = (alert, to) =>
    alertMail(alert, options.branding.get(), options.publicUrl(), store.link({ scope: alert.scope, address: to }))

  async function write(tx: Queryable, one: AlertFact, receivers: readonly Receiver[]): Promise<void> {
    const id = newId(world)
    const { scope, rule, subject, level, title } = one
    const message = one.message.slice(0, 1000)
    const [row] = await tx.query<{ at: Date }>(WRITE, [id, scope, rule, subject, level, title, message])
    const alert = { id, scope, rule, subject, level, title, message, at: row?.at ?? new Date(world.nowMs()) }
    await deliveries.add(
      tx,
      receivers.map((receiver, index) => alertMessage(alert, receiver, index, mailOf)),
    )
  }

  /**
   * One process in the time evaluates the database; each process evaluates its own circuit breakers. What probes found
   * all know.
   */
  async function tick(): Promise<void> {
    const [due] = await database.query(CLAIM, [LOOK_EVERY_MS / 1000])
    const isOwn =
      options.failingVendors().some(({ isRejected }) => !isRejected) ||
      options.overruns().length > 0 ||
      options.setAside().length > 0
    if (due || isOwn) await look()
    if (due) await database.query(PRUNE)
  }

  /**
   * Alerts of an account; with '' those of the gateway; with null all. Newest first. `unread` counts those of the
   * scope, with null those of the gateway.
   */
  async function list(scope: string | null, { cursor, limit }: Paging): Promise<AlertPage> {
    const [rows, [unread]] = await Promise.all([
      database.query<AlertRow>(LIST, [scope, cursor ?? '~', limit + 1]),
      database.query<{ count: bigint }>(UNREAD, [scope ?? '', UNREAD_MAX]),
    ])
    const shown = rows.slice(0, limit)
    const told = await deliveries.about(shown.map(({ id }) => id))
    const page = asPage(rows, limit, (row) => view(row, told.get(row.id) ?? []))
    return { ...page, unread: Number(unread?.count ?? 0n) }
  }

  return {
    list,
    /** Marks all alerts up to this one as read. */
    read: async (scope: string, until: string): Promise<void> => void (await database.query(READ, [scope, until])),
    settings: store.of,
    /** A mailbox of a stranger is asked once by mail; rejects with rate_limited when too many were asked. */
    async change(scope: string, settings: AlertSettingsInput): Promise<AlertSettings> {
      for (const { kind, to } of settings.receivers) {
        if (kind === 'email' && !options.mails)
          throw new Fault('conflict', {
            message: 'No mail server is set up: TOLLGATE_SMTP_URL and TOLLGATE_MAIL_FROM.',
          })
        if (kind === 'email' && !/^[^\s@,;<>]{1,64}@[^\s@,;<>]{1,190}$/.test(to))
          throw new Fault('request_invalid', { message: `receivers: "${to}" is not the address of a mailbox.` })
        if (kind !== 'email') await options.guard.check(to, { signal: NEVER })
      }
      await store.put(scope, settings)
      const known = new Set(settings.receivers.map(({ kind, to }) => `${kind} ${to}`))
      await deliveries.withdrawAlerts(
        scope,
        'This receiver is no longer in the settings.',
        ({ kind, to }) => !known.has(`${kind} ${to}`),
      )
      deliveries.wake()
      return store.of(scope)
    },
    /** The mailbox to which a mail with this token went; undefined: the token is not one of ours. */
    mailbox: store.mailbox,
    /** Its owner wants alerts, or no longer. */
    answer: store.answer,
    /** Sends a test alert to all receivers of a scope; at most once a minute, else rejects with rate_limited. */
    async test(scope: string): Promise<AlertView> {
      const receivers = (await store.of(scope)).receivers.filter(({ status }) => status === 'active')
      const one: AlertFact = {
        scope,
        rule: 'test',
        subject: scope,
        level: 'on',
        rank: 1,
        title: 'A test',
        message: 'Somebody sent this alert to check its receivers. Nothing is wrong.',
      }
      await database.transaction(async (tx) => {
        await tx.query(LOCK_TESTS, [scope])
        const [last] = await tx.query<{ wait: number }>(LAST_TEST, [scope])
        if (last) throw tooSoon(last.wait)
        await write(tx, one, receivers)
      })
      deliveries.wake()
      const { items } = await list(scope, { limit: 1 })
      if (!items[0]) throw new Fault('internal')
      return items[0]
    },
    /** Sends it to the receivers of the gateway's alerts without the database: to those that were read last. */
    async tellUnstored(one: AlertFact): Promise<void> {
      const { rulesOf, receiversOf } = store.last()
      if (!rulesOf('').gateway) return
      const at = new Date(world.nowMs())
      // Each process tells; the receiver sees one id in an hour.
      const alert = { ...one, id: `${one.rule}-${one.subject}-${at.toISOString().slice(0, 13)}`, at }
      await deliveries.sendUnstored(receiversOf('').map((to, index) => alertMessage(alert, to, index, mailOf)))
    },
    look,
    tick,
  }
}

function tooSoon(waitSeconds: number): Fault {
  return new Fault('rate_limited', {
    message: `A test alert can be sent once a minute. Try again in ${waitSeconds} s.`,
    retryAfterSeconds: waitSeconds,
  })
}

interface AlertRow {
  id: string
  at: Date
  scope: string
  rule: AlertView['rule']
  subject: string
  level: string
  title: string
  message: string
  read: boolean
}

function view({ scope, at, ...row }: AlertRow, deliveries: AlertView['deliveries']): AlertView {
  return { ...row, at: at.toISOString(), account: scope === '' ? null : scope, deliveries }
}

const LOCK = sql('alert_lock')`select pg_advisory_xact_lock(7046029257)`
const CLAIM = sql('alert_claim')`
  insert into setting as s (name, value) values ('alerts looked at', extract(epoch from now())::text)
   on conflict (name) do update set value = excluded.value
   where s.value::float8 < extract(epoch from now()) - $1::float8 * 0.9 or s.value::float8 > extract(epoch from now()) + 60 returning name`
const RAISE = sql('alert_raise')`with now_true as (
     select * from jsonb_to_recordset($1::jsonb) as x(scope text, rule text, subject text, level text, rank int, place int)
   ), risen as (
     insert into alert_state as s (scope, rule, subject, level, rank) select scope, rule, subject, level, rank from now_true
     on conflict (scope, rule, subject) do update set level = excluded.level, rank = excluded.rank, at = now() where s.rank < excluded.rank
     returning s.scope, s.rule, s.subject
   )
   select n.place from risen r join now_true n on n.scope = r.scope and n.rule = r.rule and n.subject = r.subject order by n.place`
const LOCK_TESTS = sql('alert_lock_tests')`select pg_advisory_xact_lock(70460, hashtext($1))`
const LAST_TEST = sql('alert_last_test')`
  select greatest(1, ceil(extract(epoch from at + interval '1 minute' - clock_timestamp())))::int as wait from alert
   where scope = $1 and rule = 'test' and at > clock_timestamp() - interval '1 minute' limit 1`
const WRITE = sql('alert_write')`
  insert into alert (id, scope, rule, subject, level, title, message) values ($1, $2, $3, $4, $5, $6, $7) returning at`
const LIST = sql('alert_list')`select id, at, scope, rule, subject, level, title, message, read_at is not null as read
   from alert where ($1::text is null or scope = $1) and id < $2 order by id desc limit $3`
const UNREAD = sql('alert_unread')`
  select count(*) from (select from alert where scope = $1 and read_at is null limit $2) x`
const READ = sql('alert_read')`update alert set read_at = now() where scope = $1 and id <= $2 and read_at is null`
const PRUNE = sql('alert_forget')`
  delete from alert where ctid = any(array(select ctid from alert where at < now() - interval '90 days' limit 1000))`
