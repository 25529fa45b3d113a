// The mails about somebody's own login and account.
import type { Queryable } from '../database/database.ts'
import type { Mail, MailContent } from './branding/mail.ts'

export interface MailFacts {
  /** Of the product. */
  readonly name: string
  readonly url: string
}

export const NOT_YOU = 'If you did not ask for this, you need not do anything.'

export interface PersonMailKind {
  readonly about: string
  readonly make: (facts: MailFacts) => MailContent
}

export const PERSON_MAILS = {
  member: {
    about: 'A member of an account invites somebody to it.',
    make: ({ name, url }): MailContent => ({
      subject: `You are invited to an account at ${name}`,
      paragraphs: [`Somebody invites you to an account at ${name}. Nothing happens unless you open the link.`],
      action: { label: 'See the invitation', url },
      notes: ['The link works once, for seven days. Do not pass it on.', NOT_YOU],
    }),
  },
  operator: {
    about: 'An operator invites somebody to run the gateway.',
    make: ({ name, url }) => ({
      subject: `You are invited to run ${name}`,
      paragraphs: [`You are invited to join the people who run ${name}.`],
      action: { label: 'See the invitation', url },
      notes: ['The link works once, for seven days. Do not pass it on.', NOT_YOU],
    }),
  },
  reset: {
    about: 'After "Forgot your password?".',
    make: ({ name, url }) => ({
      subject: `Choose a new password for ${name}`,
      paragraphs: [`Somebody asked for a new password for your login at ${name}.`],
      action: { label: 'Choose a new password', url },
      notes: ['The link works once, for one hour. Your old password works until then.', NOT_YOU],
    }),
  },
  deleted: {
    about: 'After somebody deleted their own login.',
    make: ({ name }) => ({
      subject: `Your login at ${name} was deleted`,
      paragraphs: [
        `You deleted your login at ${name}. Your sessions and keys have ended. Records of money are kept as the law requires.`,
      ],
    }),
  },
} as const satisfies Record<string, PersonMailKind>

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
