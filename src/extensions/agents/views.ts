// What the answers of the console's API about programs look like.
import * as z from 'zod'
import { count, credits, time } from '../../kernel/view.ts'
import type { OfferedModel } from './setup/programs.ts'

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

/** `listed`: agents see it. All other states say why they do not. */
const TOOL_STATES = ['listed', 'changed', 'gone', 'unpriced', 'off', 'not-chosen', 'unusable'] as const

const foreignTool = z.object({
  /** Its name at the server. */
  tool: z.string(),
  /** Its id in the catalog; null: it was not chosen. */
  id: z.string().nullable(),
  state: z.enum(TOOL_STATES),
  title: z.string().nullable(),
  /** The server's text. */
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
  outputSchema: z.record(z.string(), z.unknown()).nullable(),
  readOnly: z.boolean(),
  /** In the catalog's form. */
  pricing: z.unknown(),
  resultsMax: count.nullable(),
  /** The digest of the definition that the server lists now; null: it lists none that can be sold. */
  digest: z.string().nullable(),
  /** The differences between the listed and the approved definition. */
  changes: z.array(z.object({ field: z.string(), before: z.string().nullable(), after: z.string().nullable() })),
  /** Why it cannot be sold. */
  problem: z.string().nullable(),
})
export type ForeignTool = z.infer<typeof foreignTool>

/** The sign-ins at a server; null: there is none, or the server's address has changed since. */
export const toolConnectionView = z.object({
  server: z.string(),
  title: z.string().nullable(),
  url: z.string(),
  /** Of the person who sends the request. */
  mySignInAt: time.nullable(),
  /** For keys without a member; of the gateway itself: for listing tools. */
  sharedSignInAt: time.nullable(),
})
export type ToolConnectionView = z.infer<typeof toolConnectionView>

export const toolServerView = z.object({
  name: z.string(),
  title: z.string().nullable(),
  url: z.string(),
  vendor: z.string(),
  credential: z.object({ name: z.string(), present: z.boolean() }).nullable(),
  /** Each person signs in at the server; otherwise all callers share the vendor's credential. */
  perUserSignIn: z.boolean(),
  timeoutMs: count,
  concurrencyMax: count,
  resultBytesMax: count,
  /** When its list of tools was last requested, and when it last answered. */
  lastRequestedAt: time.nullable(),
  lastAnsweredAt: time.nullable(),
  /** Why the last request failed. */
  error: z.string().nullable(),
  /** Calls of this process since its start, and the last error. */
  calls: z.object({ requests: count, errors: count, lastError: z.string().nullable() }),
  tools: z.array(foreignTool),
})
export type ToolServerView = z.infer<typeof toolServerView>

const figures = {
  calls: z.number(),
  failed: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  charged: z.string(),
  firstAt: z.string(),
  lastAt: z.string(),
}
const part = z.object({
  /** Null: the agent with which the run began. */
  agent: z.string().nullable(),
  /** Null: started by the agent with which the run began, or not known. */
  parent: z.string().nullable(),
  ...figures,
})
const runCall = z.object({
  requestId: z.string(),
  agent: z.string().nullable(),
  at: z.string(),
  /** A model's answer, or a tool that the agent called. */
  kind: z.enum(['call', 'tool']),
  product: z.string(),
  endpoint: z.string(),
  status: z.number(),
  charged: z.string(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  durationMs: z.number(),
})
export const runView = z.object({
  run: z.string(),
  ...figures,
  models: z.array(z.string()),
  parts: z.array(part),
  /** The oldest first, 500 of them; `next` continues. */
  items: z.array(runCall),
  next: z.string().nullable(),
})
export type RunView = z.output<typeof runView>
