// The mails about somebody's own login and account.
import type { MailContent } from './branding/mail.ts'

interface Facts {
  /** Of the product. */
  readonly name: string
  readonly url: string
  /** Of those about a plan: the plan, its account, why it is not paid, and until when it can be. */
  readonly plan?: { readonly name: string; readonly account: string; readonly reason: string; readonly until: string }
}

const PLAN = { name: 'Pro', account: 'Acme', reason: 'Your card was declined.', until: '2026-12-05' }

const NOT_YOU = 'If you did not ask for this, you need not do anything.'

export const PERSON_MAILS = {
  confirm: {
    about: 'After a sign-up: confirms the address.',
    make: ({ name, url }): MailContent => ({
      subject: `Confirm your email address for ${name}`,
      paragraphs: [`You asked for an account at ${name}. Confirm that this is your address, and choose a password.`],
      action: { label: 'Confirm and choose a password', url },
      notes: ['The link works once, for 24 hours, in any browser.', NOT_YOU],
    }),
  },
  known: {
    about: 'After a sign-up with the address of somebody who has a login.',
    make: ({ name, url }) => ({
      subject: `You already have a login at ${name}`,
      paragraphs: [
        `Somebody, probably you, asked for a new account at ${name} with this address. You have a login already: sign in with it. If you forgot the password, choose a new one.`,
      ],
      action: { label: 'Choose a new password', url },
      notes: ['The link works once, for one hour.', NOT_YOU],
    }),
  },
  member: {
    about: 'A member of an account invites somebody to it.',
    make: ({ name, url }) => ({
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
  invitation: {
    about: 'An operator invites somebody to open an account.',
    make: ({ name, url }) => ({
      subject: `You are invited to ${name}`,
      paragraphs: [`You are invited to open an account at ${name}.`],
      action: { label: 'Open your account', url },
      notes: ['The link works once, for seven days.'],
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
  planUnpaid: {
    about: 'To the owners: the next month of the plan could not be charged.',
    make: ({ name, url, plan = PLAN }) => ({
      subject: `${plan.name} at ${name} could not be renewed`,
      paragraphs: [
        `The next month of the plan ${plan.name} of the account "${plan.account}" could not be charged: ${plan.reason}`,
        `A saved card is charged again each day. If the month is not paid by ${plan.until}, the plan ends.`,
      ],
      action: { label: 'Pay or change the plan', url },
    }),
  },
  planEnded: {
    about: 'To the owners: the plan has ended because it was not paid.',
    make: ({ name, url, plan = PLAN }) => ({
      subject: `${plan.name} at ${name} has ended`,
      paragraphs: [
        `The plan ${plan.name} of the account "${plan.account}" has ended, because its next month was not paid: ${plan.reason}`,
        'Credits that were bought otherwise stay. You can choose a plan again at any time.',
      ],
      action: { label: 'Choose a plan', url },
    }),
  },
} as const satisfies Record<string, { about: string; make: (facts: Facts) => MailContent }>

export type PersonMailName = keyof typeof PERSON_MAILS
