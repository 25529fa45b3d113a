// What the answers about routing hold.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'

const step = z.object({
  /** `check`: a question that costs nothing, of those whose least call is not small. */
  what: z.enum(['models', 'call', 'check']),
  method: z.string(),
  /** Without the credential, wherever it stands. */
  address: z.string(),
  ok: z.boolean(),
  /** null: there was no answer. */
  status: count.nullable(),
  latencyMs: count,
  message: z.string(),
  model: z.string().nullable(),
  /** What the vendor counted. */
  inputTokens: count.nullable(),
  outputTokens: count.nullable(),
})
export type TestStep = z.infer<typeof step>

export const vendorTest = z.object({
  /** A real call was answered; where there is no small one, the vendor took the credential. */
  ok: z.boolean(),
  status: count.nullable(),
  latencyMs: count,
  /** The cause, where it is not ok. */
  message: z.string(),
  steps: z.array(step),
  /** The names of its models, as it lists them. */
  models: z.array(z.string()),
  /** The address at which it does answer, where the one that was given is not right. */
  addressSuggested: z.string().nullable(),
})
export type VendorTest = z.infer<typeof vendorTest>

const asked = { requests: count, errors: count, latencyMsP50: count.nullable() }

export const vendorHistory = z.object({
  vendor: z.string(),
  /** Oldest first; hours without requests are left out. */
  hours: z.array(z.object({ at: time, ...asked })),
  /** Most errors first. */
  models: z.array(z.object({ product: z.string(), ...asked })),
})
export type VendorHistory = z.infer<typeof vendorHistory>
