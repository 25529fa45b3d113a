// People, their memberships and their sessions.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'
import { creditWorth } from '../reports/views.ts'
import { ACCOUNT_ROLES, OPERATOR_ROLES } from './roles.ts'

export const role = z.enum(ACCOUNT_ROLES)
export const operatorRole = z.enum(OPERATOR_ROLES)

export const memberView = z.object({
  userId: z.string(),
  email: z.string(),
  role,
  createdAt: time,
  lastSeenAt: time.nullable(),
})
export type MemberView = z.infer<typeof memberView>

/** How much of a person's ended when they left. */
export const endedView = z.object({
  keys: z.int(),
  /** Keys that another member has now. */
  handedOver: z.int(),
  /** Programs that acted for the person (OAuth). */
  programs: z.int(),
  /** Tokens of the operator API. */
  tokens: z.int(),
  /** Unused invitations that they made or were sent. */
  links: z.int(),
})
export type EndedView = z.infer<typeof endedView>

/** The purpose of a link: joining an account, becoming an operator, or choosing a new password. */
export const inviteView = z.object({
  kind: z.enum(['member', 'operator', 'password']),
  /** Of a link to choose a new password: the person's other ways in. */
  others: z.array(z.string()),
  /** The account's name; empty if the link is not about an account. */
  account: z.string(),
  email: z.string(),
  /** Null: it is for a new password. */
  role: z.enum([...OPERATOR_ROLES, ...ACCOUNT_ROLES]).nullable(),
})
export type InviteView = z.infer<typeof inviteView>

/** A link that has not been used yet. */
export const pendingInvite = z.object({
  id: z.string(),
  email: z.string(),
  role: z.enum([...OPERATOR_ROLES, ...ACCOUNT_ROLES]),
  createdAt: time,
  expiresAt: time,
})
export type PendingInvite = z.infer<typeof pendingInvite>

export const operatorView = memberView.extend({ role: operatorRole })
export type OperatorView = z.infer<typeof operatorView>

/** A token of the operator API. */
export const tokenView = z.object({
  id: z.string(),
  name: z.string(),
  last4: z.string(),
  /** Rights such as `keys:read`, all of a resource such as `keys`, or `*`. */
  scopes: z.array(z.string()),
  ipRanges: z.array(z.string()).nullable(),
  expiresAt: time.nullable(),
  createdBy: z.string(),
  createdAt: time,
  lastUsedAt: time.nullable(),
  lastIp: z.string().nullable(),
  revokedAt: time.nullable(),
  /** The gateway was started with it. */
  isFirst: z.boolean(),
})
export type TokenView = z.infer<typeof tokenView>

/** The token itself is shown only here. */
export const newToken = tokenView.extend({ token: z.string() })
export type NewToken = z.infer<typeof newToken>

/** The signed-in person and their accounts. */
export const whoView = z.object({
  user: z.object({ id: z.string(), email: z.string(), role: z.enum([...OPERATOR_ROLES, 'user']) }),
  accounts: z.array(z.object({ id: z.string(), name: z.string(), role })),
  /** What a credit is worth; null: not configured. */
  worth: creditWorth.nullable(),
  /** Whether credits are sold here, and whether there are codes to redeem. The console hides the pages otherwise. */
  salesEnabled: z.boolean(),
  codesEnabled: z.boolean(),
  /** The names of the extensions that are switched on. The console has no pages of others. */
  extensions: z.array(z.string()),
})
export type WhoView = z.infer<typeof whoView>
/** What the console shows only if it is there. */
export type Offered = Pick<WhoView, 'salesEnabled' | 'codesEnabled' | 'extensions'>

export const sessionView = z.object({
  id: z.string(),
  createdAt: time,
  lastSeenAt: time,
  ip: z.string(),
  userAgent: z.string(),
  /** How the person signed in; `link`: by a login link from an operator. */
  method: z.enum(['password', 'passkey', 'sso', 'link']),
  /** A second factor was part of it. */
  secondFactor: z.boolean(),
  current: z.boolean(),
})
export type SessionView = z.infer<typeof sessionView>

/** What the login page offers. */
export const setupView = z.object({
  /** The gateway has no operator yet. */
  open: z.boolean(),
  /** People can request a mail to choose a new password. */
  passwordByMail: z.boolean(),
})
export type SetupView = z.infer<typeof setupView>

/** To be passed on to the invited person. */
export const linkView = z.object({ link: z.string() })
export type LinkView = z.infer<typeof linkView>

/** A named entry of a person; `query` is the query string of a filtered page, or a prompt as JSON. */
export const savedView = z.object({ name: z.string(), query: z.string() })
export type SavedView = z.infer<typeof savedView>

const anyRole = z.enum([...OPERATOR_ROLES, ...ACCOUNT_ROLES])

/** Rules for all logins. */
export const loginPolicy = z.strictObject({
  /** People with one of these roles need a second factor. */
  secondFactorRoles: z.array(anyRole).default([]),
})
export type LoginPolicy = z.output<typeof loginPolicy>

/** A second factor: a passkey, or an authenticator app. */
const factorView = z.object({
  id: z.string(),
  kind: z.enum(['passkey', 'totp']),
  name: z.string(),
  createdAt: time,
  lastUsedAt: time.nullable(),
})
export type FactorView = z.infer<typeof factorView>

/** A person's login methods. */
export const securityView = z.object({
  hasPassword: z.boolean(),
  factors: z.array(factorView),
  /** How many recovery codes are left. */
  recoveryCodes: count,
  /** A role of the person requires a second factor. */
  factorRequired: z.boolean(),
  /** Passkeys need an address with a host name. */
  passkeysPossible: z.boolean(),
  identities: z.array(
    z.object({
      id: z.string(),
      /** Null: the provider was removed. */
      provider: z.string().nullable(),
      name: z.string(),
      email: z.string().nullable(),
      createdAt: time,
      lastUsedAt: time,
    }),
  ),
})
export type SecurityView = z.infer<typeof securityView>

/** Shown once. */
export const totpSecret = z.object({ secret: z.string(), uri: z.string() })
export type TotpSecret = z.infer<typeof totpSecret>

/** Shown once; null: there are codes already. */
export const recoveryCodes = z.object({ codes: z.array(z.string()).nullable() })
export type RecoveryCodes = z.infer<typeof recoveryCodes>

/** The state of a login. */
export const loginStep = z.object({
  signedIn: z.boolean(),
  /**
   * What is still needed: one of these second factors, or the password of the person to whom the login is to be
   * connected.
   */
  needs: z.array(z.enum(['passkey', 'totp', 'recovery', 'password', 'sso'])),
})
export type LoginStep = z.infer<typeof loginStep>

/** The same answer for known and unknown addresses. */
export const mailAsked = z.object({ sent: z.literal(true) })
