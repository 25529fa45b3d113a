// Sign-up: a mail with a link, where a person chooses a password and gets an account. Also the mail with which a person who
// forgot their password chooses a new one. A password can be chosen only through the mailbox, so nobody can prepare an
// account for an address that is not theirs. Neither the answer nor its time depends on whether an address is known here.
import { createHash } from 'node:crypto'
import type { Accounts } from '../admission/accounts.ts'
import type { By } from '../database/audit.ts'
import { type Queryable, statement } from '../database/database.ts'
import { defineSetting } from '../database/setting.ts'
import { parseCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { sign } from '../kernel/secret.ts'
import { networkOf } from '../upstream/address.ts'
import type { Branding } from './branding/branding.ts'
import { type Mail, renderMail } from './branding/mail.ts'
import { isListed, isMailHost, type Mailbox, readDomain, readMailbox } from './mailbox.ts'
import { INVITE, INVITE_HOURS, JOIN, linkUnknown, useLink } from './members.ts'
import {
  digestOfToken,
  FIND_PERSON,
  hashCounted,
  insertPerson,
  inviteLink,
  newToken,
  type PeopleDeps,
  type PersonRow,
  requireGood,
  signUpLinkOf,
} from './people.ts'
import { PERSON_MAILS, type PersonMailName } from './person-mails.ts'
import type { SessionUse } from './sessions.ts'
import {
  type MailPreview,
  type SignUpInvite,
  type SignUpLink,
  type SignUpSettings,
  type SignUpView,
  signUpSettings,
} from './views.ts'

export type SignUp = ReturnType<typeof createSignUp>

interface FinishInput {
  readonly password: string
  /** Of the account; by default the email address. */
  readonly name?: string | undefined
  /** The version that was accepted. */
  readonly terms?: string | undefined
}

export interface PersonMail extends Mail {
  readonly to: string
  readonly event: string
  /** The id of the person or account that it is about. */
  readonly about: string
}

/** The durable queue of mails. */
export interface PersonMails {
  add(tx: Queryable, mail: PersonMail): Promise<void>
  wake(): void
}

/** The operator's hook, which says whether a request for a sign-up is accepted. */
export interface Challenge {
  /** Rejects with access_denied if the hook says no, with unavailable if it does not say yes or no. */
  ask(
    url: string,
    about: { readonly email: string; readonly ip: string; readonly challenge?: string | undefined },
  ): Promise<void>
  /** Rejects an address that cannot be asked. */
  check(url: string): Promise<void>
}

interface SignUpDeps extends PeopleDeps {
  readonly accounts: Pick<Accounts, 'createIn'>
  readonly branding: Pick<Branding, 'get'>
  readonly publicUrl: () => string
  readonly log: Log
  readonly challenge: Challenge
  /** The key for digests of mailboxes. */
  readonly mailboxKey: Buffer
  /** Undefined: no mail server is configured. */
  readonly mails: PersonMails | undefined
}

export const DEFAULTS: SignUpSettings = {
  mode: 'off',
  domains: [],
  blockedDomains: [],
  credits: '0',
  limits: {},
  terms: null,
  perNetworkPerHour: 10,
  perDomainPerDay: 100,
  challengeUrl: null,
}

const HOUR_SECONDS = 3_600
const DAY_SECONDS = 86_400
/** Mails to one mailbox, however it is spelt. */
const PER_MAILBOX_PER_HOUR = 3
const CONFIRM_HOURS = 24
const PASSWORD_HOURS = 1
/** Mails whose rows are being written. Each takes a few milliseconds. */
const WRITING_MAX = 100
/** The creator of links that visitors requested. */
const BY_VISITOR = 'sign-up'

const SETTINGS = defineSetting({
  ...{ name: 'sign-up', schema: signUpSettings, defaults: DEFAULTS },
  ...{ action: 'system.sign-up', object: 'system', noted: summaryOf },
})
const LOOK = statement(
  'sign_up_look',
  `select email, made_by from invite where digest = $1 and kind = 'sign-up' and expires_at > now()`,
)
const END_OTHERS = statement('sign_up_end', `delete from invite where kind = 'sign-up' and email = $1`)
const TAKE_CREDITS = statement(
  'starting_credit_take',
  'insert into starting_credit (mailbox) values ($1) on conflict (mailbox) do nothing returning mailbox',
)
const ACCEPT_TERMS = statement('person_terms', 'update person set terms_version = $2, terms_at = now() where id = $1')
const PENDING = statement(
  'sign_up_pending',
  `select encode(digest, 'hex') as id, email, created_at, expires_at from invite
   where kind = 'sign-up' and made_by <> '${BY_VISITOR}' and expires_at > now() order by created_at desc limit 200`,
)
const WITHDRAW = statement(
  'sign_up_withdraw',
  `delete from invite where kind = 'sign-up' and encode(digest, 'hex') = $1 returning email`,
)

export function createSignUp(deps: SignUpDeps) {
  const { database, world, audit, sessions, branding, log, publicUrl } = deps
  const writing = new Set<Promise<void>>()

  const settings = () => SETTINGS.read(database)

  function mail(name: PersonMailName, url: string): Mail {
    const now = branding.get()
    return renderMail(PERSON_MAILS[name].make({ name: now.name, url }), now, publicUrl())
  }

  /** Stores a link and its mail. */
  async function sendLink(to: string, name: PersonMailName, made: { by: string; hours: number }, audited?: By) {
    const token = newToken(world)
    const kind = name === 'confirm' || name === 'invitation' ? 'sign-up' : 'password'
    const link = (kind === 'sign-up' ? signUpLinkOf : inviteLink)(publicUrl(), token)
    await database.transaction(async (tx) => {
      await tx.query(INVITE, [digestOfToken(token), kind, null, to, null, made.by, made.hours, true])
      await deps.mails?.add(tx, { ...mail(name, link), to, event: `person.${name}`, about: BY_VISITOR })
      if (audited)
        await audit.write(tx, audited, {
          ...{ action: 'sign-up.invite', object: 'sign-up', detail: { email: to } },
          ...{ before: {}, after: { email: to } },
        })
    })
    deps.mails?.wake()
    return link
  }

  /** Runs after the answer, so that its time says nothing about the address. */
  function later(run: () => Promise<unknown>): void {
    if (writing.size >= WRITING_MAX) throw new Fault('unavailable', { retryAfterSeconds: 5 })
    const work = run().then(
      () => undefined,
      (error: unknown) => log.error({ err: error }, 'a requested mail could not be stored'),
    )
    writing.add(work)
    void work.finally(() => writing.delete(work))
  }

  /** Limits apply to known and unknown addresses alike. */
  async function brakeNetwork({ ip }: SessionUse, { perNetworkPerHour }: SignUpSettings) {
    if (!deps.mails) throw noMails()
    const subject = `mails:${networkOf(ip)}`
    await deps.attempts.brake([{ subject, max: perNetworkPerHour, perSeconds: HOUR_SECONDS }])
  }

  function brakeMailbox({ key }: Mailbox) {
    const subject = `mailbox:${digestOf(key)}`
    return deps.attempts.brake([{ subject, max: PER_MAILBOX_PER_HOUR, perSeconds: HOUR_SECONDS }])
  }

  /** Counts finished sign-ups, because anybody can request one with an invented mailbox. At a large mail host strangers would block each other. */
  async function brakeDomain(tx: Queryable, { domain, registered }: Mailbox, { perDomainPerDay }: SignUpSettings) {
    if (isMailHost(domain)) return
    const subject = `domain:${digestOf(registered)}`
    await deps.attempts.brake([{ subject, max: perDomainPerDay, perSeconds: DAY_SECONDS }], tx)
  }

  return {
    settings,
    hasMailServer: deps.mails !== undefined,

    async change(next: SignUpSettings, by: By): Promise<SignUpSettings> {
      const checked = checkSettings(next, deps.mails !== undefined)
      if (checked.challengeUrl !== null) await deps.challenge.check(checked.challengeUrl)
      return SETTINGS.change({ database, audit }, by, () => checked)
    },

    /** For visitors without a session. */
    async view(): Promise<SignUpView> {
      const { mode, domains, terms } = await settings()
      return { mode, domains: mode === 'domain' ? domains : [], terms, passwordByMail: deps.mails !== undefined }
    },

    /** Sends a mail with a link; if the address already has a login, a mail that says so. `challenge` is for the operator's hook. */
    async request(email: string, visit: SessionUse, challenge?: string): Promise<void> {
      const now = await settings()
      const box = requireMailbox(email)
      requireOpen(now, box)
      await brakeNetwork(visit, now)
      // Before the mailbox is counted: it may belong to somebody else than whoever fails the challenge.
      if (now.challengeUrl !== null) await deps.challenge.ask(now.challengeUrl, { email, ip: visit.ip, challenge })
      await brakeMailbox(box)
      later(async () => {
        const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
        return known
          ? sendLink(email, 'known', { by: BY_VISITOR, hours: PASSWORD_HOURS })
          : sendLink(email, 'confirm', { by: BY_VISITOR, hours: CONFIRM_HOURS })
      })
    },

    /** Sends a mail with a link to choose a new password, if a person has this address. */
    async requestPassword(email: string, visit: SessionUse): Promise<void> {
      const box = requireMailbox(email)
      await brakeNetwork(visit, await settings())
      await brakeMailbox(box)
      later(async () => {
        const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
        if (known) await sendLink(email, 'reset', { by: BY_VISITOR, hours: PASSWORD_HOURS })
      })
    },

    /** Returns the link, which is also sent if there is a mail server. Only operators may, so it proves the mailbox. */
    async invite(email: string, by: By): Promise<string> {
      requireMailbox(email)
      const { mode } = await settings()
      if (mode === 'off') throw new Fault('conflict', { message: 'Sign-up is off. Set it to "invitation" first.' })
      const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
      if (known) throw new Fault('conflict', { message: 'Somebody has this email address already.' })
      return sendLink(email, 'invitation', { by: by.actor, hours: INVITE_HOURS }, by)
    },

    async pending(): Promise<SignUpInvite[]> {
      const rows = await database.query<{ id: string; email: string; created_at: Date; expires_at: Date }>(PENDING)
      return rows.map(({ id, email, created_at: made, expires_at: ends }) => ({
        ...{ id, email, createdAt: made.toISOString(), expiresAt: ends.toISOString() },
      }))
    },

    async withdraw(invite: string, by: By): Promise<void> {
      await database.transaction(async (tx) => {
        const [gone] = await tx.query<{ email: string }>(WITHDRAW, [invite])
        if (!gone) throw new Fault('not_found', { message: 'There is no such invitation; it may have been used.' })
        await audit.write(tx, by, {
          ...{ action: 'invite.withdraw', object: 'sign-up', detail: { email: gone.email } },
          ...{ before: { email: gone.email }, after: {} },
        })
      })
    },

    async look(token: string): Promise<SignUpLink> {
      const [invite] = await database.query<{ email: string }>(LOOK, [digestOfToken(token)])
      if (!invite) throw linkUnknown()
      return { email: invite.email, terms: (await settings()).terms }
    },

    /** Makes the person and their account, once. Returns the value of the session cookie. */
    async finish(
      token: string,
      { password, name, terms }: FinishInput,
      visit: SessionUse,
      by: By,
    ): Promise<{ session: string; email: string }> {
      const digest = digestOfToken(token)
      const [invite] = await database.query<{ email: string; made_by: string }>(LOOK, [digest])
      if (!invite) throw linkUnknown()
      const { email } = invite
      const now = await settings()
      const box = requireMailbox(email)
      // Sign-up may have been closed since the mail was sent. Invitations stay valid.
      if (invite.made_by === BY_VISITOR) requireOpen(now, box)
      else if (now.mode === 'off') throw closed()
      if (now.terms && terms !== now.terms.version)
        throw invalid('terms: accept the terms first; they may have changed since this page was opened.', 'terms')
      requireGood(password, email)
      const hash = await hashCounted(deps, password, visit)
      const mine = { ...by, actor: email }
      return database.transaction(async (tx) => {
        await useLink(tx, token, email)
        await tx.query(END_OTHERS, [email])
        if (invite.made_by === BY_VISITOR) await brakeDomain(tx, box, now)
        const person = await insertPerson(tx, world, { email, role: null, password: hash, verified: true })
        if (now.terms) await tx.query(ACCEPT_TERMS, [person, now.terms.version])
        const account = await openAccount(tx, box, { name: name ?? email, settings: now, by: mine })
        await tx.query(JOIN, [account, person, 'owner'])
        const session = await sessions.start(tx, person, visit)
        const detail = { account, terms: now.terms?.version ?? null }
        await audit.write(tx, mine, { action: 'sign-up.finish', object: person, detail })
        return { session, email }
      })
    },

    previews: (): MailPreview[] =>
      Object.entries(PERSON_MAILS).map(([name, { about }]) => {
        const { subject, text } = mail(name as PersonMailName, exampleUrl(publicUrl())) // A key of the table.
        return { name, about, subject, text }
      }),
    previewHtml(name: string): string {
      if (!Object.hasOwn(PERSON_MAILS, name)) throw new Fault('not_found', { message: 'There is no such mail.' })
      return mail(name as PersonMailName, exampleUrl(publicUrl())).html // Checked above.
    },
    /** Waits until all requested mails are stored. */
    idle: async (): Promise<void> => void (await Promise.all(writing)),
  }

  /** A mailbox gets starting credits once, even if its person was deleted meanwhile. */
  async function openAccount(
    tx: Queryable,
    box: Mailbox,
    { name, settings: now, by }: { name: string; settings: SignUpSettings; by: By },
  ): Promise<string> {
    const credits = parseCredits(now.credits) ?? 0n
    // Before the account is created, which takes the lock of the audit log last: two sign-ups with one mailbox wait for each other here.
    const [first] = credits > 0n ? await tx.query(TAKE_CREDITS, [sign(deps.mailboxKey, box.key)]) : []
    const given = first ? { credits, note: 'starting credits' } : {}
    return deps.accounts.createIn(tx, { name, limits: now.limits, ...given }, by)
  }
}

const exampleUrl = (base: string) => signUpLinkOf(base, 'example')
const digestOf = (text: string) => createHash('sha256').update(text).digest('base64url')
const noMails = () =>
  new Fault('conflict', { message: 'No mail server is set up: TOLLGATE_SMTP_URL and TOLLGATE_MAIL_FROM.' })
const closed = () =>
  new Fault('access_denied', { message: 'Nobody can sign up here by themselves. Ask for an invitation.' })

function requireMailbox(email: string): Mailbox {
  const box = readMailbox(email)
  if (!box) throw invalid('email: must be the address of one mailbox.', 'email')
  return box
}

/** Checks only the domain, so that the answer reveals nothing about the mailbox. */
function requireOpen({ mode, domains, blockedDomains }: SignUpSettings, { domain }: Mailbox): void {
  if (mode !== 'open' && mode !== 'domain') throw closed()
  if (isListed(domain, blockedDomains))
    throw invalid('email: addresses of this mail provider are not accepted here.', 'email')
  if (mode === 'domain' && !isListed(domain, domains))
    throw invalid(`email: only addresses of ${domains.join(', ')} can sign up here.`, 'email')
}

function checkSettings(next: SignUpSettings, hasMails: boolean): SignUpSettings {
  const domains = next.domains.map((one) => requireDomain(one, 'domains'))
  const blockedDomains = next.blockedDomains.map((one) => requireDomain(one, 'blockedDomains'))
  if (next.mode === 'domain' && domains.length === 0) throw invalid('domains: name at least one.', 'domains')
  if ((next.mode === 'domain' || next.mode === 'open') && !hasMails) throw noMails()
  return { ...next, domains: [...new Set(domains)], blockedDomains: [...new Set(blockedDomains)] }
}

function requireDomain(given: string, field: string): string {
  const domain = readDomain(given.replace(/^@/, ''))
  if (domain === undefined)
    throw invalid(`${field}: "${given.slice(0, 60)}" is not a domain such as example.com.`, field)
  return domain
}

/** Lists may have thousands of entries. */
function summaryOf({ domains, blockedDomains, challengeUrl, ...rest }: SignUpSettings) {
  const challenge = challengeUrl === null ? null : new URL(challengeUrl).host // Its path may hold a secret.
  return { ...rest, challenge, domains: domains.slice(0, 20), blockedDomains: blockedDomains.length }
}
