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
 * What probes of a vendor find. `rejected`: it does not accept the credential. `unsupported`: it has no free request,
 * so that it is not probed. `waiting`: the first probe has not ended yet.
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
