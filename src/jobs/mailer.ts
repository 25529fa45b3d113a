// Sends the gateway's mails over SMTP.
import type { Branding } from '../branding/branding.ts'
import type { World } from '../kernel/world.ts'
import { createMinuteBudget } from '../upstream/budget.ts'
import { spend } from '../upstream/guard.ts'

interface OutgoingMail {
  readonly account: string
  readonly id: string
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string | undefined
}

export interface Mailer {
  /** Sends for an account, or for the gateway if `account` is empty. Rejects with rate_limited when the account exceeds its limit. */
  send(mail: OutgoingMail): Promise<void>
}

const MAIL_MS = 15_000
/** Mailboxes are not verified, and the mail server is the operator's: the limit for each account is low. */
const MAILS_PER_MINUTE = 5

/** Opens a connection for each mail, since mails are few. The library is imported only here: it costs 65 ms and 12 MB, and most setups send no mail. */
export function createMailer(url: string, from: string, world: World, branding: Pick<Branding, 'get'>): Mailer {
  const wait = { connectionTimeout: MAIL_MS, greetingTimeout: MAIL_MS, socketTimeout: MAIL_MS }
  const transport = import('nodemailer').then(({ createTransport }) => createTransport({ url, ...wait }))
  const budget = createMinuteBudget(world, MAILS_PER_MINUTE)
  // A fixed message id lets mailboxes drop duplicates.
  const domain = /@([\w.-]+)/.exec(from)?.[1] ?? 'tollgate'
  return {
    async send({ account, id, to, subject, text, html }) {
      if (account !== '') spend(budget, account, 1, (max) => `${max} mails sent`)
      const messageId = `<${id}@${domain}>`
      // As an object, an address is one mailbox, whatever characters it has.
      await (await transport).sendMail({
        ...{ from: branding.get().sender ?? from, to: { name: '', address: to }, subject, text, messageId },
        ...(html === undefined ? {} : { html }),
        ...{ disableFileAccess: true, disableUrlAccess: true },
      })
    },
  }
}
