// Mails with a link that people ask for before they are signed in, such as the one with which somebody who forgot their
// password chooses a new one. A password can be chosen only through the mailbox. Neither the answer nor its time
// depends on whether an address is known here.
import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { Database, Queryable } from '../database/database.ts'
import { readSetting } from '../database/setting.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import { networkOf } from '../upstream/address.ts'
import type { Attempts } from './attempts.ts'
import type { Branding } from './branding/branding.ts'
import { type Mail, renderMail } from './branding/mail.ts'
import { type Mailbox, readMailbox } from './mailbox.ts'
import { INVITE } from './members.ts'
import { digestOfToken, FIND_PERSON, inviteLink, newToken, type PersonRow, signUpLinkOf } from './people.ts'
import { PERSON_MAILS, type PersonMailKind, type PersonMails } from './person-mails.ts'
import type { SessionUse } from './sessions.ts'

export type AskedMails = ReturnType<typeof createAskedMails>

interface AskedMailDeps {
  readonly database: Database
  readonly world: World
  readonly log: Log
  readonly attempts: Attempts
  readonly branding: Pick<Branding, 'get'>
  readonly publicUrl: () => string
  /** Undefined: no mail server is configured. */
  readonly mails: PersonMails | undefined
}

/** What its link does, and what it says. */
export interface AskedMail extends PersonMailKind {
  readonly name: string
  readonly kind: 'sign-up' | 'password'
}

const HOUR_SECONDS = 3_600
/** Mails to one mailbox, however it is spelled. */
const PER_MAILBOX_PER_HOUR = 3
export const PER_NETWORK_PER_HOUR = 10
/** The settings of sign-up may allow a network another number. */
const allowed = z.object({ perNetworkPerHour: z.number().int().default(PER_NETWORK_PER_HOUR) })
export const PASSWORD_HOURS = 1
/** Mails whose rows are being written. Each takes a few milliseconds. */
const WRITING_MAX = 100
/** The creator of links that visitors requested. */
export const BY_VISITOR = 'sign-up'
const RESET: AskedMail = { name: 'reset', kind: 'password', ...PERSON_MAILS.reset }

export function createAskedMails({ database, world, log, attempts, branding, publicUrl, mails }: AskedMailDeps) {
  const writing = new Set<Promise<void>>()

  function render({ make }: PersonMailKind, url: string): Mail {
    const now = branding.get()
    return renderMail(make({ name: now.name, url }), now, publicUrl())
  }

  /** Stores a link and its mail, and `also` in the same transaction. Returns the link. */
  async function send(
    to: string,
    asked: AskedMail,
    made: { readonly by: string; readonly hours: number },
    also?: (tx: Queryable) => Promise<void>,
  ): Promise<string> {
    const token = newToken(world)
    const link = (asked.kind === 'sign-up' ? signUpLinkOf : inviteLink)(publicUrl(), token)
    await database.transaction(async (tx) => {
      await tx.query(INVITE, [digestOfToken(token), asked.kind, null, to, null, made.by, made.hours, true])
      await mails?.add(tx, { ...render(asked, link), to, event: `person.${asked.name}`, about: BY_VISITOR })
      await also?.(tx)
    })
    mails?.wake()
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
  async function brakeNetwork({ ip }: SessionUse) {
    if (!mails) throw noMails()
    const { perNetworkPerHour: max } = allowed.parse(JSON.parse((await readSetting(database, 'sign-up')) ?? '{}'))
    await attempts.brake([{ subject: `mails:${networkOf(ip)}`, max, perSeconds: HOUR_SECONDS }])
  }

  function brakeMailbox({ key }: Mailbox) {
    const subject = `mailbox:${digestOf(key)}`
    return attempts.brake([{ subject, max: PER_MAILBOX_PER_HOUR, perSeconds: HOUR_SECONDS }])
  }

  return {
    render,
    send,
    later,
    brakeNetwork,
    brakeMailbox,
    byMail: mails !== undefined,
    /** Sends a mail with a link to choose a new password, if a person has this address. */
    async requestPassword(email: string, visit: SessionUse): Promise<void> {
      const box = requireMailbox(email)
      await brakeNetwork(visit)
      await brakeMailbox(box)
      later(async () => {
        const [known] = await database.query<PersonRow>(FIND_PERSON, [email])
        if (known) await send(email, RESET, { by: BY_VISITOR, hours: PASSWORD_HOURS })
      })
    },
    /** Waits until all requested mails are stored. */
    idle: async (): Promise<void> => void (await Promise.all(writing)),
  }
}

export const digestOf = (text: string) => createHash('sha256').update(text).digest('base64url')
export const noMails = () =>
  new Fault('conflict', { message: 'No mail server is set up: TOLLGATE_SMTP_URL and TOLLGATE_MAIL_FROM.' })

export function requireMailbox(email: string): Mailbox {
  const box = readMailbox(email)
  if (!box) throw invalid('email: must be the address of one mailbox.', 'email')
  return box
}
