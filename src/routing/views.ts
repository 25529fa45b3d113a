// The shapes of the API's answers about vendors.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'

const step = z.object({
  /** `check`: a free request, for vendors whose smallest call would be expensive. */
  what: z.enum(['models', 'call', 'check']),
  method: z.string(),
  /** The URL without the credential. */
  address: z.string(),
  ok: z.boolean(),
  /** Null: the vendor did not answer. */
  status: count.nullable(),
  latencyMs: count,
  message: z.string(),
  model: z.string().nullable(),
  /** The vendor's own count. */
  inputTokens: count.nullable(),
  outputTokens: count.nullable(),
})
export type TestStep = z.infer<typeof step>

export const vendorTest = z.object({
  /** A real call succeeded, or, where no small call exists, the vendor accepted the credential. */
  ok: z.boolean(),
  status: count.nullable(),
  latencyMs: count,
  /** The cause if it is not ok. */
  message: z.string(),
  steps: z.array(step),
  /** The model names as the vendor lists them. */
  models: z.array(z.string()),
  /** The address that works, if the given one does not. */
  addressSuggested: z.string().nullable(),
})
export type VendorTest = z.infer<typeof vendorTest>

/**
 * What probes of a vendor find. `rejected`: it does not accept the credential. `unsupported`: it has no free request, so that it is not probed.
 * `waiting`: the first probe has not ended yet.
 */
const PROBE_STATES = ['answering', 'failing', 'rejected', 'unsupported', 'waiting'] as const
export type ProbeState = (typeof PROBE_STATES)[number]

export const probeView = z.object({
  everySeconds: count,
  state: z.enum(PROBE_STATES),
  /** In words. */
  message: z.string(),
  /** Since when it is in this state. */
  since: time.nullable(),
  /** When the last probe ended. */
  at: time.nullable(),
  latencyMs: count.nullable(),
  /** Failed probes in a row. */
  failures: count,
})
export type ProbeView = z.infer<typeof probeView>

const asked = { requests: count, errors: count, latencyMsP50: count.nullable() }

export const vendorHistory = z.object({
  vendor: z.string(),
  /** Oldest first; hours without requests are left out. */
  hours: z.array(z.object({ at: time, ...asked })),
  /** Most errors first. */
  models: z.array(z.object({ product: z.string(), ...asked })),
})
export type VendorHistory = z.infer<typeof vendorHistory>

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
