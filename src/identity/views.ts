// People, their memberships and their sessions.
import * as z from 'zod'
import { time } from '../kernel/view.ts'

export const role = z.enum(['owner', 'member'])
export type Role = z.infer<typeof role>

export const memberView = z.object({
  userId: z.string(),
  email: z.string(),
  role,
  createdAt: time,
  lastSeenAt: time.nullable(),
})
export type MemberView = z.infer<typeof memberView>

/** What a link is about: joining an account, or choosing a new password. */
export const inviteView = z.object({
  kind: z.enum(['member', 'password']),
  /** The account's name; empty on a link for a new password. */
  account: z.string(),
  email: z.string(),
  role: role.nullable(),
})
export type InviteView = z.infer<typeof inviteView>

/** Who is signed in, and where they belong. */
export const whoView = z.object({
  user: z.object({ id: z.string(), email: z.string(), role: z.enum(['operator', 'user']) }),
  accounts: z.array(z.object({ id: z.string(), name: z.string(), role })),
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

/** Whether the gateway still waits for its operator. */
export const setupView = z.object({ open: z.boolean() })
export type SetupView = z.infer<typeof setupView>

/** To be handed on to whoever is to open it. */
export const linkView = z.object({ link: z.string() })
export type LinkView = z.infer<typeof linkView>
