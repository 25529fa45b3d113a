// Who receives alerts: the settings of each scope, and which mailboxes among them want mail. A mail goes to members of
// the account (for the gateway's alerts: to operators) and to mailboxes that confirmed it once by a link, and to nobody
// who unsubscribed. Strangers get one mail.

import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import { readMailbox } from '../../identity/mailbox.ts'
import { CONFIRMATION, type Deliveries } from '../../jobs/deliveries.ts'
import { Fault } from '../../kernel/fault.ts'
import { sameBytes, seal, sign, unseal } from '../../kernel/secret.ts'
import { newId } from '../../kernel/world.ts'
import { confirmationMail } from './alert-message.ts'
import { alertRules } from './rules.ts'
import { type AlertSettings, type AlertSettingsInput, type Receiver, readAlertSettings } from './views.ts'

export interface Mailbox {
  readonly scope: string
  readonly address: string
}

interface ReceiverDeps extends Pick<CoreParts, 'database' | 'secrets' | 'world' | 'log' | 'publicUrl'> {
  readonly deliveries: Pick<Deliveries, 'add' | 'forgetAlertMails'>
  readonly branding: Pick<Branding, 'get'>
}

type Stored = NonNullable<ReturnType<typeof readAlertSettings>>['value']
type Status = AlertSettings['receivers'][number]['status']

/** Confirmation mails that one account may cause in a day. A mailbox gets one a day, whoever asks. */
const ASKED_PER_DAY = 5

export function createReceivers(deps: ReceiverDeps) {
  const { database, secrets, world, log } = deps
  const DEFAULTS: Stored = { rules: alertRules.parse({}), receivers: [] }
  const placeOf = (scope: string) => `alert_setting:${scope}`
  const { link, mailbox } = createLinks(deps)

  /** Addresses of receivers are sealed, because anybody who knows a webhook's address can post to its channel. */
  function open({ scope, sealed }: SettingRow): Stored {
    const text = unseal(secrets.key('alert'), placeOf(scope), sealed)
    const read = text === undefined ? undefined : readAlertSettings(JSON.parse(text))
    if (read && read.setAside.length > 0)
      log.warn({ scope, setAside: read.setAside }, 'alert settings of another version are set aside')
    if (read) return read.value
    log.error(
      { scope },
      'stored alert settings cannot be read, so the defaults apply: nobody receives alerts until they are stored again',
    )
    return DEFAULTS
  }

  async function stored(scope: string): Promise<Stored> {
    const [row] = await database.query<SettingRow>(SETTING, [scope])
    return row ? open(row) : DEFAULTS
  }

  /** Webhooks and Slack are always active. */
  async function statuses(on: Queryable, known: ReadonlyMap<string, Pick<Stored, 'receivers'>>) {
    const asked = [...known].flatMap(([scope, { receivers }]) =>
      receivers.filter(({ kind }) => kind === 'email').map(({ to }) => ({ scope, address: to.toLowerCase() })),
    )
    const rows =
      asked.length === 0 ? [] : await on.query<Mailbox & { status: Status }>(STATUSES, [JSON.stringify(asked)])
    const found = new Map(rows.map(({ scope, address, status }) => [`${scope} ${address}`, status]))
    return (scope: string, { kind, to }: Receiver): Status =>
      kind === 'email' ? (found.get(`${scope} ${to.toLowerCase()}`) ?? 'waiting') : 'active'
  }

  /** Asks a stranger's mailbox by mail, unless this scope has done so today. */
  async function ask(tx: Queryable, scope: string, to: string): Promise<void> {
    const address = to.toLowerCase()
    const [row] = await tx.query<{ sent: boolean }>(ASK, [scope, address, keyOf(address), ASKED_PER_DAY])
    if (!row)
      throw new Fault('rate_limited', {
        message: `receivers: a confirmation mail to ${to} cannot be sent today. A mailbox is asked once a day, and an account asks ${ASKED_PER_DAY} a day.`,
        retryAfterSeconds: 3600,
      })
    if (!row.sent) return
    const id = newId(world)
    const mail = confirmationMail(scope, deps.branding.get(), deps.publicUrl(), link({ scope, address }))
    const { subject: title, text: body, html, unsubscribe } = mail
    const about = { account: scope, kind: 'email', event: CONFIRMATION, subject: id, to } as const
    await deps.deliveries.add(tx, [{ id: `msg_${id}`, ...about, title, body, html, unsubscribe }])
  }

  const settingsBy = (known: ReadonlyMap<string, Stored>, statusOf: Awaited<ReturnType<typeof statuses>>) => ({
    special: [...known.keys()],
    rulesOf: (scope: string) => (known.get(scope) ?? DEFAULTS).rules,
    receiversOf: (scope: string) =>
      (known.get(scope) ?? DEFAULTS).receivers.filter((one) => statusOf(scope, one) === 'active'),
  })
  let last = settingsBy(new Map(), () => 'waiting')
  return {
    link,
    mailbox,
    async of(scope: string): Promise<AlertSettings> {
      const { rules, receivers } = await stored(scope)
      const statusOf = await statuses(database, new Map([[scope, { receivers }]]))
      return { rules, receivers: receivers.map((one) => ({ ...one, status: statusOf(scope, one) })) }
    },
    async put(scope: string, { rules, receivers: given }: AlertSettingsInput): Promise<void> {
      const receivers = given.map(({ kind, to }) => ({ kind, to }))
      const before = new Set((await stored(scope)).receivers.map(({ to }) => to.toLowerCase()))
      const sealed = seal(secrets.key('alert'), placeOf(scope), JSON.stringify({ rules, receivers }), world)
      await database.transaction(async (tx) => {
        await tx.query(LOCK_MAILBOXES)
        const statusOf = await statuses(tx, new Map([[scope, { receivers }]]))
        for (const one of receivers)
          if (statusOf(scope, one) === 'waiting' && !before.has(one.to.toLowerCase())) await ask(tx, scope, one.to)
        await tx.query(PUT_SETTING, [scope, sealed])
      })
    },
    async answer({ scope, address }: Mailbox, wanted: boolean): Promise<void> {
      await database.transaction(async (tx) => {
        await tx.query(ANSWER, [scope, address, keyOf(address), wanted])
        if (!wanted) await deps.deliveries.forgetAlertMails(tx, scope, address)
      })
    },
    async all() {
      const rows = await database.query<SettingRow>(SETTINGS)
      const known = new Map(rows.map((row) => [row.scope, open(row)]))
      last = settingsBy(known, await statuses(database, known))
      return last
    },
    /** As they were read last, for when the database does not answer. */
    last: () => last,
  }
}

const keyOf = (address: string) => readMailbox(address)?.key ?? address

/** The link in each alert mail. Who has it reads the mailbox: it confirms, and it unsubscribes. */
function createLinks({ secrets, publicUrl }: Pick<ReceiverDeps, 'secrets' | 'publicUrl'>) {
  const signed = (text: string) => sign(secrets.key('alert-mail'), text)
  return {
    link({ scope, address }: Mailbox): string {
      const text = Buffer.from(JSON.stringify([scope, address.toLowerCase()])).toString('base64url')
      return `${publicUrl()}/alert-mails?token=${text}.${signed(text).toString('base64url')}`
    },
    mailbox(token: string): Mailbox | undefined {
      const [text = '', signature = ''] = token.split('.')
      if (!sameBytes(Buffer.from(signature, 'base64url'), signed(text))) return undefined
      const [scope, address] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as [string, string] // `link` wrote it.
      return { scope, address }
    },
  }
}

interface SettingRow {
  readonly scope: string
  readonly sealed: Buffer
}

const SETTING = sql('alert_setting')`select scope, sealed from alert_setting where scope = $1`
const SETTINGS = sql('alert_settings')`select scope, sealed from alert_setting`
const PUT_SETTING = sql('alert_setting_put')`
  insert into alert_setting (scope, sealed) values ($1, $2) on conflict (scope) do update set sealed = excluded.sealed`
const LOCK_MAILBOXES = sql('alert_lock_mailboxes')`select pg_advisory_xact_lock(7046029265)`
// A login counts only if its mailbox was proved: an owner may have invited any address.
const STATUSES = sql('alert_mailbox_statuses')`
  select x.scope, x.address, case when m.unsubscribed_at is not null then 'unsubscribed'
     when m.confirmed_at is not null or exists (
       select from person p where p.email = x.address and p.email_verified_at is not null
         and case x.scope when '' then p.operator_role is not null
           else exists (select from membership s where s.person_id = p.id and s.account_id = x.scope) end) then 'active'
     else 'waiting' end as status
   from jsonb_to_recordset($1::jsonb) as x(scope text, address text)
   left join alert_mailbox m on m.scope = x.scope and m.address = x.address`
const ASK = sql('alert_mailbox_ask')`with today as (select scope, address, mailbox from alert_mailbox
     where asked_at > now() - interval '1 day' and (mailbox = $3 or scope = $1)
   ), asked as (
     insert into alert_mailbox (scope, address, mailbox, asked_at) select $1, $2, $3, now()
     where not exists (select from today where mailbox = $3) and (select count(*) from today where scope = $1) < $4
     on conflict (scope, address) do update set asked_at = excluded.asked_at returning true as sent
   )
   select sent from asked union all select false from today where scope = $1 and address = $2`
const ANSWER = sql('alert_mailbox_answer')`
  insert into alert_mailbox as m (scope, address, mailbox, confirmed_at, unsubscribed_at)
   values ($1, $2, $3, case when $4 then now() end, case when not $4 then now() end)
   on conflict (scope, address) do update set confirmed_at = coalesce(excluded.confirmed_at, m.confirmed_at), unsubscribed_at = excluded.unsubscribed_at`
