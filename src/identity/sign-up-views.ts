// Sign-up as the API takes and shows it.
import * as z from 'zod'
import { credits, time } from '../kernel/view.ts'
import { limitsView } from '../meter/limits.ts'

/** `invitation`: whoever an operator invites; `domain`: whoever has a mailbox at one of these domains. */
const mode = z.enum(['off', 'invitation', 'domain', 'open'])

/** What people must accept; another version is shown to those who come after it. */
const terms = z.object({ version: z.string(), url: z.string() })

export const signUpSettings = z.object({
  mode,
  /** Of mode `domain`, each with all names below it. */
  domains: z.array(z.string()),
  /** Nobody signs up with an address at one of these, or below one. */
  refusedDomains: z.array(z.string()),
  /** What a new account begins with, once for each mailbox. */
  credits,
  /** Of each new account. */
  limits: limitsView,
  terms: terms.nullable(),
  /** Mails that one network address may ask for in an hour. */
  perNetworkPerHour: z.number().int(),
  /** Mails that may be asked for in a day for mailboxes of one domain. */
  perDomainPerDay: z.number().int(),
})
export type SignUpSettings = z.infer<typeof signUpSettings>

/** What a visitor has to know. */
export const signUpView = z.object({
  mode,
  domains: z.array(z.string()),
  terms: terms.nullable(),
  /** Whether a mail with a link to choose a new password can be asked for. */
  passwordByMail: z.boolean(),
})
export type SignUpView = z.infer<typeof signUpView>

/** Whose link it is. */
export const signUpLink = z.object({ email: z.string(), terms: terms.nullable() })
export type SignUpLink = z.infer<typeof signUpLink>

/** The same for every address, known or not. */
export const mailAsked = z.object({ sent: z.literal(true) })

export const signUpInvite = z.object({ id: z.string(), email: z.string(), createdAt: time, expiresAt: time })
export type SignUpInvite = z.infer<typeof signUpInvite>

/** A mail as people get it, made with an example. */
export const mailPreview = z.object({
  name: z.string(),
  about: z.string(),
  subject: z.string(),
  text: z.string(),
})
export type MailPreview = z.infer<typeof mailPreview>
