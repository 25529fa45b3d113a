// Mails of the gateway, by SMTP.
import type { World } from '../kernel/world.ts'
import { createMinuteBudget } from '../upstream/budget.ts'
import { spend } from '../upstream/guard.ts'

export interface Mailer {
  /** In the name of an account, or with an empty one of the gateway. Rejects with rate_limited when the account has had its share. */
  send(mail: { account: string; id: string; to: string; subject: string; text: string }): Promise<void>
}

const MAIL_MS = 15_000
/** Nobody confirms that a mailbox is theirs, and the mail server is the operator's: few for each account. */
const MAILS_PER_MINUTE = 5

/** Connects anew for each mail: there are few. The library takes a start 65 ms and 12 MB, and most have no mail server. */
export function createMailer(url: string, from: string, world: World): Mailer {
  const wait = { connectionTimeout: MAIL_MS, greetingTimeout: MAIL_MS, socketTimeout: MAIL_MS }
  const transport = import('nodemailer').then(({ createTransport }) => createTransport({ url, ...wait }))
  const budget = createMinuteBudget(world, MAILS_PER_MINUTE)
  // Mailboxes that get the same mail twice show it once.
  const domain = /@([\w.-]+)/.exec(from)?.[1] ?? 'tollgate'
  return {
    async send({ account, id, to, subject, text }) {
      if (account !== '') spend(budget, account, 1, (max) => `${max} mails sent`)
      const messageId = `<${id}@${domain}>`
      await (await transport).sendMail({
        ...{ from, to, subject, text, messageId, disableFileAccess: true, disableUrlAccess: true },
      })
    },
  }
}
