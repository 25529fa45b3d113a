// The shapes that the console API speaks. Amounts are decimal strings of credits, times are ISO 8601.

export type Credits = string

export interface Page<T> {
  items: T[]
  next: string | null
}

export type Role = 'owner' | 'member'

export interface Session {
  user: { id: string; email: string; role: 'operator' | 'user' }
  accounts: { id: string; name: string; role: Role }[]
}

export interface SessionRow {
  id: string
  createdAt: string
  lastSeenAt: string
  ip: string
  userAgent: string
  current: boolean
}

export const LIMIT_NAMES = [
  'requestsPerMinute',
  'tokensPerMinute',
  'concurrency',
  'spendPerDay',
  'spendPerMonth',
  'spendTotal',
] as const
export type LimitName = (typeof LIMIT_NAMES)[number]

/** Counts are numbers, spends are decimal strings; null or absent: no limit. */
export type Limits = { [name in LimitName]?: number | string | null }

export interface Account {
  id: string
  name: string
  balance: Credits
  held: Credits
  available: Credits
  limits: Limits | null
  createdAt: string
}

export interface Member {
  userId: string
  email: string
  role: Role
  createdAt: string
  lastSeenAt: string | null
}

/** What a link is about: joining an account, or choosing a new password. */
export interface Invite {
  kind: 'member' | 'password'
  account: string
  email: string
  role: Role | null
}

export interface Key {
  id: string
  name: string
  prefix: string
  last4: string
  models: string[] | null
  expiresAt: string | null
  limits: Limits | null
  ipRanges: string[] | null
  revokedAt: string | null
  lastUsedAt: string | null
  createdAt: string
  replacedBy?: string | null
}

/** Only the answers to creation and rotation carry the value. */
export interface NewKey extends Key {
  key: string
}

export interface KeyInput {
  name: string
  models?: string[] | null
  expiresAt?: string | null
  limits?: Limits
  ipRanges?: string[] | null
}

export interface Overview {
  balance: Credits
  held: Credits
  available: Credits
  series: {
    at: string
    requests: number
    errors: number
    charged: Credits
    inputTokens: number
    outputTokens: number
    latencyMsAvg: number | null
  }[]
  products: { product: string; requests: number; charged: Credits }[]
  statuses: { ok: number; failed: number }
}

export type Outcome = 'settled' | 'released' | 'expired'

export interface UsageRow {
  id: string
  at: string
  product: string
  door: string | null
  keyId: string
  keyName: string | null
  outcome: Outcome
  status: number | null
  charged: Credits
  held: Credits
  loss: Credits
  units: Partial<Record<string, number>>
  estimated: boolean
  stream: boolean
  durationMs: number | null
  firstByteMs: number | null
  route: number | null
  job: string | null
}

export interface UsageDetail extends UsageRow {
  lines: { unit: string; quantity: number; rate: Credits; per: number; amount: Credits }[]
  catalogVersion: number
}

export interface LedgerRow {
  id: string
  at: string
  kind: 'grant' | 'takeback' | Outcome
  amount: Credits
  loss?: Credits | null
  balanceAfter?: Credits | null
  requestId: string | null
  product: string | null
  note: string | null
  actor: string | null
}

export type JobStatus = 'PENDING' | 'CONNECT' | 'PROCESSING' | 'COMPLETED' | 'FAILED' | 'CANCELLED'

export interface Job {
  id: string
  status: JobStatus
  inputParams: Record<string, unknown>
  outputResult: unknown
  createdAt: string
  startedAt: string | null
  completedAt: string | null
  error?: { code?: number | string; message: string } | null
  product?: string
  charged?: Credits | null
}

export interface PriceTier {
  upTo?: number
  when?: Record<string, string>
  input?: Credits
  cachedInput?: Credits
  cacheWrite?: Credits
  output?: Credits
  image?: Credits
  second?: Credits
  call?: Credits
  row?: Credits
}

export interface Pricing {
  unit: string
  tokenTierBasis?: string
  tiers: PriceTier[]
}

export type ModelType = 'text' | 'image' | 'video' | 'data'
export type Door = 'openai-chat' | 'openai-responses' | 'anthropic-messages'

export interface PublicModel {
  uid: string
  name: string
  version: string | null
  type: ModelType
  family?: string
  pricing: Pricing | null
  doors: Door[]
  capabilities: string[]
  limits: { contextTokens?: number; outputTokensMax?: number; outputTokensReserve?: number }
  path?: string
}

export type ParamKind = 'text' | 'domain' | 'boolean' | 'integer' | 'choice' | 'list' | 'date' | 'latest' | 'json-array'

/** A parameter of a data endpoint, as the catalogue describes it. */
export interface Param {
  name: string
  kind: ParamKind
  in?: 'path'
  required?: true
  description: string
  example?: string
  default?: string
  allowed?: readonly string[]
  min?: number
  max?: number
  /** What a text must look like, in words. */
  form?: string
}

export interface PublicEndpoint {
  id: string
  /** What the price and the usage rows name. */
  product: string
  method: 'GET' | 'POST'
  path: string
  title: string
  description: string
  params: Param[]
  pricing: Pricing | null
}

export interface PublicCatalog {
  models: PublicModel[]
  endpoints: PublicEndpoint[]
}

export interface CatalogModel {
  name: string
  type: ModelType
  family?: string
  enabled?: boolean
  pricing: Pricing
  routes: { vendor: string; protocol: string; model?: string }[]
  [other: string]: unknown
}

export interface CatalogDocument {
  vendors: Record<string, unknown>
  models: Record<string, CatalogModel>
  endpoints: Record<string, Pick<CatalogModel, 'enabled' | 'pricing' | 'routes'>>
}

export interface CatalogVersion {
  version: number
  appliedAt: string | null
  actor: string | null
  note: string | null
}

export interface Catalog extends CatalogVersion {
  document: CatalogDocument
}

export interface CatalogCheck {
  problems: string[]
  changes: string[]
}

export interface Vendor {
  name: string
  baseUrl: string
  simulated: boolean
  credential: { name: string | null; present: boolean; source: 'env' | 'stored' | 'none' }
  breaker: 'closed' | 'open' | 'half-open'
  inFlight: number
  requests: number
  errors: number
  latencyMsP50: number | null
  latencyMsP95: number | null
  lastError: string | null
  lastAt: string | null
}

export interface VendorTest {
  ok: boolean
  status: number | null
  latencyMs: number
  message: string
}

export interface LedgerCheck {
  ok: boolean
  checked: Record<string, number>
  problems: string[]
}

export interface AuditRow {
  id: string
  at: string
  actor: string
  action: string
  object: string | null
  ip: string | null
  requestId: string | null
  detail: unknown
}

export interface LiveCall {
  id: string
  at: string
  account: string
  product: string | null
  door: string | null
  status: number | null
  outcome: string | null
  charged: Credits | null
  durationMs: number | null
  stream: boolean
  running: boolean
}

export interface System {
  version: string
  runtime: string
  store: { kind: string; version: string; sizeBytes: number }
  migrations: { applied: number; latest: number }
  processes: { id: string; startedAt: string; heartbeatAt: string }[]
  queue: { active: number; created: number; failed: number }
  catalogVersion: number
  uptimeSeconds: number
}
