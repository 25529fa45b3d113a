// Answers made in this room: vendors, the running system, the public part of the catalog.
import * as z from 'zod'
import type { Field } from '../catalog/field.ts'
import type { Permission } from '../identity/roles.ts'
import { jobFacts } from '../jobs/views.ts'
import { count, credits, page, time } from '../kernel/view.ts'
import { CLIENT_FORMATS, KIND_NAMES } from '../meter/kind.ts'
import { pricing } from '../meter/price.ts'
import { probeView } from '../routing/views.ts'

export const credentialView = z.object({
  name: z.string(),
  present: z.boolean(),
  source: z.enum(['env', 'stored', 'none']),
})

export const vendorCredentialView = credentialView.extend({
  weight: count,
  /** The last characters of its value; null: there is no value, or it is too short to show a part. */
  last4: z.string().nullable(),
  unreadable: z.literal(true).exactOptional(),
  /** Until then other credentials are used; null: it is in use. */
  disabledUntil: time.nullable(),
  /** Why the vendor does not accept it: the value is wrong, its account has no money, or too many calls use it. */
  disabledReason: z.enum(['rejected', 'out_of_funds', 'rate_limited']).nullable(),
  /** The status of the vendor's answer then. */
  status: count.nullable(),
  lastSuccessAt: time.nullable(),
  /** Other vendors with the same credential: they get a new value too. */
  sharedWith: z.array(z.string()),
  /** A salted hash of the value, if the request has a `salt`, to compare it with a known value. */
  fingerprint: z.string().exactOptional(),
})
export type VendorCredentialView = z.infer<typeof vendorCredentialView>

export const vendorView = z.object({
  name: z.string(),
  baseUrl: z.string(),
  simulated: z.boolean(),
  credential: credentialView.extend({
    name: z.string().nullable(),
    /** Stored under another TOLLGATE_SECRET, and not in the environment. */
    unreadable: z.literal(true).exactOptional(),
  }),
  /** The vendor's credentials in the catalog, and their state in this process. */
  credentials: z.array(vendorCredentialView),
  breaker: z.enum(['closed', 'open', 'half-open']),
  /** Why the breaker is not closed, in words, and since when. */
  reason: z.string().nullable(),
  since: time.nullable(),
  /** Null: it is not probed. */
  probe: probeView.nullable(),
  inFlight: count,
  requests: count,
  errors: count,
  /** Of the last minutes only. */
  recent: z.object({ minutes: count, requests: count, errors: count }),
  latencyMsP50: z.number().nullable(),
  latencyMsP95: z.number().nullable(),
  lastError: z.string().nullable(),
  lastAt: time.nullable(),
  /** Null: it was not tested yet. */
  lastTest: z.object({ ok: z.boolean(), message: z.string(), at: time }).nullable(),
})
export type VendorView = z.infer<typeof vendorView>

const ownFee = z.object({
  /** Credits for each call. */
  call: credits.exactOptional(),
  /** A fraction of the price. */
  share: credits.exactOptional(),
})

/** A vendor for which an account may store a BYOK key. */
export const byokKeyView = z.object({
  vendor: z.string(),
  /** false: the catalog no longer accepts BYOK keys for this vendor, and a stored key is not used. */
  allowed: z.boolean(),
  stored: z.boolean(),
  /** The vendor has another address than when the key was stored: it is not used until it is stored again. */
  addressChanged: z.boolean(),
  last4: z.string().nullable(),
  /** If the vendor rejects the key, calls use the gateway's credential, at the full price. */
  fallback: z.boolean(),
  updatedAt: time.nullable(),
  /** The fee of a call with the key; null: only the products below have one. */
  fee: ownFee.nullable(),
  products: z.array(z.object({ uid: z.string(), fee: ownFee })),
})
export type ByokKeyView = z.infer<typeof byokKeyView>

export const byokKeyStored = page(byokKeyView).extend({
  /** The result of the test at the vendor; null: no key was given. */
  test: z.object({ ok: z.boolean(), message: z.string() }).nullable(),
})
export type ByokKeyStored = z.infer<typeof byokKeyStored>

const liveCallView = z.object({
  id: z.string(),
  at: time,
  account: z.string(),
  key: z.string(),
  product: z.string(),
  endpoint: z.string(),
  stream: z.boolean(),
  running: z.boolean(),
  status: count.nullable(),
  /** `rejected`: before a vendor was called; `failed`: afterwards. */
  outcome: z.string().nullable(),
  fault: z.string().nullable(),
  charged: credits,
  durationMs: z.number(),
  /**
   * How many calls this line stands for: calls of a key that are rejected for the same reason within a minute are one
   * line.
   */
  calls: count,
})
export type LiveCallView = z.infer<typeof liveCallView>

export const livePage = page(liveCallView).extend({
  /** Calls in flight. */
  running: count,
  /** How many processes have reported their calls, and how many running ones have not. */
  processes: z.object({ answering: count, silent: count }),
})
export type LivePage = z.infer<typeof livePage>

export const systemView = z.object({
  version: z.string(),
  runtime: z.string(),
  store: z.object({ kind: z.string(), version: z.string(), sizeBytes: count }),
  migrations: z.object({ applied: count, latest: count }),
  /** Values for rows from before a migration, which maintenance fills in; `of` is an estimate. */
  backfills: z.array(z.object({ name: z.string(), rows: count, of: count, done: z.boolean() })),
  /** Stored data of another version of Tollgate, which this one does not know and does not use. */
  setAside: z.array(z.string()),
  processes: z.array(z.object({ id: z.string(), startedAt: time, heartbeatAt: time })),
  queue: jobFacts,
  catalogVersion: count,
  uptimeSeconds: count,
  /** Where accounts are, if not all are in this database. */
  ledgers: z.array(z.object({ name: z.string(), answers: z.boolean() })).exactOptional(),
})
export type SystemView = z.infer<typeof systemView>

const param = z.custom<Field & { readonly name: string }>((value) => typeof value === 'object')

export const publicCatalog = z.object({
  /** Endpoints to which a key can be restricted. */
  access: z.array(z.object({ name: z.string(), title: z.string(), paths: z.array(z.string()) })),
  models: z.array(
    z.object({
      uid: z.string(),
      name: z.string(),
      version: z.string().nullable(),
      type: z.enum(KIND_NAMES),
      family: z.string(),
      pricing: pricing.nullable(),
      /** What the rates are multiplied by in batches; null: nothing. */
      batchFactor: credits.nullable(),
      clientFormats: z.array(z.enum(CLIENT_FORMATS)),
      capabilities: z.array(z.string()),
      limits: z.object({
        contextTokens: count.optional(),
        outputTokensMax: count.optional(),
        outputTokensReserve: count,
        outputTokensFloor: count,
      }),
      /** Its answers are made up: only simulated vendors serve it. */
      simulated: z.boolean(),
    }),
  ),
  endpoints: z.array(
    z.object({
      id: z.string(),
      product: z.string(),
      method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
      path: z.string(),
      title: z.string(),
      description: z.string(),
      params: z.array(param),
      pricing: pricing.nullable(),
      simulated: z.boolean(),
    }),
  ),
})
export type PublicCatalog = z.input<typeof publicCatalog>

const jsonSchema = z.record(z.string(), z.unknown())
/** What somebody may change, with all that is asked for: the console makes a form of it. */
export const actionView = z.object({
  method: z.enum(['POST', 'PUT', 'PATCH', 'DELETE']),
  path: z.string(),
  title: z.string(),
  /** Null: everybody may, about themselves. */
  right: z.custom<Permission>((value) => typeof value === 'string').nullable(),
  /** Whether a role in an account is enough. */
  ofAccount: z.boolean(),
  query: jsonSchema.nullable(),
  body: jsonSchema.nullable(),
})
export type ActionView = z.output<typeof actionView>
