// Sign-up as the API takes and shows it.
import * as z from 'zod'
import { credits, time } from '../../../kernel/view.ts'
import { limitsView } from '../../../meter/limits.ts'

/** `invitation`: people whom an operator invites; `domain`: people with a mailbox at one of these domains. */
const mode = z.enum(['off', 'invitation', 'domain', 'open'])

/** The terms that people must accept when they sign up. */
const terms = z.object({ version: z.string(), url: z.string() })

export const signUpSettings = z.object({
  mode,
  /** Of mode `domain`, each with all names below it. */
  domains: z.array(z.string()),
  /** Addresses of these domains and their subdomains cannot sign up. */
  blockedDomains: z.array(z.string()),
  /** Starting credits of a new account, once per mailbox. */
  credits,
  /** Of each new account. */
  limits: limitsView,
  terms: terms.nullable(),
  /** Mails per hour that can be requested from one network. */
  perNetworkPerHour: z.number().int(),
  /** Finished sign-ups per day with mailboxes of one domain. Large public mail hosts are exempt. */
  perDomainPerDay: z.number().int(),
  /** This address is asked whether a request for a sign-up is accepted. Null: nobody is asked. */
  challengeUrl: z.string().nullable(),
  /** Of the ledger that gets the accounts. Null: the one with most room. */
  region: z.string().nullable(),
})
export type SignUpSettings = z.infer<typeof signUpSettings>

export const signUpSettingsView = signUpSettings.extend({
  /** Without a mail server the modes `domain` and `open` are rejected. */
  mailServer: z.boolean(),
})
export type SignUpSettingsView = z.infer<typeof signUpSettingsView>

/** The settings that visitors see. */
export const signUpView = z.object({ mode, domains: z.array(z.string()), terms: terms.nullable() })
export type SignUpView = z.infer<typeof signUpView>

/** The address of a link, and the terms to accept. */
export const signUpLink = z.object({ email: z.string(), terms: terms.nullable() })
export type SignUpLink = z.infer<typeof signUpLink>

export const signUpInvite = z.object({ id: z.string(), email: z.string(), createdAt: time, expiresAt: time })
export type SignUpInvite = z.infer<typeof signUpInvite>

/** A mail with example values. */
export const mailPreview = z.object({ name: z.string(), about: z.string(), subject: z.string(), text: z.string() })
export type MailPreview = z.infer<typeof mailPreview>
