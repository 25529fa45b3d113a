// The mails of sign-up and of plans, and all mails to people as operators look at them.
import type { MailContent } from '../../identity/branding/mail.ts'
import { type MailFacts, NOT_YOU, PERSON_MAILS, type PersonMailKind } from '../../identity/person-mails.ts'

interface PlanFacts extends MailFacts {
  /** The plan, its account, why it is not paid, and until when it can be. */
  readonly plan?: { readonly name: string; readonly account: string; readonly reason: string; readonly until: string }
}

const PLAN = { name: 'Pro', account: 'Acme', reason: 'Your card was declined.', until: '2026-12-05' }

export const SIGN_UP_MAILS = {
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
  invitation: {
    about: 'An operator invites somebody to open an account.',
    make: ({ name, url }) => ({
      subject: `You are invited to ${name}`,
      paragraphs: [`You are invited to open an account at ${name}.`],
      action: { label: 'Open your account', url },
      notes: ['The link works once, for seven days.'],
    }),
  },
} as const satisfies Record<string, PersonMailKind>

export const PLAN_MAILS = {
  planUnpaid: {
    about: 'To the owners: the next month of the plan could not be charged.',
    make: ({ name, url, plan = PLAN }: PlanFacts): MailContent => ({
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
    make: ({ name, url, plan = PLAN }: PlanFacts): MailContent => ({
      subject: `${plan.name} at ${name} has ended`,
      paragraphs: [
        `The plan ${plan.name} of the account "${plan.account}" has ended, because its next month was not paid: ${plan.reason}`,
        'Credits that were bought otherwise stay. You can choose a plan again at any time.',
      ],
      action: { label: 'Choose a plan', url },
    }),
  },
} as const satisfies Record<string, PersonMailKind>

const { confirm, known, invitation } = SIGN_UP_MAILS
const { member, operator, reset, deleted } = PERSON_MAILS
export const ALL_MAILS: Readonly<Record<string, PersonMailKind>> = {
  confirm,
  known,
  member,
  operator,
  invitation,
  reset,
  deleted,
  ...PLAN_MAILS,
}
