// What the answers of the console's API about programs look like.
import * as z from 'zod'
import { credits, time } from '../../kernel/view.ts'
import type { OfferedModel } from '../../operator/agent-setup.ts'

/** A program that asks to act for the person. */
export const consentView = z.object({
  client: z.string(),
  /** The host that vouches for the name; null: nobody does. */
  vouchedBy: z.string().nullable(),
  redirectsTo: z.string(),
})
export type ConsentView = z.infer<typeof consentView>

/** A program that waits for a person to type its code. */
export const deviceView = z.object({
  client: z.string(),
  /** The network address at which it waits; null: not known. */
  askedFrom: z.string().nullable(),
  askedAt: z.string(),
  /** `api`: it may call models and every other endpoint; `mcp`: the tools. */
  scopes: z.array(z.string()),
})
export type DeviceView = z.infer<typeof deviceView>

const model = z.string().nullable()
const rules = {
  defaultModel: model,
  smallModel: model,
  /** The most that one call may cost; null: no bound. */
  callMax: credits.nullable(),
}

export const agentSettings = z.object({
  /** The id of a team or project; `account`: everybody who is in none with settings. */
  scope: z.string(),
  /** Null: every model. */
  models: z.array(z.string()).nullable(),
  ...rules,
})
export type AgentSettings = z.output<typeof agentSettings>

/** Where a program reads what it may do, with its token. */
export const SETTINGS_PATH = '/agent-settings'

/** What a program is told about itself. */
export interface OwnSettings extends Pick<AgentSettings, keyof typeof rules> {
  readonly models: readonly OfferedModel[]
  readonly budgets: readonly object[]
}

export const budgetProposal = z.object({
  id: z.string(),
  budgetId: z.string(),
  /** The maximum when it was proposed, and the one that is proposed. */
  was: z.string(),
  max: z.string(),
  reason: z.string(),
  proposedBy: z.string(),
  createdAt: time,
})
export type BudgetProposal = z.output<typeof budgetProposal>

export const programView = z.object({
  /** The key behind its tokens: whoever revokes it ends the sign-in. */
  keyId: z.string(),
  program: z.string(),
  /** Who signed it in; null: a person who is gone. */
  userId: z.string().nullable(),
  email: z.string().nullable(),
  teamId: z.string().nullable(),
  lastUsedAt: time.nullable(),
  createdAt: time,
  /** In the last 30 days. */
  charged: credits,
})
export type Program = z.output<typeof programView>
