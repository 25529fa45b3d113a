// Alerts. Once a minute one process evaluates all rules. A condition that has become true, or worse, since the last evaluation is written
// once, with a delivery for each receiver; deliveries.ts sends them. A condition that has cleared may fire again.

import type { Branding } from '../branding/branding.ts'
import { type Mail, renderMail } from '../branding/mail.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import type { Deliveries } from '../jobs/deliveries.ts'
import type { Message } from '../jobs/delivery.ts'
import { type Credits, formatCredits, parseCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { type Secrets, seal, unseal } from '../kernel/secret.ts'
import { every } from '../kernel/timers.ts'
import type { Paging } from '../kernel/view.ts'
import { newId, type World } from '../kernel/world.ts'
import { LIMITS as SPENDING } from '../meter/limits.ts'
import { HELD } from '../reports/figures.ts'
import { readSpenders } from '../reports/sums.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { type AlertFact, budgetAlerts, fact, OWN, RULE, RULED, RULES } from './budgets.ts'
import {
  type AlertPage,
  type AlertRules,
  type AlertSettings,
  type AlertView,
  alertRules,
  alertSettings,
  type Receiver,
  UNREAD_MAX,
} from './views.ts'

export interface Alerts {
  /**
   * Alerts of an account; with '' those of the gateway; with null all. Newest first. `unread` counts those of the scope, with null those of
   * the gateway.
   */
  list(scope: string | null, paging: Paging): Promise<AlertPage>
  /** Marks all alerts up to this one as read. */
  read(scope: string, until: string): Promise<void>
  settings(scope: string): Promise<AlertSettings>
  change(scope: string, settings: AlertSettings): Promise<AlertSettings>
  /** Sends a test alert to all receivers of a scope; at most once a minute, else rejects with rate_limited. */
  test(scope: string): Promise<AlertView>
  /** Evaluates the rules now. Returns the number of alerts that fired. */
  look(): Promise<number>
  stop(): Promise<void>
}

interface FailingVendor {
  readonly name: string
  readonly isRejected: boolean
  /** In words. */
  readonly reason: string | null
}

interface AlertsOptions {
  readonly secrets: Secrets
  readonly guard: Pick<GuardedFetch, 'check'>
  readonly world: World
  readonly log: Log
  readonly database: Database
  readonly deliveries: Pick<Deliveries, 'add' | 'wake' | 'about' | 'withdrawAlerts'>
  readonly branding: Pick<Branding, 'get'>
  readonly publicUrl: () => string
  /** Whether a mail server is configured. */
  readonly mails: boolean
  /** Vendors whose circuit breaker is open in this process, or that reject their credential. */
  readonly failingVendors: () => readonly FailingVendor[]
  /** Vendors that billed more output than the limit sent to them, within the last hour. */
  readonly overruns: () => ReadonlyArray<{ readonly vendor: string; readonly calls: number; readonly loss: Credits }>
  readonly everyMs?: number
}

const LOOK_EVERY_MS = 60_000

export function createAlerts(options: AlertsOptions): Alerts {
  const { database, deliveries, world, log } = options
  const store = createSettings(options)
  const stopping = new AbortController()

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

  async function look(): Promise<number> {
    const { rulesOf, receiversOf, special } = await store.all()
    const facts = [...(await readFacts(database, rulesOf, special))]
    if (rulesOf('').vendorOpen)
      for (const vendor of options.failingVendors()) facts.push(fact('', 'vendor', vendor.name, vendorText(vendor)))
    if (rulesOf('').vendorOverrun)
      for (const { vendor, calls, loss } of options.overruns()) {
        const lost = loss > 0n ? ` ${formatCredits(loss)} credits of it were not on the accounts, and are lost.` : ''
        const message = `It billed ${calls} calls of the last hour beyond the output limit in the request.${lost} Check how the vendor counts, or its route.`
        facts.push(fact('', 'vendor', `${vendor} overrun`, { title: `${vendor} exceeds its output limits`, message }))
      }
    const count = await database.transaction(async (tx) => {
      await tx.query(LOCK)
      return fire(tx, facts, receiversOf)
    })
    if (count > 0) deliveries.wake()
    return count
  }

  const mailOf: MailOf = ({ scope, rule, subject, title, message, at }) => {
    const branding = options.branding.get()
    const base = options.publicUrl()
    const place = scope === '' ? 'operator' : `a/${encodeURIComponent(scope)}`
    const content = {
      subject: `[${branding.name}] ${title}`,
      paragraphs: [message],
      action: { label: 'Open the alerts', url: `${base}/console/${place}/alerts` },
      notes: [`${rule} · ${subject} · ${at.toISOString()}`],
    }
    return renderMail(content, branding, base)
  }

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

  /** One process a minute evaluates the database; each process evaluates its own circuit breakers. What probes found all know. */
  async function tick(): Promise<void> {
    const [due] = await database.query(CLAIM, [(options.everyMs ?? LOOK_EVERY_MS) / 1000])
    const isOwn = options.failingVendors().some(({ isRejected }) => !isRejected) || options.overruns().length > 0
    if (due || isOwn) await look()
    if (due) await database.query(PRUNE)
  }
  const stopTicking = every(world, options.everyMs ?? LOOK_EVERY_MS, tick, log)

  async function list(scope: string | null, { cursor, limit }: Paging): Promise<AlertPage> {
    const [rows, [unread]] = await Promise.all([
      database.query<AlertRow>(LIST, [scope, cursor ?? '~', limit + 1]),
      database.query<{ count: bigint }>(UNREAD, [scope ?? '', UNREAD_MAX]),
    ])
    const shown = rows.slice(0, limit)
    const told = await deliveries.about(shown.map(({ id }) => id))
    return {
      items: shown.map((row) => view(row, told.get(row.id) ?? [])),
      next: rows.length > limit ? (rows[limit - 1]?.id ?? null) : null,
      unread: Number(unread?.count ?? 0n),
    }
  }

  return {
    list,
    read: async (scope, until) => void (await database.query(READ, [scope, until])),
    settings: store.of,
    async change(scope, settings) {
      for (const { kind, to } of settings.receivers) {
        if (kind === 'email' && !options.mails)
          throw new Fault('conflict', {
            message: 'No mail server is set up: TOLLGATE_SMTP_URL and TOLLGATE_MAIL_FROM.',
          })
        if (kind === 'email' && !/^[^\s@,;<>]{1,64}@[^\s@,;<>]{1,190}$/.test(to))
          throw new Fault('request_invalid', { message: `receivers: "${to}" is not the address of a mailbox.` })
        if (kind !== 'email') await options.guard.check(to, { signal: stopping.signal })
      }
      await store.put(scope, settings)
      const known = new Set(settings.receivers.map(({ kind, to }) => `${kind} ${to}`))
      await deliveries.withdrawAlerts(
        scope,
        'This receiver is no longer in the settings.',
        ({ kind, to }) => !known.has(`${kind} ${to}`),
      )
      return settings
    },
    async test(scope) {
      const { receivers } = await store.of(scope)
      const about = { title: 'A test', message: 'Somebody sent this alert to check its receivers. Nothing is wrong.' }
      const one = fact(scope, 'test', scope, about)
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
    look,
    async stop() {
      stopTicking()
      stopping.abort()
    },
  }
}

function vendorText({ name, isRejected, reason }: FailingVendor) {
  if (isRejected) return { title: `${name} rejects its credential`, message: `A probe found: ${reason}` }
  const message = `The reason: ${reason}. Calls use routes to other vendors if there are any; the vendor’s page has details.`
  return { title: `The circuit breaker of ${name} is open`, message }
}

function tooSoon(waitSeconds: number): Fault {
  return new Fault('rate_limited', {
    message: `A test alert can be sent once a minute. Try again in ${waitSeconds} s.`,
    retryAfterSeconds: waitSeconds,
  })
}

type Fired = Omit<AlertFact, 'rank'> & { readonly id: string; readonly at: Date }

type MailOf = (alert: Fired) => Mail

function alertMessage(alert: Fired, { kind, to }: Receiver, index: number, mailOf: MailOf): Message {
  const { id, scope, rule, subject, level, title, message, at } = alert
  const event = `alert.${rule}`
  const about = { id: `msg_${id}-${index}`, account: scope, kind, event, subject: id, to }
  switch (kind) {
    case 'email': {
      const mail = mailOf(alert)
      return { ...about, title: mail.subject, body: mail.text, html: mail.html }
    }
    case 'slack':
      return { ...about, body: JSON.stringify({ text: `*${title}*\n${message}` }) }
    case 'webhook': {
      const data = { id, account: scope === '' ? null : scope, rule, subject, level, title, message }
      return { ...about, body: JSON.stringify({ type: event, timestamp: at.toISOString(), data }) }
    }
  }
}

interface SettingRow {
  scope: string
  sealed: Buffer
}

/** Receiver addresses are sealed in the database, because anybody who knows a webhook's address can post to its channel. */
function createSettings({
  database,
  secrets,
  world,
  log,
}: Pick<AlertsOptions, 'database' | 'secrets' | 'world' | 'log'>) {
  const DEFAULTS: AlertSettings = { rules: alertRules.parse({}), receivers: [] }
  const placeOf = (scope: string) => `alert_setting:${scope}`
  function open({ scope, sealed }: SettingRow): AlertSettings {
    const text = unseal(secrets.key('alert'), placeOf(scope), sealed)
    const read = text === undefined ? undefined : alertSettings.safeParse(JSON.parse(text))
    if (read?.success) return read.data
    log.error(
      { scope },
      'stored alert settings cannot be read, so the defaults apply: nobody receives alerts until they are stored again',
    )
    return DEFAULTS
  }
  return {
    async of(scope: string): Promise<AlertSettings> {
      const [row] = await database.query<SettingRow>(SETTING, [scope])
      return row ? open(row) : DEFAULTS
    },
    async put(scope: string, settings: AlertSettings): Promise<void> {
      const sealed = seal(secrets.key('alert'), placeOf(scope), JSON.stringify(settings), world)
      await database.query(PUT_SETTING, [scope, sealed])
    },
    async all() {
      const rows = await database.query<SettingRow>(SETTINGS)
      const known = new Map(rows.map((row) => [row.scope, open(row)]))
      return {
        special: [...known.keys()],
        rulesOf: (scope: string) => (known.get(scope) ?? DEFAULTS).rules,
        receiversOf: (scope: string) => (known.get(scope) ?? DEFAULTS).receivers,
      }
    },
  }
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

const LOCK = statement('alert_lock', 'select pg_advisory_xact_lock(7046029257)')
const CLAIM = statement(
  'alert_claim',
  `insert into setting as s (name, value) values ('alerts looked at', extract(epoch from now())::text)
   on conflict (name) do update set value = excluded.value
   where s.value::float8 < extract(epoch from now()) - $1::float8 * 0.9 or s.value::float8 > extract(epoch from now()) + 60 returning name`,
)
const RAISE = statement(
  'alert_raise',
  `with now_true as (
     select * from jsonb_to_recordset($1::jsonb) as x(scope text, rule text, subject text, level text, rank int, place int)
   ), risen as (
     insert into alert_state as s (scope, rule, subject, level, rank) select scope, rule, subject, level, rank from now_true
     on conflict (scope, rule, subject) do update set level = excluded.level, rank = excluded.rank, at = now() where s.rank < excluded.rank
     returning s.scope, s.rule, s.subject
   )
   select n.place from risen r join now_true n on n.scope = r.scope and n.rule = r.rule and n.subject = r.subject order by n.place`,
)
// Lowers the level of conditions that have improved and removes those that have cleared. A failed job stays for two hours. Each process has
// its own circuit breakers, so a vendor counts as recovered after ten minutes in which no process saw its breaker open. Balances change with
// every hold and failure rates with every call, so they must stay clear for an hour; otherwise one near its threshold would fire every other
// minute. A value of a label spends within a day, and is told once in a day.
const LOWER = statement(
  'alert_lower',
  `with now_true as (
     select * from jsonb_to_recordset($1::jsonb) as x(scope text, rule text, subject text, rank int)
   ), fresh as (
     update alert_state s set rank = least(s.rank, n.rank), at = now() from now_true n
     where s.scope = n.scope and s.rule = n.rule and s.subject = n.subject and (n.rank < s.rank or s.rule in ('vendor', 'balance', 'failures'))
   )
   delete from alert_state s where not exists (select 1 from now_true n where n.scope = s.scope and n.rule = s.rule and n.subject = s.subject)
     and s.at <= now() - case s.rule when 'job' then interval '2 hours' when 'vendor' then interval '10 minutes'
       when 'label' then interval '1 day' when 'balance' then interval '1 hour' when 'failures' then interval '1 hour' else interval '0' end`,
)
const LOCK_TESTS = statement('alert_lock_tests', 'select pg_advisory_xact_lock(70460, hashtext($1))')
const LAST_TEST = statement(
  'alert_last_test',
  `select greatest(1, ceil(extract(epoch from at + interval '1 minute' - clock_timestamp())))::int as wait from alert
   where scope = $1 and rule = 'test' and at > clock_timestamp() - interval '1 minute' limit 1`,
)
const WRITE = statement(
  'alert_write',
  'insert into alert (id, scope, rule, subject, level, title, message) values ($1, $2, $3, $4, $5, $6, $7) returning at',
)
const LIST = statement(
  'alert_list',
  `select id, at, scope, rule, subject, level, title, message, read_at is not null as read
   from alert where ($1::text is null or scope = $1) and id < $2 order by id desc limit $3`,
)
const UNREAD = statement(
  'alert_unread',
  'select count(*) from (select from alert where scope = $1 and read_at is null limit $2) x',
)
const READ = statement(
  'alert_read',
  'update alert set read_at = now() where scope = $1 and id <= $2 and read_at is null',
)
const SETTING = statement('alert_setting', 'select scope, sealed from alert_setting where scope = $1')
const SETTINGS = statement('alert_settings', 'select scope, sealed from alert_setting')
const PUT_SETTING = statement(
  'alert_setting_put',
  'insert into alert_setting (scope, sealed) values ($1, $2) on conflict (scope) do update set sealed = excluded.sealed',
)
const PRUNE = statement(
  'alert_forget',
  `delete from alert where ctid = any(array(select ctid from alert where at < now() - interval '90 days' limit 1000))`,
)

// The conditions that are true now, read from the database. The code above decides which of them have become true.

type RulesOf = (scope: string) => AlertRules

async function readFacts(on: Queryable, rulesOf: RulesOf, special: readonly string[]): Promise<AlertFact[]> {
  const thresholds = JSON.stringify([
    thresholdsOf(null, alertRules.parse({})),
    ...special.map((scope) => thresholdsOf(scope, rulesOf(scope))),
  ])
  const parts = await Promise.all([
    balances(on, thresholds),
    limits(on, thresholds, rulesOf),
    budgetAlerts(on, thresholds),
    failures(on, thresholds),
    keys(on, thresholds),
    jobs(on, thresholds),
    verification(on, rulesOf),
    pausedExports(on, rulesOf),
    payments(on, rulesOf),
    labels(on, rulesOf, special),
  ])
  return parts.flat()
}

/**
 * Thresholds for the statements, which return only rows worth an alert. With a scope: of an account with its own rules; with null: of all
 * other accounts.
 */
function thresholdsOf(scope: string | null, rules: AlertRules) {
  const { balanceBelow, balanceDays, limitShares, failurePercent, failureCalls, keyDays, jobFailed } = rules
  return {
    scope,
    below: balanceBelow === null ? null : (parseCredits(balanceBelow)?.toString() ?? null),
    days: balanceDays,
    share: limitShares.length === 0 ? null : Math.min(...limitShares),
    percent: failurePercent,
    calls: failureCalls,
    key_days: keyDays,
    job: jobFailed,
  }
}

async function balances(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; name: string; available: bigint; week: bigint }>(BALANCES, [thresholds])
  return rows.map(({ id, name, available, week }) => {
    const daysLeft = (Number(available) / Number(week)) * 7
    const pace = week === 0n ? '' : ` At last week’s rate they last ${daysLeft.toFixed(1)} days.`
    const message = `${formatCredits(available)} credits are available.${pace} Calls that need more are rejected with 402; add credits.`
    return fact(id, 'balance', id, { title: `The balance of ${name} is low`, message })
  })
}

interface LimitRow {
  readonly account_id: string
  /** The account, or the id of a key. */
  readonly scope: string
  readonly name: string
  readonly key_name: string | null
  readonly used: bigint
  readonly max: bigint
}

async function limits(on: Queryable, thresholds: string, rulesOf: RulesOf): Promise<AlertFact[]> {
  const rows = await on.query<LimitRow>(LIMITS, [thresholds])
  return rows.flatMap(({ account_id: account, scope, name, key_name: key, used, max }) => {
    const percent = max === 0n ? 100 : Number((used * 100n) / max)
    const share = Math.max(0, ...rulesOf(account).limitShares.filter((one) => one <= percent))
    if (share === 0) return []
    const whose = scope === 'account' ? 'the account' : `the key "${key ?? scope}"`
    const span = Object.entries(SPENDING).find(([limit]) => limit === name)?.[1].span
    const when = span === 'total' ? 'in total' : `this ${span} (UTC)`
    return [
      fact(account, 'limit', `${scope} ${name}`, {
        level: String(share),
        rank: share,
        title: `A spending limit has reached ${share} %`,
        message: `${formatCredits(used)} of the ${formatCredits(max)} credits that ${whose} may spend ${when} are spent. At 100 % calls are rejected with 429.`,
      }),
    ]
  })
}

/** Nothing is read for accounts without such a rule. */
async function labels(on: Queryable, rulesOf: RulesOf, special: readonly string[]): Promise<AlertFact[]> {
  const facts: AlertFact[] = []
  for (const account of special)
    for (const [label, amount] of Object.entries(rulesOf(account).labelSpend)) {
      const above = parseCredits(amount) ?? 0n
      for (const { value, charged } of await readSpenders(on, account, { label, above }))
        facts.push(
          fact(account, 'label', `${label}=${value}`, {
            title: `${label} ${value} has spent ${formatCredits(charged)} credits in 24 hours`,
            message: `The rule is ${formatCredits(above)} credits for each ${label}. The usage page lists the calls: labels ${label}=${value}.`,
          }),
        )
    }
  return facts
}

async function failures(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ account_id: string; requests: bigint; errors: bigint }>(FAILURES, [thresholds])
  return rows.map(({ account_id: account, requests, errors }) => {
    const percent = (Number(errors) / Number(requests)) * 100
    const message = `${errors} of ${requests} calls of this hour and the last have failed. The usage list says why.`
    return fact(account, 'failures', account, { title: `${Math.round(percent)} % of the calls fail`, message })
  })
}

async function keys(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; account_id: string; name: string; expires_at: Date }>(KEYS, [thresholds])
  return rows.map(({ id, account_id: account, name, expires_at: ends }) => {
    const message = `It ends at ${ends.toISOString()}, and its calls are rejected with 401 from then on. Rotate it, or give it a later expiry.`
    return fact(account, 'key', id, { title: `The key ${name} ends soon`, message })
  })
}

async function jobs(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; account_id: string; product: string; message: string | null }>(JOBS, [
    thresholds,
  ])
  return rows.map(({ id, account_id: account, product, message }) =>
    fact(account, 'job', id, { title: `A job of ${product} failed`, message: message ?? 'It was not charged.' }),
  )
}

async function verification(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  const [row] = await on.query<{ id: string; problems: string[]; failure: string | null }>(VERIFICATION)
  if (!row || !rulesOf('').verification || (row.problems.length === 0 && row.failure === null)) return []
  const message = row.failure ?? row.problems.slice(0, 5).join(' ')
  return [fact('', 'verification', row.id, { title: 'A check of the ledger or the audit log found problems', message })]
}

async function pausedExports(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  if (!rulesOf('').exportPaused) return []
  const rows = await on.query<{ id: string; name: string; error: string }>(PAUSED_EXPORTS)
  return rows.map(({ id, name, error }) => {
    const message = `${error} Nothing is lost: correct it, and resume the export.`
    return fact('', 'export', id, { title: `The export ${name} is paused`, message })
  })
}

async function payments(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  if (!rulesOf('').payments) return []
  const quarantined = await on.query<{ id: string; reason: string | null }>(QUARANTINED)
  const [last] = await on.query<{ id: string; count: number; problem: string | null }>(RECONCILED)
  const title = 'A payment is quarantined'
  const act = 'No credits were granted. Accept, refund or dismiss it on the page of payments.'
  const held = quarantined.map(({ id, reason }) =>
    fact('', 'payment', id, { title, message: `${reason ?? ''} ${act}`.trim() }),
  )
  if (!last) return held
  const message = `${last.count} differences. ${last.problem ?? ''}`
  return [...held, fact('', 'payment', last.id, { title: 'Payments differ from the list of Stripe', message })]
}

// Not those that an operator has paused.
const PAUSED_EXPORTS = statement(
  'alert_exports',
  'select id, name, error from export where not open and error is not null order by id limit 100',
)
// No statement has a limit over all accounts: an omitted condition would count as cleared and fire again at the next evaluation.
const BALANCES = statement(
  'alert_balances',
  `${RULES}, spent as (
     select account_id, sum(charged)::bigint as week from usage_hour where hour >= now() - interval '7 days' group by account_id
   )
   select a.id, a.name, a.posted - ${HELD('a')} as available, coalesce(s.week, 0)::bigint as week
   from account a left join spent s on s.account_id = a.id ${RULED('a.id')}
   -- What was moved to another database has its money there.
   where ${OWN('a.id')} and a.frozen_until is distinct from 'infinity' and a.status = 'open' and (a.posted - ${HELD('a')} < ${RULE('below')} or (s.week > 0 and (a.posted - ${HELD('a')})::numeric * 7 <= s.week * ${RULE('days')}))`,
)
const LIMITS = statement(
  'alert_limits',
  `${RULES}
   select n.account_id, n.scope, n.name, n.used, n.max, (select k.name from api_key k where k.id = n.scope) as key_name
   from counter c cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n
   ${RULED('c.account_id')}
   where c.account_id <> '' and ${OWN('c.account_id')} and c.name <> 'budget' and c.unit = 'credits' and n.used > 0 and n.used::numeric * 100 >= n.max::numeric * ${RULE('share')}`,
)
const FAILURES = statement(
  'alert_failures',
  `${RULES}, recent as (
     select account_id, sum(requests)::bigint as requests, sum(errors)::bigint as errors from usage_hour
     where hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour' and ${OWN('account_id')}
     group by account_id having sum(errors) > 0
   )
   select r.account_id, r.requests, r.errors from recent r ${RULED('r.account_id')}
   where r.requests >= ${RULE('calls')} and r.errors * 100 >= r.requests * ${RULE('percent')}`,
)
const KEYS = statement(
  'alert_keys',
  `${RULES}
   select k.id, k.account_id, k.name, k.expires_at from api_key k ${RULED('k.account_id')}
   where k.revoked_at is null and k.expires_at > now() and ${OWN('k.account_id')}
     and k.expires_at <= now() + make_interval(secs => 86400 * ${RULE('key_days')})`,
)
// The newest 20 of each account, so that an account with hundreds of failed jobs does not hide the others and is not sent an alert for each.
const JOBS = statement(
  'alert_jobs',
  `${RULES}
   select id, account_id, product, message from (
     select j.id, j.account_id, j.product, j.error ->> 'message' as message,
       row_number() over (partition by j.account_id order by j.completed_at desc, j.id desc) as place
     from job j ${RULED('j.account_id')}
     where j.status = 'FAILED' and j.completed_at > now() - interval '1 hour' and ${OWN('j.account_id')} and ${RULE('job')}
   ) newest where place <= 20`,
)
const QUARANTINED = statement('alert_quarantined', `select id, reason from payment where state = 'quarantined'`)
const RECONCILED = statement(
  'alert_reconciled',
  `select * from (select id, jsonb_array_length(differences) as count, coalesce(failure, differences -> 0 ->> 'problem') as problem
     from reconciliation where ended_at is not null order by id desc limit 1) r where problem is not null`,
)
const VERIFICATION = statement(
  'alert_verification',
  'select id, problems, failure from verification where ended_at is not null order by id desc limit 1',
)
