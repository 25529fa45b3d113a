// Sign-up: a mail with a link, where a person chooses a password and gets an account. A password can be chosen only
// through the mailbox, so nobody can prepare an account for an address that is not theirs. Neither the answer nor its
// time depends on whether an address is known here.
import type { Accounts } from '../../../admission/accounts.ts'
import type { By } from '../../../database/audit.ts'
import { type Queryable, sql } from '../../../database/database.ts'
import { defineSetting } from '../../../database/setting.ts'
import {
  type AskedMail,
  type AskedMails,
  BY_VISITOR,
  digestOf,
  noMails,
  PASSWORD_HOURS,
  PER_NETWORK_PER_HOUR,
  requireMailbox,
} from '../../../identity/asked-mails.ts'
import { isListed, isMailHost, type Mailbox, readDomain } from '../../../identity/mailbox.ts'
import { INVITE_HOURS, JOIN, linkUnknown, useLink } from '../../../identity/members.ts'
import {
  digestOfToken,
  FIND_PERSON,
  hashCounted,
  insertPerson,
  type PeopleDeps,
  type PersonRow,
  requireGood,
  signUpLinkOf,
} from '../../../identity/people.ts'
import type { SessionUse } from '../../../identity/sessions.ts'
import { parseCredits } from '../../../kernel/credits.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { sign } from '../../../kernel/secret.ts'
import { asView } from '../../../kernel/view.ts'
import { ALL_MAILS, SIGN_UP_MAILS } from '../mails.ts'
import {
  type MailPreview,
  type SignUpInvite,
  type SignUpLink,
  type SignUpSettings,
  type SignUpView,
  signUpInvite,
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

export interface SignUpDeps extends PeopleDeps {
  readonly accounts: Pick<Accounts, 'createIn' | 'created'>
  readonly publicUrl: () => string
  readonly asked: AskedMails
  readonly challenge: Challenge
  /** The key for digests of mailboxes. */
  readonly mailboxKey: Buffer
  /** Of all ledgers. */
  readonly regions?: (() => readonly string[]) | undefined
  /** Undefined: no mail server is configured. */
  readonly mails: object | undefined
}

export const DEFAULTS: SignUpSettings = {
  mode: 'off',
  domains: [],
  blockedDomains: [],
  credits: '0',
  limits: {},
  terms: null,
  perNetworkPerHour: PER_NETWORK_PER_HOUR,
  perDomainPerDay: 100,
  challengeUrl: null,
  region: null,
}

const DAY_SECONDS = 86_400
const CONFIRM_HOURS = 24
const CONFIRM: AskedMail = { name: 'confirm', kind: 'sign-up', ...SIGN_UP_MAILS.confirm }
const KNOWN: AskedMail = { name: 'known', kind: 'password', ...SIGN_UP_MAILS.known }
const INVITATION: AskedMail = { name: 'invitation', kind: 'sign-up', ...SIGN_UP_MAILS.invitation }

const SETTINGS = defineSetting({
  name: 'sign-up',
  schema: signUpSettings,
  defaults: DEFAULTS,
  action: 'system.sign-up',
  object: 'system',
  noted: summaryOf,
})
const LOOK = sql('sign_up_look')`
  select email, made_by from invite where digest = $1 and kind = 'sign-up' and expires_at > now()`
const END_OTHERS = sql('sign_up_end')`delete from invite where kind = 'sign-up' and email = $1`
const TAKE_CREDITS = sql('starting_credit_take')`
  insert into starting_credit (mailbox) values ($1) on conflict do nothing returning mailbox`
const ACCEPT_TERMS = sql('person_terms')`update person set terms_version = $2, terms_at = now() where id = $1`
const PENDING = sql('sign_up_pending')`select encode(digest, 'hex') as id, email, created_at, expires_at from invite
   where kind = 'sign-up' and made_by <> '${BY_VISITOR}' and expires_at > now() order by created_at desc limit 200`
const WITHDRAW = sql('sign_up_withdraw')`
  delete from invite where kind = 'sign-up' and encode(digest, 'hex') = $1 returning email`

export function createSignUp(deps: SignUpDeps) {
  const { database, world, audit, sessions, asked, publicUrl } = deps

  const settings = () => SETTINGS.read(database)

  /**
   * Counts finished sign-ups, because anybody can request one with an invented mailbox. At a large mail host strangers
   * would block each other.
   */
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
      if (checked.region !== null && !deps.regions?.().includes(checked.region))
        throw invalid(`region: no ledger lies in "${checked.region}".`, 'region')
      if (checked.challengeUrl !== null) await deps.challenge.check(checked.challengeUrl)
      return SETTINGS.change({ database, audit }, by, () => checked)
    },

    /** For visitors without a session. */
    async view(): Promise<SignUpView> {
      const { mode, domains, terms } = await settings()
      return { mode, domains: mode === 'domain' ? domains : [], terms }
    },

    /**
     * Sends a mail with a link; if the address already has a login, a mail that says so. `challenge` is for the
     * operator's hook.
     */
    async request(email: string, visit: SessionUse, challenge?: string): Promise<void> {
      const now = await settings()
      const box = requireMailbox(email)
      requireOpen(now, box)
      await asked.brakeNetwork(visit)
      // Before the mailbox is counted: it may belong to somebody else than whoever fails the challenge.
      if (now.challengeUrl !== null) await deps.challenge.ask(now.challengeUrl, { email, ip: visit.ip, challenge })
      await asked.brakeMailbox(box)
      asked.later(async () => {
        const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
        return known
          ? asked.send(email, KNOWN, { by: BY_VISITOR, hours: PASSWORD_HOURS })
          : asked.send(email, CONFIRM, { by: BY_VISITOR, hours: CONFIRM_HOURS })
      })
    },

    /** Returns the link, which is also sent if there is a mail server. Only operators may, so it proves the mailbox. */
    async invite(email: string, by: By): Promise<string> {
      requireMailbox(email)
      const { mode } = await settings()
      if (mode === 'off') throw new Fault('conflict', { message: 'Sign-up is off. Set it to "invitation" first.' })
      const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
      if (known) throw new Fault('conflict', { message: 'Somebody has this email address already.' })
      return asked.send(email, INVITATION, { by: by.actor, hours: INVITE_HOURS }, (tx) =>
        audit.write(tx, by, {
          action: 'sign-up.invite',
          object: 'sign-up',
          detail: { email },
          before: {},
          after: { email },
        }),
      )
    },

    async pending(): Promise<SignUpInvite[]> {
      return (await database.query(PENDING)).map((row) => asView(signUpInvite, row))
    },

    async withdraw(invite: string, by: By): Promise<void> {
      await database.transaction(async (tx) => {
        const [gone] = await tx.query<{ email: string }>(WITHDRAW, [invite])
        if (!gone) throw new Fault('not_found', { message: 'There is no such invitation; it may have been used.' })
        await audit.write(tx, by, {
          action: 'invite.withdraw',
          object: 'sign-up',
          detail: { email: gone.email },
          before: { email: gone.email },
          after: {},
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
      const { account, session } = await database.transaction(async (tx) => {
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
        return { account, session }
      })
      await deps.accounts.created(account)
      return { session, email }
    },

    previews: (): MailPreview[] =>
      Object.entries(ALL_MAILS).map(([name, mail]) => {
        const { subject, text } = asked.render(mail, exampleUrl(publicUrl()))
        return { name, about: mail.about, subject, text }
      }),
    previewHtml(name: string): string {
      const mail = Object.hasOwn(ALL_MAILS, name) ? ALL_MAILS[name] : undefined
      if (!mail) throw new Fault('not_found', { message: 'There is no such mail.' })
      return asked.render(mail, exampleUrl(publicUrl())).html
    },
  }

  /** A mailbox gets starting credits once, even if its person was deleted meanwhile. */
  async function openAccount(
    tx: Queryable,
    box: Mailbox,
    { name, settings: now, by }: { name: string; settings: SignUpSettings; by: By },
  ): Promise<string> {
    const credits = parseCredits(now.credits) ?? 0n
    // Before the account is created, which takes the lock of the audit log last: two sign-ups with one mailbox wait for
    // each other here.
    const [first] = credits > 0n ? await tx.query(TAKE_CREDITS, [sign(deps.mailboxKey, box.key)]) : []
    const given = first ? { credits, note: 'starting credits' } : {}
    return deps.accounts.createIn(tx, { name, limits: now.limits, region: now.region ?? undefined, ...given }, by)
  }
}

const exampleUrl = (base: string) => signUpLinkOf(base, 'example')
const closed = () =>
  new Fault('access_denied', { message: 'Nobody can sign up here by themselves. Ask for an invitation.' })

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
