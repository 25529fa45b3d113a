// People, their memberships and their sessions.
import * as z from 'zod'
import { time } from '../kernel/view.ts'
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

/** The purpose of a link: joining an account, becoming an operator, or choosing a new password. */
export const inviteView = z.object({
  kind: z.enum(['member', 'operator', 'password']),
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

/** The signed-in person and their accounts. */
export const whoView = z.object({
  user: z.object({ id: z.string(), email: z.string(), role: z.enum([...OPERATOR_ROLES, 'user']) }),
  accounts: z.array(z.object({ id: z.string(), name: z.string(), role })),
  /** What a credit is worth; null: not configured. */
  worth: creditWorth.nullable(),
})
export type WhoView = z.infer<typeof whoView>

export const sessionView = z.object({
  id: z.string(),
  createdAt: time,
  lastSeenAt: time,
  ip: z.string(),
  userAgent: z.string(),
  current: z.boolean(),
})
export type SessionView = z.infer<typeof sessionView>

/** Whether the gateway has no operator yet. */
export const setupView = z.object({ open: z.boolean() })
export type SetupView = z.infer<typeof setupView>

/** To be passed on to the invited person. */
export const linkView = z.object({ link: z.string() })
export type LinkView = z.infer<typeof linkView>

/** A named entry of a person; `query` is the query string of a filtered page, or a prompt as JSON. */
export const savedView = z.object({ name: z.string(), query: z.string() })
export type SavedView = z.infer<typeof savedView>
